//! The result of measuring read-ahead, as text and as a document.

use std::path::PathBuf;

use base::format::rate;
use experiment::judgement::{Advice, CellSummary, Judgement, KEEP, Paid, UNDO, quoted, set_line};
use experiment::quantities::Unit;
use experiment::record::{Level, Value as Compared, binary_size};
use report::findings::lines_under_heads;
use report::table::{Align, Emphasis, Table};
use serde_json::{Value, json};
use storage::settings::SettingKind;
use storage::stack::VxfsReadAhead;

use super::apply::{Applied, keep_line, typed_path};
use super::explanation::Explanation;
use super::gain::Gain;
use super::measuring::Recommended;
use crate::terminal::colour;

/// What was measured.
#[derive(Clone, Debug)]
pub struct Of {
    /// The path, as typed.
    pub path: PathBuf,
    /// The file that was read.
    pub file: PathBuf,
    /// The device or file system that has the read-ahead.
    pub device: String,
    /// The present read-ahead, in bytes.
    pub present: u64,
    /// The smallest gain that is worth a change, as a share.
    pub worth: f64,
    /// Why nothing keeps read-ahead over a restart, if nothing does.
    pub not_kept: Option<String>,
    /// Windows of which no run has finished, each with an upper bound on its rate.
    pub cut: Vec<(u64, Option<f64>)>,
    /// Levels that were not tried as requested, and why.
    pub left_out: Vec<(u64, String)>,
    /// The VxFS of the file, which Takeup does not set, and its read-ahead.
    pub vxfs: Option<(PathBuf, VxfsReadAhead)>,
}

/// The recommended read-ahead, or why there is none.
#[derive(Debug)]
pub struct Recommendation {
    of: Of,
    judgement: Judgement,
    /// `None` if nothing could be varied.
    advice: Option<Advice>,
    explanation: Option<Explanation>,
}

/// Costs that read-ahead can have, always shown; other costs only if they are settled.
const OF_WINDOWS: [&str; 3] =
    ["random_read_p50_ns", "random_read_device_bytes", "device_bytes_per_byte"];

impl Recommendation {
    /// Combines the parts.
    pub fn new(
        of: Of,
        judgement: Judgement,
        advice: Option<Advice>,
        explanation: Option<Explanation>,
    ) -> Recommendation {
        Recommendation { of, judgement, advice, explanation }
    }

    /// Bytes to set, if they differ from the present value.
    fn other_bytes(&self) -> Option<u64> {
        self.recommended().filter(|&bytes| bytes != self.of.present)
    }

    fn recommended(&self) -> Option<u64> {
        match self.gain()?.recommended()? {
            Level::Number(bytes) => Some(*bytes),
            Level::Text(_) => None,
        }
    }

    fn gain(&self) -> Option<Gain<'_>> {
        let shown = |level: &Level| match level {
            Level::Number(bytes) => binary_size(*bytes),
            Level::Text(text) => text.clone(),
        };
        let advice = self.advice.as_ref()?;
        Some(Gain { judgement: &self.judgement, advice, worth: self.of.worth, shown })
    }

    /// The commands that set it, keep it over a restart, and undo it.
    fn commands(&self) -> Option<[(&'static str, String); 3]> {
        let bytes = self.other_bytes()?;
        let kib = storage::settings::read_ahead_value(bytes);
        let path = typed_path(&self.of.path);
        Some([
            ("apply", set_line(&path, &[("read_ahead_kb", &kib)])),
            ("keep", keep_line(self.of.not_kept.as_deref())),
            ("undo", UNDO.to_owned()),
        ])
    }

    fn cell(&self, bytes: u64) -> Option<&CellSummary> {
        let level = Some(&Level::Number(bytes));
        self.judgement.cells.iter().find(|cell| cell.cell.get("read_ahead_bytes") == level)
    }

    /// The costs to show.
    fn costs(&self) -> Vec<&Paid> {
        let costs = self.advice.iter().flat_map(|advice| &advice.costs);
        let is_some = |paid: &&Paid| paid.present > 0.0 || paid.recommended > 0.0;
        let is_told = |paid: &&Paid| paid.is_settled || OF_WINDOWS.contains(&paid.measure);
        costs.filter(is_some).filter(is_told).collect()
    }

    fn table(&self) -> String {
        let is_swept = self.advice.is_some();
        let first: &[(&str, Align)] = if is_swept {
            &[("read-ahead", Align::Right)]
        } else {
            &[("cache", Align::Left), ("at once", Align::Right)]
        };
        let rest =
            ["runs", "mean", "95 % interval", "random read"].map(|head| (head, Align::Right));
        let mut table = Table::new(&[first, &rest].concat());
        let recommended = self.recommended();
        for cell in &self.judgement.cells {
            let shown =
                |name: &str| cell.cell.get(name).map_or("-".to_owned(), |level| level.shown(name));
            let mut row = if is_swept {
                vec![shown("read_ahead_bytes")]
            } else {
                vec![shown("cache"), shown("depth")]
            };
            row.push(cell.rates.len().to_string());
            row.push(cell.told(Compared::Rate));
            let digits = cell.digits();
            row.push(cell.interval.map_or("-".to_owned(), |interval| {
                format!(
                    "{} to {}",
                    digits.rate_digits(interval.low),
                    digits.rate_digits(interval.high)
                )
            }));
            let random = cell.measures.get("random_read_p50_ns");
            row.push(random.map_or("-".to_owned(), |&ns| Unit::of("random_read_p50_ns").shown(ns)));
            let is_own = recommended.is_some()
                && cell.cell.get("read_ahead_bytes").cloned() == recommended.map(Level::Number);
            table.row(row, if is_own { Emphasis::Strong } else { Emphasis::None });
        }
        for (bytes, below) in &self.of.cut {
            let below = below.map_or("-".to_owned(), |below| format!("below {}", rate(below)));
            let row =
                [binary_size(*bytes), "0".to_owned(), below, "cut".to_owned(), "-".to_owned()];
            table.row(row.to_vec(), Emphasis::None);
        }
        table.render(colour(&std::io::stdout()))
    }

    /// `: 43.1 MB/s`, if it was measured.
    fn rate_of(&self, bytes: u64) -> String {
        match self.cell(bytes) {
            Some(cell) => format!(": {}", cell.told(Compared::Rate)),
            None => {
                let buffered = self.judgement.cells.iter().find(|cell| {
                    cell.cell.get("cache") == Some(&Level::Text("buffered".to_owned()))
                });
                buffered.map_or(String::new(), |cell| format!(": {}", rate(cell.bytes_per_second)))
            }
        }
    }

    /// Why there is no recommendation if nothing was varied.
    fn nothing(&self) -> &'static str {
        match self.of.vxfs {
            Some(_) => "nothing: takeup does not vary the read-ahead of VxFS",
            None => "nothing: run as root to measure other values",
        }
    }

    /// The commands for a VxFS: the value of the model, the comparison, and the present value.
    fn vxfs_commands(&self) -> impl Iterator<Item = (&'static str, String)> {
        let commands = self.of.vxfs.as_ref().map(|(place, own)| {
            let place = place.to_string_lossy();
            let knee = self.explanation.as_ref().map_or(0, |it| it.model_knee_bytes);
            let file = quoted(&self.of.file.display().to_string());
            let wanted = knee.max(own.window_bytes());
            let mut lines = Vec::new();
            if wanted > own.window_bytes() {
                lines.push(("try", own.command(wanted, &place)));
                lines.push(("measure", format!("takeup bench read {file}, before and after")));
                lines.push(("keep", "a line in /etc/vx/tunefstab".to_owned()));
                lines.push(("undo", own.command(own.window_bytes(), &place)));
            }
            lines
        });
        commands.into_iter().flatten()
    }

    fn recommended_words(&self) -> String {
        match self.recommended() {
            Some(bytes) if bytes == self.of.present => "keep the present value".to_owned(),
            Some(bytes) => format!("{}{}", binary_size(bytes), self.rate_of(bytes)),
            None => "nothing: no value is shown to be better than the present one".to_owned(),
        }
    }
}

impl Recommended for Recommendation {
    fn to_apply(&self) -> Vec<(SettingKind, String)> {
        let value = self.other_bytes().map(storage::settings::read_ahead_value);
        value.map(|value| (SettingKind::ReadAhead, value)).into_iter().collect()
    }

    fn is_settled(&self) -> bool {
        self.recommended().is_some()
    }

    fn document(&self, applied: Option<&Applied>) -> Value {
        let level = |cell: &CellSummary| {
            json!({
                "read_ahead_bytes": cell.cell.get("read_ahead_bytes"),
                "cache": cell.cell.get("cache"),
                "depth": cell.cell.get("depth"),
                "runs": cell.rates.len(),
                "bytes_per_second": cell.bytes_per_second,
                "interval": cell.interval,
                "random_read_ns": cell.measures.get("random_read_p50_ns"),
            })
        };
        let gain = self.gain().map(|gain| gain.document());
        let commands = self.commands().map(|commands| {
            let line = |name: &str, line: String| match name {
                "keep" => json!(self.of.not_kept.is_none().then_some(KEEP)),
                _ => json!(line),
            };
            let pairs = commands.into_iter().map(|(name, it)| (name.to_owned(), line(name, it)));
            Value::Object(pairs.collect())
        });
        let mut levels: Vec<Value> = self.judgement.cells.iter().map(level).collect();
        levels.extend(self.of.cut.iter().map(|(bytes, below)| {
            json!({ "read_ahead_bytes": bytes, "runs": 0, "slower_than_bytes_per_second": below })
        }));
        json!({
            "command": "tune readahead",
            "path": self.of.path,
            "file": self.of.file,
            "device": self.of.device,
            "present": self.of.present,
            "recommended": self.recommended(),
            "gain": gain,
            "costs": self.costs(),
            "levels": levels,
            "left_out": self.of.left_out.iter().map(|(bytes, why)| {
                json!({ "read_ahead_bytes": bytes, "why": why })
            }).collect::<Vec<Value>>(),
            "explanation": self.explanation,
            "commands": commands,
            "vxfs": self.of.vxfs.as_ref().map(|(place, own)| json!({
                "mount_point": place,
                "read_pref_io": own.read_pref_io,
                "read_nstream": own.read_nstream,
                "commands": Value::Object(
                    self.vxfs_commands().map(|(name, it)| (name.to_owned(), json!(it))).collect()
                ),
            })),
            "applied": applied.map(Applied::document),
        })
    }

    fn text(&self, applied: Option<&Applied>) -> String {
        let mut text = self.table();
        let mut told: Vec<(&str, Vec<String>)> = Vec::new();
        let device = &self.of.device;
        let present = match &self.of.vxfs {
            Some((place, own)) => format!(
                "{} on {}: read_nstream {} of read_pref_io {}",
                binary_size(self.of.present),
                place.display(),
                own.read_nstream,
                binary_size(own.read_pref_io)
            ),
            None => format!("{} on {device}", binary_size(self.of.present)),
        };
        told.push(("present", vec![present + &self.rate_of(self.of.present)]));
        match self.gain() {
            Some(gain) => {
                told.push(("recommended", vec![self.recommended_words()]));
                told.push(("gain", vec![gain.words()]));
                let costs = self.costs().into_iter();
                told.extend(costs.map(|paid| ("costs", vec![gain.cost_words(paid)])));
            }
            None => told.push(("recommended", vec![self.nothing().to_owned()])),
        }
        if let Some(explanation) = &self.explanation {
            told.extend(explanation.lines().into_iter().map(|line| ("why", vec![line])));
        }
        let left_out = self.of.left_out.iter();
        told.extend(
            left_out
                .map(|(bytes, why)| ("not tried", vec![format!("{}: {why}", binary_size(*bytes))])),
        );
        match (applied, self.commands()) {
            (Some(applied), _) => return text + &lines_under_heads(&told) + &applied.text(),
            (None, Some(commands)) => {
                told.extend(commands.into_iter().map(|(name, line)| (name, vec![line])));
            }
            (None, None) if self.of.vxfs.is_some() => {
                told.extend(self.vxfs_commands().map(|(name, line)| (name, vec![line])));
            }
            (None, None) if self.advice.is_none() => {
                let path = quoted(&self.of.path.display().to_string());
                told.push(("measure", vec![format!("sudo takeup tune readahead {path}")]));
            }
            (None, None) => {}
        }
        text.push_str(&lines_under_heads(&told));
        text
    }
}

#[cfg(test)]
mod tests {
    use experiment::judgement::{JudgementOptions, advice, judge};
    use experiment::record::{Factor, RunRecord};

    use super::*;

    const WINDOWS: [u64; 3] = [128 << 10, 1 << 20, 8 << 20];

    /// Eight runs of each window at these rates; the first is the present one.
    fn recommendation(rates: [f64; 3]) -> Recommendation {
        let mut runs = Vec::new();
        for repeat in 1..=8 {
            for (place, (window, rate)) in WINDOWS.into_iter().zip(rates).enumerate() {
                let scatter = 0.002 * ((repeat * 5 + place as u64 * 3) % 7) as f64;
                runs.push(RunRecord {
                    cell: [("read_ahead_bytes".to_owned(), Level::Number(window))].into(),
                    repeat,
                    bytes: rate as u64,
                    seconds: 1.0 + scatter,
                    ..RunRecord::default()
                });
            }
        }
        let present = Some(Level::Number(WINDOWS[0]));
        let levels = WINDOWS.map(Level::Number).to_vec();
        let factor = Factor { present, ..Factor::new("read_ahead_bytes", levels) };
        let options = JudgementOptions::default();
        let judgement = judge(std::slice::from_ref(&factor), &runs, &options);
        let advice = advice(&judgement, &factor, &runs, &options);
        let of = Of {
            path: "/srv/big file".into(),
            file: "/srv/big file".into(),
            device: "sda".into(),
            present: WINDOWS[0],
            worth: 0.05,
            not_kept: None,
            cut: vec![(4096, Some(39e6))],
            left_out: vec![(16 << 20, "too much".to_owned())],
            vxfs: None,
        };
        Recommendation::new(of, judgement, advice, None)
    }

    /// If nothing keeps a setting over a restart, the text must say so.
    #[test]
    fn a_loop_device_is_said_not_to_be_kept() {
        let mut advised = recommendation([1e9, 2e9, 2e9]);
        assert!(advised.text(None).contains("keep         takeup tune persist\n"));
        advised.of.not_kept = Some("a loop device is made anew".to_owned());
        let text = advised.text(None);
        assert!(text.contains("not over a restart: a loop device is made anew\n"), "{text}");
        assert!(!text.contains("tune persist"), "{text}");
        assert_eq!(advised.document(None)["commands"]["keep"], Value::Null);
    }

    /// On a VxFS nothing is varied; the text has the commands for the value of the model.
    #[test]
    fn a_vxfs_is_advised_in_its_own_words() {
        let mut advised = recommendation([2e9, 2e9, 2e9]);
        let own = VxfsReadAhead { read_pref_io: 64 << 10, read_nstream: 1 };
        advised.of.vxfs = Some(("/vx".into(), own));
        advised.of.present = own.window_bytes();
        (advised.advice, advised.of.cut) = (None, Vec::new());
        advised.explanation = Some(Explanation {
            answer_seconds: 5.5e-3,
            answer_from: super::super::explanation::Source::RandomReads,
            bytes_per_second: 200e6,
            under_way_bytes: 1.1e6,
            model: Vec::new(),
            model_knee_bytes: 2 << 20,
            measured_knee_bytes: None,
            vxfs: true,
        });
        let text = advised.text(None);
        for line in [
            "present      64 KiB on /vx: read_nstream 1 of read_pref_io 64 KiB",
            "recommended  nothing: takeup does not vary the read-ahead of VxFS",
            "try          vxtunefs -o read_nstream=32 '/vx'",
            "undo         vxtunefs -o read_nstream=1 '/vx'",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains("sudo takeup") && !text.contains("tune set"), "{text}");
        let document = advised.document(None);
        assert_eq!(document["vxfs"]["read_pref_io"], 65536);
        assert_eq!(document["vxfs"]["commands"]["try"], "vxtunefs -o read_nstream=32 '/vx'");
        // With enough read-ahead there is nothing to try.
        advised.of.vxfs = Some(("/vx".into(), VxfsReadAhead { read_nstream: 32, ..own }));
        assert!(!advised.text(None).contains("vxtunefs"), "{}", advised.text(None));
    }

    /// A fast disk: a gain of three percent exists, but is not worth a change.
    #[test]
    fn little_to_gain_is_told_with_its_interval() {
        let little = recommendation([2e9, 2.06e9, 2.06e9]);
        let document = little.document(None);
        assert_eq!(
            (&document["recommended"], &document["commands"]),
            (&json!(131_072), &Value::Null)
        );
        let gain = &document["gain"];
        assert!(gain["low"].as_f64() > Some(1.0) && gain["high"].as_f64() < Some(1.05), "{gain}");
        let text = little.text(None);
        assert!(text.contains("recommended  keep the present value\n"), "{text}");
        assert!(text.contains("gain         little to gain: 1 MiB gives 1.03"), "{text}");
        assert!(text.contains("95 % interval 1.0"), "{text}");
    }

    #[test]
    fn a_setting_that_was_cut_is_told_as_that() {
        let much = recommendation([2e9, 4e9, 4e9]);
        let text = much.text(None);
        let row: Vec<&str> =
            text.lines().find(|line| line.contains("cut")).unwrap().split_whitespace().collect();
        assert_eq!(row, ["4", "KiB", "0", "below", "39.0", "MB/s", "cut", "-"]);
        assert!(text.contains("not tried    16 MiB: too much\n"), "{text}");
        let last = much.document(None)["levels"][3].clone();
        assert_eq!(
            (&last["runs"], &last["slower_than_bytes_per_second"]),
            (&json!(0), &json!(39e6))
        );
    }

    #[test]
    fn what_is_worth_it_comes_with_what_to_type() {
        let much = recommendation([2e9, 4e9, 4e9]);
        let commands = &much.document(None)["commands"];
        assert_eq!(commands["apply"], "takeup tune set '/srv/big file' read_ahead_kb=1024");
        assert_eq!(commands["undo"], "takeup tune revert");
        assert_eq!(much.other_bytes(), Some(1 << 20));
        let slower = recommendation([2e9, 1e9, 1e9]);
        let gain = &slower.document(None)["gain"];
        assert_eq!((slower.other_bytes(), &gain["high"]), (None, &json!(1.0)), "{gain}");
        let text = gain["text"].as_str().unwrap();
        assert_eq!(text, "none: the present value is the fastest, and all others are slower");
    }
}
