//! A run keeps its first failure; its echoes in other threads do not replace it. An error that is
//! wrongly classed as an echo would be lost, and the run would seem to have succeeded.

use flow::cancel::Stopped;
use flow::crew::{Failure, StageFailure};
use flow::run::StageKind;
use flow::source::ReadError;

use crate::backup::BackupError;
use crate::list::ListError;
use crate::pipe::StageEnd;
use crate::read::ReadFailure;
use crate::restore::RestoreError;
use crate::verify::VerifyError;

fn only_a_stop_is_an_echo<E: Failure>() {
    assert!(E::from(Stopped::Failed).is_echo());
    assert!(E::from(Stopped::Cancelled).is_echo());
    let panicked = StageFailure::Panicked { stage: StageKind::Create, message: String::new() };
    assert!(!E::from(panicked).is_echo());
}

fn a_stop_of_what_reads_is_one_too<E: Failure + From<ReadFailure>>() {
    let name = || "archive".to_owned();
    let stopped = ReadFailure::Read { name: name(), source: Stopped::Failed.into() };
    assert!(E::from(stopped).is_echo());
    assert!(!E::from(ReadFailure::Empty { name: name() }).is_echo());
    let source = std::io::Error::other("no such sector");
    let failed = ReadError::Read { offset_bytes: 0, source };
    assert!(!E::from(ReadFailure::Read { name: name(), source: failed }).is_echo());
}

#[test]
fn no_run_takes_a_failure_for_the_echo_of_one() {
    only_a_stop_is_an_echo::<BackupError>();
    only_a_stop_is_an_echo::<StageEnd>();
    only_a_stop_is_an_echo::<ListError>();
    only_a_stop_is_an_echo::<RestoreError>();
    only_a_stop_is_an_echo::<VerifyError>();
    a_stop_of_what_reads_is_one_too::<ListError>();
    a_stop_of_what_reads_is_one_too::<RestoreError>();
    a_stop_of_what_reads_is_one_too::<VerifyError>();
}
