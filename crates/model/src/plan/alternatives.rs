//! Alternatives to a setup, each planned like it, and the choice of the best.
//!
//! The best alternative is the one that ends first. Within two percent, the one with fewer stops is
//! better, then the one with clearly less motion, then the one earlier in the list. Settings are
//! kept apart from alternatives that need more: a second source always helps, but most users do not
//! have one.

use crate::tape::generation::Generation;

use super::{Compression, Drain, Limit, Plan, Refill, Setup, plan};
use crate::ModelError;
use crate::program::Ratio;
use crate::tape::parameters::TapeParameters;

/// The effort of an alternative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// The setup as requested.
    Asked,
    /// Other settings or more memory.
    Setting,
    /// Another way of working: disk space, another source at the same time.
    Procedure,
    /// Another drive and its media.
    Hardware,
}

impl Effort {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Effort::Asked => "asked",
            Effort::Setting => "setting",
            Effort::Procedure => "procedure",
            Effort::Hardware => "hardware",
        }
    }
}

/// An alternative.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// A few words.
    pub name: String,
    pub effort: Effort,
    /// Options of `takeup backup` that do it, if it is a setting.
    pub options: Option<String>,
    /// Its predicted result.
    pub plan: Plan,
}

/// Facts besides the setup from which the list is made.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    /// Ratio of the data on a drive that compresses.
    pub drive_ratio: Ratio,
    /// Ratio and rate of compression in software, if known.
    pub software: Option<(Ratio, u64)>,
    /// Rate of a staging disk.
    pub staging_bytes_per_second: u64,
    /// Most that the host reads from all its sources together, if known.
    pub host_bytes_per_second: Option<u64>,
    /// Generations to compare with.
    pub generations: &'a [&'static Generation],
}

const RINGS_MIB: [u64; 5] = [256, 1 << 10, 4 << 10, 16 << 10, 64 << 10];
const START_FILLS: [u8; 3] = [25, 50, 100];
const MEGABYTE: u64 = 1_000_000;
const BLOCKS_BYTES: [u64; 3] = [64 << 10, 256 << 10, 1 << 20];
/// Times this close count as equal.
const SAME: f64 = 1.02;
/// And hours of motion.
const SAME_WEAR: f64 = 1.1;

/// The setup and its alternatives, the setup first.
///
/// # Errors
/// As [`plan`].
pub fn alternatives(
    setup: &Setup,
    name: &str,
    choices: &Choices<'_>,
) -> Result<Vec<Alternative>, ModelError> {
    let asked = Alternative {
        name: name.to_owned(),
        effort: Effort::Asked,
        options: None,
        plan: plan(setup)?,
    };
    let limit = asked.plan.limit;
    let mut list = vec![asked];
    for (name, options, setup) in settings(setup, limit, choices) {
        let plan = plan(&setup)?;
        list.push(Alternative { name, effort: Effort::Setting, options, plan });
    }
    let other = |name: String, effort, setup: &Setup| {
        Ok::<_, ModelError>(Alternative { name, effort, options: None, plan: plan(setup)? })
    };
    let mut twice = setup.clone();
    let host = choices.host_bytes_per_second.unwrap_or(u64::MAX);
    twice.source.bytes_per_second = (2 * setup.source.bytes_per_second).min(host);
    twice.source.file_ns /= 2;
    list.push(other("two such sources at once".to_owned(), Effort::Procedure, &twice)?);
    list.push(staged(setup, choices)?);
    if is_limited_by_drives(list[0].plan.limit) {
        let more = Setup { drives: setup.drives * 2, ..setup.clone() };
        list.push(other(format!("{} drives", more.drives), Effort::Hardware, &more)?);
    }
    for generation in choices.generations {
        let drive = TapeParameters::of(generation);
        let setup = Setup { drive, ..setup.clone() };
        list.push(other(generation.title(), Effort::Hardware, &setup)?);
    }
    Ok(list)
}

/// All settings: the name, the options to type, and the changed setup.
fn settings(
    setup: &Setup,
    limit: Limit,
    choices: &Choices<'_>,
) -> Vec<(String, Option<String>, Setup)> {
    let mut list = Vec::new();
    for (name, options, compression) in compressions(setup, choices) {
        if std::mem::discriminant(&compression) != std::mem::discriminant(&setup.compression) {
            let setup = Setup { compression, ..setup.clone() };
            list.push((name.to_owned(), Some(options.to_owned()), setup));
        }
    }
    for block_bytes in larger_blocks(setup, limit) {
        let larger = Setup { block_bytes, ..setup.clone() };
        let kib = block_bytes >> 10;
        list.push((format!("blocks of {kib} KiB"), Some(format!("--block-size {kib}k")), larger));
    }
    let (is_slow, lowest) = (setup.is_slow(), setup.lowest_archive_rate() / MEGABYTE);
    // If the source keeps the drive streaming, the writer must not be slowed down to the lowest
    // step.
    let drain = if is_slow { Drain::LowestStep } else { Drain::Unlimited };
    let refill = Refill::WhenSlow;
    for ring_bytes in RINGS_MIB.map(|mib| mib << 20) {
        if ring_bytes == setup.ring_bytes && !is_slow {
            continue;
        }
        let ring = Setup { ring_bytes, start_fill_percent: 100, refill, drain, ..setup.clone() };
        let (told, typed) = memory(ring_bytes);
        let (name, options) = if is_slow {
            let held = format!("--ring {typed} --start-fill 100 --rate-limit {lowest}MB");
            (format!("{told} of memory, fill first"), held)
        } else {
            (format!("{told} of memory"), format!("--ring {typed}"))
        };
        list.push((name, Some(options), ring));
    }
    if is_slow {
        let held = Setup { refill, drain, ..setup.clone() };
        let options = format!("--rate-limit {lowest}MB");
        list.push((format!("at most {lowest} MB/s"), Some(options), held));
        let never = Setup { refill: Refill::Never, ..setup.clone() };
        list.push(("each block as it comes".into(), Some("--start-fill 0".into()), never));
        for start_fill_percent in START_FILLS {
            let is_asked = setup.start_fill_percent == start_fill_percent;
            if !(is_asked && setup.refill != Refill::Never) {
                let filled = Setup { start_fill_percent, refill, ..setup.clone() };
                let options = format!("--start-fill {start_fill_percent}");
                let name = format!("start at {start_fill_percent} % of the memory");
                list.push((name, Some(options), filled));
            }
        }
    }
    if setup.drives > 1 {
        list.push(("one drive".to_owned(), None, Setup { drives: 1, ..setup.clone() }));
    }
    list
}

/// Block sizes to try if commands limit the drive, or if blocks are so small that they might. Each
/// is several times the previous one, up to the size that every drive and driver accepts.
fn larger_blocks(setup: &Setup, limit: Limit) -> Vec<u64> {
    let is_worth_it = limit == Limit::Commands || setup.block_bytes < BLOCKS_BYTES[0];
    let is_larger = |bytes: &u64| is_worth_it && *bytes > setup.block_bytes;
    BLOCKS_BYTES.into_iter().filter(is_larger).collect()
}

/// The size of a ring as a name, and as it is typed.
fn memory(bytes: u64) -> (String, String) {
    match bytes >> 30 {
        0 => (format!("{} MiB", bytes >> 20), format!("{}M", bytes >> 20)),
        gib => (format!("{gib} GiB"), format!("{gib}G")),
    }
}

fn is_limited_by_drives(limit: Limit) -> bool {
    matches!(limit, Limit::Commands | Limit::Interface | Limit::Medium)
}

fn compressions(
    setup: &Setup,
    choices: &Choices<'_>,
) -> Vec<(&'static str, &'static str, Compression)> {
    let none = match setup.compression {
        Compression::Software { .. } => "no compression",
        Compression::None | Compression::Drive(_) => "drive compression off",
    };
    let drive = Compression::Drive(choices.drive_ratio);
    let mut list = vec![
        (none, "--drive-compression off", Compression::None),
        ("drive compression on", "--drive-compression on", drive),
    ];
    if let Some((ratio, bytes_per_second)) = choices.software {
        let software = Compression::Software { ratio, bytes_per_second };
        list.push(("compression in software", "--compress zstd", software));
    }
    list
}

/// First to a disk at the rate of the source, then from the disk to tape.
fn staged(setup: &Setup, choices: &Choices<'_>) -> Result<Alternative, ModelError> {
    let mut from_disk = setup.clone();
    let source_rate = setup.archive_rate().min(choices.staging_bytes_per_second).max(1);
    from_disk.source.bytes_per_second = choices.staging_bytes_per_second;
    from_disk.source.file_ns = 0;
    // The staged data are one archive.
    from_disk.source.size_bytes = setup.archive_bytes();
    from_disk.source.files = 0;
    let mut plan = plan(&from_disk)?;
    let staging_seconds = setup.archive_bytes() as f64 / source_rate as f64;
    // The limit of the longer half.
    if staging_seconds > plan.seconds {
        let is_slowest = setup.archive_rate() > choices.staging_bytes_per_second;
        plan.limit = if is_slowest { Limit::StagingDisk } else { Limit::Source };
        plan.limit_bytes_per_second = source_rate as f64;
    } else if plan.limit == Limit::Source {
        plan.limit = Limit::StagingDisk;
    }
    plan.seconds += staging_seconds;
    plan.bytes_per_second = setup.source.size_bytes as f64 / plan.seconds;
    let name = "staged to disk first".to_owned();
    Ok(Alternative { name, effort: Effort::Procedure, options: None, plan })
}

/// The best alternative that needs at most the effort `most`.
pub fn best(list: &[Alternative], most: Effort) -> Option<&Alternative> {
    let allowed = |alternative: &&Alternative| match most {
        Effort::Asked => alternative.effort == Effort::Asked,
        Effort::Setting => matches!(alternative.effort, Effort::Asked | Effort::Setting),
        Effort::Procedure => alternative.effort != Effort::Hardware,
        Effort::Hardware => true,
    };
    let fastest = list.iter().filter(allowed).map(|one| one.plan.seconds).reduce(f64::min)?;
    let near = || list.iter().filter(allowed).filter(|one| one.plan.seconds <= fastest * SAME);
    let fewest = near().map(|one| one.plan.back_hitches).min()?;
    let calm = || near().filter(|one| one.plan.back_hitches == fewest);
    let hours = calm().map(|one| one.plan.motion_hours).reduce(f64::min)?;
    calm().find(|one| one.plan.motion_hours <= hours * SAME_WEAR)
}
