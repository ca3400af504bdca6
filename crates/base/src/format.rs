//! Numbers as people read them: sizes and rates in powers of 1000, as drive makers print them.
#![cfg_attr(
    not(test),
    expect(
        clippy::cast_possible_truncation,
        reason = "a cast of a floating-point number saturates"
    )
)]

/// Bytes with three digits: `0 B`, `512 B`, `9.12 kB`, `8.59 GB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    // 999.5 would be printed as 1000.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{} {}", digits(value), UNITS[unit]) }
}

/// A size that is set in powers of 1024, exactly: `64 MiB`, `512 KiB`, `1000 bytes`.
pub fn binary_size(bytes: u64) -> String {
    match bytes {
        0 => "0 bytes".to_owned(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        1 => "1 byte".to_owned(),
        _ => format!("{bytes} bytes"),
    }
}

/// Bytes per second in MB/s (10^6): `0.012 MB/s`, `3.40 MB/s`, `210 MB/s`, `1670 MB/s`.
pub fn rate(bytes_per_second: f64) -> String {
    let megabytes = finite(bytes_per_second) / 1e6;
    if megabytes < 0.9995 { format!("{megabytes:.3} MB/s") } else { digits(megabytes) + " MB/s" }
}

/// A span of time: `3 ms`, `1.77 s`, `12.3 s`, `4 min 05 s`, `2 h 05 min`.
pub fn duration(seconds: f64) -> String {
    let seconds = finite(seconds);
    if seconds < 0.9995 {
        return format!("{:.0} ms", seconds * 1e3);
    }
    if seconds < 59.95 {
        return digits(seconds) + " s";
    }
    let whole = seconds.round() as u64;
    if whole < 3600 {
        return format!("{} min {:02} s", whole / 60, whole % 60);
    }
    let minutes = (seconds / 60.0).round() as u64;
    format!("{} h {:02} min", minutes / 60, minutes % 60)
}

/// A time in which nobody counts hours: `90 days` from two days on, else as [`duration`].
pub fn long_time(seconds: f64) -> String {
    const DAY: f64 = 86_400.0;
    if seconds < 2.0 * DAY { duration(seconds) } else { format!("{:.0} days", seconds / DAY) }
}

/// A share from 0 to 1 as `97 %`.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", finite(share) * 100.0)
}

/// A count with thin groups of three digits: `100 000`.
pub fn count(number: u64) -> String {
    let plain = number.to_string();
    let mut grouped = String::with_capacity(plain.len() + plain.len() / 3);
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count with what is counted: `1 file`, `100 000 files`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Three digits, or all of the whole ones.
fn digits(value: f64) -> String {
    match value {
        large if large >= 99.95 => format!("{large:.0}"),
        middle if middle >= 9.995 => format!("{middle:.1}"),
        small => format!("{small:.2}"),
    }
}

fn finite(value: f64) -> f64 {
    if value.is_finite() && value > 0.0 { value.min(1e21) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_as_people_read_them() {
        let sizes = [0, 999, 1000, 9_123, 999_499, 999_500, 8_589_934_592, u64::MAX].map(size);
        let expected =
            ["0 B", "999 B", "1.00 kB", "9.12 kB", "999 kB", "1.00 MB", "8.59 GB", "18.4 EB"];
        assert_eq!(sizes, expected);
        let rates = [0.0, 12_300.0, 3_400_000.0, 99_960_000.0, 1.67e9, f64::NAN].map(rate);
        let expected =
            ["0.000 MB/s", "0.012 MB/s", "3.40 MB/s", "100 MB/s", "1670 MB/s", "0.000 MB/s"];
        assert_eq!(rates, expected);
        let times = [0.0, 0.0034, 1.77, 12.34, 59.96, 245.0, 3599.6, 7500.0].map(duration);
        let expected = [
            "0 ms",
            "3 ms",
            "1.77 s",
            "12.3 s",
            "1 min 00 s",
            "4 min 05 s",
            "1 h 00 min",
            "2 h 05 min",
        ];
        assert_eq!(times, expected);
        assert_eq!([1, 999, 1000, 1_234_567].map(count), ["1", "999", "1 000", "1 234 567"]);
        let files = [0, 1, 2].map(|number| counted(number, "file", "files"));
        assert_eq!(files, ["0 files", "1 file", "2 files"]);
        assert_eq!([0.0, 0.974, 1.0].map(percent), ["0 %", "97 %", "100 %"]);
    }

    proptest! {
        #[test]
        fn every_number_has_a_text(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            for text in [rate(value), duration(value), percent(value), size(bits)] {
                prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{}", text);
                prop_assert!(!text.contains('-'), "{}", text);
            }
        }
    }
}
