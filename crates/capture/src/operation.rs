//! One operation on a file: the model that live captures and all imports share.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// A value, or the reason why it is not known.
pub type Known<T> = Result<T, Unknown>;

/// Why a value is not known. It is never replaced by 0 or a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unknown {
    /// Events of a ring's requests have no offset in the file.
    OffsetOfRing,
    /// Events of `io_submit` have only pointers to its requests.
    RequestOfAio,
    /// The request names a registered file by its index.
    RegisteredFile,
    /// The file's position at the start of the recording is not known.
    Position,
    /// A splice has no byte count until it ends, and no source then.
    Splice,
    /// The call had not ended when the recording did.
    NotEnded,
    /// The file was closed before its name was looked up.
    Closed,
    /// Buffered requests are done during submission, so that the number in flight is not known.
    DoneAtOnce,
    /// The recording does not contain it.
    NotRecorded,
    /// Reading it needs rights that this process lacks.
    NotAllowed,
    /// A page of a mapped file was fetched; its use makes no call.
    Mapped,
    /// Requests of libaio were in flight before anything was recorded of them.
    BegunBefore,
}

impl Unknown {
    /// In words that follow "unknown: ". Records store them and are read by them: do not change.
    pub fn reason(self) -> &'static str {
        match self {
            Unknown::OffsetOfRing => "requests of io_uring are seen without their offset",
            Unknown::RequestOfAio => "io_submit shows pointers to its requests, not what they ask",
            Unknown::RegisteredFile => "the request names a registered file by its number only",
            Unknown::Position => "the file's position was not known when the recording began",
            Unknown::Splice => "a splice does not tell how much of which file it moved",
            Unknown::NotEnded => "the call had not ended when the recording did",
            Unknown::Closed => "the file was closed before its name was looked up",
            Unknown::DoneAtOnce => "buffered requests are done while they are submitted",
            Unknown::NotRecorded => "what was recorded does not say it",
            Unknown::NotAllowed => "looking at it needs rights that this process lacks",
            Unknown::Mapped => "of mapped files it is seen which pages are fetched, not their use",
            Unknown::BegunBefore => {
                "requests were in flight when the recording began, and how many is not seen"
            }
        }
    }
}

impl Unknown {
    /// All reasons that there are.
    pub const ALL: [Unknown; 12] = [
        Unknown::OffsetOfRing,
        Unknown::RequestOfAio,
        Unknown::RegisteredFile,
        Unknown::Position,
        Unknown::Splice,
        Unknown::NotEnded,
        Unknown::Closed,
        Unknown::DoneAtOnce,
        Unknown::NotRecorded,
        Unknown::NotAllowed,
        Unknown::Mapped,
        Unknown::BegunBefore,
    ];
}

impl fmt::Display for Unknown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.reason())
    }
}

impl Serialize for Unknown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.reason())
    }
}

/// Number of a file in its recording, from 0, in the order in which files were met.
pub type FileNumber = u32;

/// A file as it was opened. The same path with other flags is another file here; the profile joins
/// files of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedFile {
    /// Its path as the process sees it; ` (deleted)` is removed and set in `deleted`.
    pub path: Known<String>,
    pub kind: FileKind,
    pub deleted: bool,
    /// Opened with `O_DIRECT`.
    pub direct: Known<bool>,
    /// Opened with `O_SYNC` or `O_DSYNC`: each write waits until it is on the disk.
    pub synchronous: Known<bool>,
    /// Opened with `O_APPEND`.
    pub append: Known<bool>,
    /// Its size when it was met.
    pub size_bytes: Known<u64>,
}

/// What kind of thing a descriptor stands for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    Regular,
    BlockDevice,
    /// A character device: tapes, terminals, /dev/null.
    CharacterDevice,
    /// A pipe or named pipe.
    Pipe,
    Socket,
    /// Anything else, or not known.
    Other,
}

/// How a program asks, named as fio names its engines.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// `read`, `write`: from where the file's position is.
    Sync,
    /// `pread`, `pwrite`.
    Psync,
    /// `readv`, `writev`.
    Vsync,
    /// `preadv`, `pwritev`.
    Pvsync,
    /// `preadv2`, `pwritev2`.
    Pvsync2,
    /// `io_submit` and `io_getevents`.
    Libaio,
    /// A ring.
    IoUring,
    /// Pages of a mapped file.
    Mmap,
    /// `splice`, `sendfile`, `copy_file_range`, `tee`, `vmsplice`.
    Splice,
    /// Not known: a trace of the block layer sees no calls.
    Unknown,
}

impl Engine {
    /// Its name, as fio has it.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Sync => "sync",
            Engine::Psync => "psync",
            Engine::Vsync => "vsync",
            Engine::Pvsync => "pvsync",
            Engine::Pvsync2 => "pvsync2",
            Engine::Libaio => "libaio",
            Engine::IoUring => "io_uring",
            Engine::Mmap => "mmap",
            Engine::Splice => "splice",
            Engine::Unknown => "unknown",
        }
    }
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Data out of the file.
    Read,
    /// Data into the file.
    Write,
    /// That what was written is on the disk.
    Sync(SyncCall),
    /// Space, or holes (`fallocate`).
    Allocate,
    /// That a range is not needed any more.
    Discard,
}

/// The call by which a program syncs its data to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncCall {
    /// `fsync`.
    Fsync,
    /// `fdatasync`.
    Fdatasync,
    /// `sync_file_range`.
    SyncFileRange,
    /// `msync`.
    Msync,
    /// `sync` or `syncfs`: of a whole file system.
    Sync,
    /// A request of a ring; its event does not distinguish `fsync` and `fdatasync`.
    Ring,
}

impl SyncCall {
    /// All of them.
    pub const ALL: [SyncCall; 6] = [
        SyncCall::Fsync,
        SyncCall::Fdatasync,
        SyncCall::SyncFileRange,
        SyncCall::Msync,
        SyncCall::Sync,
        SyncCall::Ring,
    ];

    /// Its name, as one types it.
    pub fn name(self) -> &'static str {
        match self {
            SyncCall::Fsync => "fsync",
            SyncCall::Fdatasync => "fdatasync",
            SyncCall::SyncFileRange => "sync_file_range",
            SyncCall::Msync => "msync",
            SyncCall::Sync => "sync",
            SyncCall::Ring => "sync of the ring",
        }
    }
}

/// One operation. Recorders hand them out in the order in which they ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOperation {
    /// When it was asked for, in ns of a clock that all operations of a recording share.
    pub start_ns: u64,
    /// Time until the program had its answer, in ns.
    pub duration_ns: Known<u64>,
    /// The process that asked.
    pub process: u32,
    /// The thread that asked.
    pub thread: u32,
    pub file: FileNumber,
    /// The kind of call.
    pub engine: Engine,
    pub asked: Asked,
    /// Where in the file it begins. Of a direct request of libaio or io_uring it is where that is
    /// on the device: what goes on behind another one or comes again does so there, too.
    pub offset_bytes: Known<u64>,
    /// How much it asked for.
    pub asked_bytes: Known<u64>,
    /// How much of that was done; 0 at the end of a file. Of a sync 0.
    pub done_bytes: Known<u64>,
    /// `RWF_DSYNC` or `RWF_SYNC` of this write alone.
    pub synchronous: bool,
    /// Operations of this file in flight when it began, itself included.
    pub in_flight: Known<u32>,
    /// The error it ended with (errno), 0 without one.
    pub error: i32,
}

/// Most bytes that Linux moves in one call, whatever the call asks for (`MAX_RW_COUNT`, pages of
/// 4 KiB).
const CALL_BYTES_MAX: u64 = 0x7fff_f000;

impl FileOperation {
    /// The size of the request, as far as it says how the program works: `None` where it does not.
    ///
    /// A splice is told how much it may move, not how much there is: `cp` asks for 8 EiB until
    /// there is nothing left. What it moved stands for what it asked for.
    pub fn request_bytes(&self) -> Option<Known<u64>> {
        match (self.engine, self.asked_bytes, self.done_bytes) {
            (Engine::Splice, Ok(_), Ok(0)) => None,
            (Engine::Splice, Ok(asked), Ok(done)) => Some(Ok(asked.min(done))),
            (_, asked, _) => Some(asked.map(|bytes| bytes.min(CALL_BYTES_MAX))),
        }
    }
}

/// Receives operations from a recorder, in order. To stay bounded, it must not keep all of them.
pub trait Recording {
    /// A file is met for the first time; its number is the count of those before it.
    fn file(&mut self, number: FileNumber, file: &OpenedFile);
    /// More became known of a file that was met before: a name, or a size.
    fn file_again(&mut self, number: FileNumber, file: &OpenedFile);
    /// An operation has ended, or never will within this recording.
    fn operation(&mut self, operation: &FileOperation);
    /// How many were in flight when operations of a file began that were handed out as
    /// [`Unknown::BegunBefore`], and how often: it became known later.
    fn depths(&mut self, _number: FileNumber, _counts: &[(u32, u64)]) {}
    /// Events were lost since the last call of this: operations may be missing or wrong.
    fn lost(&mut self, events: u64);
}
