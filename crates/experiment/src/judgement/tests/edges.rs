//! Both sides of the thresholds of rules.

use super::*;
use statistics::bytes_over_time::Series;

/// Runs at levels of one factor, with a scatter of a thousandth.
fn runs_at(factor: &str, rates: &[(Level, f64)], repeats: u64) -> (Vec<Factor>, Vec<RunRecord>) {
    let mut runs = Vec::new();
    for repeat in 1..=repeats {
        for (place, (level, rate)) in rates.iter().enumerate() {
            let scatter = 1.0 + 0.001 * ((repeat + place as u64) % 3) as f64;
            runs.push(RunRecord {
                cell: [(factor.to_owned(), level.clone())].into(),
                repeat,
                bytes: (10.0 * rate) as u64,
                seconds: 10.0 * scatter,
                ..RunRecord::default()
            });
        }
    }
    let levels = rates.iter().map(|(level, _)| level.clone()).collect();
    (vec![Factor::new(factor, levels)], runs)
}

fn said(factors: &[Factor], runs: &[RunRecord]) -> String {
    let judgement = judge(factors, runs, &JudgementOptions::default());
    judgement.sentences.into_iter().map(|one| one.text + "\n").collect()
}

/// "Does not matter from X on" needs at least three numbers, with repeats, and scatter that leaves
/// open which one is best.
#[test]
fn a_plateau_has_three_levels_in_an_order() {
    let mut random = Random::new(5);
    let mut is_told = |factor: &str, levels: &[Level], repeats| {
        let rates: Vec<_> = levels.iter().map(|level| (level.clone(), 100e6)).collect();
        let (factors, mut runs) = runs_at(factor, &rates, repeats);
        runs.iter_mut().for_each(|run| run.seconds *= (0.03 * random.normal()).exp());
        said(&factors, &runs).contains(" does not matter")
    };
    let numbers = BLOCKS.map(Level::Number);
    assert!(is_told("block_bytes", &numbers[..3], 8));
    assert!(!is_told("block_bytes", &numbers[..2], 8));
    assert!(!is_told("block_bytes", &numbers[..3], 1));
    let words = ["a", "b", "c"].map(|word| Level::Text(word.to_owned()));
    assert!(!is_told("engine", &words, 8));
}

/// A level of zero takes no time, which is no bound on the time of a request.
#[test]
fn a_level_of_zero_bounds_no_time() {
    let levels =
        [0, 64 << 10, 256 << 10, 1 << 20, 4 << 20].map(|bytes| (Level::Number(bytes), 100e6));
    let (factors, runs) = runs_at("read_ahead_bytes", &levels, 5);
    let text = said(&factors, &runs);
    assert!(text.contains("less than") && !text.contains("less than 0"), "{text}");
}

#[test]
fn short_runs_are_told_where_they_were_timed() {
    let levels = [Level::Number(1), Level::Number(2)].map(|level| (level, 100e6));
    let (factors, mut runs) = runs_at("depth", &levels, 3);
    for run in &mut runs {
        (run.seconds, run.bytes) = (run.seconds / 100.0, run.bytes / 100);
    }
    assert!(!said(&factors, &runs).contains("a typical one took"));
    runs.iter_mut().for_each(|run| run.started_unix_seconds = 1_700_000_000);
    assert!(said(&factors, &runs).contains("the runs are short: a typical one took 100 ms"));
    // A second is not short.
    runs.iter_mut().for_each(|run| run.seconds = 1.0);
    assert!(!said(&factors, &runs).contains("a typical one took"));
}

/// A fixed time for each file is reported if the times of files lie on a line.
#[test]
fn a_fixed_time_of_files_is_told_of_a_line() {
    let lengths = [64u64, 128, 256, 512, 1024].map(|mib| mib * MIB);
    let at = |bend: f64| {
        let rates = lengths.map(|bytes| {
            let bent = if bytes == lengths[2] { bend } else { 1.0 };
            (Level::Number(bytes), bytes as f64 / (bent * (0.5 + bytes as f64 / 100e6)))
        });
        let (factors, mut runs) = runs_at("file_bytes", &rates, 5);
        for run in &mut runs {
            let Level::Number(bytes) = run.cell["file_bytes"] else { panic!() };
            run.seconds *= bytes as f64 / run.bytes as f64;
            run.bytes = bytes;
        }
        said(&factors, &runs)
    };
    let line = ", then its bytes run at ";
    assert!(at(1.0).contains(line), "{}", at(1.0));
    assert!(!at(1.2).contains(line), "{}", at(1.2));
}

/// The course of runs of half a second is not analysed.
#[test]
fn a_course_is_told_of_runs_that_are_long_enough() {
    let levels = [Level::Number(1), Level::Number(2)].map(|level| (level, 100e6));
    let (factors, mut runs) = runs_at("depth", &levels, 3);
    let mut at = |seconds: f64, filemarks: f64| {
        for run in &mut runs {
            run.measures.insert("filemarks".to_owned(), filemarks);
            run.seconds = seconds * (1.0 + 0.001 * (run.repeat % 3) as f64);
            let bytes = (0..101).map(|step| 1000 + step % 3 + if step > 50 { 1000 } else { 0 });
            let series = Series { step_seconds: run.seconds / 100.0, bytes: bytes.collect() };
            run.series = Some(series);
        }
        said(&factors, &runs)
    };
    let course = "the rate changes during the run";
    assert!(at(2.0, 1.0).contains(course), "{}", at(2.0, 1.0));
    assert!(!at(0.5, 1.0).contains(course), "{}", at(0.5, 1.0));
    // No data pass at a filemark; filemarks have a finding of their own.
    assert!(!at(2.0, 2.0).contains(course), "{}", at(2.0, 2.0));
}

/// Whether the kernel splits requests depends on the settings of the cell in question.
#[test]
fn requests_are_judged_by_the_settings_of_their_own_runs() {
    let rates =
        [(64 << 10, 50e6), (1 << 20, 100e6)].map(|(level, rate)| (Level::Number(level), rate));
    let with = |others_kib: &str| {
        let (factors, mut runs) = runs_at("block_bytes", &rates, 3);
        for run in &mut runs {
            let is_best = run.cell["block_bytes"] == Level::Number(1 << 20);
            let kib = if is_best { "64" } else { others_kib };
            run.environment.insert("queue max_sectors_kb".to_owned(), kib.to_owned());
            let measures = [("device_request_bytes", 65536.0), ("device_merged_percent", 0.0)];
            run.measures.extend(measures.map(|(name, value)| (name.to_owned(), value)));
        }
        said(&factors, &runs)
    };
    assert!(with("64").contains("max_sectors_kb"), "{}", with("64"));
    assert_eq!(with("1280"), with("64"));
}

/// The rate of large requests is reported if it is below the known limit, and not if it is
/// impossible.
#[test]
fn a_curve_ends_at_what_is_possible() {
    let rates =
        BLOCKS.map(|bytes| (Level::Number(bytes), 1.0 / (1.0 / 200e6 + 200e-6 / bytes as f64)));
    let (factors, runs) = runs_at("block_bytes", &rates, 5);
    let with = |limits: &[f64]| {
        let limit = |&bytes_per_second: &f64| statistics::curve::PhysicalLimit {
            name: "the cable".to_owned(),
            bytes_per_second,
        };
        let limits = limits.iter().map(limit).collect();
        let judgement =
            judge(&factors, &runs, &JudgementOptions { limits, ..JudgementOptions::default() });
        judgement.sentences.iter().any(|one| one.text.contains("the data alone pass at"))
    };
    assert!(with(&[]) && with(&[1e9]) && !with(&[50e6]));
}

/// Few repeats do not show whether runs have two speeds.
#[test]
fn two_kinds_of_runs_need_repeats() {
    let levels = [Level::Number(1), Level::Number(2)].map(|level| (level, 100e6));
    let said = |repeats| {
        let (factors, runs) = runs_at("depth", &levels, repeats);
        said(&factors, &runs).contains("whether there are two speeds")
    };
    assert!(said(2) && said(3) && !said(40));
}

#[test]
fn subjects_have_their_words() {
    use Subject::{Cost, Doubt, Finding, Gain, Seen, Set};
    let words = ["set", "gain", "cost", "finding", "seen once", "not known"];
    assert_eq!([Set, Gain, Cost, Finding, Seen, Doubt].map(Subject::name), words);
}
