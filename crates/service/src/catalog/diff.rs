//! What one set of a folder has and another has not.
//!
//! The entries of both come in the same order, so they are gone through in step, and memory does
//! not grow with the number of files.

use std::cmp::Ordering;
use std::path::PathBuf;

use archive::index::{About, EntryState, ObjectKind, TreeEntry, walk_order};
use base::escape::escape;
use catalogue::FolderSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Answer;
use crate::failure::Failure;
use crate::restore::RestoredSetAnswer;
use crate::sets::{self, SetSelection};
use crate::tape_source::SetWanted;

/// Which sets are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogDiffRequest {
    /// A folder of sets.
    pub from: PathBuf,
    pub before: SetWanted,
    /// `None`: the newest.
    #[serde(default)]
    pub after: Option<SetWanted>,
    /// The job, where the folder has sets of several.
    #[serde(default)]
    pub job: Option<String>,
    /// Most objects that are listed; all are counted.
    #[serde(default = "super::most_paths")]
    pub most: usize,
}

/// What differs between two sets.
#[derive(Clone, Debug)]
pub struct CatalogDiff {
    pub before: About,
    pub after: About,
    pub added: Differing,
    pub removed: Differing,
    /// The bytes are those of after.
    pub changed: Differing,
    /// In the order of the archives.
    pub objects: Vec<DifferingObject>,
}

/// Objects of one kind of difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Differing {
    pub objects: u64,
    /// Of files.
    pub bytes: u64,
}

/// How an object differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferingKind {
    Added,
    Removed,
    Changed,
}

/// An object that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferingObject {
    pub kind: DifferingKind,
    pub path: Vec<u8>,
    pub is_folder: bool,
    pub bytes: u64,
    /// What has changed: `kind`, `size`, `mtime`, `owner`, `mode`, or only `inode`: attributes,
    /// links, or a content whose time was set back.
    pub what: Vec<&'static str>,
}

/// What differs between two sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogDiffAnswer {
    pub before: RestoredSetAnswer,
    pub after: RestoredSetAnswer,
    pub added: Differing,
    pub removed: Differing,
    /// The bytes are those of after.
    pub changed: Differing,
    pub objects: Vec<DifferingObjectAnswer>,
}

/// An object that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DifferingObjectAnswer {
    /// `added`, `removed` or `changed`.
    pub kind: String,
    /// As the archives have it, escaped.
    pub path: String,
    pub bytes: u64,
    /// What has changed: `kind`, `size`, `mtime`, `owner`, `mode`, or only `inode`: attributes,
    /// links, or a content whose time was set back.
    pub what: Vec<String>,
}

impl Answer for CatalogDiffAnswer {
    const COMMAND: &'static str = "catalog diff";
}

impl DifferingKind {
    fn name(self) -> &'static str {
        match self {
            DifferingKind::Added => "added",
            DifferingKind::Removed => "removed",
            DifferingKind::Changed => "changed",
        }
    }
}

impl CatalogDiff {
    /// As an answer.
    pub fn answer(&self) -> CatalogDiffAnswer {
        let object = |it: &DifferingObject| DifferingObjectAnswer {
            kind: it.kind.name().to_owned(),
            path: escape(&it.path),
            bytes: it.bytes,
            what: it.what.iter().map(|what| (*what).to_owned()).collect(),
        };
        CatalogDiffAnswer {
            before: RestoredSetAnswer::from(&self.before),
            after: RestoredSetAnswer::from(&self.after),
            added: self.added,
            removed: self.removed,
            changed: self.changed,
            objects: self.objects.iter().map(object).collect(),
        }
    }

    fn take(
        &mut self,
        kind: DifferingKind,
        entry: &TreeEntry,
        what: Vec<&'static str>,
        most: usize,
    ) {
        let counted = match kind {
            DifferingKind::Added => &mut self.added,
            DifferingKind::Removed => &mut self.removed,
            DifferingKind::Changed => &mut self.changed,
        };
        counted.objects += 1;
        counted.bytes += entry.size_bytes;
        if self.objects.len() < most {
            let is_folder = entry.kind == ObjectKind::Directory;
            let (path, bytes) = (entry.path.clone(), entry.size_bytes);
            self.objects.push(DifferingObject { kind, path, is_folder, bytes, what });
        }
    }
}

/// Compares two sets of a folder, by what their indexes say.
///
/// # Errors
/// When the folder has no such sets, they are of other sources, or an index cannot be read.
pub fn diff(request: &CatalogDiffRequest) -> Result<CatalogDiff, Failure> {
    let selection = SetSelection { at: None, job: request.job.clone() };
    let known = |wanted: Option<&SetWanted>| -> Result<FolderSet, Failure> {
        let mut chain = sets::chain(&request.from, wanted, &selection)?.sets;
        chain.pop().ok_or_else(|| Failure::of("there is no such set", None))
    };
    let (before, after) = (known(Some(&request.before))?, known(request.after.as_ref())?);
    let paths = |set: &FolderSet| -> Vec<Vec<u8>> {
        set.about.sources.iter().map(|source| source.archive_path.clone()).collect()
    };
    if paths(&before) != paths(&after) {
        let message = format!("{} and {} have other sources", before.name(), after.name());
        return Err(Failure::of(message, Some("compare sets of the same sources")));
    }
    let mut found = CatalogDiff {
        before: before.about.clone(),
        after: after.about.clone(),
        added: Differing::default(),
        removed: Differing::default(),
        changed: Differing::default(),
        objects: Vec::new(),
    };
    in_step(&before, &after, &mut found, request.most)?;
    Ok(found)
}

fn in_step(
    before: &FolderSet,
    after: &FolderSet,
    found: &mut CatalogDiff,
    most: usize,
) -> Result<(), Failure> {
    let (mut left, mut right) = (sets::entries(before)?, sets::entries(after)?);
    let (mut old, mut new) = (left.next().transpose()?, right.next().transpose()?);
    loop {
        let order = match (&old, &new) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old
                .source
                .cmp(&new.source)
                .then_with(|| walk_order((&old.path, old.kind), (&new.path, new.kind))),
        };
        match (order, &old, &new) {
            (Ordering::Less, Some(entry), _) => {
                found.take(DifferingKind::Removed, entry, Vec::new(), most);
            }
            (Ordering::Greater, _, Some(entry)) => {
                found.take(DifferingKind::Added, entry, Vec::new(), most);
            }
            (Ordering::Equal, Some(old), Some(new)) => {
                let what = differences(old, new, (&before.about, &after.about));
                if !what.is_empty() {
                    found.take(DifferingKind::Changed, new, what, most);
                }
            }
            _ => {}
        }
        if order != Ordering::Greater {
            old = left.next().transpose()?;
        }
        if order != Ordering::Less {
            new = right.next().transpose()?;
        }
    }
}

/// What differs of an object. A folder's time follows what is in it, and says nothing more.
fn differences(
    old: &TreeEntry,
    new: &TreeEntry,
    (before, after): (&About, &About),
) -> Vec<&'static str> {
    let is_folder = new.kind == ObjectKind::Directory;
    let mut what = Vec::new();
    if old.kind != new.kind {
        what.push("kind");
    }
    if old.size_bytes != new.size_bytes {
        what.push("size");
    }
    if !is_folder && old.modified != new.modified {
        what.push("mtime");
    }
    if (old.uid, old.gid) != (new.uid, new.gid) {
        what.push("owner");
    }
    if old.mode != new.mode {
        what.push("mode");
    }
    // Stored again with the same size and times, for the time of its inode alone.
    let place = |entry: &TreeEntry, about: &About| {
        about.chain.get(entry.place as usize).map(|link| link.set)
    };
    let is_stored_again =
        new.state != EntryState::Unlisted && place(old, before) != place(new, after);
    if what.is_empty() && !is_folder && is_stored_again && old.changed != new.changed {
        what.push("inode");
    }
    what
}
