//! The arguments of `takeup verify`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use service::sets::{SetSelection, is_folder};
use service::verify::VerifyRequest;
use service::verify_sets::VerifySetsRequest;

use crate::run::{ArchiveArgs, CommonArgs, ReadOrderArgs, RecordArgs, TapeSourceArgs};
use crate::telling::TellingArgs;

/// Read an archive back, check every checksum, and compare it with the live files
///
/// Archives of takeup have a hash of every file and a checksum of every block. For other archives,
/// takeup checks the structure and the checksums of the compression. --against reports files that
/// changed since the backup apart from files that differ although they did not change. The exit
/// code is 1 for a damaged archive, 2 for differences.
#[derive(Args, Debug)]
#[command(mut_arg("read_order", |option| option.requires("against")))]
#[command(mut_arg("read_window", |option| option.requires("against")))]
#[command(after_help = "\
Examples:
  takeup verify srv.tar.zst
  takeup verify srv.tar --against /
  takeup verify /mnt/sets/
  takeup verify /dev/nst0 --sets
  takeup verify /dev/nst0 --dry-run
  ssh host 'cat srv.tar' | takeup verify -")]
pub struct VerifyArgs {
    /// The archive, or a folder of sets; - is standard input
    #[arg(value_name = "FROM")]
    from: OsString,
    /// Read from the page cache what it holds of the archive; by default takeup drops it from the
    /// cache first, to read the disk
    #[arg(long)]
    cached: bool,
    /// Compare with the files below this directory
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Do not compare owners
    #[arg(hide_short_help = true, long, requires = "against")]
    no_owners: bool,
    /// Do not compare extended attributes and ACLs
    #[arg(hide_short_help = true, long, requires = "against")]
    no_xattrs: bool,
    /// Of a folder of sets: what the set of this day needs; by default every archive in it
    #[arg(long, value_name = "DAY", conflicts_with = "set")]
    at: Option<String>,
    /// Of a folder of sets: what the newest set of this job needs
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Of a tape: all sets on it, in the order in which they lie there
    #[arg(long, conflicts_with_all = ["set", "at", "job", "against"])]
    sets: bool,
    /// Of a tape: only say which media are needed, in which order, and how long it takes the drive
    #[arg(short = 'n', long, conflicts_with_all = ["record", "sets", "at", "job"])]
    pub dry_run: bool,
    #[command(flatten)]
    order: ReadOrderArgs,
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

impl VerifyArgs {
    /// An option that was given and that says nothing of a folder of sets.
    pub fn not_for_sets(&self) -> Option<&'static str> {
        let tape = self.tape.settings();
        let given = [
            (self.record.record.is_some(), "--record"),
            (self.cached, "--cached"),
            (tape.file.is_some(), "--file"),
            (!tape.without_volumes.is_empty(), "--without-volume"),
            (tape.eject && !self.sets, "--eject"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }

    /// Whether all sets of a tape were asked for.
    pub fn names_tape_sets(&self) -> bool {
        self.sets
    }

    /// What is asked for, where it is a folder of sets, or all sets of a tape.
    pub fn sets_request(&self) -> Option<VerifySetsRequest> {
        let from = PathBuf::from(self.from.clone());
        let selection = SetSelection { at: self.at.clone(), job: self.job.clone() };
        let is_of_sets = self.sets || (is_folder(&from) && self.against.is_none());
        let tape = self.tape.settings();
        let set = tape.set.clone();
        let (archive, engine) = (self.archive.settings(), self.common.engine.into());
        let request = VerifySetsRequest { from, set, selection, archive, tape, engine };
        is_of_sets.then_some(request)
    }

    /// What is asked for.
    pub fn request(&self) -> VerifyRequest {
        VerifyRequest {
            from: self.from.clone().into(),
            cached: self.cached,
            against: self.against.clone(),
            no_owners: self.no_owners,
            no_xattrs: self.no_xattrs,
            no_extra: false,
            read_order: self.order.read_order.into(),
            read_window_bytes: self.order.read_window_bytes(),
            archive: self.archive.settings(),
            tape: self.tape.settings(),
            engine: self.common.engine.into(),
            record: self.record.record.clone(),
        }
    }
}
