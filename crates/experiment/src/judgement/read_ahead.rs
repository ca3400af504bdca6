//! Findings on the read-ahead window: too small for the requests of the program, larger than its
//! stream needs, or in conflict with another read-ahead below.
//!
//! The kernel serves a read that is larger than the window window by window, and waits for each
//! (`mm/readahead.c`, `page_cache_sync_ra`; the published account of `read_pref_io` says the same).
//! A window that is larger than needed brings the stream nothing and costs others: a random read
//! fetches pages that no program requested, and useful pages are evicted. An array that reads ahead
//! by itself recognises a sequence by the order of its requests; several requests at once, on
//! several paths, hide it. The host sees that only as a falling rate.

use base::finding::{Certainty, Finding, Rule, Unit};

use super::comparer::Basis;
use super::{
    CellSummary, Judgement, JudgementOptions, RateVerdict, Sentence, Subject, Sweep, rules,
};
use crate::quantities;
use crate::record::{Level, Value, binary_size};

/// The factor of this module.
pub const READ_AHEAD: &str = "read_ahead_bytes";
/// The factor with the size of the program's requests; see `loads::read`.
const REQUEST: &str = "block_bytes";
/// Measures of what a window costs other programs.
const PAID: [(&str, &str); 3] = [
    ("random_read_p50_ns", "a random read takes"),
    ("random_read_device_bytes", "a random read makes the device read"),
    ("reclaimed_bytes_per_byte", "bytes pushed out of the page cache for each byte read:"),
];
/// A cost is reported if it grows by at least this factor.
const WORTH_TELLING: f64 = 1.15;

/// One sweep over read-aheads, the levels from the smallest.
struct Windows<'a> {
    judgement: &'a Judgement,
    options: &'a JudgementOptions,
    sweep: &'a Sweep,
    /// Window and cell.
    levels: Vec<(u64, usize)>,
}

/// All findings from sweeps over read-ahead.
pub fn read_ahead(judgement: &Judgement, options: &JudgementOptions) -> Vec<Sentence> {
    let is_one = |sweep: &&Sweep| sweep.is_told && sweep.factor == READ_AHEAD;
    let windows = |sweep| Windows::new(judgement, options, sweep);
    judgement.sweeps.iter().filter(is_one).flat_map(|sweep| windows(sweep).sentences()).collect()
}

impl<'a> Windows<'a> {
    fn new(
        judgement: &'a Judgement,
        options: &'a JudgementOptions,
        sweep: &'a Sweep,
    ) -> Windows<'a> {
        let level = |&cell: &usize| match judgement.cells[cell].cell.get(READ_AHEAD)? {
            Level::Number(bytes) => Some((*bytes, cell)),
            Level::Text(_) => None,
        };
        let mut levels: Vec<(u64, usize)> = sweep.cells.iter().filter_map(level).collect();
        levels.sort_unstable();
        Windows { judgement, options, sweep, levels }
    }

    fn sentences(&self) -> Vec<Sentence> {
        let told = [self.too_small(), self.too_large(), self.conflict()];
        let sentence = |finding| Sentence::new(Subject::Finding, finding);
        told.into_iter().flatten().map(sentence).collect()
    }

    fn cell(&self, index: usize) -> &CellSummary {
        &self.judgement.cells[index]
    }

    fn rate(&self, index: usize) -> String {
        self.cell(index).told(Value::Rate)
    }

    /// `Differs` only if `faster` is shown to be faster than `slower`.
    fn verdict(&self, faster: usize, slower: usize) -> RateVerdict {
        let against = self.judgement.comparer.against(slower, &[faster]);
        let settled = against.iter().find(|one| one.basis == Basis::Repeats);
        match settled.map(|one| RateVerdict::of(Some(one.interval), self.options)) {
            Some(RateVerdict::Differs) if settled.is_some_and(|one| one.contrast.value <= 0.0) => {
                RateVerdict::NotSettled
            }
            Some(verdict) => verdict,
            None => RateVerdict::NotSettled,
        }
    }

    /// A window below the request size of the program, against the first that holds a request.
    fn too_small(&self) -> Option<Finding> {
        let request = |cell: usize| match self.cell(cell).cell.get(REQUEST)? {
            Level::Number(bytes) => Some(*bytes),
            Level::Text(_) => None,
        };
        let asked = request(self.levels.first()?.1)?;
        let holds = self.levels.iter().position(|(window, _)| *window >= asked)?;
        let (enough, with_enough) = self.levels[holds];
        let mut small = self.levels[..holds].iter().rev();
        let is_slower =
            |(_, cell): &&(u64, usize)| self.verdict(with_enough, *cell) == RateVerdict::Differs;
        let (window, with_small) = *small.find(is_slower)?;
        let shown = binary_size(asked);
        let why = if window == 0 {
            "the program waits for each, and nothing is read ahead".to_owned()
        } else {
            format!("each takes {} reads, one after the other", asked.div_ceil(window))
        };
        let text = format!(
            "a read-ahead of {} is too small for requests of {shown}: {why}; {} with it, {} with \
             {}",
            binary_size(window),
            self.rate(with_small),
            self.rate(with_enough),
            binary_size(enough)
        );
        Some(self.finding(&rules::READ_AHEAD_TOO_SMALL, Certainty::Inferred, text, window))
    }

    /// The largest window, if a smaller one is as fast and the difference costs other programs.
    fn too_large(&self) -> Option<Finding> {
        let (window, largest) = *self.levels.last()?;
        let chosen = self.sweep.cells[self.sweep.knee];
        let (enough, with_enough) = *self.levels.iter().find(|(_, cell)| *cell == chosen)?;
        if enough == window || self.verdict(largest, with_enough) == RateVerdict::Differs {
            return None;
        }
        let grown = |(name, what): &(&str, &str)| {
            let get = |cell: usize| self.cell(cell).measures.get(*name).copied();
            let (now, then) = (get(largest)?, get(with_enough)?);
            let shown = |value| quantities::Unit::of(name).shown(value);
            (now > then * WORTH_TELLING && shown(now) != shown(then))
                .then(|| format!("{what} {} instead of {}", shown(now), shown(then)))
        };
        let paid: Vec<String> = PAID.iter().filter_map(grown).collect();
        if paid.is_empty() {
            return None;
        }
        let text = format!(
            "a read-ahead of {} is more than the stream needs: {} is not slower ({} against {}); \
             the cost: {}",
            binary_size(window),
            binary_size(enough),
            self.rate(with_enough),
            self.rate(largest),
            paid.join(", ")
        );
        Some(self.finding(&rules::READ_AHEAD_TOO_LARGE, Certainty::Inferred, text, window))
    }

    /// Whether rates fall as the window grows, and what that means.
    fn conflict(&self) -> Option<Finding> {
        let (window, largest) = *self.levels.last().filter(|_| self.levels.len() > 2)?;
        let speed = |cell: usize| self.cell(cell).bytes_per_second;
        let by_speed = |a: &&(u64, usize), b: &&(u64, usize)| speed(a.1).total_cmp(&speed(b.1));
        let (best_window, best) = *self.levels.iter().max_by(by_speed)?;
        let falls = best != largest && self.verdict(best, largest) == RateVerdict::Differs;
        let looks = "if the read-ahead of an array conflicts with the host's, the rate falls as \
                     the window grows, while the device moves no extra bytes";
        let seen = if falls {
            let extra = self.cell(largest).measures.get("device_bytes_per_byte");
            let vain = match extra {
                Some(extra) if *extra > 1.05 => {
                    format!(", but the device moves {extra:.2} bytes for each requested byte")
                }
                _ => String::new(),
            };
            format!(
                "here it falls from {} at {} to {} at {}{vain}",
                self.rate(best),
                binary_size(best_window),
                self.rate(largest),
                binary_size(window)
            )
        } else {
            "here it does not fall".to_owned()
        };
        let certainty = if falls { Certainty::Assumed } else { Certainty::Inferred };
        let text = format!("{looks}; {seen}");
        let mut found = self.finding(&rules::READ_AHEAD_CONFLICT, certainty, text, window);
        if falls {
            found.action = Some(
                "try one path, or one reader, and the window of the best rate, before you switch \
                 off the array's own read-ahead"
                    .to_owned(),
            );
        }
        Some(found)
    }

    fn finding(
        &self,
        rule: &'static Rule,
        certainty: Certainty,
        text: String,
        window: u64,
    ) -> Finding {
        Finding::new(rule, certainty, text).with_number("window", window as f64, Unit::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge;
    use super::*;
    use crate::record::{Factor, RunRecord};

    const WINDOWS: [u64; 4] = [0, 128 << 10, 1 << 20, 8 << 20];

    /// Five runs of each window at these rates, with requests of 1 MiB, and the time of a random
    /// read.
    fn judged(rates: [f64; 4], random_read_ns: [f64; 4]) -> Judgement {
        let mut runs = Vec::new();
        for repeat in 1..=5 {
            for (place, window) in WINDOWS.into_iter().enumerate() {
                let cell = [(READ_AHEAD, window), (REQUEST, 1 << 20)];
                let cell = cell.map(|(name, level)| (name.to_owned(), Level::Number(level)));
                let paid = ("random_read_p50_ns".to_owned(), random_read_ns[place]);
                runs.push(RunRecord {
                    cell: cell.into(),
                    repeat,
                    bytes: rates[place] as u64,
                    seconds: 1.0 + 0.001 * ((repeat + place as u64) % 3) as f64,
                    measures: [paid].into(),
                    ..RunRecord::default()
                });
            }
        }
        let levels = WINDOWS.map(Level::Number).to_vec();
        let request = vec![Level::Number(1 << 20)];
        let factors = [Factor::new(READ_AHEAD, levels), Factor::new(REQUEST, request)];
        judge(&factors, &runs, &JudgementOptions::default())
    }

    fn told(judgement: &Judgement, rule: &Rule) -> Option<String> {
        let own = |one: &&Sentence| one.finding.rule == rule.id;
        judgement.sentences.iter().find(own).map(|one| one.text.clone())
    }

    #[test]
    fn a_window_below_the_request_is_too_small() {
        let judgement = judged([50e6, 160e6, 220e6, 220e6], [5e6; 4]);
        let text = told(&judgement, &rules::READ_AHEAD_TOO_SMALL).unwrap();
        assert!(text.contains("128 KiB is too small for requests of 1 MiB"), "{text}");
        assert!(text.contains("each takes 8 reads"), "{text}");
        let flat = judged([220e6; 4], [5e6; 4]);
        assert_eq!(told(&flat, &rules::READ_AHEAD_TOO_SMALL), None);
    }

    #[test]
    fn a_window_that_brings_nothing_and_costs_others_is_too_large() {
        let rates = [50e6, 160e6, 220e6, 220e6];
        let text = told(&judged(rates, [5e6, 5e6, 5e6, 9e6]), &rules::READ_AHEAD_TOO_LARGE);
        let text = text.unwrap();
        assert!(text.contains("8 MiB is more than the stream needs: 1 MiB"), "{text}");
        assert!(text.contains("a random read takes 9"), "{text}");
        assert_eq!(told(&judged(rates, [5e6; 4]), &rules::READ_AHEAD_TOO_LARGE), None);
        let rising = judged([50e6, 160e6, 220e6, 300e6], [5e6, 5e6, 5e6, 9e6]);
        assert_eq!(told(&rising, &rules::READ_AHEAD_TOO_LARGE), None);
    }

    #[test]
    fn what_a_conflict_would_look_like_is_said_and_whether_it_does() {
        let falling = judged([50e6, 220e6, 160e6, 90e6], [5e6; 4]);
        let text = told(&falling, &rules::READ_AHEAD_CONFLICT).unwrap();
        assert!(text.contains("here it falls from 220 MB/s at 128 KiB to 89"), "{text}");
        let rising = judged([50e6, 160e6, 220e6, 220e6], [5e6; 4]);
        let text = told(&rising, &rules::READ_AHEAD_CONFLICT).unwrap();
        assert!(text.ends_with("here it does not fall"), "{text}");
    }
}
