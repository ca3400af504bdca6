//! The explanation of a plan in words: what limits it, and which way is the best.

use base::format::{counted, duration, rate, size};
use model::plan::Limit;
use model::plan::alternatives::{Alternative, Effort, best};

use super::Planned;

/// Two times within this factor are not compared.
const WORTH_COMPARING: f64 = 1.02;

impl Planned {
    /// What limits the requested plan.
    pub fn limit(&self) -> String {
        let plan = self.asked();
        let at = rate(plan.limit_bytes_per_second);
        match plan.limit {
            Limit::Source if self.setup.source.files == 0 => {
                format!("the source is the limit, at {at}")
            }
            Limit::Source => format!("the source is the limit: with its files it gives {at}"),
            Limit::StagingDisk => format!("the staging disk is the limit, at {at}"),
            Limit::SoftwareCompression => format!("compression in software is the limit, at {at}"),
            Limit::Commands => format!(
                "commands are the limit: blocks of {} reach {at} at most",
                size(self.setup.block_bytes)
            ),
            Limit::Interface => format!("the drive's interface is the limit, at {at}"),
            Limit::Medium => {
                format!("the tape is the limit, at {at} of content at its highest speed")
            }
        }
    }

    /// The best plan with settings alone, and the best ones with more effort.
    pub fn advice(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut told: Option<&Alternative> = None;
        let efforts = [
            (Effort::Setting, "best with settings alone"),
            (Effort::Procedure, "with more than settings"),
            (Effort::Hardware, "with other drives"),
        ];
        for (effort, words) in efforts {
            let Some(one) = best(&self.list, effort) else { continue };
            if told.is_some_and(|told| told.name == one.name) {
                continue;
            }
            let typed = one.options.as_ref();
            let asked = self.asked().seconds;
            let instead = if asked > one.plan.seconds * WORTH_COMPARING {
                format!(" instead of {}", duration(asked))
            } else {
                String::new()
            };
            lines.push(format!(
                "{words}: {}, {}{instead} and {}{}",
                one.name,
                duration(one.plan.seconds),
                back_hitches(one.plan.back_hitches),
                typed.map_or(String::new(), |options| format!("; takeup backup {options}")),
            ));
            told = Some(one);
        }
        lines
    }

    /// What limits the requested plan, and the best ways, in one line.
    pub(super) fn explanation(&self) -> String {
        format!("{}; {}", self.limit(), self.advice().join("; "))
    }
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
