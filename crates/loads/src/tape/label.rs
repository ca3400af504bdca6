//! The label in front of the test area: what follows may be written over.
//!
//! It lets an interrupted experiment go on without being told again that the medium may be written
//! to, tells a medium from the one that somebody put in its place, and says to whoever finds the
//! medium what it is: the block begins with plain text.

use device::tape::test_area::FIRST_LINE;

use statistics::random::Random;

/// Bytes of the label's block, and of the largest that is looked at.
pub const LABEL_BYTES: usize = 1024;

/// A label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Tells the medium, or the test area on it, from others.
    pub id: u64,
    /// The user's name for the medium; empty where there is none.
    pub medium: String,
}

impl Label {
    /// One with an id of its own.
    pub fn new(medium: Option<&str>) -> Label {
        let clock = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let seed = clock.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(clock.tv_nsec);
        let id = Random::new(seed as u64 ^ u64::from(std::process::id()) << 40).bits();
        // A name is a word in a line of text.
        let plain = |letter: &char| !letter.is_control();
        let medium = medium.unwrap_or_default().chars().filter(plain).take(100).collect();
        Label { id, medium }
    }

    /// As a block.
    pub fn to_block(&self) -> Vec<u8> {
        let text = format!("{FIRST_LINE}\nid {:016x}\nmedium {}\n", self.id, self.medium);
        let mut block = text.into_bytes();
        block.resize(LABEL_BYTES, 0);
        block
    }

    /// From the first block of a medium; `None` of any other block.
    pub fn parse(block: &[u8]) -> Option<Label> {
        let end = block.iter().position(|&byte| byte == 0)?;
        let text =
            std::str::from_utf8(&block[..end]).ok().filter(|_| block.len() == LABEL_BYTES)?;
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) {
            return None;
        }
        let id = u64::from_str_radix(lines.next()?.strip_prefix("id ")?, 16).ok()?;
        let medium = lines.next()?.strip_prefix("medium ")?.to_owned();
        Some(Label { id, medium })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_label_comes_back(medium in "\\PC{0,120}") {
            let label = Label::new(Some(&medium));
            let block = label.to_block();
            prop_assert_eq!(block.len(), LABEL_BYTES);
            prop_assert_eq!(Label::parse(&block), Some(label));
        }

        #[test]
        fn anything_else_is_none(
            at in 0usize..LABEL_BYTES, byte in any::<u8>(), cut in 0usize..LABEL_BYTES,
        ) {
            let label = Label { id: 7, medium: "LTO-4".into() };
            let mut block = label.to_block();
            prop_assert_eq!(Label::parse(&block[..cut]), None);
            block[at] = byte;
            let found = Label::parse(&block);
            if at < FIRST_LINE.len() && byte != FIRST_LINE.as_bytes()[at] {
                prop_assert_eq!(found, None);
            }
        }
    }
}
