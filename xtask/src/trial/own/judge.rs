//! The diagnosis of a run, compared with the measured gains of single changes.

use anyhow::Context as _;
use serde_json::Value;

use super::super::Outcome;
use super::scene::Change;

/// The time of a run with one change.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub change: Change,
    pub seconds: f64,
}

/// A smaller share of the run counts as no gain.
const NOTHING: f64 = 0.07;
/// A predicted time may be off by this share of the run.
const CLOSE: f64 = 0.15;
/// A change that gains at least this share of the run confirms a "would help".
const HELPS: f64 = 0.05;

/// Changes that remove the work of compression. No compression doubles the bytes for the target; a
/// low level does not.
const COMPRESSION: &[Change] = &[Change::NoCompression, Change::LowerLevel];

/// The duration of a run by its document.
pub fn seconds(document: &Value) -> anyhow::Result<f64> {
    document["seconds"].as_f64().with_context(|| format!("a document without a length: {document}"))
}

/// Compares the document of a run with the changes.
pub fn judge(
    outcome: &mut Outcome,
    document: &Value,
    measured: &[Measured],
    again: &dyn Fn(Change) -> anyhow::Result<f64>,
) -> anyhow::Result<()> {
    let took = seconds(document)?;
    let said = document["explanation"].as_str().unwrap_or_default();
    outcome.said = said.to_owned();
    let shown: Vec<String> =
        measured.iter().map(|it| format!("{:?} {:.2} s", it.change, it.seconds)).collect();
    outcome.truth = format!("{took:.2} s; {}", shown.join(", "));
    let truth = outcome.truth.clone();
    let fastest = measured.iter().map(|it| it.seconds).fold(took, f64::min);
    let named = named(document, said);
    let of = |change: Change| measured.iter().find(|it| it.change == change);
    let is_right = match named.as_slice() {
        // The document names no single limit: no single change may gain much.
        [] => took - fastest <= 0.25 * took,
        changes => changes.iter().any(|change| {
            // A part that cannot be improved further: nothing else may gain.
            of(*change).map_or(took, |it| it.seconds) <= fastest + NOTHING * took
        }),
    };
    let because = || format!("{said} | {truth}");
    outcome.check("limit", is_right, because());
    claim_gains(outcome, said, took, document["limit"] == "turns", measured, again)?;
    claim_others(outcome, said, &truth);
    check_advice(outcome, said, took, measured, again)
}

/// The changes that remove the named limit, or the busiest of several stages that take turns.
fn named(document: &Value, said: &str) -> Vec<Change> {
    let stage = document["bottleneck"].as_str().unwrap_or_default();
    match (document["limit"].as_str().unwrap_or_default(), stage) {
        ("unknown", _) => Vec::new(),
        ("turns", _) if said.contains("the ring of") => vec![Change::LargeRing],
        ("turns", "compress") => COMPRESSION.to_vec(),
        ("turns", "write") => vec![Change::FreeTarget],
        ("turns", _) => vec![Change::FreeSource],
        ("rate limit", _) => vec![Change::NoRateLimit],
        ("processor", _) if said.contains("with other programs") => {
            [&[Change::NoLoad], COMPRESSION].concat()
        }
        (_, "compress") | ("processor", _) => COMPRESSION.to_vec(),
        (_, "write") => vec![Change::FreeTarget],
        _ => vec![Change::FreeSource],
    }
}

/// `300 ms`, `1.97 s`, `1 min 05 s`: the seconds before a word.
fn time_behind(said: &str, words: &str) -> Option<f64> {
    let rest = &said[said.find(words)? + words.len()..];
    let mut parts = rest.split_whitespace();
    let number: f64 = parts.next()?.parse().ok()?;
    match parts.next()?.trim_matches([';', ',']) {
        "ms" => Some(number / 1e3),
        "s" => Some(number),
        "min" => {
            let more: f64 = parts.next()?.parse().ok()?;
            Some(60.0 * number + more)
        }
        _ => None,
    }
}

/// Sentences that predict a time.
fn claim_gains(
    outcome: &mut Outcome,
    said: &str,
    took: f64,
    turns: bool,
    measured: &[Measured],
    again: &dyn Fn(Change) -> anyhow::Result<f64>,
) -> anyhow::Result<()> {
    let ring = "with a ring of ";
    let sentences = [
        ("with a source that costs nothing the run would have taken ", Change::FreeSource),
        ("if read cost nothing the run would have taken ", Change::FreeSource),
        ("if write cost nothing the run would have taken ", Change::FreeTarget),
        ("if compress cost nothing the run would have taken ", Change::NoCompression),
        ("without that limit the run would have taken ", Change::NoRateLimit),
        ("with the cores for itself the run would have taken ", Change::NoLoad),
    ];
    for (sentence, change) in sentences {
        let Some(predicted) = time_behind(said, sentence) else { continue };
        let is_of = |it: &&Measured| match change {
            Change::NoCompression => COMPRESSION.contains(&it.change),
            _ => it.change == change,
        };
        let times = measured.iter().filter(is_of).map(|it| it.seconds);
        let Some(found) = times.reduce(f64::min) else { continue };
        let is_true = (found - predicted).abs() <= CLOSE * took + 0.1;
        outcome.claim(sentence, is_true, format!("{said} | {change:?} took {found:.2} s"));
    }
    if let (Some(at), Some(bytes)) = (said.find(ring), ring_of(said)) {
        let predicted = time_behind(&said[at..], "the run would have taken ");
        let found = again(Change::Ring(bytes))?;
        let is_true =
            predicted.is_some_and(|predicted| (found - predicted).abs() <= CLOSE * took + 0.1);
        outcome.claim("with a ring of", is_true, format!("{said} | it took {found:.2} s"));
    }
    if turns {
        let best = measured.iter().map(|it| it.seconds).fold(took, f64::min);
        outcome.claim("no single stage", took - best <= 0.5 * took, format!("{said} | {best:.2}"));
    }
    Ok(())
}

/// The bytes after `--ring`.
fn ring_of(said: &str) -> Option<u64> {
    let rest = &said[said.find("--ring ")? + "--ring ".len()..];
    let word = rest.split([';', ' ', ',']).next()?;
    let (digits, unit) = word.split_at(word.find(|it: char| !it.is_ascii_digit())?);
    let factor = match unit {
        "M" => 1 << 20,
        "K" => 1 << 10,
        _ => return None,
    };
    Some(digits.parse::<u64>().ok()? * factor)
}

/// Other programs that are named must have held the run back.
fn claim_others(outcome: &mut Outcome, said: &str, truth: &str) {
    let Some((_, rest)) = said.split_once("of the cores, for which ") else { return };
    let waited = rest.split_whitespace().nth(2).and_then(|word| word.parse::<f64>().ok());
    let is_true = waited.is_some_and(|percent| percent >= 4.0);
    outcome.claim("other programs took", is_true, format!("{said} | {truth}"));
}

/// Advice is tried: as typed, or with the change that corresponds to it.
fn check_advice(
    outcome: &mut Outcome,
    said: &str,
    took: f64,
    measured: &[Measured],
    again: &dyn Fn(Change) -> anyhow::Result<f64>,
) -> anyhow::Result<()> {
    let mut advised = Vec::new();
    let mut add = |words: &str, change: Change| {
        if said.contains(words) {
            advised.push((words.to_owned(), change));
        }
    };
    add("look at what fills the", Change::FreeSource);
    add("a faster disk would help", Change::FreeSource);
    add("look at that program", Change::FreeTarget);
    add("raise or drop --rate-limit", Change::NoRateLimit);
    add("--compress none", Change::NoCompression);
    add("--compress zstd:1", Change::LowerLevel);
    add("--compress zstd,", Change::Zstd);
    add("more files in flight", Change::ReadThreads(128));
    add("other programs use the cores", Change::NoLoad);
    add("a larger --ring may help", Change::LargeRing);
    if said.contains("--compress-threads ") {
        let cores = std::thread::available_parallelism().map_or(2, usize::from) as u64;
        advised.push(("--compress-threads".to_owned(), Change::CompressThreads(cores)));
    }
    if let Some(bytes) = ring_of(said) {
        advised.push(("--ring".to_owned(), Change::Ring(bytes)));
    }
    for (words, change) in advised {
        let known = measured.iter().find(|it| it.change == change).map(|it| it.seconds);
        let found = match known {
            Some(known) => known,
            None => again(change)?,
        };
        let helps = took - found >= HELPS * took;
        outcome.check("advice", helps, format!("{words} took {found:.2} s of {took:.2} s: {said}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_sentences() {
        let said = "the ring of 2.10 MB was the limit; with a ring of 16.8 MB the run would have \
                    taken 3.92 s instead of 4.34 s; --ring 16M";
        assert_eq!(time_behind(said, "the run would have taken "), Some(3.92));
        assert_eq!(ring_of(said), Some(16 << 20));
        assert_eq!(time_behind("it took 1 min 05 s", "took "), Some(65.0));
        assert_eq!(time_behind("it took 300 ms; more", "took "), Some(0.3));
        assert_eq!(time_behind("it took long", "took "), None);
        assert_eq!(ring_of("a larger --ring may help"), None);
    }
}
