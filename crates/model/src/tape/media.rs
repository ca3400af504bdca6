//! Which media a drive accepts: those of its own generation, and some older ones.
//!
//! By the LTO program: drives up to LTO-7 also write the previous generation, and read the one
//! before that. LTO-8 and 9 read and write the previous generation and read no older one. LTO-10
//! accepts only its own, of both lengths. An LTO-7 cartridge initialised as Type M (M8) is for
//! LTO-8 drives only.
//!
//! A drive writes an older medium in the format of that generation. So capacity and wraps are the
//! medium's, and so are the speeds, by makers' data sheets for some pairs (HP's for LTO-2 media in
//! an LTO-3 drive) and assumed for the others. Buffer, interface and the times of moving a
//! cartridge stay the drive's.

use super::generation::{Certainty, Generation};
use super::parameters::{Origin, TapeParameters};
use crate::ModelError;

/// What a drive can do with a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumAccess {
    ReadAndWrite,
    /// It only reads it, like a write-protected medium.
    ReadOnly,
}

/// The generation of media that an LTO-8 drive makes from LTO-7 cartridges.
const TYPE_M: &str = "LTO-7 Type M";

/// What a drive of one generation can do with a medium of another.
///
/// # Errors
/// The drive does not accept the medium; the error lists those it accepts.
pub fn access(
    drive: &'static Generation,
    medium: &'static Generation,
) -> Result<MediumAccess, ModelError> {
    taken(drive, medium).ok_or_else(|| {
        let with = |access: MediumAccess| -> Vec<&str> {
            let all = Generation::all().iter();
            all.filter(|one| taken(drive, one) == Some(access)).map(|one| one.name).collect()
        };
        let reads = with(MediumAccess::ReadOnly);
        ModelError::MediumRefused {
            drive: drive.name,
            medium: medium.name,
            writes: with(MediumAccess::ReadAndWrite).join(", "),
            reads: match &reads[..] {
                [] => String::new(),
                names => format!(" and reads {}", names.join(", ")),
            },
        }
    })
}

fn taken(drive: &Generation, medium: &Generation) -> Option<MediumAccess> {
    let back = match (medium.name, drive.number) {
        (TYPE_M, 8) => return Some(MediumAccess::ReadAndWrite),
        (TYPE_M, _) => return None,
        (_, number) => number.checked_sub(medium.number)?,
    };
    match (drive.number, back) {
        (_, 0) | (..=9, 1) => Some(MediumAccess::ReadAndWrite),
        (..=7, 2) => Some(MediumAccess::ReadOnly),
        _ => None,
    }
}

impl TapeParameters {
    /// A drive with a medium of another generation, which it must accept ([`access`]).
    pub fn with_medium(drive: &Generation, medium: &'static Generation) -> TapeParameters {
        let own = TapeParameters::of(drive);
        if drive.name == medium.name {
            return own;
        }
        let medium = drive.maker.map_or(medium, |maker| medium.made_by(maker));
        let older = TapeParameters::of(medium);
        // A longer medium for the same drives takes longer to wind.
        let is_own = drive.number == medium.number;
        let wind_ns = if is_own { older.wind_ns } else { own.wind_ns };
        TapeParameters {
            speeds_origin: Origin::Table(Certainty::Assumed),
            speeds_bytes_per_second: older.speeds_bytes_per_second,
            capacity_bytes: older.capacity_bytes,
            early_warning_bytes: older.early_warning_bytes,
            wraps: older.wraps,
            wind_ns,
            ..own
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> &'static Generation {
        Generation::all().iter().find(|one| one.name == name).unwrap()
    }

    #[test]
    fn every_drive_takes_what_the_lto_program_says() {
        // Drive, media that it writes, media that it only reads.
        let table: [(&str, &[&str], &[&str]); 10] = [
            ("LTO-1", &["LTO-1"], &[]),
            ("LTO-2", &["LTO-1", "LTO-2"], &[]),
            ("LTO-3", &["LTO-2", "LTO-3"], &["LTO-1"]),
            ("LTO-4", &["LTO-3", "LTO-4"], &["LTO-2"]),
            ("LTO-5", &["LTO-4", "LTO-5"], &["LTO-3"]),
            ("LTO-6", &["LTO-5", "LTO-6"], &["LTO-4"]),
            ("LTO-7", &["LTO-6", "LTO-7"], &["LTO-5"]),
            ("LTO-8", &["LTO-7", "LTO-7 Type M", "LTO-8"], &[]),
            ("LTO-9", &["LTO-8", "LTO-9"], &[]),
            ("LTO-10", &["LTO-10", "LTO-10 Premium"], &[]),
        ];
        for (drive, writes, reads) in table {
            for medium in Generation::all() {
                let expected = if writes.contains(&medium.name) {
                    Some(MediumAccess::ReadAndWrite)
                } else if reads.contains(&medium.name) {
                    Some(MediumAccess::ReadOnly)
                } else {
                    None
                };
                assert_eq!(access(named(drive), medium).ok(), expected, "{drive}, {}", medium.name);
            }
        }
    }

    #[test]
    fn a_refusal_says_what_is_taken() {
        let said = |drive, medium| access(named(drive), named(medium)).unwrap_err().to_string();
        assert_eq!(
            said("LTO-7", "LTO-8"),
            "an LTO-7 drive does not take LTO-8 media: it writes LTO-6, LTO-7 and reads LTO-5"
        );
        assert_eq!(
            said("LTO-9", "LTO-7 Type M"),
            "an LTO-9 drive does not take LTO-7 Type M media: it writes LTO-8, LTO-9"
        );
    }

    #[test]
    fn a_longer_medium_takes_longer_to_wind() {
        let own = TapeParameters::of(named("LTO-10"));
        let premium = TapeParameters::with_medium(named("LTO-10"), named("LTO-10 Premium"));
        assert_eq!(premium.capacity_bytes.value, 40_000_000_000_000);
        assert_eq!(premium.speeds_bytes_per_second, own.speeds_bytes_per_second);
        // 1337 m against 1035 m.
        let ratio = premium.wind_ns.value as f64 / own.wind_ns.value as f64;
        assert!((1.28..1.31).contains(&ratio), "{ratio}");
        assert_eq!((premium.wraps, premium.load_ns), (own.wraps, own.load_ns));
    }

    #[test]
    fn an_older_medium_has_its_own_length_and_speed() {
        let pair = TapeParameters::with_medium(named("LTO-7"), named("LTO-6"));
        let (drive, medium) =
            (TapeParameters::of(named("LTO-7")), TapeParameters::of(named("LTO-6")));
        assert_eq!(pair.capacity_bytes, medium.capacity_bytes);
        assert_eq!(pair.highest_bytes_per_second(), 160_000_000);
        assert_eq!(pair.speeds_origin, Origin::Table(Certainty::Assumed));
        assert_eq!((pair.buffer_bytes, pair.load_ns), (drive.buffer_bytes, drive.load_ns));
        assert_eq!(pair.host_bytes_per_second, drive.host_bytes_per_second);
        // Type M: 1.5 times the capacity of an LTO-7 cartridge in an LTO-7 drive.
        let type_m = TapeParameters::with_medium(named("LTO-8"), named(TYPE_M));
        assert_eq!(type_m.capacity_bytes.value, 9_000_000_000_000);
        // HP's LTO-3 drive writes LTO-2 media at 10 to 30 MB/s.
        let hp = named("LTO-3").made_by(super::super::maker::Maker::Hp);
        let pair = TapeParameters::with_medium(hp, named("LTO-2"));
        assert_eq!(pair.lowest_bytes_per_second(), 10_000_000);
        assert_eq!(TapeParameters::with_medium(hp, named("LTO-3")), TapeParameters::of(hp));
    }
}
