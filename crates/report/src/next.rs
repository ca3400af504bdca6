//! The one command that a text ends with: where its numbers lead.

use std::path::Path;

use base::escape::escape_controls;
use experiment::judgement::quoted;

/// The last line of a text. `brings` says in a few words what that command tells.
pub(crate) fn next(command: &str, brings: &str) -> String {
    format!("next: {}  ({brings})\n", escape_controls(command))
}

/// What limits a backup of a path.
pub(crate) fn diagnose(path: &Path) -> String {
    let path = quoted(&path.to_string_lossy());
    next(
        &format!("takeup diagnose {path}"),
        "what limits a backup of it; TARGET behind it counts, too",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_for_the_shell() {
        let line = diagnose(Path::new("/srv/my mail"));
        assert!(line.starts_with("next: takeup diagnose '/srv/my mail'  ("), "{line}");
        assert!(!next("takeup explain 'a\u{1b}b'", "x").contains('\u{1b}'));
    }
}
