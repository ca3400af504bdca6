//! Which members of an archive are meant: the `PATH...` of list and restore.
//!
//! A path selects the member of that name and everything below it. `./`, leading and trailing
//! slashes do not count on either side, so `etc/ssh/` selects what was stored as `./etc/ssh`.

/// Paths to be selected; none select everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    paths: Vec<Selected>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Selected {
    as_given: Vec<u8>,
    components: Vec<u8>,
    found: bool,
}

impl Selection {
    /// Selects these paths and what is below them.
    pub fn new(paths: impl IntoIterator<Item = Vec<u8>>) -> Selection {
        let select = |as_given: Vec<u8>| {
            let components = normal(&as_given);
            Selected { as_given, components, found: false }
        };
        Selection { paths: paths.into_iter().map(select).collect() }
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        self.paths.is_empty()
    }

    /// Whether the member at `path` is selected; remembers which paths were found.
    pub fn selects(&mut self, path: &[u8]) -> bool {
        if self.paths.is_empty() {
            return true;
        }
        let path = normal(path);
        let mut any = false;
        for selected in &mut self.paths {
            if is_at_or_below(&path, &selected.components) {
                selected.found = true;
                any = true;
            }
        }
        any
    }

    /// Whether the member at `path` is selected, without remembering it.
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        let path = normal(path);
        self.paths.is_empty()
            || self.paths.iter().any(|selected| is_at_or_below(&path, &selected.components))
    }

    /// The paths, as given, at which nothing was found.
    pub fn not_found(&self) -> impl Iterator<Item = &[u8]> {
        self.paths.iter().filter(|path| !path.found).map(|path| &*path.as_given)
    }
}

/// Components joined by single slashes, without `.`.
pub(crate) fn normal(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    for component in components(path) {
        if !out.is_empty() {
            out.push(b'/');
        }
        out.extend_from_slice(component);
    }
    out
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."))
}

fn is_at_or_below(path: &[u8], above: &[u8]) -> bool {
    match path.strip_prefix(above) {
        Some(rest) => rest.is_empty() || rest[0] == b'/' || above.is_empty(),
        None => false,
    }
}

/// Whether a path starts at the root of a file system.
pub(crate) fn is_absolute(path: &[u8]) -> bool {
    path.first() == Some(&b'/')
}

/// `path` without the slashes in front, which would lead outside of the directory that members go
/// into. `/` itself is that directory.
pub(crate) fn without_root(path: &mut Vec<u8>) {
    let slashes = path.iter().take_while(|byte| **byte == b'/').count();
    path.drain(..slashes);
    if path.is_empty() && slashes > 0 {
        path.push(b'.');
    }
}

/// `path` without its first `count` components, `None` when nothing is left.
pub(crate) fn strip_components(path: &[u8], count: usize) -> Option<Vec<u8>> {
    let mut left = Vec::with_capacity(path.len());
    for component in components(path).skip(count) {
        if !left.is_empty() {
            left.push(b'/');
        }
        left.extend_from_slice(component);
    }
    (!left.is_empty()).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(selected: &str, path: &str, expected: bool) {
        let mut selection = Selection::new([selected.as_bytes().to_vec()]);
        assert_eq!(selection.selects(path.as_bytes()), expected, "{selected} of {path}");
        assert_eq!(selection.not_found().count(), usize::from(!expected));
    }

    #[test]
    fn a_path_selects_itself_and_what_is_below() {
        check("a/b", "a/b", true);
        check("a/b", "a/b/c/d", true);
        check("a/b", "a/bc", false);
        check("a/b", "a", false);
        check("a/b/", "./a//b/c", true);
        check("/a", "a/b", true);
        check(".", "anything", true);
    }

    #[test]
    fn leading_components_are_stripped() {
        let strip = |path: &str, count| strip_components(path.as_bytes(), count);
        assert_eq!(strip("a/b/c", 1), Some(b"b/c".to_vec()));
        assert_eq!(strip("./a/b", 1), Some(b"b".to_vec()));
        assert_eq!(strip("a", 1), None);
        assert_eq!(strip("../a", 1), Some(b"a".to_vec()));
    }
}
