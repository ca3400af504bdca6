//! The result of measuring queue settings, as text and as a document.

use std::path::PathBuf;

use base::format::rate;
use base::rounding::Rounding;
use experiment::judgement::{Advice, CellSummary, Judgement, KEEP, Paid, UNDO, quoted, set_line};
use experiment::quantities::Unit;
use experiment::record::{Level, RunRecord, Value as Compared, binary_size};
use report::findings::lines_under_heads;
use report::table::{Align, Emphasis, Table};
use serde_json::{Value, json};
use storage::settings::SettingKind;

use super::apply::{Applied, keep_line, typed_path};
use super::gain::Gain;
use super::levels::LeftOut;
use super::measuring::Recommended;
use crate::terminal::colour;

/// The measured load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Its name in fio.
    pub name: &'static str,
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Requests in flight.
    pub depth: u64,
}

impl Load {
    /// The mean rate of a cell in requests per second. A mean of the counts of the runs would be
    /// another mean, and would disagree with the rate beside it.
    fn requests_per_second(&self, cell: &CellSummary) -> f64 {
        cell.bytes_per_second / self.block_bytes as f64
    }

    /// The requests per second with the digits of the rate, three at most.
    fn requests_words(&self, cell: &CellSummary) -> String {
        let requests = self.requests_per_second(cell);
        let bytes = self.block_bytes as f64;
        let known = cell.told_within.filter(|_| cell.rates.len() > 1);
        let half = known.map_or(0.0, |within| (within.high - within.low) / bytes / 2.0);
        let finest = 10f64.powf((requests.max(1.0).log10()).floor() - 2.0) * 2.0;
        let half = half.max(finest);
        let digits = Rounding::within(requests - half, requests + half).number(requests);
        digits.parse().map_or(digits.clone(), base::format::count)
    }
}

/// A setting that was tried.
#[derive(Debug)]
pub struct Tuned {
    /// Which setting.
    pub kind: SettingKind,
    /// The judgement of its levels.
    pub judgement: Judgement,
    /// The advice from it.
    pub advice: Advice,
    /// Requests in flight with the present value.
    pub little: Option<Little>,
}

/// The result for a queue.
#[derive(Debug)]
pub struct Queue {
    /// The path, as typed.
    pub path: PathBuf,
    /// The file that was read.
    pub file: PathBuf,
    /// The devices whose queues have an effect.
    pub device: String,
    /// The load.
    pub load: Load,
    /// The smallest gain that is worth a change, as a share.
    pub worth: f64,
    /// Why nothing keeps these settings over a restart, if nothing does.
    pub not_kept: Option<String>,
    /// Settings that were tried.
    pub tuned: Vec<Tuned>,
    /// Without permission to set anything: the load with the present settings.
    pub as_it_is: Option<(Judgement, Option<Little>)>,
    /// Settings and values that were not tried, and why.
    pub left_out: Vec<LeftOut>,
}

/// Little's law (1961): requests per second times the latency are the requests in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Little {
    /// Requests answered per second.
    pub requests_per_second: f64,
    /// Mean latency of a request, from its submission.
    pub answer_seconds: f64,
}

/// Tolerance between the two counts: the latency does not include the time of the submission.
const LITTLE_WITHIN: f64 = 0.15;

impl Little {
    /// From the median run: means over scattering runs would fit no run.
    pub fn of<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> Option<Little> {
        let one = |run: &RunRecord| {
            Some(Little {
                requests_per_second: *run.measures.get("fio_iops")?,
                answer_seconds: run.measures.get("fio_clat_mean_ns")? / 1e9,
            })
        };
        let mut all: Vec<Little> = runs.filter_map(one).collect();
        all.sort_by(|one, other| one.in_flight().total_cmp(&other.in_flight()));
        all.get(all.len() / 2).copied()
    }

    fn in_flight(&self) -> f64 {
        self.requests_per_second * self.answer_seconds
    }

    /// Whether both numbers fit a queue with this many requests.
    fn holds(&self, asked: u64) -> bool {
        (self.in_flight() / asked as f64 - 1.0).abs() <= LITTLE_WITHIN
    }

    fn words(&self, asked: u64) -> String {
        let digits = Rounding::digits(3);
        let said = format!(
            "Little's law: {} requests/s with a latency of {} are {} in flight",
            Unit::of("fio_iops").shown(self.requests_per_second),
            digits.seconds(self.answer_seconds),
            digits.number(self.in_flight())
        );
        if self.holds(asked) {
            return format!("{said}; {asked} were requested");
        }
        if self.in_flight() > asked as f64 {
            return format!("{said}, more than the {asked} requested: the numbers do not match");
        }
        format!(
            "{said}, but {asked} were requested: the others wait before submission, because the \
             queue is too short, or the program does not keep up"
        )
    }
}

fn shown(kind: SettingKind, level: &Level) -> String {
    match (kind, level) {
        (SettingKind::MaxSectors, Level::Number(bytes)) => binary_size(*bytes),
        (_, Level::Number(number)) => number.to_string(),
        (_, Level::Text(text)) => text.clone(),
    }
}

/// A level in the form that the kernel accepts.
fn value(kind: SettingKind, level: &Level) -> String {
    match (kind, level) {
        (SettingKind::MaxSectors, Level::Number(bytes)) => (bytes / 1024).to_string(),
        _ => shown(kind, level),
    }
}

impl Tuned {
    fn gain(&self, worth: f64) -> Gain<'_> {
        let shown: fn(&Level) -> String = match self.kind {
            SettingKind::MaxSectors => |level| shown(SettingKind::MaxSectors, level),
            _ => |level| shown(SettingKind::Requests, level),
        };
        Gain { judgement: &self.judgement, advice: &self.advice, worth, shown }
    }

    fn factor(&self) -> &'static str {
        match self.kind {
            SettingKind::MaxSectors => "max_sectors_bytes",
            kind => kind.file_name(),
        }
    }

    /// The settled costs.
    fn costs(&self) -> Vec<&Paid> {
        self.advice.costs.iter().filter(|paid| paid.is_settled).collect()
    }

    fn document(&self, worth: f64, load: &Load) -> Value {
        let gain = self.gain(worth);
        let level = |cell: &CellSummary| {
            json!({
                "value": cell.cell.get(self.factor()).map(|level| value(self.kind, level)),
                "runs": cell.rates.len(),
                "bytes_per_second": cell.bytes_per_second,
                "interval": cell.interval,
                "requests_per_second": load.requests_per_second(cell),
                "answer_p99_ns": cell.measures.get("fio_read_clat_p99_ns"),
            })
        };
        json!({
            "name": self.kind.file_name(),
            "present": value(self.kind, &self.advice.present),
            "recommended": gain.recommended().map(|level| value(self.kind, level)),
            "gain": gain.document(),
            "costs": self.costs(),
            "levels": self.judgement.cells.iter().map(level).collect::<Vec<Value>>(),
        })
    }
}

impl Queue {
    fn little(&self) -> Option<Little> {
        match (self.tuned.first(), &self.as_it_is) {
            (Some(tuned), _) => tuned.little,
            (None, Some((_, little))) => *little,
            (None, None) => None,
        }
    }

    /// The command that applies the recommendation.
    fn command(&self) -> Option<String> {
        let settings = self.to_apply();
        let typed: Vec<(&str, &str)> =
            settings.iter().map(|(kind, value)| (kind.file_name(), value.as_str())).collect();
        (!typed.is_empty()).then(|| set_line(&typed_path(&self.path), &typed))
    }

    fn table(&self) -> String {
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
            let measures = [self.load.requests_words(cell), measure("fio_clat_p99_ns")];
            let cells = [name.to_owned(), value, runs, mean, interval].into_iter();
            table.row(cells.chain(measures).collect(), emphasis);
        };
        for tuned in &self.tuned {
            let recommended = tuned.gain(self.worth).recommended().cloned();
            for cell in &tuned.judgement.cells {
                let Some(level) = cell.cell.get(tuned.factor()) else { continue };
                let is_own = recommended.as_ref() == Some(level);
                let emphasis = if is_own { Emphasis::Strong } else { Emphasis::None };
                row(tuned.kind.file_name(), shown(tuned.kind, level), cell, emphasis);
            }
        }
        for cell in self.as_it_is.iter().flat_map(|(judgement, _)| &judgement.cells) {
            row("as it is", "-".to_owned(), cell, Emphasis::None);
        }
        table.render(colour(&std::io::stdout()))
    }
}

impl Recommended for Queue {
    fn to_apply(&self) -> Vec<(SettingKind, String)> {
        let one = |tuned: &Tuned| {
            let gain = tuned.gain(self.worth);
            gain.to_apply().map(|level| (tuned.kind, value(tuned.kind, level)))
        };
        self.tuned.iter().filter_map(one).collect()
    }

    fn is_settled(&self) -> bool {
        let is_settled = |tuned: &Tuned| tuned.gain(self.worth).recommended().is_some();
        !self.tuned.is_empty() && self.tuned.iter().all(is_settled)
    }

    fn document(&self, applied: Option<&Applied>) -> Value {
        let little = self.little().map(|little| {
            json!({
                "requests_per_second": little.requests_per_second,
                "answer_seconds": little.answer_seconds,
                "in_flight": little.in_flight(),
                "asked": self.load.depth,
                "holds": little.holds(self.load.depth),
            })
        });
        let left_out = |one: &LeftOut| {
            json!({
                "name": one.kind.file_name(),
                "value": one.value.as_ref().map(|value| &value.value),
                "becomes": one.value.as_ref().and_then(|value| value.becomes.as_ref()),
                "why": one.why,
            })
        };
        let tuned = |tuned: &Tuned| tuned.document(self.worth, &self.load);
        json!({
            "command": "tune queue",
            "path": self.path,
            "file": self.file,
            "device": self.device,
            "load": {
                "name": self.load.name,
                "block_bytes": self.load.block_bytes,
                "depth": self.load.depth,
            },
            "settings": self.tuned.iter().map(tuned).collect::<Vec<Value>>(),
            "not_tried": self.left_out.iter().map(left_out).collect::<Vec<Value>>(),
            "explanation": little,
            "commands": self.command().map(|apply| {
                let keep = self.not_kept.is_none().then_some(KEEP);
                json!({ "apply": apply, "keep": keep, "undo": UNDO })
            }),
            "applied": applied.map(Applied::document),
        })
    }

    fn text(&self, applied: Option<&Applied>) -> String {
        let text = self.table();
        let mut told: Vec<(&str, Vec<String>)> = Vec::new();
        let load = if self.load.name == "read" { "sequential reads" } else { "random reads" };
        told.push((
            "load",
            vec![format!(
                "{load} of {}, {} in flight, direct I/O, on {}",
                binary_size(self.load.block_bytes),
                self.load.depth,
                self.device
            )],
        ));
        for tuned in &self.tuned {
            let name = tuned.kind.file_name();
            let gain = tuned.gain(self.worth);
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
            told.extend(costs.map(|paid| ("costs", vec![gain.cost_words(paid)])));
        }
        told.extend(self.left_out.iter().map(|one| (one.kind.file_name(), vec![one.words()])));
        told.extend(self.little().map(|it| ("why", vec![it.words(self.load.depth)])));
        if let Some(applied) = applied {
            return text + &lines_under_heads(&told) + &applied.text();
        }
        if self.to_apply().len() > 1 {
            let apart = "each setting alone; their combined effect was not measured";
            told.push(("measured", vec![apart.to_owned()]));
        }
        if let Some(command) = self.command() {
            told.push(("apply", vec![command]));
            told.push(("keep", vec![keep_line(self.not_kept.as_deref())]));
            told.push(("undo", vec![UNDO.to_owned()]));
        }
        if self.tuned.is_empty() {
            let path = quoted(&self.path.display().to_string());
            told.push(("measure", vec![format!("sudo takeup tune queue {path}")]));
        }
        text + &lines_under_heads(&told)
    }
}

#[cfg(test)]
mod tests {
    use experiment::judgement::{JudgementOptions, advice, judge};
    use experiment::record::Factor;

    use super::*;
    use crate::commands::tune::levels::ValueLeftOut;

    /// Eight runs of each level at these rates, and the 99th percentile of the latency; the first
    /// level is the present one.
    fn tuned(kind: SettingKind, name: &str, levels: &[(Level, f64, f64)]) -> Tuned {
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
        let little = Little::of(runs.iter().filter(|run| run.cell.values().next() == first));
        Tuned { kind, judgement, advice, little }
    }

    fn queue(tuned: Vec<Tuned>) -> Queue {
        Queue {
            path: "/srv/big file".into(),
            file: "/srv/big file".into(),
            device: "sda".to_owned(),
            load: Load { name: "randread", block_bytes: 4096, depth: 32 },
            worth: 0.05,
            not_kept: None,
            tuned,
            as_it_is: None,
            left_out: vec![
                LeftOut::whole(
                    SettingKind::MaxSectors,
                    "no value splits requests of 4 KiB".to_owned(),
                ),
                LeftOut {
                    kind: SettingKind::Requests,
                    value: Some(ValueLeftOut { value: "512".into(), becomes: Some("256".into()) }),
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
        let document = queue.document(None);
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
        let text = queue.text(None);
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
        let of =
            |requests_per_second, answer_seconds| Little { requests_per_second, answer_seconds };
        let short = of(727.0, 5.5e-3);
        assert!(!short.holds(32));
        assert!(short.words(32).contains("are 4.00 in flight, but 32 were requested: the others"));
        let held = of(5818.0, 5.5e-3);
        assert!(held.holds(32) && held.words(32).ends_with("; 32 were requested"));
        assert!(of(9000.0, 5.5e-3).words(32).ends_with("requested: the numbers do not match"));
        // Rates and latencies scatter: the law holds for each run, but not for their means.
        let run = |iops: f64| RunRecord {
            measures: [("fio_iops", iops), ("fio_clat_mean_ns", 32e9 / iops)]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ..RunRecord::default()
        };
        let runs = [run(100.0), run(1000.0), run(10.0)];
        assert!(Little::of(runs.iter()).unwrap().holds(32));
    }
}
