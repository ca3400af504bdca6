//! The result of measuring read-ahead, as text.

use base::format::{rate, size};
use base::rounding::Rounding;
use experiment::judgement::{CellSummary, quoted};
use experiment::quantities::Unit;
use experiment::record::{Level, Value as Compared, binary_size};
use service::tune::apply::Applied;
use service::tune::explanation::{LatencySource, WindowExplanation};
use service::tune::read_ahead::TunedReadAhead;
use service::tune::read_ahead_advice::ReadAheadAdvice;

use super::{cost_words, keep_line, unsettled};
use crate::findings::lines_under_heads;
use crate::next::diagnose;
use crate::table::{Align, Emphasis, Style, Table};

/// The whole text.
pub fn text(tuned: &TunedReadAhead, style: Style) -> String {
    advice_text(&tuned.advice, tuned.ending.applied.as_ref(), style) + unsettled(&tuned.ending)
}

fn advice_text(it: &ReadAheadAdvice, applied: Option<&Applied>, style: Style) -> String {
    let mut text = table(it, style);
    let mut told: Vec<(&str, Vec<String>)> = vec![("present", vec![present(it)])];
    match it.gain() {
        Some(gain) => {
            told.push(("recommended", vec![recommended_words(it)]));
            told.push(("gain", vec![gain.words()]));
            let costs = it.costs().into_iter();
            told.extend(costs.map(|paid| ("costs", vec![cost_words(&gain, paid)])));
        }
        None => told.push(("recommended", vec![nothing(it).to_owned()])),
    }
    if let Some(explanation) = &it.explanation {
        told.extend(lines(explanation).into_iter().map(|line| ("why", vec![line])));
    }
    let left_out = it.of.left_out.iter();
    told.extend(
        left_out.map(|(bytes, why)| ("not tried", vec![format!("{}: {why}", binary_size(*bytes))])),
    );
    if let Some(applied) = applied {
        return text + &lines_under_heads(&told, style) + &super::apply::text(applied);
    }
    let commands = commands(it);
    let next = if commands.is_empty() { diagnose(&it.of.path) } else { String::new() };
    told.extend(commands.into_iter().map(|(name, line)| (name, vec![line])));
    text.push_str(&lines_under_heads(&told, style));
    text + &next
}

/// What to type.
fn commands(it: &ReadAheadAdvice) -> Vec<(&'static str, String)> {
    if let Some(commands) = it.commands() {
        let keep = keep_line(it.of.not_kept.as_deref());
        return vec![("apply", commands.apply), ("keep", keep), ("undo", commands.undo)];
    }
    if it.of.vxfs.is_some() {
        let commands = it.vxfs_commands().unwrap_or_default();
        let named = [
            ("try", commands.attempt),
            ("measure", commands.measure),
            ("keep", commands.keep),
            ("undo", commands.undo),
        ];
        return named.into_iter().filter_map(|(name, line)| Some((name, line?))).collect();
    }
    if it.advice.is_none() {
        let path = quoted(&it.of.path.display().to_string());
        return vec![("measure", format!("sudo takeup tune readahead {path}"))];
    }
    Vec::new()
}

/// The present value, with its rate.
fn present(it: &ReadAheadAdvice) -> String {
    let present = match &it.of.vxfs {
        Some((place, own)) => format!(
            "{} on {}: read_nstream {} of read_pref_io {}",
            binary_size(it.of.present),
            place.display(),
            own.read_nstream,
            binary_size(own.read_pref_io)
        ),
        None => format!("{} on {}", binary_size(it.of.present), it.of.device),
    };
    present + &rate_of(it, it.of.present)
}

fn cell(it: &ReadAheadAdvice, bytes: u64) -> Option<&CellSummary> {
    let level = Some(&Level::Number(bytes));
    it.judgement.cells.iter().find(|cell| cell.cell.get("read_ahead_bytes") == level)
}

fn table(it: &ReadAheadAdvice, style: Style) -> String {
    let is_swept = it.advice.is_some();
    let first: &[(&str, Align)] = if is_swept {
        &[("read-ahead", Align::Right)]
    } else {
        &[("cache", Align::Left), ("at once", Align::Right)]
    };
    let rest = ["runs", "mean", "95 % interval", "random read"].map(|head| (head, Align::Right));
    let mut table = Table::new(&[first, &rest].concat());
    let recommended = it.recommended();
    for cell in &it.judgement.cells {
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
            format!("{} to {}", digits.rate_digits(interval.low), digits.rate_digits(interval.high))
        }));
        let random = cell.measures.get("random_read_p50_ns");
        row.push(random.map_or("-".to_owned(), |&ns| Unit::of("random_read_p50_ns").shown(ns)));
        let is_own = recommended.is_some()
            && cell.cell.get("read_ahead_bytes").cloned() == recommended.map(Level::Number);
        table.row(row, if is_own { Emphasis::Strong } else { Emphasis::None });
    }
    for (bytes, below) in &it.of.cut {
        let below = below.map_or("-".to_owned(), |below| format!("below {}", rate(below)));
        let row = [binary_size(*bytes), "0".to_owned(), below, "cut".to_owned(), "-".to_owned()];
        table.row(row.to_vec(), Emphasis::None);
    }
    table.render(style)
}

/// `: 43.1 MB/s`, if it was measured.
fn rate_of(it: &ReadAheadAdvice, bytes: u64) -> String {
    match cell(it, bytes) {
        Some(cell) => format!(": {}", cell.told(Compared::Rate)),
        None => {
            let buffered =
                it.judgement.cells.iter().find(|cell| {
                    cell.cell.get("cache") == Some(&Level::Text("buffered".to_owned()))
                });
            buffered.map_or(String::new(), |cell| format!(": {}", rate(cell.bytes_per_second)))
        }
    }
}

/// Why there is no recommendation if nothing was varied.
fn nothing(it: &ReadAheadAdvice) -> &'static str {
    match it.of.vxfs {
        Some(_) => "nothing: takeup does not vary the read-ahead of VxFS",
        None => "nothing: run as root to measure other values",
    }
}

fn recommended_words(it: &ReadAheadAdvice) -> String {
    match it.recommended() {
        Some(bytes) if bytes == it.of.present => "keep the present value".to_owned(),
        Some(bytes) => format!("{}{}", binary_size(bytes), rate_of(it, bytes)),
        None => "nothing: no value is shown to be better than the present one".to_owned(),
    }
}

/// Why a window is large enough, in lines.
fn lines(explanation: &WindowExplanation) -> Vec<String> {
    let from = match explanation.answer_from {
        LatencySource::Sweep => "from the curve of the rates",
        LatencySource::RandomReads => "a random page",
    };
    let mut lines = vec![format!(
        "Little's law: {} from a device with a latency of {} ({from}) needs {} in flight: two \
         windows of {}",
        rate(explanation.bytes_per_second),
        Rounding::digits(2).seconds(explanation.answer_seconds),
        size(explanation.under_way_bytes as u64),
        size(explanation.window_bytes() as u64)
    )];
    let knee = binary_size(explanation.model_knee_bytes);
    let measured = explanation.measured_knee_bytes.map(binary_size);
    lines.push(match (measured, explanation.agrees()) {
        (Some(own), Some(true)) => {
            format!("the model of the kernel's read-ahead needs {knee}, {own} was measured")
        }
        (Some(own), _) => format!(
            "the model of the kernel's read-ahead needs {knee}, but {own} was measured: something \
             other than latency is the limit, or there are too few runs to distinguish the windows"
        ),
        (None, _) if explanation.vxfs => {
            format!("the model of the read-ahead of VxFS needs {knee}")
        }
        (None, _) => format!("the model of the kernel's read-ahead needs {knee}"),
    });
    lines
}

#[cfg(test)]
mod tests {
    use experiment::judgement::{JudgementOptions, advice, judge};
    use experiment::record::{Factor, RunRecord};
    use serde_json::{Value, json};
    use service::tune::read_ahead_advice::ReadAheadMeasured;
    use storage::stack::VxfsReadAhead;

    use super::*;

    fn text_of(advised: &ReadAheadAdvice) -> String {
        advice_text(advised, None, Style::PLAIN)
    }

    fn document_of(advised: &ReadAheadAdvice) -> Value {
        service::document(&advised.answer())
    }

    const WINDOWS: [u64; 3] = [128 << 10, 1 << 20, 8 << 20];

    /// Eight runs of each window at these rates; the first is the present one.
    fn recommendation(rates: [f64; 3]) -> ReadAheadAdvice {
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
        let of = ReadAheadMeasured {
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
        ReadAheadAdvice { of, judgement, advice, explanation: None }
    }

    /// If nothing keeps a setting over a restart, the text must say so.
    #[test]
    fn a_loop_device_is_said_not_to_be_kept() {
        let mut advised = recommendation([1e9, 2e9, 2e9]);
        assert!(text_of(&advised).contains("keep         takeup tune persist\n"));
        advised.of.not_kept = Some("a loop device is made anew".to_owned());
        let text = text_of(&advised);
        assert!(text.contains("not over a restart: a loop device is made anew\n"), "{text}");
        assert!(!text.contains("tune persist"), "{text}");
        assert_eq!(document_of(&advised)["commands"]["keep"], Value::Null);
    }

    /// On a VxFS nothing is varied; the text has the commands for the value of the model.
    #[test]
    fn a_vxfs_is_advised_in_its_own_words() {
        let mut advised = recommendation([2e9, 2e9, 2e9]);
        let own = VxfsReadAhead { read_pref_io: 64 << 10, read_nstream: 1 };
        advised.of.vxfs = Some(("/vx".into(), own));
        advised.of.present = own.window_bytes();
        (advised.advice, advised.of.cut) = (None, Vec::new());
        advised.explanation = Some(WindowExplanation {
            answer_seconds: 5.5e-3,
            answer_from: LatencySource::RandomReads,
            bytes_per_second: 200e6,
            under_way_bytes: 1.1e6,
            model: Vec::new(),
            model_knee_bytes: 2 << 20,
            measured_knee_bytes: None,
            vxfs: true,
        });
        let text = text_of(&advised);
        for line in [
            "present      64 KiB on /vx: read_nstream 1 of read_pref_io 64 KiB",
            "recommended  nothing: takeup does not vary the read-ahead of VxFS",
            "try          vxtunefs -o read_nstream=32 '/vx'",
            "undo         vxtunefs -o read_nstream=1 '/vx'",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains("sudo takeup") && !text.contains("tune set"), "{text}");
        let document = document_of(&advised);
        assert_eq!(document["vxfs"]["read_pref_io"], 65536);
        assert_eq!(document["vxfs"]["commands"]["try"], "vxtunefs -o read_nstream=32 '/vx'");
        // With enough read-ahead there is nothing to try.
        advised.of.vxfs = Some(("/vx".into(), VxfsReadAhead { read_nstream: 32, ..own }));
        assert!(!text_of(&advised).contains("vxtunefs"), "{}", text_of(&advised));
    }

    /// A fast disk: a gain of three percent exists, but is not worth a change.
    #[test]
    fn little_to_gain_is_told_with_its_interval() {
        let little = recommendation([2e9, 2.06e9, 2.06e9]);
        let document = document_of(&little);
        assert_eq!(
            (&document["recommended"], &document["commands"]),
            (&json!(131_072), &Value::Null)
        );
        let gain = &document["gain"];
        assert!(gain["low"].as_f64() > Some(1.0) && gain["high"].as_f64() < Some(1.05), "{gain}");
        let text = text_of(&little);
        assert!(text.contains("recommended  keep the present value\n"), "{text}");
        assert!(text.contains("gain         little to gain: 1 MiB gives 1.03"), "{text}");
        assert!(text.contains("95 % interval 1.0"), "{text}");
    }

    #[test]
    fn a_setting_that_was_cut_is_told_as_that() {
        let much = recommendation([2e9, 4e9, 4e9]);
        let text = text_of(&much);
        let row: Vec<&str> =
            text.lines().find(|line| line.contains("cut")).unwrap().split_whitespace().collect();
        assert_eq!(row, ["4", "KiB", "0", "below", "39.0", "MB/s", "cut", "-"]);
        assert!(text.contains("not tried    16 MiB: too much\n"), "{text}");
        let last = document_of(&much)["levels"][3].clone();
        assert_eq!(
            (&last["runs"], &last["slower_than_bytes_per_second"]),
            (&json!(0), &json!(39e6))
        );
    }

    #[test]
    fn what_is_worth_it_comes_with_what_to_type() {
        let much = recommendation([2e9, 4e9, 4e9]);
        let commands = &document_of(&much)["commands"];
        assert_eq!(commands["apply"], "takeup tune set '/srv/big file' read_ahead_kb=1024");
        assert_eq!(commands["undo"], "takeup tune revert");
        assert_eq!(much.other_bytes(), Some(1 << 20));
        let slower = recommendation([2e9, 1e9, 1e9]);
        let gain = &document_of(&slower)["gain"];
        assert_eq!((slower.other_bytes(), &gain["high"]), (None, &json!(1.0)), "{gain}");
        let text = gain["text"].as_str().unwrap();
        assert_eq!(text, "none: the present value is the fastest, and all others are slower");
    }

    #[test]
    fn a_knee_that_the_model_does_not_explain_is_told() {
        let explained = |measured_knee_bytes, vxfs| WindowExplanation {
            answer_seconds: 5.5e-3,
            answer_from: LatencySource::RandomReads,
            bytes_per_second: 200e6,
            under_way_bytes: 1.1e6,
            model: Vec::new(),
            model_knee_bytes: 1 << 20,
            measured_knee_bytes,
            vxfs,
        };
        let near = lines(&explained(Some(1 << 20), false));
        assert!(near[0].ends_with("needs 1.10 MB in flight: two windows of 550 kB"), "{near:?}");
        assert!(near[1].ends_with("needs 1 MiB, 1 MiB was measured"), "{near:?}");
        let far = lines(&explained(Some(8 << 20), false));
        assert!(far[1].contains("but 8 MiB was measured"), "{far:?}");
        assert!(lines(&explained(None, true))[1].contains("the read-ahead of VxFS"));
    }
}
