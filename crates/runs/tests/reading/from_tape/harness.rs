//! A drive with a rack of cartridges, and runs against it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use archive::chunk::Compression;
use archive::label::MediumName;
use device::tape::scsi::attribute::CartridgeMemory;
use flow::cancel::Cancel;
use runs::backup::{BackupError, BackupOptions, backup};
use runs::destination::Destination;
use runs::list::{ListError, ListOptions, ListReport, list};
use runs::origin::Origin;
use runs::report::BackupReport;
use runs::restore::{RestoreError, RestoreOptions, RestoreReport};
use runs::selection::Selection;
use runs::verify::{VerifyError, VerifyOptions, VerifyReport, verify};
use sim::tape::{Cartridge, CartridgeSettings, DriveSettings, Library, VirtualDrive};
use tapeset::{
    ChangeError, KnownMedia, KnownMedium, Memory, SetChoice, TapeDestination, TapeIndex,
    TapeOptions, TapeOrigin, VolumeChanger, VolumePurpose, VolumeRequest,
};
use testkit::samples::noise;

use crate::harness::{Harness, Kept, files};

pub const BLOCK_BYTES: usize = 4096;

/// How the operator reacts when a volume is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clerk {
    /// Brings the right one.
    Brings,
    /// Puts these slots in, one after the other, then has no more.
    Follows(Vec<usize>),
    /// Brings the right one, from this many.
    Has(usize),
    /// Brings the right one, except this volume, without which the run continues.
    DoesWithout(u32),
    /// Has none.
    HasNone,
}

struct Asked {
    library: Library,
    clerk: Clerk,
    requests: Arc<Mutex<Vec<VolumeRequest>>>,
}

impl VolumeChanger for Asked {
    fn change(&mut self, request: &VolumeRequest) -> Result<(), ChangeError> {
        self.requests.lock().unwrap().push(request.clone());
        if let (VolumePurpose::Read { volume, .. }, Clerk::DoesWithout(missing)) =
            (&request.purpose, &self.clerk)
            && volume == missing
        {
            return Err(ChangeError::WithoutIt);
        }
        let slot = match (&request.purpose, &mut self.clerk) {
            (VolumePurpose::Write { .. }, _) => self.library.loaded_slot().map(|slot| slot + 1),
            (VolumePurpose::Read { volume, .. }, Clerk::Brings | Clerk::DoesWithout(_)) => {
                Some(*volume as usize - 1)
            }
            (VolumePurpose::Read { volume, .. }, Clerk::Has(count)) => {
                Some(*volume as usize - 1).filter(|slot| slot < count)
            }
            (_, Clerk::Follows(slots)) if slots.is_empty() => None,
            (_, Clerk::Follows(slots)) => Some(slots.remove(0)),
            (_, Clerk::HasNone) => None,
        };
        match slot {
            Some(slot) if self.library.load(slot) => Ok(()),
            _ => Err(ChangeError::Declined { text: "there is none".into() }),
        }
    }
}

pub struct TapeHarness {
    pub plain: Harness,
    pub library: Library,
    pub clerk: Clerk,
    pub requests: Arc<Mutex<Vec<VolumeRequest>>>,
    pub set: SetChoice,
    pub file_number: Option<u32>,
    pub without_volumes: Vec<u32>,
    pub cancel: Cancel,
    /// What is known of media.
    pub notes: Option<Arc<Notes>>,
}

/// What is known of media, in memory: chips by serial number, indexes by set.
#[derive(Default)]
pub struct Notes {
    pub media: Mutex<BTreeMap<String, KnownMedium>>,
    pub indexes: Mutex<BTreeMap<[u8; 16], Vec<u8>>>,
    /// Nothing more is noted.
    pub is_closed: AtomicBool,
}

impl KnownMedia for Notes {
    fn medium(&self, memory: &CartridgeMemory) -> Option<KnownMedium> {
        self.media.lock().unwrap().get(memory.serial.as_ref()?).cloned()
    }

    fn index(&self, set: [u8; 16]) -> Option<TapeIndex> {
        let indexes = self.indexes.lock().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, indexes.get(&set)?).unwrap();
        TapeIndex::of_copy(file).ok()?
    }

    fn name(&self, medium: [u8; 16]) -> Option<MediumName> {
        let media = self.media.lock().unwrap();
        let known = media.values().find(|known| known.medium == medium)?;
        known.sets.first()?.last.label.medium_name
    }

    fn note(&self, medium: &KnownMedium) {
        if !self.is_closed.load(Ordering::Relaxed) {
            let serial = medium.memory.serial.clone().unwrap();
            self.media.lock().unwrap().insert(serial, medium.clone());
        }
    }

    fn keep(&self, set: [u8; 16], index: &TapeIndex) {
        if !self.is_closed.load(Ordering::Relaxed) {
            let mut bytes = vec![0; index.length_bytes as usize];
            let file = fs::File::from(index.file.try_clone().unwrap());
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).unwrap();
            self.indexes.lock().unwrap().insert(set, bytes);
        }
    }
}

impl TapeHarness {
    /// A rack of this many cartridges of this many bytes each, the first one in the drive.
    pub fn new(cartridges: usize, capacity_bytes: u64) -> TapeHarness {
        let drive = VirtualDrive::new("/dev/nst0", DriveSettings::default());
        let blank = || {
            let early_warning_bytes = capacity_bytes / 16;
            let settings = CartridgeSettings::default();
            let settings = CartridgeSettings { capacity_bytes, early_warning_bytes, ..settings };
            Cartridge::blank(settings)
        };
        let library = Library::new(drive, (0..cartridges).map(|_| blank()));
        library.load(0);
        TapeHarness {
            plain: Harness::new(),
            library,
            clerk: Clerk::Brings,
            requests: Arc::default(),
            set: SetChoice::Last,
            file_number: None,
            without_volumes: Vec::new(),
            cancel: Cancel::new(),
            notes: None,
        }
    }

    /// From now on it is noted what media hold.
    pub fn take_notes(&mut self) -> Arc<Notes> {
        Arc::clone(self.notes.insert(Arc::default()))
    }

    fn memory(&self) -> Memory {
        Memory(self.notes.clone().map(|notes| notes as Arc<dyn KnownMedia>))
    }

    pub fn origin(&self) -> TapeOrigin {
        let changer = Asked {
            library: self.library.clone(),
            clerk: self.clerk.clone(),
            requests: Arc::clone(&self.requests),
        };
        TapeOrigin {
            drive: Arc::new(self.library.drive().clone()),
            set: self.set.clone(),
            file_number: self.file_number,
            without_volumes: self.without_volumes.clone(),
            known: None,
            memory: self.memory(),
            motion: None,
            changer: Arc::new(Mutex::new(changer)),
        }
    }

    /// Backs up to the cartridge in the drive and those after it.
    pub fn write(&self, tree: &Path, compression: &str, segment_bytes: u64) -> BackupReport {
        self.write_blocks(tree, compression, segment_bytes, BLOCK_BYTES)
    }

    pub fn write_blocks(
        &self,
        tree: &Path,
        compression: &str,
        segment_bytes: u64,
        block_bytes: usize,
    ) -> BackupReport {
        self.try_write(tree, compression, segment_bytes, block_bytes).unwrap()
    }

    pub fn try_write(
        &self,
        tree: &Path,
        compression: &str,
        segment_bytes: u64,
        block_bytes: usize,
    ) -> Result<BackupReport, BackupError> {
        let changer = Asked {
            library: self.library.clone(),
            clerk: Clerk::HasNone,
            requests: Arc::default(),
        };
        let tape = TapeDestination {
            drive: Arc::new(self.library.drive().clone()),
            options: TapeOptions { segment_bytes: Some(segment_bytes), ..Default::default() },
            changer: Arc::new(Mutex::new(changer)),
            media: Default::default(),
            memory: self.memory(),
        };
        let options = BackupOptions {
            sources: vec![tree.to_path_buf()],
            target: Destination::Tape(tape),
            compression: compression.parse::<Compression>().unwrap(),
            block_bytes,
            ring_bytes: 64 << 20,
            ..Default::default()
        };
        backup(&options, &Kept::default(), &Cancel::new())
    }

    pub fn restore(&self, into: &str) -> (RestoreReport, Kept) {
        let (report, kept) = self.try_restore(into, &[]);
        (report.unwrap_or_else(|error| panic!("{error:?}")), kept)
    }

    pub fn try_restore(
        &self,
        into: &str,
        paths: &[&str],
    ) -> (Result<RestoreReport, RestoreError>, Kept) {
        let kept = Kept::default();
        let options = RestoreOptions {
            from: Origin::Tape(self.origin()),
            ring_bytes: 8 << 20,
            selection: Selection::new(paths.iter().map(|path| path.as_bytes().to_vec())),
            ..Default::default()
        };
        let report = self.plain.try_restore(options, into, &kept);
        (report, kept)
    }

    pub fn list(&self) -> (Vec<String>, ListReport, Kept) {
        let kept = Kept::default();
        let (paths, report) = self.try_list(&kept);
        (paths, report.unwrap(), kept)
    }

    pub fn try_list(&self, kept: &Kept) -> (Vec<String>, Result<ListReport, ListError>) {
        let options = ListOptions { from: Origin::Tape(self.origin()), ..Default::default() };
        let mut paths = Vec::new();
        let report = list(options, kept, &self.cancel, |listed| {
            paths.push(String::from_utf8_lossy(&listed.member.path).into_owned());
        });
        (paths, report)
    }

    pub fn verify(&self, against: Option<&Path>) -> (Result<VerifyReport, VerifyError>, Kept) {
        let kept = Kept::default();
        let options = VerifyOptions {
            from: Origin::Tape(self.origin()),
            against: against.map(Path::to_path_buf),
            ring_bytes: 8 << 20,
            ..Default::default()
        };
        let report = verify(options, &kept, &Cancel::new());
        (report, kept)
    }

    /// A tree of small files, and its files by path in the archive.
    pub fn small_tree(&self, files: usize, bytes_max: usize) -> BTreeMap<String, Vec<u8>> {
        let root = self.plain.path("t");
        for number in 0..files {
            let folder = root.join(format!("folder{}", number % 3));
            fs::create_dir_all(&folder).unwrap();
            let length = number * 7919 % bytes_max;
            fs::write(folder.join(format!("file{number:03}")), noise(number as u64 + 1, length))
                .unwrap();
        }
        self.files_of("t", &root)
    }

    /// The files of a restored tree, by path in the archive.
    pub fn restored(&self, into: &str) -> BTreeMap<String, Vec<u8>> {
        let root = self.plain.path("t");
        let inside = self.plain.path(into).join(root.strip_prefix("/").unwrap());
        self.files_of("t", &inside)
    }

    /// Path in the archive of something in the tree `t`.
    pub fn in_archive(&self, path: &str) -> String {
        let path = self.plain.path(path);
        path.strip_prefix("/").unwrap().to_string_lossy().into_owned()
    }

    fn files_of(&self, name: &str, root: &Path) -> BTreeMap<String, Vec<u8>> {
        let inside = files(root).into_iter();
        inside
            .map(|(path, content)| (self.in_archive(&format!("{name}/{path}")), content))
            .collect()
    }
}
