//! A timing model of a disk, or of an array of disks.
//!
//! A disk is a number of servers behind a link. A request is cut at the largest request size and at
//! the borders of stripes. Each piece goes to one server and waits until that is free. It pays for
//! the command, for a seek unless it continues where that server stopped, and for its bytes. Then
//! its bytes pass the link, one request after the other. A single spindle is one server, a flash
//! disk has as many servers as it serves requests at once, an array has one for each disk.
//!
//! Not here: merging and scheduling, which the kernel does, and the kernel's read-ahead, which is
//! in [`read_ahead`](super::read_ahead).

use super::transfer_ns;

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

/// The parameters of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskParameters {
    /// Requests served at once: channels of a flash disk, spindles of an array.
    pub servers: usize,
    /// How requests are assigned to servers.
    pub placement: Placement,
    /// Fixed time of a request, ns.
    pub command_ns: u64,
    /// Additional time in ns, unless a request continues where the last one of that server ended.
    pub seek_ns: u64,
    /// Rate of one server. `u64::MAX`: a request takes a fixed time, including that of the link.
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
    /// Time of a seek.
    pub seek_ns: Option<u64>,
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
    /// One SAS disk of 15,000 turns a minute: 3.5 ms seek and 2 ms for half a turn, which are the
    /// 5.5 ms and 182 requests a second of `published/read-ahead.toml`; 200 MB/s from the outer
    /// tracks, by makers' data sheets.
    pub fn sas15k() -> DiskParameters {
        DiskParameters {
            servers: 1,
            placement: Placement::AnyServer,
            command_ns: 100_000,
            seek_ns: 5_400_000,
            server_bytes_per_second: 200_000_000,
            link_bytes_per_second: 600_000_000,
            request_bytes_max: 1280 << 10,
        }
    }

    /// One SATA disk of 7,200 turns a minute: 8.5 ms seek and 4.2 ms for half a turn, by makers'
    /// data sheets.
    pub fn sata7200() -> DiskParameters {
        DiskParameters {
            seek_ns: 12_700_000,
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
            seek_ns: 0,
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
            seek_ns: 0,
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
            seek_ns: 0,
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
            self.seek_ns = 0;
            self.server_bytes_per_second = u64::MAX;
        }
        self.seek_ns = changes.seek_ns.unwrap_or(self.seek_ns);
        self.request_bytes_max = changes.request_bytes_max.unwrap_or(self.request_bytes_max);
        self
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

#[derive(Clone, Copy, Debug, Default)]
struct Server {
    free_at_ns: u64,
    /// End of its last piece, if it had one.
    ended_at: Option<u64>,
}

/// Counters so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Requests as they came.
    pub requests: u64,
    /// Pieces into which they were cut.
    pub pieces: u64,
    /// Pieces that needed a seek.
    pub seeks: u64,
    pub bytes: u64,
    pub flushes: u64,
    pub discards: u64,
    /// Sum of the times in which servers were busy.
    pub busy_ns: u64,
}

/// The state of a disk at a moment.
#[derive(Clone, Debug)]
pub struct DiskModel {
    parameters: DiskParameters,
    servers: Vec<Server>,
    link_free_at_ns: u64,
    /// When all requests so far are complete.
    all_done_ns: u64,
    counters: DiskCounters,
}

impl DiskModel {
    /// An idle disk.
    pub fn new(parameters: DiskParameters) -> DiskModel {
        let servers = vec![Server::default(); parameters.servers.clamp(1, SERVERS_MAX)];
        let counters = DiskCounters::default();
        DiskModel { parameters, servers, link_free_at_ns: 0, all_done_ns: 0, counters }
    }

    /// When a request that arrives at `now_ns` is complete. Reads and writes cost the same.
    ///
    /// Requests have to come in the order of their arrival.
    pub fn submit(&mut self, now_ns: u64, offset: u64, bytes: u64) -> u64 {
        self.counters.requests += 1;
        let mut done_ns = now_ns;
        let (mut at, end) = (offset, offset.saturating_add(bytes));
        while at < end {
            let piece = self.piece_bytes(at, end - at);
            done_ns = done_ns.max(self.serve(now_ns, at, piece));
            at += piece;
        }
        self.all_done_ns = self.all_done_ns.max(done_ns);
        done_ns
    }

    /// When a flush that arrives at `now_ns` is complete: a command, after all earlier requests.
    pub fn flush(&mut self, now_ns: u64) -> u64 {
        self.counters.flushes += 1;
        self.all_done_ns.max(now_ns) + self.parameters.command_ns
    }

    /// When a discard that arrives at `now_ns` is complete: a command, whatever its size.
    pub fn discard(&mut self, now_ns: u64, offset: u64) -> u64 {
        self.counters.discards += 1;
        let number = self.server_for(now_ns, offset);
        let server = &mut self.servers[number];
        server.free_at_ns = server.free_at_ns.max(now_ns) + self.parameters.command_ns;
        self.counters.busy_ns += self.parameters.command_ns;
        self.all_done_ns = self.all_done_ns.max(server.free_at_ns);
        server.free_at_ns
    }

    /// The counters so far.
    pub fn counters(&self) -> DiskCounters {
        self.counters
    }

    /// The parameters of the disk.
    pub fn parameters(&self) -> &DiskParameters {
        &self.parameters
    }

    fn piece_bytes(&self, at: u64, left: u64) -> u64 {
        let most = left.min(self.parameters.request_bytes_max.max(512));
        match self.parameters.placement {
            Placement::AnyServer => most,
            Placement::Striped { stripe_bytes } => {
                let stripe = stripe_bytes.max(512);
                most.min(stripe - at % stripe)
            }
        }
    }

    fn serve(&mut self, now_ns: u64, at: u64, bytes: u64) -> u64 {
        let number = self.server_for(now_ns, at);
        let place = self.place_on_server(at);
        let server = &mut self.servers[number];
        let goes_on = server.ended_at == Some(place);
        let seek_ns = if goes_on { 0 } else { self.parameters.seek_ns };
        // A fixed time for every request includes the time of its bytes on the link.
        let fixed = self.parameters.server_bytes_per_second == u64::MAX;
        let transfer =
            if fixed { 0 } else { transfer_ns(bytes, self.parameters.server_bytes_per_second) };
        let busy_ns = self.parameters.command_ns + seek_ns + transfer;
        let served_ns = server.free_at_ns.max(now_ns) + busy_ns;
        *server = Server { free_at_ns: served_ns, ended_at: Some(place + bytes) };
        let link_ns = transfer_ns(bytes, self.parameters.link_bytes_per_second);
        // The link carries requests in order of arrival, and only bytes that the server already
        // has.
        self.link_free_at_ns = self.link_free_at_ns.max(now_ns) + link_ns;
        let carried_ns = if fixed { served_ns } else { served_ns - transfer + link_ns };
        let done_ns = served_ns.max(self.link_free_at_ns).max(carried_ns);
        self.counters.pieces += 1;
        self.counters.seeks += u64::from(!goes_on);
        self.counters.bytes += bytes;
        self.counters.busy_ns += busy_ns;
        done_ns
    }

    fn server_for(&self, now_ns: u64, at: u64) -> usize {
        match self.parameters.placement {
            Placement::AnyServer => {
                // Among the free servers, the one that would continue where it stopped.
                let wait = |server: &Server| {
                    (server.free_at_ns.max(now_ns), server.ended_at != Some(at), server.free_at_ns)
                };
                let all = self.servers.iter().enumerate();
                all.min_by_key(|(_, server)| wait(server)).map_or(0, |(number, _)| number)
            }
            Placement::Striped { stripe_bytes } => {
                let stripe = at / stripe_bytes.max(512);
                usize::try_from(stripe % self.servers.len() as u64).unwrap_or(0)
            }
        }
    }

    /// The place of a byte on its own server, where its stripes are adjacent.
    fn place_on_server(&self, at: u64) -> u64 {
        match self.parameters.placement {
            Placement::AnyServer => at,
            Placement::Striped { stripe_bytes } => {
                let stripe = stripe_bytes.max(512);
                at / stripe / self.servers.len() as u64 * stripe + at % stripe
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(changes: DiskChanges) -> DiskModel {
        DiskModel::new(DiskParameters::sas15k().with(&changes))
    }

    #[test]
    fn a_given_service_time_is_all_that_a_request_takes() {
        let mut disk = changed(DiskChanges {
            service_ns: Some(5_500_000),
            servers: Some(2),
            ..DiskChanges::default()
        });
        assert_eq!(disk.submit(0, 0, 256 << 10), 5_500_000);
        assert_eq!(disk.submit(0, 1 << 30, 4096), 5_500_000, "far away, small, at the same time");
        assert_eq!(disk.submit(0, 4096, 4096), 11_000_000, "both servers have work");
    }

    #[test]
    fn the_link_limits_what_all_requests_move() {
        let mut disk = changed(DiskChanges {
            service_ns: Some(1000),
            servers: Some(64),
            bytes_per_second: Some(1_000_000_000),
            ..DiskChanges::default()
        });
        let ends: Vec<u64> = (0..4).map(|number| disk.submit(0, number << 20, 1_000_000)).collect();
        assert_eq!(ends, [1_000_000, 2_000_000, 3_000_000, 4_000_000]);
    }

    #[test]
    fn a_seek_is_paid_where_a_stream_breaks_off() {
        let seek_ns = Some(4_000_000);
        for servers in [1, 3] {
            let mut disk =
                changed(DiskChanges { seek_ns, servers: Some(servers), ..DiskChanges::default() });
            let mut now_ns = 0;
            for block in 0..10 {
                now_ns = disk.submit(now_ns, block << 16, 1 << 16);
            }
            assert_eq!(disk.counters().seeks, 1, "{servers} servers, one stream");
            disk.submit(now_ns, 1 << 40, 1 << 16);
            assert_eq!(disk.counters().seeks, 2);
        }
    }

    #[test]
    fn a_flush_is_complete_after_all_that_came_before() {
        let mut disk = DiskModel::new(DiskParameters::ssd_sata());
        let last_ns = (0..100).map(|block| disk.submit(0, block << 13, 8192)).max();
        let command_ns = disk.parameters().command_ns;
        assert_eq!(Some(disk.flush(1) - command_ns), last_ns);
        assert_eq!(disk.counters().flushes, 1);
    }

    #[test]
    fn a_large_request_is_cut_and_each_piece_pays() {
        let mut disk = changed(DiskChanges {
            service_ns: Some(1_000_000),
            request_bytes_max: Some(64 << 10),
            servers: Some(1),
            ..DiskChanges::default()
        });
        assert_eq!(disk.submit(0, 0, 256 << 10), 4_000_000);
        assert_eq!(disk.counters().pieces, 4);
    }
}
