//! Where a scenario runs: a drive, and an operator who changes its cartridges.
//!
//! Without `$TAKEUP_TAPE` that is the drive in this process. Otherwise it is the device node in
//! that variable (**everything on its medium is overwritten**), and `$TAKEUP_TAPE_OPERATOR` is a
//! command that changes cartridges: it is called with `new NAME MIB`, `load NAME`, `eject` and
//! `protect NAME` as arguments. Without an operator, scenarios that need one are skipped, which is
//! reported (`needs`).
//!
//! Every scenario also runs against the drive in this process behind FUSE, if that can be mounted.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use std::thread::JoinHandle;

use device::tape::raw::RawTape;
use device::tape::{Access, BlockMode, OpenError, Tape, TapeDrive};
use sim::mount::MountError;
use sim::mount::drive::{DriveMount, DriveMountSettings, DriveUnmounter};
use sim::tape::{Cartridge, CartridgeSettings, DriveSettings, Protection, VirtualDrive};
use tempfile::TempDir;

/// Bytes that differ from block to block and compress badly.
pub use testkit::samples::noise as content;

/// The kind of drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In this process.
    Virtual,
    /// The kernel's driver on `tgtd`'s drive (the lab's first drive).
    Tgtd,
    /// The virtual drive behind FUSE.
    Fuse,
    /// Any other drive of the kernel's driver; the lab's second one is the drive of this crate.
    Driven,
}

/// The requested place of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the drive in this process, or the one that the environment names.
    Drive,
    /// Behind FUSE.
    Folder,
}

/// The medium that a scenario needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Any that may be overwritten.
    Scratch,
    /// A blank one of this many MiB, and perhaps others later.
    Fresh(u32),
    /// Faults to order.
    Broken,
}

/// One device, one scenario at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Cartridges that the operator has made. Each has a name of its own, so that it is not affected by
/// earlier scenarios.
static CARTRIDGES: AtomicU32 = AtomicU32::new(0);

/// A drive for a scenario.
pub struct Harness {
    pub kind: Kind,
    /// Smallest and largest block that the drive takes.
    pub limits: (usize, usize),
    drive: Box<dyn TapeDrive>,
    loader: Loader,
    _turn: Option<MutexGuard<'static, ()>>,
    folder: Option<Folder>,
}

enum Loader {
    Own(VirtualDrive),
    Operator(String),
    None,
}

impl Harness {
    /// The drive of the environment variables, with a medium; or why there is none.
    pub fn new(place: Place, medium: Medium) -> Result<Harness, &'static str> {
        if place == Place::Folder {
            return Harness::behind_fuse(medium);
        }
        let Some(path) = std::env::var_os("TAKEUP_TAPE") else {
            let drive = VirtualDrive::new("virtual", lab_like());
            let loader = Loader::Own(drive.clone());
            let harness = Harness {
                kind: Kind::Virtual,
                limits: LAB_LIMITS,
                drive: Box::new(drive),
                loader,
                _turn: None,
                folder: None,
            };
            harness.new_cartridge(if let Medium::Fresh(mib) = medium { mib } else { 16 });
            return Ok(harness);
        };
        if medium == Medium::Broken {
            return Err("faults to order exist in this process only");
        }
        // A scenario that failed before leaves a drive that can be used.
        let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let drive = device::tape::find(Path::new(&path)).expect("$TAKEUP_TAPE is a tape drive");
        let loader = match std::env::var("TAKEUP_TAPE_OPERATOR") {
            Ok(command) => Loader::Operator(command),
            Err(_) => Loader::None,
        };
        let mut harness = Harness {
            kind: Kind::Driven,
            limits: LAB_LIMITS,
            drive: Box::new(drive),
            loader,
            _turn: Some(turn),
            folder: None,
        };
        match (medium, &harness.loader) {
            (Medium::Fresh(_), Loader::None) => return Err("no $TAKEUP_TAPE_OPERATOR"),
            (Medium::Fresh(mib), _) => harness.new_cartridge(mib),
            (_, Loader::Operator(_)) => harness.new_cartridge(16),
            _ => {}
        }
        let mut tape = harness.open(Access::Look).expect("the drive can be opened");
        harness.kind = kind_of(&mut tape);
        harness.limits = limits_of(&mut tape);
        Ok(harness)
    }

    fn behind_fuse(medium: Medium) -> Result<Harness, &'static str> {
        if std::env::var_os("TAKEUP_TAPE").is_some() {
            return Err("$TAKEUP_TAPE asks for another drive");
        }
        let drive = VirtualDrive::new("virtual", lab_like());
        let folder = Folder::new(drive.clone());
        let path = folder.path.path().join("nst0");
        let loader = Loader::Own(drive);
        let mut harness = Harness {
            kind: Kind::Fuse,
            limits: LAB_LIMITS,
            drive: Box::new(VirtualDrive::new("", lab_like())),
            loader,
            _turn: None,
            folder: Some(folder),
        };
        harness.new_cartridge(if let Medium::Fresh(mib) = medium { mib } else { 16 });
        harness.drive = Box::new(device::tape::find(&path).expect("the file plays a tape"));
        Ok(harness)
    }

    /// Opens for writing, at the beginning, in variable mode.
    pub fn tape(&self) -> Tape {
        let mut tape = self.open(Access::Write).expect("the drive can be opened for writing");
        tape.rewind().expect("the medium can be rewound");
        tape.set_block_mode(BlockMode::Variable).expect("variable mode");
        tape
    }

    /// Opens as asked.
    pub fn open(&self, access: Access) -> Result<Tape, OpenError> {
        self.drive.open(access)
    }

    /// The drive in this process, where scenarios with faults run.
    pub fn own(&self) -> &VirtualDrive {
        match &self.loader {
            Loader::Own(drive) => drive,
            _ => panic!("only the drive in this process has faults"),
        }
    }

    /// Waits for the rest of a close: the kernel reports the last close of a file to the file
    /// system after the program has continued.
    fn settle(&self) {
        if self.kind == Kind::Fuse && self.folder.is_some() {
            drop(self.open(Access::Look));
        }
    }

    /// Puts a blank cartridge in.
    pub fn new_cartridge(&self, mib: u32) {
        self.settle();
        match &self.loader {
            Loader::Own(drive) => {
                let capacity_bytes = u64::from(mib) << 20;
                drive.insert(Cartridge::blank(CartridgeSettings {
                    // Room for a trailer after the early warning, as on any tape.
                    capacity_bytes: capacity_bytes + (4 << 20),
                    early_warning_bytes: 4 << 20,
                    ..CartridgeSettings::default()
                }));
            }
            _ => {
                let number = CARTRIDGES.fetch_add(1, Ordering::Relaxed) + 1;
                self.call(&format!("new scenario{number} {mib}"));
                self.call(&format!("load scenario{number}"));
            }
        }
    }

    /// Sets the write-protect switch of the cartridge that is in, and puts it in again.
    pub fn protect(&self) {
        self.settle();
        match &self.loader {
            Loader::Own(drive) => {
                let cartridge = drive.eject().expect("a cartridge");
                cartridge.set_protection(Protection::Protected);
                drive.insert(cartridge);
            }
            _ => {
                let number = CARTRIDGES.load(Ordering::Relaxed);
                self.call(&format!("protect scenario{number}"));
                self.call(&format!("load scenario{number}"));
            }
        }
    }

    /// Takes the cartridge out.
    pub fn eject(&self) {
        self.settle();
        match &self.loader {
            Loader::Own(drive) => {
                drive.eject().expect("a cartridge");
            }
            _ => self.call("eject"),
        }
    }

    fn call(&self, arguments: &str) {
        let Loader::Operator(command) = &self.loader else { panic!("there is no operator") };
        let status = Command::new("sh")
            .args(["-c", &format!("{command} {arguments}")])
            .status()
            .expect("the operator can be started");
        assert!(status.success(), "{command} {arguments}: {status}");
    }
}

/// A mounted drive; goes when it is dropped.
struct Folder {
    path: TempDir,
    unmounter: DriveUnmounter,
    answering: Option<JoinHandle<Result<(), MountError>>>,
}

impl Folder {
    fn new(drive: VirtualDrive) -> Folder {
        let path = tempfile::tempdir().unwrap();
        let settings = DriveMountSettings {
            drive,
            gauge: None,
            generation: "LTO-7".into(),
            medium: None,
            new_medium: CartridgeSettings::default(),
            is_read_only: false,
        };
        let mut mount = DriveMount::new(settings, path.path(), LAB_LIMITS.1 as u64).unwrap();
        let unmounter = mount.unmounter(None);
        let answering = Some(std::thread::spawn(move || mount.run()));
        Folder { path, unmounter, answering }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.unmounter.unmount().unwrap();
        let ended = self.answering.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap().unwrap();
        }
    }
}

/// Limits of `tgtd`'s drive, and of requests through FUSE.
const LAB_LIMITS: (usize, usize) = (4, 1 << 20);

/// A drive that is like the lab's.
pub fn lab_like() -> DriveSettings {
    DriveSettings {
        block_bytes_min: LAB_LIMITS.0 as u16,
        block_bytes_max: LAB_LIMITS.1 as u32,
        ..DriveSettings::default()
    }
}

/// A buffer that no block of a scenario exceeds.
pub const ROOM_BYTES: usize = 1 << 20;

fn kind_of(tape: &mut Tape) -> Kind {
    let mut answer = [0; 36];
    match ask(tape, &[0x12, 0, 0, 0, 36, 0], &mut answer) {
        Some(()) if answer[8..].starts_with(b"IET") => Kind::Tgtd,
        Some(()) => Kind::Driven,
        None => Kind::Fuse,
    }
}

/// READ BLOCK LIMITS.
fn limits_of(tape: &mut Tape) -> (usize, usize) {
    let mut answer = [0; 6];
    match ask(tape, &[0x05, 0, 0, 0, 0, 0], &mut answer) {
        None => LAB_LIMITS,
        Some(()) => {
            let least = u16::from_be_bytes([answer[4], answer[5]]);
            let most = u32::from_be_bytes([0, answer[1], answer[2], answer[3]]);
            (usize::from(least), most as usize)
        }
    }
}

fn ask(tape: &mut Tape, command: &[u8], answer: &mut [u8]) -> Option<()> {
    // The first command after a reset may be answered by an attention.
    let first = tape.raw().command(command, answer);
    first.or_else(|_| tape.raw().command(command, answer)).ok().map(|_| ())
}

/// Calls that every scenario makes.
pub trait Calls {
    /// Writes blocks of these lengths with content that [`content`] gives for their numbers.
    fn write_blocks(&mut self, numbers: std::ops::Range<u64>, bytes: usize);
    /// Reads one block into a buffer of `room`, and says how long it was; checks the content.
    fn expect_block(&mut self, number: u64, bytes: usize, room: usize);
    /// Reads zero bytes: a filemark or the end of data.
    fn expect_nothing(&mut self);
    /// File and block number of the driver.
    fn place(&mut self) -> (i32, i32);
}

impl Calls for dyn RawTape + '_ {
    fn write_blocks(&mut self, numbers: std::ops::Range<u64>, bytes: usize) {
        for number in numbers {
            let written = self.write(&content(number, bytes)).expect("a block is written");
            assert_eq!(written, bytes, "block {number} is taken whole");
        }
    }

    fn expect_block(&mut self, number: u64, bytes: usize, room: usize) {
        let mut buffer = vec![0xaa; room];
        let read = self.read(&mut buffer).unwrap_or_else(|error| panic!("block {number}: {error}"));
        assert_eq!(read, bytes, "length of block {number}");
        assert!(buffer[..read] == content(number, bytes)[..], "content of block {number}");
    }

    fn expect_nothing(&mut self) {
        let mut buffer = vec![0; ROOM_BYTES];
        assert_eq!(self.read(&mut buffer).expect("an empty read"), 0);
    }

    fn place(&mut self) -> (i32, i32) {
        let status = self.status().expect("the driver tells its state");
        (status.file_number, status.block_number)
    }
}

/// The error number of a call that must fail.
pub fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> rustix::io::Errno {
    let error = result.expect_err("the call fails");
    rustix::io::Errno::from_io_error(&error).expect("a system call's error")
}
