//! Timing models of programs that write a tape.
//!
//! [`copy`] is one thread that reads a block and then writes it, as tar and dd do: the times of
//! source and tape add up, except for what the drive's buffer hides. [`stream`] is a source and a
//! writer with a ring between them: both work at once, and the writer may wait until the ring is
//! full before it continues.
//!
//! Not here: chains of programs with pipes between them, see [`pipeline`](super::pipeline).

use super::tape::parameters::{Known, TapeParameters};
use super::tape::{Filemark, TapeModel, Zone};
use super::{BILLION, transfer_ns, whole};

/// Compression ratio of the data on the drive: host bytes for 1,000 bytes on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// 1,000 means data that do not compress.
    pub permille: u64,
}

impl Ratio {
    /// Data that do not compress, or a drive with its compression off.
    pub const NONE: Ratio = Ratio { permille: 1000 };

    /// From host bytes for each byte on the medium; at least a thousandth.
    pub fn of(ratio: f64) -> Ratio {
        Ratio { permille: whole((ratio * 1000.0).round()).max(1) }
    }

    /// As a number.
    pub fn as_f64(self) -> f64 {
        self.permille as f64 / 1000.0
    }

    /// Bytes on the medium; at least one for a block that is not empty.
    pub fn compressed(self, host_bytes: u64) -> u64 {
        let bytes = (u128::from(host_bytes) * 1000).div_ceil(u128::from(self.permille));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// The rate of the host that gives this native rate.
    pub fn host_rate(self, native_bytes_per_second: u64) -> u64 {
        let rate = u128::from(native_bytes_per_second) * u128::from(self.permille) / 1000;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// Several blocks as one, to compute days of tape faster: the same drive with a command that costs
/// as much as those of the blocks together. Times stay the same, except for the coarser steps.
pub fn coalesced(
    parameters: &TapeParameters,
    block_bytes: u64,
    blocks: u64,
) -> (TapeParameters, u64) {
    let overhead = parameters.command_overhead_ns;
    let value = overhead.value.saturating_mul(blocks.max(1));
    let command_overhead_ns = Known { value, origin: overhead.origin };
    let together = TapeParameters { command_overhead_ns, ..parameters.clone() };
    (together, block_bytes * blocks.max(1))
}

/// One thread that reads and then writes.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// Of a read and of a write.
    pub block_bytes: u64,
    /// Rate of its source while it reads.
    pub source_bytes_per_second: u64,
    /// Data.
    pub ratio: Ratio,
}

/// The result of a program's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramRun {
    /// Time until everything is on the medium and the closing filemark is written.
    pub elapsed_ns: u64,
    /// Bytes that were written; less than requested if the medium ended.
    pub host_bytes: u64,
    /// How often the writer waited for the ring to fill, including the start.
    pub fills: u64,
    /// Time in which the writer waited for data.
    pub starved_ns: u64,
    /// Time in which the source waited for room in the ring.
    pub source_blocked_ns: u64,
}

/// Runs it; the last block may be short. The file is closed by a synchronising filemark, as the
/// kernel's driver does on close.
pub fn copy(tape: &mut TapeModel, program: Copy, total_bytes: u64) -> ProgramRun {
    let began_ns = tape.now_ns();
    let (mut now_ns, mut written, mut starved_ns) = (began_ns, 0, 0);
    while written < total_bytes {
        let bytes = program.block_bytes.min(total_bytes - written);
        let read_ns = transfer_ns(bytes, program.source_bytes_per_second);
        starved_ns += read_ns;
        let done = tape.write(now_ns + read_ns, bytes, program.ratio.compressed(bytes));
        if done.zone == Zone::End {
            break;
        }
        now_ns = done.at_ns;
        written += bytes;
    }
    now_ns = tape.filemark(now_ns, Filemark::Synchronising);
    ProgramRun {
        elapsed_ns: now_ns - began_ns,
        host_bytes: written,
        fills: 0,
        starved_ns,
        source_blocked_ns: 0,
    }
}

/// A source and a writer with a ring between them.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Rate of the source while it does not wait.
    pub source_bytes_per_second: u64,
    /// Memory between the two.
    pub ring_bytes: u64,
    /// How full the ring has to be before the writer starts and continues; 0 means that it never
    /// waits.
    pub start_fill_percent: u8,
    /// Limit on the writer's rate while it drains the ring.
    pub drain_bytes_per_second: Option<u64>,
    /// Size of one write.
    pub block_bytes: u64,
    /// Data.
    pub ratio: Ratio,
}

/// Runs it until the tape holds everything or ends; closed by a synchronising filemark.
pub fn stream(tape: &mut TapeModel, program: Stream, total_bytes: u64) -> ProgramRun {
    let began_ns = tape.now_ns();
    let mut ring = Ring::new(&program, total_bytes);
    let mut now_ns = began_ns;
    let mut run =
        ProgramRun { elapsed_ns: 0, host_bytes: 0, fills: 0, starved_ns: 0, source_blocked_ns: 0 };
    let mut is_ended = false;
    while run.host_bytes < total_bytes && !is_ended {
        let wait_ns = ring.fill_up(&program);
        run.fills += 1;
        run.starved_ns += wait_ns;
        now_ns += wait_ns;
        let (burst_ns, mut burst_bytes) = (now_ns, 0);
        while let Some(bytes) = ring.next_block(&program) {
            let done = tape.write(now_ns, bytes, program.ratio.compressed(bytes));
            if done.zone == Zone::End {
                is_ended = true;
                break;
            }
            burst_bytes += bytes;
            run.host_bytes += bytes;
            let held_ns = match program.drain_bytes_per_second {
                // The rest after the end of the source is not held back.
                Some(rate) if ring.source_left > 0 => burst_ns + transfer_ns(burst_bytes, rate),
                _ => 0,
            };
            let free_ns = done.at_ns.max(held_ns);
            run.source_blocked_ns += ring.pass(&program, free_ns - now_ns);
            ring.take(bytes);
            now_ns = free_ns;
        }
    }
    now_ns = tape.filemark(now_ns, Filemark::Synchronising);
    run.elapsed_ns = now_ns - began_ns;
    run
}

/// The fill of the ring, in billionths of a byte.
struct Ring {
    fill: u128,
    capacity: u128,
    source_left: u128,
}

const NANOBYTES: u128 = BILLION as u128;

impl Ring {
    fn new(program: &Stream, total_bytes: u64) -> Ring {
        let capacity = u128::from(program.ring_bytes.max(program.block_bytes)) * NANOBYTES;
        Ring { fill: 0, capacity, source_left: u128::from(total_bytes) * NANOBYTES }
    }

    /// Time until the writer starts.
    fn fill_up(&mut self, program: &Stream) -> u64 {
        let start = self.capacity * u128::from(program.start_fill_percent.min(100)) / 100;
        let block = u128::from(program.block_bytes) * NANOBYTES;
        let target = start.max(block).min(self.fill + self.source_left);
        let missing = target.saturating_sub(self.fill);
        let rate = u128::from(program.source_bytes_per_second.max(1));
        let wait_ns = u64::try_from(missing.div_ceil(rate)).unwrap_or(u64::MAX);
        self.fill += missing;
        self.source_left -= missing;
        wait_ns
    }

    /// Lets the source work for this time, and counts the part that it waits for room.
    fn pass(&mut self, program: &Stream, ns: u64) -> u64 {
        let rate = u128::from(program.source_bytes_per_second.max(1));
        let offered = (u128::from(ns) * rate).min(self.source_left);
        let taken = offered.min(self.capacity - self.fill);
        self.fill += taken;
        self.source_left -= taken;
        u64::try_from((offered - taken) / rate).unwrap_or(u64::MAX)
    }

    /// A whole block, or a short last one.
    fn next_block(&self, program: &Stream) -> Option<u64> {
        let block = u128::from(program.block_bytes) * NANOBYTES;
        if self.fill >= block {
            Some(program.block_bytes)
        } else if self.source_left == 0 && self.fill > 0 {
            u64::try_from(self.fill / NANOBYTES).ok()
        } else {
            None
        }
    }

    fn take(&mut self, bytes: u64) {
        self.fill -= u128::from(bytes) * NANOBYTES;
    }
}
