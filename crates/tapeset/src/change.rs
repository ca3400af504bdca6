//! Changes of volume. The caller decides whom to ask: a person or an autoloader.

use archive::label::{LABEL_VERSION, MediumName};

/// How often one volume is asked for before the run gives up.
pub const CHANGE_ATTEMPTS_MAX: u32 = 10;

/// Puts another volume into a drive. The drive is closed meanwhile.
pub trait VolumeChanger: Send {
    /// Returns when another medium is in the drive, or is said to be. The caller checks afterwards
    /// whether it is the right one.
    ///
    /// # Errors
    /// When there is no other volume.
    fn change(&mut self, request: &VolumeRequest) -> Result<(), ChangeError>;

    /// Whether it is known already that nobody will be there.
    fn is_nobody(&self) -> bool {
        false
    }
}

/// The volume that a run needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeRequest {
    /// Name of the drive.
    pub device: String,
    /// What the run needs it for.
    pub purpose: VolumePurpose,
    /// Why the last volume was refused, from the second attempt on.
    pub refused: Option<Refused>,
    /// Number of the attempt, from 1 to [`CHANGE_ATTEMPTS_MAX`].
    pub attempt: u32,
}

/// What a volume is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumePurpose {
    /// To write the next volume of a set.
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
        /// Id of the medium, if an index or label has it.
        medium: Option<[u8; 16]>,
        /// What people call it, if that is noted here.
        name: Option<MediumName>,
    },
}

/// Why a volume was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The drive is empty.
    #[error("the drive holds no medium")]
    NoMedium,
    /// The drive has a medium, but does not become ready.
    #[error("the drive is not ready")]
    NotReady,
    /// The medium cannot be written to.
    #[error("the medium is write-protected")]
    WriteProtected,
    /// It holds an earlier volume of the set that is being written.
    #[error("the medium holds volume {volume} of this set")]
    SameSet { volume: u32 },
    /// It was tried before and had no room for any part of the set.
    #[error("the medium is full")]
    Full,
    /// Another program wrote it.
    #[error("the medium holds data that Takeup did not write")]
    Foreign,
    /// It holds a set of a later version of Takeup.
    #[error(
        "the medium holds a set of a later version of takeup (label version {version}, and this \
         one knows {LABEL_VERSION})"
    )]
    LaterVersion {
        /// Its label version.
        version: u32,
    },
    /// It begins with the test area of an experiment.
    #[error("the medium holds a test area of `takeup bench tape`")]
    TestArea,
    /// Data follow the position of the tape.
    #[error("data follow the position of the tape")]
    DataFollow,
    /// It holds nothing.
    #[error("the medium is blank")]
    Blank,
    /// It holds other sets only.
    #[error("the medium{} holds no volume of this set", called(*name))]
    OtherSet {
        /// What it is called.
        name: Option<MediumName>,
    },
    /// It has another name than the run was given.
    #[error("the medium is called {found}, not {wanted}")]
    OtherName {
        /// What it is called.
        found: MediumName,
        wanted: MediumName,
    },
    /// It is another volume of the set.
    #[error("the medium holds volume {found} of this set, not {wanted}")]
    OtherVolume {
        /// What it holds.
        found: u32,
        wanted: u32,
    },
    /// The drive cannot read it.
    #[error("{text}")]
    Unreadable {
        /// What the drive reported.
        text: String,
    },
}

/// Its name behind what it is: ` 000123L6`.
fn called(name: Option<MediumName>) -> String {
    name.map(|name| format!(" {name}")).unwrap_or_default()
}

/// Why there is no other volume.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is neither a terminal nor a command to ask.
    #[error("cannot ask for another volume: no terminal, and no command was given")]
    NobodyToAsk,
    /// The person or the command said no.
    #[error("the change of volume was declined: {text}")]
    Declined {
        /// The reason that they gave.
        text: String,
    },
    /// The command or the terminal fails.
    #[error("cannot ask for another volume")]
    Failed(#[source] std::io::Error),
    /// The run continues without this volume. Only reading allows that; writing treats it as
    /// declined.
    #[error("the run continues without this volume")]
    WithoutIt,
    /// The run was stopped meanwhile.
    #[error(transparent)]
    Stopped(#[from] flow::cancel::Stopped),
}
