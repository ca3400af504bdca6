//! Servers at which a request costs the same wherever it is, unless it goes on where the last one
//! ended. They serve in the order of arrival, so the completion time is known at once.

use super::parameters::{DiskParameters, SERVERS_MAX};
use super::request::{DiskCounters, Operation};
use crate::transfer_ns;

#[derive(Clone, Copy, Debug, Default)]
struct Server {
    free_at_ns: u64,
    /// End of its last piece, if it had one.
    ended_at: Option<u64>,
}

/// The state of all servers and their link.
#[derive(Clone, Debug)]
pub(super) struct Servers {
    servers: Vec<Server>,
    /// Time of a piece that does not go on.
    seek_ns: u64,
    link_free_at_ns: u64,
    /// When all requests so far are complete.
    all_done_ns: u64,
}

impl Servers {
    pub(super) fn new(parameters: &DiskParameters, seek_ns: u64) -> Servers {
        let servers = vec![Server::default(); parameters.servers.clamp(1, SERVERS_MAX)];
        Servers { servers, seek_ns, link_free_at_ns: 0, all_done_ns: 0 }
    }

    /// When a request that arrives at `now_ns` is complete. Reads and writes cost the same.
    pub(super) fn serve(
        &mut self,
        disk: &DiskParameters,
        counters: &mut DiskCounters,
        now_ns: u64,
        operation: Operation,
    ) -> u64 {
        let done_ns = match operation {
            Operation::Read { offset, bytes } | Operation::Write { offset, bytes } => {
                let mut done_ns = now_ns;
                let (mut at, end) = (offset, offset.saturating_add(bytes));
                while at < end {
                    let piece = disk.piece_bytes(at, end - at);
                    done_ns = done_ns.max(self.piece(disk, counters, now_ns, at, piece));
                    at += piece;
                }
                done_ns
            }
            Operation::Flush => return self.all_done_ns.max(now_ns) + disk.command_ns,
            Operation::Discard { offset } => {
                let number = self.server_for(disk, now_ns, offset);
                let server = &mut self.servers[number];
                server.free_at_ns = server.free_at_ns.max(now_ns) + disk.command_ns;
                counters.busy_ns += disk.command_ns;
                server.free_at_ns
            }
        };
        self.all_done_ns = self.all_done_ns.max(done_ns);
        done_ns
    }

    fn piece(
        &mut self,
        disk: &DiskParameters,
        counters: &mut DiskCounters,
        now_ns: u64,
        at: u64,
        bytes: u64,
    ) -> u64 {
        let number = self.server_for(disk, now_ns, at);
        let place = disk.place_on_server(at);
        let server = &mut self.servers[number];
        let goes_on = server.ended_at == Some(place);
        let seek_ns = if goes_on { 0 } else { self.seek_ns };
        // A fixed time for every request includes the time of its bytes on the link.
        let fixed = disk.server_bytes_per_second == u64::MAX;
        let transfer = if fixed { 0 } else { transfer_ns(bytes, disk.server_bytes_per_second) };
        let busy_ns = disk.command_ns + seek_ns + transfer;
        let served_ns = server.free_at_ns.max(now_ns) + busy_ns;
        *server = Server { free_at_ns: served_ns, ended_at: Some(place + bytes) };
        let link_ns = transfer_ns(bytes, disk.link_bytes_per_second);
        // The link carries requests in order of arrival, and only bytes that the server already
        // has.
        self.link_free_at_ns = self.link_free_at_ns.max(now_ns) + link_ns;
        let carried_ns = if fixed { served_ns } else { served_ns - transfer + link_ns };
        counters.pieces += 1;
        counters.seeks += u64::from(!goes_on);
        counters.bytes += bytes;
        counters.busy_ns += busy_ns;
        served_ns.max(self.link_free_at_ns).max(carried_ns)
    }

    fn server_for(&self, disk: &DiskParameters, now_ns: u64, at: u64) -> usize {
        disk.striped_server(at).unwrap_or_else(|| {
            // Among the free servers, the one that would continue where it stopped.
            let wait = |server: &Server| {
                (server.free_at_ns.max(now_ns), server.ended_at != Some(at), server.free_at_ns)
            };
            let all = self.servers.iter().enumerate();
            all.min_by_key(|(_, server)| wait(server)).map_or(0, |(number, _)| number)
        })
    }
}
