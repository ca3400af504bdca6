//! Opens files, block devices, pipes and tape drives for a backup.
//!
//! [`target`] opens what a backup is written to and closes it so that a crash never leaves a file
//! that looks complete. [`source`] opens what an archive is read from. [`mod@file`] reports how
//! direct I/O must be aligned, and how much of a file the page cache holds.
//!
//! Not here: moving the bytes, which is `flow`'s.
//!
//! A target has no name before it is complete:
//!
//! ```
//! use std::io::Write as _;
//!
//! use device::target::{Existing, FileMode, Target};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("set.tar");
//! let target = Target::open(path.as_os_str(), Existing::Keep, FileMode::default())?;
//! std::fs::File::from(target.file.try_clone()?).write_all(b"all of it")?;
//! assert!(!path.exists());
//! target.complete()?;
//! assert_eq!(std::fs::read(&path)?, b"all of it");
//!
//! // An existing file stays, unless the caller allows replacing it.
//! assert!(Target::open(path.as_os_str(), Existing::Keep, FileMode::default()).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Map
//!
//! - [`target`]: what a backup is written to, from opening to its final name.
//! - [`source`]: what an archive is read from.
//! - [`file`](mod@file): alignment of direct I/O, and what the page cache holds.
//! - [`mod@extents`]: where the content of a file lies on its disk.
//! - [`pipe`]: the size of a pipe.
//! - [`tape`]: a drive and its medium: calls, positions, errors, queries.
//! - [`btrfs`]: what has changed in a subvolume since a transaction, and where its data lie.

pub mod btrfs;
pub mod extents;
pub mod file;
pub mod pipe;
pub mod source;
pub mod tape;
pub mod target;
