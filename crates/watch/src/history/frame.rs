//! The time axis of a page, and the position of each record on it.

use crate::history::History;
use base::calendar::time_text;
use base::format::duration;

/// Maximum length of an axis in seconds, longer than any record.
const SECONDS_MAX: f64 = 1e12;

/// The position of a record on the axis of a page; the record's own time begins at 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Beginning of the axis, in seconds since 1970.
    pub began_unix_seconds: i64,
    /// Beginning of the record on the axis, in seconds.
    pub offset_seconds: f64,
    /// Length of the axis, in seconds.
    pub seconds: f64,
}

impl Frame {
    /// The frame of a record that is alone on a page.
    pub fn of(history: &History) -> Frame {
        Frame {
            began_unix_seconds: history.began_unix_seconds,
            offset_seconds: 0.0,
            seconds: history.seconds,
        }
    }

    /// The position on the axis of a moment of the record's own time.
    pub fn at(&self, seconds: f64) -> f64 {
        self.offset_seconds + seconds
    }

    /// A moment as a time of day, with the date if the axis has several days.
    pub fn clock(&self, seconds: f64) -> String {
        let day = |unix: i64| unix.div_euclid(86_400);
        let last = self.unix_seconds(self.seconds);
        let text = time_text(self.unix_seconds(self.at(seconds)));
        let has_days = day(self.began_unix_seconds) != day(last);
        match text.get(11..) {
            Some(time) if !has_days => time.to_owned(),
            _ => text,
        }
    }

    /// From the beginning of the record to this many seconds after it, with the date.
    pub fn span(&self, seconds: f64) -> String {
        let day = time_text(self.began_unix_seconds);
        let (from, until) = (self.clock(0.0), self.clock(seconds));
        let day =
            day.get(..10).filter(|_| from.len() < 10).map_or(String::new(), |it| format!("{it} "));
        format!("{day}{from} to {until} UTC, {}", duration(seconds))
    }

    #[expect(clippy::cast_possible_truncation, reason = "a float becomes the nearest number")]
    fn unix_seconds(&self, behind: f64) -> i64 {
        self.began_unix_seconds.saturating_add(behind.round() as i64)
    }
}

/// The frames of several records on one axis, which begins at a whole second and ends with the last
/// record. Each is given by its beginning, in seconds since 1970, and its length.
pub fn frames(things: &[(f64, f64)]) -> Vec<Frame> {
    let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
    let things = things.iter().map(|(began, seconds)| (finite(*began), finite(*seconds).max(0.0)));
    let things: Vec<(f64, f64)> = things.collect();
    let first = things.iter().map(|it| it.0).fold(f64::INFINITY, f64::min).floor();
    let end = things.iter().map(|it| it.0 + it.1).fold(f64::NEG_INFINITY, f64::max);
    #[expect(clippy::cast_possible_truncation, reason = "a whole number, or the nearest there is")]
    let began_unix_seconds = first as i64;
    let frame = |(began, _): &(f64, f64)| Frame {
        began_unix_seconds,
        offset_seconds: began - first,
        seconds: (end - first).clamp(0.0, SECONDS_MAX),
    };
    things.iter().map(frame).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Each moment of either record is at the position of its clock, and on the axis.
        #[test]
        fn both_stand_where_their_clocks_say(
            began in 0.0..4e9_f64, apart in -1e5..1e5_f64, lengths in [0.0..1e6_f64, 0.0..1e6_f64],
            share in 0.0..=1.0_f64,
        ) {
            let things = [(began, lengths[0]), ((began + apart).max(0.0), lengths[1])];
            let both = frames(&things);
            prop_assert_eq!(both[0].began_unix_seconds, both[1].began_unix_seconds);
            prop_assert_eq!(both[0].seconds, both[1].seconds);
            for (frame, (began, length)) in both.iter().zip(things) {
                let moment = share * length;
                let place = frame.at(moment);
                let told = frame.began_unix_seconds as f64 + place;
                prop_assert!((told - (began + moment)).abs() < 1e-5, "{told}");
                prop_assert!(place >= 0.0 && place <= frame.seconds + 1e-5, "{place}");
                let clock = time_text((began + moment).round() as i64);
                // Rounding of times since 1970 limits the precision.
                if (began + moment).fract().abs() < 0.499 || (began + moment).fract() > 0.501 {
                    prop_assert!(clock.ends_with(&frame.clock(moment)), "{clock}");
                }
            }
            // The axis begins at most a second before the first record.
            prop_assert!(both[0].offset_seconds.min(both[1].offset_seconds) < 1.0);
        }
    }

    #[test]
    fn whatever_is_claimed_there_is_an_axis() {
        for things in [[(f64::NAN, 1.0), (1.0, f64::INFINITY)], [(1e300, -5.0), (-1e300, 1e308)]] {
            for frame in frames(&things) {
                assert!((0.0..=SECONDS_MAX).contains(&frame.seconds), "{frame:?}");
                assert!(!frame.clock(1.0).is_empty());
            }
        }
    }
}
