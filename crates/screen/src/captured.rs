//! A capture as a text and as a page, with the devices that were watched at the same time: calls
//! above, devices below, on one time axis.

mod calls;
mod page;

use std::convert::Infallible;

use base::escape::escape;
use base::format::counted;
use capture::record::Captured;
use report::captures as presentation;
use report::table::Colour;
use runs::run_record::RunRecord;
use watch::history::History;

use crate::history::{self, Frame, frames};
use crate::stages::{self, Ran};
pub use page::page;

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

/// The capture for the terminal, and the devices below it.
pub fn text(together: &Together<'_>, colour: Colour) -> String {
    let heading = &together.captured.heading;
    let mut text = format!("{}\n{}\n", escape(heading.subject.as_bytes()), together.summary());
    text.push_str(&presentation::text(&together.captured.profile, colour));
    text.push_str(&devices_text(together, colour));
    for ran in &together.runs {
        text.push_str(&format!("\n{}", stages::text(ran)));
    }
    text
}

/// The devices alone, after a blank line; empty if none were watched.
pub fn devices_text(together: &Together<'_>, colour: Colour) -> String {
    match (&together.devices, &together.captured.beside) {
        (Some(devices), _) if !devices.devices.is_empty() => {
            let frame = &together.devices_frame;
            let said = history::table_and_sentences(frame, devices, colour);
            format!("\n{}:\n{said}", looks(devices))
        }
        (_, Some(_)) => format!("\n{NO_DEVICE}\n"),
        _ => String::new(),
    }
}

/// Number of devices and intervals.
pub(crate) fn looks(devices: &History) -> String {
    format!(
        "{} meanwhile, {} of {} s",
        counted(devices.devices.len() as u64, "device", "devices"),
        counted(devices.intervals, "interval", "intervals"),
        history::tenths(devices.seconds / devices.intervals.max(1) as f64)
    )
}

/// The remark for a capture without devices to show.
pub(crate) const NO_DEVICE: &str = "no block device lies below the captured files";
