//! The arguments of `takeup verify`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use service::verify::VerifyRequest;

use crate::run::{ArchiveArgs, CommonArgs, RecordArgs, TapeSourceArgs};

/// Read an archive back, check every checksum, and compare it with the live files
///
/// Archives of takeup have a hash of every file and a checksum of every block. For other archives,
/// takeup checks the structure and the checksums of the compression. --against reports files that
/// changed since the backup apart from files that differ although they did not change. The exit
/// code is 1 for a damaged archive, 2 for differences.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup verify srv.tar.zst
  takeup verify srv.tar --against /
  ssh host 'cat srv.tar' | takeup verify -")]
pub struct VerifyArgs {
    /// The archive; - is standard input
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
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    tape: TapeSourceArgs,
    /// What all runs have.
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    record: RecordArgs,
}

impl VerifyArgs {
    /// What is asked for.
    pub fn request(&self) -> VerifyRequest {
        VerifyRequest {
            from: self.from.clone().into(),
            cached: self.cached,
            against: self.against.clone(),
            no_owners: self.no_owners,
            no_xattrs: self.no_xattrs,
            archive: self.archive.settings(),
            tape: self.tape.settings(),
            engine: self.common.engine.into(),
            record: self.record.record.clone(),
        }
    }
}
