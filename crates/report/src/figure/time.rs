//! An axis of time of day: marks at round times in UTC, few enough that they do not touch.

use base::calendar::time_text;

/// Steps between two marks, in seconds.
const STEPS: [i64; 19] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    604_800,
];
/// Most marks.
const MARKS_MAX: f64 = 7.0;
const DAY: i64 = 86_400;

/// Marks for a time that starts at `began` (seconds since 1970): seconds after the start, and the
/// label. The label has the day if there are several days.
pub(super) fn marks(began: i64, seconds: f64) -> Vec<(f64, String)> {
    let seconds = if seconds.is_finite() { seconds.clamp(0.0, 1e10) } else { 0.0 };
    let fits = |step: &&i64| seconds / **step as f64 <= MARKS_MAX;
    let weeks = (seconds / MARKS_MAX / 604_800.0).ceil().max(1.0) as i64 * 604_800;
    let step = STEPS.iter().find(fits).copied().unwrap_or(weeks);
    let last = began.saturating_add(seconds as i64);
    let first = began.saturating_add((step - began.rem_euclid(step)) % step);
    let has_days = began.div_euclid(DAY) != last.div_euclid(DAY);
    let mut marks = Vec::new();
    let mut at = first;
    while at <= last && marks.len() <= MARKS_MAX as usize {
        marks.push((at.saturating_sub(began) as f64, label(at, step, has_days)));
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    marks
}

fn label(at: i64, step: i64, has_days: bool) -> String {
    let text = time_text(at);
    let (Some(day), Some(hour), Some(whole)) = (text.get(5..10), text.get(11..16), text.get(11..))
    else {
        return text;
    };
    match (step, has_days) {
        (DAY.., _) => day.to_owned(),
        (..60, _) => whole.to_owned(),
        (_, true) if at % DAY == 0 => day.to_owned(),
        _ => hour.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-20 08:33:01.
    const BEGAN: i64 = 1_795_163_581;

    #[test]
    fn marks_stand_at_round_times() {
        let check = |seconds: f64, expected: &[&str]| {
            let marks = marks(BEGAN, seconds);
            let labels: Vec<&str> = marks.iter().map(|(_, label)| label.as_str()).collect();
            assert_eq!(labels, expected, "{seconds} s");
            assert!(marks.iter().all(|(at, _)| (0.0..=seconds).contains(at)), "{marks:?}");
        };
        check(2.0, &["08:33:01", "08:33:02", "08:33:03"]);
        check(50.0, &["08:33:10", "08:33:20", "08:33:30", "08:33:40", "08:33:50"]);
        check(3600.0, &["08:40", "08:50", "09:00", "09:10", "09:20", "09:30"]);
        check(86_400.0, &["12:00", "18:00", "11-21", "06:00"]);
        check(5.0 * 86_400.0, &["11-21", "11-22", "11-23", "11-24", "11-25"]);
        check(0.0, &["08:33:01"]);
    }

    #[test]
    fn whatever_a_record_claims_there_are_few_marks() {
        for (began, seconds) in [(i64::MAX, 1e300), (i64::MIN, 5.0), (0, f64::NAN), (-1, 3e9)] {
            assert!(marks(began, seconds).len() <= 8);
        }
    }
}
