//! A glob of names, compared with millions of them.
//!
//! SQLite's own GLOB never matches bytes that are no text. A glob whose only special character is
//! `*` is compared piece by piece. Any other is an expression, which takes much longer, so a name
//! is first looked through for the longest piece of it that stands for itself. That piece also
//! tells which names need not be looked at one by one.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use globset::{GlobBuilder, GlobMatcher};
use memchr::memmem::{Finder, find};

/// A glob of names.
pub(super) enum NamePattern {
    /// What stands between stars, at least two pieces.
    Pieces(Vec<Vec<u8>>),
    Expression {
        /// Every name that matches has it somewhere.
        piece: Vec<u8>,
        glob: GlobMatcher,
    },
}

impl NamePattern {
    /// # Errors
    /// When it is no glob.
    pub(super) fn new(glob: &str) -> Result<NamePattern, globset::Error> {
        let pieces: Vec<Vec<u8>> = glob.split('*').map(|piece| piece.as_bytes().to_vec()).collect();
        if pieces.len() > 1 && !glob.contains(['?', '[', ']', '{', '}', '\\']) {
            return Ok(NamePattern::Pieces(pieces));
        }
        // A set of globs would be faster, and does not match `..` by `[!a]*.`.
        let compiled = GlobBuilder::new(glob).build()?.compile_matcher();
        Ok(NamePattern::Expression { piece: longest_piece(glob), glob: compiled })
    }

    /// Finds the longest piece that every name has which matches, in many names at once.
    pub(super) fn finder(&self) -> Finder<'_> {
        Finder::new(match self {
            NamePattern::Pieces(pieces) => {
                pieces.iter().max_by_key(|piece| piece.len()).map_or(&b""[..], |piece| piece)
            }
            NamePattern::Expression { piece, .. } => piece,
        })
    }

    /// Whether a name matches.
    pub(super) fn matches(&self, name: &[u8]) -> bool {
        match self {
            NamePattern::Pieces(pieces) => has_pieces(name, pieces),
            NamePattern::Expression { piece, glob } => {
                find(name, piece).is_some() && glob.is_match(OsStr::from_bytes(name))
            }
        }
    }
}

/// Whether a name begins with the first piece, ends with the last and has the others in between, in
/// their order.
fn has_pieces(name: &[u8], pieces: &[Vec<u8>]) -> bool {
    let [first, between @ .., last] = pieces else { return false };
    // Most names differ in one of these bytes, and a call takes longer than that.
    let is_likely = (first.is_empty() || name.first() == first.first())
        && (last.is_empty() || name.last() == last.last());
    if !is_likely {
        return false;
    }
    let Some(rest) = name.strip_prefix(&first[..]) else { return false };
    let Some(mut rest) = rest.strip_suffix(&last[..]) else { return false };
    for piece in between {
        let Some(at) = find(rest, piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    true
}

/// The longest piece of a glob that every match has: outside of brackets and braces, and without
/// characters that stand for others.
fn longest_piece(glob: &str) -> Vec<u8> {
    // An escaped or bracketed character may be any of these.
    if glob.contains('\\') {
        return Vec::new();
    }
    let mut depth = 0_usize;
    // Bytes of a class so far, without its `!` or `^`; its end stands for itself at its begin.
    let mut class: Option<usize> = None;
    let (mut longest, mut piece) = (Vec::new(), Vec::new());
    for byte in glob.bytes().chain(std::iter::once(b'*')) {
        let is_literal = depth == 0 && class.is_none() && !b"*?[]{}".contains(&byte);
        if is_literal {
            piece.push(byte);
            continue;
        }
        if piece.len() > longest.len() {
            longest = std::mem::take(&mut piece);
        }
        piece.clear();
        match (byte, class) {
            (b']', Some(1..)) => class = None,
            (b'!' | b'^', Some(0)) => {}
            (_, Some(bytes)) => class = Some(bytes + 1),
            (b'[', None) => class = Some(0),
            (b'{', None) => depth += 1,
            (b'}', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use globset::GlobBuilder;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

        /// The short ways say what the expression says.
        #[test]
        fn a_pattern_matches_what_its_glob_does(
            glob in r"([ab.*?]|\[ab\]|\[!a\]|\{a,b\.\}|\*\.|\[\]a\]|\[!\]b\]|\\\*){1,6}",
            name in "[ab.]{1,8}",
        ) {
            let Ok(expected) = GlobBuilder::new(&glob).build() else { return Ok(()) };
            let expected = expected.compile_matcher().is_match(&name);
            let pattern = NamePattern::new(&glob).unwrap();
            prop_assert_eq!(pattern.matches(name.as_bytes()), expected, "{} {}", glob, name);
        }
    }

    #[test]
    fn names_that_are_no_text_match() {
        let pattern = NamePattern::new("*.txt").unwrap();
        assert!(pattern.matches(b"\xff\xfe.txt") && !pattern.matches(b"\xff.txt\xff"));
        assert!(NamePattern::new("[!a]*.txt").unwrap().matches(b"b\xfe.txt"));
    }
}
