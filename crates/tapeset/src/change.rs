//! Asking for another volume. Who is asked (a person, an autoloader) is the caller's.

use archive::label::LABEL_VERSION;

/// Volumes that are asked for before a run gives up, for each change.
pub const CHANGE_ATTEMPTS_MAX: u32 = 10;

/// Puts another volume into a drive. The drive is closed while this is at work.
pub trait VolumeChanger: Send {
    /// Returns when another medium is in the drive, or is said to be: whether it is the right one
    /// is looked at afterwards.
    ///
    /// # Errors
    /// When there will be none.
    fn change(&mut self, request: &VolumeRequest) -> Result<(), ChangeError>;
}

/// Which volume is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeRequest {
    /// The drive, by its name.
    pub device: String,
    /// What it is wanted for.
    pub purpose: VolumePurpose,
    /// Why the one before was not taken, on attempts after the first.
    pub refused: Option<Refused>,
    /// Number of the attempt, from 1 to [`CHANGE_ATTEMPTS_MAX`].
    pub attempt: u32,
}

/// What a volume is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumePurpose {
    /// To write the next volume of a set to it.
    Write {
        /// Id of the set.
        set: [u8; 16],
        /// Number of the volume in the set, from 1.
        volume: u32,
    },
    /// To read a volume of a set.
    Read {
        /// Id of the set.
        set: [u8; 16],
        /// Number of the volume in the set, from 1.
        volume: u32,
        /// Id of the medium, when an index or label has told it.
        medium: Option<[u8; 16]>,
    },
}

/// Why a volume was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The drive is empty.
    #[error("the drive holds no medium")]
    NoMedium,
    /// There is something in the drive, which does not get ready.
    #[error("the drive is not ready")]
    NotReady,
    /// The medium cannot be written to.
    #[error("the medium is write-protected")]
    WriteProtected,
    /// It holds an earlier volume of the set that is being written.
    #[error("the medium holds volume {volume} of this set")]
    SameSet {
        /// Number of that volume.
        volume: u32,
    },
    /// It was tried before, and has no room for any of the set.
    #[error("the medium is full")]
    Full,
    /// It holds something that we did not write.
    #[error("the medium holds data that Takeup did not write")]
    Foreign,
    /// It holds a set of a later version of this program.
    #[error(
        "the medium holds a set of a later version of takeup (label version {version}, and this \
         one knows {LABEL_VERSION})"
    )]
    LaterVersion {
        /// Which one.
        version: u32,
    },
    /// It begins with the test area of an experiment.
    #[error("the medium holds a test area of `takeup bench tape`")]
    TestArea,
    /// Something is recorded behind the place where it stands.
    #[error("data follow where the tape stands")]
    DataFollow,
    /// It holds nothing.
    #[error("the medium is blank")]
    Blank,
    /// It is a volume of another set only.
    #[error("the medium holds no volume of this set")]
    OtherSet,
    /// It is another volume of the set.
    #[error("the medium holds volume {found} of this set, not {wanted}")]
    OtherVolume {
        /// What it holds.
        found: u32,
        /// What is wanted.
        wanted: u32,
    },
    /// It cannot be looked at.
    #[error("{text}")]
    Unreadable {
        /// What the drive said.
        text: String,
    },
}

/// Why there will be no other volume.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is nobody to ask: no terminal, and no command was given.
    #[error("nobody can be asked for another volume")]
    NobodyToAsk,
    /// The person or the command said no.
    #[error("the change of volume was declined: {text}")]
    Declined {
        /// In their words.
        text: String,
    },
    /// The command or the terminal fails.
    #[error("cannot ask for another volume")]
    Failed(#[source] std::io::Error),
    /// The run shall go on without this volume. Reading knows that; writing takes it for a no.
    #[error("the run goes on without it")]
    WithoutIt,
    /// The run was stopped meanwhile.
    #[error(transparent)]
    Stopped(#[from] flow::cancel::Stopped),
}
