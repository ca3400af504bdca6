//! A file of runs on the disk: creating, continuing and appending.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{Experiment, Header, RecordError, RunRecord, header_line, read, run_line};

/// A file of runs that is being written.
#[derive(Debug)]
pub struct RunFile {
    file: File,
    path: PathBuf,
}

impl RunFile {
    /// Begins a file, which must not exist.
    pub fn create(path: &Path, header: &Header) -> Result<RunFile, RecordError> {
        // Not writable for others, whatever the umask: Takeup would refuse to continue such a file.
        let opened = OpenOptions::new().append(true).create_new(true).mode(0o644).open(path);
        let file = opened.map_err(|source| RecordError::File {
            what: "create",
            path: path.to_owned(),
            source,
        })?;
        let mut file = RunFile { file, path: path.to_owned() };
        file.append(&header_line(header))?;
        Ok(file)
    }

    /// Opens a file to continue, and reads it; `None` if there is no file.
    ///
    /// Takeup runs the plan in the file, and writes to it or deletes it, sometimes as root. So it
    /// trusts the file only if no other user can have made it: a regular file with one name, owned
    /// by this user, not writable for others, and not a link.
    pub fn begun(path: &Path) -> Result<Option<(RunFile, Experiment)>, RecordError> {
        let error = |source| RecordError::File { what: "append to", path: path.to_owned(), source };
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = base::interruptible::open(path, flags | OFlags::CLOEXEC, Mode::empty());
        let file = match opened {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(untrusted(path, "it is a symbolic link".to_owned())),
            Err(source) => return Err(error(source.into())),
        };
        let status = rustix::fs::fstat(&file).map_err(|source| error(source.into()))?;
        distrust(&status).map_or(Ok(()), |why| Err(untrusted(path, why)))?;
        let experiment = read(BufReader::new(&file), path)?;
        Ok(Some((RunFile { file, path: path.to_owned() }, experiment)))
    }

    /// Continues after the last complete line that was read.
    pub fn go_on(mut self, experiment: &Experiment) -> Result<RunFile, RecordError> {
        let cut = self
            .file
            .seek(SeekFrom::End(0))
            .and_then(|length| self.file.set_len(length - experiment.torn_bytes.min(length)));
        match cut {
            Ok(()) => Ok(self),
            Err(source) => Err(RecordError::File { what: "append to", path: self.path, source }),
        }
    }

    /// Removes a file without results.
    pub fn remove(self) -> Result<(), RecordError> {
        let removed = std::fs::remove_file(&self.path);
        removed.map_err(|source| RecordError::File { what: "remove", path: self.path, source })
    }

    /// Appends a run, and waits until it is on the disk.
    pub fn push(&mut self, run: &RunRecord) -> Result<(), RecordError> {
        self.append(&run_line(run))
    }

    fn append(&mut self, line: &[u8]) -> Result<(), RecordError> {
        let written = self.file.write_all(line).and_then(|()| self.file.sync_data());
        let path = &self.path;
        written.map_err(|source| RecordError::File { what: "write", path: path.clone(), source })
    }
}

fn untrusted(path: &Path, why: String) -> RecordError {
    RecordError::Untrusted { path: path.to_owned(), why }
}

/// What another user could have done to an open file.
fn distrust(status: &rustix::fs::Stat) -> Option<String> {
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        Some("it is not a regular file".to_owned())
    } else if status.st_uid != rustix::process::geteuid().as_raw() {
        Some(format!("it belongs to user {}", status.st_uid))
    } else if status.st_mode & 0o022 != 0 {
        Some("other users can write to it: run `chmod go-w`".to_owned())
    } else if status.st_nlink != 1 {
        Some("it has a second hard link".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::tests::header;
    use super::*;

    #[test]
    fn a_file_that_others_may_have_made_is_not_gone_on_with() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.ndjson");
        assert!(RunFile::begun(&path).unwrap().is_none());
        RunFile::create(&path, &header()).unwrap();
        let check = |path: &Path, expected: &str| {
            let error = RunFile::begun(path).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        let mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        assert!(RunFile::begun(&path).unwrap().is_some());
        for open in [0o666, 0o622, 0o664, 0o602] {
            mode(open);
            check(&path, "other users can write to it");
        }
        mode(0o644);
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        check(&link, "it is a symbolic link");
        std::fs::remove_file(&link).unwrap();
        std::fs::hard_link(&path, &link).unwrap();
        check(&path, "it has a second hard link");
        std::fs::remove_file(&link).unwrap();
        check(directory.path(), "append to");
        testkit::require!(Root);
        std::os::unix::fs::chown(&path, Some(54_321), None).unwrap();
        check(&path, "it belongs to user 54321");
    }
}
