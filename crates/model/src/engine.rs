//! A model of the engine: the processor time of a backup, and how that limits the rate of a disk.
//!
//! Every stage costs processor time for each byte and for each file. Most of it can be spread over
//! all cores; the rest is serial, because the archive has an order. A backup then takes as long as
//! its slowest part: the source, the processors, or the serial rest. The source keeps requests
//! under way during the work, so the times are not added up (Amdahl's law for the rest, the
//! bottleneck law for the parts; Denning and Buzen, "The operational analysis of queueing network
//! models", Computing Surveys 10, 1978).
//!
//! The costs are those of one machine, two cores of a Xeon with AVX-512 and a large cache, measured
//! by the commands given beside them. Other processors differ by a factor of two and more. The
//! model has no limit for the memory that all cores share: `docs/design/scaling.md` says where it
//! stops to hold.

/// Processor time of a stage in nanoseconds of one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageCost {
    /// Its name with `-v`.
    pub name: &'static str,
    pub byte_ns: f64,
    pub file_ns: f64,
    /// Whether a single thread does it, in the order of the archive.
    pub is_serial: bool,
}

/// The origin of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From a disk, past the page cache where files are large.
    Disk,
    /// From memory: the page cache holds them.
    Memory,
}

/// The data to back up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Bytes of all files.
    pub bytes: f64,
    pub files: f64,
    pub origin: Origin,
}

/// The limit of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineLimit {
    /// The disk, or another source.
    Source,
    /// All cores together.
    Processors,
    /// The serial work of one thread, in order.
    Order,
}

/// How long a backup takes, and what limits it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Foretold {
    pub seconds: f64,
    /// The slowest part.
    pub limit: EngineLimit,
}

const fn parallel(name: &'static str, byte_ns: f64, file_ns: f64) -> StageCost {
    StageCost { name, byte_ns, file_ns, is_serial: false }
}

const fn serial(name: &'static str, byte_ns: f64, file_ns: f64) -> StageCost {
    StageCost { name, byte_ns, file_ns, is_serial: true }
}

/// Costs of the stages without compression, into `/dev/null`: processor times of the runs of `cargo
/// xtask peers` (`small-warm-null`, `small-cold-null`, `large-cold-null`, `large-warm-null`).
/// System time counts as reading, user time as hashing and describing.
pub fn stages(origin: Origin) -> [StageCost; 5] {
    // Direct reads cost the kernel their requests. Cached reads cost a copy, after which the hash
    // finds the bytes in the processor's cache more often. Uncached files also cost their inodes
    // and pages.
    let [read_byte_ns, hash_byte_ns] = match origin {
        Origin::Disk => [0.039, 0.24],
        Origin::Memory => [0.19, 0.17],
    };
    let [read_file_ns, describe_file_ns] = match origin {
        Origin::Disk => [16_800.0, 3_700.0],
        Origin::Memory => [3_900.0, 2_300.0],
    };
    [
        parallel("read", read_byte_ns, read_file_ns),
        parallel("describe", 0.0, describe_file_ns),
        // The content hash and the block checksums.
        parallel("hash", hash_byte_ns, 0.0),
        // `cargo run --release -p runs --example serial_rest`.
        serial("order", 0.0017, 55.0),
        // The walk: one thread collects what others have listed. Not measured separately: an upper
        // bound from the time of the main thread.
        serial("scan", 0.0, 300.0),
    ]
}

impl Work {
    /// Processor time of all stages, and of the serial work, in seconds.
    pub fn processor_seconds(&self) -> (f64, f64) {
        let seconds =
            |stage: &StageCost| (self.bytes * stage.byte_ns + self.files * stage.file_ns) / 1e9;
        let stages = stages(self.origin);
        let all = stages.iter().map(seconds).sum();
        // Each serial stage has one thread, so the longest counts.
        let in_order = stages.iter().filter(|stage| stage.is_serial).map(seconds);
        (all, in_order.fold(0.0, f64::max))
    }

    /// Predicts the time with this many cores, from a source of this many bytes a second.
    pub fn foretell(&self, cores: usize, source_bytes_per_second: f64) -> Foretold {
        let (all, in_order) = self.processor_seconds();
        let parts = [
            (self.bytes / source_bytes_per_second, EngineLimit::Source),
            (all / cores.max(1) as f64, EngineLimit::Processors),
            (in_order, EngineLimit::Order),
        ];
        let slowest = parts.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let (seconds, limit) = slowest.unwrap_or((0.0, EngineLimit::Source));
        Foretold { seconds, limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: Work = Work { bytes: 4294967296.0, files: 1.0, origin: Origin::Disk };
    const SMALL: Work = Work { bytes: 9e8, files: 1e5, origin: Origin::Memory };

    #[test]
    fn the_slowest_part_is_the_limit() {
        let foretold = LARGE.foretell(2, 1e9);
        assert_eq!(foretold.limit, EngineLimit::Source);
        assert!((foretold.seconds - 4.294967296).abs() < 1e-9);
        assert_eq!(LARGE.foretell(1, 14e9).limit, EngineLimit::Processors);
        assert_eq!(LARGE.foretell(1000, 1e15).limit, EngineLimit::Order);
        assert_eq!(SMALL.foretell(2, f64::INFINITY).limit, EngineLimit::Processors);
    }

    #[test]
    fn more_cores_never_take_longer_and_never_less_than_the_order() {
        for work in [LARGE, SMALL] {
            let (_, in_order) = work.processor_seconds();
            let times = [1, 2, 4, 8, 16, 64].map(|cores| work.foretell(cores, 14e9).seconds);
            assert!(times.is_sorted_by(|more, fewer| more >= fewer), "{times:?}");
            assert!(times.iter().all(|&seconds| seconds >= in_order));
        }
    }

    #[test]
    fn the_order_costs_no_more_than_was_asked_for() {
        // 20 ms of one core for each GB, one microsecond for each file.
        for stage in stages(Origin::Disk).iter().filter(|stage| stage.is_serial) {
            assert!(stage.byte_ns <= 0.020 && stage.file_ns <= 1000.0, "{stage:?}");
        }
    }
}
