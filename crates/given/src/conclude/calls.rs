//! What system calls say of how a program reads and writes.

use std::collections::{BTreeMap, BTreeSet};

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::{Conclusions, span};
use crate::piece::{Call, Piece, What};
use crate::rules;

/// Share of all calls from which on they are worth a sentence: programs read a few files to start.
const WORTH: f64 = 0.1;
/// Share of the writes that are synced from which on each one is said to be.
const EACH: f64 = 0.95;

/// How a program submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// pread, pwrite: the call has the offset.
    Positioned,
    /// read, write.
    Plain,
    /// `io_submit`.
    Aio,
    /// `io_uring_enter`.
    Ring,
}

impl Way {
    /// As fio calls it.
    fn engine(self) -> &'static str {
        match self {
            Way::Positioned => "psync",
            Way::Plain => "sync",
            Way::Aio => "libaio",
            Way::Ring => "io_uring",
        }
    }
}

/// Data calls in the order of the text.
struct Data<'a> {
    call: &'a Call,
    lines: (u32, u32),
    way: Way,
    /// Bytes that were moved, where the call says so.
    bytes: Option<u64>,
    is_write: bool,
    /// The next call on its file is a sync.
    is_synced: bool,
}

/// A file of a process.
type File = (Option<u32>, Option<i64>);

fn file_of(call: &Call) -> File {
    (call.process, call.file)
}

pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    let calls: Vec<(&Call, (u32, u32))> = pieces
        .iter()
        .filter_map(|piece| match &piece.what {
            What::Call(call) => Some((call, piece.lines)),
            _ => None,
        })
        .collect();
    // The next call on the same file is known from the end.
    let mut next: BTreeMap<File, &str> = BTreeMap::new();
    let mut data: Vec<Data<'_>> = Vec::new();
    for (call, lines) in calls.into_iter().rev() {
        let behind = next.insert(file_of(call), call.name.as_str());
        data.extend(of_call(call, lines, behind));
    }
    data.reverse();
    let moves = data.iter().filter(|it| it.moved() > 0).count();
    let is_worth = |count: usize| count as f64 >= moves as f64 * WORTH;
    let synced = synced(&data, found);
    if pieces.iter().any(|piece| piece.what == What::Overlapped) {
        // Several are in flight at once, whoever has made them.
        return;
    }
    for way in [Way::Positioned, Way::Plain, Way::Aio, Way::Ring] {
        let is_left =
            |it: &&Data<'_>| it.way == way && !(it.is_write && synced.contains(&file_of(it.call)));
        let of_way: Vec<&Data<'_>> = of_large_files(data.iter().filter(is_left).collect());
        if is_worth(of_way.iter().filter(|it| it.moved() > 0).count()) {
            one_at_a_time(way, &of_way, found);
        }
    }
}

impl Data<'_> {
    /// How many requests it puts in flight, less those that it waits for.
    fn in_flight(&self) -> i64 {
        let waited = i64::try_from(self.call.asked.unwrap_or(0)).unwrap_or(0);
        match (self.way, self.call.name.as_str()) {
            (Way::Positioned | Way::Plain, _) => 0,
            (Way::Aio, "io_submit") => self.call.result,
            (Way::Aio, _) => -self.call.result,
            (Way::Ring, _) => self.call.result - waited,
        }
    }

    /// Requests that it makes.
    fn moved(&self) -> i64 {
        match (self.way, self.call.name.as_str()) {
            (Way::Positioned | Way::Plain, _) => 1,
            (Way::Aio, "io_submit") | (Way::Ring, _) => self.call.result,
            (Way::Aio, _) => 0,
        }
    }
}

/// Without files of which little is read or written. Calls that name no size are all kept.
fn of_large_files<'a, 'b>(data: Vec<&'a Data<'b>>) -> Vec<&'a Data<'b>> {
    let mut of_file: BTreeMap<File, u64> = BTreeMap::new();
    for it in &data {
        let bytes = of_file.entry(file_of(it.call)).or_default();
        *bytes = bytes.saturating_add(it.bytes.unwrap_or(0));
    }
    let all = of_file.values().fold(0, |all: u64, bytes| all.saturating_add(*bytes));
    let is_large = |it: &&Data<'_>| of_file[&file_of(it.call)] as f64 >= all as f64 * WORTH;
    data.into_iter().filter(is_large).collect()
}

/// A call that moves data; `next` is the call behind it on its file.
fn of_call<'a>(call: &'a Call, lines: (u32, u32), next: Option<&str>) -> Option<Data<'a>> {
    let (way, is_write) = match call.name.as_str() {
        "pread64" | "preadv" | "preadv2" => (Way::Positioned, false),
        "pwrite64" | "pwritev" | "pwritev2" => (Way::Positioned, true),
        "read" | "readv" => (Way::Plain, false),
        "write" | "writev" => (Way::Plain, true),
        "io_submit" | "io_getevents" | "io_pgetevents" => (Way::Aio, false),
        "io_uring_enter" => (Way::Ring, false),
        _ => return None,
    };
    let moves = matches!(way, Way::Positioned | Way::Plain);
    // The end of a file moves nothing.
    if call.result < i64::from(moves) {
        return None;
    }
    let is_synced = is_write && matches!(next, Some("fsync" | "fdatasync"));
    let bytes = if moves { u64::try_from(call.result).ok() } else { None };
    Some(Data { call, lines, way, bytes, is_write, is_synced })
}

/// Files whose writes each wait for the medium.
fn synced(data: &[Data<'_>], found: &mut Conclusions) -> BTreeSet<File> {
    let writes: Vec<&Data<'_>> = data.iter().filter(|it| it.is_write).collect();
    let mut of_file: BTreeMap<File, (usize, usize)> = BTreeMap::new();
    for it in &writes {
        let (all, synced) = of_file.entry(file_of(it.call)).or_default();
        *all += 1;
        *synced += usize::from(it.is_synced);
    }
    // One may be cut off from its sync where the text ends.
    let is_each = |(all, synced): &(usize, usize)| {
        *synced > 0
            && *synced as f64 >= *all as f64 * EACH
            && *all as f64 >= writes.len() as f64 * WORTH
    };
    let files: BTreeSet<File> =
        of_file.iter().filter(|(_, counts)| is_each(counts)).map(|(file, _)| *file).collect();
    let of_them: Vec<&&Data<'_>> =
        writes.iter().filter(|it| files.contains(&file_of(it.call))).collect();
    if of_them.is_empty() {
        return files;
    }
    let mut sizes: Vec<u64> = of_them.iter().filter_map(|it| it.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let named = match &sizes[..] {
        [one] => format::binary_size(*one),
        [one, other] => {
            format!("{} and {}", format::binary_size(*one), format::binary_size(*other))
        }
        [least, .., most] => {
            format!("{} to {}", format::binary_size(*least), format::binary_size(*most))
        }
        [] => return files,
    };
    let all_files = files.len() == of_file.len();
    let what = match (all_files, files.iter().next()) {
        (false, Some((_, Some(file)))) if files.len() == 1 => {
            format!("each write to file {file}, of {named}, is followed by a sync")
        }
        _ => format!("each write of {named} is followed by a sync"),
    };
    let largest = sizes.last().copied().unwrap_or_default();
    let sizes: Vec<String> = sizes.iter().take(2).map(ToString::to_string).collect();
    let action = format!(
        "to measure the device as this load does: fio with rw=write, bs={}, ioengine=psync, \
         iodepth=1, fdatasync=1",
        sizes.join(" or ")
    );
    let mut finding = Finding::new(&rules::SYNC_EACH, Certainty::Measured, what)
        .because("one is in flight at a time, and each waits for the medium")
        .with_number("writes", of_them.len() as f64, Unit::Count)
        .with_number("largest write", largest as f64, Unit::Bytes)
        .with_action(action);
    finding.caveat = (of_them.len() < 10).then(|| few(of_them.len(), "write", "writes"));
    found.add(span(of_them.iter().map(|it| it.lines)), finding);
    files
}

fn few(count: usize, one: &str, many: &str) -> String {
    let verb = if count == 1 { "was" } else { "were" };
    let count = format::counted(count as u64, one, many);
    format!("{count} {verb} sent: more may differ")
}

fn one_at_a_time(way: Way, data: &[&Data<'_>], found: &mut Conclusions) {
    // Threads work beside each other, and a call that submits need not wait.
    let processes: BTreeSet<Option<u32>> = data.iter().map(|it| it.call.process).collect();
    let (mut in_flight, mut most) = (0, 0);
    for it in data {
        in_flight += it.in_flight();
        most = most.max(in_flight);
    }
    let submits: Vec<&&Data<'_>> = data.iter().filter(|it| it.moved() > 0).collect();
    if submits.is_empty() || processes.len() > 1 || most > 1 || in_flight < 0 {
        return;
    }
    let mut sizes: Vec<u64> = submits.iter().filter_map(|it| it.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let size = match &sizes[..] {
        [size] => format!(" of {}", bytes(*size)),
        [] => String::new(),
        _ => format!(" of {} to {}", bytes(sizes[0]), bytes(sizes[sizes.len() - 1])),
    };
    let engine = way.engine();
    let what = format!("requests{size} one at a time, by {engine}");
    let why = match way {
        Way::Positioned | Way::Plain => "a call returns before the next one begins: depth 1",
        Way::Aio | Way::Ring => "each one is waited for before the next: depth 1",
    };
    let mut finding = Finding::new(&rules::ONE_AT_A_TIME, Certainty::Measured, what)
        .because(why)
        .with_number("calls", submits.len() as f64, Unit::Count);
    let mut bounds = Vec::new();
    if sizes.iter().any(|size| !size.is_multiple_of(512)) {
        bounds.push("a size that is no multiple of 512 bytes is refused by direct I/O".to_owned());
    }
    if way == Way::Ring {
        bounds.push("strace does not see the sizes of requests of io_uring".to_owned());
    }
    if submits.len() < 10 {
        bounds.push(few(submits.len(), "call", "calls"));
    }
    finding.caveat = (!bounds.is_empty()).then(|| bounds.join("; "));
    found.add(span(submits.iter().map(|it| it.lines)), finding);
}

/// Odd sizes are said exactly.
fn bytes(size: u64) -> String {
    if size.is_multiple_of(512) { format::binary_size(size) } else { format!("{size} bytes") }
}
