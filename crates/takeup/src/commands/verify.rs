//! `takeup verify`: reads an archive back, and compares it with the live files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base::escape::{escape, escape_path};
use base::format::{count, counted};
use clap::Args;
use flow::cancel::Cancel;
use runs::verdict::{RunState, Verdict, no_file};
use runs::verify::{
    Bounded, Differing, PageCache, Problem, ReadFrom, VerifyOptions, VerifyReport, verify,
};
use serde_json::{Value, json};
use tree::{Attributes, CompareOwners, Difference};

use crate::options::{ArchiveArgs, CommonArgs};
use crate::outcome::{SummaryPlace, finish, print_with, summarise_with};
use crate::recording::RecordArgs;
use crate::tape_source::{self, TapeSourceArgs};
use crate::terminal::Terminal;
use service::failure::Failure;
use service::outcome::Outcome;

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
    #[arg(long, requires = "against")]
    no_owners: bool,
    /// Do not compare extended attributes and ACLs
    #[arg(long, requires = "against")]
    no_xattrs: bool,
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    tape: TapeSourceArgs,
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    record: RecordArgs,
}

/// Runs the command.
pub fn run(arguments: &VerifyArgs) -> ExitCode {
    finish(verify_archive(arguments), "verify", &arguments.common, SummaryPlace::Output)
}

fn verify_archive(arguments: &VerifyArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let from = arguments.tape.origin(&arguments.from, &cancel)?;
    let ring_bytes = tape_source::ring_bytes(&arguments.archive, &from);
    let options = VerifyOptions {
        from,
        against: arguments.against.clone(),
        cache: if arguments.cached { PageCache::Used } else { PageCache::Dropped },
        attributes: if arguments.no_xattrs { Attributes::Ignore } else { Attributes::Read },
        owners: if arguments.no_owners { CompareOwners::Ignore } else { CompareOwners::Compare },
        index: arguments.archive.index(),
        threads: arguments.archive.threads,
        engine: arguments.common.engine.into(),
        ring_bytes,
    };
    let mut terminal = Terminal::new(&arguments.common)
        .recording(&arguments.record)?
        .watching(Some(Path::new(&arguments.from)), None);
    if arguments.against.is_some() {
        terminal = terminal.folding_repeats();
    }
    let result = verify(options, &terminal, &cancel);
    terminal.close();
    let report = result?;
    let summary = summarise_with(report.run.clone(), &mut terminal, |summary| {
        summary.verdict = verdict(&report, std::mem::take(&mut summary.verdict));
    });
    let (more, mut text) = (document(&report), compared(&report));
    text.push_str(&elsewhere(arguments.against.as_deref(), &report));
    text.push_str(&origin(report.read_from));
    text.push_str(&report.tape.as_ref().map(tape_source::lines).unwrap_or_default());
    print_with(&summary, "", &more, &text, &arguments.common, SummaryPlace::Output)?;
    Ok(summary.verdict.state.into())
}

/// The verdict on the archive: the first line.
fn verdict(report: &VerifyReport, beside: Verdict) -> Verdict {
    if !report.is_sound() {
        return Verdict { state: RunState::Damaged, text: damaged(report) };
    }
    if beside.state > RunState::Different {
        return beside;
    }
    let found = differences(report);
    if !found.is_empty() {
        let compared = counted(report.checked.compared, "member", "members");
        let found = found.join(", ");
        let text = format!(
            "DIFFERENT: the archive is sound; of {compared} compared with live files {found}"
        );
        return Verdict { state: RunState::Different, text };
    }
    if beside.state > RunState::Done {
        return beside;
    }
    let empty = match report.run.files {
        0 => format!(", and holds {}", no_file(&report.run)),
        _ => String::new(),
    };
    let text = format!("the archive is sound{empty}: checked with {}", with(report));
    Verdict { state: RunState::Done, text }
}

/// The damage: how many files are hit, each counted once, and what is known of the rest.
fn damaged(report: &VerifyReport) -> String {
    let (hit, checked) = (&report.hit, &report.checked);
    let what = || report.damaged.items.first().map_or("", |first| &first.what);
    let files = match checked.files {
        0 => counted(hit.files, "file", "files"),
        all => format!("{} of {}", count(hit.files), counted(all, "file", "files")),
    };
    let folders = counted(hit.others, "folder or link", "folders or links");
    let hit_what = match (hit.files, hit.others) {
        (0, 0) => escape(what().as_bytes()),
        (0, _) => folders,
        (_, 0) => files,
        _ => format!("{files} and {folders}"),
    };
    let first = match (hit.files + hit.others, escape(&hit.first)) {
        (0, _) => String::new(),
        (1, first) => format!(" ({first})"),
        (_, first) => format!(" ({first} and others)"),
    };
    let between = match hit.blocks {
        0 => String::new(),
        blocks => format!(
            "; {} outside of file contents: a name, an owner or a time may be wrong",
            counted(blocks, "block differs", "blocks differ")
        ),
    };
    let is_known = checked.index && checked.files > 0;
    let rest = match (is_known, hit.files + hit.others) {
        (false, _) => "; without a whole index the rest could not be checked",
        (true, 0) => "; the contents of all files are intact",
        (true, _) => "; the rest is intact",
    };
    format!("DAMAGED: {hit_what}{first}{between}{rest}")
}

/// What the archive was checked with.
fn with(report: &VerifyReport) -> String {
    let checked = &report.checked;
    let mut with = Vec::new();
    if checked.content_hashes > 0 {
        with.push(counted(checked.content_hashes, "content hash", "content hashes"));
    }
    if let Some(blocks) = checked.blocks {
        with.push(counted(blocks, "block checksum", "block checksums"));
    }
    if with.is_empty() {
        "its structure alone, since it has no index".to_owned()
    } else {
        with.join(" and ")
    }
}

/// A line on what was compared, if anything was.
fn compared(report: &VerifyReport) -> String {
    match report.checked.compared {
        0 => String::new(),
        members => format!("{} compared with live files\n", counted(members, "member", "members")),
    }
}

fn differences(report: &VerifyReport) -> Vec<String> {
    let found = [
        (
            report.differs.total,
            "differs although it did not change",
            "differ although they did not change",
        ),
        (report.changed.total, "changed since the backup", "changed since the backup"),
        (report.missing.total, "is missing", "are missing"),
        (report.extra.total, "is new", "are new"),
        (report.not_compared.total, "could not be compared", "could not be compared"),
    ];
    let found = found.into_iter().filter(|(number, ..)| *number > 0);
    found.map(|(number, one, many)| counted(number, one, many)).collect()
}

/// A line for a comparison with the wrong folder, and which was probably meant.
fn elsewhere(against: Option<&Path>, report: &VerifyReport) -> String {
    let Some((against, found)) = against.zip(report.elsewhere.as_ref()) else {
        return String::new();
    };
    let named = |path: &Path| escape_path(path);
    let meant = match &found.probably {
        Some(folder) => format!("try --against {}", named(folder)),
        None => "it must hold the paths that `takeup list` shows".to_owned(),
    };
    // `elsewhere` is set when all of a few members are missing, or nine in ten of many.
    let found = report.checked.compared.saturating_sub(report.missing.total);
    let how_much = if found == 0 { "nothing" } else { "next to nothing" };
    format!("{how_much} of the archive is below {}: {meant}\n", named(against))
}

/// A line on whether the bytes came from the disk or the page cache.
fn origin(read_from: ReadFrom) -> String {
    match read_from {
        ReadFrom::Stream => String::new(),
        ReadFrom::Disk => "the archive was read from the disk, not the page cache\n".to_owned(),
        ReadFrom::Partly { cached_bytes } => format!(
            "{} of the archive may have come from the page cache, which could not drop it\n",
            base::format::size(cached_bytes)
        ),
        ReadFrom::Unknown => "the archive may have come from the page cache: this kernel does not \
                              report whether it dropped it\n"
            .to_owned(),
        ReadFrom::Cache => {
            "the archive may have come from the page cache (--cached), not the disk\n".to_owned()
        }
    }
}

fn origin_document(read_from: ReadFrom) -> Value {
    let (what, cached_bytes) = match read_from {
        ReadFrom::Stream => ("stream", None),
        ReadFrom::Disk => ("disk", Some(0)),
        ReadFrom::Partly { cached_bytes } => ("page cache and disk", Some(cached_bytes)),
        ReadFrom::Unknown => ("unknown", None),
        ReadFrom::Cache => ("page cache", None),
    };
    json!({ "what": what, "cached_bytes": cached_bytes })
}

fn document(report: &VerifyReport) -> Value {
    let problems = |list: &Bounded<Problem>| {
        bounded(list, |it| json!({ "path": escape(&it.path), "what": it.what }))
    };
    let paths = |list: &Bounded<Vec<u8>>| bounded(list, |path| json!(escape(path)));
    let differing = |list: &Bounded<Differing>| {
        bounded(list, |it| {
            let differences: Vec<Value> = it.differences.iter().map(difference).collect();
            json!({
                "path": escape(&it.path),
                "differences": differences,
                "content_differs_at_bytes": it.content_differs_at_bytes,
            })
        })
    };
    json!({
        "tape": report.tape.as_ref().map(tape_source::document),
        "sound": report.is_sound(),
        "checked": {
            "index": report.checked.index,
            "files": report.checked.files,
            "content_hashes": report.checked.content_hashes,
            "blocks": report.checked.blocks,
            "compared": report.checked.compared,
        },
        "read_from": origin_document(report.read_from),
        "damaged": problems(&report.damaged),
        "damaged_files": report.hit.files,
        "damaged_others": report.hit.others,
        "changed": differing(&report.changed),
        "differs": differing(&report.differs),
        "missing": paths(&report.missing),
        "extra": paths(&report.extra),
        "not_compared": problems(&report.not_compared),
        "elsewhere": report.elsewhere.as_ref().map(|found| json!({
            "probably": found.probably.as_ref().map(|folder| folder.display().to_string()),
        })),
    })
}

fn bounded<T>(list: &Bounded<T>, one: impl Fn(&T) -> Value) -> Value {
    let items: Vec<Value> = list.items.iter().map(one).collect();
    json!({ "total": list.total, "items": items })
}

fn difference(difference: &Difference) -> Value {
    match difference {
        Difference::Missing => json!({ "what": "missing" }),
        Difference::Kind { live } => {
            json!({ "what": "kind", "live": format!("{live:?}").to_lowercase() })
        }
        Difference::Mode { archived, live } => json!({
            "what": "mode",
            "archived": format!("{archived:04o}"),
            "live": format!("{live:04o}"),
        }),
        Difference::User { archived, live } => {
            json!({ "what": "user", "archived": archived, "live": live })
        }
        Difference::Group { archived, live } => {
            json!({ "what": "group", "archived": archived, "live": live })
        }
        Difference::Modified { archived, live } => json!({
            "what": "modified",
            "archived_seconds": archived.seconds,
            "archived_nanoseconds": archived.nanoseconds,
            "live_seconds": live.seconds,
            "live_nanoseconds": live.nanoseconds,
        }),
        Difference::Size { archived_bytes, live_bytes } => json!({
            "what": "size",
            "archived_bytes": archived_bytes,
            "live_bytes": live_bytes,
        }),
        Difference::LinkTarget { live } => {
            json!({ "what": "link target", "live": escape(live) })
        }
        Difference::NotLinked => json!({ "what": "not linked" }),
        Difference::Device { live_major, live_minor } => {
            json!({ "what": "device", "live": format!("{live_major},{live_minor}") })
        }
        Difference::Attribute { name, .. } => {
            json!({ "what": "attribute", "name": escape(name) })
        }
        Difference::AccessAcl => json!({ "what": "access acl" }),
        Difference::DefaultAcl => json!({ "what": "default acl" }),
    }
}
