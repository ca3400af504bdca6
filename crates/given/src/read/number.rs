//! Numbers as programs print them, in any locale.

/// No program counts further, or in smaller parts: what is made of such numbers stays finite.
pub(super) fn is_usual(number: f64) -> bool {
    number == 0.0 || (1e-9..1e18).contains(&number)
}

/// A number with a decimal point or comma. Groups of thousands are none of these programs' habits,
/// so a number with two separators is refused.
pub(super) fn decimal(text: &str) -> Option<f64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','));
    let separators = text.bytes().filter(|byte| !byte.is_ascii_digit()).count();
    let has_digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let number: Option<f64> = (is_number && has_digits && separators <= 1)
        .then(|| text.replace(',', ".").parse().ok())?;
    number.filter(|number| is_usual(*number))
}

/// The number in front of a text, and what is behind it.
pub(super) fn leading(text: &str) -> Option<(f64, &str)> {
    let end =
        text.bytes().take_while(|it| it.is_ascii_digit() || matches!(it, b'.' | b',')).count();
    // A comma behind a number belongs to the sentence.
    let number = text[..end].trim_end_matches(['.', ',']);
    Some((decimal(number)?, &text[number.len()..]))
}

/// Seconds of `4:02.18`, `1:02:03` or `5m9.125s`.
pub(super) fn clock(text: &str) -> Option<f64> {
    if let Some((minutes, seconds)) = text.split_once('m') {
        return Some(decimal(minutes)? * 60.0 + decimal(seconds.strip_suffix('s')?)?);
    }
    let parts: Vec<&str> = text.split(':').collect();
    let (last, whole) = parts.split_last()?;
    let mut total = 0.0;
    for part in whole {
        // Only seconds have decimals: `1.02:03:04` is a day and two hours.
        let number = part.parse::<u32>().ok()?;
        total = (total + f64::from(number)) * 60.0;
    }
    (2..=3).contains(&parts.len()).then_some(total + decimal(last)?)
}

/// Factor of a unit of size in powers of 1000, and in powers of 1024. fio and iostat mean 1024 by
/// `k` and `KiB`.
pub(super) fn unit(text: &str) -> Option<(f64, f64)> {
    let power = match text.trim_end_matches('B').trim_end_matches('i') {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        _ => return None,
    };
    Some((1e3_f64.powi(power), 1024_f64.powi(power)))
}

/// A whole number with groups of thousands, or without: `198,836,224`, `198.836.224`.
pub(super) fn grouped(text: &str) -> Option<u64> {
    let mut groups = text.split([',', '.']);
    let first = groups.next()?;
    let is_digits = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let has_groups = text.len() > first.len();
    let is_whole = is_digits(first)
        && (!has_groups || first.len() <= 3)
        && groups.all(|it| it.len() == 3 && is_digits(it));
    is_whole.then(|| text.replace([',', '.'], "").parse().ok())?
}
