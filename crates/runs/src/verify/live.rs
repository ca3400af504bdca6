//! The live tree: compares the content of its files, and finds files that are not in the archive.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use archive::member::{Extent, Member};
use flow::cancel::Cancel;
use flow::monitor::Harm;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use twox_hash::XxHash3_64;

use super::ahead::InWindow;
use super::error::VerifyError;
use super::findings::VerifyReport;
use super::workers::Workers;
use crate::read::placement::Placement;
use crate::warnings::Warnings;

/// Bytes of a read of a live file.
const READ_BYTES: usize = 256 << 10;

/// A live file whose archived content is passing.
pub(crate) struct LiveFile {
    file: OwnedFd,
    placement: Placement,
    /// Holes in the archive, if the file is sparse there.
    holes: Vec<Extent>,
    differs_at: Option<u64>,
    error: Option<io::Error>,
    /// The page cache holds it for this run alone.
    is_fetched: bool,
}

impl LiveFile {
    pub fn new(file: OwnedFd, member: &Member, window: Option<&InWindow>) -> LiveFile {
        LiveFile {
            file,
            placement: Placement::of(member),
            holes: holes_of(member),
            differs_at: None,
            error: None,
            is_fetched: window.is_some_and(|window| window.is_fetched),
        }
    }

    /// Compares the next bytes as the archive stores them.
    pub fn update(&mut self, bytes: &[u8], buffer: &mut Vec<u8>) {
        if self.differs_at.is_some() || self.error.is_some() {
            return;
        }
        buffer.resize(READ_BYTES, 0);
        let LiveFile { file, placement, differs_at, error, .. } = self;
        let _ = placement.place(bytes, |offset, archived| {
            match compare_at(file, offset, archived, buffer) {
                Ok(None) => Ok(()),
                Ok(at) => {
                    *differs_at = at;
                    Err(())
                }
                Err(failed) => {
                    *error = Some(failed);
                    Err(())
                }
            }
        });
    }

    /// The first byte that differs.
    pub fn finish(mut self, buffer: &mut Vec<u8>) -> io::Result<Option<u64>> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.differs_at.is_some() {
            return Ok(self.differs_at);
        }
        buffer.resize(READ_BYTES, 0);
        for hole in &self.holes {
            if let Some(at) = first_not_zero(&self.file, *hole, buffer)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

impl Drop for LiveFile {
    fn drop(&mut self) {
        if self.is_fetched {
            device::file::drop_cached(&self.file, 0, 0);
        }
    }
}

fn holes_of(member: &Member) -> Vec<Extent> {
    let Some(runs) = &member.sparse else { return Vec::new() };
    let mut holes = Vec::new();
    let mut at = 0;
    let end = Extent { offset_bytes: member.size_bytes, length_bytes: 0 };
    for run in runs.iter().chain([&end]) {
        if run.offset_bytes > at {
            holes.push(Extent { offset_bytes: at, length_bytes: run.offset_bytes - at });
        }
        at = at.max(run.offset_bytes + run.length_bytes);
    }
    holes
}

/// Where the file differs from `archived` at `offset`; the end of the file differs from any byte.
fn compare_at(
    file: &OwnedFd,
    offset: u64,
    archived: &[u8],
    buffer: &mut [u8],
) -> io::Result<Option<u64>> {
    let mut done = 0;
    while done < archived.len() {
        let wanted = (archived.len() - done).min(buffer.len());
        let at = offset + done as u64;
        let read = match base::interruptible::read_at(file, &mut buffer[..wanted], at) {
            Ok(0) => return Ok(Some(at)),
            Ok(read) => read,
            Err(error) => return Err(error.into()),
        };
        let (live, was) = (&buffer[..read], &archived[done..done + read]);
        if live != was {
            let same = live.iter().zip(was).take_while(|(live, was)| live == was).count();
            return Ok(Some(at + same as u64));
        }
        done += read;
    }
    Ok(None)
}

/// The first byte in a hole of the archive that is not zero in the file.
fn first_not_zero(file: &OwnedFd, hole: Extent, buffer: &mut [u8]) -> io::Result<Option<u64>> {
    let end = hole.offset_bytes + hole.length_bytes;
    let mut at = hole.offset_bytes;
    while at < end {
        // Skips holes of the file.
        at = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => return Ok(None),
            Err(_) => at,
        };
        if at >= end {
            break;
        }
        let wanted = (end - at).min(buffer.len() as u64) as usize;
        let read = match base::interruptible::read_at(file, &mut buffer[..wanted], at) {
            Ok(0) => return Ok(None),
            Ok(read) => read,
            Err(error) => return Err(error.into()),
        };
        if let Some(place) = buffer[..read].iter().position(|byte| *byte != 0) {
            return Ok(Some(at + place as u64));
        }
        at += read as u64;
    }
    Ok(None)
}

/// Looks through the directories of the archive for objects that the archive does not have.
pub(crate) fn find_extra(
    against: &Path,
    workers: &Workers<'_>,
    report: &mut VerifyReport,
    warnings: &Warnings<'_>,
    cancel: &Cancel,
) -> Result<(), VerifyError> {
    let Some(paths) = workers.paths() else { return Ok(()) };
    if paths.overflowed {
        warnings.note(b"", "too many members to look for extra files in the live tree");
        return Ok(());
    }
    for directory in &paths.directories {
        cancel.check()?;
        let live = against.join(std::ffi::OsStr::from_bytes(directory));
        // A directory that has become something else was reported before.
        if !live.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            continue;
        }
        let mut names: Vec<Vec<u8>> = match live.read_dir() {
            Ok(entries) => entries.flatten().map(|entry| entry.file_name().into_vec()).collect(),
            Err(error) => {
                warnings.warn(
                    Harm::Different,
                    directory,
                    format!("cannot look for extra files: {error}"),
                );
                continue;
            }
        };
        names.sort_unstable();
        for name in names {
            let mut path = directory.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(&name);
            if !paths.hashes.contains(&XxHash3_64::oneshot(&path)) {
                warnings.warn(Harm::Different, &path, "in the live tree, and not in the archive");
                report.extra.push(path);
            }
        }
    }
    Ok(())
}
