//! What samples of `/proc` show, and what they cannot show, in sentences.

use base::finding::{Certainty, Finding, Severity, Unit};
use base::format::{count, counted, duration, percent, size};

use super::{Position, Sampled, SampledFile, Totals};
use crate::rules;

/// The most files with a finding.
const SENTENCES: usize = 12;
/// From this share on there is a finding.
const MUCH: f64 = 0.1;
/// Fewer bytes than this are not reported.
const MUCH_BYTES: u64 = 1 << 20;

/// What samples of `/proc` cannot show, in sentences.
pub fn unseen(sampled: &Sampled) -> Vec<String> {
    let apart = sampled.seconds / sampled.looks.saturating_sub(1).max(1) as f64;
    let mut unseen = vec![
        "not known: the calls, their sizes, order and depth, pauses and syncs".to_owned(),
        "pread, pwrite, mapped files, io_uring and libaio move no position: at most the counters \
         of the process include them"
            .to_owned(),
        format!("files that are open for less than {} may be missing", duration(apart)),
    ];
    if sampled.has_rings {
        unseen.push("a process uses io_uring: its requests are not in the counted calls".into());
    }
    if sampled.files_left_out > 0 {
        let files = counted(sampled.files_left_out, "file is", "files are");
        unseen.push(format!("{files} left out, because there are too many"));
    }
    if sampled.refused > 0 {
        let others = counted(sampled.refused, "child process belongs", "child processes belong");
        unseen.push(format!("{others} to another user, and these numbers leave it out"));
    }
    unseen
}

/// The findings; the first says that nothing was recorded.
pub fn findings(sampled: &Sampled, why: &str) -> Vec<Finding> {
    let what = format!("no calls were recorded: {why}");
    let fallback = Finding::new(&rules::UNSEEN, Certainty::Told, what)
        .severe(Severity::Warning)
        .because("these are samples of /proc");
    let mut found = vec![fallback];
    found.extend(of_totals(&sampled.totals));
    let moved = sampled.files.iter().filter(|it| it.is_place()).filter_map(of_file);
    found.extend(moved.take(SENTENCES));
    found.extend(beside(sampled));
    let unseen = unseen(sampled).into_iter();
    found.extend(unseen.map(|it| Finding::new(&rules::UNSEEN, Certainty::Unknown, it)));
    found
}

fn of_totals(totals: &Totals) -> Option<Finding> {
    let part = |calls: u64, bytes: u64, done: &str| {
        let calls = counted(calls, "call has", "calls have");
        format!("{calls} {done} {}", size(bytes))
    };
    let parts: Vec<String> = [
        (totals.read_calls, totals.read_bytes, "read"),
        (totals.write_calls, totals.written_bytes, "written"),
    ]
    .into_iter()
    .filter(|(calls, _, _)| *calls > 0)
    .map(|(calls, bytes, done)| part(calls, bytes, done))
    .collect();
    if parts.is_empty() {
        return None;
    }
    let what = format!("{}, pipes and sockets included", parts.join(", "));
    let finding = Finding::new(&rules::TOTALS, Certainty::Measured, what);
    Some(
        finding
            .with_number("calls that read", totals.read_calls as f64, Unit::Count)
            .with_number("read", totals.read_bytes as f64, Unit::Bytes)
            .with_number("calls that write", totals.write_calls as f64, Unit::Count)
            .with_number("written", totals.written_bytes as f64, Unit::Bytes),
    )
}

fn of_file(file: &SampledFile) -> Option<Finding> {
    let Position { forward_bytes, forward, backward } = file.position?;
    let looks = forward + backward;
    if looks == 0 {
        return None;
    }
    let way = match (file.reads, file.writes) {
        (true, false) => "open for reading: ",
        (false, true) => "open for writing: ",
        _ => "",
    };
    let name = crate::words::short_path(&file.path);
    let order = match backward {
        0 if looks == 1 => "in one sample".to_owned(),
        0 => format!("never back in {} samples: in order, as far as samples show", count(looks)),
        _ => format!("back in {} of {} samples: not in order", count(backward), count(looks)),
    };
    let what =
        format!("{name}: {way}its position moved forward by {}, {order}", size(forward_bytes));
    let finding = Finding::new(&rules::POSITION, Certainty::Measured, what);
    Some(
        finding
            .with_number("moved on", forward_bytes as f64, Unit::Bytes)
            .with_number("looks with a move on", forward as f64, Unit::Count)
            .with_number("looks with a move back", backward as f64, Unit::Count),
    )
}

/// Bytes that one of the three sources counts and the others do not.
fn beside(sampled: &Sampled) -> Vec<Finding> {
    let totals = &sampled.totals;
    let called = totals.read_bytes.saturating_add(totals.written_bytes);
    let moved = sampled.files.iter().fold(0, |sum: u64, it| sum.saturating_add(it.forward_bytes()));
    let mut found = Vec::new();
    let mut tell = |rest: u64, of: u64, what: &str| {
        let share = rest as f64 / of.max(1) as f64;
        if rest >= MUCH_BYTES && share >= MUCH {
            let what = format!("{} ({}) {what}", size(rest), percent(share));
            let finding = Finding::new(&rules::BESIDE, Certainty::Inferred, what);
            let finding = finding.with_number("in no other source", rest as f64, Unit::Bytes);
            found.push(finding.with_number("of", of as f64, Unit::Bytes));
        }
    };
    tell(
        called.saturating_sub(moved),
        called,
        "of the bytes of calls moved no sampled position: they went through pread and pwrite, \
         pipes and sockets, or files that no sample found open",
    );
    tell(
        moved.saturating_sub(called),
        moved,
        "of the movement of positions came from no read or write call: it was skipped or \
         spliced",
    );
    tell(
        totals.device_read_bytes.saturating_sub(totals.read_bytes),
        totals.device_read_bytes,
        "of the reads from devices came from no read call: they are read-ahead, or of mapped \
         files, io_uring or libaio",
    );
    tell(
        totals.device_written_bytes.saturating_sub(totals.written_bytes),
        totals.device_written_bytes,
        "of the writes to devices came from no write call: they are of mapped files, io_uring or \
         libaio",
    );
    found
}
