//! Which names are left out of a backup.
//!
//! A glob without a slash matches the name of any object at any depth (`*.o`, `.cache`). A glob
//! with a slash matches the path from the source (`/tmp`, `*/build`); there `*` and `?` stop at a
//! slash and `**` does not. When the source was given as an absolute path, a glob that starts with
//! a slash also matches the full path, so that `--exclude /srv/tmp` works for the source `/srv` as
//! well as for `/`. A slash at the end keeps the glob to directories. What is left out is left out
//! with everything in it. A source itself is never left out: it was asked for by name.

use globset::{Candidate, Glob, GlobBuilder, GlobSet};

use crate::ScanError;

/// Compiled exclude globs.
#[derive(Clone, Debug, Default)]
pub struct Excludes {
    any: Globs,
    directories: Globs,
}

#[derive(Clone, Debug, Default)]
struct Globs {
    names: GlobSet,
    paths: GlobSet,
    absolute: GlobSet,
}

impl Excludes {
    /// Compiles globs as the user typed them.
    ///
    /// # Errors
    /// [`ScanError::Exclude`] with the first glob that is not one.
    pub fn new<S: AsRef<str>>(globs: &[S]) -> Result<Excludes, ScanError> {
        let mut any = Builders::default();
        let mut directories = Builders::default();
        for glob in globs {
            let glob = glob.as_ref();
            match glob.strip_suffix('/') {
                Some(stem) => directories.add(glob, stem)?,
                None => any.add(glob, glob)?,
            }
        }
        Ok(Excludes { any: any.build()?, directories: directories.build()? })
    }

    /// Nothing is excluded.
    pub fn is_empty(&self) -> bool {
        self.any.is_empty() && self.directories.is_empty()
    }

    /// Some glob has a slash, so that paths must be made.
    pub(crate) fn needs_paths(&self) -> bool {
        self.any.needs_paths() || self.directories.needs_paths()
    }

    /// Whether an object is left out. `path` is its path from the source, `absolute` its full path
    /// when the source was absolute; both are looked at only when [`Self::needs_paths`].
    pub(crate) fn matches(&self, object: &Candidacy<'_>) -> bool {
        self.any.matches(object) || (object.is_directory && self.directories.matches(object))
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
        self.names.is_empty() && !self.needs_paths()
    }

    fn needs_paths(&self) -> bool {
        !self.paths.is_empty() || !self.absolute.is_empty()
    }

    fn matches(&self, object: &Candidacy<'_>) -> bool {
        let hits = |set: &GlobSet, bytes: &[u8]| {
            !set.is_empty() && set.is_match_candidate(&Candidate::from_bytes(bytes))
        };
        hits(&self.names, object.name)
            || hits(&self.paths, object.path)
            || object.absolute.is_some_and(|path| hits(&self.absolute, path))
    }
}

#[derive(Default)]
struct Builders {
    names: Vec<Glob>,
    paths: Vec<Glob>,
    absolute: Vec<Glob>,
}

impl Builders {
    fn add(&mut self, typed: &str, stem: &str) -> Result<(), ScanError> {
        let compile = |glob: &str| {
            GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build().map_err(
                |error| ScanError::Exclude { glob: typed.into(), reason: error.kind().to_string() },
            )
        };
        match stem.strip_prefix('/') {
            Some(anchored) => {
                self.paths.push(compile(anchored)?);
                self.absolute.push(compile(stem)?);
            }
            None if stem.contains('/') => {
                self.paths.push(compile(stem)?);
            }
            None => {
                self.names.push(compile(stem)?);
            }
        }
        Ok(())
    }

    fn build(self) -> Result<Globs, ScanError> {
        let build = |globs: Vec<Glob>| {
            GlobSet::new(globs).map_err(|error| ScanError::Exclude {
                glob: error.glob().unwrap_or_default().into(),
                reason: error.kind().to_string(),
            })
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
    fn a_bad_glob_is_named() {
        let error = Excludes::new(&["fine", "a[", "x"]).unwrap_err();
        assert!(error.to_string().contains("a["), "{error}");
    }
}
