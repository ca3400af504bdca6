//! System calls that are operations, once they have ended.

use super::calls::{CALLS, Call};
use super::follower::{Begun, End, Follower};
use crate::operation::{
    Asked, Engine, FileKind, FileNumber, FileOperation, Known, Recording, Unknown,
};

/// `RWF_DSYNC` and `RWF_SYNC` (preadv2(2)).
const SYNCHRONOUS: u64 = 0x2 | 0x4;
/// fallocate(2).
const PUNCH_HOLE: u64 = 0x2;
/// preadv2(2): from where the file's position is.
const AT_POSITION: u64 = u64::MAX;

/// Where a call reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallPlace {
    /// Where the position is, which it moves on.
    Position,
    At(u64),
}

/// What a call asks for; its length where its arguments have one.
struct Request {
    engine: Engine,
    asked: Asked,
    place: CallPlace,
    length: Option<u64>,
    synchronous: bool,
}

fn request(call: Call, values: &[u64; 5]) -> Request {
    let [_, second, third, fourth, _] = *values;
    let of =
        |engine, asked, place, length| Request { engine, asked, place, length, synchronous: false };
    let two = |low: u64, high: u64| match low {
        AT_POSITION => CallPlace::Position,
        // On 64 bits the first of the two is all of it.
        _ if cfg!(target_pointer_width = "64") => CallPlace::At(low),
        _ => CallPlace::At(high << 32 | (low & 0xFFFF_FFFF)),
    };
    use Asked::{Read, Write};
    match call {
        Call::Read => of(Engine::Sync, Read, CallPlace::Position, Some(second)),
        Call::Write => of(Engine::Sync, Write, CallPlace::Position, Some(second)),
        Call::Pread => of(Engine::Psync, Read, CallPlace::At(third), Some(second)),
        Call::Pwrite => of(Engine::Psync, Write, CallPlace::At(third), Some(second)),
        Call::Readv => of(Engine::Vsync, Read, CallPlace::Position, None),
        Call::Writev => of(Engine::Vsync, Write, CallPlace::Position, None),
        Call::Preadv => of(Engine::Pvsync, Read, two(second, third), None),
        Call::Pwritev => of(Engine::Pvsync, Write, two(second, third), None),
        Call::Preadv2 => of(Engine::Pvsync2, Read, two(second, third), None),
        Call::Pwritev2 => {
            let synchronous = fourth & SYNCHRONOUS != 0;
            Request { synchronous, ..of(Engine::Pvsync2, Write, two(second, third), None) }
        }
        Call::Allocate if second & PUNCH_HOLE != 0 => {
            of(Engine::Sync, Asked::Discard, CallPlace::At(third), Some(fourth))
        }
        Call::Allocate => of(Engine::Sync, Asked::Allocate, CallPlace::At(third), Some(fourth)),
        Call::Sync(how) => of(Engine::Sync, Asked::Sync(how), CallPlace::At(0), Some(0)),
        other => unreachable!("{other:?} is no operation of a file"),
    }
}

impl Follower {
    pub(super) fn operation(&mut self, call: Call, end: &End<'_>, to: &mut dyn Recording) {
        let Some((file, in_flight)) = end.begun.file else { return };
        let request = request(call, &end.begun.values);
        let moves = matches!(request.asked, Asked::Read | Asked::Write);
        let done = end.answer.max(0).cast_unsigned();
        let mut operation = end.operation(file, request.engine, request.asked);
        operation.synchronous = request.synchronous;
        operation.in_flight = Ok(in_flight);
        operation.offset_bytes = match request.place {
            CallPlace::At(offset) => Ok(offset),
            CallPlace::Position => self.position(end, file, request.asked, done),
        };
        operation.done_bytes = Ok(if moves { done } else { 0 });
        operation.asked_bytes = match request.length {
            Some(length) => Ok(length),
            // The lengths of a vector are behind a pointer; what was done of them stands for them.
            None if done > 0 => Ok(done),
            None => Err(Unknown::NotRecorded),
        };
        to.operation(&operation);
    }

    /// Where a call began that has no place of its own.
    fn position(&mut self, end: &End<'_>, file: FileNumber, asked: Asked, done: u64) -> Known<u64> {
        let open = end.begun.open?;
        if !self.has_places(file) {
            return Err(Unknown::NotRecorded);
        }
        let is_appending = self.files.get(file).is_some_and(|file| file.append == Ok(true));
        if is_appending && asked == Asked::Write {
            // At the end, wherever that was.
            return Err(Unknown::NotRecorded);
        }
        let (start_ns, end_ns) = (end.begun.start_ns, end.event.time_ns);
        let found = self.descriptors.advance(open, start_ns, end_ns, done);
        if found.is_err() {
            let descriptor = u32::try_from(end.begun.values[0] & 0xFFFF_FFFF).unwrap_or(0);
            self.descriptors.look_again(open, end.process, descriptor);
        }
        found
    }

    /// Data that go from one file to another within the kernel: what it took is a read of the one
    /// and a write of the other, where these are files.
    pub(super) fn spliced(&mut self, call: Call, end: &End<'_>, to: &mut dyn Recording) {
        let [from, into, length, from_at, into_at] = end.begun.values;
        let done = end.answer.max(0).cast_unsigned();
        let sides = [from, into].map(|descriptor| {
            let descriptor = u32::try_from(descriptor & 0xFFFF_FFFF).unwrap_or(u32::MAX);
            let open = self.descriptors.get(end.process, descriptor, &mut self.files, to);
            let file = match open {
                Ok(open) => self.descriptors.file(open),
                Err(why) => self.unnamed(why, to),
            };
            (open, file)
        });
        let are_files = self.are_spliced_files(call, sides.map(|(_, file)| file));
        self.splices_unseen += u64::from(are_files.contains(&None));
        let places = [(from_at, Asked::Read), (into_at, Asked::Write)];
        for (((open, file), (at, asked)), is_file) in sides.into_iter().zip(places).zip(are_files) {
            if is_file != Some(true) {
                continue;
            }
            let mut operation = end.operation(file, Engine::Splice, asked);
            // A pointer to the place, or none: from where the position is.
            operation.offset_bytes = match (at, open) {
                (0, Ok(open)) => {
                    self.descriptors.advance(open, end.begun.start_ns, end.event.time_ns, done)
                }
                (0, Err(why)) => Err(why),
                _ => Err(Unknown::Splice),
            };
            operation.asked_bytes = Ok(length);
            operation.done_bytes = Ok(done);
            to.operation(&operation);
        }
    }

    /// Whether what is on each side of a splice is a file; `None` where nobody can know.
    fn are_spliced_files(&self, call: Call, files: [FileNumber; 2]) -> [Option<bool>; 2] {
        let is_known = files.map(|file| {
            let file = self.files.get(file).filter(|file| file.path.is_ok())?;
            Some(matches!(file.kind, FileKind::Regular | FileKind::BlockDevice))
        });
        // By what these calls take (copy_file_range(2), sendfile(2), splice(2)).
        match (call, is_known) {
            (Call::Copy, [from, into]) => [from.or(Some(true)), into.or(Some(true))],
            (Call::Send, [from, into]) => [from.or(Some(true)), into],
            // One of both is a pipe.
            (_, [None, Some(true)]) => [Some(false), Some(true)],
            (_, [Some(true), None]) => [Some(true), Some(false)],
            (_, known) => known,
        }
    }

    /// A call that had not ended when the recording did.
    pub(super) fn unended(&mut self, thread: u32, begun: &Begun) -> Option<FileOperation> {
        let call = CALLS[begun.row].call;
        let (file, in_flight) = begun.file.filter(|_| call.is_operation())?;
        let process = self.threads.process(thread)?;
        let request = request(call, &begun.values);
        Some(FileOperation {
            start_ns: begun.start_ns,
            duration_ns: Err(Unknown::NotEnded),
            process,
            thread,
            file,
            engine: request.engine,
            asked: request.asked,
            offset_bytes: match request.place {
                CallPlace::At(offset) => Ok(offset),
                CallPlace::Position => Err(Unknown::NotEnded),
            },
            asked_bytes: request.length.ok_or(Unknown::NotEnded),
            done_bytes: Err(Unknown::NotEnded),
            synchronous: request.synchronous,
            in_flight: Ok(in_flight),
            error: 0,
        })
    }
}
