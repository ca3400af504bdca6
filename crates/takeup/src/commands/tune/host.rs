//! What `takeup tune` does at the terminal while the service changes and measures settings.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use arguments::tune::TuneMeasureArgs;
use experiment::record::{Factor, RunRecord};
use experiment::run::Observer;
use flow::cancel::Cancel;
use service::tune::{MeasuringHost, SettleWait, TuneHost, TuneNotice};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::guard;
use crate::commands::bench::progress::Progress;
use crate::standard_error::to_standard_error;

/// How often a wait checks for a signal.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Standard error and the signals.
#[derive(Debug, Default)]
pub struct Host {
    cancel: Cancel,
    /// Whether progress is not printed.
    is_quiet: bool,
}

impl Host {
    /// For a command that measures.
    pub fn measuring(arguments: &TuneMeasureArgs) -> Host {
        Host { cancel: Cancel::new(), is_quiet: arguments.quiet }
    }
}

impl TuneHost for Host {
    fn notice(&self, notice: &TuneNotice) {
        if self.is_quiet && matches!(notice, TuneNotice::Forecast(_)) {
            return;
        }
        to_standard_error(&report::tune::notice(notice));
    }

    fn guard(&self, list: &Path) -> Command {
        guard::command(list)
    }

    fn settle(&self, seconds: f64) -> SettleWait {
        let start = Instant::now();
        let mut signals = crate::interrupt::listen(&[SIGINT, SIGTERM, SIGHUP]).ok();
        while start.elapsed().as_secs_f64() < seconds {
            let left = Duration::from_secs_f64(seconds).saturating_sub(start.elapsed());
            std::thread::sleep(left.min(LOOK_EVERY));
            if signals.as_mut().is_some_and(|signals| signals.pending().next().is_some()) {
                return SettleWait { seconds: start.elapsed().as_secs_f64(), is_stopped: true };
            }
        }
        SettleWait { seconds, is_stopped: false }
    }
}

impl MeasuringHost for Host {
    fn measuring_begins(&self) {
        crate::interrupt::watch(&self.cancel);
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn observer<'a>(&'a self, factors: &'a [Factor]) -> Box<dyn Observer + 'a> {
        Box::new(ClosedAtEnd(if self.is_quiet {
            Progress::silent(factors)
        } else {
            Progress::live(factors)
        }))
    }
}

/// A live line that is erased at the end.
struct ClosedAtEnd<'a>(Progress<'a>);

impl Observer for ClosedAtEnd<'_> {
    fn foretold(&self, what: &str) {
        self.0.foretold(what);
    }

    fn begins(&self, progress: &experiment::run::Progress<'_>) {
        self.0.begins(progress);
    }

    fn ended(&self, progress: &experiment::run::Progress<'_>, run: &RunRecord) {
        self.0.ended(progress, run);
    }
}

impl Drop for ClosedAtEnd<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
