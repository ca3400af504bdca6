//! Directories of which only what may have changed is looked at.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, statat};

use super::filter::Filter;
use super::{ListRules, Listed, ListingJob, Names};
use crate::directory::Directory;
use crate::entry_kind::{EntryKind, kind_of};
use crate::item::Extent;
use crate::status::Status;

impl Names {
    /// Positions of the subdirectories that are to be opened.
    pub(super) fn subdirectories(&self, rules: &ListRules) -> Vec<u32> {
        let all = (0..self.len()).filter(|&index| self.kind(index) == EntryKind::Directory);
        let Some(changed) = rules.changed.as_deref().filter(|_| self.is_selective(rules)) else {
            return all.collect();
        };
        let mut path = self.path_in_source();
        let own_bytes = path.len();
        let mut is_on_the_way = |index: &u32| {
            path.truncate(own_bytes);
            if own_bytes > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(self.name(*index).to_bytes());
            changed.leads_to(self.source, &path)
        };
        all.filter(|index| is_on_the_way(index)).collect()
    }

    /// Whether only some of its directories are opened.
    pub(crate) fn is_selective(&self, rules: &ListRules) -> bool {
        rules.changed.is_some() && self.extent == Extent::Names
    }

    /// The path of the directory below its source; empty for the source itself.
    pub(super) fn path_in_source(&self) -> Vec<u8> {
        let mut path = Vec::new();
        self.append_path(&mut path);
        path.drain(..self.source_path_bytes.min(path.len()));
        path
    }

    /// Takes the names that are on the way to a changed path in the place of all names. `false` if
    /// one of them is no directory any more: then what is there has to be read.
    pub(super) fn take_on_the_way(&mut self, descriptor: &OwnedFd, rules: &ListRules) -> bool {
        let Some(changed) = &rules.changed else { return false };
        let path = self.path_in_source();
        let mut filter = Filter::new(rules, self);
        for name in changed.next_names(self.source, &path) {
            let Ok(name) = CString::new(name) else { return false };
            let stat = statat(descriptor, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW);
            let Some(stat) = stat.ok().filter(|it| kind_of(it) == EntryKind::Directory) else {
                self.arena.clear();
                return false;
            };
            if !filter.excludes(name.to_bytes(), EntryKind::Directory) {
                self.append(&name, EntryKind::Directory, stat.st_ino);
            }
        }
        self.sort();
        true
    }
}

impl ListingJob {
    /// Whether the directory is only passed on the way to what has changed.
    pub(super) fn is_only_on_the_way(&self, names: &Names, rules: &ListRules) -> bool {
        let changed = rules.changed.as_deref().filter(|_| names.is_selective(rules));
        self.wanted.is_none()
            && changed.is_some_and(|it| !it.names(names.source, &names.path_in_source()))
    }
}

impl Listed {
    /// A directory with the names on the way only.
    pub(super) fn on_the_way(directory: Arc<Directory>, status: Option<Status>) -> Listed {
        let subdirectories = (0..directory.names().len()).collect();
        let (directory, is_on_the_way) = (Some(directory), true);
        Listed { directory, subdirectories, status, is_on_the_way, ..Listed::default() }
    }
}
