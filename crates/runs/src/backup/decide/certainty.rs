//! Whether a change would show: file systems whose times and inode numbers are trusted, and times
//! that are too close to a look.

use archive::index::Certainty;
use archive::member::Timestamp;
use rustix::fs::fstatfs;
use tree::{Directory, EntryKind, Status};

use super::Decider;
use crate::backup::entries::Entries;

/// Clocks of trusted file systems move on at least this often.
const TICK_NANOSECONDS: i128 = 50_000_000;
/// Those of others: FAT counts two seconds.
const COARSE_TICK_NANOSECONDS: i128 = 2_100_000_000;
/// More whole seconds than any of these.
const SECONDS_APART: i64 = 4;
/// Types of file systems whose inode numbers change, or whose times are those of a server: FUSE,
/// CIFS, SMB 1 and 2, NFS, FAT, exFAT, 9p, AFS, Ceph.
const UNTRUSTED: [u64; 10] = [
    0x6573_5546,
    0xff53_4d42,
    0x517b,
    0xfe53_4d42,
    0x6969,
    0x4d44,
    0x2011_bab0,
    0x0102_1997,
    0x5346_414f,
    0x00c3_6400,
];

/// Whether inode numbers last, and times are the kernel's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Full,
    Little,
}

impl<E: Entries> Decider<'_, E> {
    pub(super) fn trust(&mut self, device: u64, directory: &Directory) -> Trust {
        if let Some((last, trust)) = self.last_trust
            && last == device
        {
            return trust;
        }
        let trust = *self.file_systems.entry(device).or_insert_with(|| {
            let kind = fstatfs(directory).map(|status| status.f_type as u64);
            match kind {
                Ok(kind) if !UNTRUSTED.contains(&(kind & 0xffff_ffff)) => Trust::Full,
                _ => Trust::Little,
            }
        });
        self.last_trust = Some((device, trust));
        trust
    }

    pub(super) fn certainty(
        &self,
        status: &Status,
        looked: (Timestamp, Timestamp),
        trust: Trust,
    ) -> Certainty {
        let tick = match trust {
            Trust::Full => TICK_NANOSECONDS,
            Trust::Little => COARSE_TICK_NANOSECONDS,
        };
        let times = [status.version.modified, status.version.changed];
        // The names of a file must agree, though their folders are listed at different times.
        let has_names = status.links > 1 && status.kind != EntryKind::Directory;
        let first = if has_names { self.begun } else { looked.0 };
        if is_near(times, [first, looked.0, looked.1], tick) {
            Certainty::Doubtful
        } else {
            Certainty::Settled
        }
    }
}

/// Whether a time lies between these moments, or within a tick of them. They may come in any order:
/// clocks are set back while a folder is listed, too.
fn is_near(times: [Timestamp; 2], moments: [Timestamp; 3], tick: i128) -> bool {
    // Most objects are years older than the look: whole seconds tell.
    let latest = times[0].seconds.max(times[1].seconds);
    let earliest = moments[0].seconds.min(moments[1].seconds).min(moments[2].seconds);
    if latest.saturating_add(SECONDS_APART) < earliest {
        return false;
    }
    let [first, second, third] = moments.map(nanoseconds);
    let (from, until) = (first.min(second).min(third), first.max(second).max(third));
    times.iter().any(|time| (from - tick..=until + tick).contains(&nanoseconds(*time)))
}

pub(super) fn nanoseconds(time: Timestamp) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_during_a_listing_makes_doubtful() {
        let at = |seconds| Timestamp { seconds, nanoseconds: 0 };
        let near = |time, looked: [i64; 2]| {
            let looked = looked.map(at);
            is_near([at(0), at(time)], [looked[0], looked[0], looked[1]], TICK_NANOSECONDS)
        };
        assert!(near(1000, [1000, 1001]) && near(1001, [1000, 1001]));
        assert!(!near(999, [1000, 1001]) && !near(1002, [1000, 1001]));
        // From 1000 to 1001, then back to 940: what was written at any of these times.
        assert!(near(1000, [1000, 940]) && near(940, [1000, 940]) && near(970, [1000, 940]));
        assert!(!near(939, [1000, 940]) && !near(1002, [1000, 940]));
    }
}
