//! Requests that end in another call than the one they begin in: those of rings and of libaio.

use std::collections::{HashMap, VecDeque};

use crate::operation::{Asked, FileNumber, Known, SyncCall, Unknown};

/// More in flight are not kept.
const REQUESTS_MAX: usize = 1 << 16;
/// What the kernel records of one request to a block device, in sectors.
const SECTOR_BYTES: u64 = 512;

/// What a ring's request asks for (`enum io_uring_op`, include/uapi/linux/io_uring.h); `None` of
/// what moves nothing.
pub(super) fn asked_of(opcode: u64) -> Option<Asked> {
    Some(match opcode {
        1 | 4 | 22 => Asked::Read,
        2 | 5 | 23 => Asked::Write,
        3 => Asked::Sync(SyncCall::Ring),
        8 => Asked::Sync(SyncCall::SyncFileRange),
        17 => Asked::Allocate,
        _ => return None,
    })
}

/// `IOSQE_FIXED_FILE`: the file is one that was registered, by its index.
pub(super) const REGISTERED: u64 = 1;

/// A ring's request that was submitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) start_ns: u64,
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) asked: Asked,
    /// Once its file was looked up: which, and how many of it were in flight.
    pub(super) file: Option<(FileNumber, u32)>,
    /// Another thread does it.
    pub(super) is_handed: bool,
    /// Its answer was the next that was seen of its ring.
    pub(super) is_answered_next: bool,
    /// Where the block layer was asked for it, while it was submitted.
    pub(super) place: Known<u64>,
}

/// The rings of the processes that are followed.
#[derive(Debug, Default)]
pub(super) struct Rings {
    requests: HashMap<(u64, u64), Request>,
    owners: HashMap<u64, u32>,
    /// The request of a ring that was submitted last, if nothing has been answered since.
    latest: HashMap<u64, u64>,
}

impl Rings {
    /// Whose ring it is, if that was seen.
    pub(super) fn owner(&self, ring: u64) -> Option<u32> {
        self.owners.get(&ring).copied()
    }

    /// A ring is used by a process.
    pub(super) fn belongs(&mut self, ring: u64, process: u32) {
        if self.owners.len() < REQUESTS_MAX {
            self.owners.insert(ring, process);
        }
    }

    /// A request; the one before it at the same address, whose end was not seen.
    pub(super) fn submit(&mut self, key: (u64, u64), request: Request) -> Option<Request> {
        if self.requests.len() >= REQUESTS_MAX && !self.requests.contains_key(&key) {
            return None;
        }
        self.latest.insert(key.0, key.1);
        self.requests.insert(key, request)
    }

    pub(super) fn get(&mut self, key: (u64, u64)) -> Option<&mut Request> {
        self.requests.get_mut(&key)
    }

    pub(super) fn end(&mut self, key: (u64, u64)) -> Option<Request> {
        let is_answered_next = self.latest.remove(&key.0) == Some(key.1);
        self.requests.remove(&key).map(|request| Request { is_answered_next, ..request })
    }

    /// All that have not ended.
    pub(super) fn drain(&mut self) -> Vec<Request> {
        self.latest.clear();
        self.requests.drain().map(|(_, request)| request).collect()
    }
}

/// A request to a block device, made while requests of libaio are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) device: u64,
    pub(super) asked: Asked,
    pub(super) bytes: u64,
    /// Where on the device.
    pub(super) place: Known<u64>,
}

impl Block {
    /// Of the kernel's number of a device, sectors, where the first of them is, and letters: `W`
    /// writes, `R` reads, `M` is a file system's own business (`blk_fill_rwbs`,
    /// kernel/trace/blktrace.c).
    pub(super) fn of(device: u64, sectors: u64, first: Option<u64>, letters: u64) -> Option<Block> {
        let letters = letters.to_ne_bytes();
        // Without a sector it is a flush of the device's cache.
        if letters.contains(&b'M') || sectors == 0 {
            return None;
        }
        let place = first.and_then(|first| first.checked_mul(SECTOR_BYTES));
        let place = place.ok_or(Unknown::NotRecorded);
        let asked = letters.iter().find_map(|letter| match letter {
            b'R' => Some(Asked::Read),
            b'W' => Some(Asked::Write),
            _ => None,
        })?;
        let major = u32::try_from(device >> 20).ok()?;
        let minor = u32::try_from(device & 0xF_FFFF).ok()?;
        let device = rustix::fs::makedev(major, minor);
        Some(Block { device, asked, bytes: sectors.saturating_mul(SECTOR_BYTES), place })
    }
}

/// A request of libaio that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Submitted {
    pub(super) start_ns: u64,
    pub(super) thread: u32,
    pub(super) asked: Asked,
    pub(super) bytes: Known<u64>,
    /// Where on the device.
    pub(super) place: Known<u64>,
    /// The device, if it is known.
    pub(super) device: u64,
    pub(super) in_flight: Known<u32>,
    /// Of a context of before the recording: how many more were submitted than fetched since.
    pub(super) level: i64,
}

/// What so many requests asked for, by what the block layer was given meanwhile: each of them where
/// there is one for each, or one for all of them; else what they have in common. `None` where
/// nothing was given to it, or both reads and writes.
pub(super) fn seen(count: usize, blocks: &[Block]) -> Option<Vec<(Block, Known<u64>)>> {
    let first = *blocks.first()?;
    // A stack of devices is given each request again on every floor; the uppermost comes first.
    let blocks: Vec<Block> =
        blocks.iter().copied().filter(|block| block.device == first.device).collect();
    if count == 1 {
        let bytes = blocks.iter().map(|block| block.bytes).sum();
        return Some(vec![(first, Ok(bytes))]);
    }
    if blocks.len() == count {
        return Some(blocks.into_iter().map(|block| (block, Ok(block.bytes))).collect());
    }
    let is_one_way = blocks.iter().all(|block| block.asked == first.asked);
    let unplaced = Block { place: Err(Unknown::RequestOfAio), ..first };
    is_one_way.then(|| vec![(unplaced, Err(Unknown::RequestOfAio)); count])
}

/// A context of libaio.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// What was submitted to it and not fetched.
    pub(super) waiting: VecDeque<Option<Submitted>>,
    /// Of one that may have been there before anything was recorded.
    pub(super) before: Option<Before>,
}

/// Levels of a context that are counted.
const LEVELS_MAX: usize = 1 << 12;

/// What was in flight before anything was recorded. It is known once the context has ended:
/// whoever ends one has fetched what there was.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// How many more were fetched than submitted since.
    fetched_more: i64,
    /// The most that it ever was: so many were in flight at least.
    most: i64,
    /// How often an operation of a file began with so many more submitted than fetched.
    levels: HashMap<(FileNumber, i64), u64>,
}

impl Before {
    /// One more is submitted; how many more than were fetched that makes.
    pub(super) fn submit(&mut self) -> i64 {
        self.fetched_more -= 1;
        -self.fetched_more
    }

    pub(super) fn fetch(&mut self, count: usize) {
        self.fetched_more += i64::try_from(count).unwrap_or(i64::MAX);
        self.most = self.most.max(self.fetched_more);
    }

    /// An operation that began at a level was handed out.
    pub(super) fn handed_out(&mut self, file: FileNumber, level: i64) {
        if self.levels.len() < LEVELS_MAX || self.levels.contains_key(&(file, level)) {
            *self.levels.entry((file, level)).or_default() += 1;
        }
    }

    /// How many operations of each file began with how many in flight, where it ends now; nothing
    /// where not all was fetched.
    pub(super) fn depths(&self) -> HashMap<FileNumber, Vec<(u32, u64)>> {
        let mut depths: HashMap<FileNumber, Vec<(u32, u64)>> = HashMap::new();
        if self.fetched_more < self.most {
            return depths;
        }
        for ((file, level), count) in &self.levels {
            let Ok(depth) = u32::try_from(self.most + level) else { continue };
            depths.entry(*file).or_default().push((depth, *count));
        }
        depths
    }
}

/// Contexts of libaio, by their process and their number.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    all: HashMap<(u32, u64), Context>,
}

impl Contexts {
    /// A context of a process; one that is new has that in flight from before the recording.
    pub(super) fn of(
        &mut self,
        process: u32,
        context: u64,
        before: Option<Before>,
    ) -> &mut Context {
        if self.all.len() >= REQUESTS_MAX {
            self.all.clear();
        }
        let new = || Context { waiting: VecDeque::new(), before };
        let context = self.all.entry((process, context)).or_insert_with(new);
        context.waiting.truncate(REQUESTS_MAX);
        context
    }

    /// A context has ended, or all of a process have.
    pub(super) fn end(&mut self, process: u32, only: Option<u64>) -> Vec<Context> {
        let is_ended = |key: &(u32, u64)| key.0 == process && only.is_none_or(|it| it == key.1);
        self.all.extract_if(|key, _| is_ended(key)).map(|(_, context)| context).collect()
    }

    /// All that were not fetched.
    pub(super) fn drain(&mut self) -> Vec<(u32, Submitted)> {
        let all = self.all.drain();
        all.flat_map(|((process, _), context)| {
            context.waiting.into_iter().flatten().map(move |it| (process, it))
        })
        .collect()
    }
}
