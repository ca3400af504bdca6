//! Changes that remove a limit, and forecasts of what they save.
//!
//! A forecast includes the next limit: the longest of what remains. Where that is not known, there
//! is no forecast.

use base::finding::{Certainty, Finding, Unit};
use base::format::{duration, percent, rate};

use super::super::{Stage, line, pace, rules};
use super::words::{Parallel, does_not_share, faster_level, is_word_of, parallel};
use super::{Case, DRIVE_SHARE, Judgement, Predicted, SIDE_SHARE};

/// With fewer free cores than this another thread saves nothing.
const FREE_CORES_MIN: f64 = 0.5;
/// The largest buffer that is proposed, in bytes.
const RING_BYTES_MAX: u64 = 1 << 30;
const RING_BYTES_MIN: u64 = 64 << 20;
/// Pieces up to this size are many in any run that lasts.
const SMALL_PIECE_BYTES: u64 = 1 << 20;

impl Case<'_> {
    /// The longest stage writes while it does nothing else. A buffer after it would write while the
    /// stage goes on.
    pub(super) fn in_turn(&self) -> Option<(Finding, Option<Predicted>)> {
        let stage = self.stage();
        let writes = stage.device_write_seconds - stage.flush_seconds;
        let rest = stage.busy_seconds() - writes - stage.flush_seconds;
        if self.share(writes) < SIDE_SHARE || self.share(rest) < SIDE_SHARE {
            return None;
        }
        let what = format!(
            "{} waits for its writes for {} of the run, and works and reads for {}",
            self.named(self.longest),
            percent(self.share(writes)),
            percent(self.share(rest).min(1.0))
        );
        let finding = Finding::new(&rules::IN_TURN, Certainty::Measured, what)
            .because("it does only one of these at a time")
            .with_number("writes", self.share(writes), Unit::Share)
            .with_number("rest", self.share(rest), Unit::Share);
        let is_last = self.longest + 1 == self.look.stages.len();
        let writes = writes - if is_last { self.spared_by_buffer() } else { 0.0 };
        let own = Some((self.longest, rest.max(writes) + stage.flush_seconds));
        let seconds = self.overlapped_with(own, self.used_seconds()).filter(|_| is_last);
        let predicted = seconds.and_then(|seconds| {
            self.if_worth(seconds, || Predicted {
                change: "put a buffer in front of the target".to_owned(),
                command: self.split.as_deref().and_then(line::buffered),
                seconds: self.whole(seconds),
            })
        });
        Some((finding, predicted))
    }

    /// A buffer lets the stages before it go on while the stage after it works or waits for its
    /// target.
    pub(super) fn with_buffer(&self) -> Option<Predicted> {
        let last = self.look.stages.last()?;
        let seconds = self.floor_seconds()?;
        let writes = last.device_write_seconds - last.flush_seconds;
        if self.look.stages.len() >= 2 && self.share(writes) >= SIDE_SHARE {
            return self.if_worth(seconds, || Predicted {
                change: "put a buffer in front of the target".to_owned(),
                command: self.split.as_deref().and_then(line::buffered),
                seconds: self.whole(seconds),
            });
        }
        let (at, bytes) = self.gap()?;
        let ring = bytes.next_power_of_two().max(RING_BYTES_MIN);
        let ring = format!("{}M", ring >> 20);
        self.if_worth(seconds, || Predicted {
            change: format!("put a buffer after {}", self.named(at)),
            command: self
                .split
                .as_deref()
                .and_then(|split| line::buffered_behind(split, at, &ring)),
            seconds: self.whole(seconds),
        })
    }

    /// The stage whose output pipe is full at some times and empty at others, and all bytes that
    /// pass there: a buffer of that size never makes the stage wait.
    fn gap(&self) -> Option<(usize, u64)> {
        let all = &self.look.stages;
        let waits =
            |at: usize| self.share(all[at].blocked_seconds.min(all[at + 1].starved_seconds));
        let at = (0..all.len().checked_sub(1)?).max_by(|&a, &b| waits(a).total_cmp(&waits(b)))?;
        let bytes = self.moved_bytes(at).filter(|&bytes| bytes <= RING_BYTES_MAX)?;
        (waits(at) >= SIDE_SHARE).then_some((at, bytes))
    }

    /// Forecast without the stage's rate limit.
    pub(super) fn without_rate(&self) -> Option<Predicted> {
        self.declared_seconds(self.longest)?;
        let stage = self.stage();
        let own = (stage.busy_seconds() - stage.clock_seconds).max(0.0);
        let saved = self.seen_seconds(self.longest) - own;
        let seconds = self.no_less(self.fed_with((self.longest, own))?, saved);
        let command = self.split.as_deref().and_then(|split| {
            let stage = pace::without_rate(split.get(self.longest)?)?;
            line::with_stage(split, self.longest, stage)
        });
        self.if_worth(seconds, || Predicted {
            change: "remove its rate limit".to_owned(),
            command,
            seconds: self.whole(seconds),
        })
    }

    /// Cores that neither this pipeline nor other programs use.
    fn free_cores(&self) -> f64 {
        self.left_cores() - self.used_seconds() / self.seconds()
    }

    /// A program that does the work of the longest stage with all cores instead of one thread.
    fn shares(&self) -> Option<&'static Parallel> {
        let stage = self.stage();
        let worker = stage.works_most.as_deref().unwrap_or_else(|| stage.program());
        let found = parallel(worker, &self.look.absent).next()?;
        let is_told = stage.program() == found.program && does_not_share(&stage.arguments);
        let rate =
            self.moved_in(self.longest).unwrap_or(0) as f64 / stage.working_seconds.max(1e-3);
        (!is_told && rate <= found.fastest_bytes_per_second).then_some(found)
    }

    /// A compressor with one thread while cores are free.
    pub(super) fn one_core(&self) -> Option<(Finding, Option<Predicted>)> {
        let stage = self.stage();
        let found = self.shares()?;
        let (program, instead) = (found.program, found.instead);
        let is_itself = stage.program() == program;
        let free = self.free_cores();
        if free < FREE_CORES_MIN {
            return None;
        }
        let what = format!(
            "{program} uses one thread, and {free:.1} of {} cores were free",
            self.look.cores
        );
        let action = match stage.program() {
            "tar" => format!("compress with all cores: tar -I '{instead}'"),
            _ => format!("use {instead}: it does the same with all cores"),
        };
        let mut finding = Finding::new(&rules::ONE_CORE, Certainty::Measured, what)
            .with_action(action)
            .with_number("free_cores", free, Unit::Count);
        let predicted = self.shared_seconds(found).and_then(|seconds| {
            self.if_worth(seconds, || Predicted {
                change: format!("compress with {instead}"),
                command: self
                    .split
                    .as_deref()
                    .filter(|split| is_itself && is_word_of(&split[self.longest], program))
                    .and_then(|split| line::with_program(split, self.longest, instead)),
                seconds: self.whole(seconds),
            })
        });
        finding.command = predicted.as_ref().and_then(|it| it.command.clone());
        Some((finding, predicted))
    }

    /// Run time with all cores: the work of the stage is divided into as many concurrent pieces as
    /// there are cores and data, and all stages share the cores.
    fn shared_seconds(&self, found: &Parallel) -> Option<f64> {
        let stage = self.stage();
        let part = (found.work)(&stage.arguments, self.kept_share(self.longest));
        let work = part * stage.working_seconds;
        let piece_bytes = (found.piece_bytes)(&stage.arguments);
        let pieces = match self.moved_in(self.longest) {
            Some(bytes) => bytes.div_ceil(piece_bytes) as f64,
            // A run that lasts this long has enough small pieces.
            None if piece_bytes <= SMALL_PIECE_BYTES => f64::INFINITY,
            None => return None,
        };
        let at_once = pieces.min(self.left_cores());
        let rest = stage.busy_seconds() - stage.working_seconds;
        let own = work / at_once.max(1.0) + rest.max(0.0);
        let used = self.used_seconds() - (1.0 - part) * stage.processor_seconds;
        let saved = self.seen_seconds(self.longest) - own;
        let changed = (self.longest, own);
        let at_once = self.overlapped_with(Some(changed), used);
        Some(self.no_less(at_once.or_else(|| self.kept_going(changed, used))?, saved))
    }

    /// A stage that becomes faster by `saved_seconds` shortens the run by no more than that: the
    /// others still wait for each other. Only a drive that runs out of data less often saves more.
    fn no_less(&self, seconds: f64, saved_seconds: f64) -> f64 {
        seconds.max(self.seconds() - saved_seconds.max(0.0) - self.spared_by_buffer())
    }

    /// Bytes of a stage's input.
    fn moved_in(&self, at: usize) -> Option<u64> {
        let all = &self.look.stages;
        all[at].bytes_in.or_else(|| at.checked_sub(1).and_then(|at| all[at].bytes_out))
    }

    /// Bytes out for each byte in.
    fn kept_share(&self, at: usize) -> Option<f64> {
        let next = self.look.stages.get(at + 1).and_then(|it| it.bytes_in);
        let (came, went) = (self.moved_in(at)?, self.look.stages[at].bytes_out.or(next)?);
        (came > 0).then(|| went as f64 / came as f64)
    }

    /// Advice where no finding has any, or the reason why there is none.
    pub(super) fn no_advice(&self, judgement: &Judgement) -> Option<Finding> {
        let has_advice = judgement.findings.iter().any(|finding| finding.action.is_some());
        if has_advice || judgement.predicted.is_some() {
            return None;
        }
        let limit = judgement.findings.first()?.rule.clone();
        if let Some(action) = self.faster_level(&limit) {
            let what = format!("{} spends most of its time working", self.named(self.longest));
            let finding = Finding::new(&rules::LEVEL, Certainty::Inferred, what);
            return Some(
                finding
                    .because("a lower level takes less work and makes larger output")
                    .with_action(action),
            );
        }
        if let Some(path) = self.reads_most().filter(|_| limit == &rules::DEVICE) {
            let what = format!("the highest read rate of {path} is not known");
            let finding = Finding::new(&rules::READS, Certainty::Unknown, what);
            return Some(finding.with_action(format!("measure it: takeup bench read {path}")));
        }
        let what = format!("no advice, because {}", self.why_no_advice(judgement));
        Some(Finding::new(&rules::NO_ADVICE, Certainty::Inferred, what))
    }

    fn why_no_advice(&self, judgement: &Judgement) -> String {
        let rule = judgement.findings[0].rule.clone();
        let who = self.named(self.longest);
        if rule == &rules::OUTSIDE {
            "Takeup did not measure the program that it waits for".to_owned()
        } else if rule == &rules::TURNS {
            match (self.hidden_pace(), self.floor_seconds()) {
                (Some(at), _) => self.hidden_because(at),
                (None, Some(seconds)) if seconds > DRIVE_SHARE * self.seconds() => {
                    format!("all at once it would still take {}", duration(seconds))
                }
                (None, None) if self.is_short_of_cores() => {
                    "stages wait for cores, and a buffer gives them none".to_owned()
                }
                _ => "no pipe was found where a buffer would help".to_owned(),
            }
        } else if rule == &rules::CORES {
            "all cores are in use".to_owned()
        } else if self.share(self.drive_seconds_to_end()) >= DRIVE_SHARE {
            let highest = self.look.drive.as_ref().map_or(0.0, |it| it.highest_bytes_per_second);
            format!("the drive is at its highest rate, {}", rate(highest))
        } else if rule == &rules::DEVICE {
            format!("the highest rate of what {who} waits for is not known")
        } else if rule == &rules::PACE {
            format!("{who} waits of its own accord, and no other stage can shorten that")
        } else {
            self.why_not_shared()
        }
    }

    /// Why no other program is proposed for a stage that works.
    fn why_not_shared(&self) -> String {
        let who = self.named(self.longest);
        if self.shares().is_none() {
            return format!("no installed program is known to do the work of {who} faster");
        }
        let free = self.free_cores().max(0.0);
        if free < FREE_CORES_MIN && self.look.others_cores >= FREE_CORES_MIN {
            let others = self.look.others_cores;
            return format!(
                "other programs use {others:.1} of {} cores, which leaves {free:.1} for more \
                 threads of {who}",
                self.look.cores
            );
        }
        format!("only {free:.1} of {} cores are free for more threads of {who}", self.look.cores)
    }

    /// A lower level for a compressor, where nothing else helps.
    fn faster_level(&self, limit: &base::finding::RuleId) -> Option<String> {
        if *limit != &rules::WORK && *limit != &rules::CORES {
            return None;
        }
        let all = &self.look.stages;
        let used = |at: usize| all[at].processor_seconds;
        let most = (0..all.len()).max_by(|&a, &b| used(a).total_cmp(&used(b)))?;
        let at = if *limit == &rules::CORES { most } else { self.longest };
        let level = faster_level(&all[at].arguments)?;
        Some(format!("try {level}; what it saves depends on the data"))
    }

    /// The file that the longest stage waits for most, if it reads that file.
    fn reads_most(&self) -> Option<&str> {
        let Stage { waits_for, device_seconds, device_write_seconds, .. } = self.stage();
        let path = waits_for.first()?.what.as_str();
        let is_file = path.starts_with('/') && !path.starts_with("/dev/");
        (is_file && *device_write_seconds < device_seconds / 2.0).then_some(path)
    }
}
