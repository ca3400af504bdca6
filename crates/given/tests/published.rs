//! What five people pasted, and what they concluded. Sources: the accounts of `docs/replay.md`; the
//! files in `published` are what their tools printed. The numbers of `tape-drive.txt`, `btape.txt`
//! and of the files in `printed` were made up.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use given::conclude::{Conclusions, conclude};
use given::piece::What;
use given::read::read;

fn pasted() -> BTreeMap<String, String> {
    texts("published")
}

/// Outputs of other programs, with numbers that were made up.
fn printed() -> BTreeMap<String, String> {
    texts("printed")
}

fn texts(folder: &str) -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    files.collect()
}

fn of(names: &[&str]) -> Conclusions {
    let all: BTreeMap<String, String> = pasted().into_iter().chain(printed()).collect();
    let text: String = names.iter().map(|name| all[*name].as_str()).collect();
    let found = read(&text);
    assert_eq!(found.refused, [], "{names:?}");
    conclude(&found.pieces)
}

/// One of the findings has each of these texts.
fn assert_shown(found: &Conclusions, texts: &[&str]) {
    let lines: Vec<String> = found.conclusions.iter().map(|it| it.finding.line()).collect();
    for text in texts {
        assert!(lines.iter().any(|line| line.contains(text)), "{text}: {lines:#?}");
    }
}

#[test]
fn block_size_on_tape() {
    let found = of(&["tape-block-size.txt"]);
    assert_shown(
        &found,
        &[
            "blocks of 64 KiB are enough for SLES15SP2.iso: 287 MB/s",
            "blocks of 1 MiB were the fastest for DISKD0057: 474 MB/s",
            "3.3 times as fast as tar's own 10 KiB",
            "2.2 times as fast as tar's own 10 KiB",
            "the drive most likely compresses DISKD0057",
            "one run of each",
        ],
    );
    assert_eq!(found.conclusions.len(), 5);
}

#[test]
fn double_buffering() {
    let found = of(&["double-buffer.txt"]);
    assert_shown(
        &found,
        &[
            "two dd obs=512k in front of it save 56.7 s, 29 % of what /dev/tape costs",
            "one dd obs=512k in front of it costs 1 min 08 s",
            "to /dev/null, processor time is nearly all of the pipeline's time: 6 min 55 s in",
        ],
    );
}

#[test]
fn rates_that_cannot_be_right() {
    let found = of(&["read-ahead.txt"]);
    let texts = ["50.5 GB in 17 min 10 s are 49.0 MB/s, not 72.0", "are 344 MB/s, not 223 MB/s"];
    assert_shown(&found, &texts);
    assert_eq!(found.conclusions.len(), 2, "the second run is right in units of 1024");
}

#[test]
fn requests_of_a_device_alone() {
    assert_shown(&of(&["job.fio"]), &["at most: 4 processes with iodepth 8"]);
    assert_shown(&of(&["randrw-8k.fio.txt"]), &["all of its 32 requests of 8 KiB in flight"]);
    assert_shown(&of(&["randrw-8m.fio.txt"]), &["all of its 384 requests of 8 MiB in flight"]);
    let merged = ["86 % of the reads", "91 % of the writes", "8.0 KiB become 58.4 KiB"];
    assert_shown(&of(&["rw-8k.iostat.txt"]), &merged);
    let found = of(&["randrw-8k.iostat.txt"]);
    assert_shown(&found, &["31.7 requests in flight"]);
    assert!(found.missing.iter().any(|it| it.command.contains("the job")), "{found:?}");
    let alone = of(&["small-files-nomerges.iostat.txt"]);
    assert_shown(&alone, &["merging is switched off on sde", "none is merged"]);
    assert_shown(&of(&["small-files.iostat.txt"]), &["99 % of the writes of sde"]);
}

#[test]
fn requests_of_a_device_with_the_job() {
    let found = of(&["job.fio", "randrw-8k.fio.txt", "randrw-8k.iostat.txt"]);
    assert_shown(
        &found,
        &[
            "the requests of sde are the program's: 8 KiB",
            "32 in flight are all that the job offers",
            "whether it takes more is not known",
        ],
    );
    assert!(found.missing.iter().any(|it| it.command.contains("with iodepth=16")), "{found:?}");
    let found = of(&["randrw-8m.fio.txt", "randrw-8m.iostat.txt"]);
    assert_shown(
        &found,
        &["8 MiB are split at 1280 KiB", "the job offers 384 requests at once", "8.6 whole ones"],
    );
    // A job that stands before other requests says nothing of them.
    let found = of(&["randrw-8m.fio.txt", "rw-8k.iostat.txt"]);
    assert!(found.conclusions.iter().all(|it| it.finding.rule != "given.split"), "{found:?}");
}

#[test]
fn what_merging_is_worth() {
    for names in [
        ["small-files.iostat.txt", "small-files-nomerges.iostat.txt"],
        ["small-files-nomerges.iostat.txt", "small-files.iostat.txt"],
    ] {
        let text = "merges off cost sde 117 times the requests and 30 % of the rate";
        assert_shown(&of(&names), &[text]);
    }
}

#[test]
fn calls_of_programs() {
    let one = ["4090 bytes one at a time, by psync", "by sync", "one at a time, by libaio"];
    assert_shown(&of(&["engines.strace.txt"]), &one);
    assert_shown(&of(&["io_uring.strace.txt"]), &["one at a time, by io_uring"]);
    let small = ["each write of 512 bytes is followed by a sync", "ioengine=psync, iodepth=1"];
    assert_shown(&of(&["mariadb.strace.txt"]), &small);
    let pages = ["each write of 8 KiB is followed by a sync", "ioengine=psync, iodepth=1"];
    assert_shown(&of(&["postgresql.strace.txt"]), &pages);
}

#[test]
fn all_of_an_account_in_one_file() {
    let all = pasted();
    let names: Vec<&str> = all
        .keys()
        .map(String::as_str)
        .filter(|name| name.contains("iostat") || name.contains("fio") || name.contains("strace"))
        .collect();
    assert_eq!(names.len(), 12);
    assert_shown(
        &of(&names),
        &[
            "32 in flight are all that the job offers",
            "the requests of sde are the program's",
            "86 % of the reads",
            "8 MiB are split at 1280 KiB",
            "merges off cost sde 117 times the requests and 30 % of the rate",
            "each write of 512 bytes and 8 KiB is followed by a sync",
        ],
    );
}

#[test]
fn a_tape_drive() {
    let found = of(&["tape-drive.txt"]);
    assert_shown(
        &found,
        &[
            "/dev/nst0 writes fixed blocks of 512 bytes",
            "mt -f /dev/nst0 setblk 0",
            "the buffer of /dev/nst0 is off",
            "mt -f /dev/nst0 drvbuffer 1",
            "it asks for cleaning (CLN); it recovered from 7 errors",
            "/dev/nst1 has no tape",
            "the medium in /dev/nst0 is LTO-6: its drives write 160 MB/s at most",
            "the medium in /dev/nst2 is LTO-8",
            "22.0 MB/s is less than the lowest speed of LTO-6: the tape in /dev/nst0 stops",
        ],
    );
    assert_eq!(found.conclusions.len(), 7, "{found:#?}");
    assert!(found.missing.iter().any(|it| it.command.contains("mt -f /dev/nst1")), "{found:?}");
}

#[test]
fn a_tape_drive_of_other_programs() {
    let found = of(&["tape-log.txt"]);
    assert_shown(
        &found,
        &[
            "/dev/nst0 writes fixed blocks of 256 KiB",
            "compression of /dev/nst0 is off",
            "look at /dev/nst0: TapeAlert: Clean Now",
            "the medium in /dev/nst0 is LTO-8",
            "/dev/sg3 compressed what it wrote 2.53 : 1",
            "look at /dev/sg3: TapeAlert: Hard error, Media life",
        ],
    );
    assert_eq!(found.conclusions.len(), 6, "{found:#?}");
}

#[test]
fn programs_of_a_pipeline() {
    let found = of(&["time.txt"]);
    assert_shown(&found, &["gzip keeps a processor busy: 1 min 37 s of", "use pigz in its place"]);
    assert_eq!(found.conclusions.len(), 1, "{found:#?}");
    let found = of(&["time-bash.txt"]);
    assert_shown(&found, &["gzip keeps a processor busy: 6 min 49 s of", "use pigz in its place"]);
}

#[test]
fn a_job_that_failed_after_its_spool_was_written() {
    let found = of(&["spool.txt"]);
    assert_shown(&found, &["the spool went to the tape at 150 MB/s", "the job failed"]);
    assert_eq!(found.conclusions.len(), 2, "{found:#?}");
}

#[test]
fn rates_of_btape() {
    let found = of(&["btape.txt"]);
    assert_shown(
        &found,
        &[
            "the drive compresses: zeros at 306 MB/s, random data at 118 MB/s",
            "blocks of 1 MiB were the fastest for zeros: 306 MB/s",
            "Maximum Block Size = 1048576",
            "blocks of 1 MiB were the fastest for random data: 118 MB/s: 63 KiB gives 55.0 MB/s",
        ],
    );
    assert_eq!(found.conclusions.len(), 3, "{found:#?}");
}

#[test]
fn reports_by_themselves() {
    assert_shown(
        &of(&["totals.txt"]),
        &[
            "tar --totals moved 10.7 GB: 103 MB/s",
            "pv moved 2.09 GB in 10.0 s: 209 MB/s",
            "restic went through 6.01 GB in 1 min 23 s",
            "rsync moved 1.24 MB: 0.012 MB/s",
        ],
    );
    let found = of(&["sar.txt"]);
    let busy = "dev8-0 was busy for 98 % of the time in its busiest interval: 138 MB/s";
    assert_shown(&found, &[busy, "sdb was busy for 82 %", "nvme0n1 was busy for 12 %"]);
    assert_eq!(found.conclusions.len(), 3, "{found:#?}");
    let found = of(&["job-report.txt"]);
    assert_shown(
        &found,
        &[
            "the job moved 35.0 MB/s after compression, and read about 60.7 MB/s: 199 GB",
            "42 % smaller",
        ],
    );
    assert_shown(
        &of(&["lsblk.txt"]),
        &["/srv lies on vg-srv (lvm) on md0 (raid1) on sda2 (part) on sda (disk)"],
    );
}

#[test]
fn outputs_for_programs_are_read_as_their_text_is() {
    let merged = "75 % of the writes of sda are merged: requests of 64.0 KiB become 256.0 KiB";
    assert_shown(&of(&["iostat.json"]), &[merged, "sda has 7.8 requests in flight"]);
    assert_shown(&of(&["fio.json"]), &["the job has all of its 32 requests of 8 KiB in flight"]);
    assert_eq!(of(&["fio-terse.txt"]).conclusions, []);
    // 29 069 each second for 2.15 ms.
    assert_shown(&of(&["fio-2.txt"]), &["has all of its 64 requests of 4 KiB in flight"]);
}

/// A small generator, so that a case is found again by its number.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut columns = 0;
        for word in line.split(' ') {
            if columns > 0 && columns + word.len() > width {
                out.push('\n');
                columns = 0;
            }
            out.push_str(word);
            out.push(' ');
            columns += word.len() + 1;
        }
        out.push('\n');
    }
    out
}

/// Decimals of the other kind, in words that are numbers.
fn other_locale(text: &str) -> String {
    let other = |word: &str| {
        let is_number = word.bytes().all(|it| it.is_ascii_digit() || matches!(it, b'.' | b','));
        let swap = |it: char| match it {
            '.' => ',',
            ',' => '.',
            it => it,
        };
        let ends = word.ends_with([',', '.']);
        if is_number && !ends { word.chars().map(swap).collect() } else { word.to_owned() }
    };
    let lines = text.lines().map(|line| line.split(' ').map(other).collect::<Vec<_>>().join(" "));
    lines.map(|line| line + "\n").collect()
}

fn mutated(text: &str, chance: &mut Chance) -> (String, &'static str) {
    let lines: Vec<&str> = text.lines().collect();
    let joined = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    match chance.below(9) {
        0 => (text.lines().map(|line| format!("> {line}\r\n")).collect(), "quoted"),
        1 => (wrapped(text, 72 + chance.below(9)), "wrapped"),
        2 => (other_locale(text), "another locale"),
        3 => (joined(&lines[chance.below(lines.len())..]), "without its beginning"),
        4 => {
            let at = chance.below(text.len());
            let at = (0..=at).rfind(|at| text.is_char_boundary(*at)).unwrap();
            (text[..at].to_owned(), "cut anywhere")
        }
        5 => {
            let mut lines = lines;
            lines.remove(chance.below(lines.len()));
            (joined(&lines), "without a line")
        }
        6 => (format!("Hello,\n\nI see this:\n\n{text}\n-- \nA. B., 3.5 stars\n"), "in a mail"),
        7 => {
            let coloured = |line: &str| format!("\u{1b}[1;32m{line}\u{1b}[0m\n");
            (text.lines().map(coloured).collect(), "coloured")
        }
        _ => {
            let quoted: String =
                wrapped(text, 60).lines().map(|it| format!("> > {it}\n")).collect();
            (quoted, "wrapped and quoted")
        }
    }
}

/// Whatever becomes of a text on its way, no number is taken for another: what is read of it was in
/// the text as it was printed.
#[test]
fn mutated_texts_are_read_or_refused() {
    let all: Vec<(String, String)> = pasted().into_iter().chain(printed()).collect();
    let (mut read_pieces, mut refused) = (0, 0);
    for case in 0..2000 {
        let mut chance = Chance(case);
        chance.below(2);
        let (name, text) = &all[chance.below(all.len())];
        let whole = read(text);
        let (other, how) = mutated(text, &mut chance);
        let found = read(&other);
        for shown in conclude(&found.pieces).conclusions {
            let numbers = &shown.finding.numbers;
            assert!(numbers.iter().all(|it| it.value.is_finite()), "case {case}: {shown:?}");
        }
        // JSON has points in any locale.
        if name.ends_with(".json") && how == "another locale" {
            continue;
        }
        refused += found.refused.len();
        for piece in &found.pieces {
            // A command that was cut has no result behind it.
            let is_end = how == "cut anywhere" && matches!(piece.what, What::Command(_));
            // Of JSON a line may go without a trace: an option of a job, or a device.
            let is_shorter = how == "without a line" && matches!(piece.what, What::Document { .. });
            let is_end = is_end || is_shorter;
            let is_known = whole.pieces.iter().any(|it| it.what == piece.what);
            assert!(is_known || is_end, "case {case}, {name} {how}: {piece:?}");
            read_pieces += 1;
        }
        if matches!(how, "quoted" | "in a mail" | "coloured" | "another locale" | "wrapped") {
            let lost = whole.pieces.len() - found.pieces.len().min(whole.pieces.len());
            assert_eq!((lost, found.refused.len()), (0, 0), "case {case}, {name} {how}");
        }
    }
    assert!(read_pieces > 5000 && refused > 50, "{read_pieces} read, {refused} refused");
}
