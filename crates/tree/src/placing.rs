//! An object that was made but may still have to be renamed to where it belongs.

use std::sync::Arc;

use rustix::fs::{AtFlags, renameat, unlinkat};
use rustix::io::Errno;

use crate::destination::Parent;
use crate::restore_error::RestoreError;

/// Where an object was made, and where it is to be. Dropped without [`Placed::put`], an object
/// under a temporary name is taken away.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) parent: Arc<Parent>,
    name: Vec<u8>,
    temporary: Option<Vec<u8>>,
}

/// Makes an object of a given name in a directory.
pub(crate) type Make<'a, T> = dyn Fn(&Parent, &[u8]) -> Result<T, Errno> + 'a;

/// Temporary names that are tried.
const TRIES_MAX: usize = 100;

impl Placed {
    /// Made where it is to be.
    pub(crate) fn at(parent: Arc<Parent>, name: &[u8]) -> Placed {
        Placed { parent, name: name.to_vec(), temporary: None }
    }

    /// The name under which it can be found now.
    pub(crate) fn made_name(&self) -> &[u8] {
        self.temporary.as_deref().unwrap_or(&self.name)
    }

    /// Renames it to where it belongs, over what is there.
    pub(crate) fn put(mut self, path: &[u8]) -> Result<(), RestoreError> {
        let Some(temporary) = self.temporary.take() else { return Ok(()) };
        let directory = &self.parent.descriptor;
        let renamed = renameat(directory, &temporary[..], directory, &self.name[..]);
        // Two names of one file are left as they are by rename(2), and after an error the old
        // object stays: in both cases the temporary name goes.
        let _ = unlinkat(directory, &temporary[..], AtFlags::empty());
        renamed.map_err(|error| RestoreError::Rename { path: path.to_vec(), source: error.into() })
    }

    /// Takes away what was made.
    pub(crate) fn abandon(&mut self) {
        let name = self.temporary.take().unwrap_or_else(|| self.name.clone());
        let _ = unlinkat(&self.parent.descriptor, &name[..], AtFlags::empty());
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if self.temporary.is_some() {
            self.abandon();
        }
    }
}

/// Makes an object under a temporary name in the directory where it is to replace another one.
pub(crate) fn make_beside<T>(
    parent: &Arc<Parent>,
    name: &[u8],
    next_number: impl Fn() -> u64,
    make: &Make<'_, T>,
) -> Result<(T, Placed), Errno> {
    for _ in 0..TRIES_MAX {
        let temporary = format!(".takeup-{}-{}", std::process::id(), next_number()).into_bytes();
        match make(parent, &temporary) {
            Ok(made) => {
                let placed = Placed {
                    parent: Arc::clone(parent),
                    name: name.to_vec(),
                    temporary: Some(temporary),
                };
                return Ok((made, placed));
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}
