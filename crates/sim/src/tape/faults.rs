//! What can be wrong with a cartridge or a drive, to order.

use std::collections::{BTreeMap, BTreeSet};

/// How often a place fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// Whenever it is tried.
    Always,
    /// So many times; then it works.
    Times(u32),
}

/// Where a drive stands behind an error while reading. Drives differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterReadError {
    /// Behind the block that cannot be read.
    #[default]
    Behind,
    /// Still in front of it.
    Before,
}

/// How a drive answers commands that ask for data (`SG_IO`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// As it should.
    #[default]
    Proper,
    /// It refuses every command.
    Refused,
    /// The length is right, the bytes are not.
    Garbage,
    /// Nothing comes back, and no error.
    Empty,
    /// There is no generic device to send commands to.
    Unreachable,
}

/// What a drive does when it is told to switch compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompressionSwitch {
    /// What it is told.
    #[default]
    Obeyed,
    /// It says yes and stays as it is.
    Ignored,
    /// It has none.
    Absent,
}

/// Whether a drive answers READ POSITION and LOCATE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Positioning {
    /// It does.
    #[default]
    Numbered,
    /// It does neither (as `tgtd` of the lab): `MTIOCPOS` and `MTSEEK` fail.
    Unsupported,
}

/// How a drive says where it stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ends {
    /// As the standard has it.
    #[default]
    Proper,
    /// As `tgtd` of the lab (1.0.85): a READ at the end of the data has BLANK CHECK, the EOM bit
    /// and no residual. SPACE has no key there and no residual, takes filemarks for blocks, and
    /// goes back over filemarks by one object too far.
    Vague,
}

/// What is wrong with a cartridge. Numbers are those of objects: blocks and filemarks counted from
/// the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Objects that cannot be read.
    pub unreadable: BTreeMap<u64, Persistence>,
    /// Where the tape stands after such an error.
    pub after_read_error: AfterReadError,
    /// Objects that are read with so many bytes only, without an error.
    pub shortened: BTreeMap<u64, u32>,
    /// Blocks that the drive fails to write, and says so at once.
    pub unwritable: BTreeSet<u64>,
    /// The drive takes objects from this one on but never brings them to the medium. It says so at
    /// the next synchronising command, once.
    pub lost_from: Option<u64>,
    /// A reset of the bus before this object is read or written, once: the drive's buffer is lost,
    /// the tape stands at the beginning, and the driver refuses to go on.
    pub reset_before: Option<u64>,
}

impl Faults {
    /// These objects can never be read.
    pub fn unreadable(objects: impl IntoIterator<Item = u64>) -> Faults {
        let unreadable = objects.into_iter().map(|object| (object, Persistence::Always)).collect();
        Faults { unreadable, ..Faults::default() }
    }

    /// Whether reading `object` fails now; counts the failure.
    pub(super) fn fails_to_read(&mut self, object: u64) -> bool {
        match self.unreadable.get_mut(&object) {
            None | Some(Persistence::Times(0)) => false,
            Some(Persistence::Always) => true,
            Some(Persistence::Times(times)) => {
                *times -= 1;
                true
            }
        }
    }

    /// Whether a reset comes before `object`; comes once.
    pub(super) fn takes_reset(&mut self, object: u64) -> bool {
        let due = self.reset_before.is_some_and(|first| first <= object);
        if due {
            self.reset_before = None;
        }
        due
    }
}
