//! A capture as a text and as a page, and with it the devices that were watched meanwhile: calls
//! above, devices below, on one axis of time.

mod calls;
mod page;

use std::convert::Infallible;

use observe::capture::presentation;
use observe::capture::record::Captured;
use observe::history::History;
use report::calendar::time_text;
use report::escape::escape;
use report::format::{counted, duration};
use report::table::Colour;

use crate::history::{self, Frame, frames};
pub use page::page;

/// A capture, and what its devices did.
#[derive(Debug)]
pub struct Together<'a> {
    /// The capture.
    pub captured: &'a Captured,
    /// The devices, where any were watched and looked at twice.
    pub devices: Option<History>,
    /// Where the calls lie on the axis.
    pub calls_frame: Frame,
    /// Where the devices do.
    pub devices_frame: Frame,
}

impl Together<'_> {
    /// Of a capture.
    pub fn of(captured: &Captured) -> Together<'_> {
        let readings = captured.beside.as_deref().unwrap_or_default();
        let behind = readings.first().map_or(0.0, |it| it.at_seconds);
        let mut next = readings.iter().cloned();
        let Ok(history) = History::of(|| Ok::<_, Infallible>(next.next()), 1);
        let began = captured.heading.began_unix_seconds;
        let [calls_frame, devices_frame] =
            frames([(began, captured.profile.seconds), (began + behind, history.seconds)]);
        let devices = (readings.len() > 1 && history.seconds > 0.0).then_some(history);
        Together { captured, devices, calls_frame, devices_frame }
    }

    /// What was captured from when to when.
    pub(crate) fn summary(&self) -> String {
        let day = time_text(self.calls_frame.began_unix_seconds);
        let seconds = self.captured.profile.seconds;
        let (from, until) = (self.calls_frame.clock(0.0), self.calls_frame.clock(seconds));
        let day =
            day.get(..10).filter(|_| from.len() < 10).map_or(String::new(), |it| format!("{it} "));
        format!("{day}{from} to {until} UTC, {}", duration(seconds))
    }
}

/// The capture for the terminal, and the devices below it.
pub fn text(together: &Together<'_>, colour: Colour) -> String {
    let heading = &together.captured.heading;
    let mut text = format!("{}\n{}\n", escape(heading.subject.as_bytes()), together.summary());
    text.push_str(&presentation::text(&together.captured.profile, colour));
    text + &devices_text(together, colour)
}

/// The devices alone, with a blank line in front of them; nothing where none were watched.
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

/// How often the devices were looked at.
pub(crate) fn looks(devices: &History) -> String {
    format!(
        "{} meanwhile, {} of {} s",
        counted(devices.devices.len() as u64, "device", "devices"),
        counted(devices.intervals, "interval", "intervals"),
        history::tenths(devices.seconds / devices.intervals.max(1) as f64)
    )
}

/// Of a watch beside a capture that has nothing to show.
pub(crate) const NO_DEVICE: &str = "no block device lies below the captured files";
