//! Patterns of udev rules: `*`, `?`, `[a-c]`, `[!a]` and `|` between alternatives (udev(7)).

/// Whether a text matches a pattern.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    pattern.split('|').any(|one| one_matches(&one.chars().collect::<Vec<char>>(), &text))
}

/// Backtracks to the last `*` only, which is sufficient; the time is at most the product of both
/// lengths.
fn one_matches(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        let step = pattern.get(at).and_then(|it| match it {
            '*' => None,
            '?' => Some(1),
            '[' => class(&pattern[at..], text[read]),
            plain => (*plain == text[read]).then_some(1),
        });
        if let Some(step) = step {
            (at, read) = (at + step, read + 1);
        } else if pattern.get(at) == Some(&'*') {
            star = Some((at, read));
            at += 1;
        } else if let Some((from, covered)) = star {
            (at, read) = (from + 1, covered + 1);
            star = Some((from, covered + 1));
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|it| *it == '*')
}

/// The length of a class in brackets that contains the letter.
fn class(pattern: &[char], letter: char) -> Option<usize> {
    // A closing bracket directly after the opening one is a member.
    let is_negated = matches!(pattern.get(1), Some('!' | '^'));
    let start = if is_negated { 2 } else { 1 };
    let end = start + 1 + pattern.get(start + 1..)?.iter().position(|it| *it == ']')?;
    let members = &pattern[start..end];
    let mut found = members.contains(&letter);
    for range in members.windows(3).filter(|it| it[1] == '-') {
        found |= (range[0]..=range[2]).contains(&letter);
    }
    (found != is_negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns() {
        for (pattern, text) in [
            ("sd[a-z]", "sda"),
            ("sd[a-z]|nvme*n*", "nvme0n1"),
            ("sd*[!0-9]", "sdab"),
            ("?da", "vda"),
            ("*", ""),
            ("dm-*", "dm-12"),
            ("*a*b*", "xaxxbx"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("sd[a-z]", "sda1"), ("sd*[!0-9]", "sda1"), ("", "sda"), ("sd?", "sd"), ("[a", "a")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn no_pattern_panics(pattern in "[a-c*?\\[\\]!|-]{0,12}", text in "[a-c]{0,8}") {
            matches(&pattern, &text);
            prop_assert!(matches("*", &text) && matches(&text, &text));
        }
    }
}
