//! Any bytes as what strace, blkparse and fio wrote. Whatever the lines claim, the profile holds
//! what it promises: shares are shares, no file without operations, and the limits are kept; and a
//! job for fio can be made of it, or not.

use capture::import::{blkparse, import, iolog, strace};
use capture::job::{FioJob, JobTarget};
use capture::profile::{ProfileLimits, Profiler};
use report::captures::text;
use report::table::Style;

/// Checks one input.
pub fn check(input: &[u8]) {
    let limits = ProfileLimits { files: 16, openings: 64, sizes: 4, threads: 4, words: 256 };
    let mut profiler = Profiler::new(limits);
    let results = [
        import(input, &mut profiler),
        strace::import(input, &mut profiler),
        blkparse::import(input, &mut profiler),
        iolog::import(input, &mut profiler),
    ];
    for result in results {
        match result {
            Ok(imported) => assert!(imported.operations > 0),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let profile = profiler.profile();
    assert!(profile.files.len() <= limits.files);
    for file in &profile.files {
        assert!(file.calls > 0);
        let shares = [file.read_share, file.sequential_share, file.rewrite_share, file.reuse_share];
        assert!(shares.iter().flatten().all(|it| (0.0..=1.0).contains(it)), "{file:?}");
    }
    assert!(!text(&profile, Style::PLAIN).is_empty());
    if let Ok(job) = FioJob::of(&profile, &JobTarget { folder: None, limits: None }) {
        assert!(!job.text().is_empty());
    }
    let findings = capture::words::findings(&profile);
    assert!(findings.iter().all(|it| !it.sentence().is_empty()));
}
