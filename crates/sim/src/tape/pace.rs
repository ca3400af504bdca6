//! The timing of a drive: after each command, once its outcome is known.
//!
//! A drive without a [`Pace`] takes no time. [`super::real_time::RealTime`] makes a program wait as
//! long as a model says.

/// What a command did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Blocks came from the host.
    Write {
        host_bytes: u64,
        /// Their size on the medium.
        native_bytes: u64,
    },
    /// Blocks went to the host.
    Read {
        host_bytes: u64,
        /// Their size on the medium.
        native_bytes: u64,
    },
    /// Filemarks came, without a wait for the medium.
    Filemark,
    /// The buffer was written to the medium.
    Synchronise,
    /// The tape went to a position, this many native bytes from its beginning.
    Locate(u64),
    /// A cartridge with this many native bytes was threaded.
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

/// Adds the time of commands.
pub trait Pace: Send {
    /// A command has arrived. Work for it until [`Pace::take`] is part of its time, like a real
    /// drive's transfer.
    fn begin(&mut self) {}

    /// Whether commands are late, so that optional work for them should be skipped.
    fn is_late(&self) -> bool {
        false
    }

    /// Size of a block on the medium.
    fn native_bytes(&mut self, block: &[u8], compression: Compression) -> u32;

    /// Time from one place to another by the quicker way, winding or reading on, both in native
    /// bytes from the beginning of the medium.
    fn reaching_ns(&self, from_bytes: u64, to_bytes: u64) -> u64 {
        from_bytes.abs_diff(to_bytes)
    }

    /// Returns at the completion time of the command.
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
