//! A pipeline that runs: what its programs do, beside what the chain should give.

use std::path::PathBuf;
use std::time::Duration;

use base::finding::{Certainty, Finding, Unit};
use base::format::{percent, rate};
use diagnosis::chain::{Chain, Link, Work};
use diagnosis::rank::Ranking;
use diagnosis::rules;
use diagnosis::source::Found;
use flow::cancel::Cancel;

use super::not_known;
use crate::explain::{ExplainRequest, ExplainTarget, PipelineRunAnswer, Quiet, explain};
use crate::failure::Failure;

/// A pipeline that was found running.
pub(super) struct Attached {
    pub(super) line: String,
    /// Its working folder.
    pub(super) folder: Option<PathBuf>,
    pub(super) run: PipelineRunAnswer,
}

/// A measured rate may differ from the forecast by this share.
const OFF: f64 = 0.3;

/// Runs a line to its end: what it writes is whole.
pub(super) fn run(line: &str, cancel: &Cancel) -> Result<PipelineRunAnswer, Failure> {
    let target = ExplainTarget::Pipeline(line.to_owned());
    let explained = explain(&request(target, None), cancel, &mut Quiet)?;
    Ok(explained.answer().run)
}

pub(super) fn request(target: ExplainTarget, limit: Option<Duration>) -> ExplainRequest {
    ExplainRequest {
        target,
        shell: None,
        seconds: limit.map(|limit| limit.as_secs_f64()),
        baseline: false,
        tries: false,
        shows_output: false,
    }
}

/// Looks at a process and all that pipes join it to, and makes a line of them.
pub(super) fn attach(pid: u32, limit: Duration, cancel: &Cancel) -> Result<Attached, Failure> {
    let explained =
        explain(&request(ExplainTarget::Process(pid), Some(limit)), cancel, &mut Quiet)?;
    let run = explained.answer().run;
    let stages: Vec<String> = run.stages.iter().map(|stage| line_of(&stage.arguments)).collect();
    let mut line = stages.join(" | ");
    let last = run.stages.last().map(|stage| stage.pid);
    if let Some(output) = last.and_then(output_of) {
        line = format!("{line} > {}", super::shown(&output.to_string_lossy()));
    }
    let folder = run.stages.first().map(|stage| stage.pid);
    let folder = folder.and_then(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).ok());
    Ok(Attached { line, folder, run })
}

fn line_of(words: &[String]) -> String {
    words.iter().map(|word| as_typed(word)).collect::<Vec<String>>().join(" ")
}

/// A word of a running program, quoted for the shell; options stay options.
fn as_typed(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%=,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The file or device that standard output of a process goes to.
fn output_of(pid: u32) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/{pid}/fd/1")).ok()?;
    let is_file = path.is_absolute() && !path.starts_with("/dev/pts");
    (is_file && path.exists()).then_some(path)
}

/// The job that runs is not one of the others: what it takes of processors and disks is its own.
pub(super) fn leave_out(run: &PipelineRunAnswer, found: &mut Found) {
    let used: f64 = run.stages.iter().map(|stage| stage.processor_seconds).sum();
    found.others_cores = (found.others_cores - used / run.seconds.max(1e-3)).max(0.0);
    found.busy_before = 0.0;
}

/// Bytes of the source that a run has read: the most that any stage shows, times what the
/// compressors before it shrink. A tar with a compressor of its own shows none, and a program that
/// moves pages from pipe to pipe fewer than it moved.
pub(super) fn read_bytes(run: &PipelineRunAnswer, chain: &Chain) -> Option<f64> {
    let moved = run.stages.iter().map(|stage| [stage.bytes_in, stage.bytes_out]);
    source_bytes(moved, &chain.links)
}

/// The same of what went into and out of each stage.
fn source_bytes(moved: impl Iterator<Item = [Option<u64>; 2]>, links: &[Link]) -> Option<f64> {
    let shrinks = |before: usize| -> f64 {
        let links = links.iter().filter(|link| link.stage < before);
        links
            .map(|link| match link.work {
                Work::Compresses { ratio, .. } => ratio,
                _ => 1.0,
            })
            .product()
    };
    let all = moved.enumerate().flat_map(|(at, [came, went])| {
        let came = came.map(|bytes| bytes as f64 * shrinks(at));
        [came, went.map(|bytes| bytes as f64 * shrinks(at + 1))]
    });
    all.flatten().reduce(f64::max)
}

/// What the run says beside the chain: its rate, and its own limit where they differ.
pub(super) fn compare(
    run: &PipelineRunAnswer,
    chain: &Chain,
    ranking: &Ranking,
    findings: &mut Vec<Finding>,
) {
    let named = |what: String| Finding::new(&rules::PROGRAM, Certainty::Measured, what);
    let forecast = ranking.now.bytes;
    let measured = read_bytes(run, chain).map(|bytes| bytes / run.seconds.max(1e-3));
    let own = run.findings.first().cloned();
    let Some(measured) = measured.filter(|rate| *rate > 0.0) else {
        findings.push(not_known("how much the line read in its run is not known"));
        findings.extend(own);
        return;
    };
    let is_near = measured >= forecast.low * (1.0 - OFF) && measured <= forecast.high * (1.0 + OFF);
    let what = format!("the line itself read {} in its run", rate(measured));
    let mut finding = named(what).with_number("measured", measured, Unit::BytesPerSecond);
    if is_near {
        findings.push(finding);
        return;
    }
    let off = percent((measured / forecast.typical - 1.0).abs());
    let side = if measured < forecast.typical { "less" } else { "more" };
    finding.caveat = Some(format!(
        "that is {off} {side} than the trials let expect ({}): something acts that they do not see",
        rate(forecast.typical)
    ));
    // What was seen comes before what was concluded, and may contradict it.
    let has_limit = !ranking.steps.is_empty() || ranking.last.is_some();
    if let (Some(_), true, Some(concluded)) = (&own, has_limit, findings.first_mut()) {
        concluded.what = format!("by the trials alone, {}", concluded.what);
    }
    findings.splice(0..0, [finding].into_iter().chain(own));
}

#[cfg(test)]
mod tests {
    use diagnosis::amount::Amount;

    use super::*;

    #[test]
    fn what_comes_out_of_a_compressor_counts_in_bytes_of_the_source() {
        let link = |stage, work| Link {
            shown: String::new(),
            stage,
            work,
            read_bytes: 1,
            write_bytes: 1,
            input_bytes: 1,
        };
        let compresses = Work::Compresses { rate: Amount::told(1e6), ratio: 2.0, threads: 1.0 };
        // `tar czf - srv | cat`: tar and its gzip are one stage.
        let links = [link(0, Work::Passes), link(0, compresses), link(1, Work::Passes)];
        let of = |moved: &[[Option<u64>; 2]]| source_bytes(moved.iter().copied(), &links);
        assert_eq!(of(&[[Some(70), None], [Some(30), None]]), Some(70.0));
        assert_eq!(of(&[[None, Some(31)], [Some(30), None]]), Some(62.0));
        // A pv that splices counts little of what it moves.
        assert_eq!(of(&[[None, None], [Some(7), Some(7)], [Some(30), None]]), Some(60.0));
        assert_eq!(of(&[[None, None], [Some(30), None]]), Some(60.0));
        assert_eq!(of(&[[None, None], [None, None]]), None);
    }
}
