//! A capture as a text and as a page, with the devices that were watched at the same time: calls
//! above, devices below, on one time axis.

mod calls;
mod page;

use crate::captures as presentation;
use crate::table::Style;
use base::escape::escape;
use base::format::counted;
use service::capture::Together;
use watch::history::History;

use crate::history;
use crate::stages;
pub use page::page;

/// The capture for the terminal, and the devices below it.
pub fn text(together: &Together<'_>, style: Style) -> String {
    let heading = &together.captured.heading;
    let mut text = format!("{}\n{}\n", escape(heading.subject.as_bytes()), together.summary());
    text.push_str(&presentation::text(&together.captured.profile, style));
    text.push_str(&devices_text(together, style));
    for ran in &together.runs {
        text.push_str(&format!("\n{}", stages::text(ran)));
    }
    text
}

/// The devices alone, after a blank line; empty if none were watched.
pub fn devices_text(together: &Together<'_>, style: Style) -> String {
    match (&together.devices, &together.captured.beside) {
        (Some(devices), _) if !devices.devices.is_empty() => {
            let frame = &together.devices_frame;
            let said = history::table_and_sentences(frame, devices, style);
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
