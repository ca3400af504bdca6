//! What is known of the devices of a run, and so how their files are read.
//!
//! What the kernel says of a disk is often not true: a virtual disk calls itself rotating or not as
//! somebody set it, and behind a volume or a network may be anything. So a look tells
//! ([`super::look`]), or the page cache holds the files, and neither holds for ever.

use std::collections::HashMap;

use super::limits::ReadOrder;

/// Files until the next look at a device where order does not matter: at first, and at most.
const PAUSE_FILES_MIN: u64 = 1024;
const PAUSE_FILES_MAX: u64 = 256 << 10;

/// What is known of the devices.
#[derive(Debug)]
pub(super) struct Judge {
    devices: HashMap<u64, Device>,
    /// What holds for a device of which nothing is known.
    at_first: Verdict,
}

/// How the files of a device are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A look has to tell.
    Unknown,
    /// In the order of the disk.
    Sweep,
    /// As they come: order does not matter, or the page cache holds them.
    AsTheyCome,
}

#[derive(Clone, Copy, Debug)]
struct Device {
    is_slow: bool,
    /// Files that are read as they come, before what is known of the device counts again.
    pause_files: u64,
    next_pause_files: u64,
}

impl Judge {
    /// Nothing is known. An order that is asked for needs no look.
    pub(super) fn new(order: ReadOrder) -> Judge {
        let at_first = match order {
            ReadOrder::Auto => Verdict::Unknown,
            ReadOrder::Name => Verdict::AsTheyCome,
            ReadOrder::Inode | ReadOrder::Physical => Verdict::Sweep,
        };
        Judge { devices: HashMap::new(), at_first }
    }

    /// What holds for a device now.
    pub(super) fn verdict(&self, device: u64) -> Verdict {
        match self.devices.get(&device) {
            None => self.at_first,
            Some(known) if known.pause_files > 0 => Verdict::AsTheyCome,
            Some(known) if known.is_slow => Verdict::Sweep,
            Some(_) => self.at_first,
        }
    }

    /// The same for its next file, which counts towards the end of a pause.
    pub(super) fn next_file(&mut self, device: u64) -> Verdict {
        let verdict = self.verdict(device);
        if let Some(known) = self.devices.get_mut(&device) {
            known.pause_files = known.pause_files.saturating_sub(1);
        }
        verdict
    }

    /// Its files are read in the order of the disk.
    pub(super) fn sweep(&mut self, device: u64) {
        let known = Device { is_slow: true, pause_files: 0, next_pause_files: PAUSE_FILES_MIN };
        self.devices.insert(device, known);
    }

    /// Its next files are read as they come, more of them each time.
    pub(super) fn pass(&mut self, device: u64) {
        let new = Device { is_slow: false, pause_files: 0, next_pause_files: PAUSE_FILES_MIN };
        let known = self.devices.entry(device).or_insert(new);
        known.pause_files = known.next_pause_files;
        known.next_pause_files = (known.next_pause_files * 2).min(PAUSE_FILES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_device_is_looked_at_again_and_less_and_less_often() {
        let mut judge = Judge::new(ReadOrder::Auto);
        assert_eq!(judge.verdict(1), Verdict::Unknown);
        for pause in [1024, 2048, 4096] {
            judge.pass(1);
            let passed = (0..).take_while(|_| judge.next_file(1) == Verdict::AsTheyCome).count();
            assert_eq!(passed, pause);
            assert_eq!(judge.verdict(1), Verdict::Unknown);
        }
        judge.sweep(1);
        assert!((0..1_000_000).all(|_| judge.next_file(1) == Verdict::Sweep));
        assert_eq!(judge.verdict(2), Verdict::Unknown);
        // What the page cache holds is passed, and that it is slow is not forgotten.
        judge.pass(1);
        assert_eq!((0..1024).filter(|_| judge.next_file(1) == Verdict::Sweep).count(), 0);
        assert_eq!(judge.verdict(1), Verdict::Sweep);
    }
}
