//! What is known of media without reading them, kept from run to run: where the sets of a cartridge
//! are, as its chip was when a run left it, and copies of the indexes of sets.
//!
//! All of it may be deleted at any time: the tapes have it. So nothing here fails a run, and both
//! folders have a limit: what was not used for longest goes first.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use archive::label::{MediumName, hex};
use catalogue::SetsFolder;
use device::tape::scsi::attribute::CartridgeMemory;
use device::target::{Existing, FileMode, Target};
use serde::{Deserialize, Serialize};
use tapeset::{Directory, KnownMedia, KnownMedium, Memory, TapeIndex};

use crate::state;
use crate::tape_sets::account::Account;

/// Most bytes of all copies of indexes: of some hundred million files.
const INDEX_BYTES_MAX: u64 = 4 << 30;
/// Most files in each folder.
const FILES_MAX: usize = 10_000;
/// A copy is kept if the disk has this many times its size free.
const FREE_FACTOR: u64 = 10;
/// Longest note of a medium that is read.
const NOTE_BYTES_MAX: u64 = 64 << 20;
/// End of the name of a copy of an index, and of a note.
const INDEX_END: &str = ".takeup-index";
const NOTE_END: &str = ".json";

/// Which indexes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    All,
    /// Those of chains are kept elsewhere.
    OutsideOfChains,
}

/// The folder of a user.
#[derive(Debug)]
struct TapeMemory {
    folder: PathBuf,
    copies: Copies,
    /// The copies of indexes of chains, once one was asked for.
    chains: OnceLock<SetsFolder>,
}

/// What this user knows of media, or the machine for root; nothing where there is no folder for it.
pub(crate) fn of_this_user(copies: Copies) -> Memory {
    let memory = state::tape_memory().map(|folder| TapeMemory::of(folder, copies));
    Memory(memory.map(|memory| Arc::new(memory) as Arc<dyn KnownMedia>))
}

/// What is noted of a medium.
#[derive(Debug, Serialize, Deserialize)]
struct MediumNote {
    medium: String,
    serial: String,
    change_reference: u32,
    /// As lines of a directory.
    sets: String,
}

impl MediumNote {
    /// `None` if the chip has not said enough to know the cartridge by it again.
    fn of(known: &KnownMedium) -> Option<MediumNote> {
        let directory = Directory { sets: known.sets.clone(), is_whole: true };
        Some(MediumNote {
            medium: hex(&known.medium),
            serial: known.memory.serial.clone()?,
            change_reference: known.memory.change_reference?,
            sets: directory.text(NOTE_BYTES_MAX as usize / 2),
        })
    }

    /// `None` if any of it is wrong, or not all sets are there.
    fn known(&self) -> Option<KnownMedium> {
        let medium = u128::from_str_radix(&self.medium, 16).ok()?.to_be_bytes();
        let directory = Directory::of_text(&self.sets).filter(|directory| directory.is_whole)?;
        let memory = CartridgeMemory {
            serial: Some(self.serial.clone()),
            change_reference: Some(self.change_reference),
            barcode: None,
        };
        Some(KnownMedium { medium, memory, sets: directory.sets })
    }
}

impl KnownMedia for TapeMemory {
    fn medium(&self, memory: &CartridgeMemory) -> Option<KnownMedium> {
        let path = self.note_path(memory.serial.as_deref()?);
        let file = File::open(&path).ok()?;
        let note = read_note(&file)?;
        let known = note.known().filter(|known| memory.is_unchanged_since(&known.memory))?;
        used_now(&file);
        Some(known)
    }

    fn index(&self, set: [u8; 16]) -> Option<TapeIndex> {
        if let Ok(file) = File::open(self.index_path(set)) {
            used_now(&file);
            return TapeIndex::of_copy(file).ok()?;
        }
        let known = self.chains.get_or_init(|| {
            let folder = state::tape_sets();
            folder.and_then(|folder| SetsFolder::read(&folder).ok()).unwrap_or_default()
        });
        TapeIndex::of_copy(File::open(&known.of(set)?.path).ok()?).ok()?
    }

    fn name(&self, medium: [u8; 16]) -> Option<MediumName> {
        let account = state::tape_sets().and_then(|folder| Account::read(&folder).ok());
        let in_account = account.and_then(|account| account.name_of(medium));
        in_account.or_else(|| self.noted_name(medium))
    }

    fn note(&self, medium: &KnownMedium) {
        let Some(note) = MediumNote::of(medium) else { return };
        let path = self.note_path(&note.serial);
        let write = |to: &mut File| serde_json::to_writer(to, &note).map_err(io::Error::from);
        if self.write(&path, write).is_ok() {
            prune(&self.media(), NOTE_END, u64::MAX);
        }
    }

    fn keep(&self, set: [u8; 16], index: &TapeIndex) {
        let is_of_chain = index.index.trailer.named.is_some();
        let path = self.index_path(set);
        if (is_of_chain && self.copies == Copies::OutsideOfChains) || path.exists() {
            return;
        }
        if index.length_bytes > INDEX_BYTES_MAX / 2 || !self.has_room(index.length_bytes) {
            return;
        }
        let copied = self.write(&path, |to| {
            let from = File::from(index.file.try_clone()?);
            copy(&from, index.length_bytes, to)
        });
        if copied.is_ok() {
            prune(&self.indexes(), INDEX_END, INDEX_BYTES_MAX);
        }
    }
}

impl TapeMemory {
    fn of(folder: PathBuf, copies: Copies) -> TapeMemory {
        TapeMemory { folder, copies, chains: OnceLock::new() }
    }

    /// What a medium is called by the notes of cartridges.
    fn noted_name(&self, medium: [u8; 16]) -> Option<MediumName> {
        let (notes, digits) = (std::fs::read_dir(self.media()).ok()?, hex(&medium));
        let of_it = |note: &MediumNote| note.medium == digits;
        let mut notes =
            notes.flatten().filter_map(|entry| read_note(&File::open(entry.path()).ok()?));
        let newest = notes.find(of_it)?.known()?.sets.into_iter().next()?;
        newest.last.label.medium_name
    }

    fn media(&self) -> PathBuf {
        self.folder.join("media")
    }

    fn indexes(&self) -> PathBuf {
        self.folder.join("indexes")
    }

    /// A serial number is anything that a maker writes, so its bytes are written as digits.
    fn note_path(&self, serial: &str) -> PathBuf {
        let digits: String = serial.bytes().take(100).map(|byte| format!("{byte:02x}")).collect();
        self.media().join(format!("{digits}{NOTE_END}"))
    }

    fn index_path(&self, set: [u8; 16]) -> PathBuf {
        self.indexes().join(format!("{}{INDEX_END}", hex(&set)))
    }

    fn has_room(&self, bytes: u64) -> bool {
        let nearest = self.folder.ancestors().find(|folder| folder.is_dir());
        let free = nearest.and_then(|folder| rustix::fs::statvfs(folder).ok());
        let free_bytes = free.map(|free| free.f_bavail.saturating_mul(free.f_frsize));
        free_bytes.is_some_and(|free| free / FREE_FACTOR >= bytes)
    }

    /// Writes a file that appears whole or not at all, for this user's eyes only.
    fn write(
        &self,
        path: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let folder = path.parent().unwrap_or(&self.folder);
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let target = Target::open(path.as_os_str(), Existing::Replace, FileMode::Exactly(0o600));
        let target = target.map_err(io::Error::other)?;
        let mut file = File::from(target.file.try_clone()?);
        write(&mut file)?;
        file.flush()?;
        target.complete().map(|_| ()).map_err(io::Error::other)
    }
}

/// A note of a medium; `None` if it is none.
fn read_note(file: &File) -> Option<MediumNote> {
    if file.metadata().ok()?.len() > NOTE_BYTES_MAX {
        return None;
    }
    serde_json::from_reader(io::BufReader::new(file)).ok()
}

/// Copies the first bytes of a file.
fn copy(from: &File, length_bytes: u64, to: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    while at < length_bytes {
        let now = (length_bytes - at).min(buffer.len() as u64) as usize;
        from.read_exact_at(&mut buffer[..now], at)?;
        to.write_all(&buffer[..now])?;
        at += now as u64;
    }
    Ok(())
}

/// Notes that a file was of use, so that others go before it.
fn used_now(file: &File) {
    let _ = file.set_modified(SystemTime::now());
}

/// Removes the files that were not used for longest, until the rest is within the limits.
fn prune(folder: &Path, end: &str, bytes_max: u64) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(end))
        .filter_map(|entry| {
            let status: Metadata = entry.metadata().ok()?;
            Some((status.modified().ok()?, status.len(), entry.path()))
        })
        .collect();
    files.sort();
    let mut bytes: u64 = files.iter().map(|(_, length, _)| length).sum();
    let mut left = files.len();
    for (_, length, path) in files {
        if bytes <= bytes_max && left <= FILES_MAX {
            return;
        }
        let _ = std::fs::remove_file(path);
        bytes -= length;
        left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use archive::chunk::Compression;
    use archive::label::{HostName, Label, LabelKind};
    use archive::stream::StoredOffset;
    use tapeset::{LabelledFile, SetHere, Spot};

    use super::*;

    fn file(file: u32, kind: LabelKind, segment: u32) -> LabelledFile {
        let label = Label {
            set: [1; 16],
            kind,
            segment,
            part: 1,
            volume: 1,
            medium: [2; 16],
            stream_bytes: StoredOffset::START,
            block_bytes: 4096,
            length_bytes: 4096,
            compression: Compression::None,
            previous: None,
            time_seconds: 1_700_000_000,
            host: HostName::new(b"db1"),
            medium_name: MediumName::new("000123L6"),
            chain: None,
        };
        let absolute = (file > 0).then_some(u64::from(file) * 100);
        LabelledFile { spot: Spot { file, block: 0, absolute }, label }
    }

    fn known(change_reference: u32) -> KnownMedium {
        let (first, last) = (file(0, LabelKind::Data, 1), file(3, LabelKind::Index, 4));
        KnownMedium {
            medium: [2; 16],
            memory: CartridgeMemory {
                serial: Some("AB 12/../x".to_owned()),
                change_reference: Some(change_reference),
                barcode: Some("000123L6".to_owned()),
            },
            sets: vec![SetHere { first, last, followed: false, first_file: 0 }],
        }
    }

    #[test]
    fn a_medium_is_known_until_something_is_written_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let memory = TapeMemory::of(folder.path().join("tapes"), Copies::All);
        let then = known(7);
        assert_eq!(memory.medium(&then.memory), None);
        memory.note(&then);
        let found = memory.medium(&then.memory).unwrap();
        assert_eq!((found.medium, &found.sets), (then.medium, &then.sets));
        assert_eq!(memory.name(then.medium), MediumName::new("000123L6"));
        assert_eq!(memory.name([3; 16]), None);
        assert_eq!(memory.medium(&known(8).memory), None, "something was written since");
        memory.note(&known(8));
        assert!(memory.medium(&known(8).memory).is_some());
        assert_eq!(memory.medium(&then.memory), None);
        let nameless = CartridgeMemory { serial: None, ..then.memory.clone() };
        memory.note(&KnownMedium { memory: nameless.clone(), ..then });
        assert_eq!(memory.medium(&nameless), None);
        // No serial number leads out of the folder.
        let notes: Vec<_> = std::fs::read_dir(memory.media()).unwrap().flatten().collect();
        assert_eq!(notes.len(), 1, "{notes:?}");
    }

    #[test]
    fn a_damaged_note_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let memory = TapeMemory::of(folder.path().to_owned(), Copies::All);
        let then = known(7);
        memory.note(&then);
        let path = memory.note_path("AB 12/../x");
        let whole = std::fs::read_to_string(&path).unwrap();
        for damaged in [whole.replace("volume=1", "volume=2"), whole[..200].to_owned()] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(memory.medium(&then.memory), None);
        }
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let begun = SystemTime::now() - Duration::from_secs(1000);
        for (number, name) in ["a", "b", "c"].iter().enumerate() {
            let path = folder.path().join(format!("{name}{INDEX_END}"));
            std::fs::write(&path, [0; 100]).unwrap();
            let time = begun + Duration::from_secs(number as u64);
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        }
        std::fs::write(folder.path().join("other"), [0; 1000]).unwrap();
        used_now(&File::options().write(true).open(folder.path().join("a.takeup-index")).unwrap());
        prune(folder.path(), INDEX_END, 200);
        let mut left: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["a.takeup-index", "c.takeup-index", "other"]);
    }
}
