//! The progress line on the terminal while a pipeline runs.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use arguments::explain::ExplainArgs;
use base::escape::escape_controls;
use base::format::{duration, percent};
use pipeline::Sampler;
use service::explain::SampleObserver;

use crate::standard_error::{columns, draw_progress, erase_progress};

/// Time between two updates.
const EVERY: Duration = Duration::from_secs(1);

/// The line, drawn where standard error is a terminal.
pub struct Live {
    is_live: bool,
    /// When the run began, and when the next update is due.
    times: Option<(Instant, Instant)>,
}

impl Live {
    /// The line is not drawn if the programs print to standard error as well.
    pub fn new(arguments: &ExplainArgs) -> Live {
        let is_live = std::io::stderr().is_terminal() && !arguments.show_output;
        Live { is_live, times: None }
    }
}

impl SampleObserver for Live {
    fn sampled(&mut self, sampler: &Sampler) {
        let now = Instant::now();
        let (start, next) = *self.times.get_or_insert((now, now + EVERY));
        if !self.is_live || now < next {
            return;
        }
        self.times = Some((start, now + EVERY));
        let text = text(now.duration_since(start).as_secs_f64(), &sampler.so_far());
        draw_progress(&text.chars().take(columns()).collect::<String>());
    }

    fn ended(&mut self) {
        self.times = None;
        erase_progress();
    }
}

fn text(seconds: f64, stages: &[(String, &'static str, f64)]) -> String {
    let one = |(at, (program, what, share)): (usize, &(String, &'static str, f64))| {
        let program = escape_controls(program);
        format!("{} {program}: {what} {}", at + 1, percent(*share))
    };
    let all: Vec<String> = stages.iter().enumerate().map(one).collect();
    format!("{}  {}", duration(seconds.floor()), all.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_has_what_it_does_most() {
        let stages =
            [("cat".to_owned(), "blocked", 0.81), ("gzip\x1b".to_owned(), "working", 0.97)];
        assert_eq!(text(12.3, &stages), "12.0 s  1 cat: blocked 81 %  2 gzip\\033: working 97 %");
    }
}
