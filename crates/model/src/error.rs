//! What the models cannot do.

/// What a model cannot do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A read goes beyond the recorded data.
    #[error("end of data: the medium holds nothing after byte {position_bytes}")]
    EndOfData {
        /// Native bytes from the beginning.
        position_bytes: u64,
    },
    /// A medium that a drive does not accept.
    #[error("an {drive} drive does not take {medium} media: it writes {writes}{reads}")]
    MediumRefused {
        /// Generation of the drive.
        drive: &'static str,
        /// Generation of the medium.
        medium: &'static str,
        /// The generations that the drive writes.
        writes: String,
        /// The generations that the drive only reads, with the words before them.
        reads: String,
    },
    /// The pipeline is in a state in which no program can continue.
    #[error("the pipeline is stuck after {at_ns} ns: every program waits for another")]
    Stuck {
        /// When.
        at_ns: u64,
    },
    /// No bytes, no rate, no drive or no block.
    #[error("{what} is zero")]
    Zero {
        /// The value that is zero.
        what: &'static str,
    },
    /// The medium holds less than one ring.
    #[error("more than {most} volumes")]
    TooManyVolumes {
        /// The limit.
        most: u64,
    },
}
