//! Whether the rate of a summary is that of its size and time.

use base::finding::{Certainty, Finding, Severity, Unit};
use base::format;

use super::Conclusions;
use crate::piece::{JobReport, Piece, SummaryLine, What};
use crate::rules;

/// Share by which a rate may differ, since its size is rounded.
const ROUNDED: f64 = 0.05;

pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    let (mut size, mut seconds) = (None, None);
    for piece in pieces {
        let line = match piece.what {
            What::Summary(line) => line,
            // Other programs print it so, too.
            What::JobReport(JobReport::Rate(rate)) => {
                SummaryLine::Rate { bytes_per_second: rate, binary_bytes_per_second: rate * 1.024 }
            }
            What::JobReport(_) => SummaryLine::OtherSize,
            _ => continue,
        };
        match line {
            SummaryLine::Size { bytes, binary_bytes } => {
                // Times before it are those of another job.
                (size, seconds) = (Some((bytes, binary_bytes, piece.lines)), None);
            }
            SummaryLine::OtherSize => size = None,
            SummaryLine::OtherTime => seconds = None,
            SummaryLine::Seconds(it) => seconds = Some((it, piece.lines)).filter(|it| it.0 > 0.0),
            SummaryLine::Rate { bytes_per_second, binary_bytes_per_second } => {
                let (Some((bytes, binary, at)), Some((time, _))) = (size, seconds.take()) else {
                    continue;
                };
                let (by_thousands, by_1024) = (bytes / time, binary / time);
                let is_off = |told: f64, true_rate: f64| (told / true_rate - 1.0).abs() > ROUNDED;
                if !is_off(bytes_per_second, by_thousands)
                    || !is_off(binary_bytes_per_second, by_1024)
                {
                    continue;
                }
                let what = format!(
                    "{} in {} are {}, not {}",
                    format::size(bytes as u64),
                    format::duration(time),
                    format::rate(by_thousands),
                    format::rate(bytes_per_second)
                );
                let why =
                    "the printed rate cannot be that of all of it, in units of 1000 or of 1024";
                let finding = Finding::new(&rules::OTHER_RATE, Certainty::Measured, what)
                    .because(why)
                    .severe(Severity::Warning)
                    .with_number("rate by size and time", by_thousands, Unit::BytesPerSecond)
                    .with_number("rate as printed", bytes_per_second, Unit::BytesPerSecond);
                found.add(super::span([at, piece.lines]), finding);
            }
        }
    }
}
