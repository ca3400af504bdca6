//! What system calls say of how a program reads and writes.

use std::collections::BTreeMap;

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

pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    let calls: Vec<(&Call, (u32, u32))> = pieces
        .iter()
        .filter_map(|piece| match &piece.what {
            What::Call(call) => Some((call, piece.lines)),
            _ => None,
        })
        .collect();
    // The next call on the same file is known from the end.
    let mut next: BTreeMap<Option<i64>, &str> = BTreeMap::new();
    let mut data: Vec<Data<'_>> = Vec::new();
    for (call, lines) in calls.into_iter().rev() {
        let behind = next.insert(call.file, call.name.as_str());
        data.extend(of_call(call, lines, behind));
    }
    data.reverse();
    let is_worth = |count: usize| count as f64 >= data.len() as f64 * WORTH;
    let has_synced = synced(&data, found);
    for way in [Way::Positioned, Way::Plain, Way::Aio, Way::Ring] {
        let is_left = |it: &&Data<'_>| {
            it.way == way && !(has_synced && it.is_write && way == Way::Positioned)
        };
        let of_way: Vec<&Data<'_>> = of_large_files(data.iter().filter(is_left).collect());
        if is_worth(of_way.len()) {
            one_at_a_time(way, &of_way, found);
        }
    }
}

/// Without files of which little is read or written. Calls that name no size are all kept.
fn of_large_files<'a, 'b>(data: Vec<&'a Data<'b>>) -> Vec<&'a Data<'b>> {
    let mut of_file: BTreeMap<Option<i64>, u64> = BTreeMap::new();
    for it in &data {
        let bytes = of_file.entry(it.call.file).or_default();
        *bytes = bytes.saturating_add(it.bytes.unwrap_or(0));
    }
    let all = of_file.values().fold(0, |all: u64, bytes| all.saturating_add(*bytes));
    let is_large = |it: &&Data<'_>| of_file[&it.call.file] as f64 >= all as f64 * WORTH;
    data.into_iter().filter(is_large).collect()
}

/// A call that moves data; `next` is the call behind it on its file.
fn of_call<'a>(call: &'a Call, lines: (u32, u32), next: Option<&str>) -> Option<Data<'a>> {
    let (way, is_write) = match call.name.as_str() {
        "pread64" | "preadv" | "preadv2" => (Way::Positioned, false),
        "pwrite64" | "pwritev" | "pwritev2" => (Way::Positioned, true),
        "read" | "readv" => (Way::Plain, false),
        "write" | "writev" => (Way::Plain, true),
        "io_submit" => (Way::Aio, false),
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

/// Writes that each wait for the medium; whether there are.
fn synced(data: &[Data<'_>], found: &mut Conclusions) -> bool {
    let writes: Vec<&Data<'_>> =
        data.iter().filter(|it| it.is_write && it.way == Way::Positioned).collect();
    let mut sizes: Vec<u64> =
        writes.iter().filter(|it| it.is_synced).filter_map(|it| it.bytes).collect();
    // One may be cut off from its sync where the text ends.
    let is_each = sizes.len() as f64 >= writes.len() as f64 * EACH;
    if sizes.is_empty() || !is_each || (sizes.len() as f64) < data.len() as f64 * WORTH {
        return false;
    }
    sizes.sort_unstable();
    sizes.dedup();
    let all: Vec<String> = sizes.iter().map(|size| format::binary_size(*size)).collect();
    let what = format!("each write of {} is followed by a sync", all.join(" and "));
    let why = "one is in flight at a time, and each waits for the medium";
    let largest = sizes.last().copied().unwrap_or_default();
    let action = format!(
        "to measure the device as this load does: fio with rw=write, bs={}, ioengine=psync, \
         iodepth=1, fdatasync=1",
        sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
    );
    let mut finding = Finding::new(&rules::SYNC_EACH, Certainty::Measured, what)
        .because(why)
        .with_number("writes", writes.len() as f64, Unit::Count)
        .with_number("largest write", largest as f64, Unit::Bytes)
        .with_action(action);
    finding.caveat = (writes.len() < 10).then(|| few(writes.len(), "write", "writes"));
    found.add(span(writes.iter().map(|it| it.lines)), finding);
    true
}

fn few(count: usize, one: &str, many: &str) -> String {
    let verb = if count == 1 { "was" } else { "were" };
    let count = format::counted(count as u64, one, many);
    format!("{count} {verb} sent: more may differ")
}

fn one_at_a_time(way: Way, data: &[&Data<'_>], found: &mut Conclusions) {
    let submitted = |it: &&Data<'_>| match way {
        Way::Positioned | Way::Plain => 1,
        Way::Aio => it.call.result,
        // Its second argument is how many are submitted; calls that submit none wait.
        Way::Ring => it.call.result,
    };
    let submits: Vec<&&Data<'_>> = data.iter().filter(|it| submitted(it) > 0).collect();
    if submits.is_empty() || submits.iter().any(|it| submitted(it) > 1) {
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
        Way::Positioned | Way::Plain => "each call waits for its data: depth 1",
        Way::Aio | Way::Ring => "each call submits one, and the next one waits for it: depth 1",
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
