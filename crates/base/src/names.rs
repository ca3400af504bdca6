//! Suggestions for a mistyped name: the names that exist, and the one that was probably meant.

/// Least similarity of two names, as high as that of `secs` and `seconds`, by the measure of Jaro
/// and Winkler, which gives the first letters the most weight.
const ALIKE: f64 = 0.8;

/// The known name most similar to the one typed, if any is similar enough.
pub fn meant<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace(['-', ' '], "_");
    let typed = plain(typed);
    let alike = |name: &'a str| (strsim::jaro_winkler(&typed, &plain(name)), name);
    let known = known.into_iter().map(alike).filter(|(likeness, _)| *likeness >= ALIKE);
    let best = known.max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, name)| name)
}

/// The end of an error: `there are device and block_bytes; did you mean device?`
pub fn there_are(typed: &str, known: &[&str]) -> String {
    let all = match known {
        [] => return "there is none".to_owned(),
        [one] => format!("there is {one}"),
        [most @ .., last] => format!("there are {} and {last}", most.join(", ")),
    };
    match meant(typed, known.iter().copied()) {
        Some(name) => format!("{all}; did you mean {name}?"),
        None => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nearly_typed_is_what_was_meant() {
        let known = ["zeros", "random", "text:RATIO", "seconds", "bytes", "block_bytes"];
        let check = |typed: &str, expected: Option<&str>| {
            assert_eq!(meant(typed, known), expected, "{typed}");
        };
        check("zeroes", Some("zeros"));
        check("radnom", Some("random"));
        check("secs", Some("seconds"));
        check("Block-Bytes", Some("block_bytes"));
        check("device", None);
        check("srcc", None);
        check("", None);
        assert_eq!(there_are("x", &[]), "there is none");
        assert_eq!(there_are("x", &["depth"]), "there is depth");
        assert_eq!(
            there_are("devcie", &["depth", "device", "data"]),
            "there are depth, device and data; did you mean device?"
        );
    }
}
