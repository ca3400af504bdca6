//! Published tables with their rows as runs: the judgement must reach the conclusions of the
//! documents, and find what they missed. `cargo test -p experiment --test published -- --nocapture`
//! prints its sentences.
//!
//! The tables are facts from other people's documents; each file names its source. The LTO-4
//! document has only charts, so its runs are made here from the ratios that it states.

#![allow(clippy::unwrap_used)]
#![expect(clippy::print_stdout, reason = "what is said can be looked at")]

use experiment::judgement::{Judgement, JudgementOptions, Seen, Sentence, Subject, judge};
use experiment::record::{Cell, Factor, Level, Role, RunRecord};
use statistics::curve::PhysicalLimit;
use statistics::random::Random;

fn table(name: &str) -> toml::Table {
    let path = format!("{}/tests/published/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

fn float(value: &toml::Value) -> f64 {
    value.as_float().unwrap_or_else(|| value.as_integer().unwrap() as f64)
}

fn number(name: &str, role: Role, levels: &[u64]) -> Factor {
    let levels = levels.iter().map(|&level| Level::Number(level)).collect();
    Factor { name: name.into(), levels, role, present: None }
}

fn words(name: &str, role: Role, levels: &[&str]) -> Factor {
    let levels = levels.iter().map(|&level| Level::Text(level.into())).collect();
    Factor { name: name.into(), levels, role, present: None }
}

fn run(cell: &[(&str, Level)], bytes: f64, seconds: f64) -> RunRecord {
    let cell: Cell = cell.iter().map(|(name, level)| ((*name).to_owned(), level.clone())).collect();
    RunRecord { cell, repeat: 1, bytes: bytes as u64, seconds, ..RunRecord::default() }
}

fn judged(
    what: &str,
    factors: &[Factor],
    runs: &[RunRecord],
    options: &JudgementOptions,
) -> Judgement {
    let judgement = judge(factors, runs, options);
    println!("\n{what}");
    for sentence in &judgement.sentences {
        println!("  {:<9}  {}", sentence.subject.name(), sentence.text);
    }
    judgement
}

fn check(judgement: &Judgement, subject: Subject, expected: &str) {
    let found = judgement
        .sentences
        .iter()
        .any(|sentence| sentence.subject == subject && sentence.text.contains(expected));
    assert!(found, "{subject:?} {expected:?} is not in {:#?}", judgement.sentences);
}

/// A single run is never a finding: no sentence claims more than was seen, there is no command, and
/// a sentence names what to repeat.
fn seen_once(judgement: &Judgement, repeated: &str) {
    for sentence in &judgement.sentences {
        assert!(sentence.subject >= Subject::Seen && sentence.typed.is_empty(), "{sentence:#?}");
    }
    check(judgement, Subject::Doubt, "every combination ran once");
    check(judgement, Subject::Doubt, &format!("repeat at least {repeated}"));
}

/// One series of the table of block sizes: its factor and its runs.
fn series(index: usize) -> (Vec<Factor>, Vec<RunRecord>) {
    let table = table("tape-block-size");
    let series = &table["series"].as_array().unwrap()[index];
    let bytes = float(series.get("bytes").or(series.get("bytes_approx")).unwrap());
    let mut levels = Vec::new();
    let mut runs = Vec::new();
    for row in series["rows"].as_array().unwrap() {
        let block = row["block_bytes"].as_integer().unwrap() as u64;
        levels.push(block);
        let mut run = run(&[("block_bytes", Level::Number(block))], bytes, float(&row["seconds"]));
        run.printed_bytes_per_second = row.get("printed_mb_s").map(|rate| float(rate) * 1e6);
        runs.push(run);
    }
    (vec![number("block_bytes", Role::Setting, &levels)], runs)
}

fn lto7_limits() -> JudgementOptions {
    let limit = |name: &str, rate| PhysicalLimit { name: name.into(), bytes_per_second: rate };
    let native = limit("native rate of an LTO-7 drive", 300e6);
    JudgementOptions { limits: vec![native], ..JudgementOptions::default() }
}

#[test]
fn incompressible_data_have_their_knee_at_64_kib() {
    let (factors, runs) = series(2);
    let judgement = judged("LTO-7, dd, incompressible", &factors, &runs, &lto7_limits());
    check(&judgement, Subject::Seen, "64 KiB (287 MB/s) came within 0.3 % of it");
    check(&judgement, Subject::Seen, "about 31 times the rate of block size 512 B");
    check(&judgement, Subject::Seen, "is the native rate of an LTO-7 drive");
    // The stops below the drive's lowest speed do not follow a fixed time.
    check(&judgement, Subject::Seen, "block size 16 KiB is out of line");
    seen_once(&judgement, "block size 512 B; block size 64 KiB");
}

#[test]
fn compressible_data_have_no_knee_up_to_1_mib() {
    let (factors, runs) = series(3);
    let judgement = judged("LTO-7, dd, 5.5:1", &factors, &runs, &lto7_limits());
    check(&judgement, Subject::Seen, "block size: 1 MiB was the fastest (474 MB/s)");
    seen_once(&judgement, "block size 16 KiB; block size 1 MiB");
    check(&judgement, Subject::Doubt, "no block size above 1 MiB was tested");
}

#[test]
fn the_default_of_tar_costs_most_of_the_rate() {
    for (index, speedup) in [(0, 3.26), (1, 2.18)] {
        let (factors, runs) = series(index);
        let judgement = judged("tar", &factors, &runs, &JudgementOptions::default());
        assert!((judgement.recommended[0].gain - speedup).abs() < 0.005, "{judgement:#?}");
        seen_once(&judgement, "block size 10 KiB; block size 64 KiB");
        // Three times as fast: to explain that, runs would have to differ by more than those of any
        // drive.
        check(&judgement, Subject::Seen, "if runs differ by");
        let scatter = judgement.sentences.iter().flat_map(|one| &one.finding.numbers);
        let mut scatter = scatter.filter(|number| number.name == "explaining_scatter");
        assert!(scatter.next().unwrap().value > 0.3);
    }
}

#[test]
fn very_large_read_ahead_is_best_and_two_printed_rates_are_wrong() {
    let table = table("read-ahead");
    let bytes = float(&table["size_gb"]) * 1e9;
    let mut names = Vec::new();
    let mut runs = Vec::new();
    for row in table["rows"].as_array().unwrap() {
        let name = row["setting"].as_str().unwrap();
        names.push(name);
        let level = Level::Text(name.to_owned());
        let mut run = run(&[("read_ahead", level)], bytes, float(&row["run_time_s"]));
        run.printed_bytes_per_second = Some(float(&row["printed_mb_s"]) * 1e6);
        runs.push(run);
    }
    let factors = [words("read_ahead", Role::Setting, &names)];
    let judgement =
        judged("read-ahead of one stream", &factors, &runs, &JudgementOptions::default());
    check(&judgement, Subject::Seen, "read ahead: very large was the fastest (344 MB/s)");
    seen_once(&judgement, "read ahead none (direct I/O); read ahead very large");
    check(&judgement, Subject::Doubt, "none (direct I/O): 72.0 MB/s was printed, but size / time");
    check(&judgement, Subject::Doubt, "very large: 223 MB/s was printed, but size / time");
    let disagreeing =
        judgement.sentences.iter().filter(|sentence| sentence.text.contains("was printed"));
    assert_eq!(disagreeing.count(), 2);
}

#[test]
fn compression_costs_nothing_on_random_data() {
    let table = table("lto4-btape");
    let rate = float(&table["conclusions"]["natural_rate_mb_s"]) * 1e6;
    let times = &table["conclusions"]["zeros_with_compression_over_without"].as_array().unwrap();
    let times = (float(&times[0]) + float(&times[1])) / 2.0;
    let repeats = table["design"]["repeats"].as_integer().unwrap() as u64;
    let factors = [
        words("drive_compression", Role::Setting, &["off", "on"]),
        words("data", Role::Load, &["random", "zeros"]),
    ];
    let mut random = Random::new(4);
    let mut runs = Vec::new();
    for repeat in 1..=repeats {
        for (compression, data, factor) in [
            ("off", "random", 1.0),
            ("on", "random", 1.0),
            ("off", "zeros", 1.03),
            ("on", "zeros", times),
        ] {
            let text = |text: &str| Level::Text(text.to_owned());
            let cell = [("drive_compression", text(compression)), ("data", text(data))];
            let scatter = (0.015 * random.normal()).exp();
            let mut run = run(&cell, 4e9, 4e9 / (rate * factor * scatter));
            run.repeat = repeat;
            runs.push(run);
        }
    }
    let judgement =
        judged("LTO-4, from its stated ratios", &factors, &runs, &JudgementOptions::default());
    // The gain with zeros is a finding, and no reason to set anything.
    let is_set = |one: &&Sentence| one.subject == Subject::Set && one.text.contains("zeros");
    assert_eq!(judgement.sentences.iter().find(is_set), None);
    check(
        &judgement,
        Subject::Finding,
        "the effect of drive compression on instead of off depends",
    );
    check(&judgement, Subject::Finding, " and 5.");
    // With a scatter of 1.5 % three repeats cannot show "nothing", but an upper bound on the cost.
    check(&judgement, Subject::Cost, "% at most with random data");
}

#[test]
fn two_dd_beat_none_and_one_is_worse() {
    let table = table("double-buffer");
    let rows = table["runs"].as_array().unwrap();
    let tape: Vec<&toml::Value> =
        rows.iter().filter(|row| row["pipeline"].as_str().unwrap().ends_with("tape")).collect();
    let names: Vec<&str> = tape.iter().map(|row| row["pipeline"].as_str().unwrap()).collect();
    let runs: Vec<RunRecord> = tape
        .iter()
        .zip(&names)
        .map(|(row, name)| {
            let cell = [("pipeline", Level::Text((*name).to_owned()))];
            // The document does not give the bytes; they are the same in all rows.
            run(&cell, 1e9, float(&row["elapsed_s"]))
        })
        .collect();
    let factors = [words("pipeline", Role::Setting, &names)];
    let judgement = judged("tar | gzip to tape", &factors, &runs, &JudgementOptions::default());
    check(&judgement, Subject::Seen, "dd obs=512k | dd obs=512k > tape was the fastest");
    check(&judgement, Subject::Seen, "about 1.1 times the rate of pipeline tar | gzip > tape");
    // A difference of a tenth, seen once: a scatter of a few per cent explains it.
    check(&judgement, Subject::Seen, "if runs differ by 3.1 % or more, chance alone explains it");
    seen_once(&judgement, "pipeline tar | gzip > tape; pipeline tar | gzip | dd");
    let rate = |index: usize| judgement.cells[index].bytes_per_second;
    assert!(rate(1) < rate(0) && rate(0) < rate(2));
    // The time that the tape adds to that of the source, and the part of it that is saved.
    let elapsed = |row: &toml::Value| float(&row["elapsed_s"]);
    let bound = float(&table["conclusions"]["bound_s"]);
    let cut = 1.0 - (elapsed(tape[2]) - bound) / (elapsed(tape[0]) - bound);
    let stated = float(&table["conclusions"]["tape_overhead_cut_percent"]) / 100.0;
    assert!((cut - stated).abs() < 0.01, "{cut}");
}

#[test]
fn counters_of_known_loads_mean_what_the_document_says() {
    let table = table("block-device");
    let loads = table["load"].as_array().unwrap();
    let split = float(&table["max_sectors_kb"]) * 1024.0;
    let check = |index: usize, asked: f64, expected: &[&str]| {
        let load = &loads[index];
        let iostat = |name: &str| float(&load["iostat"][name]);
        let mut measures = std::collections::BTreeMap::from([
            ("device_request_bytes".to_owned(), iostat("rareq_kb") * 1024.0),
            ("device_merged_percent".to_owned(), iostat("r_rqm_percent")),
            ("device_await_ns".to_owned(), iostat("r_await_ms") * 1e6),
        ]);
        if let Some(ms) = load.get("fio_result").and_then(|fio| fio.get("read_clat_ms")) {
            measures.insert("fio_clat_mean_ns".to_owned(), float(ms) * 1e6);
        }
        if let Some(us) = load.get("fio_result").and_then(|fio| fio.get("read_clat_us")) {
            measures.insert("fio_clat_mean_ns".to_owned(), float(us) * 1e3);
        }
        let seen = Seen { asked_bytes: Some(asked), split_bytes: Some(split) };
        let found = seen.meaning(&measures);
        println!("\n{}: {found:#?}", load["means"].as_str().unwrap());
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (finding, expected) in found.iter().zip(expected) {
            assert!(finding.what.contains(expected), "{finding:?}");
        }
    };
    check(0, 8192.0, &["the kernel neither merges nor splits requests"]);
    check(1, 8192.0, &["the kernel merges requests, 86 %"]);
    let split = "the kernel splits requests of 8 MiB (max_sectors_kb is 1280)";
    check(2, 8388608.0, &[split, "requests wait in the host: each takes 6.00 s"]);
}
