//! Properties of factors and measures, by their names: one table of each.
//!
//! Plans and records may use any names, with the unit as the last word. A factor that is in no
//! table is an ordinary setting; a measure that is in no table is only recorded.

use base::format::{duration, rate, size};
use base::rounding::Rounding;

use crate::record::{Cell, Level, Role};

/// Properties of a factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownFactor {
    /// As in a record.
    pub name: &'static str,
    /// Title in words, if the name without its unit is not clear.
    title: Option<&'static str>,
    /// Whether the user chooses its level, unless an experiment says otherwise.
    pub role: Role,
    /// Whether the judgement averages over its levels, which you do not choose by their rate.
    pub is_condition: bool,
    /// Whether a person or a robot has to change it, so that it is changed as rarely as possible.
    pub is_hard_to_change: bool,
    /// The words around the results of a curve through its levels.
    pub curve: CurveWords,
    /// Whether the kernel reads the next window while the current one is read.
    pub reads_next_window: bool,
    /// Whether its levels are numbers of requests, so that the bytes in flight are those of the
    /// requests.
    pub counts_requests: bool,
}

/// The words around a fixed time and the rate without it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveWords {
    /// Before the time.
    pub time: &'static str,
    /// After the time.
    pub besides: &'static str,
    /// Before the rate.
    pub rate: &'static str,
}

const REQUESTS: CurveWords = CurveWords {
    time: "each request takes",
    besides: " besides its data",
    rate: "the data alone pass at",
};

const fn setting(name: &'static str) -> KnownFactor {
    KnownFactor {
        name,
        title: None,
        role: Role::Setting,
        is_condition: false,
        is_hard_to_change: false,
        curve: REQUESTS,
        reads_next_window: false,
        counts_requests: false,
    }
}

const fn load(name: &'static str) -> KnownFactor {
    KnownFactor { role: Role::Load, ..setting(name) }
}

const FACTORS: &[KnownFactor] = &[
    load("path"),
    load("load"),
    load("read_percent"),
    load("fsync_every"),
    load("operation"),
    load("data"),
    KnownFactor { is_condition: true, ..load("framing") },
    KnownFactor { is_condition: true, ..load("file_bytes") },
    KnownFactor { is_condition: true, ..load("files") },
    KnownFactor { is_condition: true, is_hard_to_change: true, ..setting("medium") },
    setting("drive_compression"),
    setting("ring_bytes"),
    setting("engine"),
    setting("cache"),
    setting("pages"),
    setting("jobs"),
    setting("readers"),
    setting("scheduler"),
    // Without flushes a power loss may destroy data that were reported as safe: no rate is a reason
    // to set that.
    load("write_cache"),
    KnownFactor { title: Some("max_sectors"), ..setting("max_sectors_bytes") },
    setting("nomerges"),
    KnownFactor { title: Some("nr_requests"), ..setting("nr_requests") },
    KnownFactor {
        curve: CurveWords {
            time: "a request is answered after",
            besides: "",
            rate: "with enough requests in flight the rate reaches",
        },
        counts_requests: true,
        ..setting("depth")
    },
    KnownFactor {
        title: Some("read-ahead"),
        curve: CurveWords {
            time: "the read-ahead has to bridge",
            besides: "",
            rate: "a large one reaches",
        },
        reads_next_window: true,
        ..setting("read_ahead_bytes")
    },
    KnownFactor { title: Some("read block size"), ..setting("read_block_bytes") },
    KnownFactor { title: Some("block size"), ..setting("block_bytes") },
];

/// The properties of a factor.
pub fn factor(name: &str) -> KnownFactor {
    FACTORS.iter().copied().find(|known| known.name == name).unwrap_or(setting(""))
}

/// Bytes in flight per unit of a factor's level.
pub fn bytes_of_one(name: &str, cell: &Cell) -> f64 {
    let number = |name: &str| match cell.get(name) {
        Some(Level::Number(number)) => *number as f64,
        _ => 1.0,
    };
    if factor(name).counts_requests { number("block_bytes") * number("jobs") } else { 1.0 }
}

/// Bytes in flight at a level above zero: its place on a curve.
pub fn bytes_at_once(name: &str, cell: &Cell) -> Option<f64> {
    match cell.get(name)? {
        Level::Number(number) if *number > 0 => Some(*number as f64 * bytes_of_one(name, cell)),
        _ => None,
    }
}

/// The factors that are changed as rarely as possible.
pub fn hard_to_change() -> impl Iterator<Item = &'static str> {
    FACTORS.iter().filter(|known| known.is_hard_to_change).map(|known| known.name)
}

/// The factors that may be recommended, because the user chooses them.
pub fn settings() -> impl Iterator<Item = &'static str> {
    let chosen = |known: &&KnownFactor| known.role == Role::Setting && !known.is_condition;
    FACTORS.iter().filter(chosen).map(|known| known.name)
}

/// A factor's name in words: `block_bytes` is the block size.
pub fn title(name: &str) -> String {
    let plain = || name.strip_suffix("_bytes").unwrap_or(name).replace('_', " ");
    factor(name).title.map_or_else(plain, str::to_owned)
}

/// A measure that is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// As in a record.
    pub name: &'static str,
    /// Head of its column in the table of cells, if it has one.
    pub head: Option<&'static str>,
    /// Its properties as a cost, if less of it is better.
    pub cost: Option<Cost>,
}

/// When and how a measure is reported as a cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Description in words.
    pub what: &'static str,
    /// Factor of growth from which on there is a sentence.
    pub growth: f64,
    /// Whether 1 is the ideal value, so that a larger value is reported without a comparison.
    pub is_of_one: bool,
    /// Whether it counts the disks and caches of the whole host.
    pub is_of_the_host: bool,
    /// Whether it is set and not measured, so that one run is enough.
    pub is_exact: bool,
    /// The factors that can affect it, if they are known.
    only: Option<&'static [&'static str]>,
}

impl Cost {
    /// Whether a factor can affect it at all.
    pub fn acts(&self, factor: &str) -> bool {
        self.only.is_none_or(|only| only.contains(&factor))
    }
}

/// Factors that affect what the page cache keeps, and how much is read in vain.
const CACHE_SETTINGS: &[&str] =
    &["engine", "cache", "pages", "jobs", "readers", "read_ahead_bytes"];

/// Settings of a block device's queue, which favour some requests over others.
pub const QUEUE_SETTINGS: &[&str] =
    &["scheduler", "write_cache", "max_sectors_bytes", "nomerges", "nr_requests"];

const fn column(name: &'static str, head: &'static str) -> Measure {
    Measure { name, head: Some(head), cost: None }
}

const fn hidden(name: &'static str) -> Measure {
    Measure { name, head: None, cost: None }
}

impl Measure {
    const fn costs(self, growth: f64, what: &'static str) -> Measure {
        let cost = Cost {
            what,
            growth,
            is_of_one: false,
            is_of_the_host: false,
            is_exact: false,
            only: None,
        };
        Measure { cost: Some(cost), ..self }
    }

    const fn of_the_host(self, only: Option<&'static [&'static str]>) -> Measure {
        let Some(cost) = self.cost else { return self };
        Measure { cost: Some(Cost { is_of_the_host: true, only, ..cost }), ..self }
    }

    const fn by(self, only: &'static [&'static str]) -> Measure {
        let Some(cost) = self.cost else { return self };
        Measure { cost: Some(Cost { only: Some(only), ..cost }), ..self }
    }

    const fn exact(self) -> Measure {
        let Some(cost) = self.cost else { return self };
        Measure { cost: Some(Cost { is_exact: true, ..cost }), ..self }
    }

    const fn costs_above_one(self, growth: f64, what: &'static str) -> Measure {
        let Some(cost) = self.costs(growth, what).cost else { return self };
        Measure { cost: Some(Cost { is_of_one: true, ..cost }), ..self }
    }
}

/// In the order of their columns.
const MEASURES: &[Measure] = &[
    column("device_bytes_per_byte", "moved per byte")
        .costs_above_one(1.05, "bytes that the device moves for each requested byte")
        .of_the_host(None),
    column("files_per_second", "files/s"),
    column("fio_iops", "requests/s"),
    column("fio_clat_p50_ns", "half within"),
    column("fio_clat_p99_ns", "99 % within"),
    hidden("fio_read_clat_p99_ns")
        .costs(1.15, "time within which 99 % of the reads are answered")
        .by(QUEUE_SETTINGS),
    hidden("fio_write_clat_p99_ns")
        .costs(1.15, "time within which 99 % of the writes are answered")
        .by(QUEUE_SETTINGS),
    hidden("fio_fsync_p99_ns")
        .costs(1.15, "time within which 99 % of the fsyncs return")
        .by(QUEUE_SETTINGS),
    column("device_await_ns", "at the device"),
    column("device_request_bytes", "device request"),
    column("device_merged_percent", "merged"),
    column("device_depth", "at once"),
    column("without_filemark_bytes_per_second", "without filemark"),
    column("filemark_seconds", "filemark"),
    column("drive_compression_ratio", "compressed"),
    column("drive_back_hitches", "drive stops")
        .costs(1.0, "stops of the drive in a run, on average"),
    column("random_read_p50_ns", "random read")
        .costs(1.15, "median latency of a random read with this setting")
        .of_the_host(None),
    hidden("random_read_device_bytes")
        .costs(1.15, "bytes read from the device for a random read")
        .of_the_host(None),
    hidden("reclaimed_bytes_per_byte")
        .costs(1.15, "bytes pushed out of the page cache for each byte read")
        .of_the_host(Some(CACHE_SETTINGS)),
    column("processor_seconds", "processor").costs(1.15, "processor time of a run"),
    column("processor_ns_per_byte", "processor per byte")
        .costs(1.15, "processor time for each byte"),
    hidden("memory_bytes").costs(1.15, "memory for buffers").exact(),
];

/// The measures that have a column, with its head, in the order of the columns.
pub fn columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    MEASURES.iter().filter_map(|measure| Some((measure.name, measure.head?)))
}

/// The measures that are costs: those of the machine, then those of a drive.
pub fn costs() -> Vec<(&'static str, Cost)> {
    let mut costs: Vec<(&str, Cost)> =
        MEASURES.iter().filter_map(|measure| Some((measure.name, measure.cost?))).collect();
    costs.sort_by_key(|(name, _)| name.starts_with("drive_"));
    costs
}

/// The unit of a factor or measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    BytesPerSecond,
    Seconds,
    Nanoseconds,
    /// Nanoseconds for each byte.
    NanosecondsPerByte,
    /// Something for each byte.
    PerByte,
    /// Hundredths.
    Percent,
    /// A plain number.
    Number,
}

impl Unit {
    /// From the last words of a name.
    pub fn of(name: &str) -> Unit {
        const SUFFIXES: &[(&str, Unit)] = &[
            ("_ns_per_byte", Unit::NanosecondsPerByte),
            ("_per_byte", Unit::PerByte),
            ("_bytes_per_second", Unit::BytesPerSecond),
            ("_seconds", Unit::Seconds),
            ("_ns", Unit::Nanoseconds),
            ("_bytes", Unit::Bytes),
            ("_percent", Unit::Percent),
        ];
        let found = SUFFIXES.iter().find(|(suffix, _)| name.ends_with(suffix));
        found.map_or(Unit::Number, |(_, unit)| *unit)
    }

    /// A value as people read it.
    pub fn shown(self, value: f64) -> String {
        match self {
            Unit::Bytes => size(value.max(0.0) as u64),
            Unit::BytesPerSecond => rate(value),
            Unit::Seconds => duration(value.max(0.0)),
            Unit::Nanoseconds if value < 1e6 => format!("{:.0} us", value / 1e3),
            Unit::Nanoseconds => duration(value / 1e9),
            Unit::NanosecondsPerByte => format!("{value:.3} ns"),
            Unit::Percent => format!("{value:.0} %"),
            // Three digits, as everywhere: requests a second are not known to 29130.80.
            Unit::PerByte | Unit::Number if value >= 1000.0 => {
                base::format::count(Rounding::digits(3).number(value).parse().unwrap_or(0))
            }
            Unit::PerByte | Unit::Number => Rounding::digits(3).number(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_once() {
        let names = FACTORS.iter().map(|known| known.name);
        let mut names: Vec<&str> = names.chain(MEASURES.iter().map(|known| known.name)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn titles_and_units_are_those_of_the_names() {
        let titles = ["block_bytes", "read_ahead_bytes", "file_bytes", "drive_compression"];
        let expected = ["block size", "read-ahead", "file", "drive compression"];
        assert_eq!(titles.map(title), expected);
        let shown = |name: &str, value: f64| Unit::of(name).shown(value);
        assert_eq!(shown("processor_ns_per_byte", 0.25), "0.250 ns");
        assert_eq!(shown("device_bytes_per_byte", 1.5), "1.50");
        assert_eq!(shown("random_read_p50_ns", 250_000.0), "250 us");
        assert_eq!(shown("device_merged_percent", 12.4), "12 %");
        assert_eq!(shown("fio_iops", 7.0), "7.00");
        assert_eq!(shown("fio_iops", 29_130.80), "29 100");
        assert_eq!(shown("fio_iops", 179.72), "180");
    }

    #[test]
    fn costs_of_the_drive_come_last() {
        assert_eq!(costs().last().unwrap().0, "drive_back_hitches");
        assert_eq!(costs()[0].0, "device_bytes_per_byte");
    }
}
