//! What a run leaves when the user stops it (SIGINT, SIGTERM), for the sentence that reports it.

use std::fs::{FileType, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use base::escape::escape_path;
use flow::cancel::{Cancel, Stopped};

use crate::failure::Failure;

/// The failure of a run; where the user has stopped the run, with what is left of it. A failure
/// that came first stays as it is.
pub(crate) fn with_left(
    failure: Failure,
    cancel: &Cancel,
    left: impl FnOnce() -> String,
) -> Failure {
    match cancel.check() {
        Err(Stopped::Cancelled) => failure.followed_by(&left()),
        _ => failure,
    }
}

/// What a run leaves that writes to `to`.
pub(crate) fn left_at(to: &Path) -> String {
    let name = escape_path(to);
    if to.as_os_str().as_bytes() == b"-" {
        return "the data on standard output are incomplete".to_owned();
    }
    let kind = std::fs::metadata(to).ok().map(|status: Metadata| status.file_type());
    match kind {
        None => format!("nothing is left at {name}"),
        Some(kind) if kind.is_file() => format!("{name} is as it was before"),
        Some(kind) if is_stream(kind) => format!("the data sent to {name} are incomplete"),
        Some(_) => format!("the data on {name} are incomplete"),
    }
}

fn is_stream(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_socket()
}

/// What a restore leaves in `into`.
pub(crate) fn left_in(into: &Path) -> String {
    let name = escape_path(into);
    let is_empty = |mut names: std::fs::ReadDir| names.next().is_none();
    if std::fs::read_dir(into).map_or(true, is_empty) {
        return format!("nothing is left in {name}");
    }
    format!("{name} keeps the files that were complete, and no part of another")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_that_was_stopped_says_what_is_left() {
        let text = |cancel: &Cancel| {
            let failure = Failure::of("cannot write x", None);
            with_left(failure, cancel, || "nothing is left at x".to_owned()).message().to_owned()
        };
        let cancel = Cancel::new();
        assert_eq!(text(&cancel), "cannot write x");
        cancel.cancel();
        assert_eq!(text(&cancel), "cannot write x: nothing is left at x");
        let failed = Cancel::new();
        failed.fail();
        failed.cancel();
        assert_eq!(text(&failed), "cannot write x", "the failure came first");
    }

    #[test]
    fn what_is_left_depends_on_the_target() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name);
        let shown = |name: &str| escape_path(&folder.path().join(name));
        assert_eq!(left_at(&name("new")), format!("nothing is left at {}", shown("new")));
        std::fs::write(name("old"), "x").unwrap();
        assert_eq!(left_at(&name("old")), format!("{} is as it was before", shown("old")));
        assert_eq!(left_at("-".as_ref()), "the data on standard output are incomplete");
        assert_eq!(left_at("/dev/null".as_ref()), "the data on /dev/null are incomplete");
        assert_eq!(left_in(&name("none")), format!("nothing is left in {}", shown("none")));
        assert!(
            left_in(folder.path())
                .ends_with(" keeps the files that were complete, and no part of another")
        );
    }
}
