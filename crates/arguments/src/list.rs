//! The arguments of `takeup list`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use service::folder_sets::FolderSetsRequest;
use service::list::{ListRequest, MemberDetail, SetsRequest};
use service::sets::is_folder;

use crate::run::{ArchiveArgs, CommonArgs, TapeSourceArgs};

/// List what is in an archive, or the sets of a folder
///
/// Reads archives of takeup, and plain, gzip and zstd archives of all common tar programs. Control
/// characters, backslashes and invalid UTF-8 are shown as escapes, as in C.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup list srv.tar.zst
  takeup list -l srv.tar etc/ssh
  takeup list /mnt/sets/
  ssh host 'cat srv.tar' | takeup list -

--json prints one line for each member, and a last one with the summary.")]
pub struct ListArgs {
    /// The archive, or a folder of sets; - is standard input
    #[arg(value_name = "FROM")]
    from: OsString,
    /// Only these members and what is below them
    #[arg(value_name = "PATH")]
    paths: Vec<OsString>,
    /// Show mode, owner, size, time and targets of links
    #[arg(short, long)]
    pub long: bool,
    /// Print names without escapes, each followed by a NUL byte
    #[arg(short = '0', long, conflicts_with_all = ["long", "json"])]
    pub null: bool,
    /// List the sets on the volume in a tape drive, not members
    #[arg(long, conflicts_with_all = ["long", "null", "set", "file", "paths"])]
    sets: bool,
    /// Compare every header with the index, not only some; contents are not read
    #[arg(long, conflicts_with = "sets")]
    check: bool,
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    tape: TapeSourceArgs,
    /// What all runs have.
    #[command(flatten)]
    pub common: CommonArgs,
}

impl ListArgs {
    /// What is asked for, where it is members.
    pub fn request(&self) -> ListRequest {
        ListRequest {
            from: self.from.clone().into(),
            paths: self.paths.iter().map(PathBuf::from).collect(),
            detail: if self.long || self.common.json {
                MemberDetail::Everything
            } else {
                MemberDetail::Index
            },
            check: self.check,
            archive: self.archive.settings(),
            tape: self.tape.settings(),
            engine: self.common.engine.into(),
        }
    }

    /// An option that was given and that says nothing of a folder of sets.
    pub fn not_for_sets(&self) -> Option<&'static str> {
        let (tape, archive) = (self.tape.settings(), self.archive.settings());
        let given = [
            (archive.ring_bytes.is_some(), "--ring"),
            (archive.threads.is_some(), "--threads"),
            (archive.require_index, "--require-index"),
            (self.null, "--null"),
            (self.check, "--check"),
            (self.sets, "--sets"),
            (tape.set.is_some(), "--set"),
            (tape.file.is_some(), "--file"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }

    /// What is asked for, where it is the sets of a folder.
    pub fn folder_request(&self) -> Option<FolderSetsRequest> {
        let from = PathBuf::from(self.from.clone());
        (is_folder(&from) && self.paths.is_empty()).then_some(FolderSetsRequest { from })
    }

    /// What is asked for, where it is the sets of a volume.
    pub fn sets_request(&self) -> Option<SetsRequest> {
        let (from, tape) = (self.from.clone().into(), self.tape.settings());
        self.sets.then_some(SetsRequest { from, tape })
    }
}
