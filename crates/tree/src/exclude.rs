//! Globs that exclude names from a backup.
//!
//! A glob without a slash matches the name of any object at any depth (`*.o`, `.cache`). A glob
//! with a slash matches the path from the source (`/tmp`, `*/build`); there `*` and `?` stop at a
//! slash and `**` does not. If the source was given as an absolute path, a glob that starts with a
//! slash also matches the full path, so that `--exclude /srv/tmp` works for the source `/srv` as
//! well as for `/`. A slash at the end restricts the glob to directories. An excluded directory is
//! excluded with everything in it. A source itself is never excluded, because the user named it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use globset::{Candidate, Glob, GlobBuilder, GlobSet};

use crate::ScanError;

/// Compiled exclude globs.
#[derive(Clone, Debug, Default)]
pub struct Excludes {
    any: Globs,
    directories: Globs,
    typed: Arc<[Typed]>,
}

/// A glob as typed, and whether it has excluded anything.
#[derive(Debug)]
struct Typed {
    glob: String,
    used: AtomicBool,
}

#[derive(Clone, Debug, Default)]
struct Globs {
    names: Numbered,
    paths: Numbered,
    absolute: Numbered,
}

/// A set of globs, each with its index in the list as typed.
#[derive(Clone, Debug, Default)]
struct Numbered {
    set: GlobSet,
    numbers: Vec<usize>,
}

impl Excludes {
    /// Compiles globs as the user typed them.
    ///
    /// # Errors
    /// [`ScanError::Exclude`] with the first invalid glob.
    pub fn new<S: AsRef<str>>(globs: &[S]) -> Result<Excludes, ScanError> {
        let mut any = Builders::default();
        let mut directories = Builders::default();
        for (number, glob) in globs.iter().enumerate() {
            let glob = glob.as_ref();
            match glob.strip_suffix('/') {
                Some(stem) => directories.add(number, glob, stem)?,
                None => any.add(number, glob, glob)?,
            }
        }
        let typed = |glob: &S| Typed { glob: glob.as_ref().into(), used: AtomicBool::new(false) };
        let typed = globs.iter().map(typed).collect();
        Ok(Excludes { any: any.build()?, directories: directories.build()?, typed })
    }

    /// The globs, as typed, that have excluded nothing so far, in this or any clone.
    pub fn unused(&self) -> impl Iterator<Item = &str> {
        let unused = self.typed.iter().filter(|typed| !typed.used.load(Ordering::Relaxed));
        unused.map(|typed| &*typed.glob)
    }

    /// The globs, as typed, that have excluded something so far.
    pub fn used(&self) -> impl Iterator<Item = &str> {
        let used = self.typed.iter().filter(|typed| typed.used.load(Ordering::Relaxed));
        used.map(|typed| &*typed.glob)
    }

    /// Nothing is excluded.
    pub fn is_empty(&self) -> bool {
        self.any.is_empty() && self.directories.is_empty()
    }

    /// Whether any glob has a slash, so that paths must be built.
    pub(crate) fn needs_paths(&self) -> bool {
        self.any.needs_paths() || self.directories.needs_paths()
    }

    /// Whether an object is excluded. `path` is its path from the source, `absolute` its full path
    /// if the source was absolute. Both are used only if [`Self::needs_paths`].
    pub(crate) fn matches(&self, object: &Candidacy<'_>) -> bool {
        self.any.matches(object, &self.typed)
            || (object.is_directory && self.directories.matches(object, &self.typed))
    }
}

/// An object as the globs see it.
pub(crate) struct Candidacy<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) path: &'a [u8],
    pub(crate) absolute: Option<&'a [u8]>,
    pub(crate) is_directory: bool,
}

impl Globs {
    fn is_empty(&self) -> bool {
        self.names.set.is_empty() && !self.needs_paths()
    }

    fn needs_paths(&self) -> bool {
        !self.paths.set.is_empty() || !self.absolute.set.is_empty()
    }

    fn matches(&self, object: &Candidacy<'_>, typed: &[Typed]) -> bool {
        self.names.hits(object.name, typed)
            || self.paths.hits(object.path, typed)
            || object.absolute.is_some_and(|path| self.absolute.hits(path, typed))
    }
}

impl Numbered {
    /// Whether any glob matches. All that match are marked as used.
    fn hits(&self, bytes: &[u8], typed: &[Typed]) -> bool {
        if self.set.is_empty() {
            return false;
        }
        let candidate = Candidate::from_bytes(bytes);
        let hit = self.set.is_match_candidate(&candidate);
        if hit {
            for index in self.set.matches_candidate(&candidate) {
                typed[self.numbers[index]].used.store(true, Ordering::Relaxed);
            }
        }
        hit
    }
}

#[derive(Default)]
struct Builders {
    names: Vec<(usize, Glob)>,
    paths: Vec<(usize, Glob)>,
    absolute: Vec<(usize, Glob)>,
}

impl Builders {
    fn add(&mut self, number: usize, typed: &str, stem: &str) -> Result<(), ScanError> {
        let compile = |glob: &str| {
            GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build().map_err(
                |error| ScanError::Exclude { glob: typed.into(), reason: error.kind().to_string() },
            )
        };
        match stem.strip_prefix('/') {
            Some(anchored) => {
                self.paths.push((number, compile(anchored)?));
                self.absolute.push((number, compile(stem)?));
            }
            None if stem.contains('/') => {
                self.paths.push((number, compile(stem)?));
            }
            None => {
                self.names.push((number, compile(stem)?));
            }
        }
        Ok(())
    }

    fn build(self) -> Result<Globs, ScanError> {
        let build = |globs: Vec<(usize, Glob)>| {
            let (numbers, globs): (Vec<_>, Vec<_>) = globs.into_iter().unzip();
            let set = GlobSet::new(globs).map_err(|error| ScanError::Exclude {
                glob: error.glob().unwrap_or_default().into(),
                reason: error.kind().to_string(),
            })?;
            Ok(Numbered { set, numbers })
        };
        Ok(Globs {
            names: build(self.names)?,
            paths: build(self.paths)?,
            absolute: build(self.absolute)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(glob: &str, path: &str, is_directory: bool, expected: bool) {
        let excludes = Excludes::new(&[glob]).unwrap();
        let absolute = format!("/srv/{path}");
        let object = Candidacy {
            name: path.rsplit('/').next().unwrap().as_bytes(),
            path: path.as_bytes(),
            absolute: Some(absolute.as_bytes()),
            is_directory,
        };
        assert_eq!(excludes.matches(&object), expected, "{glob} against {path}");
    }

    #[test]
    fn names_and_paths() {
        check("*.o", "a/b/c.o", false, true);
        check("*.o", "a/b/c.oo", false, false);
        check("build", "a/build", true, true);
        check("build/", "a/build", true, true);
        check("build/", "a/build", false, false);
        check("a/*", "a/b", false, true);
        check("a/*", "a/b/c", false, false);
        check("a/**", "a/b/c", false, true);
        check("a/*", "x/a/b", false, false);
        check("/tmp", "tmp", true, true);
        check("/tmp", "a/tmp", true, false);
        check("/srv/tmp", "tmp", true, true);
        check("/srv/tmp", "srv/tmp", true, true);
        check("{x,y}/z", "y/z", false, true);
    }

    #[test]
    fn globs_that_match_nothing_are_told() {
        let excludes = Excludes::new(&["*.o", "build/", "/srv/x", "b*", "*.o"]).unwrap();
        let matches = |name: &str, is_directory| {
            let absolute = format!("/srv/{name}");
            let (name, path) = (name.as_bytes(), name.as_bytes());
            let absolute = Some(absolute.as_bytes());
            excludes.clone().matches(&Candidacy { name, path, absolute, is_directory })
        };
        assert!(matches("a.o", false) && matches("build", false));
        assert_eq!(excludes.unused().collect::<Vec<_>>(), ["build/", "/srv/x"]);
        assert!(matches("x", false));
        assert_eq!(excludes.unused().collect::<Vec<_>>(), ["build/"]);
    }

    #[test]
    fn a_bad_glob_is_named() {
        let error = Excludes::new(&["fine", "a[", "x"]).unwrap_err();
        assert!(error.to_string().contains("a["), "{error}");
    }
}
