//! pax records (`LENGTH KEYWORD=VALUE\n`) as bytes: reading them one by one, writing them, and the
//! number and time formats of their values.
//!
//! Not here: the meaning of keywords. `overrides` applies records to a member, `encode` decides
//! which ones a member needs.

use crate::malformed::Malformed;
use crate::member::Timestamp;

/// Keyword and value of one record.
pub type Record<'a> = (&'a [u8], &'a [u8]);

/// Iterates over the records of an extended header's content; ends after the first error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// Records in `content`, which is the content of an `x` or `g` header without padding.
    #[must_use]
    pub fn new(content: &'a [u8]) -> Self {
        Self { rest: content }
    }

    fn take_record(&mut self) -> Result<Record<'a>, Malformed> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let length = decimal(&self.rest[..digits]).ok_or(Malformed::RecordLength)?;
        if self.rest.get(digits) != Some(&b' ') {
            return Err(Malformed::RecordLength);
        }
        let length = usize::try_from(length).map_err(|_| Malformed::RecordExtent)?;
        if length > self.rest.len() || length < digits + 2 {
            return Err(Malformed::RecordExtent);
        }
        let (record, rest) = self.rest.split_at(length);
        let Some((b'\n', body)) = record[digits + 1..].split_last() else {
            return Err(Malformed::RecordNewline);
        };
        match body.iter().position(|byte| *byte == b'=') {
            None | Some(0) => Err(Malformed::RecordKeyword),
            Some(at) => {
                self.rest = rest;
                Ok((&body[..at], &body[at + 1..]))
            }
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        // Some writers count the padding as content, and no record begins with NULs.
        if self.rest.iter().all(|byte| *byte == 0) {
            return None;
        }
        let record = self.take_record();
        if record.is_err() {
            self.rest = &[];
        }
        Some(record)
    }
}

/// Length of a whole record, including the digits of that length.
pub(crate) fn record_bytes(keyword_bytes: usize, value_bytes: usize) -> usize {
    let rest = keyword_bytes + value_bytes + 3;
    let mut digits = decimal_bytes(rest as u64);
    // One more digit may raise the sum over the next power of ten, but never over two.
    if decimal_bytes((rest + digits) as u64) > digits {
        digits += 1;
    }
    rest + digits
}

/// Appends one record whose value is at hand.
pub(crate) fn push_record(keyword: &[u8], value: &[u8], out: &mut Vec<u8>) {
    push_decimal(record_bytes(keyword.len(), value.len()) as u64, out);
    out.push(b' ');
    out.extend_from_slice(keyword);
    out.push(b'=');
    out.extend_from_slice(value);
    out.push(b'\n');
}

/// How many decimal digits `value` has.
pub(crate) fn decimal_bytes(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// Appends `value` in decimal digits.
pub(crate) fn push_decimal(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Reads only decimal digits; `None` if empty or beyond 64 bits.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, byte| match byte {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// Sign, whole seconds and nanoseconds of a time for its decimal text: the text counts away from
/// zero, while [`Timestamp`] counts upwards from a floor.
fn time_parts(time: Timestamp) -> (bool, u64, u32) {
    if time.seconds >= 0 {
        (false, time.seconds.unsigned_abs(), time.nanoseconds)
    } else if time.nanoseconds == 0 {
        (true, time.seconds.unsigned_abs(), 0)
    } else {
        (true, time.seconds.unsigned_abs() - 1, 1_000_000_000 - time.nanoseconds)
    }
}

/// Digits of the fraction without trailing zeros, and how many there are.
fn fraction(nanoseconds: u32) -> ([u8; 9], usize) {
    let mut digits = [b'0'; 9];
    let mut rest = nanoseconds;
    let mut length = 0;
    for (index, digit) in digits.iter_mut().enumerate().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
        if length == 0 && *digit != b'0' {
            length = index + 1;
        }
    }
    (digits, length)
}

/// Length of what [`push_time`] appends.
pub(crate) fn time_bytes(time: Timestamp) -> usize {
    let (negative, seconds, nanoseconds) = time_parts(time);
    let point = if nanoseconds == 0 { 0 } else { 1 + fraction(nanoseconds).1 };
    usize::from(negative) + decimal_bytes(seconds) + point
}

/// Appends a time in pax form: decimal seconds, and a fraction if there is one.
pub(crate) fn push_time(time: Timestamp, out: &mut Vec<u8>) {
    let (negative, seconds, nanoseconds) = time_parts(time);
    if negative {
        out.push(b'-');
    }
    push_decimal(seconds, out);
    if nanoseconds != 0 {
        let (digits, length) = fraction(nanoseconds);
        out.push(b'.');
        out.extend_from_slice(&digits[..length]);
    }
}

/// Reads a pax time; digits beyond nanoseconds are cut off towards the past.
pub(crate) fn time(text: &[u8]) -> Option<Timestamp> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let seconds = i64::try_from(decimal(&text[..point])?).ok()?;
    let fraction = text.get(point + 1..).unwrap_or_default();
    let mut nanoseconds: u32 = 0;
    let mut beyond = false;
    for (index, byte) in fraction.iter().enumerate() {
        match byte {
            b'0'..=b'9' if index < 9 => nanoseconds = nanoseconds * 10 + u32::from(byte - b'0'),
            b'0' => {}
            b'1'..=b'9' => beyond = true,
            _ => return None,
        }
    }
    nanoseconds *= 10u32.pow(9u32.saturating_sub(fraction.len().min(9) as u32));
    if !negative {
        return Some(Timestamp { seconds, nanoseconds });
    }
    nanoseconds += u32::from(beyond);
    if nanoseconds == 0 {
        return Some(Timestamp { seconds: -seconds, nanoseconds: 0 });
    }
    let seconds = (-seconds).checked_sub(1)?;
    Some(Timestamp { seconds, nanoseconds: 1_000_000_000 - nanoseconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_carry_their_own_length() {
        for value_bytes in 0..1200 {
            let mut out = Vec::new();
            push_record(b"k", &vec![b'v'; value_bytes], &mut out);
            assert_eq!(out.len(), record_bytes(1, value_bytes));
            let records: Vec<_> = Records::new(&out).collect();
            assert_eq!(
                records,
                [Ok((&b"k"[..], &out[out.len() - 1 - value_bytes..out.len() - 1]))]
            );
        }
    }

    #[test]
    fn bad_records_are_named() {
        let check = |content: &[u8], expected| {
            assert_eq!(Records::new(content).last(), Some(Err(expected)), "{content:?}");
        };
        check(b"x", Malformed::RecordLength);
        check(b" a=b\n", Malformed::RecordLength);
        check(b"6a=b\n", Malformed::RecordLength);
        check(b"99999999999999999999999 a=b\n", Malformed::RecordLength);
        check(b"6 a=b\n0 a=b\n", Malformed::RecordExtent);
        check(b"7 a=b\n", Malformed::RecordExtent);
        check(b"2 a=b\n", Malformed::RecordExtent);
        check(b"3 a=b\n", Malformed::RecordNewline);
        check(b"5 a=b\n", Malformed::RecordNewline);
        check(b"6 abc\n", Malformed::RecordKeyword);
        check(b"6 =ab\n", Malformed::RecordKeyword);
        assert_eq!(Records::new(b"6 a=b\n\0\0\0").count(), 1);
    }

    #[test]
    fn times_read_as_posix_writes_them() {
        let check = |text: &str, seconds, nanoseconds| {
            assert_eq!(time(text.as_bytes()), Some(Timestamp { seconds, nanoseconds }), "{text}");
        };
        check("0", 0, 0);
        check("1.5", 1, 500_000_000);
        check("1.", 1, 0);
        check("-1.5", -2, 500_000_000);
        check("-0.25", -1, 750_000_000);
        check("1.1234567899", 1, 123_456_789);
        check("-1.0000000001", -2, 999_999_999);
        for text in ["", "-", ".5", "1e5", "1.x", "--1", "99999999999999999999"] {
            assert_eq!(time(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn times_round_trip(seconds: i64, nanoseconds in 0u32..1_000_000_000) {
            let stamp = Timestamp { seconds, nanoseconds };
            let mut out = Vec::new();
            push_time(stamp, &mut out);
            prop_assert_eq!(out.len(), time_bytes(stamp));
            // The floor of the earliest second has no text that reads back into 64 bits.
            if seconds != i64::MIN {
                prop_assert_eq!(time(&out), Some(stamp));
            }
        }

        #[test]
        fn any_bytes_end(content: Vec<u8>) {
            let records = Records::new(&content).flatten();
            let total: usize = records.map(|(key, value)| key.len() + value.len()).sum();
            prop_assert!(total <= content.len());
        }
    }
}
