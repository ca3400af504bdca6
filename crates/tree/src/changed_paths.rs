//! Paths that others say have changed, and which folders a walk needs to look at for them.
//!
//! The paths are sorted as a walk meets them: what is below a folder follows it without a gap. So
//! a folder asks by binary search, and a list takes its own bytes and 24 more for each path.

use std::cmp::Ordering;

/// Most paths of a list.
pub const CHANGED_PATHS_MAX: usize = 1 << 20;
/// Most bytes of all its paths together.
pub const CHANGED_BYTES_MAX: usize = 256 << 20;

/// The list has more paths, or longer ones, than are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "more than {} paths, or {} MiB of them",
    CHANGED_PATHS_MAX,
    CHANGED_BYTES_MAX >> 20
)]
pub struct TooManyPaths;

/// A list that is being read.
#[derive(Clone, Debug, Default)]
pub struct ChangedPathsBuilder {
    paths: Vec<(u32, Box<[u8]>)>,
    whole: Vec<(u32, Box<[u8]>)>,
    bytes: usize,
}

impl ChangedPathsBuilder {
    /// Adds a path by the number of its source and what follows the source's own path, without a
    /// slash at either end; empty for the source itself.
    ///
    /// # Errors
    /// [`TooManyPaths`]; the list is unchanged.
    pub fn add(&mut self, source: u32, path: &[u8]) -> Result<(), TooManyPaths> {
        if self.paths.len() >= CHANGED_PATHS_MAX || self.bytes + path.len() > CHANGED_BYTES_MAX {
            return Err(TooManyPaths);
        }
        self.bytes += path.len();
        self.paths.push((source, path.into()));
        Ok(())
    }

    /// Adds a folder in which everything may have changed, at any depth.
    ///
    /// # Errors
    /// [`TooManyPaths`]; the list is unchanged.
    pub fn add_whole(&mut self, source: u32, path: &[u8]) -> Result<(), TooManyPaths> {
        self.add(source, path)?;
        self.whole.push((source, path.into()));
        Ok(())
    }

    /// The list, sorted.
    pub fn finish(mut self) -> ChangedPaths {
        let key = |(source, path): &(u32, Box<[u8]>), other: &(u32, Box<[u8]>)| {
            source.cmp(&other.0).then_with(|| order(path, &other.1))
        };
        for paths in [&mut self.paths, &mut self.whole] {
            paths.sort_unstable_by(key);
            paths.dedup();
        }
        ChangedPaths { paths: self.paths, whole: self.whole }
    }
}

/// A list of paths that may have changed.
#[derive(Clone, Debug, Default)]
pub struct ChangedPaths {
    /// In the order of [`order`], each once.
    paths: Vec<(u32, Box<[u8]>)>,
    /// Those of them that are folders to be looked at as a whole.
    whole: Vec<(u32, Box<[u8]>)>,
}

impl ChangedPaths {
    /// Number of different paths.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Whether the names in a folder have to be read: the list has the folder, or something that
    /// is directly in it.
    pub fn names(&self, source: u32, folder: &[u8]) -> bool {
        self.has(source, folder)
            || self.next_names(source, folder).any(|name| self.has(source, &join(folder, name)))
    }

    /// Whether the list has a folder, or something at any depth in it.
    pub fn leads_to(&self, source: u32, folder: &[u8]) -> bool {
        self.has(source, folder) || !self.below(source, folder).is_empty()
    }

    /// Whether everything in a folder may have changed, at any depth.
    pub fn is_whole(&self, source: u32, folder: &[u8]) -> bool {
        find(&self.whole, source, folder)
    }

    /// The names in a folder that are on the way to a path of the list, sorted by their bytes.
    pub fn next_names(&self, source: u32, folder: &[u8]) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.below(source, folder);
        let prefix = if folder.is_empty() { 0 } else { folder.len() + 1 };
        std::iter::from_fn(move || {
            let path = &rest.first()?.1;
            let name = path[prefix..].split(|byte| *byte == b'/').next()?;
            let end = prefix + name.len();
            let same = |(_, other): &(u32, Box<[u8]>)| {
                other.starts_with(&path[..end]) && matches!(other.get(end), None | Some(b'/'))
            };
            rest = &rest[rest.partition_point(same)..];
            Some(name)
        })
    }

    fn has(&self, source: u32, path: &[u8]) -> bool {
        find(&self.paths, source, path)
    }

    /// What lies at any depth in a folder.
    fn below(&self, source: u32, folder: &[u8]) -> &[(u32, Box<[u8]>)] {
        let start = self.paths.partition_point(|(number, path)| {
            number.cmp(&source).then_with(|| order(path, folder)).is_le()
        });
        let rest = &self.paths[start..];
        let is_below = |(number, path): &(u32, Box<[u8]>)| {
            *number == source
                && (folder.is_empty()
                    || path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/')))
        };
        &rest[..rest.partition_point(is_below)]
    }
}

fn find(paths: &[(u32, Box<[u8]>)], source: u32, path: &[u8]) -> bool {
    let place = paths
        .binary_search_by(|(number, known)| number.cmp(&source).then_with(|| order(known, path)));
    place.is_ok()
}

/// A folder's path before all that lies in it, and both before whatever else begins alike.
fn order(left: &[u8], right: &[u8]) -> Ordering {
    // No name has a NUL.
    let rank = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
    left.iter().map(rank).cmp(right.iter().map(rank))
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(paths: &[(u32, &str)]) -> ChangedPaths {
        let mut builder = ChangedPathsBuilder::default();
        for (source, path) in paths {
            builder.add(*source, path.as_bytes()).unwrap();
        }
        builder.finish()
    }

    #[test]
    fn a_folder_knows_what_is_in_it() {
        let paths = ["a.b/x", "a/b/c", "a", "a-", "a/b/d/e", "a/b/d", "z/y/x", "a/b"];
        let found = list(&paths.map(|path| (1, path)));
        let next = |folder: &str| -> Vec<String> {
            let names = found.next_names(1, folder.as_bytes());
            names.map(|name| String::from_utf8(name.to_vec()).unwrap()).collect()
        };
        assert_eq!(next(""), ["a", "a-", "a.b", "z"]);
        assert_eq!(next("a"), ["b"]);
        assert_eq!(next("a/b"), ["c", "d"]);
        assert_eq!(next("a/b/d"), ["e"]);
        assert!(next("b").is_empty() && next("a/b/c").is_empty());
        for (folder, names, leads) in [
            ("", true, true),
            ("a", true, true),
            ("a-", true, true),
            ("a.b", true, true),
            ("a.", false, false),
            ("z", false, true),
            ("z/y", true, true),
            ("z/y/x", true, true),
            ("z/x", false, false),
        ] {
            assert_eq!(found.names(1, folder.as_bytes()), names, "{folder}");
            assert_eq!(found.leads_to(1, folder.as_bytes()), leads, "{folder}");
            assert!(!found.leads_to(0, folder.as_bytes()) && !found.leads_to(2, folder.as_bytes()));
        }
    }

    #[test]
    fn each_path_counts_once_and_not_too_many() {
        let found = list(&[(0, "a"), (0, "a"), (1, "a"), (0, "")]);
        assert_eq!(found.len(), 3);
        assert!(found.names(0, b"") && !found.names(2, b""));
        let bytes = CHANGED_BYTES_MAX - 1;
        let mut builder = ChangedPathsBuilder { bytes, ..ChangedPathsBuilder::default() };
        builder.add(0, b"x").unwrap();
        assert_eq!(builder.add(0, b"x"), Err(TooManyPaths));
        assert_eq!(builder.add_whole(0, b"x"), Err(TooManyPaths));
    }

    #[test]
    fn a_whole_folder_is_in_the_list_too() {
        let mut builder = ChangedPathsBuilder::default();
        builder.add(0, b"a").unwrap();
        builder.add_whole(0, b"a/b").unwrap();
        builder.add_whole(1, b"").unwrap();
        let found = builder.finish();
        assert!(found.leads_to(0, b"a/b") && found.names(0, b"a/b") && found.names(1, b""));
        for (source, path, expected) in
            [(0, "a/b", true), (0, "a", false), (0, "a/b/c", false), (1, "", true), (0, "", false)]
        {
            assert_eq!(found.is_whole(source, path.as_bytes()), expected, "{source} {path}");
        }
    }
}
