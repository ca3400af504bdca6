//! Files that may be archives, in the folders that are searched for them.

use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use archive::chunk::{Coding, StreamFormat};
use base::escape::escape_path;
use catalogue::Stamp;

use super::LeftOutArchive;
use crate::failure::{Failure, with_causes};
use crate::sets::LOCK;

/// Folders inside of each other that are searched for archives.
const FOLDERS_DEEP_MAX: usize = 64;
/// Most files that are looked at.
const FILES_MAX: usize = 1_000_000;

/// A file that may be an archive.
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    /// When it was written: an index outside of a chain does not say when its run began.
    pub(super) time_seconds: i64,
    /// What shows that it has not changed; `None` of a device.
    pub(super) stamp: Option<Stamp>,
    /// Whether the user named it, and not a folder above it.
    pub(super) is_named: bool,
}

impl Candidate {
    /// All files of the named paths, the oldest first, so that the newest set is added last; and
    /// the folders below them that cannot be read.
    pub(super) fn all(from: &[PathBuf]) -> Result<(Vec<Candidate>, Vec<LeftOutArchive>), Failure> {
        let (mut found, mut left_out) = (Vec::new(), Vec::new());
        for path in from {
            let unreadable = |error: std::io::Error| {
                let why = with_causes(&error);
                Failure::of(format!("cannot read {}: {why}", path.display()), None)
            };
            // The catalogue is used from other folders, too.
            let path = std::path::absolute(path).map_err(unreadable)?;
            let status = path.metadata().map_err(unreadable)?;
            if status.is_dir() {
                Candidate::below(&path, FOLDERS_DEEP_MAX, &mut found, &mut left_out);
            } else if status.is_file() || status.file_type().is_block_device() {
                found.push(Candidate::of(path, &status, true));
            } else {
                let why = if device::tape::find(&path).is_some() {
                    "sets on tape come in by `takeup catalog media --read DEVICE`"
                } else {
                    "it is neither a file nor a folder"
                };
                left_out.push(LeftOutArchive { path: escape_path(&path), why: why.to_owned() });
            }
        }
        // Named, and in a named folder, too.
        found.sort_by(|a, b| (&a.path, !a.is_named).cmp(&(&b.path, !b.is_named)));
        found.dedup_by(|a, b| a.path == b.path);
        found.sort_by(|a, b| (a.time_seconds, &a.path).cmp(&(b.time_seconds, &b.path)));
        Ok((found, left_out))
    }

    fn of(path: PathBuf, status: &std::fs::Metadata, is_named: bool) -> Candidate {
        let stamp = status.is_file().then(|| Stamp::from(status));
        Candidate { path, time_seconds: status.mtime(), stamp, is_named }
    }

    /// How the archive is compressed, as `--compress` takes it, by its first bytes.
    pub(super) fn compression(&self) -> String {
        let mut prefix = Vec::new();
        let file = std::fs::File::open(&self.path);
        let read = file.map(|file| file.take(StreamFormat::PREFIX_BYTES as u64));
        let _ = read.and_then(|mut start| start.read_to_end(&mut prefix));
        let name = match StreamFormat::detect(&prefix) {
            StreamFormat::Compressed(Coding::Zstd) => "zstd",
            StreamFormat::Compressed(Coding::Gzip) => "gzip",
            StreamFormat::Plain | StreamFormat::Other(_) => "none",
        };
        name.to_owned()
    }

    /// Whether it has a name as sets have.
    pub(super) fn is_set(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        catalogue::is_named_as_set(&name.to_string_lossy())
    }

    /// Whether it is read as a whole where it has no index: a user means it, or its name is that of
    /// an archive. What a set leaves to earlier ones only its index says.
    pub(super) fn is_to_be_read(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        let is_incremental = self.is_set() && !name.to_string_lossy().contains("-full-");
        let is_archive = catalogue::is_named_as_archive(name.as_encoded_bytes());
        !is_incremental && (self.is_named || is_archive)
    }

    /// As one that should have an index.
    pub(super) fn without_index(&self) -> LeftOutArchive {
        let why = "its index is lost, damaged, or of a later version";
        let reads = "; `takeup catalog add FILE` reads the archive";
        let why = format!("{why}{}", if self.is_to_be_read() { reads } else { "" });
        LeftOutArchive { path: escape_path(&self.path), why }
    }

    /// The files in folders that are looked at again and again, and the folders that cannot be
    /// read. A folder that is not there has none. What a run is just writing has a hidden name.
    pub(super) fn in_places(places: &[PathBuf]) -> (Vec<Candidate>, Vec<LeftOutArchive>) {
        let (mut found, mut left_out) = (Vec::new(), Vec::new());
        for place in places.iter().filter(|place| place.is_dir()) {
            Candidate::below(place, FOLDERS_DEEP_MAX, &mut found, &mut left_out);
        }
        let is_hidden = |path: &Path| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
        };
        found.retain(|candidate| !is_hidden(&candidate.path));
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found.dedup_by(|a, b| a.path == b.path);
        (found, left_out)
    }

    /// The files in a folder and below it. Links are not followed.
    fn below(
        folder: &Path,
        levels: usize,
        found: &mut Vec<Candidate>,
        left_out: &mut Vec<LeftOutArchive>,
    ) {
        let mut leave_out = |error: std::io::Error| {
            let why = with_causes(&error);
            left_out.push(LeftOutArchive { path: escape_path(folder), why });
        };
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return leave_out(error),
        };
        let mut folders = Vec::new();
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))) {
                Ok(_) if found.len() >= FILES_MAX => {
                    let full = format!("more than {FILES_MAX} files: the others were passed over");
                    return leave_out(std::io::Error::other(full));
                }
                Ok((path, status)) if status.is_dir() => folders.push(path),
                Ok((path, _)) if is_lock(&path) => {}
                Ok((path, status)) if status.is_file() => {
                    found.push(Candidate::of(path, &status, false));
                }
                Ok(_) => {}
                // It was removed meanwhile.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => leave_out(error),
            }
        }
        for folder in folders {
            match levels.checked_sub(1) {
                Some(levels) => Candidate::below(&folder, levels, found, left_out),
                None => {
                    let why = format!("more than {FOLDERS_DEEP_MAX} folders inside of each other");
                    left_out.push(LeftOutArchive { path: escape_path(&folder), why });
                }
            }
        }
    }
}

/// Whether it is what each folder of sets has besides them.
fn is_lock(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == LOCK)
}
