//! Which of the threads that wait for a block are woken.

/// Whether threads are woken for a complete block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    FirstConsumer,
    Nobody,
}

/// Which waiting threads of a consumer are woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Nobody,
    One,
    All,
}

/// Whether more blocks will follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    More,
    Nothing,
}

impl Call {
    /// For `waiting` threads when this many blocks arrived. After the last blocks all are woken: a
    /// thread that is not woken would notice the end only at its next check for a stop.
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
