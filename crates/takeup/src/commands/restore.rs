//! `takeup restore`: writes the members of an archive into a directory.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base::escape::escape;
use base::format::{count, duration};
use clap::{Args, ValueEnum};
use flow::cancel::Cancel;
use runs::restore::{Checksums, RestoreError, RestoreOptions, Synchronise, restore};
use runs::selection::Selection;
use serde_json::json;
use tapeset::TapeOrigin;
use tree::{Attributes, Modes, Overwrite, Owners, Privileges};

use crate::options::{ArchiveArgs, CommonArgs};
use crate::outcome::{SummaryPlace, finish, near_hints, print_with, summarise};
use crate::recording::RecordArgs;
use crate::standard_error::to_standard_error;
use crate::tape_source::{self, TapeSourceArgs};
use crate::terminal::Terminal;
use service::failure::Failure;
use service::outcome::Outcome;

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
  ssh host 'cat srv.tar' | takeup restore - --into srv")]
pub struct RestoreArgs {
    /// The archive; - is standard input
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
    #[arg(long, value_enum, value_name = "WHICH")]
    modes: Option<ModesName>,
    /// Set-ID bits, capabilities and other security.* and trusted.* attributes; by default restored
    /// only where owner and permissions are restored as archived
    #[arg(long, value_enum, value_name = "WHAT")]
    privileges: Option<PrivilegesName>,
    /// Leave out extended attributes and ACLs
    #[arg(long)]
    no_xattrs: bool,
    /// Do not wait until everything is on the disk; the kernel writes it later
    #[arg(long)]
    no_sync: bool,
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    tape: TapeSourceArgs,
    #[command(flatten)]
    common: CommonArgs,
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

const EXISTING_HINT: &str = "hint: add --overwrite to replace existing files, or \
                             --overwrite=keep-newer to replace only older ones\n";

/// Runs the command.
pub fn run(arguments: &RestoreArgs) -> ExitCode {
    finish(restore_members(arguments), "restore", &arguments.common, SummaryPlace::Output)
}

fn restore_members(arguments: &RestoreArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let mut terminal = Terminal::new(&arguments.common)
        .recording(&arguments.record)?
        .folding_repeats()
        .watching(Some(Path::new(&arguments.from)), Some(&arguments.into));
    let options = options(arguments, &cancel)?;
    let tape = options.from.as_tape().cloned();
    let result = restore(options, &terminal, &cancel);
    terminal.close();
    let report = result.map_err(|error| not_restored(error, tape.as_ref(), &cancel))?;
    if report.existing > 0 && arguments.overwrite == OverwriteName::No {
        to_standard_error(EXISTING_HINT);
    }
    to_standard_error(&near_hints(&report.not_found));
    let summary = summarise(report.run.clone(), &mut terminal);
    let (checksums, mut text) = match report.checksums {
        Checksums::Unknown => (json!(null), String::new()),
        Checksums::Hold { blocks } => (
            json!({ "blocks": blocks, "damaged_blocks": 0 }),
            match blocks {
                1 => "the checksum of the one block holds\n".to_owned(),
                _ => format!("the checksums of all {} blocks hold\n", count(blocks)),
            },
        ),
        Checksums::Damaged { blocks } => (
            json!({ "damaged_blocks": blocks }),
            match blocks {
                1 => "the checksum of 1 block does not hold\n".to_owned(),
                _ => format!("the checksums of {} blocks do not hold\n", count(blocks)),
            },
        ),
    };
    text.push_str(&if arguments.no_sync {
        "the kernel still writes to the disk (--no-sync)\n".to_owned()
    } else {
        let time = duration(report.run.synchronise_seconds);
        format!("everything is on the disk; waiting for it took {time} at the end\n")
    });
    text.push_str(&report.tape.as_ref().map(tape_source::lines).unwrap_or_default());
    let more = json!({
        "tape": report.tape.as_ref().map(tape_source::document),
        "checksums": checksums,
        "existing": report.existing,
        "synchronised": !arguments.no_sync,
    });
    let outcome = format!("restored into {}", escape(arguments.into.as_os_str().as_bytes()));
    print_with(&summary, &outcome, &more, &text, &arguments.common, SummaryPlace::Output)?;
    Ok(summary.verdict.state.into())
}

/// The failure, with a hint if another set of the tape has the requested paths.
fn not_restored(error: RestoreError, tape: Option<&TapeOrigin>, cancel: &Cancel) -> Failure {
    if let (RestoreError::NothingFound { paths }, Some(tape)) = (&error, tape)
        && let Some(hint) = tape_source::in_another_set(tape, paths, cancel)
    {
        return Failure::new(&error, Some(hint));
    }
    error.into()
}

fn options(arguments: &RestoreArgs, cancel: &Cancel) -> Result<RestoreOptions, Failure> {
    let from = arguments.tape.origin(&arguments.from, cancel)?;
    let ring_bytes = tape_source::ring_bytes(&arguments.archive, &from);
    Ok(RestoreOptions {
        from,
        into: arguments.into.clone(),
        selection: Selection::new(arguments.paths.iter().cloned().map(OsString::into_vec)),
        strip_components: arguments.strip_components,
        overwrite: match arguments.overwrite {
            OverwriteName::No => Overwrite::Refuse,
            OverwriteName::Replace => Overwrite::Replace,
            OverwriteName::KeepNewer => Overwrite::KeepNewer,
        },
        owners: arguments.owners.map(|owners| match owners {
            OwnersName::Ignore => Owners::Ignore,
            OwnersName::Names => Owners::Names,
            OwnersName::Numbers => Owners::Numbers,
        }),
        modes: arguments.modes.map(|modes| match modes {
            ModesName::Exact => Modes::Exact,
            ModesName::Umask => Modes::Umask,
        }),
        privileges: match arguments.privileges {
            None => Privileges::WithOwner,
            Some(PrivilegesName::Keep) => Privileges::Keep,
            Some(PrivilegesName::Drop) => Privileges::Drop,
        },
        attributes: if arguments.no_xattrs { Attributes::Ignore } else { Attributes::Read },
        index: arguments.archive.index(),
        threads: arguments.archive.threads,
        engine: arguments.common.engine.into(),
        ring_bytes,
        synchronise: if arguments.no_sync { Synchronise::No } else { Synchronise::Yes },
    })
}
