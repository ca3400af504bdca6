//! What else is seen of a pipeline: small calls, small pipes, a `dd` that is no buffer, what
//! was too short or may not be looked at.

use base::finding::{Certainty, Finding, Unit};
use base::format::{binary_size, duration, percent};

use super::super::{Look, Pipe, Stage, rules};
use super::words::{SHELLS, ignored_blocking};
use super::{Case, SIDE_SHARE};

/// Calls that move less are small, where there are many.
const SMALL_BYTES: f64 = 4096.0;
const MANY_CALLS: f64 = 1000.0;
/// What a pipe holds if nobody says otherwise (pipe(7)).
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
                "{} waits for its input for {} and for what it writes to for {} of the run",
                self.named(at),
                percent(starved),
                percent(behind)
            );
            Finding::new(&rules::LONE_BLOCKER, Certainty::Measured, what)
                .because("it reads nothing while it writes, and is no buffer by itself")
                .with_number("starved", starved, Unit::Share)
                .with_number("waits", behind, Unit::Share)
        };
        self.look.stages.iter().enumerate().filter(is_one).map(one).collect()
    }

    pub(super) fn small_calls(&self) -> Option<Finding> {
        let stage = self.stage();
        // A shell reads its own lines, and what it starts has calls of its own.
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
        let what = format!("{} {verb} {mean:.0} bytes with each call", self.named(self.longest));
        let finding = Finding::new(&rules::SMALL_CALLS, Certainty::Measured, what)
            .because("each call costs the kernel about as much as copying a few KiB")
            .with_number("bytes", mean, Unit::Bytes);
        Some(match stage.program() {
            "dd" => finding.with_action("bs=1M, but for a tape that is to have its blocks"),
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
                .because("each of them stops the other that much sooner")
                .with_action(
                    "the kernel gives 64 KiB while its user has fewer than \
                              fs.pipe-user-pages-soft pages in pipes",
                )
                .with_number("capacity", pipe.capacity_bytes as f64, Unit::Bytes)
        };
        self.look.pipes.iter().filter(is_small).map(one).collect()
    }

    pub(super) fn tar_blocking(&self) -> Vec<Finding> {
        let one = |(at, stage): (usize, &Stage)| {
            let factor = ignored_blocking(stage)?;
            let what = format!(
                "{} has a blocking factor of {factor}, which is ignored because it compresses",
                self.named(at)
            );
            let finding = Finding::new(&rules::TAR_BLOCKING, Certainty::Told, what);
            Some(
                finding.with_action("tar cf - ... | gzip | takeup pipe --block-size SIZE --to ..."),
            )
        };
        self.look.stages.iter().enumerate().filter_map(one).collect()
    }
}

pub(super) fn short(look: &Look) -> Finding {
    let what = format!(
        "the pipeline ran for {} and was looked at {} times, too little to name a limit",
        duration(look.seconds),
        look.looks
    );
    Finding::new(&rules::SHORT, Certainty::Unknown, what).with_action("give it more to do")
}

pub(super) fn not_seen(look: &Look) -> Vec<Finding> {
    let one = |(at, stage): (usize, &Stage)| {
        let what =
            format!("what stage {} ({}) waits for may not be looked at", at + 1, stage.program());
        Finding::new(&rules::NOT_SEEN, Certainty::Unknown, what)
            .because("only how full its pipes were tells whether it worked")
            .with_action("as root all of it is seen")
    };
    look.stages.iter().enumerate().filter(|(_, it)| it.is_hidden).map(one).collect()
}
