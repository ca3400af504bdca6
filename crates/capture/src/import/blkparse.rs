//! What `blkparse` prints of a trace of the block layer, in its own format.
//!
//! An operation is a request as the device gets it: from when its first part was queued (Q) until
//! it was completed (C), in flight from when it was issued (D). A device that is given to no
//! driver, as of the device mapper, has no D; there Q counts. Places are those on the device.

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;

use super::super::operation::{
    Asked, Engine, FileKind, FileNumber, FileOperation, OpenedFile, Recording, SyncCall, Unknown,
};
use super::{Imported, KEPT_MAX, Lines, RecordingError, nanoseconds};

/// What blkparse counts places in.
const SECTOR: u64 = 512;
/// In the place of a sector: a flush has none.
const NOWHERE: u64 = u64::MAX;

/// Hands all requests of `input` to `recording`.
pub fn import(
    input: impl BufRead,
    recording: &mut dyn Recording,
) -> Result<Imported, RecordingError> {
    let mut lines = Lines::of(input);
    let mut trace = Trace { devices: HashMap::new(), recording, operations: 0 };
    while let Some(line) = lines.next()? {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // Behind the events stands a summary.
        if words.first().is_some_and(|it| is_device(it)) {
            trace.event(&words).map_err(|what| lines.error(what))?;
        }
    }
    trace.finish();
    let operations = trace.operations;
    if operations == 0 {
        let hint = "make one with `blktrace` and `blkparse -i TRACE`";
        return Err(RecordingError::Nothing { lines: lines.number, hint });
    }
    let unseen = "a block trace has the requests that devices get: no calls, no files, and not \
                  what the page cache answers or merges";
    Ok(Imported { lines: lines.number, operations, unseen: vec![unseen.to_owned()] })
}

/// `8,16`.
pub(super) fn is_device(word: &str) -> bool {
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    word.split_once(',').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct Request {
    start_ns: u64,
    process: u32,
    bytes: u64,
    in_flight: u32,
}

/// What tells requests on one place apart: reads, writes, discards and flushes.
type Place = (u64, Asked);

#[derive(Debug)]
struct Device {
    file: FileNumber,
    queued: BTreeMap<u64, Vec<(Asked, Request)>>,
    waiting: usize,
    issued: HashMap<Place, Request>,
}

struct Trace<'a> {
    devices: HashMap<String, Device>,
    recording: &'a mut dyn Recording,
    operations: u64,
}

/// One line.
struct Event {
    at_ns: u64,
    process: u32,
    asked: Asked,
    is_forced: bool,
    sector: u64,
    bytes: u64,
    error: i32,
}

impl Trace<'_> {
    /// `8,0  3  1  0.000000000  697  Q  WS 223490 + 8 [name]`.
    fn event(&mut self, words: &[&str]) -> Result<(), String> {
        let [device, _cpu, _number, time, process, action, flags, rest @ ..] = words else {
            return Ok(());
        };
        if !matches!(*action, "Q" | "D" | "C") {
            return Ok(());
        }
        let number = |text: &str, what: &str| {
            text.parse::<u64>().map_err(|_| format!("{what} {text:?} is not a number"))
        };
        let at_ns =
            nanoseconds(time).ok_or_else(|| format!("the time {time:?} is not a number"))?;
        let process = u32::try_from(number(process, "the process")?)
            .map_err(|_| format!("{process} is not a process number"))?;
        let has_sectors = matches!(rest, [_, "+", _, ..]);
        let Some((asked, is_forced)) = meaning(flags, has_sectors) else { return Ok(()) };
        let (sector, bytes) = match rest {
            [sector, "+", count, ..] => {
                let bytes = number(count, "the length")?.checked_mul(SECTOR);
                let bytes = bytes.ok_or_else(|| format!("the length {count} is too large"))?;
                (number(sector, "the sector")?, bytes)
            }
            _ => (NOWHERE, 0),
        };
        let last = rest.last().map_or("", |it| it.trim_matches(['[', ']']));
        let error = if *action == "C" { errno(last) } else { 0 };
        let event = Event { at_ns, process, asked, is_forced, sector, bytes, error };
        self.device(device)?;
        match *action {
            "Q" => self.queued(device, &event),
            "D" => self.issued(device, &event),
            _ => {
                self.completed(device, &event);
                Ok(())
            }
        }
    }

    fn device(&mut self, name: &str) -> Result<(), String> {
        if self.devices.contains_key(name) {
            return Ok(());
        }
        if self.devices.len() >= KEPT_MAX {
            return Err(format!("it names more than {KEPT_MAX} devices"));
        }
        let file = FileNumber::try_from(self.devices.len()).unwrap_or(FileNumber::MAX);
        let opened = OpenedFile {
            path: Ok(format!("device {name}")),
            kind: FileKind::BlockDevice,
            deleted: false,
            direct: Err(Unknown::NotRecorded),
            synchronous: Err(Unknown::NotRecorded),
            append: Err(Unknown::NotRecorded),
            size_bytes: Err(Unknown::NotRecorded),
        };
        self.recording.file(file, &opened);
        let (queued, issued) = (BTreeMap::new(), HashMap::new());
        self.devices.insert(name.to_owned(), Device { file, queued, waiting: 0, issued });
        Ok(())
    }

    fn queued(&mut self, device: &str, event: &Event) -> Result<(), String> {
        let Some(device) = self.devices.get_mut(device) else { return Ok(()) };
        if device.waiting >= KEPT_MAX {
            return Err(format!("more than {KEPT_MAX} requests wait at once"));
        }
        device.waiting += 1;
        let in_flight = u32::try_from(device.waiting).unwrap_or(u32::MAX);
        let Event { at_ns: start_ns, process, bytes, .. } = *event;
        let request = Request { start_ns, process, bytes, in_flight };
        device.queued.entry(event.sector).or_default().push((event.asked, request));
        Ok(())
    }

    fn issued(&mut self, device: &str, event: &Event) -> Result<(), String> {
        let Some(device) = self.devices.get_mut(device) else { return Ok(()) };
        // Parts that were merged are one request, which began with the first of them.
        let first = device.take_queued(event);
        let place = (event.sector, event.asked);
        if device.issued.len() >= KEPT_MAX {
            return Err(format!("more than {KEPT_MAX} requests are in flight at once"));
        }
        let around = device.issued.len() - usize::from(device.issued.contains_key(&place));
        device.issued.insert(
            place,
            Request {
                start_ns: first.map_or(event.at_ns, |it| it.start_ns),
                process: first.map_or(event.process, |it| it.process),
                bytes: event.bytes,
                in_flight: u32::try_from(around + 1).unwrap_or(u32::MAX),
            },
        );
        Ok(())
    }

    fn completed(&mut self, name: &str, event: &Event) {
        let Some(device) = self.devices.get_mut(name) else { return };
        let request = device.issued.remove(&(event.sector, event.asked));
        // One that was on its way when the trace began says too little.
        let Some(request) = request.or_else(|| device.take_queued(event)) else { return };
        let file = device.file;
        let duration_ns = Ok(event.at_ns.saturating_sub(request.start_ns));
        let done = if event.error == 0 { event.bytes } else { 0 };
        let operation = operation(file, (event.sector, event.asked), &request);
        self.operations += 1;
        self.recording.operation(&FileOperation {
            duration_ns,
            done_bytes: Ok(done),
            synchronous: event.is_forced,
            error: event.error,
            ..operation
        });
    }

    fn finish(&mut self) {
        let mut left: Vec<FileOperation> = Vec::new();
        for device in self.devices.values() {
            let of = |(place, request): (&Place, &Request)| operation(device.file, *place, request);
            left.extend(device.issued.iter().map(of));
        }
        left.sort_by_key(|it| (it.start_ns, it.file, it.offset_bytes));
        for operation in &left {
            self.operations += 1;
            self.recording.operation(operation);
        }
    }
}

impl Device {
    /// Takes all that was queued for the place of a request, and gives what was queued first.
    fn take_queued(&mut self, event: &Event) -> Option<Request> {
        let end = event.sector.saturating_add((event.bytes / SECTOR).max(1));
        let places: Vec<u64> = self.queued.range(event.sector..end).map(|(at, _)| *at).collect();
        let nowhere = (event.sector == NOWHERE).then_some(NOWHERE);
        let mut first: Option<Request> = None;
        for place in places.into_iter().chain(nowhere) {
            let Some(waiting) = self.queued.get_mut(&place) else { continue };
            let Some(at) = waiting.iter().position(|(asked, _)| *asked == event.asked) else {
                continue;
            };
            let (_, request) = waiting.remove(at);
            if waiting.is_empty() {
                self.queued.remove(&place);
            }
            self.waiting -= 1;
            if first.is_none_or(|it| request.start_ns < it.start_ns) {
                first = Some(request);
            }
        }
        first
    }
}

/// A request that has not ended.
fn operation(file: FileNumber, (sector, asked): Place, request: &Request) -> FileOperation {
    let is_sync = matches!(asked, Asked::Sync(_));
    FileOperation {
        start_ns: request.start_ns,
        duration_ns: Err(Unknown::NotEnded),
        process: request.process,
        thread: request.process,
        file,
        engine: Engine::Unknown,
        asked,
        offset_bytes: if is_sync { Ok(0) } else { Ok(sector.saturating_mul(SECTOR)) },
        asked_bytes: Ok(request.bytes),
        done_bytes: Err(Unknown::NotEnded),
        synchronous: false,
        in_flight: Ok(request.in_flight),
        error: 0,
    }
}

/// What the letters say (blkparse(1), "RWBS"), and whether a write is forced to the medium. An F in
/// front is a flush before the data, and all of a request without any; one behind the W is FUA.
fn meaning(flags: &str, has_sectors: bool) -> Option<(Asked, bool)> {
    let data = flags.trim_start_matches('F');
    if data.len() < flags.len() && !has_sectors {
        return Some((Asked::Sync(SyncCall::Fsync), false));
    }
    match data.chars().next()? {
        'R' => Some((Asked::Read, false)),
        'W' => Some((Asked::Write, data.contains('F'))),
        'D' => Some((Asked::Discard, false)),
        _ => None,
    }
}

/// Errors are printed as the 16 bits that they are kept in.
fn errno(text: &str) -> i32 {
    let number: i32 = text.parse().unwrap_or(0);
    if number > 0x7fff {
        0x1_0000_i32.saturating_sub(number).max(1)
    } else {
        number.saturating_abs()
    }
}
