//! Who of those that wait for a block is woken.

/// Who is told that a block is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    FirstConsumer,
    Nobody,
}

/// Which of a consumer's threads that wait are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Nobody,
    One,
    All,
}

/// Whether blocks will follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    More,
    Nothing,
}

impl Call {
    /// Where `waiting` threads wait when so many blocks have come. When these were the last ones,
    /// there is nothing more to wait for, and who is not called finds out at its next look for a
    /// stop only.
    pub(super) fn after(waiting: usize, blocks: u64, behind: Behind) -> Call {
        match (waiting, blocks, behind) {
            (0, ..) | (_, 0, _) => Call::Nobody,
            (_, 1, Behind::More) => Call::One,
            _ => Call::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_calls_one_and_the_last_block_calls_all() {
        assert_eq!(Call::after(3, 1, Behind::More), Call::One);
        assert_eq!(Call::after(3, 2, Behind::More), Call::All);
        assert_eq!(Call::after(3, 1, Behind::Nothing), Call::All);
        for (waiting, blocks) in [(0, 1), (3, 0), (0, 5)] {
            assert_eq!(Call::after(waiting, blocks, Behind::More), Call::Nobody);
        }
    }
}
