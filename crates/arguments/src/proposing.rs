//! Values that a shell proposes for an option that takes other values, too: `lto8` for the
//! generation of a drive, which is parsed from any spelling, or `zstd`, which may have a level.
//!
//! Set `hide_possible_values` on the option: its help says in words what it takes.

use std::error::Error;
use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};

/// Generations of drives and of media.
pub const GENERATIONS: &[&str] = &[
    "lto1",
    "lto2",
    "lto3",
    "lto4",
    "lto5",
    "lto6",
    "lto7",
    "lto7m",
    "lto8",
    "lto9",
    "lto10",
    "lto10premium",
];
/// Generations of drives, with the maker where it makes a difference.
pub const DRIVES: &[&str] = &[
    "lto1", "lto2", "lto3", "hp-lto3", "ibm-lto3", "lto4", "lto5", "lto6", "lto7", "lto8", "lto9",
    "lto10",
];
/// Kinds of disks.
pub const DISKS: &[&str] = &["sas15k", "sata7200", "ssd-sata", "nvme", "array", "array:12"];
/// Compressions of an archive.
pub const COMPRESSIONS: &[&str] = &["zstd", "gzip", "none"];
/// Compression by a virtual drive.
pub const SWITCHES: &[&str] = &["on", "off"];
/// Data for a tape.
pub const DATA: &[&str] = &["zeros", "random", "text:2"];
/// Formats around data on a tape.
pub const FRAMINGS: &[&str] = &["raw", "tar", "bacula"];
/// Read-ahead for the runs of an experiment.
pub const READ_AHEADS: &[&str] = &["current", "0", "128k", "512k", "2M", "8M"];
/// Schedulers of the kernel.
pub const SCHEDULERS: &[&str] = &["current", "none", "mq-deadline", "bfq", "kyber"];
/// Ways to merge requests.
pub const MERGES: &[&str] = &["current", "0", "1", "2"];
/// Settings of a queue that only their owner can name further levels of.
pub const CURRENT: &[&str] = &["current"];
/// Lengths of a run of fio.
pub const RUNTIMES: &[&str] = &["once", "5s", "30s"];
/// Settings that `takeup tune set` takes.
pub const SETTINGS: &[&str] = &[
    "readahead=",
    "read_ahead_kb=",
    "scheduler=",
    "nr_requests=",
    "max_sectors_kb=",
    "nomerges=",
    "wbt_lat_usec=",
    "write_cache=",
    "rotational=",
];

/// A parser that proposes values besides; see [`proposing`].
#[derive(Clone, Debug)]
pub struct Proposing<F> {
    parse: F,
    values: &'static [&'static str],
}

/// Parses with `parse`, and proposes `values` to a shell.
pub fn proposing<F>(parse: F, values: &'static [&'static str]) -> Proposing<F> {
    Proposing { parse, values }
}

impl<F, T, E> TypedValueParser for Proposing<F>
where
    F: Fn(&str) -> Result<T, E> + Clone + Send + Sync + 'static,
    E: Into<Box<dyn Error + Send + Sync + 'static>>,
    T: Send + Sync + Clone + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        TypedValueParser::parse_ref(&self.parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.values.iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::tape::generation::Generation;
    use service::bench::tape::{Data, Framing};
    use service::model_names::{DiskName, DriveName, GenerationName};
    use storage::settings::SettingKind;

    #[track_caller]
    fn check<T: std::str::FromStr>(values: &[&str]) {
        for value in values {
            assert!(value.parse::<T>().is_ok(), "{value}");
        }
    }

    #[test]
    fn what_is_proposed_is_taken() {
        check::<GenerationName>(GENERATIONS);
        check::<DriveName>(DRIVES);
        check::<DiskName>(DISKS);
        check::<archive::chunk::Compression>(COMPRESSIONS);
        check::<Data>(DATA);
        check::<Framing>(FRAMINGS);
        assert_eq!(GENERATIONS.len(), Generation::all().len(), "each generation is proposed");
        assert!(model::disk::PRESETS.iter().all(|preset| DISKS.contains(preset)));
        assert!(Framing::ALL.iter().all(|framing| FRAMINGS.contains(&framing.name())));
        let settings = SETTINGS.iter().map(|name| name.trim_end_matches('='));
        let (known, others): (Vec<&str>, Vec<&str>) =
            settings.partition(|name| SettingKind::of_file(name).is_some());
        assert_eq!((known.len(), others), (SettingKind::ALL.len(), vec!["readahead"]));
    }
}
