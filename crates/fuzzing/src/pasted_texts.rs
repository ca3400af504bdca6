//! Any bytes as a text that somebody pasted. Every line is read, refused with its number, or passed
//! over, and what follows from them has words and finite numbers.

use given::conclude::conclude;
use given::read::read;

/// Checks one input.
pub fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    let found = read(&text);
    let mut before = 0;
    for piece in &found.pieces {
        let (first, last) = piece.lines;
        assert!(before < first && first <= last && last <= lines, "{piece:?}");
        before = last;
    }
    assert!(found.refused.iter().all(|it| (1..=lines).contains(&it.line) && !it.why.is_empty()));
    for shown in conclude(&found.pieces).conclusions {
        let (first, last) = shown.lines;
        assert!(1 <= first && first <= last && last <= lines, "{shown:?}");
        assert!(!shown.finding.what.is_empty());
        assert!(shown.finding.numbers.iter().all(|number| number.value.is_finite()), "{shown:?}");
    }
}
