//! The clocks of other hosts, seen from rank 0.
//!
//! Rank 0 asks for the time of another rank some tens of times and keeps the exchange with the
//! shortest round trip: the answer was given within it, so the offset of the clocks is known to
//! half of that trip (F. Cristian, "Probabilistic clock synchronization", 1989). What the clocks
//! drift
//! between two such measurements is taken to be even.

use std::time::{Duration, Instant};

use crate::communicator::Communicator;
use crate::message::{MailError, Message, receive_at_once, send};

/// Exchanges with each rank.
pub const PINGS: usize = 50;
/// Longest wait for one of them.
const PING_MAX: Duration = Duration::from_secs(10);

/// Time in which the next exchange comes, while one is measured.
const PING_NEXT: Duration = Duration::from_millis(5);

/// A clock that does not jump.
pub trait Clock {
    /// Nanoseconds since any fixed moment.
    fn now_ns(&self) -> i64;
}

/// The monotonic clock of this process.
#[derive(Clone, Copy, Debug)]
pub struct OwnClock(Instant);

impl Default for OwnClock {
    fn default() -> OwnClock {
        OwnClock(Instant::now())
    }
}

impl Clock for OwnClock {
    fn now_ns(&self) -> i64 {
        i64::try_from(self.0.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }
}

/// What is known of the clock of another rank at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offset {
    /// Its clock less that of rank 0.
    pub offset_ns: i64,
    /// The shortest round trip; the offset is known to half of it.
    pub round_trip_ns: i64,
    /// When it was measured, by the clock of rank 0.
    pub at_ns: i64,
}

/// Measures the offset of a rank, which answers in [`answer`]. Whatever else comes meanwhile goes
/// to `other`.
///
/// # Errors
/// When it does not answer, or what `other` says.
pub fn measure(
    rank: usize,
    clock: &dyn Clock,
    by: &dyn Communicator,
    other: &mut dyn FnMut(usize, Message) -> Result<(), MailError>,
) -> Result<Offset, MailError> {
    let mut best: Option<Offset> = None;
    for _ in 0..PINGS {
        let sent_ns = clock.now_ns();
        send(rank, &Message::Ping, by)?;
        let (now_ns, back_ns) = loop {
            let (from, answer) = receive_at_once(by, PING_MAX)?;
            let back_ns = clock.now_ns();
            match answer {
                Message::Pong { now_ns } if from == rank => break (now_ns, back_ns),
                Message::Pong { .. } => {}
                answer => other(from, answer)?,
            }
        };
        let trip = exchange(sent_ns, now_ns, back_ns);
        if best.is_none_or(|best| trip.round_trip_ns < best.round_trip_ns) {
            best = Some(trip);
        }
    }
    Ok(best.unwrap_or_default())
}

/// Answers a ping and those that follow it, awake: a sleep between two looks would lengthen the
/// way. Returns the message that came behind them, if it came at once.
///
/// # Errors
/// When rank 0 is gone.
pub fn answer(
    to: usize,
    clock: &dyn Clock,
    by: &dyn Communicator,
) -> Result<Option<(usize, Message)>, MailError> {
    loop {
        send(to, &Message::Pong { now_ns: clock.now_ns() }, by)?;
        match receive_at_once(by, PING_NEXT) {
            Ok((_, Message::Ping)) => {}
            Ok(other) => return Ok(Some(other)),
            Err(MailError::Late(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// One exchange: the answer is taken to be given in the middle of the round trip.
fn exchange(sent_ns: i64, answered_ns: i64, back_ns: i64) -> Offset {
    let middle_ns = sent_ns + (back_ns - sent_ns) / 2;
    Offset {
        offset_ns: answered_ns - middle_ns,
        round_trip_ns: back_ns - sent_ns,
        at_ns: middle_ns,
    }
}

/// The clock of a rank between two measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drifting {
    pub before: Offset,
    pub after: Offset,
}

impl Drifting {
    /// A time of that clock, as that of rank 0.
    pub fn to_first(&self, theirs_ns: i64) -> i64 {
        let (before, after) = (self.before, self.after);
        let passed = theirs_ns - (before.at_ns + before.offset_ns);
        let whole = (after.at_ns + after.offset_ns) - (before.at_ns + before.offset_ns);
        if whole <= 0 {
            return theirs_ns - before.offset_ns;
        }
        let share = passed as f64 / whole as f64;
        let drifted = (after.offset_ns - before.offset_ns) as f64 * share;
        theirs_ns - before.offset_ns - drifted.round() as i64
    }

    /// How much faster that clock goes, in parts of a million; `None` where the two measurements
    /// are too close to tell.
    pub fn drift_per_million(&self) -> Option<f64> {
        let between = self.after.at_ns - self.before.at_ns;
        let moved = self.after.offset_ns - self.before.offset_ns;
        let doubt = (self.before.round_trip_ns + self.after.round_trip_ns) / 2;
        (between > 0 && moved.abs() > doubt).then(|| moved as f64 / between as f64 * 1e6)
    }

    /// Half the longer of the two round trips: how well the times are known.
    pub fn doubt_ns(&self) -> i64 {
        self.before.round_trip_ns.max(self.after.round_trip_ns) / 2
    }
}

/// Sleeps until the clock says this; the last fifth of a millisecond is waited for awake.
pub fn sleep_until(at_ns: i64, clock: &dyn Clock) {
    const AWAKE_NS: i64 = 200_000;
    loop {
        let left = at_ns - clock.now_ns();
        if left <= 0 {
            return;
        }
        if left > AWAKE_NS {
            std::thread::sleep(Duration::from_nanos((left - AWAKE_NS) as u64));
        } else {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::Local;
    use proptest::prelude::*;
    use std::thread;

    /// A clock with another start and another speed.
    struct Skewed {
        own: OwnClock,
        offset_ns: i64,
        drift_per_million: i64,
    }

    impl Clock for Skewed {
        fn now_ns(&self) -> i64 {
            let own = self.own.now_ns();
            own + self.offset_ns + own * self.drift_per_million / 1_000_000
        }
    }

    #[test]
    fn an_offset_is_found_to_half_of_the_round_trip() {
        let own = OwnClock::default();
        for offset_ns in [-3_600_000_000_000, -1, 0, 12_345_678_901] {
            let mut group = Local::group(2);
            let (second, first) = (group.pop().unwrap(), group.pop().unwrap());
            let theirs = Skewed { own, offset_ns, drift_per_million: 0 };
            let found = thread::scope(|scope| {
                scope.spawn(move || {
                    let (from, _) = receive_at_once(&second, PING_MAX).unwrap();
                    while answer(from, &theirs, &second).is_ok_and(|next| next.is_some()) {}
                });
                measure(1, &own, &first, &mut |from, other| panic!("{from} {other:?}")).unwrap()
            });
            let wrong = (found.offset_ns - offset_ns).abs();
            assert!(wrong <= found.round_trip_ns / 2 + 1, "{found:?} of {offset_ns}");
        }
    }

    proptest! {
        /// Whatever the way there and back take, the offset is known to half of both.
        #[test]
        fn the_answer_lies_within_the_round_trip(
            there in 0i64..10_000_000, back in 0i64..10_000_000, offset in -1i64 << 40..1 << 40,
            sent in 0i64..1 << 50,
        ) {
            let found = exchange(sent, sent + there + offset, sent + there + back);
            prop_assert!((found.offset_ns - offset).abs() <= (there + back) / 2 + 1);
        }

        /// A clock that drifts evenly is followed exactly, but for rounding.
        #[test]
        fn an_even_drift_is_taken_out(
            offset in -1i64 << 40..1 << 40, drift in -200i64..200, run_ns in 1i64 << 30..1 << 40,
            share in 0.0..1.0f64,
        ) {
            let theirs = |own: i64| own + offset + (own as f64 * drift as f64 / 1e6).round() as i64;
            let at = |own: i64| Offset {
                offset_ns: theirs(own) - own, round_trip_ns: 0, at_ns: own,
            };
            let clock = Drifting { before: at(0), after: at(run_ns) };
            let when = (run_ns as f64 * share) as i64;
            prop_assert!((clock.to_first(theirs(when)) - when).abs() <= 2);
            if drift != 0 {
                let found = clock.drift_per_million().unwrap();
                prop_assert!((found - drift as f64).abs() < 0.1, "{found} of {drift}");
            }
        }
    }
}
