//! Whether a plan fits into the available time, and what would make it fit.

use base::format::{duration, rate, size};
use model::plan::alternatives::{Alternative, Effort};
use model::plan::window::Needs;
use model::plan::{Plan, Setup};
use serde_json::{Value, json};

/// The available time, and what is needed to end within it.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The available time, in seconds.
    pub seconds: f64,
    /// What would be enough, with all else as requested.
    pub needs: Needs,
}

impl Window {
    /// Whether a plan ends within that time.
    pub fn fits(&self, plan: &Plan) -> bool {
        plan.seconds <= self.seconds
    }

    /// The head of the column.
    pub fn title(&self) -> String {
        format!("within {}", duration(self.seconds))
    }

    /// The time that is left, or missing.
    pub fn cell(&self, plan: &Plan) -> String {
        let by = duration((self.seconds - plan.seconds).abs());
        if self.fits(plan) { format!("{by} left") } else { format!("{by} over") }
    }

    /// The lines on a plan and its alternatives; the first of `list` is the plan itself.
    pub fn lines(&self, setup: &Setup, list: &[Alternative]) -> Vec<String> {
        let asked = &list[0].plan;
        let time = duration(self.seconds);
        let by = duration((self.seconds - asked.seconds).abs());
        let needed = rate(setup.source.size_bytes as f64 / self.seconds);
        let bytes = size(setup.source.size_bytes);
        let told = if self.fits(asked) {
            format!("the plan fits into {time}, with {by} left")
        } else {
            format!("the plan does not fit into {time}: {by} too long")
        };
        let mut lines = vec![format!("{told}; {bytes} in that time need {needed}")];
        if !self.fits(asked) {
            lines.push(self.ways(list));
        }
        lines.push(self.needed(setup, asked));
        lines
    }

    /// The alternatives that fit, by their effort.
    fn ways(&self, list: &[Alternative]) -> String {
        let of = |effort: Effort| {
            let fitting = list.iter().filter(|one| one.effort == effort && self.fits(&one.plan));
            fitting.map(|one| one.name.clone()).collect::<Vec<_>>().join(", ")
        };
        let told = [
            (Effort::Setting, "with settings alone"),
            (Effort::Procedure, "with more than settings"),
            (Effort::Hardware, "with other drives"),
        ];
        let told: Vec<String> = told
            .into_iter()
            .map(|(effort, words)| (of(effort), words))
            .filter(|(names, _)| !names.is_empty())
            .map(|(names, words)| format!("{words}: {names}"))
            .collect();
        match &told[..] {
            [] => "none of the ways below fits".to_owned(),
            some => format!("it fits {}", some.join("; ")),
        }
    }

    fn needed(&self, setup: &Setup, asked: &Plan) -> String {
        let fits = self.fits(asked);
        let source = match self.needs.source_bytes_per_second {
            Some(least) if fits => format!("a source of {} would still fit", rate(least as f64)),
            Some(least) => format!("a source of {} would fit", rate(least as f64)),
            None => "no source is fast enough for it".to_owned(),
        };
        let drives = match self.needs.drives {
            Some(drives) if drives == setup.drives => None,
            Some(1) => Some("one such drive is enough".to_owned()),
            Some(drives) => Some(format!("{drives} such drives are enough")),
            None => Some("no number of such drives is enough".to_owned()),
        };
        let drives = drives.map_or(String::new(), |drives| format!("; {drives}"));
        format!("with all else as given: {source}{drives}")
    }

    /// For documents.
    pub fn document(&self, setup: &Setup, list: &[Alternative]) -> Value {
        let asked = &list[0].plan;
        let fitting = list.iter().skip(1).filter(|one| self.fits(&one.plan));
        json!({
            "seconds": self.seconds,
            "fits": self.fits(asked),
            "seconds_left": self.seconds - asked.seconds,
            "content_bytes_per_second": setup.source.size_bytes as f64 / self.seconds,
            "alternatives_that_fit": fitting.map(|one| &one.name).collect::<Vec<_>>(),
            "needs": {
                "source_bytes_per_second": self.needs.source_bytes_per_second,
                "drives": self.needs.drives,
            },
        })
    }
}
