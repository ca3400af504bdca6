//! A capture with the devices that were watched and Takeup's own runs of the same time, on one time
//! axis.

use std::convert::Infallible;

use base::escape::escape;
use capture::record::Captured;
use runs::run_record::RunRecord;
use watch::history::{Frame, History, frames};

/// A run and its position on the axis.
#[derive(Debug)]
pub struct Ran<'a> {
    pub record: &'a RunRecord,
    /// Its position.
    pub frame: Frame,
}

impl<'a> Ran<'a> {
    /// A run that is alone on the axis.
    pub fn alone(record: &'a RunRecord) -> Ran<'a> {
        let frame = frames(&[(record.began_unix_seconds, record.seconds)])[0];
        Ran { record, frame }
    }

    /// What ran.
    pub fn title(&self) -> String {
        format!("takeup {}", escape(self.record.command().as_bytes()))
    }

    /// From when to when, in words.
    pub fn time(&self) -> String {
        self.frame.span(self.record.seconds)
    }
}

/// A capture and its devices.
#[derive(Debug)]
pub struct Together<'a> {
    /// The capture.
    pub captured: &'a Captured,
    /// The devices, if any were watched for at least one interval.
    pub devices: Option<History>,
    /// The position of the calls on the axis.
    pub calls_frame: Frame,
    /// The position of the devices on the axis.
    pub devices_frame: Frame,
    /// Takeup's own runs that were recorded at the same time.
    pub runs: Vec<Ran<'a>>,
}

impl<'a> Together<'a> {
    /// A capture alone.
    pub fn of(captured: &'a Captured) -> Together<'a> {
        Together::with(captured, &[])
    }

    /// A capture with Takeup's own runs.
    pub fn with(captured: &'a Captured, runs: &'a [RunRecord]) -> Together<'a> {
        let readings = captured.beside.as_deref().unwrap_or_default();
        let behind = readings.first().map_or(0.0, |it| it.at_seconds);
        let mut next = readings.iter().cloned();
        let Ok(history) = History::of(|| Ok::<_, Infallible>(next.next()), 1);
        let began = captured.heading.began_unix_seconds;
        let mut times = vec![(began, captured.profile.seconds), (began + behind, history.seconds)];
        times.extend(runs.iter().map(|run| (run.began_unix_seconds, run.seconds)));
        let frames = frames(&times);
        let ran = |(record, frame): (&'a RunRecord, &Frame)| Ran { record, frame: *frame };
        let devices = (readings.len() > 1 && history.seconds > 0.0).then_some(history);
        Together {
            captured,
            devices,
            calls_frame: frames[0],
            devices_frame: frames[1],
            runs: runs.iter().zip(&frames[2..]).map(ran).collect(),
        }
    }

    /// The captured process and the period.
    pub fn summary(&self) -> String {
        self.calls_frame.span(self.captured.profile.seconds)
    }
}
