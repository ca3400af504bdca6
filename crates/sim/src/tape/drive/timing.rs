//! What the drive tells its [`super::Pace`] of a command.

use super::super::medium::Medium;
use super::super::pace::Act;
use super::Drive;

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

    /// Native bytes between an object and the position.
    fn native_bytes_since(&self, from: u64) -> u64 {
        let position = self.position;
        let between = |medium: &mut Medium| {
            medium.bytes_before(position).saturating_sub(medium.bytes_before(from))
        };
        self.medium(between).unwrap_or(0)
    }
}
