//! What can be said of an experiment before its first run: how long it takes at the least, how many
//! repeats the budget gives, and which runs say more of the drive's buffer than of its tape.

use report::format::{counted, duration, rate, size};

use super::BUFFERS_MIN;
use super::drive::Rates;
use super::job::{Operation, TapeJob};
use crate::plan::Stop;

/// One sentence for each. `clock_ratio` is how many times as fast as ours the drive's clock runs.
pub(super) fn sentences(
    jobs: &[TapeJob],
    rates: &Rates,
    clock_ratio: f64,
    stop: &Stop,
) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(time(jobs, rates, clock_ratio, stop));
    all.extend(buffer(jobs, rates));
    all
}

/// What is in the trees that are written, and how much of them a run has.
pub(super) fn trees(jobs: &[TapeJob]) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    for job in jobs {
        let (Some(path), Some(content)) = (job.data.tree(job.read_block_bytes), job.tree) else {
            continue;
        };
        let part = if content.bytes > job.run_bytes {
            format!("the first {} of it (--length)", size(job.run_bytes))
        } else {
            "all of it".to_owned()
        };
        let (files, bytes) = (counted(content.files, "file", "files"), size(content.bytes));
        let one = format!("{} has {files} with {bytes}: a run writes {part}", path.display());
        if !said.contains(&one) {
            said.push(one);
        }
    }
    said
}

fn time(jobs: &[TapeJob], rates: &Rates, clock_ratio: f64, stop: &Stop) -> Option<String> {
    let highest = rates.highest_bytes_per_second.filter(|&rate| rate > 0)? as f64;
    let passes = |job: &TapeJob| match job.operation {
        Operation::Write => 1.0,
        Operation::Read => 2.0,
    };
    let bytes: f64 = jobs.iter().map(|job| passes(job) * job.bytes() as f64).sum();
    let round_seconds = bytes / highest / clock_ratio;
    let repeats = (stop.budget_seconds / round_seconds.max(1e-9)).floor().min(1e6) as u64;
    let (one, all) = (round_seconds, round_seconds * stop.repeats_min as f64);
    let (cells, speed) = (counted(jobs.len() as u64, "run", "runs"), rate(highest));
    let (budget, wanted) = (duration(stop.budget_seconds), stop.repeats_min);
    let enough = match repeats {
        repeats if repeats >= wanted => format!("{wanted} repeats take {}", duration(all)),
        0 => format!("the budget of {budget} is not enough for one round"),
        few => format!("the budget of {budget} gives {few} of {wanted} repeats"),
    };
    let one = duration(one);
    Some(format!("a round of {cells} takes {one} at the drive's native {speed}; {enough}"))
}

fn buffer(jobs: &[TapeJob], rates: &Rates) -> Vec<String> {
    let Some(buffer) = rates.buffer_bytes.filter(|&bytes| bytes > 0) else { return Vec::new() };
    let writes = || jobs.iter().filter(|job| job.operation == Operation::Write);
    let inside = writes().filter(|job| job.bytes() <= buffer).count();
    let short = writes().filter(|job| job.bytes() < BUFFERS_MIN * buffer).count() - inside;
    let (all, buffer) = (jobs.len(), size(buffer));
    let mut said = Vec::new();
    if inside > 0 {
        said.push(format!(
            "{inside} of {all} runs fit into the drive's buffer ({buffer}): they measure the way \
             to the drive; --length makes them longer"
        ));
    }
    if short > 0 {
        said.push(format!(
            "{short} of {all} runs are shorter than {BUFFERS_MIN} of the drive's buffers ({buffer} \
             each): how the buffer is filled and emptied weighs in them"
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::tree::Content;
    use crate::record::cell;

    #[test]
    fn what_is_known_of_a_tree() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().display().to_string();
        let job = |bytes: u64| {
            let job = TapeJob::from_cell(&cell(&[("data", &data)]), bytes).unwrap();
            let content = Content { objects: 3, files: 2, bytes: 5_000_000 };
            TapeJob { tree: Some(content), ..job }
        };
        let said = trees(&[job(1 << 20), job(1 << 20), job(1 << 30)]);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].ends_with(
            "has 2 files with 5.00 MB: a run writes the first 1.05 MB of it (--length)"
        ));
        assert!(said[1].ends_with("a run writes all of it"), "{said:?}");
    }

    #[test]
    fn what_is_known_before_the_first_run() {
        let job = |bytes: u64| TapeJob::from_cell(&cell(&[]), bytes).unwrap();
        let jobs = [job(1 << 28), job(2 << 30), job(4 << 30)];
        let rates = Rates {
            buffer_bytes: Some(1 << 30),
            highest_bytes_per_second: Some(100_000_000),
            lowest_bytes_per_second: None,
        };
        let said = |budget_seconds| {
            let stop = Stop { budget_seconds, ..Stop::default() };
            sentences(&jobs, &rates, 1.0, &stop).join("\n")
        };
        let text = said(600.0);
        assert!(
            text.contains("a round of 3 runs takes 1 min 07 s at the drive's native"),
            "{text}"
        );
        assert!(text.contains("5 repeats take 5 min 36 s"), "{text}");
        assert!(text.contains("1 of 3 runs fit into the drive's buffer"), "{text}");
        assert!(text.contains("1 of 3 runs are shorter than 3 of the drive's buffers"), "{text}");
        assert!(said(150.0).contains("the budget of 2 min 30 s gives 2 of 5 repeats"));
        assert!(said(20.0).contains("is not enough for one round"));
    }
}
