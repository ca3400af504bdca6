//! The progress line of a run: how much is done, how fast, how long it will take and what that
//! rests on, and the object in hand.
//!
//! Everything here turns numbers into one line. [`crate::terminal`] collects them.

use std::time::Duration;

use base::escape::escape;
use base::format::{counted, duration, percent, rate, size};
use flow::monitor::{Basis, Pause};
use report::prose::{columns_of, width};

/// Columns that the object in hand gets before anything but the forecast.
const OBJECT_COLUMNS: usize = 24;
/// An object that would get fewer columns is left out.
const OBJECT_COLUMNS_MIN: usize = 10;
/// In front of the tail of a long name.
const CUT: &str = "...";
/// Longer times left are not shown: the rate they follow from is that of a pause.
const LEFT_SECONDS_MAX: f64 = 100.0 * 86400.0;

/// What a run shows at a moment.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// What it does while no bytes move, and for how many seconds.
    pub pause: Option<(Pause, f64)>,
    /// The share that is done, and what the whole rests on.
    pub forecast: Option<Forecast>,
    /// Bytes per second that it reads.
    pub read_rate: f64,
    /// Bytes per second that it writes, where it writes.
    pub write_rate: Option<f64>,
    /// How full the ring in front of the writer is.
    pub fill: Option<f64>,
    /// Members so far.
    pub members: u64,
    /// Bytes so far.
    pub bytes: u64,
    /// Seconds since the start.
    pub seconds: f64,
    /// The object in hand.
    pub object: Vec<u8>,
}

/// The end of a run, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// What is done of the whole, from 0 to 1.
    pub share: f64,
    /// Seconds to the end, where there is a rate.
    pub seconds_left: Option<f64>,
    /// What the whole rests on.
    pub basis: Basis,
}

impl Forecast {
    /// The forecast of a run that has `done` of `whole`. `None` where an estimate was too low, as
    /// nothing is known of the rest.
    pub fn new(done: u64, whole: u64, per_second: f64, basis: Basis) -> Option<Forecast> {
        if whole == 0 || (done > whole && basis.is_estimate()) {
            return None;
        }
        let left = whole.saturating_sub(done) as f64;
        let seconds_left = Some(left / per_second).filter(|left| *left <= LEFT_SECONDS_MAX);
        let share = (done as f64 / whole as f64).min(1.0);
        Some(Forecast { share, seconds_left, basis })
    }

    /// `2 min 10 s left (from the size of the archive)`. At the end of the input the stages behind
    /// it still have data, and the disk does, so nothing is known of the rest.
    fn left(&self) -> Option<String> {
        if self.share >= 1.0 {
            return Some("all read, finishing".to_owned());
        }
        let seconds = self.seconds_left?;
        // Tenths of seconds would only flicker.
        let left = if seconds < 59.5 { format!("{:.0} s", seconds) } else { duration(seconds) };
        Some(format!("{left} left ({})", self.basis.name()))
    }
}

impl Moment {
    /// The line, at most `columns` wide. What does not fit is left out: the object is cut first, so
    /// that the numbers stay in place.
    pub fn line(&self, columns: usize) -> String {
        let object = escape(&self.object);
        let reserved = match width(&object) {
            0 => 0,
            long => 2 + long.min(OBJECT_COLUMNS),
        };
        let details = self.details();
        let wide = (0..=details.len()).rev().map(|many| self.parts(Rates::Both, &details[..many]));
        let short = self.parts(Rates::Reading, &[]);
        let fits = |parts: &Vec<String>| joined_width(parts) + reserved <= columns;
        let parts = wide.into_iter().find(fits).unwrap_or(short);
        let mut line = parts.join("  ");
        let room = columns.saturating_sub(width(&line) + 2);
        if !object.is_empty() && (room >= OBJECT_COLUMNS_MIN || room >= width(&object)) {
            line = format!("{line}  {}", tail(&object, room));
        }
        head(&line, columns)
    }

    /// The forecast and the rates, with `more` between them and the end.
    fn parts(&self, rates: Rates, more: &[String]) -> Vec<String> {
        let mut parts = Vec::new();
        if let Some(forecast) = &self.forecast {
            // Rounded down: a run is not at 100 % before its end.
            parts.push(percent((forecast.share * 100.0).floor() / 100.0));
        }
        match (self.pause, self.write_rate, rates) {
            // A rate of 0 would look like an error.
            (Some((pause, seconds)), ..) => {
                parts.push(format!("{} for {}", pause.name(), duration(seconds)));
            }
            (None, Some(write_rate), Rates::Both) => {
                parts.push(format!("in {}", rate(self.read_rate)));
                parts.push(format!("out {}", rate(write_rate)));
            }
            (None, ..) => parts.push(rate(self.read_rate)),
        }
        match &self.forecast {
            Some(forecast) => parts.extend(forecast.left()),
            None => parts.extend([size(self.bytes), duration(self.seconds.floor())]),
        }
        parts.extend(more.iter().cloned());
        parts
    }

    /// What a wide terminal shows, too.
    fn details(&self) -> Vec<String> {
        let fill = self.fill.map(|fill| format!("ring {}", percent(fill)));
        let members = (self.members > 0).then(|| counted(self.members, "member", "members"));
        let so_far = self.forecast.map(|_| size(self.bytes));
        [fill, members, so_far].into_iter().flatten().collect()
    }
}

/// How many rates are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rates {
    Reading,
    Both,
}

fn joined_width(parts: &[String]) -> usize {
    parts.iter().map(|part| width(part) + 2).sum::<usize>().saturating_sub(2)
}

/// The end of a text that fits, with dots in front where it is cut.
fn tail(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut room = columns.saturating_sub(CUT.len());
    let fits = text.char_indices().rev().take_while(|(_, character)| {
        let is_in = columns_of(*character) <= room;
        room = room.saturating_sub(columns_of(*character));
        is_in
    });
    let start = fits.last().map_or(text.len(), |(at, _)| at);
    format!("{CUT}{}", &text[start..])
}

/// The start of a text that fits.
fn head(text: &str, columns: usize) -> String {
    let mut room = columns;
    let fits = text.chars().take_while(|character| {
        let is_in = columns_of(*character) <= room;
        room = room.saturating_sub(columns_of(*character));
        is_in
    });
    fits.collect()
}

/// A rate over a time that grows with the run, so that a forecast neither jumps nor sticks to what
/// was long ago.
#[derive(Clone, Copy, Debug, Default)]
pub struct SteadyRate {
    per_second: f64,
    seconds: f64,
    last: u64,
}

impl SteadyRate {
    /// The rate is one of the last quarter of the run, and of 15 s at least.
    const SHARE: f64 = 0.25;
    const SECONDS_MIN: f64 = 15.0;

    /// Takes the next value of a counter, `step` after the last one, and returns the rate. Nothing
    /// counts before the counter begins to move.
    pub fn update(&mut self, value: u64, step: Duration) -> f64 {
        let step = step.as_secs_f64().max(1e-3);
        if value == 0 {
            return 0.0;
        }
        let now = value.saturating_sub(self.last) as f64 / step;
        self.seconds += step;
        self.last = value;
        let window = (self.seconds * SteadyRate::SHARE).max(SteadyRate::SECONDS_MIN);
        // Up to the length of the window it is the mean.
        let weight = (step / self.seconds).max(1.0 - (-step / window).exp());
        self.per_second += (now - self.per_second) * weight.min(1.0);
        self.per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment() -> Moment {
        Moment {
            forecast: Forecast::new(430, 1000, 4.385, Basis::ArchiveSize),
            read_rate: 210e6,
            write_rate: Some(520e6),
            fill: Some(0.4),
            members: 46_416,
            bytes: 12_300_000_000,
            seconds: 98.2,
            object: b"home/ann/photos/2019/summer/img_0001.raw".to_vec(),
            ..Moment::default()
        }
    }

    #[track_caller]
    fn check(moment: &Moment, columns: usize, expected: &str) {
        let line = moment.line(columns);
        assert_eq!(line, expected);
        assert!(width(&line) <= columns, "{line}");
    }

    #[test]
    fn the_line_has_the_forecast_and_the_object_at_every_width() {
        let left = "2 min 10 s left (from the size of the archive)";
        let short = format!("43 %  210 MB/s  {left}");
        check(&moment(), 79, &format!("{short}  ...img_0001.raw"));
        let long = format!("43 %  in 210 MB/s  out 520 MB/s  {left}");
        check(&moment(), 110, &format!("{long}  ...s/2019/summer/img_0001.raw"));
        let all = format!("{long}  ring 40 %  46 416 members  12.3 GB");
        check(&moment(), 160, &format!("{all}  home/ann/photos/2019/summer/img_0001.raw"));
        check(&moment(), 50, &short[..50]);
    }

    #[test]
    fn without_a_forecast_the_line_says_what_was_done() {
        let unknown = Moment { forecast: None, ..moment() };
        let done = "in 210 MB/s  out 520 MB/s  12.3 GB  1 min 38 s";
        check(&unknown, 79, &format!("{done}  ...tos/2019/summer/img_0001.raw"));
    }

    #[test]
    fn a_pause_has_no_rate() {
        for (pause, expected) in [
            (Pause::Winding, "43 %  winding for 7.00 s  "),
            (Pause::ReadingLabel, "43 %  reading the label for 7.00 s  "),
            (Pause::Changing, "43 %  changing the volume for 7.00 s  "),
            (Pause::Flushing, "43 %  flushing the drive for 7.00 s  "),
        ] {
            let line = Moment { pause: Some((pause, 7.0)), ..moment() }.line(120);
            assert!(line.starts_with(expected) && !line.contains("MB/s"), "{line}");
        }
    }

    /// A name may hold what a terminal obeys, and characters of two columns.
    #[test]
    fn the_object_is_escaped_and_its_tail_is_shown() {
        let line =
            |object: &[u8], columns| Moment { object: object.to_vec(), ..moment() }.line(columns);
        assert!(line(b"a\x1b[2J\nb", 90).ends_with("  a\\033[2J\\nb"));
        let wide = "\u{5199}\u{771f}".repeat(40);
        for columns in 20..200 {
            assert!(width(&line(wide.as_bytes(), columns)) <= columns);
        }
        assert!(line(wide.as_bytes(), 90).ends_with("\u{771f}"));
    }

    #[test]
    fn an_estimate_that_was_too_low_is_no_forecast() {
        assert_eq!(Forecast::new(11, 10, 1.0, Basis::SpaceInUse), None);
        let exact = Forecast::new(11, 10, 1.0, Basis::ArchiveSize).unwrap();
        assert_eq!((exact.share, exact.left().as_deref()), (1.0, Some("all read, finishing")));
        let begun = Forecast::new(0, 10, 0.0, Basis::SpaceInUse).unwrap();
        assert_eq!((begun.share, begun.seconds_left), (0.0, None));
    }

    #[test]
    fn a_steady_rate_is_a_mean_that_forgets() {
        let second = Duration::from_secs(1);
        let mut rate = SteadyRate::default();
        assert_eq!(rate.update(0, second), 0.0);
        (1..=10).for_each(|at| assert!((rate.update(at * 100, second) - 100.0).abs() < 1e-6));
        let mut value = 1000;
        let slow = (0..120).map(|_| {
            value += 10;
            rate.update(value, second)
        });
        let slow: Vec<f64> = slow.collect();
        assert!(slow[4] > 50.0 && slow[119] < 15.0, "{slow:?}");
    }
}
