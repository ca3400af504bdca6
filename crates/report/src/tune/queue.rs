//! The result of measuring queue settings, as text.

use base::format::rate;
use base::rounding::Rounding;
use experiment::judgement::{CellSummary, quoted};
use experiment::quantities::Unit;
use experiment::record::{Value as Compared, binary_size};
use service::tune::apply::Applied;
use service::tune::measuring::Recommended as _;
use service::tune::queue::TunedQueue;
use service::tune::queue_advice::{LittlesLaw, MeasuredLoad, QueueAdvice, shown};

use super::{cost_words, keep_line, unsettled};
use crate::findings::lines_under_heads;
use crate::next::diagnose;
use crate::table::{Align, Emphasis, Style, Table};

/// The whole text.
pub fn text(tuned: &TunedQueue, style: Style) -> String {
    advice_text(&tuned.advice, tuned.ending.applied.as_ref(), style) + unsettled(&tuned.ending)
}

fn advice_text(it: &QueueAdvice, applied: Option<&Applied>, style: Style) -> String {
    let text = table(it, style);
    let mut told: Vec<(&str, Vec<String>)> = Vec::new();
    let load = if it.load.name == "read" { "sequential reads" } else { "random reads" };
    told.push((
        "load",
        vec![format!(
            "{load} of {}, {} in flight, direct I/O, on {}",
            binary_size(it.load.block_bytes),
            it.load.depth,
            it.device
        )],
    ));
    for tuned in &it.tuned {
        let name = tuned.kind.file_name();
        let gain = tuned.gain(it.worth);
        let set = match gain.recommended() {
            Some(level) if *level == tuned.advice.present => {
                format!("keep {}", shown(tuned.kind, level))
            }
            Some(level) => {
                let present = shown(tuned.kind, &tuned.advice.present);
                format!("{} instead of {present}", shown(tuned.kind, level))
            }
            None => "no recommendation".to_owned(),
        };
        told.push((name, vec![format!("{set}; {}", gain.words())]));
        let costs = tuned.costs().into_iter();
        told.extend(costs.map(|paid| ("costs", vec![cost_words(&gain, paid)])));
    }
    told.extend(it.left_out.iter().map(|one| (one.kind.file_name(), vec![one.words()])));
    told.extend(it.little().map(|little| ("why", vec![little_words(&little, it.load.depth)])));
    if let Some(applied) = applied {
        return text + &lines_under_heads(&told, style) + &super::apply::text(applied);
    }
    if it.to_apply().len() > 1 {
        let apart = "each setting alone; their combined effect was not measured";
        told.push(("measured", vec![apart.to_owned()]));
    }
    let commands = it.commands();
    let has_next = commands.is_some() || it.tuned.is_empty();
    let next = if has_next { String::new() } else { diagnose(&it.path) };
    if let Some(commands) = commands {
        told.push(("apply", vec![commands.apply]));
        told.push(("keep", vec![keep_line(it.not_kept.as_deref())]));
        told.push(("undo", vec![commands.undo]));
    }
    if it.tuned.is_empty() {
        let path = quoted(&it.path.display().to_string());
        told.push(("measure", vec![format!("sudo takeup tune queue {path}")]));
    }
    text + &lines_under_heads(&told, style) + &next
}

fn table(it: &QueueAdvice, style: Style) -> String {
    let mut table = Table::new(&[
        ("setting", Align::Left),
        ("value", Align::Right),
        ("runs", Align::Right),
        ("mean", Align::Right),
        ("95 % interval", Align::Right),
        ("requests/s", Align::Right),
        ("99 % within", Align::Right),
    ]);
    let mut row = |name: &str, value: String, cell: &CellSummary, emphasis| {
        let digits = cell.digits();
        let interval = cell.interval.map_or("-".to_owned(), |interval| {
            let (low, high) = (interval.low, interval.high);
            format!("{} to {}", digits.rate_digits(low), digits.rate_digits(high))
        });
        let measure = |name: &str| {
            let value = cell.measures.get(name);
            value.map_or("-".to_owned(), |&value| Unit::of(name).shown(value))
        };
        let runs = cell.rates.len().to_string();
        let mean = if cell.rates.len() > 1 {
            cell.told(Compared::Rate)
        } else {
            rate(cell.bytes_per_second)
        };
        let measures = [requests_words(&it.load, cell), measure("fio_clat_p99_ns")];
        let cells = [name.to_owned(), value, runs, mean, interval].into_iter();
        table.row(cells.chain(measures).collect(), emphasis);
    };
    for tuned in &it.tuned {
        let recommended = tuned.gain(it.worth).recommended().cloned();
        for cell in &tuned.judgement.cells {
            let Some(level) = cell.cell.get(tuned.factor()) else { continue };
            let is_own = recommended.as_ref() == Some(level);
            let emphasis = if is_own { Emphasis::Strong } else { Emphasis::None };
            row(tuned.kind.file_name(), shown(tuned.kind, level), cell, emphasis);
        }
    }
    for cell in it.as_it_is.iter().flat_map(|(judgement, _)| &judgement.cells) {
        row("as it is", "-".to_owned(), cell, Emphasis::None);
    }
    table.render(style)
}

/// The requests per second with the digits of the rate, three at most.
fn requests_words(load: &MeasuredLoad, cell: &CellSummary) -> String {
    let requests = load.requests_per_second(cell);
    let bytes = load.block_bytes as f64;
    let known = cell.told_within.filter(|_| cell.rates.len() > 1);
    let half = known.map_or(0.0, |within| (within.high - within.low) / bytes / 2.0);
    let finest = 10f64.powf((requests.max(1.0).log10()).floor() - 2.0) * 2.0;
    let half = half.max(finest);
    let digits = Rounding::within(requests - half, requests + half).number(requests);
    digits.parse().map_or(digits.clone(), base::format::count)
}

fn little_words(little: &LittlesLaw, asked: u64) -> String {
    let digits = Rounding::digits(3);
    let said = format!(
        "Little's law: {} requests/s with a latency of {} are {} in flight",
        Unit::of("fio_iops").shown(little.requests_per_second),
        digits.seconds(little.answer_seconds),
        digits.number(little.in_flight())
    );
    if little.holds(asked) {
        return format!("{said}; {asked} were requested");
    }
    if little.in_flight() > asked as f64 {
        return format!("{said}, more than the {asked} requested: the numbers do not match");
    }
    format!(
        "{said}, but {asked} were requested: the others wait before submission, because the \
         queue is too short, or the program does not keep up"
    )
}

#[cfg(test)]
mod tests {
    use experiment::judgement::{JudgementOptions, advice, judge};
    use experiment::record::{Factor, Level, RunRecord};
    use serde_json::json;
    use service::tune::levels::{NotTried, ValueNotTried};
    use service::tune::queue_advice::TunedSetting;
    use storage::settings::SettingKind;

    use super::*;

    /// Eight runs of each level at these rates, and the 99th percentile of the latency; the first
    /// level is the present one.
    fn tuned(kind: SettingKind, name: &str, levels: &[(Level, f64, f64)]) -> TunedSetting {
        let mut runs = Vec::new();
        for repeat in 1..=8 {
            for (place, (level, rate, answer_ns)) in levels.iter().enumerate() {
                let scatter = 0.002 * ((repeat * 5 + place as u64 * 3) % 7) as f64;
                let measures = [
                    // The mean of fio, which differs.
                    ("fio_iops", rate / 4096.0 * (1.0 + scatter)),
                    ("fio_clat_mean_ns", 32e9 / (rate / 4096.0 * (1.0 + scatter))),
                    ("fio_clat_p99_ns", *answer_ns),
                    ("fio_read_clat_p99_ns", answer_ns * (1.0 + scatter)),
                ];
                runs.push(RunRecord {
                    cell: [(name.to_owned(), level.clone())].into(),
                    repeat,
                    bytes: *rate as u64,
                    seconds: 1.0 + scatter,
                    measures: measures.map(|(name, value)| (name.to_owned(), value)).into(),
                    ..RunRecord::default()
                });
            }
        }
        let all: Vec<Level> = levels.iter().map(|(level, ..)| level.clone()).collect();
        let factor = Factor { present: Some(all[0].clone()), ..Factor::new(name, all) };
        let first = Some(&levels[0].0);
        let options = JudgementOptions::default();
        let judgement = judge(std::slice::from_ref(&factor), &runs, &options);
        let advice = advice(&judgement, &factor, &runs, &options).unwrap();
        let little = LittlesLaw::of(runs.iter().filter(|run| run.cell.values().next() == first));
        TunedSetting { kind, judgement, advice, little }
    }

    fn queue(tuned: Vec<TunedSetting>) -> QueueAdvice {
        QueueAdvice {
            path: "/srv/big file".into(),
            file: "/srv/big file".into(),
            device: "sda".to_owned(),
            load: MeasuredLoad { name: "randread", block_bytes: 4096, depth: 32 },
            worth: 0.05,
            not_kept: None,
            tuned,
            as_it_is: None,
            left_out: vec![
                NotTried::whole(
                    SettingKind::MaxSectors,
                    "no value splits requests of 4 KiB".to_owned(),
                ),
                NotTried {
                    kind: SettingKind::Requests,
                    value: Some(ValueNotTried { value: "512".into(), becomes: Some("256".into()) }),
                    why: "the kernel set that instead".to_owned(),
                },
            ],
        }
    }

    fn word(text: &str) -> Level {
        Level::Text(text.to_owned())
    }

    #[test]
    fn what_helps_is_set_and_what_does_not_is_left() {
        let schedulers =
            [(word("none"), 1e8, 1e6), (word("mq-deadline"), 2e8, 1e6), (word("bfq"), 5e7, 1e6)];
        // As fast, with a shorter queue: it costs other programs less.
        let lengths = [(Level::Number(256), 1e8, 8e6), (Level::Number(32), 1e8, 1e6)];
        let merging = [(Level::Number(0), 1e8, 1e6), (Level::Number(2), 1.02e8, 1e6)];
        let queue = queue(vec![
            tuned(SettingKind::Scheduler, "scheduler", &schedulers),
            tuned(SettingKind::Requests, "nr_requests", &lengths),
            tuned(SettingKind::NoMerges, "nomerges", &merging),
        ]);
        let expected = [(SettingKind::Scheduler, "mq-deadline"), (SettingKind::Requests, "32")];
        assert_eq!(queue.to_apply(), expected.map(|(kind, value)| (kind, value.to_owned())));
        assert!(queue.is_settled());
        let document = service::document(&queue.answer());
        assert_eq!(
            document["commands"]["apply"],
            "takeup tune set '/srv/big file' scheduler=mq-deadline nr_requests=32"
        );
        let settings = &document["settings"];
        assert_eq!(settings[0]["gain"]["verdict"], "differs");
        assert!(settings[0]["gain"]["low"].as_f64() > Some(1.9), "{document:#}");
        assert_eq!(
            (&settings[1]["present"], &settings[1]["recommended"]),
            (&json!("256"), &json!("32"))
        );
        assert_eq!(settings[2]["recommended"], "0");
        // The rate and the requests of a row agree, whatever fio counted in its runs.
        let level = &settings[0]["levels"][1];
        let rate = level["bytes_per_second"].as_f64().unwrap();
        assert_eq!(level["requests_per_second"].as_f64(), Some(rate / 4096.0));
        assert_eq!(document["not_tried"][0]["name"], "max_sectors_kb");
        let clipped = &document["not_tried"][1];
        assert_eq!((&clipped["value"], &clipped["becomes"]), (&json!("512"), &json!("256")));
        assert_eq!(document["explanation"]["holds"], true);
        let text = advice_text(&queue, None, Style::PLAIN);
        for part in [
            "scheduler       mq-deadline instead of none; 2.0",
            "nr_requests     32 instead of 256; no gain in rate: ",
            "it costs other programs less",
            "nomerges        keep 0; little to gain: 2 gives 1.02",
            "max_sectors_kb  no value splits requests of 4 KiB",
            "nr_requests     512 is not tried: it would become 256: the kernel set that instead",
            "are 32.0 in flight; 32 were requested",
            "measured        each setting alone; their combined effect was not measured",
            "undo            takeup tune revert",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
    }

    #[test]
    fn a_queue_that_is_not_full_is_told() {
        let of = |requests_per_second, answer_seconds| LittlesLaw {
            requests_per_second,
            answer_seconds,
        };
        let short = of(727.0, 5.5e-3);
        assert!(!short.holds(32));
        assert!(
            little_words(&short, 32)
                .contains("are 4.00 in flight, but 32 were requested: the others")
        );
        let held = of(5818.0, 5.5e-3);
        assert!(held.holds(32) && little_words(&held, 32).ends_with("; 32 were requested"));
        assert!(
            little_words(&of(9000.0, 5.5e-3), 32).ends_with("requested: the numbers do not match")
        );
        // Rates and latencies scatter: the law holds for each run, but not for their means.
        let run = |iops: f64| RunRecord {
            measures: [("fio_iops", iops), ("fio_clat_mean_ns", 32e9 / iops)]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ..RunRecord::default()
        };
        let runs = [run(100.0), run(1000.0), run(10.0)];
        assert!(LittlesLaw::of(runs.iter()).unwrap().holds(32));
    }
}
