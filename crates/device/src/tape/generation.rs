//! The generations of LTO: speeds, capacities, buffers, as makers and drives tell them.
//!
//! Facts as data, each with how sure it is; whoever computes with them adds what he assumes and says
//! so. Rates and capacities are native, that is, of what is on the medium. The numbers are those of
//! the project's collection of facts on LTO; wraps are those of the format specifications that the
//! LTO program publishes for each generation.
//!
//! Not here: what a drive at hand says of itself, which is read from the drive.

/// How sure a fact is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// In a manual of the maker.
    Maker,
    /// Reported by a drive or by somebody who measured.
    Reported,
    /// Believed, not confirmed.
    Assumed,
}

impl Certainty {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Maker => "maker",
            Certainty::Reported => "reported",
            Certainty::Assumed => "assumed",
        }
    }
}

/// What is known of the drives and media of one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// As it is written on a command line: `lto7`.
    pub name: &'static str,
    /// Native.
    pub capacity_bytes: u64,
    /// Native rates to which the drive matches its speed, ascending; only the two ends of the range
    /// where `steps_known` is false.
    pub speeds_bytes_per_second: &'static [u64],
    /// Whether the steps are known one by one.
    pub steps_known: bool,
    /// Memory of the drive.
    pub buffer_bytes: u64,
    /// How sure the memory is.
    pub buffer_certainty: Certainty,
    /// Ratio of compression that the maker claims, in percent.
    pub claimed_ratio_percent: u64,
    /// How sure everything is that has no certainty of its own.
    pub certainty: Certainty,
    /// Most that the drive takes from the host.
    pub host_bytes_per_second: Option<u64>,
    /// Highest speed of drives of half height.
    pub half_height_bytes_per_second: Option<u64>,
    /// Time to load a medium.
    pub load_ns: Option<u64>,
    /// Time to unload a rewound medium.
    pub unload_ns: Option<u64>,
    /// Average time of a rewind.
    pub rewind_average_ns: Option<u64>,
    /// Average time to find a place.
    pub locate_average_ns: Option<u64>,
    /// Passes over the length of the medium.
    pub wraps: u32,
    /// How sure the number of wraps is.
    pub wraps_certainty: Certainty,
}

/// Stop, reposition and restart; 2.0 to 3.5 s are assumed in the field, no maker publishes it.
pub const BACK_HITCH_NS: u64 = 2_500_000_000;
/// Of host and adapter, for one write(2). Assumed.
pub const COMMAND_OVERHEAD_NS: u64 = 50_000;
/// What a synchronising filemark takes once the buffer is empty. Assumed.
pub const FILEMARK_SYNCHRONISE_NS: u64 = 3_000_000_000;
/// Change of direction at the end of a wrap, as the emulator of the LTFS reference counts it.
pub const WRAP_TURN_NS: u64 = 2_000_000_000;

const GB: u64 = 1_000_000_000;
const MB: u64 = 1_000_000;
const KB: u64 = 1_000;
const SECOND_NS: u64 = 1_000_000_000;

/// What the tables below have in common.
const UNKNOWN: Generation = Generation {
    name: "",
    capacity_bytes: 0,
    speeds_bytes_per_second: &[],
    steps_known: false,
    buffer_bytes: 0,
    buffer_certainty: Certainty::Assumed,
    claimed_ratio_percent: 200,
    certainty: Certainty::Assumed,
    host_bytes_per_second: None,
    half_height_bytes_per_second: None,
    load_ns: None,
    unload_ns: None,
    rewind_average_ns: None,
    locate_average_ns: None,
    wraps: 1,
    wraps_certainty: Certainty::Reported,
};

/// All generations, oldest first.
pub const GENERATIONS: [Generation; 10] = [
    Generation {
        name: "lto1",
        capacity_bytes: 100 * GB,
        speeds_bytes_per_second: &[7_500 * KB, 15 * MB],
        buffer_bytes: 32 * MB,
        wraps: 48,
        ..UNKNOWN
    },
    Generation {
        name: "lto2",
        capacity_bytes: 200 * GB,
        speeds_bytes_per_second: &[17_500 * KB, 21_900 * KB, 26_250 * KB, 30_630 * KB, 35 * MB],
        steps_known: true,
        buffer_bytes: 64 * MB,
        certainty: Certainty::Maker,
        wraps: 64,
        ..UNKNOWN
    },
    Generation {
        name: "lto3",
        capacity_bytes: 400 * GB,
        speeds_bytes_per_second: &[40 * MB, 50 * MB, 60 * MB, 70 * MB, 80 * MB],
        steps_known: true,
        buffer_bytes: 64 * MB,
        buffer_certainty: Certainty::Maker,
        certainty: Certainty::Maker,
        wraps: 44,
        ..UNKNOWN
    },
    Generation {
        name: "lto4",
        capacity_bytes: 800 * GB,
        speeds_bytes_per_second: &[30 * MB, 120 * MB],
        buffer_bytes: 128 * MB,
        wraps: 56,
        ..UNKNOWN
    },
    Generation {
        name: "lto5",
        capacity_bytes: 1500 * GB,
        speeds_bytes_per_second: &[40 * MB, 140 * MB],
        buffer_bytes: 256 * MB,
        host_bytes_per_second: Some(280 * MB),
        load_ns: Some(12 * SECOND_NS),
        unload_ns: Some(17 * SECOND_NS),
        wraps: 80,
        ..UNKNOWN
    },
    Generation {
        name: "lto6",
        capacity_bytes: 2500 * GB,
        speeds_bytes_per_second: &[40 * MB, 160 * MB],
        buffer_bytes: 418 * MB,
        buffer_certainty: Certainty::Reported,
        claimed_ratio_percent: 250,
        host_bytes_per_second: Some(400 * MB),
        load_ns: Some(12 * SECOND_NS),
        unload_ns: Some(17 * SECOND_NS),
        wraps: 136,
        ..UNKNOWN
    },
    Generation {
        name: "lto7",
        capacity_bytes: 6000 * GB,
        speeds_bytes_per_second: &[
            101_460 * KB,
            120_110 * KB,
            138_520 * KB,
            157_670 * KB,
            175_460 * KB,
            194_260 * KB,
            213_060 * KB,
            231_860 * KB,
            250_660 * KB,
            268_560 * KB,
            287_520 * KB,
            306 * MB,
        ],
        steps_known: true,
        buffer_bytes: 1000 * MB,
        claimed_ratio_percent: 250,
        certainty: Certainty::Maker,
        host_bytes_per_second: Some(750 * MB),
        load_ns: Some(15 * SECOND_NS),
        unload_ns: Some(20 * SECOND_NS),
        wraps: 112,
        ..UNKNOWN
    },
    Generation {
        name: "lto8",
        capacity_bytes: 12_000 * GB,
        speeds_bytes_per_second: &[
            112 * MB,
            135 * MB,
            157_500 * KB,
            180 * MB,
            203 * MB,
            226 * MB,
            249_500 * KB,
            273 * MB,
            306_400 * KB,
            318 * MB,
            341 * MB,
            365 * MB,
        ],
        steps_known: true,
        buffer_bytes: 1000 * MB,
        claimed_ratio_percent: 250,
        certainty: Certainty::Maker,
        host_bytes_per_second: Some(750 * MB),
        half_height_bytes_per_second: Some(306_400 * KB),
        load_ns: Some(15 * SECOND_NS),
        unload_ns: Some(24 * SECOND_NS),
        wraps: 208,
        ..UNKNOWN
    },
    Generation {
        name: "lto9",
        capacity_bytes: 18_000 * GB,
        speeds_bytes_per_second: &[
            177 * MB,
            203 * MB,
            223 * MB,
            244 * MB,
            263 * MB,
            284 * MB,
            305 * MB,
            325 * MB,
            347 * MB,
            366 * MB,
            385 * MB,
            408 * MB,
        ],
        steps_known: true,
        buffer_bytes: 1000 * MB,
        claimed_ratio_percent: 250,
        certainty: Certainty::Maker,
        host_bytes_per_second: Some(1000 * MB),
        half_height_bytes_per_second: Some(284 * MB),
        load_ns: Some(17 * SECOND_NS),
        unload_ns: Some(30 * SECOND_NS),
        rewind_average_ns: Some(55 * SECOND_NS),
        locate_average_ns: Some(45 * SECOND_NS),
        wraps: 280,
        ..UNKNOWN
    },
    Generation {
        name: "lto10",
        capacity_bytes: 30_000 * GB,
        speeds_bytes_per_second: &[
            157 * MB,
            176 * MB,
            195 * MB,
            214 * MB,
            234 * MB,
            253 * MB,
            272 * MB,
            291 * MB,
            311 * MB,
            330 * MB,
            349 * MB,
            368 * MB,
            387 * MB,
            407 * MB,
        ],
        steps_known: true,
        buffer_bytes: 1000 * MB,
        claimed_ratio_percent: 250,
        certainty: Certainty::Maker,
        host_bytes_per_second: Some(1200 * MB),
        load_ns: Some(12 * SECOND_NS),
        unload_ns: Some(27 * SECOND_NS),
        rewind_average_ns: Some(62 * SECOND_NS),
        locate_average_ns: Some(65 * SECOND_NS),
        wraps: 280,
        wraps_certainty: Certainty::Assumed,
        ..UNKNOWN
    },
];

impl Generation {
    /// The generation of that name: `lto7`, `LTO-7`, `lto 7`.
    pub fn named(name: &str) -> Option<&'static Generation> {
        let plain: String =
            name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        GENERATIONS.iter().find(|generation| generation.name == plain)
    }

    /// The lowest native rate at which the drive does not stop.
    pub fn lowest_bytes_per_second(&self) -> u64 {
        self.speeds_bytes_per_second.first().copied().unwrap_or(0)
    }

    /// The highest native rate.
    pub fn highest_bytes_per_second(&self) -> u64 {
        self.speeds_bytes_per_second.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_together() {
        for generation in &GENERATIONS {
            let speeds = generation.speeds_bytes_per_second;
            assert!(speeds.is_sorted() && speeds.len() >= 2, "{}", generation.name);
            assert_eq!(generation.steps_known, speeds.len() > 2, "{}", generation.name);
            let seconds = generation.capacity_bytes / generation.highest_bytes_per_second();
            // A full medium takes between an hour and a day at the highest speed.
            assert!((3600..86_400).contains(&seconds), "{}: {seconds} s", generation.name);
            assert!(generation.buffer_bytes >= 32 * MB && generation.wraps > 1);
        }
        assert!(GENERATIONS.is_sorted_by_key(|generation| generation.capacity_bytes));
    }

    #[test]
    fn names_are_found_as_people_write_them() {
        for name in ["lto7", "LTO-7", "Lto 7"] {
            assert_eq!(Generation::named(name).map(|found| found.name), Some("lto7"));
        }
        assert_eq!(Generation::named("dlt"), None);
        assert_eq!(Generation::named("lto10").map(Generation::lowest_bytes_per_second), {
            Some(157 * MB)
        });
    }
}
