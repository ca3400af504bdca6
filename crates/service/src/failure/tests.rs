//! Hints and details of failures.

use super::*;

#[test]
fn a_failure_is_one_line_and_a_hint() {
    let error = PipeError::Target(TargetError::Open {
        path: "/no\nwhere/x".into(),
        source: io::Error::from_raw_os_error(2),
    });
    let expected = "takeup: cannot open /no\\nwhere/x: no such file or directory\n\
                    hint: create the folder first\n";
    assert_eq!(Failure::from(error).to_text(), expected);
}

#[test]
fn a_tape_of_a_later_version_has_its_own_code() {
    let source = LabelError::Later { version: 2 };
    let (device, place) = ("nst0".to_owned(), "file 0".to_owned());
    let failure = ReadFailure::Tape(TapeReadFailure::Label { device, place, source });
    let read = Failure::from(RestoreError::Read(failure));
    let expected = "takeup: cannot read file 0 of the tape in nst0: a later version of takeup \
                    wrote the label (version 2, and this one knows 1)\n\
                    hint: use the version of takeup that wrote it, or a later one\n";
    assert_eq!((read.kind, &*read.to_text()), (FailureKind::LaterVersion, expected));
    let refused = Refused::LaterVersion { version: 2 };
    let device = "nst0".to_owned();
    let written = Failure::from(BackupError::Tape(TapeSetError::Refused { device, refused }));
    let text = written.to_text();
    assert_eq!(written.kind, FailureKind::LaterVersion, "{text}");
    assert!(text.starts_with("takeup: cannot write to nst0: the medium holds a set of a "));
    assert_eq!(text.matches("this one knows").count(), 1, "{text}");
}

/// What was restored stays, but not where the disk itself may lack it.
#[test]
fn a_full_disk_says_how_the_restore_goes_on() {
    let full = || io::Error::from_raw_os_error(28);
    let parent = tree::RestoreError::Parent { path: b"a".to_vec(), source: full() };
    let text = Failure::from(RestoreError::Target(parent)).to_text();
    assert!(text.contains("run it again with --overwrite=keep-newer: what was restored"), "{text}");
    let error = tree::RestoreError::Synchronise { source: full() };
    let text = Failure::from(RestoreError::Target(error)).to_text();
    assert!(text.contains("the files may not be on the disk"), "{text}");
}

#[test]
fn a_restore_that_is_not_on_the_disk_is_a_failure() {
    let source = io::Error::from_raw_os_error(5);
    let error = RestoreError::Target(tree::RestoreError::Synchronise { source });
    let text = Failure::from(error).to_text();
    let expected = "takeup: cannot synchronise the destination: input/output error\n\
                    hint: restore again once the cause is fixed: ";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn a_full_target_is_told_whatever_the_step() {
    let source = io::Error::from_raw_os_error(28);
    let error = PipeError::Write { object: "/x".into(), offset_bytes: 7, source };
    let text = Failure::from(error).to_text();
    let expected = "takeup: cannot write /x at byte 7: no space left on device\n";
    assert!(text.starts_with(expected) && text.contains("hint: free some"), "{text}");
}
