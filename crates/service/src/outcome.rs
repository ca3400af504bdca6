//! How a command that did not fail has ended.

use base::finding::Certainty;
use model::tape::generation;
use runs::verdict::RunState;

/// How a command that did not fail has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// All but what was warned about.
    Warned,
    /// All was done, and the data that were checked are bad.
    Bad,
    /// A later version wrote the data; this version read what it knows.
    Later,
}

impl From<RunState> for Outcome {
    fn from(state: RunState) -> Outcome {
        match state {
            RunState::Done | RunState::Empty => Outcome::Done,
            RunState::Doubtful | RunState::Different | RunState::Incomplete => Outcome::Warned,
            RunState::Later => Outcome::Later,
            RunState::Damaged => Outcome::Bad,
        }
    }
}

/// What a finding rests on that takes a number from the table of generations.
pub fn certainty(of: generation::Certainty) -> Certainty {
    match of {
        generation::Certainty::Maker | generation::Certainty::Reported => Certainty::Told,
        generation::Certainty::Assumed => Certainty::Assumed,
    }
}
