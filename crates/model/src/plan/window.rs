//! What a backup needs to end within a time window: how fast a source, and how many drives.

use super::{Setup, plan};
use crate::ModelError;
use crate::whole;

/// Sufficient values, with everything else as requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// A sufficient source rate of content, in bytes per second; one per cent less is not
    /// sufficient. `None` if no source is fast enough.
    pub source_bytes_per_second: Option<u64>,
    /// The least number of such drives. `None` if it takes more than [`DRIVES_MAX`], as when the
    /// source is the limit.
    pub drives: Option<u64>,
}

/// Most drives that are tried.
pub const DRIVES_MAX: u64 = 64;
/// No source is faster.
const SOURCE_MAX: u64 = 1_000_000_000_000;
/// Accuracy of the least rate.
const NEAR: f64 = 1.01;

/// What is needed to end within this many seconds; `source_most` is the most that the host reads
/// from a source, if known.
///
/// # Errors
/// As [`plan`].
pub fn needs(setup: &Setup, seconds: f64, source_most: Option<u64>) -> Result<Needs, ModelError> {
    let with_rate = |bytes_per_second: u64| {
        let mut setup = setup.clone();
        setup.source.bytes_per_second = bytes_per_second;
        Ok(plan(&setup)?.seconds <= seconds)
    };
    let with_drives = |drives: &u64| {
        plan(&Setup { drives: *drives, ..setup.clone() }).is_ok_and(|plan| plan.seconds <= seconds)
    };
    plan(setup)?;
    Ok(Needs {
        source_bytes_per_second: least(1, source_most.unwrap_or(SOURCE_MAX), with_rate)?,
        drives: (1..=DRIVES_MAX).find(with_drives),
    })
}

/// Bisects between a rate that is too low and one that is sufficient.
fn least(
    too_low: u64,
    most: u64,
    is_enough: impl Fn(u64) -> Result<bool, ModelError>,
) -> Result<Option<u64>, ModelError> {
    if !is_enough(most)? {
        return Ok(None);
    }
    let (mut low, mut high) = (too_low, most);
    while high as f64 > low as f64 * NEAR {
        let between = whole((low as f64 * high as f64).sqrt()).clamp(low + 1, high);
        if between == high {
            break;
        }
        if is_enough(between)? { high = between } else { low = between }
    }
    // The rate must still be sufficient after rounding to the three digits that are printed.
    let told = in_three_digits(high).min(most);
    Ok(Some(if is_enough(told)? { told } else { high }))
}

/// Rounded up.
fn in_three_digits(number: u64) -> u64 {
    let unit = 10u64.pow(number.max(1).ilog10().saturating_sub(2));
    number.div_ceil(unit).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Compression, Drain, PlanSource, Refill};
    use crate::tape::generation::Generation;
    use crate::tape::parameters::TapeParameters;

    const TERABYTE: u64 = 1_000_000_000_000;

    fn setup(source_rate: u64, size_bytes: u64) -> Setup {
        let generation = Generation::all().iter().find(|one| one.name == "LTO-8").unwrap();
        Setup {
            drive: TapeParameters::of(generation),
            drives: 1,
            source: PlanSource { size_bytes, files: 0, bytes_per_second: source_rate, file_ns: 0 },
            compression: Compression::None,
            ring_bytes: 1 << 30,
            start_fill_percent: 95,
            refill: Refill::WhenSlow,
            drain: Drain::Unlimited,
            block_bytes: 1 << 20,
            change_ns: 60_000_000_000,
        }
    }

    fn seconds(setup: &Setup) -> f64 {
        plan(setup).unwrap().seconds
    }

    #[test]
    fn what_is_needed_is_enough_and_less_is_not() {
        let asked = setup(60_000_000, 2 * TERABYTE);
        let window = 8.0 * 3600.0;
        let rate = needs(&asked, window, None).unwrap().source_bytes_per_second.unwrap();
        // 2 TB in 8 hours are 69.4 MB/s, plus some fixed time.
        assert!((69_400_000..72_000_000).contains(&rate), "{rate}");
        assert!(seconds(&setup(rate, 2 * TERABYTE)) <= window);
        assert!(seconds(&setup((rate as f64 * 0.98) as u64, 2 * TERABYTE)) > window);
        // If the window is large enough, the result is the slowest sufficient rate.
        let rate = needs(&asked, 2.0 * window, None).unwrap().source_bytes_per_second.unwrap();
        assert!((34_700_000..36_000_000).contains(&rate), "{rate}");
    }

    #[test]
    fn drives_are_needed_where_they_are_the_limit() {
        // 10 TB in 4 hours are 694 MB/s: two drives of 360 MB/s are needed, and with one drive no
        // source is sufficient.
        let found = needs(&setup(1_000_000_000, 10 * TERABYTE), 4.0 * 3600.0, None).unwrap();
        assert_eq!(found, Needs { source_bytes_per_second: None, drives: Some(2) });
        // With a source of half that rate, no number of drives is sufficient.
        let found = needs(&setup(300_000_000, 10 * TERABYTE), 4.0 * 3600.0, None).unwrap();
        assert_eq!(found.drives, None);
        // No source is faster than the host that reads it.
        let slow_host = Some(65_000_000);
        let asked = setup(60_000_000, 2 * TERABYTE);
        let found = needs(&asked, 8.0 * 3600.0, slow_host).unwrap();
        assert_eq!(found.source_bytes_per_second, None);
    }
}
