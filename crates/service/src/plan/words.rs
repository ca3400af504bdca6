//! The explanation of a plan in words: what limits it, and which way is the best.

use std::path::PathBuf;

use base::format::{counted, duration, percent, rate, size};
use experiment::judgement::quoted;
use model::plan::Limit;
use model::plan::alternatives::{Alternative, Effort, best};

use super::{HeadsReads, MeasuredAccess, Planned};

/// Two times within this factor are not compared.
const WORTH_COMPARING: f64 = 1.02;

/// Of the disk; that of the plan may be another part.
const SEEKS_LIMIT: &str = ", and seeks are its limit";

/// A way that is better than the requested one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BetterWay {
    /// The way, and what it brings.
    pub sentence: String,
    /// The command that does it, if settings do.
    pub command: Option<String>,
}

impl Planned {
    /// What limits the requested plan.
    pub fn limit(&self) -> String {
        let plan = self.asked();
        let at = rate(plan.limit_bytes_per_second);
        let moving = self.setup.source.size_bytes as f64 / plan.limit_bytes_per_second;
        let rest = plan.seconds - plan.change_seconds - moving;
        // No rate explains a time that is mostly something else.
        if plan.change_seconds > plan.seconds / 2.0 {
            let (change, all) = (duration(plan.change_seconds), duration(plan.seconds));
            return format!("changing volumes: it takes {change} of {all}");
        }
        // Stops of the tape are no start and no end.
        if rest > plan.seconds / 2.0 && plan.back_hitches == 0 {
            let (rest, all) = (duration(rest), duration(plan.seconds));
            let moving = duration(moving);
            return format!(
                "the start and the end: they take {rest} of {all}, and the bytes {moving} at {at}"
            );
        }
        match plan.limit {
            Limit::Source if self.setup.source.files == 0 => format!("the source, at {at}"),
            Limit::Source => format!("the source: with its files it gives {at}"),
            Limit::StagingDisk => format!("the staging disk, at {at}"),
            Limit::SoftwareCompression => format!("compression in software, at {at}"),
            Limit::Commands => {
                format!("commands: blocks of {} reach {at} at most", size(self.setup.block_bytes))
            }
            Limit::Interface => format!("the drive's interface, at {at}"),
            Limit::Medium => format!("the tape, at {at} of content at its highest speed"),
        }
    }

    /// That the disk of the source has heads or is as slow, in which order its files are read, and
    /// how fast.
    pub fn heads_sentence(&self) -> Option<String> {
        let source = &self.setup.source;
        let bytes = source.size_bytes as f64;
        if let Some(heads) = self.reads.and_then(|reads| reads.heads) {
            return Some(disk_sentence(&heads, source.files, bytes));
        }
        let measured = self.measured.as_ref().filter(|_| self.reads.is_none())?;
        measured.access.as_ref().map(|it| measured_sentence(it, measured.bytes_per_second))
    }

    /// The best plan with settings alone, and the best ones with more effort.
    pub fn advice(&self) -> Vec<BetterWay> {
        let mut ways = Vec::new();
        let mut named: Option<&Alternative> = None;
        let efforts = [
            (Effort::Setting, "best with settings alone"),
            (Effort::Procedure, "with more than settings"),
            (Effort::Hardware, "with other drives"),
        ];
        for (effort, words) in efforts {
            let Some(one) = best(&self.list, effort) else { continue };
            if named.is_some_and(|named| named.name == one.name) {
                continue;
            }
            named = Some(one);
            if one.effort == Effort::Asked {
                let sentence = "no setting below is better".to_owned();
                ways.push(BetterWay { sentence, command: None });
                continue;
            }
            let asked = self.asked().seconds;
            let instead = if asked > one.plan.seconds * WORTH_COMPARING {
                format!(" ({} as asked)", duration(asked))
            } else {
                String::new()
            };
            ways.push(BetterWay {
                sentence: format!(
                    "{words}: {}, {}{instead}, {}",
                    one.name,
                    duration(one.plan.seconds),
                    back_hitches(one.plan.back_hitches),
                ),
                command: one.options.as_deref().map(|options| self.command(options)),
            });
        }
        ways
    }

    /// A command that can be typed where the paths are known; the first drive of the machine is
    /// assumed.
    fn command(&self, options: &str) -> String {
        let typed = |path: &PathBuf| quoted(&path.display().to_string());
        let sources = match &self.paths[..] {
            [] => "SOURCE".to_owned(),
            paths => paths.iter().map(typed).collect::<Vec<_>>().join(" "),
        };
        format!("takeup backup {sources} --to /dev/nst0 {options}")
    }

    /// What limits the requested plan, and the best ways, in one line.
    pub(super) fn explanation(&self) -> String {
        let mut parts = vec![format!("limit: {}", self.limit())];
        parts.extend(self.heads_sentence());
        for way in self.advice() {
            parts.push(way.sentence);
            parts.extend(way.command);
        }
        parts.join("; ")
    }
}

fn disk_sentence(heads: &HeadsReads, files: u64, bytes: f64) -> String {
    let at = |seconds: f64| rate(bytes / seconds.max(1e-9));
    let limit = if heads.seek_share() > 0.5 { SEEKS_LIMIT } else { "" };
    let files = counted(files, "file", "files");
    let (now, seeks) = (at(heads.seconds), percent(heads.seek_share()));
    let by_name = match heads.window_files {
        Some(_) => format!("; in the order of names at {}", at(heads.by_name_seconds)),
        None => String::new(),
    };
    let order = if heads.window_files.is_some() { "the disk" } else { "names" };
    format!(
        "the disk of the source has heads{limit}: its {files} come in the order of {order}, at \
         {now}, with {seeks} of the time in seeks{by_name}"
    )
}

fn measured_sentence(access: &MeasuredAccess, bytes_per_second: u64) -> String {
    let limit = if access.is_the_limit() { ", which is its limit" } else { "" };
    format!(
        "the disk of the source has an access time of {:.1} ms{limit}: its files come in the order \
         of the disk, at {}",
        access.access_time.as_secs_f64() * 1e3,
        rate(bytes_per_second as f64)
    )
}

/// A predicted number of back-hitches, as [`rounded`] has it.
pub fn back_hitches(number: u64) -> String {
    counted(rounded(number), "back-hitch", "back-hitches")
}

/// Two digits: the assumed time of a stop and the assumed buffer allow no more.
pub fn rounded(number: u64) -> u64 {
    let unit = 10u64.pow(number.max(1).ilog10().saturating_sub(1));
    (number + unit / 2) / unit * unit
}
