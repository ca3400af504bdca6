//! What the drive tells its [`super::Pace`] of a command.

use super::super::medium::{Medium, Packing};
use super::super::pace::Act;
use super::Drive;

/// A block is packed where the drive saves at least this part of it.
const WORTH_DIVISOR: usize = 8;
/// A block of which the drive leaves no more than this is packed faster than it is written.
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

    /// A command with data has come.
    pub(super) fn took_notice(&mut self) {
        if let Some(pace) = &mut self.pace {
            pace.begin();
        }
    }

    /// What the drive's own estimate of a block says about storing it. Time goes before room: a
    /// block that takes long to pack is stored as it is where commands are late already. Without
    /// time and estimate, a drive that compresses is to try.
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
