//! The selected members of an archive: the `PATH...` of list and restore.
//!
//! A path selects the member of that name and everything below it. `./` and leading and trailing
//! slashes are ignored on both sides, so `etc/ssh/` selects a member stored as `./etc/ssh`.

use std::sync::Arc;

use twox_hash::XxHash3_64;

/// Selected paths; no path selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    paths: Vec<Selected>,
    only: Option<Arc<Members>>,
}

/// Members by their whole paths: 8 bytes each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    hashes: Vec<u64>,
    is_sorted: bool,
}

impl Members {
    /// Adds a member.
    pub fn add(&mut self, path: &[u8]) {
        self.hashes.push(XxHash3_64::oneshot(&normal(path)));
        self.is_sorted = false;
    }

    /// Number of members.
    pub fn count(&self) -> usize {
        self.hashes.len()
    }

    fn sort(&mut self) {
        self.hashes.sort_unstable();
        self.is_sorted = true;
    }

    /// Whether a path, without `.` and surplus slashes, is one of them.
    fn has(&self, path: &[u8]) -> bool {
        debug_assert!(self.is_sorted, "they are sorted when they become a selection");
        self.hashes.binary_search(&XxHash3_64::oneshot(path)).is_ok()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Selected {
    as_given: Vec<u8>,
    components: Vec<u8>,
    found: bool,
    /// A similar member, as long as nothing matches.
    near: Option<(Nearness, Vec<u8>)>,
}

/// A requested path that matches nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    /// As given.
    pub path: Vec<u8>,
    /// A similar member.
    pub near: Option<Vec<u8>>,
}

/// How a member resembles a path that matches nothing, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    /// The member has additional leading folders.
    Deeper,
    /// The path has additional leading folders.
    Shallower,
    /// Upper and lower case differ.
    Case,
    /// They differ in one place.
    Typo,
    /// It has the same name in another folder.
    Elsewhere,
}

/// Most bytes of difference between a name and a mistyped form of it.
const TYPO_BYTES_MAX: usize = 2;

impl Selection {
    /// Selects these paths and everything below them.
    pub fn new(paths: impl IntoIterator<Item = Vec<u8>>) -> Selection {
        let select = |as_given: Vec<u8>| {
            let components = normal(&as_given);
            Selected { as_given, components, found: false, near: None }
        };
        Selection { paths: paths.into_iter().map(select).collect(), only: None }
    }

    /// Selects exactly these members, and nothing below them.
    pub fn exactly(mut members: Members) -> Selection {
        members.sort();
        Selection { paths: Vec::new(), only: Some(Arc::new(members)) }
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        self.paths.is_empty() && self.only.is_none()
    }

    /// Number of given paths.
    pub fn count(&self) -> usize {
        self.paths.len()
    }

    /// Whether the member at `path` is selected; records which paths matched.
    pub fn selects(&mut self, path: &[u8]) -> bool {
        if let Some(only) = &self.only {
            return only.has(&normal(path));
        }
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
            selected.look_at(&path);
        }
        any
    }

    /// Offers an unselected member as a suggestion for paths that match nothing.
    pub(crate) fn pass(&mut self, path: &[u8]) {
        let path = normal(path);
        self.paths.iter_mut().for_each(|selected| selected.look_at(&path));
    }

    /// Whether a path matches nothing so far.
    pub(crate) fn lacks_any(&self) -> bool {
        self.paths.iter().any(|selected| !selected.found)
    }

    /// Whether the member at `path` is selected, without recording it.
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        let path = normal(path);
        if let Some(only) = &self.only {
            return only.has(&path);
        }
        self.paths.is_empty()
            || self.paths.iter().any(|selected| is_at_or_below(&path, &selected.components))
    }

    /// The paths that match nothing, with similar members among those that were offered.
    pub fn not_found(&self) -> Vec<NotFound> {
        let missing = self.paths.iter().filter(|selected| !selected.found);
        let told = |selected: &Selected| NotFound {
            path: selected.as_given.clone(),
            near: selected.near.as_ref().map(|(_, path)| path.clone()),
        };
        missing.map(told).collect()
    }
}

impl Selected {
    /// Keeps the member that is most similar to the path.
    fn look_at(&mut self, path: &[u8]) {
        if self.found {
            return;
        }
        let Some(nearness) = nearness(&self.components, path) else { return };
        if self.near.as_ref().is_none_or(|(nearest, _)| nearness < *nearest) {
            self.near = Some((nearness, path.to_vec()));
        }
    }
}

/// How a member resembles a requested path, if it does. The cost is linear in both.
fn nearness(wanted: &[u8], path: &[u8]) -> Option<Nearness> {
    let ends_with = |long: &[u8], short: &[u8]| {
        let front = long.strip_suffix(short);
        !short.is_empty() && front.is_some_and(|front| front.ends_with(b"/"))
    };
    if ends_with(path, wanted) {
        return Some(Nearness::Deeper);
    }
    if ends_with(wanted, path) {
        return Some(Nearness::Shallower);
    }
    if wanted.eq_ignore_ascii_case(path) {
        return Some(Nearness::Case);
    }
    let name = wanted.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let whole = path;
    let same = |pair: &(&u8, &u8)| pair.0 == pair.1;
    let front = wanted.iter().zip(path).take_while(same).count();
    let (wanted, path) = (&wanted[front..], &path[front..]);
    let back = wanted.iter().rev().zip(path.iter().rev()).take_while(same).count();
    let differing = wanted.len().max(path.len()) - back;
    // Short names all resemble each other.
    if differing <= TYPO_BYTES_MAX && front + back > differing {
        return Some(Nearness::Typo);
    }
    let is_file_of = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(name);
    (!name.is_empty() && is_file_of(whole)).then_some(Nearness::Elsewhere)
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

/// `path` without leading slashes, which would lead outside the destination. `/` itself is the
/// destination.
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
        assert_eq!(selection.not_found().len(), usize::from(!expected));
    }

    /// The suggestions for a path that matches nothing.
    #[track_caller]
    fn check_near(wanted: &str, members: &[&str], expected: Option<&str>) {
        let mut selection = Selection::new([wanted.as_bytes().to_vec()]);
        members.iter().for_each(|path| assert!(!selection.selects(path.as_bytes())));
        let near = selection.not_found().remove(0).near;
        let near = near.map(|path| String::from_utf8(path).unwrap());
        assert_eq!(near.as_deref(), expected, "{wanted} of {members:?}");
    }

    #[test]
    fn what_may_have_been_meant_is_offered() {
        let members =
            ["srv", "srv/www", "srv/www/index.html", "srv/www/logo.png", "srv/a", "srv/b"];
        // Folders in front that are missing, or too many.
        check_near("www/logo.png", &members, Some("srv/www/logo.png"));
        check_near("/mnt/srv/www", &["srv/a"], None);
        check_near("/mnt/srv/www/../x/srv", &["srv"], Some("srv"));
        check_near("old/srv/www/logo.png", &members, Some("srv/www/logo.png"));
        // One letter too few, another one, two in the wrong order, large ones.
        check_near("srv/www/index.htm", &members, Some("srv/www/index.html"));
        check_near("srv/www/indax.html", &members, Some("srv/www/index.html"));
        check_near("srv/wwwl/ogo.png", &members, Some("srv/www/logo.png"));
        check_near("SRV/www/Index.html", &members, Some("srv/www/index.html"));
        // The better one counts, whatever comes first.
        check_near(
            "www/inde.html",
            &["www/inde.htm", "srv/www/inde.html"],
            Some("srv/www/inde.html"),
        );
        check_near("srv/logo.png", &members, Some("srv/www/logo.png"));
        check_near("b", &["a", "c"], None);
        check_near("etc/hosts", &members, None);
        check_near("ww", &["x/www"], None);
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
