//! The design of `btape speed` with compression on and off, on a drive with known properties: a
//! tape of 120 MB/s, a connection of 320 MB/s and 150 us for each command, 0.4 s for a filemark.

mod edges;
mod every_rule;
mod short_runs;

use super::*;
use crate::record::{Level, Role};
use statistics::random::Random;

const MIB: u64 = 1 << 20;
const BLOCKS: [u64; 6] = [MIB / 16, MIB / 8, MIB / 4, MIB / 2, MIB, 2 * MIB];

/// Its factors; the tests of figures use it, too.
fn factors() -> Vec<Factor> {
    let words = |name: &str, role, levels: &[&str]| Factor {
        name: name.into(),
        levels: levels.iter().map(|&level| Level::Text(level.into())).collect(),
        role,
        present: None,
    };
    let numbers = |name: &str, role, levels: &[u64]| Factor {
        name: name.into(),
        levels: levels.iter().map(|&level| Level::Number(level)).collect(),
        role,
        present: None,
    };
    vec![
        words("data", Role::Load, &["random", "zeros"]),
        words("framing", Role::Load, &["raw", "bacula"]),
        numbers("file_bytes", Role::Load, &[1 << 30, 2 << 30, 4 << 30]),
        numbers("block_bytes", Role::Setting, &BLOCKS),
        words("drive_compression", Role::Setting, &["off", "on"]),
    ]
}

/// Other properties of a drive.
struct Truth {
    compression_costs: f64,
    bacula: f64,
    native: f64,
    lowest: f64,
}

/// A drive without oddities.
const PLAIN: Truth = Truth { compression_costs: 0.0, bacula: 1.0, native: 120e6, lowest: 30e6 };

/// All runs of the design, with a scatter of 1 %.
fn runs(factors: &[Factor], truth: &Truth, repeats: u64) -> Vec<RunRecord> {
    let mut random = Random::new(2);
    let plan = crate::plan::Plan {
        kind: "tape".into(),
        title: String::new(),
        paths: vec!["x".into()],
        length_bytes: 1,
        seed: 1,
        stop: crate::plan::Stop::default(),
        random_reads: 0,
        run_seconds: 0.0,
        commands: None,
        factors: factors.to_vec(),
    };
    let mut all = Vec::new();
    for repeat in 1..=repeats {
        for cell in plan.cells() {
            let number = |name: &str| match cell[name] {
                Level::Number(number) => number as f64,
                Level::Text(_) => 0.0,
            };
            let is = |name: &str, level: &str| cell[name] == Level::Text(level.into());
            let way = 1.0 / (1.0 / 320e6 + 150e-6 / number("block_bytes"));
            let compressed = is("drive_compression", "on") && is("data", "zeros");
            let mut rate = if compressed { way } else { way.min(truth.native) };
            if is("drive_compression", "on") && is("data", "random") {
                rate *= 1.0 - truth.compression_costs;
            }
            if is("framing", "bacula") {
                rate *= truth.bacula;
            }
            rate *= (0.01 * random.normal()).exp();
            let bytes = number("file_bytes");
            let seconds = bytes / rate;
            let mut run = RunRecord {
                cell,
                repeat,
                bytes: bytes as u64,
                seconds: seconds + 0.4,
                ..RunRecord::default()
            };
            run.measures.insert("without_filemark_bytes_per_second".into(), rate);
            run.measures.insert("filemark_seconds".into(), 0.4);
            let mut put = |name: &str, value: String| run.environment.insert(name.into(), value);
            put("drive", "HP Ultrium 4-SCSI".into());
            put("drive native bytes per second", "120000000".into());
            put("drive lowest bytes per second", truth.lowest.to_string());
            all.push(run);
        }
    }
    all
}

fn judged(truth: &Truth) -> Judgement {
    let factors = factors();
    judge(&factors, &runs(&factors, truth, 3), &JudgementOptions::default())
}

fn check(judgement: &Judgement, subject: Subject, parts: &[&str]) {
    let found = judgement.sentences.iter().any(|sentence| {
        sentence.subject == subject && parts.iter().all(|part| sentence.text.contains(part))
    });
    assert!(found, "{subject:?} {parts:?} is not in {:#?}", judgement.sentences);
}

#[test]
fn the_whole_design_comes_to_few_sentences() {
    let judgement = judged(&PLAIN);
    assert_eq!(judgement.cells.len(), 144);
    assert!(judgement.sentences.len() < 20, "{:#?}", judgement.sentences);
    let check = |subject, parts: &[&str]| check(&judgement, subject, parts);
    check(
        Subject::Set,
        &["data random: block size: the same within 2 % at every level, keep 64 KiB"],
    );
    // No real data are all zeros.
    let is_zeros = |one: &Sentence| one.text.contains("zeros") && one.subject < Subject::Finding;
    assert!(!judgement.sentences.iter().any(is_zeros), "{:#?}", judgement.sentences);
    check(Subject::Cost, &["drive compression on costs nothing with random data: 0.99"]);
    check(Subject::Finding, &["is the native rate of an LTO-4 drive (120 MB/s)"]);
    check(
        Subject::Finding,
        &[
            "the effect of drive compression on instead of off depends",
            "the same within 2 % with random",
        ],
    );
    check(Subject::Finding, &["framing bacula instead of raw is the same within 2 %"]);
    check(Subject::Finding, &["takes 400 ms on average", "% higher"]);
    check(Subject::Finding, &["data zeros", "zeros compress to almost nothing"]);
    check(
        Subject::Finding,
        &[
            "block size (data random",
            "118 MB/s at every level",
            "less than 557 us besides its data",
        ],
    );
    check(Subject::Finding, &["block size (data zeros", "each request takes 1"]);
}

/// A sentence that holds for several loads is one line that names them; others stay apart.
#[test]
fn what_is_said_of_several_loads_is_said_once() {
    let words = |name: &str, levels: &[&str]| {
        let levels = levels.iter().map(|&level| Level::Text(level.into())).collect();
        Factor { role: Role::Load, ..Factor::new(name, levels) }
    };
    let depths = [1, 4, 16];
    let judged = |loads: &[&str]| {
        let depth = Factor::new("depth", depths.map(Level::Number).to_vec());
        let factors = [words("load", loads), depth];
        let mut runs = Vec::new();
        for repeat in 1..=4 {
            for (at, load) in loads.iter().enumerate() {
                for depth in depths {
                    let scatter = 1.0 + 0.002 * ((repeat * 7 + depth) % 5) as f64;
                    // The last of them gains nothing.
                    let gain = if *load == "flat" { 1.0 } else { (depth as f64).sqrt() };
                    let rate = 50e6 * (at + 1) as f64 * gain * scatter;
                    let cell =
                        [("load", Level::Text((*load).into())), ("depth", Level::Number(depth))];
                    runs.push(RunRecord {
                        cell: cell.map(|(name, level)| (name.to_owned(), level)).into(),
                        repeat,
                        bytes: (rate * 2.0) as u64,
                        seconds: 2.0,
                        ..RunRecord::default()
                    });
                }
            }
        }
        let judgement = judge(&factors, &runs, &JudgementOptions::default());
        let edge = judgement.sentences.iter().filter(|one| one.text.contains("was tested"));
        edge.map(|one| one.text.clone()).collect::<Vec<_>>()
    };
    let edge = "no depth above 16 was tested; a larger one may be faster";
    assert_eq!(judged(&["read", "write"]), [format!("every load: {edge}")]);
    assert_eq!(judged(&["read", "write", "flat"]), [format!("load read; load write: {edge}")]);
    assert_eq!(judged(&["read", "flat"]), [format!("load read: {edge}")]);
}

/// Two loads at two depths: `rates` are those of reads at both depths, then those of writes.
fn at_two_depths(rates: [[f64; 2]; 2]) -> Judgement {
    let factor =
        |name: &str, role, levels| Factor { name: name.to_owned(), role, levels, present: None };
    let loads = ["read", "write"].map(|it| Level::Text(it.to_owned()));
    let depths = [1, 16].map(Level::Number);
    let factors = [
        factor("load", Role::Load, loads.to_vec()),
        factor("depth", Role::Setting, depths.to_vec()),
    ];
    let mut runs = Vec::new();
    for repeat in 1..=5 {
        for (load, rates) in loads.iter().zip(rates) {
            for (depth, rate) in depths.iter().zip(rates) {
                let rate = 50e6 * rate * (1.0 + 0.002 * (repeat as f64 - 3.0));
                let cell = [("load", load.clone()), ("depth", depth.clone())];
                runs.push(RunRecord {
                    cell: cell.map(|(name, level)| (name.to_owned(), level)).into(),
                    repeat,
                    bytes: (rate * 2.0) as u64,
                    seconds: 2.0,
                    ..RunRecord::default()
                });
            }
        }
    }
    judge(&factors, &runs, &JudgementOptions::default())
}

/// Loads that need opposite settings: no setting serves both, and no sentence claims it.
#[test]
fn a_setting_that_costs_a_load_most_of_its_rate_serves_no_load() {
    let judged = |far: f64| {
        let judgement = at_two_depths([[1.0, far], [far, 1.0]]);
        let rule = |one: &&Sentence| one.finding.rule == "experiment.one-for-all";
        let found = judgement.sentences.iter().find(rule).unwrap();
        (found.subject, found.text.clone())
    };
    let (subject, text) = judged(0.3);
    assert_eq!(subject, Subject::Finding, "{text}");
    assert!(text.starts_with("no setting suits every load: "), "{text}");
    assert!(text.contains(" 30 % of its rate with depth "), "{text}");
    let (subject, text) = judged(0.9);
    assert_eq!(subject, Subject::Set, "{text}");
    assert!(text.starts_with("one setting for every load: "), "{text}");
}

/// A change that is faster for one load and slower for another has no meaningful average.
#[test]
fn a_change_that_turns_around_has_no_average() {
    let of_depth = |judgement: &Judgement| {
        let is_it = |it: &&Effect| it.change.factor == "depth" && it.with.is_none();
        judgement.effects.iter().find(is_it).unwrap().clone()
    };
    let turned = of_depth(&at_two_depths([[1.0, 0.5], [0.5, 1.0]]));
    let [slowest, fastest] = *turned.turns_around.clone().unwrap();
    assert_eq!(slowest.others["load"], Level::Text("read".to_owned()));
    assert!((slowest.ratio - 0.5).abs() < 1e-6, "{slowest:?}");
    assert!((fastest.ratio - 2.0).abs() < 1e-6, "{fastest:?}");
    assert!(!turned.is_average());
    // A larger gain for one load than for another is still an average; so is a gain with an
    // unsettled loss elsewhere.
    for rates in [[[1.0, 2.0], [1.0, 1.2]], [[1.0, 2.0], [1.0, 0.9995]]] {
        let found = of_depth(&at_two_depths(rates));
        assert_eq!((found.is_average(), found.turns_around), (true, None), "{rates:?}");
    }
}

/// Single runs never yield a setting, gain, cost or finding, whatever they measure.
#[test]
fn one_run_is_never_a_finding() {
    let factors = factors();
    let judgement = judge(&factors, &runs(&factors, &PLAIN, 1), &JudgementOptions::default());
    assert!(judgement.sentences.len() > 5, "{:#?}", judgement.sentences);
    for sentence in &judgement.sentences {
        assert!(sentence.subject >= Subject::Seen, "{sentence:#?}");
        assert!(sentence.typed.is_empty() && sentence.finding.command.is_none(), "{sentence:#?}");
    }
    check(&judgement, Subject::Doubt, &["every combination ran once", "--repeats 5"]);
    let pooled = &judgement.pooled.as_ref().unwrap().judgement;
    for found in judgement.recommended.iter().chain(&pooled.recommended) {
        assert_eq!((found.basis, found.verdict), (Basis::SingleRuns, RateVerdict::NotSettled));
        assert_eq!(found.gain_interval, None);
    }
    // A cell that ran once does not borrow the scatter of those that ran often.
    let mut mixed = runs(&factors, &PLAIN, 3);
    let large = |run: &RunRecord| run.cell["block_bytes"] == Level::Number(2 << 20);
    mixed.retain(|run| run.repeat == 1 || !large(run));
    let found = judge(&factors, &mixed, &JudgementOptions::default());
    let told = |one: &Sentence| one.subject < Subject::Seen && one.text.contains("2 MiB");
    assert!(!found.sentences.iter().any(told), "{:#?}", found.sentences);
    check(&found, Subject::Doubt, &["24 of 144 combinations ran once"]);
    // What is to be repeated is among these.
    let doubt = found.sentences.iter().find(|one| one.text.contains("repeat at least")).unwrap();
    let named = doubt.text.split("repeat at least ").nth(1).unwrap().split(" (").next().unwrap();
    let is_single = |one: &str| one == "them" || one.contains("2 MiB");
    assert!(named.split("; ").all(is_single), "{doubt:#?}");
}

#[test]
fn effects_are_what_was_put_in() {
    let truth = Truth { compression_costs: 0.05, bacula: 0.9, ..PLAIN };
    let judgement = judged(&truth);
    check(&judgement, Subject::Cost, &["drive compression on costs 5.0 %", "with random data"]);
    check(&judgement, Subject::Finding, &["framing bacula instead of raw is slower", "0.90"]);
    let effect = |factor: &str, with: Option<&str>| {
        let mut all = judgement.effects.iter();
        let found = all.find(|effect| {
            effect.change.factor == factor
                && effect.with.as_ref().map(|change| change.factor.as_str()) == with
        });
        found.unwrap()
    };
    let framing = effect("framing", None);
    assert_eq!(framing.pairs, 72);
    let interval = framing.interval.unwrap();
    // The filemark takes the same time either way, so the effect is a little below a tenth.
    assert!(interval.contains(0.902) && interval.high - interval.low < 0.02, "{framing:?}");
    // Framing has nothing to do with compression; data has everything.
    let none = effect("framing", Some("drive_compression")).interval.unwrap();
    assert!(none.contains(1.0), "{none:?}");
    let data = effect("data", Some("drive_compression"));
    assert!(data.verdict == RateVerdict::Differs && data.ratio > 1.5, "{data:?}");
}

#[test]
fn a_drive_that_stops_is_noticed() {
    let truth = Truth { native: 25e6, ..PLAIN };
    let judgement = judged(&truth);
    let expected = ["below what the lowest speed of an LTO-4 drive needs (30.0 MB/s)"];
    check(&judgement, Subject::Finding, &expected);
    let not = judged(&PLAIN);
    assert!(!not.sentences.iter().any(|sentence| sentence.text.contains("lowest speed")));
}

#[test]
fn a_half_done_experiment_is_judged_by_what_is_whole() {
    let factors = factors();
    let mut runs = runs(&factors, &PLAIN, 1);
    runs.truncate(100);
    let judgement = judge(&factors, &runs, &JudgementOptions::default());
    assert!(!judgement.sentences.is_empty());
    let none = judge(&factors, &[], &JudgementOptions::default());
    assert!(none.cells.is_empty());
}

/// Programs that are compared are loads: there is nothing to set.
#[test]
fn where_nothing_is_varied_that_could_be_set_nothing_is() {
    let factors: Vec<Factor> = factors()
        .into_iter()
        .map(|mut factor| {
            factor.levels.truncate(if factor.role == Role::Load { 2 } else { 1 });
            factor
        })
        .collect();
    let judgement = judge(&factors, &runs(&factors, &PLAIN, 3), &JudgementOptions::default());
    assert_eq!(judgement.recommended.len(), 8);
    let set = judgement.sentences.iter().filter(|one| one.subject == Subject::Set);
    assert_eq!(Vec::from_iter(set.map(|one| &one.text)), Vec::<&String>::new());
}

/// A device that answers a request after 6 ms, and eight at once: the reported time is that of a
/// request, whatever its size.
#[test]
fn the_time_of_a_request_is_told_by_its_bytes() {
    let depths = [1u64, 2, 4, 8, 16, 32];
    let levels = depths.iter().map(|&depth| Level::Number(depth)).collect();
    let depth = Factor { name: "depth".to_owned(), levels, role: Role::Setting, present: None };
    for block_bytes in [4096, 65_536] {
        let mut runs = Vec::new();
        for repeat in 1..=5 {
            for depth in depths {
                let at_once = (depth.min(8) * 2 * block_bytes) as f64;
                let number = |name: &str, level| (name.to_owned(), Level::Number(level));
                let cell =
                    [number("depth", depth), number("block_bytes", block_bytes), number("jobs", 2)];
                runs.push(RunRecord {
                    cell: cell.into(),
                    repeat,
                    bytes: (at_once / 0.006) as u64,
                    seconds: 1.0 + 0.001 * (repeat % 3) as f64,
                    ..RunRecord::default()
                });
            }
        }
        let judgement = judge(std::slice::from_ref(&depth), &runs, &JudgementOptions::default());
        let told: Vec<&str> = judgement.sentences.iter().map(|one| one.text.as_str()).collect();
        let told = told.join("\n");
        assert!(told.contains("a request is answered after"), "{told}");
        let time = told.split("a request is answered after ").nth(1).unwrap();
        let number: f64 = time.split(' ').next().unwrap().parse().unwrap();
        assert!(time.split(' ').nth(1).unwrap().starts_with("ms"), "{time}");
        assert!((5.5..6.5).contains(&number), "{time}");
    }
}
