//! The partial files of this process, to remove them at an end without destructors.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use super::{is_at, unlink};

/// A file that has no final name yet.
#[derive(Debug)]
struct Unfinished {
    file: Arc<OwnedFd>,
    directory: Arc<OwnedFd>,
    partial: OsString,
}

/// Most partial files at once: an archive, its record, a page. A further one would merely not be
/// removed.
const MAX: usize = 8;
static ALL: Mutex<[Option<Unfinished>; MAX]> = Mutex::new([const { None }; MAX]);

/// Remembers one.
pub(super) fn add(file: &Arc<OwnedFd>, directory: &Arc<OwnedFd>, partial: &OsString) {
    let (file, directory, partial) = (file.clone(), directory.clone(), partial.clone());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(free) = all.iter_mut().find(|it| it.is_none()) {
        *free = Some(Unfinished { file, directory, partial });
    }
}

/// Removes this file from the list.
pub(super) fn remove(file: &Arc<OwnedFd>) {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |it: &Option<Unfinished>| it.as_ref().is_some_and(|it| Arc::ptr_eq(&it.file, file));
    let found = all.iter_mut().find(|it| is_it(it)).and_then(Option::take);
    drop(all);
    drop(found);
}

/// Removes all partial files of this process, which is about to end. Needs no memory (names have at
/// most 255 bytes, and are passed from the stack) and waits for no other thread.
pub fn abandon() {
    let Ok(all) = ALL.try_lock() else { return };
    for it in all.iter().flatten() {
        if is_at(&it.file, &it.directory, &it.partial) {
            let _ = unlink(&it.directory, &it.partial);
        }
    }
}
