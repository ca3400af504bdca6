//! Which paths of an archive were its sources: those that lie below no other.
//!
//! Not here: sources as a user types them, which are `tree`'s.

/// Looks at the paths of an archive, in its order.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    last: Option<Vec<u8>>,
}

impl Sources {
    /// Whether a source begins with this path: it does not lie below the one before.
    pub fn begins_with(&mut self, path: &[u8]) -> bool {
        let is_below = self.last.as_ref().is_some_and(|source| {
            let rest = path.strip_prefix(&source[..]);
            rest.is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b'/'))
        });
        if !is_below {
            self.last = Some(path.to_vec());
        }
        !is_below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_lies_below_no_other_path() {
        let paths = ["home/eva", "home/eva/a", "home/eva/a/b", "home/evan", "srv", "srv/a", "srv"];
        let mut sources = Sources::default();
        let begin: Vec<_> =
            paths.into_iter().filter(|path| sources.begins_with(path.as_bytes())).collect();
        assert_eq!(begin, ["home/eva", "home/evan", "srv"]);
    }
}
