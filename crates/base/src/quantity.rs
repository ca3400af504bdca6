//! Sizes, rates and times as typed by the user.
//!
//! The suffixes are those of dd: `k M G T P` are powers of 1024, `kB MB GB TB PB` powers of 1000;
//! `KiB MiB ...` are understood too. A number with a suffix may have decimals: `1.5G`.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

/// A number of things, at least one.
///
/// # Errors
/// A text for the user who typed it.
pub fn one_or_more<N: FromStr<Err = ParseIntError>>(text: &str) -> Result<N, &'static str> {
    text.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::Zero => "must be at least 1",
        IntErrorKind::PosOverflow => "number too large",
        _ => "must be a whole number, at least 1",
    })
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// A number of bytes per second; `/s` may be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub u64);

/// A span of time in seconds: `500ms`, `30s`, `10m`, `2h`. The unit is required: a user who types 8
/// for eight hours would get seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span(pub f64);

/// Units of a time in seconds; a name that is the end of another comes after it.
const TIMES: [(&str, f64); 6] =
    [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// A time as typed, in seconds; 0 needs no unit.
///
/// # Errors
/// A text for the user who typed it.
pub fn seconds(text: &str) -> Result<f64, String> {
    let number = |text: &str| {
        let plain = text.starts_with(|first: char| first.is_ascii_digit() || first == '.');
        text.parse::<f64>().ok().filter(|number| plain && number.is_finite())
    };
    match TIMES.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor))) {
        Some((typed, factor)) => number(typed).map(|number| number * factor),
        None if text == "0" => Some(0.0),
        None if number(text).is_some() => {
            return Err(format!("a time needs its unit: {text}s, {text}m or {text}h"));
        }
        None => None,
    }
    .ok_or_else(|| {
        "a time is a number with its unit: us, ms, s, m or h, for example 10m".to_owned()
    })
}

/// Why a text is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text does not start with a digit.
    #[error("a size starts with a number, for example 512k or 64M")]
    NoNumber,
    /// The suffix after the digits is unknown.
    #[error("unknown suffix {suffix:?}; use k M G T P (1024) or kB MB GB TB PB (1000)")]
    UnknownSuffix { suffix: String },
    /// More than 2^64 - 1 bytes.
    #[error("size too large")]
    TooLarge,
    /// Zero bytes: nothing would ever be moved.
    #[error("must be more than zero")]
    Zero,
}

impl FromStr for Size {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Size, QuantityError> {
        let (number, rest) = digits(text);
        if number.is_empty() {
            return Err(QuantityError::NoNumber);
        }
        let (decimals, suffix) = match rest.strip_prefix('.').map(digits) {
            Some((decimals, suffix)) if !decimals.is_empty() => (decimals, suffix),
            _ => ("", rest),
        };
        let number: u64 = number.parse().map_err(|_| QuantityError::TooLarge)?;
        let factor = factor(suffix)
            .filter(|&factor| factor > 1 || decimals.is_empty())
            .ok_or_else(|| QuantityError::UnknownSuffix { suffix: rest.to_owned() })?;
        let whole = number.checked_mul(factor).ok_or(QuantityError::TooLarge)?;
        let bytes = whole.checked_add(part(decimals, factor)).ok_or(QuantityError::TooLarge)?;
        if bytes == 0 { Err(QuantityError::Zero) } else { Ok(Size(bytes)) }
    }
}

impl FromStr for Rate {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Rate, QuantityError> {
        let size: Size = text.strip_suffix("/s").unwrap_or(text).parse()?;
        Ok(Rate(size.0))
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        match seconds(text)? {
            none if none <= 0.0 => Err("must be a time above 0, for example 10m".to_owned()),
            some => Ok(Span(some)),
        }
    }
}

impl Size {
    /// The size as `usize`, which has the same range on 64-bit Linux.
    pub fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// A size, or 0.
///
/// # Errors
/// When the text is neither.
pub fn bytes_or_zero(text: &str) -> Result<u64, QuantityError> {
    if text == "0" { Ok(0) } else { text.parse::<Size>().map(|size| size.0) }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// The decimals times the factor, in whole bytes. Digits after the 15th add about a byte at most,
/// even with the largest factor.
fn part(decimals: &str, factor: u64) -> u64 {
    let known = &decimals[..decimals.len().min(15)];
    let numerator: u128 = known.parse().unwrap_or(0);
    let share =
        numerator * u128::from(factor) / 10u128.pow(u32::try_from(known.len()).unwrap_or(15));
    // The share is less than the factor, so it fits.
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn factor(suffix: &str) -> Option<u64> {
    const LETTERS: &str = "KMGTP";
    if matches!(suffix, "" | "B") {
        return Some(1);
    }
    let letter = suffix.chars().next()?.to_ascii_uppercase();
    let power = u32::try_from(LETTERS.find(letter)?).ok()? + 1;
    match &suffix[1..] {
        "" | "iB" => Some(1024u64.pow(power)),
        "B" => Some(1000u64.pow(power)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: Result<u64, QuantityError>) {
        assert_eq!(text.parse().map(|size: Size| size.0), expected, "{text}");
    }

    #[test]
    fn suffixes_are_those_of_dd() {
        check("512", Ok(512));
        check("512k", Ok(512 << 10));
        check("1M", Ok(1 << 20));
        check("1MB", Ok(1_000_000));
        check("2MiB", Ok(2 << 20));
        check("3kB", Ok(3000));
        check("1.5k", Ok(1536));
        check("68.6MB", Ok(68_600_000));
        check("0.25MiB", Ok(1 << 18));
        check("0.0001k", Err(QuantityError::Zero));
        check("1.12345678901234567890123456789P", Ok(1_264_899_894_090_712));
        check("1.5", Err(QuantityError::UnknownSuffix { suffix: ".5".to_owned() }));
        check("1.k", Err(QuantityError::UnknownSuffix { suffix: ".k".to_owned() }));
        check("1.5x", Err(QuantityError::UnknownSuffix { suffix: ".5x".to_owned() }));
        check(".5k", Err(QuantityError::NoNumber));
        check("", Err(QuantityError::NoNumber));
        check("k", Err(QuantityError::NoNumber));
        check("-1", Err(QuantityError::NoNumber));
        check("0k", Err(QuantityError::Zero));
        check("1 M", Err(QuantityError::UnknownSuffix { suffix: " M".to_owned() }));
        check("1Mb", Err(QuantityError::UnknownSuffix { suffix: "Mb".to_owned() }));
        check("1ß", Err(QuantityError::UnknownSuffix { suffix: "ß".to_owned() }));
        check("99999999999999999999", Err(QuantityError::TooLarge));
        check("20000P", Err(QuantityError::TooLarge));
        assert_eq!("50MB/s".parse(), Ok(Rate(50_000_000)));
    }

    #[test]
    fn spans_of_time_as_typed() {
        assert_eq!(
            ["90s", "1.5m", "2h", "500ms", "0.5s"].map(|text| text.parse::<Span>().unwrap().0),
            [90.0, 90.0, 7200.0, 0.5, 0.5]
        );
        for wrong in ["", "m", "-3s", "0", "0h", "nan", "nans", "infs", "1d", "ms", "-1ms", "s"] {
            assert!(wrong.parse::<Span>().is_err(), "{wrong}");
        }
        for bare in ["8", "0.5", "20"] {
            let error = bare.parse::<Span>().unwrap_err();
            assert!(error.contains(&format!("needs its unit: {bare}s, {bare}m or")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_size_is_its_number_times_its_suffix(
            number in 1u64..1_000_000,
            (suffix, factor) in prop_oneof![
                Just(("", 1u64)), Just(("k", 1 << 10)), Just(("K", 1 << 10)), Just(("M", 1 << 20)),
                Just(("G", 1 << 30)), Just(("T", 1 << 40)), Just(("kB", 1000)),
                Just(("MB", 1_000_000)), Just(("GB", 1_000_000_000)),
            ],
        ) {
            let size: Size = format!("{number}{suffix}").parse().unwrap();
            prop_assert_eq!(size.0, number * factor);
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = text.parse::<Rate>();
        }
    }
}
