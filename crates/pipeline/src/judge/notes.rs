//! Other findings about a pipeline: small calls, small pipes, a `dd` that is no buffer, runs that
//! are too short, stages that Takeup may not trace.

use base::finding::{Certainty, Finding, Unit};
use base::format::{binary_size, duration, percent};

use super::super::{Look, Pipe, Stage, rules};
use super::words::{SHELLS, ignored_blocking};
use super::{Case, SIDE_SHARE};

/// Calls that move fewer bytes are small; they are reported from [`MANY_CALLS`] on.
const SMALL_BYTES: f64 = 4096.0;
const MANY_CALLS: f64 = 1000.0;
/// The default capacity of a pipe (pipe(7)).
const PIPE_BYTES: u64 = 64 << 10;

impl Case<'_> {
    pub(super) fn lone_blocker(&self) -> Vec<Finding> {
        let is_one = |(at, stage): &(usize, &Stage)| {
            let behind = self.share(stage.device_seconds + stage.blocked_seconds);
            let is_dd = *at > 0 && stage.program() == "dd";
            is_dd && self.share(stage.starved_seconds) >= SIDE_SHARE && behind >= SIDE_SHARE
        };
        let one = |(at, stage): (usize, &Stage)| {
            let starved = self.share(stage.starved_seconds);
            let behind = self.share(stage.device_seconds + stage.blocked_seconds);
            let what = format!(
                "{} waits for its input for {} and for its output for {} of the run",
                self.named(at),
                percent(starved),
                percent(behind)
            );
            Finding::new(&rules::LONE_BLOCKER, Certainty::Measured, what)
                .because("dd reads nothing while it writes, so it is no buffer")
                .with_number("starved", starved, Unit::Share)
                .with_number("waits", behind, Unit::Share)
        };
        self.look.stages.iter().enumerate().filter(is_one).map(one).collect()
    }

    pub(super) fn small_calls(&self) -> Option<Finding> {
        let stage = self.stage();
        // A shell reads its own lines in small calls; its programs have other calls.
        if stage.works_most.is_some() || SHELLS.contains(&stage.program()) {
            return None;
        }
        let is_small = |mean: Option<f64>, bytes: Option<u64>| {
            let (mean, bytes) = (mean?, bytes? as f64);
            let calls = bytes / mean.max(f64::MIN_POSITIVE);
            (mean < SMALL_BYTES && calls >= MANY_CALLS).then_some(mean)
        };
        let reads = is_small(stage.read_bytes_mean, stage.bytes_in);
        let writes = is_small(stage.write_bytes_mean, stage.bytes_out);
        let (verb, mean) = match (reads, writes) {
            (_, Some(mean)) => ("writes", mean),
            (Some(mean), None) => ("reads", mean),
            (None, None) => return None,
        };
        let what = format!("{} {verb} {mean:.0} bytes per call", self.named(self.longest));
        let finding = Finding::new(&rules::SMALL_CALLS, Certainty::Measured, what)
            .because("each call costs the kernel about as much as copying a few KiB")
            .with_number("bytes", mean, Unit::Bytes);
        Some(match stage.program() {
            "dd" => finding.with_action("use bs=1M, except for a tape that needs the small blocks"),
            _ => finding.with_action("look for the option that sets its block size"),
        })
    }

    pub(super) fn small_pipes(&self) -> Vec<Finding> {
        let is_small = |pipe: &&Pipe| (1..PIPE_BYTES).contains(&pipe.capacity_bytes);
        let one = |pipe: &Pipe| {
            let what = format!(
                "the pipe from {} to {} holds {}",
                self.named(pipe.from),
                self.named(pipe.to),
                binary_size(pipe.capacity_bytes)
            );
            Finding::new(&rules::SMALL_PIPE, Certainty::Measured, what)
                .because("the smaller the pipe, the sooner each stage waits for the other")
                .with_action(
                    "raise sysctl fs.pipe-user-pages-soft: pipes of a user beyond that many \
                     pages are smaller than 64 KiB",
                )
                .with_number("capacity", pipe.capacity_bytes as f64, Unit::Bytes)
        };
        self.look.pipes.iter().filter(is_small).map(one).collect()
    }

    pub(super) fn tar_blocking(&self) -> Vec<Finding> {
        let one = |(at, stage): (usize, &Stage)| {
            let factor = ignored_blocking(stage)?;
            let what = format!(
                "{} ignores its blocking factor of {factor}, because it compresses",
                self.named(at)
            );
            let finding = Finding::new(&rules::TAR_BLOCKING, Certainty::Told, what);
            Some(finding.with_action(
                "compress in a pipe: tar cf - ... | gzip | takeup pipe --block-size SIZE --to ...",
            ))
        };
        self.look.stages.iter().enumerate().filter_map(one).collect()
    }
}

pub(super) fn short(look: &Look) -> Finding {
    let what = format!(
        "the pipeline ran for {} ({} samples), too short to name a bottleneck",
        duration(look.seconds),
        look.looks
    );
    Finding::new(&rules::SHORT, Certainty::Unknown, what).with_action("run it with more data")
}

pub(super) fn not_seen(look: &Look) -> Vec<Finding> {
    let one = |(at, stage): (usize, &Stage)| {
        let what = format!("Takeup may not trace stage {} ({})", at + 1, stage.program());
        Finding::new(&rules::NOT_SEEN, Certainty::Unknown, what)
            .because("whether it worked is inferred from how full its pipes were")
            .with_action("run takeup as root")
    };
    look.stages.iter().enumerate().filter(|(_, it)| it.is_hidden).map(one).collect()
}
