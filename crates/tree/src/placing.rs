//! A new object that may still have to be renamed to its final name.

use std::sync::Arc;

use rustix::fs::CWD;
use rustix::fs::{
    AtFlags, FileType, RenameFlags, linkat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};

use crate::attributes::proc_path;
use crate::folder::{Folder, kind_of};
use crate::restore_error::RestoreError;

/// Where an object was made, and its final place. If it is dropped without [`Placed::put`], an
/// object under a temporary name is removed.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) folder: Arc<Folder>,
    name: Vec<u8>,
    temporary: Option<Temporary>,
}

#[derive(Debug)]
struct Temporary {
    name: Vec<u8>,
    over: Over,
}

/// What may exist under an object's final name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// Nothing: an existing object stays.
    Nothing,
    /// An existing object is replaced.
    Anything,
}

impl Placed {
    /// Made under its final name.
    pub(crate) fn at(folder: Arc<Folder>, name: &[u8]) -> Placed {
        Placed { folder, name: name.to_vec(), temporary: None }
    }

    /// Made under a temporary name.
    pub(crate) fn apart(
        folder: Arc<Folder>,
        name: &[u8],
        temporary: Vec<u8>,
        over: Over,
    ) -> Placed {
        let temporary = Some(Temporary { name: temporary, over });
        Placed { folder, name: name.to_vec(), temporary }
    }

    /// Its final name.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Gives it another name, if that is free.
    pub(crate) fn rename_to(mut self, name: &[u8]) -> Placed {
        self.name = name.to_vec();
        if let Some(temporary) = &mut self.temporary {
            temporary.over = Over::Nothing;
        }
        self
    }

    /// Calls `act` with the place where it is now.
    pub(crate) fn with_made<T>(
        &self,
        act: impl FnOnce(&OwnedFd, &[u8]) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match &self.temporary {
            None => act(&self.folder.descriptor, &self.name),
            Some(temporary) => self.folder.with_place(|place| act(place, &temporary.name))?,
        }
    }

    /// Renames it to its final name.
    pub(crate) fn put(mut self, path: &[u8]) -> Result<(), RestoreError> {
        let Some(Temporary { name: temporary, over }) = self.temporary.take() else {
            return Ok(());
        };
        let folder = &self.folder;
        let renamed = folder.with_place(|place| {
            let renamed = rename(place, &temporary, &folder.descriptor, &self.name, over);
            // rename(2) leaves two names of one file as they are, and after an error the old object
            // stays. In both cases the temporary name is removed.
            remove(place, &temporary);
            renamed
        });
        named(renamed.and_then(|renamed| renamed), path)
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            let _ = self.folder.with_place(|place| remove(place, &temporary.name));
        }
    }
}

/// Explains why an object did not get its name.
fn named(result: Result<(), Errno>, path: &[u8]) -> Result<(), RestoreError> {
    result.map_err(|error| match error {
        Errno::EXIST => RestoreError::Exists { path: path.to_vec() },
        Errno::ISDIR | Errno::NOTEMPTY => RestoreError::DirectoryInTheWay { path: path.to_vec() },
        error => RestoreError::Rename { path: path.to_vec(), source: error.into() },
    })
}

/// Removes a name, if possible.
pub(crate) fn remove(place: &OwnedFd, name: &[u8]) {
    if unlinkat(place, name, AtFlags::empty()) == Err(Errno::ISDIR) {
        let _ = unlinkat(place, name, AtFlags::REMOVEDIR);
    }
}

fn rename(
    from: &OwnedFd,
    temporary: &[u8],
    to: &OwnedFd,
    name: &[u8],
    over: Over,
) -> Result<(), Errno> {
    if over == Over::Anything {
        return renameat(from, temporary, to, name);
    }
    match renameat_with(from, temporary, to, name, RenameFlags::NOREPLACE) {
        // Some file systems cannot do this in one step.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            match statat(to, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => Err(Errno::EXIST),
                Err(Errno::NOENT) => renameat(from, temporary, to, name),
                Err(error) => Err(error),
            }
        }
        result => result,
    }
}

/// Gives a file without a name this one, if it is free.
pub(crate) fn link_file(file: &OwnedFd, to: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    match linkat(file, c"", to, name, AtFlags::EMPTY_PATH) {
        // Older kernels refuse this without CAP_DAC_READ_SEARCH.
        Err(Errno::NOENT | Errno::PERM | Errno::ACCESS | Errno::INVAL) => {
            let path = proc_path(file.as_fd());
            linkat(CWD, &*path, to, name, AtFlags::SYMLINK_FOLLOW)
        }
        result => result,
    }
}

/// Gives a file without a name this one, replacing an existing object.
pub(crate) fn link_file_over(
    file: &OwnedFd,
    folder: &Arc<Folder>,
    name: &[u8],
    path: &[u8],
) -> Result<(), RestoreError> {
    let made = folder.make_apart(|place, temporary| link_file(file, place, temporary));
    match made {
        Ok(((), temporary)) => {
            Placed::apart(Arc::clone(folder), name, temporary, Over::Anything).put(path)
        }
        Err(error) => named(Err(error), path),
    }
}

/// Gives a file without a name its name.
pub(crate) fn link_file_as(
    file: &OwnedFd,
    folder: &Folder,
    name: &[u8],
    path: &[u8],
) -> Result<(), RestoreError> {
    named(link_file(file, &folder.descriptor, name), path)
}

/// Removes an empty directory in the place of another object, because nothing else can be renamed
/// over a directory.
pub(crate) fn clear_directory(
    folder: &Folder,
    name: &[u8],
    path: &[u8],
) -> Result<Result<(), RestoreError>, Errno> {
    let directory = &folder.descriptor;
    let is_directory = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| kind_of(&stat) == FileType::Directory);
    if !is_directory {
        return Ok(Ok(()));
    }
    match unlinkat(directory, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(Ok(())),
        Err(Errno::NOTEMPTY | Errno::EXIST) => {
            Ok(Err(RestoreError::DirectoryInTheWay { path: path.to_vec() }))
        }
        Err(error) => Err(error),
    }
}
