//! Where the state of Takeup lies: the journal of changed settings, what is restored from it, and
//! the catalogue.

use std::io::ErrorKind;
use std::path::PathBuf;

use storage::StorageError;

/// Restores what a killed experiment left changed, and returns the number of settings.
pub fn recovered() -> Result<usize, StorageError> {
    journal().map_or(Ok(0), |journal| storage::settings::recover(&journal))
}

/// The journal of changed settings: in a folder where others cannot write, and that a restart of
/// the machine empties, since the kernel forgets the settings then, too. Without a login session an
/// ordinary user has only the home directory.
pub fn journal() -> Option<PathBuf> {
    let directory = if rustix::process::geteuid().is_root() {
        named_folder("TAKEUP_RUN_DIR").or_else(|| Some(PathBuf::from("/run/takeup")))
    } else {
        named_folder("TAKEUP_RUN_DIR")
            .or_else(|| named_folder("XDG_RUNTIME_DIR").map(|path| path.join("takeup")))
            .or_else(users_folder)
    };
    directory.map(|directory| directory.join("settings.json"))
}

/// The folder that an environment variable names.
pub fn named_folder(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The folder for the state of an ordinary user's programs.
pub fn users_folder() -> Option<PathBuf> {
    named_folder("XDG_STATE_HOME")
        .map(|path| path.join("takeup"))
        .or_else(|| named_folder("HOME").map(|path| path.join(".local/state/takeup")))
}

/// The folder for what lasts: of this user, or of the machine for root.
fn lasting_folder() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        named_folder("XDG_STATE_HOME")
            .map(|path| path.join("takeup"))
            .or_else(|| Some(PathBuf::from("/var/lib/takeup")))
    } else {
        users_folder()
    }
}

/// The catalogue of this user, that of the machine for root.
pub fn catalogue() -> Option<PathBuf> {
    lasting_folder().map(|folder| folder.join("catalog.sqlite"))
}

/// Copies of the indexes of sets on tape, and the account of media.
pub fn tape_sets() -> Option<PathBuf> {
    lasting_folder().map(|folder| folder.join("tape-sets"))
}

/// What became of changes that were tried.
pub fn tried_changes() -> Option<PathBuf> {
    lasting_folder().map(|folder| folder.join("tried-changes.jsonl"))
}

/// What is known of media on tape, which can be deleted at any time.
pub fn tape_memory() -> Option<PathBuf> {
    lasting_folder().map(|folder| folder.join("tape-memory"))
}

/// The journal of jobs.
pub fn journal_of_jobs() -> Option<PathBuf> {
    lasting_folder().map(|folder| folder.join("journal.jsonl"))
}

/// The file with the jobs of this user, or of the machine for root.
pub fn jobs() -> Option<PathBuf> {
    let folder = named_folder("XDG_CONFIG_HOME").or_else(|| {
        if rustix::process::geteuid().is_root() {
            return Some(PathBuf::from("/etc"));
        }
        named_folder("HOME").map(|path| path.join(".config"))
    });
    folder.map(|folder| folder.join("takeup/takeup.toml"))
}

/// The hint for an error of the guard of settings.
pub fn guard_hint(error: &StorageError) -> Option<String> {
    let hint = match error {
        StorageError::Untrusted { .. } => {
            "look at the file and delete it if you did not make it: Takeup did nothing that it says"
        }
        StorageError::NotUnderstood { .. } => {
            "look at the file: it may name settings that were not put back; restore them, then \
             delete it"
        }
        StorageError::NoPlace { .. } => "set XDG_STATE_HOME or HOME to a folder of yours",
        StorageError::Journal { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            "check HOME and XDG_STATE_HOME: they may be another user's, as after su"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The hint when settings could not be restored.
pub const PUT_BACK: &str = "try again with `takeup bench put-back`";

#[cfg(test)]
mod tests {
    use super::*;

    /// Behind `su` without `-` the home is that of who was there before.
    #[test]
    fn a_journal_that_is_not_for_this_user_is_told_why() {
        let of = |kind: ErrorKind| StorageError::Journal {
            what: "read",
            path: "/root/.local/state/takeup/settings.json".into(),
            source: kind.into(),
        };
        let hint = guard_hint(&of(ErrorKind::PermissionDenied)).unwrap();
        assert!(
            hint.contains("check HOME and XDG_STATE_HOME: they may be another user's"),
            "{hint}"
        );
        assert_eq!(guard_hint(&of(ErrorKind::StorageFull)), None);
    }
}
