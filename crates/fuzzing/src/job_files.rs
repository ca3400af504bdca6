//! Any bytes as a job file of fio. What fio is given in the end is itself a job that is accepted,
//! names the same files, and stays as it is: nothing that is refused slips through by the way it is
//! written.

use std::path::Path;

use loads::disk::{JobRequest, UserJob};

/// Checks one input.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let file = Path::new("fuzz.fio");
    let made = |path: &Path| path.to_owned();
    let job = match UserJob::of_text(file, text, JobRequest::default()) {
        Ok(job) => job,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    // A name that cannot be written into a job is an error.
    let Ok(given) = job.text(made) else { return };
    let again =
        UserJob::of_text(file, &given, JobRequest::default()).expect("fio gets what passed");
    assert_eq!(again.paths(), job.paths(), "{given}");
    assert_eq!(again.access(), job.access(), "{given}");
    assert!(again.left_out().is_empty(), "{given}");
    assert_eq!(again.text(made).expect("it was written once"), given);
}
