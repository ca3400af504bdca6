//! Faults of a cartridge or a drive, on demand.

use std::collections::{BTreeMap, BTreeSet};

/// How often a place fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    Always,
    /// This many times; then it works.
    Times(u32),
}

/// Where a drive is after a read error. Drives differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterReadError {
    /// Behind the unreadable block.
    #[default]
    Behind,
    /// Still before it.
    Before,
}

/// How a drive answers commands that ask for data (`SG_IO`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// Correctly.
    #[default]
    Proper,
    /// It refuses every command.
    Refused,
    /// The length is right, but the bytes are wrong.
    Garbage,
    /// It returns nothing, without an error.
    Empty,
    /// There is no generic device for commands.
    Unreachable,
}

/// Whether a drive reads the memory chip of a cartridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CartridgeMemories {
    /// It answers READ ATTRIBUTE.
    #[default]
    Read,
    /// It does not know that command.
    Unread,
}

/// Whether a drive recommends an order in which places of its medium are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessOrders {
    /// It does not know the commands, like drives before LTO-9.
    #[default]
    Unknown,
    /// It sorts a list of segments.
    Offered,
}

/// What a drive does when compression is switched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompressionSwitch {
    /// It switches.
    #[default]
    Obeyed,
    /// It reports success and does not switch.
    Ignored,
    /// It has no compression.
    Absent,
}

/// Whether a drive answers READ POSITION and LOCATE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Positioning {
    /// It does.
    #[default]
    Numbered,
    /// It does neither (like the lab's `tgtd`): `MTIOCPOS` and `MTSEEK` fail.
    Unsupported,
}

/// How a drive reports where it stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ends {
    /// As the standard says.
    #[default]
    Proper,
    /// Like the lab's `tgtd` (1.0.85): a READ at the end of data has BLANK CHECK, the EOM bit and
    /// no residual. SPACE has neither key nor residual there, counts filemarks as blocks, and goes
    /// back over filemarks by one object too far.
    Vague,
}

/// Faults of a cartridge. Numbers count objects: blocks and filemarks from the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Unreadable objects.
    pub unreadable: BTreeMap<u64, Persistence>,
    /// Where the tape is after such an error.
    pub after_read_error: AfterReadError,
    /// Objects that return only this many bytes, without an error.
    pub shortened: BTreeMap<u64, u32>,
    /// Blocks that the drive fails to write, and reports at once.
    pub unwritable: BTreeSet<u64>,
    /// From this object on, the drive accepts objects but never writes them to the medium. It
    /// reports that at the next synchronising command, once.
    pub lost_from: Option<u64>,
    /// A bus reset before this object is read or written, once: the drive's buffer is lost, the
    /// tape is at the beginning, and the driver refuses to continue.
    pub reset_before: Option<u64>,
}

impl Faults {
    /// Makes these objects unreadable for good.
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

    /// Whether a reset comes before `object`; happens once.
    pub(super) fn takes_reset(&mut self, object: u64) -> bool {
        let due = self.reset_before.is_some_and(|first| first <= object);
        if due {
            self.reset_before = None;
        }
        due
    }
}
