//! Data of the generations of LTO drives: rates, capacities, buffers, and how certain they are.
//!
//! A drive matches its speed to the host in steps. Below the lowest step it has to stop, go back
//! and start again, so a backup must keep up that rate. Makers publish the steps of some
//! generations, and only the ends of the range of others. Each number has its source.
//!
//! Rates and capacities are native: bytes on the medium, after compression by the drive. If makers
//! differ, the rows of [`Generation::all`] have IBM's speeds, and [`Generation::made_by`] returns
//! those of another maker. Not here: the time that a stop takes, which is a parameter of the model.

use std::fmt;

use super::maker::Maker;

/// The source of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// A manual of a maker of such drives.
    Maker,
    /// A drive or a third party reported it.
    Reported,
    /// Assumed, without confirmation.
    Assumed,
}

impl fmt::Display for Certainty {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Certainty::Maker => "by a maker's manual",
            Certainty::Reported => "as reported by drives or users",
            Certainty::Assumed => "assumed",
        })
    }
}

/// How much of the steps is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    All,
    /// Only the lowest and the highest.
    Ends,
}

/// A generation of drives, writing media of its own generation.
#[derive(Debug, PartialEq, Eq)]
pub struct Generation {
    /// As printed on the cartridge: `LTO-8`.
    pub name: &'static str,
    /// 1 for LTO-1.
    pub number: u8,
    /// The maker of the drive, if known and relevant.
    pub maker: Option<Maker>,
    /// MODE SENSE's code for a medium of this generation (`mt_dsreg`, high byte).
    pub density_code: u8,
    /// How certain the density code is.
    pub density_certainty: Certainty,
    /// Bytes on a medium, uncompressed.
    pub capacity_bytes: u64,
    /// Bytes per second on the medium, ascending.
    pub speeds: &'static [u64],
    /// Whether these are all.
    pub steps: Steps,
    /// How certain the speeds are.
    pub speed_certainty: Certainty,
    /// Highest speed of a half-height drive, if it is lower.
    pub half_height_speed_max: Option<u64>,
    /// The drive's own buffer.
    pub buffer_bytes: u64,
    /// How certain that is.
    pub buffer_certainty: Certainty,
}

impl Generation {
    /// The rate below which the drive stops and goes back, bytes per second on the medium.
    pub fn lowest_speed(&self) -> u64 {
        self.speeds.first().copied().unwrap_or_default()
    }

    /// The highest rate, bytes per second on the medium.
    pub fn highest_speed(&self) -> u64 {
        self.speeds.last().copied().unwrap_or_default()
    }

    /// Whether drives are named after it. Drives of another name write the others: those of LTO-8
    /// write Type M, those of LTO-10 write Premium.
    pub fn has_drives(&self) -> bool {
        self.name == format!("LTO-{}", self.number)
    }

    /// The generation that writes media of this density code.
    pub fn of_density(code: u8) -> Option<&'static Generation> {
        GENERATIONS.iter().find(|generation| generation.density_code == code)
    }

    /// The same generation by this maker, if its speeds differ.
    pub fn made_by(&'static self, maker: Maker) -> &'static Generation {
        self.by_maker().find(|row| row.maker == Some(maker)).unwrap_or(self)
    }

    /// The same generation in the drive with this product name, if the name shows the maker.
    pub fn in_drive(&'static self, product: &str) -> &'static Generation {
        Maker::of_product(product).map_or(self, |maker| self.made_by(maker))
    }

    /// A row for each maker, if they differ.
    pub fn by_maker(&self) -> impl Iterator<Item = &'static Generation> {
        BY_MAKER.iter().filter(|row| row.name == self.name)
    }

    /// Name and maker: `LTO-3 by HP`.
    pub fn title(&self) -> String {
        match self.maker {
            Some(maker) => format!("{} by {maker}", self.name),
            None => self.name.to_owned(),
        }
    }

    /// The generation of a drive, from the product name of INQUIRY: `ULTRIUM-TD8`, `ULT3580-HH7`,
    /// `Ultrium 6-SCSI`, `LTO-5 HH`.
    pub fn of_product(product: &str) -> Option<&'static Generation> {
        let given = product;
        let product = product.to_ascii_uppercase();
        let marks = ["ULTRIUM-TD", "ULTRIUM-HH", "ULT3580-TD", "ULT3580-HH", "ULTRIUM ", "LTO-"];
        let number = marks.iter().find_map(|mark| {
            let rest = &product[product.find(mark)? + mark.len()..];
            let digits = rest.split(|digit: char| !digit.is_ascii_digit()).next()?;
            digits.parse::<u8>().ok()
        })?;
        let name = format!("LTO-{number}");
        let found = GENERATIONS.iter().find(|generation| generation.name == name)?;
        Some(found.in_drive(given))
    }

    /// All of them, oldest first.
    pub fn all() -> &'static [Generation] {
        GENERATIONS
    }
}

/// Makers' megabytes, some of which have two decimals.
const fn mega(hundredths: u64) -> u64 {
    hundredths * 10_000
}

const GB: u64 = 1_000_000_000;
const MB: u64 = 1_000_000;

const LTO_2: &[u64] = &[mega(1750), mega(2190), mega(2625), mega(3063), mega(3500)];
const LTO_3: &[u64] = &[mega(4000), mega(5000), mega(6000), mega(7000), mega(8000)];
const LTO_4: &[u64] = &[mega(3000), mega(12000)];
const LTO_5: &[u64] = &[mega(4000), mega(14000)];
const LTO_6: &[u64] = &[mega(4000), mega(16000)];
const LTO_7: &[u64] = &[
    mega(10146),
    mega(12011),
    mega(13852),
    mega(15767),
    mega(17546),
    mega(19426),
    mega(21306),
    mega(23186),
    mega(25066),
    mega(26856),
    mega(28752),
    mega(30600),
];
const LTO_8: &[u64] = &[
    mega(11200),
    mega(13500),
    mega(15750),
    mega(18000),
    mega(20300),
    mega(22600),
    mega(24950),
    mega(27300),
    mega(30640),
    mega(31800),
    mega(34100),
    mega(36500),
];
const LTO_9: &[u64] = &[
    mega(17700),
    mega(20300),
    mega(22300),
    mega(24400),
    mega(26300),
    mega(28400),
    mega(30500),
    mega(32500),
    mega(34700),
    mega(36600),
    mega(38500),
    mega(40800),
];
const LTO_10: &[u64] = &[
    mega(15700),
    mega(17600),
    mega(19500),
    mega(21400),
    mega(23400),
    mega(25300),
    mega(27200),
    mega(29100),
    mega(31100),
    mega(33000),
    mega(34900),
    mega(36800),
    mega(38700),
    mega(40700),
];

/// Density codes 40h to 60h: SSC-4 and the reference manuals of IBM and HPE drives. 62h and 63h:
/// mt(1) of FreeBSD, which has them from IBM's specifications, drives and tapes (commit 930486f9).
const GENERATIONS: &[Generation] = &[
    Generation {
        speed_certainty: Certainty::Assumed,
        steps: Steps::Ends,
        ..row("LTO-1", 1, 0x40, 100 * GB, &[mega(750), mega(1500)], 32 * MB)
    },
    second(),
    third(),
    fourth(),
    fifth(),
    sixth(),
    row("LTO-7", 7, 0x5c, 6000 * GB, LTO_7, 1000 * MB),
    // An LTO-7 cartridge initialised by an LTO-8 drive.
    Generation {
        speed_certainty: Certainty::Assumed,
        ..row("LTO-7 Type M", 8, 0x5d, 9000 * GB, LTO_7, 1000 * MB)
    },
    Generation {
        half_height_speed_max: Some(mega(30640)),
        ..row("LTO-8", 8, 0x5e, 12_000 * GB, LTO_8, 1000 * MB)
    },
    Generation {
        half_height_speed_max: Some(mega(28400)),
        ..row("LTO-9", 9, 0x60, 18_000 * GB, LTO_9, 1000 * MB)
    },
    Generation {
        density_certainty: Certainty::Reported,
        ..row("LTO-10", 10, 0x62, 30_000 * GB, LTO_10, 1000 * MB)
    },
    // A longer medium for the same drives.
    Generation {
        density_certainty: Certainty::Reported,
        speed_certainty: Certainty::Assumed,
        ..row("LTO-10 Premium", 10, 0x63, 40_000 * GB, LTO_10, 1000 * MB)
    },
];

/// Rows by maker. IBM: five steps for LTO-2 and 3, by its manuals; of LTO-4 to 6 the ends, assumed.
/// HP: 27 to 80 MB/s with LTO-3 media and 10 to 30 with LTO-2, a range of 1:3 (HP Ultrium drives,
/// technical reference manual, generation 3, volume 4, December 2004; the second range is for an
/// LTO-3 drive, so it is only "reported" for an LTO-2 drive); of LTO-4 to 6 the same 1:3, assumed.
const BY_MAKER: &[Generation] = &[
    by_ibm(second()),
    by_hp(second(), &[mega(1000), mega(3000)], Certainty::Reported),
    by_ibm(third()),
    by_hp(third(), &[mega(2700), mega(8000)], Certainty::Maker),
    by_ibm(fourth()),
    by_hp(fourth(), &[mega(4000), mega(12000)], Certainty::Assumed),
    by_ibm(fifth()),
    by_hp(fifth(), &[mega(4700), mega(14000)], Certainty::Assumed),
    by_ibm(sixth()),
    by_hp(sixth(), &[mega(5400), mega(16000)], Certainty::Assumed),
];

const fn by_ibm(row: Generation) -> Generation {
    Generation { maker: Some(Maker::Ibm), ..row }
}

const fn by_hp(row: Generation, ends: &'static [u64], sure: Certainty) -> Generation {
    Generation {
        maker: Some(Maker::Hp),
        speeds: ends,
        steps: Steps::Ends,
        speed_certainty: sure,
        ..row
    }
}

const fn second() -> Generation {
    row("LTO-2", 2, 0x42, 200 * GB, LTO_2, 64 * MB)
}

/// The buffer by HP.
const fn third() -> Generation {
    Generation {
        buffer_certainty: Certainty::Maker,
        ..row("LTO-3", 3, 0x44, 400 * GB, LTO_3, 64 * MB)
    }
}

const fn fourth() -> Generation {
    Generation {
        speed_certainty: Certainty::Assumed,
        steps: Steps::Ends,
        ..row("LTO-4", 4, 0x46, 800 * GB, LTO_4, 128 * MB)
    }
}

const fn fifth() -> Generation {
    Generation {
        speed_certainty: Certainty::Assumed,
        steps: Steps::Ends,
        ..row("LTO-5", 5, 0x58, 1500 * GB, LTO_5, 256 * MB)
    }
}

const fn sixth() -> Generation {
    Generation {
        speed_certainty: Certainty::Assumed,
        steps: Steps::Ends,
        buffer_certainty: Certainty::Reported,
        ..row("LTO-6", 6, 0x5a, 2500 * GB, LTO_6, 418 * MB)
    }
}

/// A row with the values that most generations share.
const fn row(
    name: &'static str,
    number: u8,
    density_code: u8,
    capacity_bytes: u64,
    speeds: &'static [u64],
    buffer_bytes: u64,
) -> Generation {
    Generation {
        name,
        number,
        maker: None,
        density_code,
        density_certainty: Certainty::Maker,
        capacity_bytes,
        speeds,
        steps: Steps::All,
        speed_certainty: Certainty::Maker,
        half_height_speed_max: None,
        buffer_bytes,
        buffer_certainty: Certainty::Assumed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_ascend_and_codes_are_different() {
        for (index, generation) in Generation::all().iter().enumerate() {
            assert!(generation.speeds.len() >= 2, "{}", generation.name);
            assert!(generation.speeds.is_sorted_by(|a, b| a < b), "{}", generation.name);
            let ends = generation.steps == Steps::Ends;
            assert_eq!(ends, generation.speeds.len() == 2, "{}", generation.name);
            let others = &Generation::all()[index + 1..];
            assert!(others.iter().all(|other| other.density_code != generation.density_code));
            let half_height = generation.half_height_speed_max;
            assert!(half_height.is_none_or(|speed| generation.speeds.contains(&speed)));
        }
    }

    #[test]
    fn a_density_code_leads_to_a_generation() {
        let name = |code| Generation::of_density(code).map(|generation| generation.name);
        assert_eq!(name(0x5e), Some("LTO-8"));
        assert_eq!(name(0x5d), Some("LTO-7 Type M"));
        assert_eq!((name(0x62), name(0x63)), (Some("LTO-10"), Some("LTO-10 Premium")));
        assert_eq!(name(0), None);
        let lowest = Generation::of_density(0x60).unwrap().lowest_speed();
        assert_eq!(lowest, 177_000_000);
    }

    #[test]
    fn some_media_have_no_drives_of_their_name() {
        let without = Generation::all().iter().filter(|one| !one.has_drives());
        let names: Vec<_> = without.map(|one| one.name).collect();
        assert_eq!(names, ["LTO-7 Type M", "LTO-10 Premium"]);
    }

    #[test]
    fn makers_have_speeds_of_their_own() {
        let ends = |product: &str| {
            let found = Generation::of_product(product).unwrap();
            (found.title(), found.lowest_speed() / MB, found.highest_speed() / MB)
        };
        assert_eq!(ends("ULTRIUM-TD3"), ("LTO-3 by IBM".to_owned(), 40, 80));
        assert_eq!(ends("Ultrium 3-SCSI"), ("LTO-3 by HP".to_owned(), 27, 80));
        assert_eq!(ends("LTO-3 HH"), ("LTO-3".to_owned(), 40, 80));
        assert_eq!(ends("Ultrium 9-SCSI"), ("LTO-9".to_owned(), 177, 408));
        let medium = Generation::of_density(0x58).unwrap();
        assert_eq!(medium.in_drive("Ultrium 5-SCSI").lowest_speed(), 47 * MB);
        assert_eq!(medium.in_drive("VIRTUAL-TD5"), medium);
        for row in BY_MAKER {
            let base = Generation::all().iter().find(|base| base.name == row.name).unwrap();
            assert_eq!((base.maker, base.capacity_bytes), (None, row.capacity_bytes));
            assert_eq!(base.by_maker().count(), 2, "{}", row.name);
            assert!(row.speeds.is_sorted_by(|a, b| a < b));
            assert_eq!(row.steps == Steps::Ends, row.speeds.len() == 2);
        }
    }

    #[test]
    fn a_product_name_leads_to_a_generation() {
        let name = |product: &str| Generation::of_product(product).map(|found| found.name);
        assert_eq!(name("ULTRIUM-TD8"), Some("LTO-8"));
        assert_eq!(name("ULT3580-HH7"), Some("LTO-7"));
        assert_eq!(name("Ultrium 6-SCSI"), Some("LTO-6"));
        assert_eq!(name("LTO-5 HH"), Some("LTO-5"));
        assert_eq!(name("ULTRIUM-TD10"), Some("LTO-10"));
        assert_eq!(name("ULTRIUM-TD"), None);
        assert_eq!(name("VIRTUAL-TAPE"), None);
    }
}
