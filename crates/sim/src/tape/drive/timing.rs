//! What the drive reports to its [`super::Pace`] about a command.

use super::super::medium::{Medium, Packing};
use super::super::pace::Act;
use super::Drive;

/// A block is packed if the drive saves at least this share of it.
const WORTH_DIVISOR: usize = 8;
/// A block that the drive shrinks to at most this share is packed faster than written.
const QUICK_DIVISOR: usize = 16;

impl Drive {
    pub(super) fn took(&mut self, act: Act) {
        if let Some(pace) = &mut self.pace {
            pace.take(act);
        }
    }

    pub(super) fn took_load(&mut self) {
        let recorded = self.medium(|medium| medium.bytes_before(medium.len())).unwrap_or(0);
        self.took(Act::Load(recorded));
    }

    pub(super) fn took_locate(&mut self) {
        let position = self.position;
        let place = self.medium(|medium| medium.bytes_before(position)).unwrap_or(0);
        self.took(Act::Locate(place));
    }

    pub(super) fn took_write(&mut self, from: u64, host_bytes: usize) {
        let native_bytes = self.native_bytes_since(from);
        self.took(Act::Write { host_bytes: host_bytes as u64, native_bytes });
    }

    pub(super) fn took_read(&mut self, from: u64, host_bytes: usize) {
        let native_bytes = self.native_bytes_since(from);
        self.took(Act::Read { host_bytes: host_bytes as u64, native_bytes });
    }

    /// A command with data has arrived.
    pub(super) fn took_notice(&mut self) {
        if let Some(pace) = &mut self.pace {
            pace.begin();
        }
    }

    /// How the drive's estimate of a block decides on packing it in storage. Time is more important
    /// than room: a block that takes long to pack is stored as it is while commands are late.
    /// Without timing and estimate, blocks of a compressing drive are tried.
    pub(super) fn packing(&self, block: &[u8], native_bytes: u32) -> Packing {
        let Some(pace) = &self.pace else {
            return if self.compression { Packing::Shrink } else { Packing::Leave };
        };
        let native_bytes = block.len().min(native_bytes as usize);
        let is_worth = block.len() - native_bytes >= block.len() / WORTH_DIVISOR;
        let is_quick = native_bytes <= block.len() / QUICK_DIVISOR;
        if self.compression && is_worth && (is_quick || !pace.is_late()) {
            Packing::Shrink
        } else {
            Packing::Leave
        }
    }

    /// Native bytes between an object and the position.
    fn native_bytes_since(&self, from: u64) -> u64 {
        let position = self.position;
        let between = |medium: &mut Medium| {
            medium.bytes_before(position).saturating_sub(medium.bytes_before(from))
        };
        self.medium(between).unwrap_or(0)
    }
}
