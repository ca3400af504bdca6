//! The folders whose sets a catalogue is to have: a text beside it, one folder a line.
//!
//! A backup adds its folder and nothing else, so that it does not become slower. The next question
//! to the catalogue looks at these folders. The text only grows; `rebuild` writes it anew. Bytes of
//! a path that would break a line, and `%`, are written as `%` and two hexadecimal digits.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

/// Most folders of a list. With more, those that are not there now make room.
pub const PLACES_MAX: usize = 1000;
/// Longest list that is read.
const LIST_BYTES_MAX: u64 = 16 << 20;

/// Why the list cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} the list of folders {}", path.display())]
pub struct PlacesError {
    what: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// The list beside a catalogue.
#[derive(Clone, Debug)]
pub struct Places {
    path: PathBuf,
}

impl Places {
    /// The list of the catalogue at this path.
    pub fn of(catalogue: &Path) -> Places {
        let mut path = catalogue.as_os_str().to_owned();
        path.push(".places");
        Places { path: path.into() }
    }

    /// Adds a folder, unless the list has it.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn note(&self, folder: &Path) -> Result<(), PlacesError> {
        let failed = |source| self.failed("write to", source);
        let folder = std::path::absolute(folder).map_err(failed)?;
        if let Some(own) = self.path.parent() {
            std::fs::create_dir_all(own).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(0o600);
        let mut file = options.open(&self.path).map_err(failed)?;
        base::interruptible::flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| failed(error.into()))?;
        let (known, ends_well) = read(&mut file).map_err(failed)?;
        let line = line(&folder);
        if known.iter().any(|known| self::line(known) == line) {
            return Ok(());
        }
        if known.len() >= PLACES_MAX {
            let mut there: Vec<PathBuf> = known.into_iter().filter(|it| it.exists()).collect();
            if there.len() >= PLACES_MAX {
                return Err(failed(io::Error::other(format!("it has {PLACES_MAX} folders"))));
            }
            there.push(folder);
            return self.replace(&there);
        }
        // A crash can leave a line without its end, which must not swallow this one.
        let begin: &[u8] = if ends_well { b"" } else { b"\n" };
        file.write_all(&[begin, &line].concat()).map_err(failed)
    }

    /// The folders, in the order in which they came. Without a list there are none.
    ///
    /// # Errors
    /// When there is a list and it cannot be read.
    pub fn read(&self) -> Result<Vec<PathBuf>, PlacesError> {
        let failed = |source| self.failed("read", source);
        match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            file => read(&mut file.map_err(failed)?).map(|read| read.0).map_err(failed),
        }
    }

    /// Writes the list anew, with these folders.
    ///
    /// # Errors
    /// When it cannot be written; the list of before stays then.
    pub fn replace(&self, folders: &[PathBuf]) -> Result<(), PlacesError> {
        let failed = |source| self.failed("write to", source);
        let mut lines: Vec<Vec<u8>> = Vec::new();
        for folder in folders {
            let line = line(&std::path::absolute(folder).map_err(failed)?);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let mut new = self.path.as_os_str().to_owned();
        new.push(".new");
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&new);
        let written = file.and_then(|mut file| file.write_all(&lines.concat()));
        written.and_then(|()| std::fs::rename(&new, &self.path)).map_err(failed)
    }

    fn failed(&self, what: &'static str, source: io::Error) -> PlacesError {
        PlacesError { what, path: self.path.clone(), source }
    }
}

/// All folders of a list, each once, and whether its last line is whole.
fn read(file: &mut File) -> io::Result<(Vec<PathBuf>, bool)> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(LIST_BYTES_MAX).read_to_end(&mut text)?;
    let ends_well = text.last().is_none_or(|last| *last == b'\n');
    let mut folders: Vec<PathBuf> = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        // Anything else is no line of ours.
        let folder = path(line).filter(|path| path.is_absolute());
        if let Some(folder) = folder.filter(|folder| !folders.contains(folder)) {
            folders.push(folder);
        }
        if folders.len() == PLACES_MAX {
            break;
        }
    }
    Ok((folders, ends_well))
}

fn line(folder: &Path) -> Vec<u8> {
    let mut line = Vec::new();
    for byte in folder.as_os_str().as_bytes() {
        match byte {
            0..b' ' | 0x7f | b'%' => line.extend_from_slice(format!("%{byte:02x}").as_bytes()),
            _ => line.push(*byte),
        }
    }
    while line.len() > 1 && line.ends_with(b"/") {
        line.pop();
    }
    line.push(b'\n');
    line
}

/// The path of a line; `None` if a `%` has no two digits behind it.
fn path(line: &[u8]) -> Option<PathBuf> {
    let (mut bytes, mut rest) = (Vec::new(), line);
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> (tempfile::TempDir, Places) {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::of(&folder.path().join("state/catalog.sqlite"));
        (folder, places)
    }

    #[test]
    fn a_folder_is_noted_once_whatever_its_name() {
        let (_folder, places) = list();
        assert_eq!(places.read().unwrap(), Vec::<PathBuf>::new());
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/mnt/a\nb %41\xff"));
        for folder in [Path::new("/mnt/sets/"), odd, Path::new("/mnt/sets"), odd] {
            places.note(folder).unwrap();
        }
        assert_eq!(places.read().unwrap(), [Path::new("/mnt/sets"), odd]);
        assert_eq!(std::fs::read(&places.path).unwrap().split(|it| *it == b'\n').count(), 3);
    }

    #[test]
    fn a_list_that_was_cut_off_or_edited_keeps_its_other_lines() {
        let (_folder, places) = list();
        places.note(Path::new("/mnt/first")).unwrap();
        let mut text = std::fs::read(&places.path).unwrap();
        text.extend_from_slice(b"relative\n%4\n\n/mnt/cut");
        std::fs::write(&places.path, text).unwrap();
        places.note(Path::new("/mnt/last")).unwrap();
        let expected = ["/mnt/first", "/mnt/cut", "/mnt/last"].map(PathBuf::from);
        assert_eq!(places.read().unwrap(), expected);
    }

    #[test]
    fn a_full_list_drops_the_folders_that_are_not_there() {
        let (folder, places) = list();
        let there = folder.path().to_owned();
        let gone = (1..PLACES_MAX).map(|number| PathBuf::from(format!("/gone/{number}")));
        std::fs::create_dir(folder.path().join("state")).unwrap();
        let mut all: Vec<PathBuf> = gone.collect();
        all.push(there.clone());
        places.replace(&all).unwrap();
        assert_eq!(places.read().unwrap().len(), PLACES_MAX);
        places.note(Path::new("/mnt/new")).unwrap();
        assert_eq!(places.read().unwrap(), [there, PathBuf::from("/mnt/new")]);
    }
}
