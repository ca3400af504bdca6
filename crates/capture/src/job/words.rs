//! What a job does not reproduce, in sentences.

use std::collections::BTreeMap;

use base::format::{counted, percent};

use super::super::operation::Engine;
use super::super::profile::Profile;
use super::FioJob;
use super::compare::{PROPERTIES, Score};
use super::group::FileGroup;

/// A property with a lower score is reported in words.
const PERCENT_GOOD: f64 = 90.0;

/// As fio calls it.
pub fn engine(engine: Engine) -> String {
    let name = serde_json::to_value(engine).unwrap_or_default();
    name.as_str().unwrap_or("unknown").to_owned()
}

/// Why nothing is told of a group with so many reads and writes that have no file.
pub fn unnamed(operations: u64) -> String {
    let operations = counted(operations, "read or write", "reads and writes");
    format!("{operations} may have gone to a file that was closed before its name was looked up")
}

/// What a group of files has that its sections have not.
pub fn of_group(
    captured: &FileGroup,
    job: Option<&FileGroup>,
    properties: &BTreeMap<String, Score>,
) -> Vec<String> {
    let name = &captured.name;
    let Some(job) = job else {
        return vec![format!("{name}: the job did not use its files")];
    };
    let mut sentences = Vec::new();
    for property in PROPERTIES {
        let Some(score) = properties.get(property) else { continue };
        match (score.percent, &score.reason) {
            (Some(percent), _) if percent < PERCENT_GOOD => sentences.push(format!(
                "{name}: {property} at {percent:.0} %: captured {}, job {}",
                score.captured, score.job
            )),
            (None, Some(reason)) => {
                sentences.push(format!("{name}: {property} cannot be compared: {reason}"));
            }
            _ => {}
        }
    }
    sentences.extend(of_time(captured, job));
    let (was, is) = (captured.reuse.unwrap_or(0.0), job.reuse.unwrap_or(0.0));
    if captured.reuse.is_some() && job.reuse.is_some() && (was - is).abs() > 0.1 {
        sentences.push(format!(
            "{name}: reuse: {} of operations were in places used before, in the job {}",
            percent(was),
            percent(is)
        ));
    }
    if captured.other_calls > 0 {
        let calls = counted(captured.other_calls, "call", "calls");
        sentences
            .push(format!("{name}: {calls} that allocate or discard space are not in the job"));
    }
    if captured.sync_call == "sync" {
        sentences.push(format!("{name}: a sync of the whole file system is an fsync in the job"));
    }
    sentences
}

/// Rates and bursts.
fn of_time(captured: &FileGroup, job: &FileGroup) -> Vec<String> {
    let name = &captured.name;
    let mut sentences = Vec::new();
    if (captured.rate - job.rate).abs() > 0.1 * captured.rate {
        sentences.push(format!(
            "{name}: rate: {:.0} reads and writes a second captured, {:.0} by the job{}",
            captured.rate,
            job.rate,
            if captured.pauses() { "" } else { ", which waits only for the disk" }
        ));
    }
    if let (Some(was), Some(is)) = (captured.burstiness, job.burstiness)
        && was > 2.0
        && is < was / 2.0
    {
        sentences
            .push(format!("{name}: bursts: variance over mean {was:.1} captured, {is:.1} in job"));
    }
    sentences
}

/// What holds for the job as a whole.
pub fn of_all(captured: &Profile, job: &FioJob, run: &Profile) -> Vec<String> {
    let left_out = job.left_out.iter();
    let mut sentences: Vec<String> =
        left_out.map(|left_out| format!("not in the job: {left_out}")).collect();
    if job.groups.iter().map(|written| written.sections.len()).sum::<usize>() > 1 {
        sentences.push(
            "reads and writes of one file may come one after the other, and files side by side: \
             which waited for which is not reproduced"
                .to_owned(),
        );
    }
    for (profile, whose) in [(captured, "capture"), (run, "run of the job")] {
        if profile.lost_events > 0 {
            let lost = counted(profile.lost_events, "event was", "events were");
            sentences.push(format!("{lost} lost in the {whose}: counts may be too low"));
        }
    }
    sentences
}
