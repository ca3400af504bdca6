//! The product and its peers side by side, on generated data: `cargo xtask peers`.
//!
//! Arguments become works (`contenders.rs`). A [`campaign::Campaign`] runs each as an experiment of
//! `experiment`, whose cells are the contenders. The tables are computed from the files alone
//! (`table.rs`, `targets.rs`), so that they can be printed again at any time.
//!
//! Not here: order, records and intervals, which are in `experiment`.
//!
//! # Map
//!
//! - `contenders`: every command line that is compared.
//! - `data`: the trees to back up.
//! - `content`: the content of their files.
//! - `campaign`: prepares works and checks contenders.
//! - `rounds`: runs the works as an experiment.
//! - `pipeline`: one run of a pipeline.
//! - `tape`: works on virtual drives.
//! - `programs`: programs for the pipelines.
//! - `environment`: description of the machine.
//! - `record`: the record of a run.
//! - `targets`: the product's targets.
//! - `table`: tables of the results.
//! - `estimate`: ratios with their intervals.
//! - `random`: bytes from a seed.

// It prints to the person who started it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod campaign;
mod contenders;
mod content;
mod data;
mod environment;
mod estimate;
mod pipeline;
mod programs;
mod random;
mod record;
mod rounds;
mod table;
mod tape;
mod targets;

pub use programs::{
    FloorArguments, ProduceArguments, StageArguments, count, produce, run_floor, run_stage,
};
pub use tape::{DriveRateArguments, run_drive_rate};

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use rustix::fs::FlockOperation;

use base::calendar::date_text;
use experiment::record as experiments;
use experiment::record::Experiment;
use experiment::run::unix_seconds;

use self::campaign::Campaign;
use self::contenders::{Size, Work, WorkGroup};

/// Arguments of `cargo xtask peers`.
#[derive(clap::Args)]
pub struct PeersArguments {
    /// A hundredth of the data and two rounds: shows that everything works, its ratios mean little
    #[arg(long)]
    quick: bool,
    /// Folder on a real disk for data and scratch files [default: target/peers]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Works to run [default: all but scale and tape works]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Contenders that take part [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    contenders: Vec<String>,
    /// Also run the scale works: up to 1,000,000 files and 16 GiB, made and removed again
    #[arg(long)]
    scale: bool,
    /// Also run the tape works, on virtual drives
    #[arg(long)]
    tape: bool,
    /// Timed rounds [default: 5, with --quick 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,
    /// Folder for the records, a file for each work [default: benchmarks/HOST-CLASS/DATE-peers,
    /// with --quick a folder in the work folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Measure this binary [default: build target/release/takeup and measure it]
    #[arg(long, value_name = "FILE")]
    takeup: Option<PathBuf>,
    /// Another binary of the product takes part as `takeup-before`, so that a change of it can be
    /// judged within one run
    #[arg(long, value_name = "FILE")]
    before: Option<PathBuf>,
    /// Run nothing, print the tables of the files in these folders
    #[arg(long, value_name = "DIR,...", value_delimiter = ',')]
    table: Vec<PathBuf>,
    /// How to print the tables
    #[arg(long, value_enum, default_value_t = table::TableFormat::Terminal)]
    format: table::TableFormat,
}

/// Runs the benchmark, or prints the tables of an earlier one.
///
/// # Errors
/// When arguments name nothing, data cannot be made, or records cannot be written. A contender that
/// is missing or fails is reported and left out, which is not an error.
pub fn run(arguments: &PeersArguments) -> anyhow::Result<ExitCode> {
    if !arguments.table.is_empty() {
        let mut all = Vec::new();
        for folder in &arguments.table {
            all.extend(experiments_in(folder)?);
        }
        print!("{}", table::render(&all, arguments.format)?);
        return Ok(ExitCode::SUCCESS);
    }
    let size = if arguments.quick { Size::Quick } else { Size::Full };
    let works = chosen_works(arguments, size)?;
    check_contenders(arguments, &works)?;
    let takeup = match &arguments.takeup {
        Some(path) => path.canonicalize().with_context(|| format!("find {}", path.display()))?,
        None => build_takeup()?,
    };
    let before = match &arguments.before {
        Some(path) => {
            Some(path.canonicalize().with_context(|| format!("find {}", path.display()))?)
        }
        None => None,
    };
    let target = build_folder()?;
    let folder = arguments
        .work
        .clone()
        .unwrap_or_else(|| target.join(if arguments.quick { "peers-quick" } else { "peers" }));
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let folder = folder.canonicalize()?;
    let _alone = lock(&folder)?;
    let environment = environment::describe(&folder, &takeup)?;
    let out = arguments.out.clone().unwrap_or_else(|| {
        let now = i64::try_from(unix_seconds()).unwrap_or(i64::MAX);
        let name = format!("{}-peers", date_text(now));
        if arguments.quick {
            folder.join(name)
        } else {
            repository().join("benchmarks").join(environment::host_class(&environment)).join(name)
        }
    });
    std::fs::create_dir_all(&out).with_context(|| format!("create {}", out.display()))?;
    let rounds = arguments.repeats.unwrap_or(if arguments.quick { 2 } else { 5 });
    let only_contenders = arguments.contenders.clone();
    let campaign = Campaign {
        folder,
        takeup,
        before,
        size,
        rounds,
        only_contenders,
        environment,
        out: out.clone(),
    };
    for together in groups(&works) {
        campaign.run(&together)?;
    }
    println!("{}", table::render(&experiments_in(&out)?, arguments.format)?);
    println!("records: {}; takeup report FILE shows one with intervals and a page", out.display());
    Ok(ExitCode::SUCCESS)
}

/// The experiments of a folder, without the searches.
fn experiments_in(folder: &Path) -> anyhow::Result<Vec<Experiment>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "ndjson") {
            let experiment = experiments::load(&path)?;
            if experiment.header.kind == record::KIND {
                found.push(experiment);
            }
        }
    }
    if found.is_empty() {
        bail!("{}: no records of peers", folder.display());
    }
    Ok(found)
}

/// Locks the folder while the file is open: a second campaign would write and remove the same data.
fn lock(folder: &Path) -> anyhow::Result<File> {
    let path = folder.join("lock");
    let file = File::options().create(true).append(true).open(&path);
    let file = file.with_context(|| format!("open {}", path.display()))?;
    match base::interruptible::lock_unless_in_use(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => bail!(
            "{}: another `cargo xtask peers` is at work there; --work DIR takes another folder",
            folder.display()
        ),
        Err(error) => Err(error).with_context(|| format!("lock {}", path.display())),
    }
}

/// A contender that takes part in none of these works is a typing error.
fn check_contenders(arguments: &PeersArguments, works: &[Work]) -> anyhow::Result<()> {
    let mut known: Vec<String> = vec!["floor".to_owned(), "fio".to_owned()];
    for work in works {
        let mut own = contenders::contenders(work);
        if arguments.before.is_some() {
            own.extend(contenders::before(&own));
        }
        known.extend(own.into_iter().map(|contender| contender.name));
    }
    let names = BTreeSet::from_iter(known);
    match arguments.contenders.iter().find(|name| !names.contains(*name)) {
        None => Ok(()),
        Some(unknown) => {
            let names = Vec::from_iter(names).join(", ");
            bail!("--contenders: {unknown} takes part in none of these works (there are: {names})")
        }
    }
}

fn chosen_works(arguments: &PeersArguments, size: Size) -> anyhow::Result<Vec<Work>> {
    let all = contenders::works(size);
    for name in &arguments.only {
        if !all.iter().any(|work| work.name == name) {
            let names: Vec<_> = all.iter().map(|work| work.name).collect();
            bail!("--only: no such work: {name} (there are: {})", names.join(", "));
        }
    }
    let wanted = |work: &Work| {
        if arguments.only.is_empty() {
            match work.group {
                WorkGroup::Ordinary => true,
                WorkGroup::Scale(_) => arguments.scale,
                WorkGroup::Tape => arguments.tape,
            }
        } else {
            arguments.only.iter().any(|name| name == work.name)
        }
    };
    Ok(all.into_iter().filter(wanted).collect())
}

/// Alternating works: the scales of one kind; all others run alone.
fn groups(works: &[Work]) -> Vec<Vec<Work>> {
    let mut groups: Vec<Vec<Work>> = Vec::new();
    for work in works {
        match groups.last_mut() {
            Some(group)
                if matches!(work.group, WorkGroup::Scale(_)) && group[0].group == work.group =>
            {
                group.push(*work);
            }
            _ => groups.push(vec![*work]),
        }
    }
    groups
}

fn build_takeup() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--workspace", "--bin", "takeup"])
        .current_dir(repository())
        .status()
        .context("start cargo")?;
    if !status.success() {
        bail!("building takeup failed; --takeup FILE measures a binary that is there");
    }
    Ok(build_folder()?.join("release/takeup"))
}

/// The build's output folder, which has this program in `release/` or `debug/`.
fn build_folder() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("own path")?;
    let folder = own.parent().and_then(Path::parent).context("no folder above this program")?;
    Ok(folder.to_path_buf())
}

/// The checkout, two folders above this crate.
fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_go_beside_those_that_are_kept() {
        assert!(repository().join("benchmarks").is_dir(), "{}", repository().display());
    }

    #[test]
    fn two_campaigns_do_not_share_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path()).unwrap();
        let refused = lock(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("another `cargo xtask peers`"), "{refused}");
        drop(first);
        lock(folder.path()).unwrap();
    }
}
