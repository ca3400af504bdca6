//! Where time enters a drive: after each command, once its outcome is known.
//!
//! A drive without a [`Pace`] takes no time. [`super::real_time::RealTime`] makes a program wait as
//! long as a model says.

/// What a command did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Blocks came from the host.
    Write {
        /// Their bytes.
        host_bytes: u64,
        /// What they take on the medium.
        native_bytes: u64,
    },
    /// Blocks went to the host.
    Read {
        /// Their bytes.
        host_bytes: u64,
        /// What they take on the medium.
        native_bytes: u64,
    },
    /// Filemarks came, none of them waited for.
    Filemark,
    /// The buffer went to the medium.
    Synchronise,
    /// The tape went to a place, so many native bytes from its beginning.
    Locate(u64),
    /// A cartridge was threaded on which so many native bytes stand.
    Load(u64),
    /// It was unthreaded.
    Unload,
}

impl Act {
    /// Whether data came or went.
    pub fn is_transfer(self) -> bool {
        matches!(self, Act::Write { .. } | Act::Read { .. })
    }
}

/// Makes commands take time.
pub trait Pace: Send {
    /// A command has come. What is done for it until it is [taken](Pace::take) is part of its time,
    /// as the transfer is of a real one.
    fn begin(&mut self) {}

    /// Whether commands take longer than they should, so that nothing is to be done for them that
    /// can be left out.
    fn is_late(&self) -> bool {
        false
    }

    /// What a block takes on the medium.
    fn native_bytes(&mut self, block: &[u8], compression: Compression) -> u32;

    /// Returns when the command that did this would have returned.
    fn take(&mut self, act: Act);
}

/// Whether the drive compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// It does.
    On,
    /// It does not.
    Off,
}
