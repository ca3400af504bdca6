//! Names the bottleneck of a pipeline, and the change that helps most.

mod changes;
mod drive;
mod notes;
mod own;
mod tape;
mod words;

use base::finding::{Certainty, Finding, Severity, Unit};
use base::format::{duration, percent, rate, size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Look, Stage, line, rules};
use notes::{not_seen, short};
pub use words::{Instead, PROPOSED, SHELLS, instead_of};

/// A stage that is busy for this share of the run is the bottleneck.
const LIMIT_SHARE: f64 = 0.85;
/// Samples cannot separate stages whose busy times differ by less than this share.
const ALIKE: f64 = 0.03;
/// This share is enough where the stage waits for a device for so long, or where its neighbours
/// wait for it for [`NEIGHBOURS_SHARE`].
const NEARLY_SHARE: f64 = 0.65;
const NEIGHBOURS_SHARE: f64 = 0.75;
/// A drive that writes at its highest rate for this share of the run is the limit.
const DRIVE_SHARE: f64 = 0.85;
/// From this share of its busy time on, a wait is what a stage mainly does.
const MOSTLY: f64 = 0.5;
/// A quota that holds a stage back for this share of the run is its limit.
const QUOTA_SHARE: f64 = 0.2;
/// The cores are the limit where stages use this share of them, and the busiest stage waits for
/// one for [`CORE_WAIT_SHARE`] of the run.
const CORES_SHARE: f64 = 0.9;
const CORE_WAIT_SHARE: f64 = 0.1;
/// Shorter runs, or fewer samples, are not judged.
const SECONDS_MIN: f64 = 0.3;
const LOOKS_MIN: u64 = 10;
/// Share of the run for which a `dd` waits on each side, or a stage writes, to be reported.
const SIDE_SHARE: f64 = 0.15;
/// Waits for less than this share of the run are not named.
const WAIT_WORTH_NAMING: f64 = 0.05;

/// The judgement of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Index of the stage that is the bottleneck; `None` where there is none, or it is not known.
    pub limit: Option<usize>,
    /// Run time with perfect overlap: the longest stage by itself, the cores or the drive, plus the
    /// time that the target needs at the end; `None` where that is not known.
    pub longest_stage_seconds: Option<f64>,
    /// Run time if the stages ran one after the other.
    pub sum_seconds: f64,
    /// Time in which stages waited for each other although none was the bottleneck.
    pub waiting_seconds: f64,
    /// All findings, the limit first.
    pub findings: Vec<Finding>,
    /// The change that saves most.
    pub predicted: Option<Predicted>,
}

/// A change, and its forecast.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    /// The change, in words.
    pub change: String,
    /// The changed pipeline as you would type it, where that is known.
    pub command: Option<String>,
    /// Forecast of its run time.
    pub seconds: f64,
}

/// Judges a measured pipeline; `typed` is its command line, if there is one.
pub fn judge(look: &Look, typed: Option<&str>) -> Judgement {
    let split = typed.and_then(line::stages).filter(|split| split.len() == look.stages.len());
    let mut case = Case { look, split, longest: 0, is_shared: false };
    let mut judgement = Judgement {
        limit: None,
        longest_stage_seconds: None,
        sum_seconds: look.stages.iter().map(Stage::busy_seconds).sum(),
        waiting_seconds: 0.0,
        findings: Vec::new(),
        predicted: None,
    };
    let is_short = look.seconds < SECONDS_MIN || look.looks < LOOKS_MIN;
    let Some(longest) = case.longest().filter(|_| !is_short) else {
        judgement.findings.push(short(look));
        judgement.findings.extend(not_seen(look));
        return judgement;
    };
    case.longest = longest;
    judgement.longest_stage_seconds = case.floor_seconds();
    if let Some(outside) = case.outside() {
        judgement.findings.push(outside);
    } else {
        let is_open = case.limit().stage.is_none() || case.is_device_in_turn();
        if let Some(stage) = is_open.then(|| case.shared_stage()).flatten() {
            (case.longest, case.is_shared) = (stage, true);
        }
        case.judge_limit(&mut judgement);
    }
    judgement.findings.extend(case.small_pipes());
    judgement.findings.extend(case.tar_blocking());
    judgement.findings.extend(not_seen(look));
    case.tell_forecast(&mut judgement);
    judgement.findings.extend(case.no_advice(&judgement));
    judgement
}

struct Limit {
    stage: Option<usize>,
    finding: Finding,
}

struct Case<'a> {
    look: &'a Look,
    /// The stages as typed, if they match the stages that were measured.
    split: Option<Vec<String>>,
    /// The stage that is judged: the longest, or one among stages that take turns that several
    /// threads could do.
    longest: usize,
    /// Whether `longest` is the second of these.
    is_shared: bool,
}

impl Case<'_> {
    fn stage(&self) -> &Stage {
        &self.look.stages[self.longest]
    }

    /// The stage that takes longest by itself. Where samples cannot separate stages, it is the one
    /// with the most time in the kernel's counters.
    fn longest(&self) -> Option<usize> {
        let all = 0..self.look.stages.len();
        let seen = |at: usize| self.seen_seconds(at);
        let most = all.clone().map(seen).fold(0.0, f64::max);
        let counted = |at: usize| {
            let stage = &self.look.stages[at];
            let counted = stage.processor_seconds + stage.device_seconds + stage.other_seconds;
            counted.max(self.declared_seconds(at).unwrap_or(0.0))
        };
        all.filter(|&at| seen(at) >= (1.0 - ALIKE) * most)
            .max_by(|&a, &b| counted(a).total_cmp(&counted(b)))
    }

    /// Names the limit, looks for changes, and forecasts what they save.
    fn judge_limit(&self, judgement: &mut Judgement) {
        let limit = self.limit();
        judgement.limit = limit.stage;
        let rule = limit.finding.rule.clone();
        judgement.findings.push(limit.finding);
        let mut changes = Vec::new();
        changes.extend(self.small_tape_writes());
        let is_turns = limit.stage.is_none();
        if is_turns {
            let busy = self.seen_seconds(self.longest);
            judgement.waiting_seconds = (self.seconds() - busy).max(0.0);
        } else if changes.is_empty() {
            changes.extend(self.in_turn());
        }
        if rule == &rules::WORK {
            changes.extend(self.one_core());
        }
        let mut predicted: Vec<Predicted> = Vec::new();
        for (finding, change) in changes {
            judgement.findings.push(finding);
            predicted.extend(change);
        }
        // Even the stage that the others mostly wait for may wait for them at times.
        predicted.extend(self.with_buffer());
        if is_turns {
            judgement.findings.extend(self.lone_blocker());
        }
        if let Some((finding, change)) = self.stops() {
            judgement.findings.push(finding);
            predicted.extend(change);
        }
        if is_turns || rule == &rules::DEVICE {
            let least = predicted.iter().map(|it| it.seconds).fold(f64::INFINITY, f64::min);
            if let Some((finding, change)) = self.shared_change(least) {
                judgement.findings.push(finding);
                predicted.push(change);
            }
        }
        if !is_turns && !judgement.findings.iter().any(|it| it.rule == &rules::SMALL_TAPE_WRITES) {
            judgement.findings.extend(self.small_calls());
        }
        if rule == &rules::PACE {
            predicted.extend(self.without_rate());
        }
        // Of two changes that save about the same the first is simpler.
        judgement.predicted = predicted.into_iter().reduce(|best, next| {
            if next.seconds < (1.0 - ALIKE) * best.seconds { next } else { best }
        });
    }

    /// A stage, among stages that take turns, that mostly works and gains more from more cores than
    /// the pipeline from a buffer; of several the one that gains most.
    fn shared_stage(&self) -> Option<usize> {
        let buffered = self.with_buffer().map_or(self.look.seconds, |it| it.seconds);
        let shared = |at: usize| {
            let case = Case { split: None, longest: at, is_shared: true, ..*self };
            let stage = case.stage();
            let works = stage.working_seconds >= MOSTLY * stage.busy_seconds();
            let is_busy = case.share(stage.working_seconds) >= MOSTLY;
            let seconds = case.one_core().filter(|_| works && is_busy)?.1?.seconds;
            (seconds < (1.0 - ALIKE) * buffered).then_some((at, seconds))
        };
        let all = (0..self.look.stages.len()).filter_map(shared);
        all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
    }

    /// More cores for a stage among stages that take turns, where that saves more than any other
    /// change. It works too little to be called the bottleneck.
    fn shared_change(&self, least_seconds: f64) -> Option<(Finding, Predicted)> {
        let shared = |at: usize| {
            let split = self.split.clone();
            let (finding, change) = Case { split, longest: at, ..*self }.one_core()?;
            Some((finding, change?))
        };
        let all = (0..self.look.stages.len()).filter_map(shared);
        let best = all.min_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds));
        best.filter(|(_, change)| change.seconds < (1.0 - ALIKE) * least_seconds)
    }

    fn works(&self, busy_share: f64) -> Finding {
        let stage = self.stage();
        let inner = match &stage.works_most {
            Some(inner) if inner != stage.program() => format!(", most of it in {inner}"),
            _ => String::new(),
        };
        let (who, told) = (self.named(self.longest), percent(busy_share));
        let what = format!("{who} is the limit: it works for {told} of the run{inner}");
        Finding::new(&rules::WORK, Certainty::Measured, what)
    }

    /// Adds the forecast to the first finding. What the others advise is not said twice.
    fn tell_forecast(&self, judgement: &mut Judgement) {
        let Judgement { predicted: Some(predicted), findings, .. } = judgement else { return };
        let Some((first, others)) = findings.split_first_mut() else { return };
        for other in others.iter_mut().filter(|it| it.command.is_some()) {
            if other.command == predicted.command {
                (other.action, other.command) = (None, None);
            }
        }
        first.gain = Some(format!(
            "forecast: {} instead of {} for the same data, {:.1} times as fast",
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

    /// Run time of the pipeline, without other commands of the line.
    fn seconds(&self) -> f64 {
        self.look.piped_seconds.max(f64::MIN_POSITIVE)
    }

    fn share(&self, seconds: f64) -> f64 {
        seconds / self.seconds()
    }

    /// Run time of the whole line if its pipeline takes `seconds`.
    fn whole(&self, seconds: f64) -> f64 {
        seconds + (self.look.seconds - self.seconds()).max(0.0)
    }

    /// Cores that other programs leave free, at least one.
    fn left_cores(&self) -> f64 {
        (self.look.cores as f64 - self.look.others_cores).max(1.0)
    }

    fn named(&self, at: usize) -> String {
        format!("stage {} ({})", at + 1, self.look.stages[at].program())
    }

    fn used_seconds(&self) -> f64 {
        self.look.stages.iter().map(|stage| stage.processor_seconds).sum()
    }

    /// A pipeline whose first or last stage waits for a program that was not measured.
    fn outside(&self) -> Option<Finding> {
        let all = &self.look.stages;
        let (first, last) = (all.first()?, all.last()?);
        let (starved, blocked) =
            (self.share(first.starved_seconds), self.share(last.blocked_seconds));
        let (who, share, whom) = if blocked >= MOSTLY {
            (self.named(all.len() - 1), blocked, "reads its output")
        } else if starved >= MOSTLY {
            (self.named(0), starved, "writes its input")
        } else {
            return None;
        };
        let what =
            format!("{who} waits for {} of the run for the program that {whom}", percent(share));
        let finding = Finding::new(&rules::OUTSIDE, Certainty::Measured, what)
            .because("Takeup did not measure that program")
            .with_number("waits", share, Unit::Share);
        Some(finding)
    }

    fn limit(&self) -> Limit {
        let stage = self.stage();
        let busy_share = self.share(self.seen_seconds(self.longest)).min(1.0);
        let used_cores = self.used_seconds() / self.seconds();
        if self.is_shared {
            let finding = self.works(busy_share).with_number("busy", busy_share, Unit::Share);
            return Limit { stage: Some(self.longest), finding };
        }
        let cores = self.look.cores as f64;
        let waited = self.share(stage.core_wait_seconds - stage.throttled_seconds);
        let throttled = self.share(stage.throttled_seconds);
        let is_quota = throttled >= QUOTA_SHARE;
        if !is_quota && used_cores >= CORES_SHARE * cores && waited >= CORE_WAIT_SHARE {
            return self.cores_are_it(used_cores);
        }
        if self.takes_turns() && !self.is_device_in_turn() {
            return Limit { stage: None, finding: self.turns(busy_share) };
        }
        let who = self.named(self.longest);
        let is_mostly = |seconds: f64| seconds >= MOSTLY * stage.busy_seconds();
        let held = self.declared_seconds(self.longest).filter(|&it| it >= stage.busy_seconds());
        let finding = if is_quota {
            let what = format!(
                "{who} is the limit: a CPU quota held it back for {} of the run",
                percent(throttled)
            );
            Finding::new(&rules::QUOTA, Certainty::Measured, what)
                .severe(Severity::Warning)
                .with_action("raise cpu.max (cpu.cfs_quota_us) of its control group")
                .with_number("throttled", throttled, Unit::Share)
        } else if let Some(held) = held {
            self.held_by_rate(held)
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
            self.works(busy_share)
        };
        let mut finding = finding.with_number("busy", busy_share, Unit::Share);
        if self.is_short_of_cores() {
            let share = percent(self.share(self.kept_from_cores()));
            finding.caveat =
                Some(format!("another stage waited for a core for {share} of the run"));
        }
        Limit { stage: Some(self.longest), finding }
    }

    /// Whether the longest stage is busy for too little to be the bottleneck.
    fn takes_turns(&self) -> bool {
        // While another stage waits for a core, this one starves, and no stage is the reason.
        let kept = self.kept_from_cores();
        // What later stages do once this one has ended does not count against it.
        let behind = self.tails_behind(self.longest).min(MOSTLY * self.seconds() - kept);
        let of_the_rest = self.seen_seconds(self.longest) / (self.seconds() - kept - behind);
        of_the_rest < LIMIT_SHARE && !(of_the_rest >= NEARLY_SHARE && self.neighbours_wait())
    }

    /// Whether stages take turns and the longest waits for a device for most of the run, or for a
    /// drive that writes for nearly all of it. If the drive stops, the change that helps may still
    /// be in the stages before it.
    fn is_device_in_turn(&self) -> bool {
        let device_seconds = self.stage().device_seconds;
        let is_last = self.longest + 1 == self.look.stages.len();
        let is_drive = is_last && self.share(self.drive_seconds_to_end()) >= DRIVE_SHARE;
        let is_mostly = device_seconds >= MOSTLY * self.stage().busy_seconds();
        self.takes_turns() && (self.share(device_seconds) >= NEARLY_SHARE || is_drive && is_mostly)
    }

    /// A stage that its own rate limit holds back.
    fn held_by_rate(&self, seconds: f64) -> Finding {
        let stage = self.stage();
        let program = stage.declared_by.as_deref().unwrap_or_else(|| stage.program());
        let what = format!(
            "{} is the limit: the data take {} at the rate limit of {program}, {}",
            self.named(self.longest),
            duration(seconds.min(self.seconds())),
            rate(stage.declared_bytes_per_second.unwrap_or(0.0))
        );
        Finding::new(&rules::PACE, Certainty::Measured, what)
    }

    /// Whether the stage before the longest one is blocked, and the stage after it starved.
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

    /// The longest time for which another stage waited for a core, half of the run at most.
    fn kept_from_cores(&self) -> f64 {
        let others = self.look.stages.iter().enumerate().filter(|(at, _)| *at != self.longest);
        let wait = |stage: &Stage| (stage.core_wait_seconds - stage.throttled_seconds).max(0.0);
        others.map(|(_, stage)| wait(stage)).fold(0.0, f64::max).min(MOSTLY * self.seconds())
    }

    /// Whether another stage waited for a core for a share of the run that is told.
    fn is_short_of_cores(&self) -> bool {
        self.share(self.kept_from_cores()) >= CORE_WAIT_SHARE
    }

    /// What a stage waits for, and for which share of the run.
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
            None => "something without a name".to_owned(),
            Some((last, [])) => format!("{last} of the run"),
            Some((last, first)) => format!("{} and {last} of the run", first.join(", ")),
        }
    }

    fn cores_are_it(&self, used_cores: f64) -> Limit {
        let all = &self.look.stages;
        let used = |at: usize| all[at].processor_seconds;
        let most = (0..all.len()).max_by(|&a, &b| used(a).total_cmp(&used(b))).unwrap_or(0);
        let what = format!(
            "the cores are the limit: the stages use {used_cores:.1} of {}, most of that {}",
            self.look.cores,
            self.named(most)
        );
        let finding = Finding::new(&rules::CORES, Certainty::Measured, what)
            .with_number("used_cores", used_cores, Unit::Count)
            .with_number("most", self.share(used(most)), Unit::Share);
        Limit { stage: Some(most), finding }
    }

    fn turns(&self, busy_share: f64) -> Finding {
        let what = format!(
            "no single bottleneck: the busiest stage, {} ({}), is busy for {} of the run",
            self.longest + 1,
            self.stage().program(),
            percent(busy_share)
        );
        let waiting = self.seconds() - self.seen_seconds(self.longest);
        let stages = self.look.stages.iter().map(Stage::busy_seconds);
        let all_at_once = match (self.floor_seconds(), self.hidden_pace()) {
            (Some(seconds), _) => format!(
                "if all worked at once it would take {}, one after the other {}",
                duration(seconds),
                duration(stages.sum())
            ),
            (None, hidden) => {
                let why = match hidden {
                    Some(at) => format!(", because {}", self.hidden_because(at)),
                    None if self.is_short_of_cores() => {
                        ", because stages wait for cores".to_owned()
                    }
                    None => String::new(),
                };
                format!("the time if all worked at once is not known{why}")
            }
        };
        let why =
            format!("stages wait for each other for {}; {all_at_once}", duration(waiting.max(0.0)));
        Finding::new(&rules::TURNS, Certainty::Measured, what).because(why).with_number(
            "busy",
            busy_share,
            Unit::Share,
        )
    }

    fn if_worth(&self, seconds: f64, change: impl FnOnce() -> Predicted) -> Option<Predicted> {
        (seconds < LIMIT_SHARE * self.seconds()).then(change)
    }
}

/// Bytes read or written, for a table.
pub fn shown_bytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "not known".to_owned(), size)
}

#[cfg(test)]
mod tests;
