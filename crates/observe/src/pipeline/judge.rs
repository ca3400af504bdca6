//! What a pipeline's limit was, and what would change it.

mod drive;
mod words;

use finding::{Certainty, Finding, Severity, Unit};
use report::format::{binary_size, duration, percent, size};
use serde::Serialize;

use super::{Look, Stage, line, rules};
use words::{PARALLEL, SHELLS, does_not_share, ignored_blocking, is_word_of};

/// A stage that is busy for this share of the run is what the others wait for.
const LIMIT_SHARE: f64 = 0.85;
/// Stages whose busy times differ by less are not told apart by looks.
const ALIKE: f64 = 0.03;
/// One that is busy for this share of it is that, too, where its neighbours wait for it so long.
const NEARLY_SHARE: f64 = 0.65;
const NEIGHBOURS_SHARE: f64 = 0.75;
/// Of the busy time of a stage, from which on it is about what it waits for.
const MOSTLY: f64 = 0.5;
/// Of the run, from which on a quota is its limit.
const QUOTA_SHARE: f64 = 0.2;
/// Of all cores, from which on they are the limit, and of the run that the longest waited for one.
const CORES_SHARE: f64 = 0.9;
const CORE_WAIT_SHARE: f64 = 0.1;
/// A shorter run, or fewer looks, tell nothing.
const SECONDS_MIN: f64 = 0.3;
const LOOKS_MIN: u64 = 10;
/// Of the run, for which a dd waits on each side.
const SIDE_SHARE: f64 = 0.15;
/// Of the run, from which on what a stage waits for is worth its name.
const WAIT_WORTH_NAMING: f64 = 0.05;
/// With fewer cores free another thread brings nothing.
const FREE_CORES_MIN: f64 = 0.5;
/// Calls that move less are small, where there are many.
const SMALL_BYTES: f64 = 4096.0;
const MANY_CALLS: f64 = 1000.0;
/// What a pipe holds if nobody says otherwise (pipe(7)).
const PIPE_BYTES: u64 = 64 << 10;

/// What a pipeline's limit was.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The stage that was the limit, by its place; `None` where none was, or it is not known.
    pub limit: Option<usize>,
    /// How long the longest stage was busy: what perfect overlap would take.
    pub longest_stage_seconds: f64,
    /// What one stage after the other would take.
    pub sum_seconds: f64,
    /// Time in which stages waited for each other although none was the limit.
    pub waiting_seconds: f64,
    /// What was found, the limit first.
    pub findings: Vec<Finding>,
    /// What would change it most.
    pub predicted: Option<Predicted>,
}

/// A change, and what it would bring.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Predicted {
    /// What would be changed.
    pub change: String,
    /// The pipeline with it, as it is typed, where that is known.
    pub command: Option<String>,
    /// How long it would take.
    pub seconds: f64,
}

/// Judges what was seen; `typed` is the pipeline as it was typed, if it was.
pub fn judge(look: &Look, typed: Option<&str>) -> Judgement {
    let busy: Vec<f64> = look.stages.iter().map(Stage::busy_seconds).collect();
    let most = busy.iter().copied().fold(0.0, f64::max);
    // Of those that looks do not tell apart the one that the kernel counted most of.
    let counted = |at: usize| {
        let stage = &look.stages[at];
        stage.processor_seconds + stage.device_seconds + stage.other_seconds
    };
    let longest = (0..busy.len())
        .filter(|&at| busy[at] >= (1.0 - ALIKE) * most)
        .max_by(|&a, &b| counted(a).total_cmp(&counted(b)));
    let mut judgement = Judgement {
        limit: None,
        longest_stage_seconds: most,
        sum_seconds: busy.iter().sum(),
        waiting_seconds: 0.0,
        findings: Vec::new(),
        predicted: None,
    };
    let is_short = look.seconds < SECONDS_MIN || look.looks < LOOKS_MIN;
    let Some(longest) = longest.filter(|_| !is_short) else {
        judgement.findings.push(short(look));
        judgement.findings.extend(not_seen(look));
        return judgement;
    };
    let split = typed.and_then(line::stages).filter(|split| split.len() == look.stages.len());
    let case = Case { look, split, longest };
    if let Some(outside) = case.outside() {
        judgement.findings.push(outside);
        judgement.findings.extend(not_seen(look));
        return judgement;
    }
    let limit = case.limit();
    judgement.limit = limit.stage;
    if limit.stage.is_none() && limit.finding.rule == &rules::TURNS {
        judgement.waiting_seconds = (case.seconds() - judgement.longest_stage_seconds).max(0.0);
        judgement.predicted = case.with_buffer();
        judgement.findings.push(limit.finding);
        judgement.findings.extend(case.lone_blocker());
    } else {
        let by_work = limit.finding.rule == &rules::WORK;
        judgement.findings.push(limit.finding);
        if let Some((finding, predicted)) = case.in_turn() {
            judgement.findings.push(finding);
            judgement.predicted = predicted;
        } else if by_work && let Some((finding, predicted)) = case.one_core() {
            judgement.findings.push(finding);
            judgement.predicted = predicted;
        }
        judgement.findings.extend(case.small_calls());
    }
    judgement.findings.extend(case.small_pipes());
    judgement.findings.extend(case.tar_blocking());
    judgement.findings.extend(not_seen(look));
    case.tell_forecast(&mut judgement);
    judgement
}

struct Limit {
    stage: Option<usize>,
    finding: Finding,
}

struct Case<'a> {
    look: &'a Look,
    /// The stages as typed, if they are those that were seen.
    split: Option<Vec<String>>,
    longest: usize,
}

impl Case<'_> {
    fn stage(&self) -> &Stage {
        &self.look.stages[self.longest]
    }

    /// The first finding tells what the change would bring.
    fn tell_forecast(&self, judgement: &mut Judgement) {
        let Judgement { predicted: Some(predicted), findings, .. } = judgement else { return };
        let Some(first) = findings.first_mut() else { return };
        first.gain = Some(format!(
            "foretold: {} instead of {} for the same data, {:.1} times as fast",
            duration(predicted.seconds),
            duration(self.look.seconds),
            self.look.seconds / predicted.seconds.max(f64::MIN_POSITIVE)
        ));
        first.action = Some(match &predicted.command {
            Some(command) => format!("{}: {command}", predicted.change),
            None => predicted.change.clone(),
        });
        first.command.clone_from(&predicted.command);
        if self.drive_seconds() >= predicted.seconds * (1.0 - ALIKE) {
            first.caveat = self.drive_said();
        }
    }

    /// How long the pipeline took, without what the line does beside it.
    fn seconds(&self) -> f64 {
        self.look.piped_seconds.max(f64::MIN_POSITIVE)
    }

    fn share(&self, seconds: f64) -> f64 {
        seconds / self.seconds()
    }

    /// A whole run whose pipeline takes so long.
    fn whole(&self, seconds: f64) -> f64 {
        seconds + (self.look.seconds - self.seconds()).max(0.0)
    }

    /// Cores that other programs leave.
    fn left_cores(&self) -> f64 {
        (self.look.cores as f64 - self.look.others_cores).max(1.0)
    }

    fn named(&self, at: usize) -> String {
        format!("stage {} ({})", at + 1, self.look.stages[at].program())
    }

    fn used_seconds(&self) -> f64 {
        self.look.stages.iter().map(|stage| stage.processor_seconds).sum()
    }

    /// What all of it takes at least where nothing waits for anything.
    fn overlapped_seconds(&self) -> f64 {
        let programs = self.stage().busy_seconds().max(self.used_seconds() / self.left_cores());
        programs.max(self.drive_seconds())
    }

    /// The first stage waits for somebody who is no stage, or the last one does.
    fn outside(&self) -> Option<Finding> {
        let all = &self.look.stages;
        let (first, last) = (all.first()?, all.last()?);
        let (starved, blocked) =
            (self.share(first.starved_seconds), self.share(last.blocked_seconds));
        let (who, share, whom) = if blocked >= MOSTLY {
            (self.named(all.len() - 1), blocked, "reads what it writes")
        } else if starved >= MOSTLY {
            (self.named(0), starved, "writes what it reads")
        } else {
            return None;
        };
        let what = format!("{who} waits for {} of the run for whoever {whom}", percent(share));
        let finding = Finding::new(&rules::OUTSIDE, Certainty::Measured, what)
            .because("that is no stage that was looked at")
            .with_number("waits", share, Unit::Share);
        Some(finding)
    }

    fn limit(&self) -> Limit {
        let stage = self.stage();
        let busy_share = self.share(stage.busy_seconds()).min(1.0);
        let used_cores = self.used_seconds() / self.seconds();
        let cores = self.look.cores as f64;
        let waited = self.share(stage.core_wait_seconds - stage.throttled_seconds);
        let throttled = self.share(stage.throttled_seconds);
        let is_quota = throttled >= QUOTA_SHARE;
        if !is_quota && used_cores >= CORES_SHARE * cores && waited >= CORE_WAIT_SHARE {
            return self.cores_are_it(used_cores);
        }
        // While another stage is kept from the cores this one starves for what is nobody's limit.
        let kept = self.kept_from_cores().min(MOSTLY * self.seconds());
        let of_the_rest = stage.busy_seconds() / (self.seconds() - kept);
        if of_the_rest < LIMIT_SHARE && !(of_the_rest >= NEARLY_SHARE && self.neighbours_wait()) {
            return Limit { stage: None, finding: self.turns(busy_share) };
        }
        let who = self.named(self.longest);
        let told = percent(busy_share);
        let is_mostly = |seconds: f64| seconds >= MOSTLY * stage.busy_seconds();
        let finding = if is_quota {
            let what = format!(
                "{who} is the limit: a quota kept it from the cores for {} of the run",
                percent(throttled)
            );
            Finding::new(&rules::QUOTA, Certainty::Measured, what)
                .severe(Severity::Warning)
                .with_action("raise cpu.max (cpu.cfs_quota_us) of its control group")
                .with_number("throttled", throttled, Unit::Share)
        } else if is_mostly(stage.device_seconds) {
            let what = format!("{who} is the limit: it waits for {}", self.waits(stage));
            Finding::new(&rules::DEVICE, Certainty::Measured, what).with_number(
                "device",
                self.share(stage.device_seconds).min(1.0),
                Unit::Share,
            )
        } else if is_mostly(stage.other_seconds) {
            let what = format!("{who} is the limit: it waits for {}", self.waits(stage));
            Finding::new(&rules::PACE, Certainty::Measured, what)
        } else {
            let inner = match &stage.works_most {
                Some(inner) if inner != stage.program() => format!(", most of it in {inner}"),
                _ => String::new(),
            };
            let what = format!("{who} is the limit: it works for {told} of the run{inner}");
            Finding::new(&rules::WORK, Certainty::Measured, what)
        };
        let mut finding = finding.with_number("busy", busy_share, Unit::Share);
        if self.share(kept) >= CORE_WAIT_SHARE {
            let share = percent(self.share(kept));
            finding.caveat =
                Some(format!("another stage waited for a core for {share} of the run"));
        }
        Limit { stage: Some(self.longest), finding }
    }

    /// Whether what feeds the longest stage is blocked, and what it feeds is starved.
    fn neighbours_wait(&self) -> bool {
        let all = &self.look.stages;
        let waits = |pipe: &super::Pipe| match (pipe.from, pipe.to) {
            (from, to) if to == self.longest => Some(all[from].blocked_seconds),
            (from, to) if from == self.longest => Some(all[to].starved_seconds),
            _ => None,
        };
        let waits: Vec<f64> = self.look.pipes.iter().filter_map(waits).collect();
        !waits.is_empty() && waits.iter().all(|&it| self.share(it) >= NEIGHBOURS_SHARE)
    }

    /// How long another stage waited for a core at most.
    fn kept_from_cores(&self) -> f64 {
        let others = self.look.stages.iter().enumerate().filter(|(at, _)| *at != self.longest);
        let wait = |stage: &Stage| (stage.core_wait_seconds - stage.throttled_seconds).max(0.0);
        others.map(|(_, stage)| wait(stage)).fold(0.0, f64::max)
    }

    /// What a stage waits for, each for how long.
    fn waits(&self, stage: &Stage) -> String {
        let worth = stage
            .waits_for
            .iter()
            .enumerate()
            .filter(|(at, wait)| *at == 0 || self.share(wait.seconds) >= WAIT_WORTH_NAMING);
        let one = |(_, wait): (usize, &super::Wait)| {
            let share = percent(self.share(wait.seconds).min(1.0));
            format!("{} for {share}", wait.what)
        };
        let all: Vec<String> = worth.map(one).collect();
        match all.split_last() {
            None => "something that has no name".to_owned(),
            Some((last, [])) => format!("{last} of the run"),
            Some((last, first)) => format!("{} and {last} of the run", first.join(", ")),
        }
    }

    /// The longest stage writes while it does nothing else. With a buffer behind it, it would write
    /// while it goes on.
    fn in_turn(&self) -> Option<(Finding, Option<Predicted>)> {
        let stage = self.stage();
        let writes = stage.device_write_seconds - stage.flush_seconds;
        let rest = stage.busy_seconds() - writes - stage.flush_seconds;
        if self.share(writes) < SIDE_SHARE || self.share(rest) < SIDE_SHARE {
            return None;
        }
        let what = format!(
            "{} waits for what it writes for {} of the run, and works and reads for {}",
            self.named(self.longest),
            percent(self.share(writes)),
            percent(self.share(rest).min(1.0))
        );
        let finding = Finding::new(&rules::IN_TURN, Certainty::Measured, what)
            .because("it does one at a time")
            .with_number("writes", self.share(writes), Unit::Share)
            .with_number("rest", self.share(rest), Unit::Share);
        let others = self.look.stages.iter().enumerate().filter(|(at, _)| *at != self.longest);
        let others = others.map(|(_, stage)| stage.busy_seconds()).fold(0.0, f64::max);
        let cores = self.used_seconds() / self.left_cores();
        let programs = rest.max(writes).max(others).max(cores) + stage.flush_seconds;
        let seconds = programs.max(self.drive_seconds());
        let is_last = self.longest + 1 == self.look.stages.len();
        let predicted = is_last.then(|| {
            self.if_worth(seconds, || Predicted {
                change: "put a buffer in front of the target".to_owned(),
                command: self.split.as_deref().and_then(line::buffered),
                seconds: self.whole(seconds),
            })
        });
        let predicted = predicted.flatten();
        Some((finding, predicted))
    }

    fn cores_are_it(&self, used_cores: f64) -> Limit {
        let all = &self.look.stages;
        let used = |at: usize| all[at].processor_seconds;
        let most = (0..all.len()).max_by(|&a, &b| used(a).total_cmp(&used(b))).unwrap_or(0);
        let what = format!(
            "the cores are the limit: the stages use {used_cores:.1} of {}, most of it {}",
            self.look.cores,
            self.named(most)
        );
        let finding = Finding::new(&rules::CORES, Certainty::Measured, what)
            .with_number("used_cores", used_cores, Unit::Count)
            .with_number("most", self.share(used(most)), Unit::Share);
        Limit { stage: Some(most), finding }
    }

    fn turns(&self, busy_share: f64) -> Finding {
        let stages = self.look.stages.iter().map(Stage::busy_seconds);
        let what = format!(
            "no stage is the limit: the longest, {}, is busy for {} of the run",
            self.named(self.longest),
            percent(busy_share)
        );
        let why = format!(
            "for {} the stages wait for each other; if all worked at once it would take {}, one \
             after the other {}",
            duration((self.seconds() - self.stage().busy_seconds()).max(0.0)),
            duration(self.overlapped_seconds()),
            duration(stages.sum())
        );
        Finding::new(&rules::TURNS, Certainty::Measured, what).because(why).with_number(
            "busy",
            busy_share,
            Unit::Share,
        )
    }

    /// A buffer in front of the target lets the stages go on while the last one waits for it; what
    /// nobody waits for it does not change, nor how long the target takes to have everything.
    fn with_buffer(&self) -> Option<Predicted> {
        let last = self.look.stages.last()?;
        let writes = last.device_write_seconds - last.flush_seconds;
        if self.look.stages.len() < 2 || self.share(writes) < SIDE_SHARE {
            return None;
        }
        let seconds = self.overlapped_seconds().max(self.flushed_seconds(self.longest));
        self.if_worth(seconds, || Predicted {
            change: "put a buffer in front of the target".to_owned(),
            command: self.split.as_deref().and_then(line::buffered),
            seconds: self.whole(seconds),
        })
    }

    /// What a stage does before the last one flushes, and that flush.
    fn flushed_seconds(&self, at: usize) -> f64 {
        let flush = self.look.stages.last().map_or(0.0, |last| last.flush_seconds);
        let stage = &self.look.stages[at];
        flush + stage.busy_seconds() - stage.flush_seconds
    }

    fn if_worth(&self, seconds: f64, change: impl FnOnce() -> Predicted) -> Option<Predicted> {
        (seconds < LIMIT_SHARE * self.seconds()).then(change)
    }

    fn lone_blocker(&self) -> Vec<Finding> {
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

    /// A compressor of one thread beside free cores.
    fn one_core(&self) -> Option<(Finding, Option<Predicted>)> {
        let stage = self.stage();
        let worker = stage.works_most.as_deref().unwrap_or_else(|| stage.program());
        let &(program, parallel) = PARALLEL.iter().find(|(program, _)| *program == worker)?;
        let is_itself = stage.program() == program;
        let free = self.left_cores() - self.used_seconds() / self.seconds();
        if (is_itself && does_not_share(&stage.arguments)) || free < FREE_CORES_MIN {
            return None;
        }
        let second = self.look.stages.iter().enumerate().filter(|(at, _)| *at != self.longest);
        let second = second.map(|(_, stage)| stage.busy_seconds()).fold(0.0, f64::max);
        let cores = self.used_seconds() / self.left_cores();
        let seconds = cores.max(second).max(self.drive_seconds());
        let what = format!(
            "{program} works with one thread, and {free:.1} of {} cores were free",
            self.look.cores
        );
        let action = match stage.program() {
            "tar" => format!("tar -I '{parallel}' compresses with all cores"),
            _ => format!("{parallel} does the same with all cores"),
        };
        let finding = Finding::new(&rules::ONE_CORE, Certainty::Measured, what)
            .with_action(action)
            .with_number("free_cores", free, Unit::Count);
        let predicted = self.if_worth(seconds, || Predicted {
            change: format!("compress with {parallel}"),
            command: self
                .split
                .as_deref()
                .filter(|split| is_itself && is_word_of(&split[self.longest], program))
                .and_then(|split| line::with_program(split, self.longest, parallel)),
            seconds: self.whole(seconds),
        });
        Some((finding, predicted))
    }

    fn small_calls(&self) -> Option<Finding> {
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

    fn small_pipes(&self) -> Vec<Finding> {
        let is_small = |pipe: &&super::Pipe| (1..PIPE_BYTES).contains(&pipe.capacity_bytes);
        let one = |pipe: &super::Pipe| {
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

    fn tar_blocking(&self) -> Vec<Finding> {
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

fn short(look: &Look) -> Finding {
    let what = format!(
        "the pipeline ran for {} and was looked at {} times, too little to name a limit",
        duration(look.seconds),
        look.looks
    );
    Finding::new(&rules::SHORT, Certainty::Unknown, what).with_action("give it more to do")
}

fn not_seen(look: &Look) -> Vec<Finding> {
    let one = |(at, stage): (usize, &Stage)| {
        let what =
            format!("what stage {} ({}) waits for may not be looked at", at + 1, stage.program());
        Finding::new(&rules::NOT_SEEN, Certainty::Unknown, what)
            .because("only how full its pipes were tells whether it worked")
            .with_action("as root all of it is seen")
    };
    look.stages.iter().enumerate().filter(|(_, it)| it.is_hidden).map(one).collect()
}

/// Bytes in or out for a table.
pub fn shown_bytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "not known".to_owned(), size)
}

#[cfg(test)]
mod tests;
