//! An object that was made but may still have to be renamed to where it belongs.

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

/// Where an object was made, and where it is to be. Dropped without [`Placed::put`], an object
/// under a temporary name is taken away.
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

/// What may be under a name that an object is to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// Nothing: whatever else is there stays.
    Nothing,
    /// What is there goes.
    Anything,
}

impl Placed {
    /// Made where it is to be.
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

    /// Its name to be.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// It is to have another name, if that is free.
    pub(crate) fn rename_to(mut self, name: &[u8]) -> Placed {
        self.name = name.to_vec();
        if let Some(temporary) = &mut self.temporary {
            temporary.over = Over::Nothing;
        }
        self
    }

    /// Calls `act` with where it can be found now.
    pub(crate) fn with_made<T>(
        &self,
        act: impl FnOnce(&OwnedFd, &[u8]) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match &self.temporary {
            None => act(&self.folder.descriptor, &self.name),
            Some(temporary) => self.folder.with_place(|place| act(place, &temporary.name))?,
        }
    }

    /// Renames it to where it belongs.
    pub(crate) fn put(mut self, path: &[u8]) -> Result<(), RestoreError> {
        let Some(Temporary { name: temporary, over }) = self.temporary.take() else {
            return Ok(());
        };
        let folder = &self.folder;
        let renamed = folder.with_place(|place| {
            let renamed = rename(place, &temporary, &folder.descriptor, &self.name, over);
            // Two names of one file are left as they are by rename(2), and after an error the old
            // object stays: in both cases the temporary name goes.
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

/// Says why an object did not get its name.
fn named(result: Result<(), Errno>, path: &[u8]) -> Result<(), RestoreError> {
    result.map_err(|error| match error {
        Errno::EXIST => RestoreError::Exists { path: path.to_vec() },
        Errno::ISDIR | Errno::NOTEMPTY => RestoreError::DirectoryInTheWay { path: path.to_vec() },
        error => RestoreError::Rename { path: path.to_vec(), source: error.into() },
    })
}

/// Takes a name away, as far as that is possible.
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
        // Some file systems cannot do that in one step.
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

/// Gives a file that has no name this one, if it is free.
pub(crate) fn link_file(file: &OwnedFd, to: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    match linkat(file, c"", to, name, AtFlags::EMPTY_PATH) {
        // Without CAP_DAC_READ_SEARCH older kernels refuse that.
        Err(Errno::NOENT | Errno::PERM | Errno::ACCESS | Errno::INVAL) => {
            let path = proc_path(file.as_fd());
            linkat(CWD, &*path, to, name, AtFlags::SYMLINK_FOLLOW)
        }
        result => result,
    }
}

/// Gives a file that has no name this one, over what is there.
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

/// Gives a file that has no name its name.
pub(crate) fn link_file_as(
    file: &OwnedFd,
    folder: &Folder,
    name: &[u8],
    path: &[u8],
) -> Result<(), RestoreError> {
    named(link_file(file, &folder.descriptor, name), path)
}

/// Removes an empty directory where another object is to be: nothing can be renamed over one.
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
