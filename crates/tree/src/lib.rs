//! Everything that touches the file-system tree: the sorted walk with metadata for a backup, and
//! the safe creation of objects for a restore.
//!
//! Backup: [`Scan`] finds the objects in archive order, [`Capturer`] (one per worker thread) opens
//! and describes them as [`archive::member::Member`]s. Restore: a [`Destination`] and its
//! [`Worker`]s make objects from members, beneath one directory only. Verify: a [`LiveTree`]
//! reports the differences between an object and a member. Not here: reading file content, and the
//! bytes of tar.
//!
//! ```
//! use tree::{Item, Progress, Scan, ScanOptions};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::create_dir(folder.path().join("b"))?;
//! std::fs::write(folder.path().join("b/c"), "content")?;
//! std::fs::write(folder.path().join("a"), "")?;
//!
//! let mut scan = Scan::start(&[folder.path().to_owned()], ScanOptions::default())?;
//! let mut items = Vec::new();
//! while scan.next_batch(&mut items) == Progress::More {}
//! let name = |item: &Item| match item {
//!     Item::Entry(entry) => entry.name().to_string_lossy().into_owned(),
//!     Item::Folder(folder) => folder.entry.name().to_string_lossy().into_owned(),
//!     Item::Problem(problem) => panic!("{problem:?}"),
//! };
//! let names: Vec<String> = items.iter().map(name).collect();
//! // The source itself comes first, then what is in it, sorted.
//! assert_eq!(names[1..], ["a", "b", "c"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Map
//!
//! - `source`: an argument as typed.
//! - `source_part`: a part of it, where several walks share a tree.
//! - `scan`: the sorted walk of a backup.
//! - `file_systems`: which file systems a walk enters.
//! - `scan_problem`: directories that the walk could not read.
//! - `item`: what the walk finds.
//! - `entry_kind`: the kinds of objects.
//! - `directory`: one directory of the walk, as the readers see it.
//! - `listing`: its names, and how they are read.
//! - `changed_paths`: what others say has changed.
//! - `changes_from`: where such a list comes from.
//! - `look_at`: the state of one object below a source.
//! - `look_ahead`: directories that are listed before their turn.
//! - `exclude`: globs that exclude names.
//! - `capture`: an entry as a member.
//! - `attributes`: extended attributes and ACLs of an object.
//! - `status`: the state by which a later run sees a change.
//! - `sparse`: where a file has holes.
//! - `links`: files already archived under another name.
//! - `identity`: whether a name still stands for the same object.
//! - `lease`: waiting for another program's lease on a file.
//! - `accounts`: names of users and groups.
//! - `destination`: the directory of a restore, and the state that its workers share.
//! - `worker`: objects made from members.
//! - `folder`: which users can change the names in a directory.
//! - `resolve`: paths beneath the destination, without symbolic links.
//! - `restore_file`: content written under a temporary name.
//! - `placing`: renaming to the final name.
//! - `metadata`: owner, mode, times and attributes, in the order that keeps them.
//! - `object`: one object whose metadata is set.
//! - `deferred`: directories that get their metadata last.
//! - `synchronise`: waiting until everything is on the disk.
//! - `compare`: members against live files.
//! - `live_entries`: live files for paths of an archive.
//! - `error`: what can fail in a backup.
//! - `restore_error`: what can fail in a restore.

mod accounts;
mod attributes;
mod capture;
mod changed_paths;
mod changes_from;
mod compare;
mod deferred;
mod destination;
mod directory;
mod entry_kind;
mod error;
mod exclude;
mod file_systems;
mod folder;
mod identity;
mod item;
mod lease;
mod links;
mod listing;
mod live_entries;
mod look_ahead;
mod look_at;
mod metadata;
mod object;
mod placing;
mod resolve;
mod restore_error;
mod restore_file;
mod scan;
mod scan_problem;
mod source;
mod source_part;
mod sparse;
mod status;
mod synchronise;
mod worker;

pub use accounts::Accounts;
pub use capture::{Attributes, Capture, CaptureError, CaptureOptions, Captured, Capturer, Skip};
pub use changed_paths::{
    CHANGED_BYTES_MAX, CHANGED_PATHS_MAX, ChangedPaths, ChangedPathsBuilder, TooManyPaths,
};
pub use changes_from::{ChangesFrom, ZfsSnapshots};
pub use compare::{
    AttributeDifference, CompareOptions, CompareOwners, Comparison, Difference, LiveTree,
};
pub use destination::{Destination, DestinationOptions, Overwrite, Replaced};
pub use directory::Directory;
pub use entry_kind::EntryKind;
pub use error::ScanError;
pub use exclude::Excludes;
pub use identity::{FileChange, Generation, Identity, Version, recheck};
pub use item::{Entry, Extent, FolderContents, FolderEntry, Item};
pub use lease::LeaseWait;
pub use links::{HardLinks, Link, LinksFull};
pub use listing::Look;
pub use live_entries::LiveEntries;
pub use look_at::status_below;
pub use metadata::{MetadataPart, MetadataProblem, Modes, Owners, Privileges};
pub use resolve::{Refusal, ResolveMethod};
pub use restore_error::RestoreError;
pub use restore_file::RestoreFile;
pub use scan::{
    BATCH_ITEMS_MAX, FileSystems, LookAheadLimits, OPEN_LEVELS_MAX, PATH_BYTES_MAX, Progress, Scan,
    ScanOptions, WAIT_MAX,
};
pub use scan_problem::{ScanProblem, ScanProblemKind};
pub use source::{Stripped, archive_path, identity_of_path};
pub use source_part::SourcePart;
pub use sparse::{EXTENTS_MAX, SparseMap, sparse_map};
pub use status::Status;
pub use worker::{Created, PARENTS_MAX, Worker};
