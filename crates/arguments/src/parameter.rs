//! `--set NAME=VALUE`: a parameter of a drive as typed.
//!
//! A plain number is in the unit that the name ends with; sizes, rates and times may have a suffix.
//! The drive knows the valid names, so the name is checked when the setting is applied.

use experiment::quantities::Unit;
use service::parameter_setting::{ParameterSetting, SPEEDS};

use crate::quantity::{QuantityError, Rate, Size, seconds};

/// A setting as typed.
///
/// # Errors
/// A text for the user who typed it.
pub fn setting(text: &str) -> Result<ParameterSetting, String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let values = if name == SPEEDS {
        value.split(',').map(|speed| one(name, speed)).collect::<Result<_, _>>()?
    } else {
        vec![one(name, value)?]
    };
    ParameterSetting::new(name, values)
}

fn one(name: &str, text: &str) -> Result<u64, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let told = |error: QuantityError| error.to_string();
    match Unit::of(name) {
        Unit::BytesPerSecond => text.parse::<Rate>().map(|rate| rate.0).map_err(told),
        Unit::Bytes => text.parse::<Size>().map(|size| size.0).map_err(told),
        Unit::Nanoseconds => time_ns(text),
        _ => Err("the value must be a whole number".to_owned()),
    }
}

fn time_ns(text: &str) -> Result<u64, String> {
    let ns = seconds(text)? * 1e9;
    // The model limits times that are too long for any motion; this check avoids an overflow.
    if ns <= 1e18 { Ok(ns.round() as u64) } else { Err("the time is too long".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&[u64]>) {
        let setting = setting(text).ok();
        assert_eq!(setting.map(|setting| setting.values), expected.map(<[u64]>::to_vec), "{text}");
    }

    #[test]
    fn values_are_in_the_unit_of_the_name() {
        check("back_hitch_ns=2500000000", Some(&[2_500_000_000]));
        check("back_hitch_ns=3.5s", Some(&[3_500_000_000]));
        check("command_overhead_ns=200us", Some(&[200_000]));
        check("command_overhead_ns=1e3us", Some(&[1_000_000]));
        check("wrap_turn_ns=10ms", Some(&[10_000_000]));
        check("buffer_bytes=1G", Some(&[1 << 30]));
        check("buffer_bytes=0", Some(&[0]));
        check("host_bytes_per_second=400MB", Some(&[400_000_000]));
        check("host_bytes_per_second=400MB/s", Some(&[400_000_000]));
        check("speeds_bytes_per_second=100MB,200MB", Some(&[100_000_000, 200_000_000]));
        check("wraps=17", Some(&[17]));
        for wrong in ["wraps", "wraps=2k", "wraps=-1", "buffer_bytes=1s", "back_hitch_ns=1M"] {
            check(wrong, None);
        }
        for wrong in ["back_hitch_ns=-1s", "back_hitch_ns=infs", "back_hitch_ns=", "speeds="] {
            check(wrong, None);
        }
        check("speeds_bytes_per_second=100MB,,200MB", None);
    }
}
