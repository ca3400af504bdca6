//! The arguments of `takeup catalog`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use service::catalog::{
    CatalogDiffRequest, CatalogDuRequest, CatalogFindRequest, CatalogLoadRequest, CatalogLsRequest,
    CatalogSetsRequest, CatalogWhyRequest, ExistingCatalogue, MOST_FOLDERS, MOST_PATHS,
};
use service::jobs::{JobsHistoryRequest, MOST_RUNS};
use service::media::MediaRequest;
use service::retention::{ForgetRequest, KeepSettings};
use service::tape_source::SetWanted;

use crate::run::parse_set;

/// Find out which archive has which version of a file
///
/// The catalogue is a file on this machine with what the indexes of your archives say. Nothing
/// depends on it: archives are restored without it, and it can be made again from them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup catalog add /backups
  takeup catalog find nginx.conf
  takeup catalog sets
  takeup catalog rebuild /backups /mnt/old-backups
  takeup catalog forget /mnt/sets/ --keep-daily 14 --keep-monthly 12")]
pub struct CatalogArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: CatalogCommand,
}

/// The commands of `takeup catalog`.
#[derive(Debug, Subcommand)]
// Documentation of a variant would replace the help of its arguments.
pub enum CatalogCommand {
    Add(CatalogAddArgs),
    Rebuild(CatalogRebuildArgs),
    Find(CatalogFindArgs),
    Ls(CatalogLsArgs),
    Sets(CatalogSetsArgs),
    Du(CatalogDuArgs),
    Why(CatalogWhyArgs),
    Diff(CatalogDiffArgs),
    Forget(CatalogForgetArgs),
    Jobs(CatalogJobsArgs),
    Media(CatalogMediaArgs),
}

/// Add archives to the catalogue
///
/// Reads their indexes, and as a whole only those without one. An archive that the catalogue has
/// already is not added twice; if it was moved, the catalogue has its new place.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup catalog add /backups
  takeup catalog add srv-monday.tar.zst srv-tuesday.tar.zst")]
pub struct CatalogAddArgs {
    /// Archives, or folders with archives in them
    #[arg(value_name = "FROM", required = true)]
    from: Vec<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Make the catalogue again, from these archives alone
///
/// The catalogue of before stays in its place until the new one is whole. Without FROM, from the
/// folders that it has looked at so far.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup catalog rebuild
  takeup catalog rebuild /backups --catalog /mnt/usb/catalog.sqlite")]
pub struct CatalogRebuildArgs {
    /// Archives, or folders with archives in them [default: the folders that it has looked at]
    #[arg(value_name = "FROM")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Say what would be lost with old sets, and remove them
///
/// Names each set of a job in a folder, why it is kept or that it goes, and which versions of files
/// no kept set has. Nothing is removed without --yes. Only sets that can be restored count, of days
/// that have one; what a kept set needs is kept.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup catalog forget /mnt/sets/ --keep-daily 14 --keep-monthly 12
  takeup catalog forget /mnt/sets/ --keep-last 7 --job homes --yes
  takeup catalog forget /mnt/sets/ --set 4626c0ab --json")]
#[command(group = ArgGroup::new("rule").multiple(true).required(true)
    .args(["keep_last", "keep_daily", "keep_weekly", "keep_monthly", "keep_yearly", "set"]))]
pub struct CatalogForgetArgs {
    /// A folder of sets
    #[arg(value_name = "SETS")]
    from: PathBuf,
    /// The job, where the folder has sets of several
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Keep the last N sets
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    keep_last: u32,
    /// Keep the last set of each of the last N days that have one
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    keep_daily: u32,
    /// The same of weeks
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    keep_weekly: u32,
    /// The same of months
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    keep_monthly: u32,
    /// The same of years
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    keep_yearly: u32,
    /// Let this set go instead; can be repeated
    #[arg(long, value_name = "SET", conflicts_with_all = ["keep_last", "keep_daily", "keep_weekly",
          "keep_monthly", "keep_yearly"])]
    set: Vec<String>,
    /// Only say what would happen; this is so without --yes, too
    #[arg(long)]
    dry_run: bool,
    /// Remove what goes
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Say what changed between two sets of a folder
///
/// What the newer one has and the older has not, what is gone, and what is another, with sizes. It
/// reads the indexes in the folder and needs no catalogue.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup catalog diff /mnt/sets/ 12
  takeup catalog diff /mnt/sets/ 12 17 --job homes --json")]
pub struct CatalogDiffArgs {
    /// A folder of sets
    #[arg(value_name = "SETS")]
    from: PathBuf,
    /// The older set: its number, or the start of its id
    #[arg(value_name = "BEFORE", value_parser = parse_set)]
    before: SetWanted,
    /// The newer set [default: the newest]
    #[arg(value_name = "AFTER", value_parser = parse_set)]
    after: Option<SetWanted>,
    /// The job, where the folder has sets of several
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// List at most so many objects; all are counted
    #[arg(long, value_name = "N", default_value_t = MOST_PATHS)]
    most: usize,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// List the runs of jobs, and say where the last was slower than those before it
///
/// From the journal, which `takeup run` writes. A run is compared with up to ten before it of the
/// same kind, full or incremental, that moved about as much.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup catalog jobs
  takeup catalog jobs homes --json")]
pub struct CatalogJobsArgs {
    /// Only this job
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// List at most so many runs of a job
    #[arg(long, value_name = "N", default_value_t = MOST_RUNS)]
    most: usize,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// List the tapes that hold sets of chains, and which may be written over
///
/// A run of a job writes over a tape of which the rule of the job keeps nothing, and no other job
/// needs anything.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup catalog media
  takeup catalog media --read /dev/nst0
  takeup catalog media --json")]
pub struct CatalogMediaArgs {
    /// The file with the jobs
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read the indexes on the tape in this drive first, of sets of this machine that are not
    /// known: after what was known of tapes is lost
    #[arg(long, value_name = "DEVICE")]
    read: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Which catalogue, and how to print.
#[derive(Args, Debug)]
struct PlaceArgs {
    /// The catalogue [default: catalog.sqlite in $XDG_STATE_HOME/takeup, or /var/lib/takeup of
    /// root]
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// List all versions of a file, and the archives that have them
///
/// A glob without a slash matches names at any depth. One with a slash matches paths as the archive
/// has them, without the first slash; there * and ? stop at a slash, and ** does not.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup catalog find nginx.conf
  takeup catalog find '*.sql'
  takeup catalog find 'home/eva/**/*.odt' --json")]
pub struct CatalogFindArgs {
    /// A name, a path or a glob
    #[arg(value_name = "GLOB")]
    glob: String,
    /// List at most so many paths
    #[arg(long, value_name = "N", default_value_t = MOST_PATHS)]
    most: usize,
    #[command(flatten)]
    place: PlaceArgs,
}

/// List the sets that the catalogue knows
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup catalog sets
  takeup catalog sets --json | jq '.sets[] | {place, files}'")]
pub struct CatalogSetsArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

/// List a folder as it was on a day
///
/// As the newest set has it, or the last one that began before the end of a day. Sets of other
/// sources, and in other folders, are listed apart.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup catalog ls home/eva
  takeup catalog ls home/eva --at 2026-11-01
  takeup catalog ls --set 12 --json | jq '.folders[].entries[].name'")]
pub struct CatalogLsArgs {
    /// A folder, as the archives have it [default: the top]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// As the last set has it that began before the end of this day, local time
    #[arg(long, value_name = "DAY", conflicts_with = "set")]
    at: Option<String>,
    /// As this set has it: its number in `takeup catalog sets`, or the start of its id
    #[arg(long, value_name = "SET", value_parser = parse_set)]
    set: Option<SetWanted>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Say which folders have the bytes of the sets, and how they changed
///
/// What is in a folder, the most bytes first: in the newest set, how much more than in the set
/// before, and of all versions that the sets have. Sizes are those of files before compression.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup catalog du
  takeup catalog du home/eva
  takeup catalog du home/eva --json | jq '.series[].below[] | {path, bytes}'")]
pub struct CatalogDuArgs {
    /// A folder, as the archives have it [default: all that was backed up]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// List at most so many folders and files
    #[arg(long, value_name = "N", default_value_t = MOST_FOLDERS)]
    most: usize,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Say why each set of a chain stored a file, or did not
///
/// For the chain of the newest set of a folder. It reads the indexes in the folder and needs no
/// catalogue.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup catalog why /mnt/sets/ home/eva/thesis.odt
  takeup catalog why /mnt/sets/ home/eva --job homes")]
pub struct CatalogWhyArgs {
    /// A folder of sets
    #[arg(value_name = "SETS")]
    from: PathBuf,
    /// The path, as the archives have it
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The job, where the folder has sets of several
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl CatalogWhyArgs {
    /// What is asked for.
    pub fn request(&self) -> CatalogWhyRequest {
        let (from, path, job) = (self.from.clone(), self.path.clone(), self.job.clone());
        CatalogWhyRequest { from, path, job }
    }

    /// Whether a document is printed.
    pub fn json(&self) -> bool {
        self.json
    }
}

impl CatalogAddArgs {
    /// What is asked for.
    pub fn request(&self) -> CatalogLoadRequest {
        let (from, catalog) = (self.from.clone(), self.place.catalog.clone());
        CatalogLoadRequest { from, catalog, existing: ExistingCatalogue::Kept }
    }

    /// Whether a document is printed.
    pub fn json(&self) -> bool {
        self.place.json
    }
}

impl CatalogRebuildArgs {
    /// What is asked for.
    pub fn request(&self) -> CatalogLoadRequest {
        let (from, catalog) = (self.from.clone(), self.place.catalog.clone());
        CatalogLoadRequest { from, catalog, existing: ExistingCatalogue::Replaced }
    }

    /// Whether a document is printed.
    pub fn json(&self) -> bool {
        self.place.json
    }
}

impl CatalogFindArgs {
    /// What is asked for.
    pub fn request(&self) -> CatalogFindRequest {
        let (glob, catalog) = (self.glob.clone(), self.place.catalog.clone());
        CatalogFindRequest { glob, most: self.most, catalog }
    }

    /// Whether a document is printed.
    pub fn json(&self) -> bool {
        self.place.json
    }
}

impl CatalogLsArgs {
    /// What is asked for.
    pub fn request(&self) -> CatalogLsRequest {
        CatalogLsRequest {
            path: self.path.clone(),
            at: self.at.clone(),
            set: self.set.clone(),
            catalog: self.place.catalog.clone(),
        }
    }

    /// Whether a document is printed.
    pub fn json(&self) -> bool {
        self.place.json
    }
}

impl CatalogDuArgs {
    /// What is asked for.
    pub fn request(&self) -> CatalogDuRequest {
        let (path, catalog) = (self.path.clone(), self.place.catalog.clone());
        CatalogDuRequest { path, most: self.most, catalog }
    }

    /// Whether a document is printed.
    pub fn json(&self) -> bool {
        self.place.json
    }
}

impl CatalogSetsArgs {
    /// What is asked for.
    pub fn request(&self) -> CatalogSetsRequest {
        CatalogSetsRequest { catalog: self.place.catalog.clone() }
    }

    /// Whether a document is printed.
    pub fn json(&self) -> bool {
        self.place.json
    }
}

impl CatalogForgetArgs {
    /// What is asked for.
    pub fn request(&self) -> ForgetRequest {
        ForgetRequest {
            from: self.from.clone(),
            job: self.job.clone(),
            keep: KeepSettings {
                last: self.keep_last,
                daily: self.keep_daily,
                weekly: self.keep_weekly,
                monthly: self.keep_monthly,
                yearly: self.keep_yearly,
            },
            sets: self.set.clone(),
            apply: self.yes,
        }
    }

    /// Whether a document is printed.
    pub fn json(&self) -> bool {
        self.json
    }
}

impl CatalogJobsArgs {
    /// What is asked for.
    pub fn request(&self) -> JobsHistoryRequest {
        JobsHistoryRequest { job: self.job.clone(), most: self.most }
    }

    /// Whether a document is printed.
    pub fn json(&self) -> bool {
        self.json
    }
}

impl CatalogMediaArgs {
    /// What is asked for.
    pub fn request(&self) -> MediaRequest {
        MediaRequest { config: self.config.clone(), read: self.read.clone() }
    }

    /// Whether a document is printed.
    pub fn json(&self) -> bool {
        self.json
    }
}

impl CatalogDiffArgs {
    /// What is asked for.
    pub fn request(&self) -> CatalogDiffRequest {
        CatalogDiffRequest {
            from: self.from.clone(),
            before: self.before.clone(),
            after: self.after.clone(),
            job: self.job.clone(),
            most: self.most,
        }
    }

    /// Whether a document is printed.
    pub fn json(&self) -> bool {
        self.json
    }
}
