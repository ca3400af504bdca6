//! The runs of many hosts as one.
//!
//! The headline is the window in which all were active: from the last start to the first end. What
//! each moved within it comes from its bytes over time. Outside of it some hosts had the storage to
//! themselves, so the rate from the first start to the last end mixes two states, and the rate when
//! the first was done counts work that others had not finished; both stand beside the headline.
//! Latencies are summed bucket by bucket; no percentile is ever averaged.

use experiment::record::{HostPart, RunRecord, Value};
use statistics::bytes_over_time::Series;
use statistics::histogram::Histogram;

/// What one rank measured, in the time of rank 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub rank: usize,
    pub host: String,
    /// When its measured part began, by the clock of rank 0.
    pub begun_ns: i64,
    /// When it ended.
    pub ended_ns: i64,
    pub record: RunRecord,
}

/// A stretch of time by the clock of rank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from_ns: i64,
    pub to_ns: i64,
}

impl Window {
    /// Its length.
    pub fn seconds(self) -> f64 {
        (self.to_ns - self.from_ns).max(0) as f64 / 1e9
    }
}

/// A window that is a smaller share of the time from the first start to the last end is noted.
const WINDOW_SHARE_NOTED: f64 = 0.5;
/// Doubt of the clocks, as a share of the window, from which on it is noted.
const DOUBT_SHARE_NOTED: f64 = 0.01;

/// From the last start to the first end; `None` if there was no moment at which all were active.
pub fn all_active(parts: &[Part]) -> Option<Window> {
    let from_ns = parts.iter().map(|part| part.begun_ns).max()?;
    let to_ns = parts.iter().map(|part| part.ended_ns).min()?;
    (to_ns > from_ns).then_some(Window { from_ns, to_ns })
}

/// From the first start to the last end.
fn whole(parts: &[Part]) -> Option<Window> {
    let from_ns = parts.iter().map(|part| part.begun_ns).min()?;
    let to_ns = parts.iter().map(|part| part.ended_ns).max()?;
    Some(Window { from_ns, to_ns })
}

/// Bytes that a rank moved within a window. Within a step of its series they are taken to be even,
/// and over the whole run where it has none.
pub fn bytes_within(part: &Part, window: Window) -> f64 {
    let run = Window { from_ns: part.begun_ns, to_ns: part.ended_ns };
    let Some(series) = &part.record.series else {
        return part.record.bytes as f64 * share_within(run, window);
    };
    let step_ns = (series.step_seconds * 1e9).round() as i64;
    let step = |(index, bytes): (usize, &u64)| {
        let from_ns = part.begun_ns + step_ns * index as i64;
        // The last step ends with the run.
        let to_ns = (from_ns + step_ns).min(part.ended_ns.max(from_ns + 1));
        *bytes as f64 * share_within(Window { from_ns, to_ns }, window)
    };
    series.bytes.iter().enumerate().map(step).sum()
}

/// Which share of a stretch lies within a window.
fn share_within(stretch: Window, window: Window) -> f64 {
    let from_ns = stretch.from_ns.max(window.from_ns);
    let to_ns = stretch.to_ns.min(window.to_ns);
    let length = (stretch.to_ns - stretch.from_ns).max(1) as f64;
    ((to_ns - from_ns) as f64 / length).clamp(0.0, 1.0)
}

/// The runs of all ranks as one run. `agreed_ns` is the instant at which all were to begin, and
/// `doubt_ns` how well the clocks are known.
pub fn merged(
    parts: &[Part],
    latency: Option<Histogram>,
    agreed_ns: i64,
    doubt_ns: i64,
) -> RunRecord {
    let Some(all) = whole(parts) else { return RunRecord::default() };
    let window = all_active(parts);
    let value = parts.first().map_or(Value::Rate, |part| part.record.value);
    let used = window.unwrap_or(all);
    let (bytes, seconds) = match value {
        Value::Rate => {
            (parts.iter().map(|part| bytes_within(part, used)).sum::<f64>(), used.seconds())
        }
        // All have to be done.
        Value::Time => (0.0, all.seconds()),
    };
    let mut run = RunRecord {
        bytes: bytes.round() as u64,
        seconds,
        value,
        series: together(parts, all),
        latency: latency.filter(|latency| latency.count() > 0),
        hosts: parts.iter().map(|part| host_part(part, all, window)).collect(),
        environment: parts.first().map(|part| part.record.environment.clone()).unwrap_or_default(),
        notes: notes(parts, window, all, doubt_ns),
        ..RunRecord::default()
    };
    let total: u64 = parts.iter().map(|part| part.record.bytes).sum();
    let mut put = |name: &str, value: f64| run.measures.insert(name.to_owned(), value);
    put("hosts_window_seconds", window.map_or(0.0, Window::seconds));
    put("hosts_whole_seconds", all.seconds());
    put(
        "hosts_start_skew_seconds",
        (parts.iter().map(|part| part.begun_ns).max().unwrap_or(0) - agreed_ns) as f64 / 1e9,
    );
    put("hosts_clock_doubt_seconds", doubt_ns as f64 / 1e9);
    if value == Value::Rate && all.seconds() > 0.0 {
        put("hosts_whole_bytes_per_second", total as f64 / all.seconds());
        let first = Window {
            from_ns: all.from_ns,
            to_ns: parts.iter().map(|part| part.ended_ns).min().unwrap_or(all.to_ns),
        };
        let by_then: f64 = parts.iter().map(|part| bytes_within(part, first)).sum();
        if first.seconds() > 0.0 {
            put("hosts_first_done_bytes_per_second", by_then / first.seconds());
        }
    }
    run
}

fn host_part(part: &Part, all: Window, window: Option<Window>) -> HostPart {
    let window = window.filter(|window| window.seconds() > 0.0);
    let rate = |window: Window| bytes_within(part, window) / window.seconds();
    HostPart {
        host: part.host.clone(),
        rank: part.rank as u64,
        started_after_seconds: (part.begun_ns - all.from_ns) as f64 / 1e9,
        seconds: (part.ended_ns - part.begun_ns) as f64 / 1e9,
        bytes: part.record.bytes,
        window_bytes_per_second: window.filter(|_| part.record.value == Value::Rate).map(rate),
        stages: part.record.stages.clone(),
    }
}

fn notes(parts: &[Part], window: Option<Window>, all: Window, doubt_ns: i64) -> Vec<String> {
    let mut notes = Vec::new();
    let share = window.map_or(0.0, Window::seconds) / all.seconds().max(1e-9);
    match window {
        None => notes.push(
            "at no moment were all hosts active: the rate is that from the first start to the last \
             end"
            .to_owned(),
        ),
        Some(_) if share < WINDOW_SHARE_NOTED => notes.push(
            "all hosts were active for less than half of the time from the first start to the last \
             end"
            .to_owned(),
        ),
        Some(window) if doubt_ns as f64 / 1e9 > DOUBT_SHARE_NOTED * window.seconds() => {
            notes.push(
                "the clocks of the hosts are known less well than a hundredth of the window"
                    .to_owned(),
            );
        }
        Some(_) => {}
    }
    for part in parts {
        for note in &part.record.notes {
            let told = format!("{}: {note}", part.host);
            if !notes.contains(&told) {
                notes.push(told);
            }
        }
    }
    notes
}

/// Steps of the common series.
const STEPS: i64 = 256;

/// Bytes of all ranks over time, from the first start.
fn together(parts: &[Part], all: Window) -> Option<Series> {
    if parts.iter().any(|part| part.record.series.is_none()) {
        return None;
    }
    let finest = parts.iter().filter_map(|part| part.record.series.as_ref());
    let longest_ns = finest.map(|series| (series.step_seconds * 1e9) as i64).max()?;
    let step_ns = longest_ns.max((all.to_ns - all.from_ns) / STEPS).max(1);
    let steps = (all.to_ns - all.from_ns + step_ns - 1) / step_ns;
    let step = |index: i64| {
        let from_ns = all.from_ns + index * step_ns;
        let window = Window { from_ns, to_ns: from_ns + step_ns };
        parts.iter().map(|part| bytes_within(part, window)).sum::<f64>().round() as u64
    };
    Some(Series { step_seconds: step_ns as f64 / 1e9, bytes: (0..steps).map(step).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use statistics::bytes_over_time::SeriesRecorder;
    use std::time::{Duration, Instant};

    /// A rank that moved these bytes at these times after its start, in nanoseconds.
    fn rank(begun_ns: i64, ended_ns: i64, samples: &[(u64, u64)]) -> Part {
        let start = Instant::now();
        let mut recorder = SeriesRecorder::new(start);
        for (at_ns, bytes) in samples {
            recorder.add(start + Duration::from_nanos(*at_ns), *bytes);
        }
        let seconds = (ended_ns - begun_ns) as f64 / 1e9;
        let bytes = samples.iter().map(|(_, bytes)| bytes).sum();
        let series = Some(recorder.finish(seconds));
        let record = RunRecord { bytes, seconds, series, ..RunRecord::default() };
        Part { rank: 0, host: "a".to_owned(), begun_ns, ended_ns, record }
    }

    fn samples() -> impl Strategy<Value = (i64, Vec<(u64, u64)>)> {
        let steps = prop::collection::vec((1u64..40_000_000, 1u64..1 << 20), 20..200);
        (0i64..500_000_000, steps).prop_map(|(begun, steps)| {
            let mut at = 0;
            let place = |(step, bytes)| {
                at += step;
                (at, bytes)
            };
            (begun, steps.into_iter().map(place).collect())
        })
    }

    proptest! {
        /// The rate of the window is that of a replay of all samples, to what the two steps at the
        /// ends of the window hold.
        #[test]
        fn the_window_is_that_of_a_replay(ranks in prop::collection::vec(samples(), 1..6)) {
            let parts: Vec<Part> = ranks.iter().map(|(begun, samples)| {
                let end = samples.last().unwrap().0 as i64 + 1;
                rank(*begun, begun + end, samples)
            }).collect();
            let Some(window) = all_active(&parts) else { return Ok(()) };
            let run = merged(&parts, None, parts[0].begun_ns, 0);
            let mut replayed = 0.0;
            let mut doubt = 1.0;
            for (part, (begun, samples)) in parts.iter().zip(&ranks) {
                let series = part.record.series.as_ref().unwrap();
                let step_ns = (series.step_seconds * 1e9) as i64;
                for (at, bytes) in samples {
                    let when = begun + *at as i64;
                    if when >= window.from_ns && when < window.to_ns {
                        replayed += *bytes as f64;
                    }
                    let near = |edge: i64| {
                        (edge - begun).div_euclid(step_ns) == (*at as i64).div_euclid(step_ns)
                    };
                    if near(window.from_ns) || near(window.to_ns) {
                        doubt += *bytes as f64;
                    }
                }
            }
            let wrong = (run.bytes as f64 - replayed).abs();
            prop_assert!(wrong <= doubt, "{} {replayed} {doubt}", run.bytes);
            prop_assert!((run.seconds - window.seconds()).abs() < 1e-9);
            let all: u64 = parts.iter().map(|part| part.record.bytes).sum();
            let series: u64 = run.series.unwrap().bytes.iter().sum();
            prop_assert!(series.abs_diff(all) <= 300, "{series} {all}");
        }
    }

    #[test]
    fn hosts_that_never_ran_together_are_told() {
        let parts =
            [rank(0, 1_000_000_000, &[(0, 100)]), rank(2_000_000_000, 3_000_000_000, &[(0, 50)])];
        let run = merged(&parts, None, 0, 0);
        assert_eq!((run.bytes, run.seconds), (150, 3.0));
        assert!(run.notes[0].contains("at no moment"), "{:?}", run.notes);
        assert_eq!(run.measures["hosts_start_skew_seconds"], 2.0);
    }

    #[test]
    fn the_first_done_and_the_last_end_stand_beside_the_window() {
        let even =
            |to: u64| -> Vec<(u64, u64)> { (0..to).map(|at| (at * 10_000_000, 10)).collect() };
        let parts = [rank(0, 1_000_000_000, &even(100)), rank(0, 2_000_000_000, &even(200))];
        let run = merged(&parts, None, 0, 0);
        assert_eq!(run.seconds, 1.0);
        assert!((run.bytes as f64 - 2000.0).abs() < 30.0, "{}", run.bytes);
        assert_eq!(run.measures["hosts_whole_bytes_per_second"], 1500.0);
        assert_eq!(run.hosts.len(), 2);
    }
}
