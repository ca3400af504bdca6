//! Mechanical times and interface limits by generation, which only the timing model needs.
//!
//! Loading, unloading, winding and the host's limit come from the project's collection of facts on
//! LTO. The numbers of wraps are those that the LTO program publishes with each format; LTO-10 is
//! assumed to have those of LTO-9, and to wind the longer Premium medium at the same speed (1337 m
//! against 1035 m).

use super::generation::{Certainty, Generation};

/// Facts about one generation, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanics {
    /// Most that the drive accepts from the host.
    pub host_bytes_per_second: Option<u64>,
    /// Time to load a medium.
    pub load_ns: Option<u64>,
    /// Time to unload a rewound medium.
    pub unload_ns: Option<u64>,
    /// Average time of a rewind.
    pub rewind_average_ns: Option<u64>,
    /// Passes over the length of the medium.
    pub wraps: u64,
    /// How certain the number of wraps is.
    pub wraps_certainty: Certainty,
    /// Ratio of compression that the maker claims, in percent.
    pub claimed_ratio_percent: u64,
}

const fn known(wraps: u64, claimed_ratio_percent: u64) -> Mechanics {
    Mechanics {
        host_bytes_per_second: None,
        load_ns: None,
        unload_ns: None,
        rewind_average_ns: None,
        wraps,
        wraps_certainty: Certainty::Reported,
        claimed_ratio_percent,
    }
}

const fn timed(wraps: u64, ratio: u64, host_mb: u64, load_s: u64, unload_s: u64) -> Mechanics {
    Mechanics {
        host_bytes_per_second: Some(host_mb * 1_000_000),
        load_ns: Some(load_s * 1_000_000_000),
        unload_ns: Some(unload_s * 1_000_000_000),
        ..known(wraps, ratio)
    }
}

const fn rewound(mechanics: Mechanics, average_s: u64) -> Mechanics {
    Mechanics { rewind_average_ns: Some(average_s * 1_000_000_000), ..mechanics }
}

/// By number of the generation, from 1.
const MECHANICS: [Mechanics; 10] = [
    known(48, 200),
    known(64, 200),
    known(44, 200),
    known(56, 200),
    timed(80, 200, 280, 12, 17),
    timed(136, 250, 400, 12, 17),
    timed(112, 250, 750, 15, 20),
    timed(208, 250, 750, 15, 24),
    rewound(timed(280, 250, 1000, 17, 30), 55),
    Mechanics { wraps_certainty: Certainty::Assumed, ..rewound(timed(280, 250, 1200, 12, 27), 62) },
];

/// Media without drives of their own name: LTO-7 media that LTO-8 drives write with more wraps, and
/// the longer medium for LTO-10 drives.
const OTHER_MEDIA: [(&str, Mechanics); 2] =
    [("LTO-7 Type M", timed(168, 250, 750, 15, 24)), ("LTO-10 Premium", rewound(MECHANICS[9], 80))];

/// The facts about a generation; for a generation after the table's last, those of the last.
pub fn of(generation: &Generation) -> &'static Mechanics {
    if let Some((_, other)) = OTHER_MEDIA.iter().find(|(name, _)| *name == generation.name) {
        return other;
    }
    let index = usize::from(generation.number.max(1)) - 1;
    &MECHANICS[index.min(MECHANICS.len() - 1)]
}
