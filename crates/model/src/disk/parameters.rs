//! The parameters of a disk: presets with their sources, and changes to them.

use super::heads::{Heads, SeekCurve};

/// How requests are assigned to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// To the server that is free first: flash.
    AnyServer,
    /// In stripes of this size, around the servers: spindles.
    Striped {
        /// Bytes of a stripe on one server.
        stripe_bytes: u64,
    },
}

/// What it costs to get to the first byte of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Positioning {
    /// The same time wherever it is, unless the request goes on where the last one of that server
    /// ended; flash: 0. Requests are served in the order of arrival.
    Constant { ns: u64 },
    /// An arm and turning platters. The drive chooses the order.
    Heads(Heads),
}

impl Positioning {
    /// Mean in random places, ns.
    pub fn mean_ns(&self) -> u64 {
        match self {
            Positioning::Constant { ns } => *ns,
            Positioning::Heads(heads) => heads.mean_ns(),
        }
    }
}

/// The parameters of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskParameters {
    /// Requests served at once: channels of a flash disk, spindles of an array.
    pub servers: usize,
    /// How requests are assigned to servers.
    pub placement: Placement,
    /// Fixed time of a request, ns.
    pub command_ns: u64,
    pub positioning: Positioning,
    /// Rate of one server; with heads, of its outermost track. `u64::MAX`: a request takes a fixed
    /// time, including that of the link.
    pub server_bytes_per_second: u64,
    /// Rate of the link that all servers share.
    pub link_bytes_per_second: u64,
    /// Larger requests are cut (`max_sectors_kb`).
    pub request_bytes_max: u64,
}

/// Changes to a preset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskChanges {
    /// Fixed time of every request, whatever its place and size.
    pub service_ns: Option<u64>,
    /// Constant time of a seek, instead of heads.
    pub seek_ns: Option<u64>,
    /// Bytes over which the arms of all disks together move; nothing without heads.
    pub capacity_bytes: Option<u64>,
    /// Rate of the disk as a whole.
    pub bytes_per_second: Option<u64>,
    /// Requests served at once.
    pub servers: Option<usize>,
    /// Larger requests are cut.
    pub request_bytes_max: Option<u64>,
}

/// Names of the presets, as on a command line.
pub const PRESETS: [&str; 5] = ["sas15k", "sata7200", "ssd-sata", "nvme", "array"];

impl DiskParameters {
    /// One SAS disk of 15,000 turns a minute.
    ///
    /// Seagate's data sheet of the Cheetah 15K.7 (2009): 600 GB on four disks, 122 to 204 MB/s,
    /// mean seek 3.4 ms for reads, 0.2 ms to the next track, half a turn 2.0 ms, a cache of 16 MB.
    /// With the command a random read takes 5.5 ms, as in `published/read-ahead.toml` (182 reads a
    /// second). Assumed: 7 ms over all tracks, 32 requests in the queue (the drive takes more), and
    /// a sixteenth of the cache for what is read on.
    pub fn sas15k() -> DiskParameters {
        let heads = Heads {
            capacity_bytes: 600_000_000_000,
            turns_per_minute: 15_000,
            inner_rate_percent: 60,
            surfaces: 8,
            seek: SeekCurve { single_ns: 200_000, average_ns: 3_400_000, full_ns: 7_000_000 },
            queue: 32,
            read_on_bytes: 1 << 20,
        };
        DiskParameters {
            servers: 1,
            placement: Placement::AnyServer,
            command_ns: 100_000,
            positioning: Positioning::Heads(heads),
            server_bytes_per_second: 200_000_000,
            link_bytes_per_second: 600_000_000,
            request_bytes_max: 1280 << 10,
        }
    }

    /// One SATA disk of 7,200 turns a minute.
    ///
    /// Seagate's data sheet of the Barracuda ST3000DM001 (2011): 3 TB on three disks, 210 MB/s at
    /// the outer edge and 156 MB/s on average, mean seek 8.5 ms for reads, 1 ms to the next track,
    /// half a turn 4.2 ms, a cache of 64 MB; SATA queues 32 requests. Assumed: 17 ms over all
    /// tracks, twice the mean, and a sixteenth of the cache for what is read on.
    pub fn sata7200() -> DiskParameters {
        let heads = Heads {
            capacity_bytes: 3_000_000_000_000,
            turns_per_minute: 7200,
            inner_rate_percent: 49,
            surfaces: 6,
            seek: SeekCurve { single_ns: 1_000_000, average_ns: 8_500_000, full_ns: 17_000_000 },
            queue: 32,
            read_on_bytes: 4 << 20,
        };
        DiskParameters {
            positioning: Positioning::Heads(heads),
            server_bytes_per_second: 210_000_000,
            ..DiskParameters::sas15k()
        }
    }

    /// A SATA SSD. Its queue holds 32 requests; with that many of 8 KiB in flight, read and written
    /// in equal parts, it serves 40,500 a second (`published/block-device.toml`), that is, one in
    /// 0.79 ms.
    pub fn ssd_sata() -> DiskParameters {
        DiskParameters {
            servers: 32,
            placement: Placement::AnyServer,
            command_ns: 775_000,
            positioning: Positioning::Constant { ns: 0 },
            server_bytes_per_second: 550_000_000,
            link_bytes_per_second: 530_000_000,
            request_bytes_max: 1280 << 10,
        }
    }

    /// An NVMe disk of four lanes of the third generation. Assumed: 80 us, 64 at once, 3.2 GB/s.
    pub fn nvme() -> DiskParameters {
        DiskParameters {
            servers: 64,
            placement: Placement::AnyServer,
            command_ns: 80_000,
            positioning: Positioning::Constant { ns: 0 },
            server_bytes_per_second: 2_000_000_000,
            link_bytes_per_second: 3_200_000_000,
            request_bytes_max: 512 << 10,
        }
    }

    /// An array of `disks` SAS disks in stripes of 64 KiB behind 8 Gbit/s.
    pub fn array(disks: usize) -> DiskParameters {
        DiskParameters {
            servers: disks.max(1),
            placement: Placement::Striped { stripe_bytes: 64 << 10 },
            link_bytes_per_second: 800_000_000,
            ..DiskParameters::sas15k()
        }
    }

    /// A disk that takes the same time for every request and serves any number at once, like the
    /// virtual disk on which the facts about read-ahead were checked.
    pub fn constant(service_ns: u64, link_bytes_per_second: u64) -> DiskParameters {
        DiskParameters {
            servers: 256,
            placement: Placement::AnyServer,
            command_ns: service_ns,
            positioning: Positioning::Constant { ns: 0 },
            server_bytes_per_second: u64::MAX,
            link_bytes_per_second,
            request_bytes_max: 1280 << 10,
        }
    }

    /// The same disk with the changes. A given service time removes everything that depends on size
    /// or place, unless a seek is given too. The link still limits the total rate.
    pub fn with(mut self, changes: &DiskChanges) -> DiskParameters {
        if let Some(servers) = changes.servers {
            self.servers = servers.clamp(1, SERVERS_MAX);
            // A disk that serves several requests at any place has no single arm.
            if self.servers > 1 && self.placement == Placement::AnyServer {
                self.positioning = Positioning::Constant { ns: self.positioning.mean_ns() };
            }
        }
        if let Some(rate) = changes.bytes_per_second {
            self.link_bytes_per_second = rate;
            // With one server the disk could not reach the requested rate.
            if self.servers == 1 {
                self.server_bytes_per_second = rate;
            }
        }
        if let Some(service_ns) = changes.service_ns {
            self.command_ns = service_ns;
            self.positioning = Positioning::Constant { ns: 0 };
            self.server_bytes_per_second = u64::MAX;
        }
        if let Some(ns) = changes.seek_ns {
            self.positioning = Positioning::Constant { ns };
        }
        if let Some(bytes) = changes.capacity_bytes {
            self.spread_over(bytes);
        }
        self.request_bytes_max = changes.request_bytes_max.unwrap_or(self.request_bytes_max);
        self
    }

    /// The same disk, larger if it is smaller than `bytes`.
    pub fn holding(mut self, bytes: u64) -> DiskParameters {
        if self.capacity_bytes().is_some_and(|capacity| capacity < bytes) {
            self.spread_over(bytes);
        }
        self
    }

    /// Bytes over which the arms of all disks together move; `None` without heads.
    pub fn capacity_bytes(&self) -> Option<u64> {
        match &self.positioning {
            Positioning::Constant { .. } => None,
            Positioning::Heads(heads) => Some(heads.capacity_bytes * self.parts()),
        }
    }

    fn spread_over(&mut self, bytes: u64) {
        let parts = self.parts();
        if let Positioning::Heads(heads) = &mut self.positioning {
            heads.capacity_bytes = bytes.div_ceil(parts).max(1);
        }
    }

    /// Disks among which the bytes are divided.
    fn parts(&self) -> u64 {
        match self.placement {
            Placement::AnyServer => 1,
            Placement::Striped { .. } => self.servers.clamp(1, SERVERS_MAX) as u64,
        }
    }

    /// Bytes of the piece that is cut from the head of a request at `at`, of which `left` are left.
    pub(super) fn piece_bytes(&self, at: u64, left: u64) -> u64 {
        let most = left.min(self.request_bytes_max.max(512));
        match self.placement {
            Placement::AnyServer => most,
            Placement::Striped { stripe_bytes } => {
                let stripe = stripe_bytes.max(512);
                most.min(stripe - at % stripe)
            }
        }
    }

    /// The server of a byte, where its place decides that.
    pub(super) fn striped_server(&self, at: u64) -> Option<usize> {
        match self.placement {
            Placement::AnyServer => None,
            Placement::Striped { stripe_bytes } => {
                let stripe = at / stripe_bytes.max(512);
                Some(usize::try_from(stripe % self.parts()).unwrap_or(0))
            }
        }
    }

    /// The place of a byte on its own server, where its stripes are adjacent.
    pub(super) fn place_on_server(&self, at: u64) -> u64 {
        match self.placement {
            Placement::AnyServer => at,
            Placement::Striped { stripe_bytes } => {
                let stripe = stripe_bytes.max(512);
                at / stripe / self.parts() * stripe + at % stripe
            }
        }
    }

    /// A preset by its name; `array:12` has twelve disks, `array` eight.
    pub fn named(name: &str) -> Option<DiskParameters> {
        match name {
            "sas15k" => Some(DiskParameters::sas15k()),
            "sata7200" => Some(DiskParameters::sata7200()),
            "ssd-sata" => Some(DiskParameters::ssd_sata()),
            "nvme" => Some(DiskParameters::nvme()),
            "array" => Some(DiskParameters::array(8)),
            _ => {
                let disks: usize = name.strip_prefix("array:")?.parse().ok()?;
                (1..=SERVERS_MAX).contains(&disks).then(|| DiskParameters::array(disks))
            }
        }
    }
}

/// Most servers; a larger number is reduced to it.
pub const SERVERS_MAX: usize = 1024;
