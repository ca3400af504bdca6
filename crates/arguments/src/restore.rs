//! The arguments of `takeup restore`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use service::restore::{
    RestoreModes, RestoreOverwrite, RestoreOwners, RestorePrivileges, RestoreRequest,
};
use service::sets::SetSelection;

use crate::quantity::Rate;
use crate::run::{ArchiveArgs, CommonArgs, RecordArgs, TapeSourceArgs};
use crate::telling::TellingArgs;

/// Write what is in an archive into a directory
///
/// Takeup writes nothing outside of DIR, whatever the archive contains. Without --overwrite,
/// existing files stay, with a warning. Root restores owners; other users own what they restore. A
/// file with damaged or truncated content never gets its name. Without --no-sync, the command ends
/// when everything is on the disk.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup restore srv.tar.zst --into /srv/restored
  takeup restore home.tar --into / --overwrite home/eva/thesis
  takeup restore home.tar --into / --overwrite=keep-newer
  takeup restore /mnt/sets/ --at 2026-11-27 --into /tmp/friday home/eva
  takeup restore /dev/nst0 --at 2026-11-27 --into /tmp/friday home/eva --dry-run
  ssh host 'cat srv.tar' | takeup restore - --into srv")]
pub struct RestoreArgs {
    /// The archive, or a folder of sets; - is standard input
    #[arg(value_name = "FROM")]
    from: OsString,
    /// Directory to restore into; created if missing
    #[arg(short, long, alias = "to", value_name = "DIR")]
    into: PathBuf,
    /// Only these members and what is below them
    #[arg(value_name = "PATH")]
    paths: Vec<OsString>,
    /// Remove the first N components of every path
    #[arg(long, default_value_t = 0, value_name = "N")]
    strip_components: usize,
    /// Replace existing files, each once the new one is complete
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, value_name = "WHAT",
          default_value_t = OverwriteName::No, default_missing_value = "replace")]
    overwrite: OverwriteName,
    /// Owners of the restored files; by default the archived names as root, else your own
    #[arg(long, value_enum, value_name = "WHOSE")]
    owners: Option<OwnersName>,
    /// Permissions of the restored files; by default exact as root, else less the umask
    #[arg(hide_short_help = true, long, value_enum, value_name = "WHICH")]
    modes: Option<ModesName>,
    /// Set-ID bits, capabilities and other security.* and trusted.* attributes; by default restored
    /// only where owner and permissions are restored as archived
    #[arg(hide_short_help = true, long, value_enum, value_name = "WHAT")]
    privileges: Option<PrivilegesName>,
    /// Leave out extended attributes and ACLs
    #[arg(hide_short_help = true, long)]
    no_xattrs: bool,
    /// Do not wait until everything is on the disk; the kernel writes it later
    #[arg(hide_short_help = true, long)]
    no_sync: bool,
    /// Of a folder of sets, or of tapes: the state of this day, local time; the last set that began
    /// before its end. By default the newest
    #[arg(long, value_name = "DAY", conflicts_with = "set")]
    at: Option<String>,
    /// Of a folder or tapes with sets of several jobs: the job
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Of a set whose chain has a gap (an archive or a tape is lost): restore what is left, and
    /// name the rest
    #[arg(hide_short_help = true, long)]
    partial: bool,
    /// Of a tape: only say which media are needed, in which order, what is read of each and how
    /// long it takes the drive
    #[arg(short = 'n', long, alias = "plan", conflicts_with = "record")]
    pub dry_run: bool,
    /// Of a dry run: how fast the target takes the data, to say how often the drive stops for it
    #[arg(long, value_name = "RATE", requires = "dry_run")]
    target_rate: Option<Rate>,
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    tape: TapeSourceArgs,
    /// Who is told of it.
    #[command(flatten)]
    pub telling: TellingArgs,
    /// What all runs have.
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OverwriteName {
    /// Keep what exists
    No,
    /// Replace what exists; a directory only if it is empty
    Replace,
    /// Replace what exists, except files that are newer or have the archived time and size
    KeepNewer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OwnersName {
    /// The user who restores
    Ignore,
    /// Users and groups by the archived names, else by the archived numbers
    Names,
    /// Users and groups by the archived numbers
    Numbers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModesName {
    /// The archived permissions
    Exact,
    /// The archived permissions less the umask
    Umask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PrivilegesName {
    /// Restore them, whatever the owner is
    Keep,
    /// Do not restore them
    Drop,
}

impl RestoreArgs {
    /// How fast the target takes the data.
    pub fn target_bytes_per_second(&self) -> Option<u64> {
        self.target_rate.map(|rate| rate.0)
    }

    /// What is asked for.
    pub fn request(&self) -> RestoreRequest {
        RestoreRequest {
            from: self.from.clone().into(),
            set: SetSelection { at: self.at.clone(), job: self.job.clone() },
            partial: self.partial,
            into: self.into.clone(),
            paths: self.paths.iter().map(PathBuf::from).collect(),
            strip_components: self.strip_components,
            overwrite: match self.overwrite {
                OverwriteName::No => RestoreOverwrite::No,
                OverwriteName::Replace => RestoreOverwrite::Replace,
                OverwriteName::KeepNewer => RestoreOverwrite::KeepNewer,
            },
            owners: self.owners.map(|owners| match owners {
                OwnersName::Ignore => RestoreOwners::Ignore,
                OwnersName::Names => RestoreOwners::Names,
                OwnersName::Numbers => RestoreOwners::Numbers,
            }),
            modes: self.modes.map(|modes| match modes {
                ModesName::Exact => RestoreModes::Exact,
                ModesName::Umask => RestoreModes::Umask,
            }),
            privileges: self.privileges.map(|privileges| match privileges {
                PrivilegesName::Keep => RestorePrivileges::Keep,
                PrivilegesName::Drop => RestorePrivileges::Drop,
            }),
            no_xattrs: self.no_xattrs,
            no_sync: self.no_sync,
            archive: self.archive.settings(),
            tape: self.tape.settings(),
            engine: self.common.engine.into(),
            record: self.record.record.clone(),
        }
    }
}
