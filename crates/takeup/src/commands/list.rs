//! `takeup list`: lists the members of an archive.

use std::ffi::OsString;
use std::io::{BufWriter, StdoutLock, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::ExitCode;

use archive::member::{Member, MemberKind};
use base::calendar::time_text;
use base::escape::{Printable, escape};
use base::format::{counted, size};
use clap::Args;
use flow::cancel::Cancel;
use flow::monitor::{Harm, Level, Monitor, Notice};
use runs::list::{Detail, HeaderCheck, ListError, ListOptions, ListReport, ListWay, Listed, list};
use runs::origin::Origin;
use runs::read::ReadFailure;
use runs::selection::{NotFound, Selection};
use serde_json::json;
use tapeset::{SetContents, SetOnVolume, TapeOrigin, sets_on_volume};

use crate::options::{ArchiveArgs, CommonArgs};
use crate::outcome::{SummaryPlace, finish, near_hints, summarise, tell};
use crate::standard_error::to_standard_error;
use crate::tape_source::{self, TapeSourceArgs, in_another_set};
use crate::terminal::Terminal;
use service::failure::{Failure, nothing_found_hint, with_causes};
use service::outcome::Outcome;

/// List what is in an archive
///
/// Reads archives of takeup, and plain, gzip and zstd archives of all common tar programs. Control
/// characters, backslashes and invalid UTF-8 are shown as escapes, as in C.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup list srv.tar.zst
  takeup list -l srv.tar etc/ssh
  ssh host 'cat srv.tar' | takeup list -

--json prints one line for each member, and a last one with the summary.")]
pub struct ListArgs {
    /// The archive; - is standard input
    #[arg(value_name = "FROM")]
    from: OsString,
    /// Only these members and what is below them
    #[arg(value_name = "PATH")]
    paths: Vec<OsString>,
    /// Show mode, owner, size, time and targets of links
    #[arg(short, long)]
    long: bool,
    /// Print names without escapes, each followed by a NUL byte
    #[arg(short = '0', long, conflicts_with_all = ["long", "json"])]
    null: bool,
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
    #[command(flatten)]
    common: CommonArgs,
}

/// How a member is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Name,
    NameAndNul,
    Long,
    Json,
}

/// Runs the command.
pub fn run(arguments: &ListArgs) -> ExitCode {
    let result = list_members(arguments);
    finish(result, "list", &arguments.common, SummaryPlace::Output)
}

fn list_members(arguments: &ListArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let form = match (arguments.common.json, arguments.long, arguments.null) {
        (true, ..) => Form::Json,
        (_, true, _) => Form::Long,
        (_, _, true) => Form::NameAndNul,
        _ => Form::Name,
    };
    let from = arguments.tape.origin(&arguments.from, &cancel)?;
    if arguments.sets {
        return list_sets(arguments, &from, &cancel);
    }
    let ring_bytes = tape_source::ring_bytes(&arguments.archive, &from);
    let tape = from.as_tape().cloned();
    let options = ListOptions {
        from,
        selection: Selection::new(arguments.paths.iter().cloned().map(OsString::into_vec)),
        detail: match form {
            Form::Name | Form::NameAndNul => Detail::Index,
            Form::Long | Form::Json => Detail::Everything,
        },
        check: if arguments.check { HeaderCheck::All } else { HeaderCheck::Sample },
        engine: arguments.common.engine.into(),
        ring_bytes,
        index: arguments.archive.index(),
        threads: arguments.archive.threads,
    };
    let mut terminal = Terminal::new(&arguments.common);
    let mut printer = Printer::new(form, &cancel);
    let result = list(options, &terminal, &cancel, |listed| printer.print(listed));
    let printed = printer.finish();
    terminal.close();
    // A reader that ends early (`| head`) ends the list. That is not a failure.
    if let Some(error) = printed {
        return match error.kind() {
            std::io::ErrorKind::BrokenPipe => Ok(Outcome::Done),
            _ => {
                let text = format!("cannot write standard output: {}", with_causes(&error));
                Err(Failure::of(text, None))
            }
        };
    }
    let report = result?;
    let worth = worth(report.way);
    terminal.notice(Notice { level: Level::Detail, object: Vec::new(), text: worth });
    for missing in &report.not_found {
        let text = "not in the archive".to_owned();
        terminal.notice(Notice {
            level: Level::Warning(Harm::NotFound),
            object: missing.path.clone(),
            text,
        });
    }
    let asked = arguments.paths.len();
    // Damage can hide a member that is in the archive: only a sound archive shows that none is.
    let is_sound = terminal.warnings_total() == asked as u64;
    if asked > 0 && report.not_found.len() == asked && is_sound {
        return Err(nothing_found(&report.not_found, tape.as_ref(), &cancel));
    }
    to_standard_error(&near_hints(&report.not_found));
    let verdict = terminal.verdict(&report.run);
    if form == Form::Json {
        print_summary(&report, &mut terminal)?;
    } else {
        tell(&verdict);
    }
    Ok(verdict.state.into())
}

/// The failure when none of the requested paths is in the archive.
fn nothing_found(missing: &[NotFound], tape: Option<&TapeOrigin>, cancel: &Cancel) -> Failure {
    let elsewhere = tape.and_then(|tape| in_another_set(tape, missing, cancel));
    let hint = elsewhere.unwrap_or_else(|| nothing_found_hint(missing));
    Failure::of("none of the requested paths is in the archive", Some(&hint))
}

/// The last line of a list as JSON.
fn print_summary(report: &ListReport, terminal: &mut Terminal) -> Result<(), Failure> {
    let summary = summarise(report.run.clone(), terminal);
    let (from, headers) = match report.way {
        ListWay::Index { headers_checked } => ("index", json!(headers_checked)),
        ListWay::Headers => ("headers", json!(null)),
    };
    let source = json!({ "listed_from": from, "headers_checked": headers });
    let line = json!({ "summary": summary.to_document(), "source": source }).to_string() + "\n";
    crate::outcome::to_standard_output(line.as_bytes())
}

/// Where the list came from, and how far it was checked.
fn worth(way: ListWay) -> String {
    match way {
        ListWay::Index { headers_checked: 0 } => {
            "listed from the index, whose checksums hold; the archive was not compared with it"
                .to_owned()
        }
        ListWay::Index { headers_checked } => {
            let headers = counted(headers_checked, "header", "headers");
            format!(
                "listed from the index, whose checksums hold; compared with {headers} of the \
                 archive; --check compares all headers, `takeup verify` reads everything"
            )
        }
        ListWay::Headers => "listed from the headers of the archive".to_owned(),
    }
}

/// Lists the sets of the volume in a drive.
fn list_sets(arguments: &ListArgs, from: &Origin, cancel: &Cancel) -> Result<Outcome, Failure> {
    let Origin::Tape(tape) = from else {
        let from = Path::new(&arguments.from);
        let hint = "omit --sets: only tapes hold several sets";
        return Err(tape_source::no_tape("--sets", from, hint));
    };
    let sets = sets_on_volume(tape, cancel).map_err(ReadFailure::from).map_err(ListError::from)?;
    let text: String = if arguments.common.json {
        let sets: Vec<_> = sets.iter().map(set_document).collect();
        format!("{:#}\n", json!({ "sets": sets }))
    } else {
        sets.iter().map(|set| set_line(set) + "\n").collect()
    };
    crate::outcome::to_standard_output(text.as_bytes())?;
    if sets.iter().any(|set| !set.has_index && set.followed) {
        Ok(Outcome::Warned)
    } else {
        Ok(Outcome::Done)
    }
}

/// `  1 0123456789ab 2026-11-20 08:33:01 zstd:3   of db1, segments 1-4, complete: 4 files, 1 B: x`
fn set_line(set: &SetOnVolume) -> String {
    let seconds = i64::try_from(set.time_seconds).unwrap_or(i64::MAX);
    let time = time_text(seconds);
    let (first, last) = set.segments;
    let state = match (set.has_index, set.followed) {
        (true, _) => "complete",
        (false, true) => "incomplete: its run did not end",
        (false, false) => "continues on another volume, or its run did not end",
    };
    let volume = match set.volume {
        1 => String::new(),
        number => format!(", volume {number}"),
    };
    let contents = match (&set.contents, set.has_index) {
        (Some(contents), _) => contents_text(contents),
        (None, true) => "; its index cannot be read".to_owned(),
        (None, false) => String::new(),
    };
    let host = set.host.as_ref().map_or(String::new(), |host| format!("of {host}, "));
    format!(
        "{:>3} {} {time} {:<8} {host}segments {first}-{last}{volume}, {state}{contents}",
        set.number,
        &set.id[..12],
        set.compression
    )
}

/// `: 40 files, 1.20 GB: home/eva etc`.
fn contents_text(contents: &SetContents) -> String {
    let files = counted(contents.files, "file", "files");
    let roots: Vec<String> = contents.roots.iter().map(|root| escape(root)).collect();
    let more = match contents.roots_total - contents.roots.len() as u64 {
        0 => String::new(),
        more => format!(" and {}", counted(more, "more", "more")),
    };
    format!(": {files}, {}: {}{more}", size(contents.source_bytes), roots.join(" "))
}

fn set_document(set: &SetOnVolume) -> serde_json::Value {
    json!({
        "number": set.number,
        "set": set.id,
        "time_seconds": set.time_seconds,
        "host": set.host,
        "volume": set.volume,
        "first_segment": set.segments.0,
        "last_segment": set.segments.1,
        "has_index": set.has_index,
        "followed": set.followed,
        "compression": set.compression,
        "block_bytes": set.block_bytes,
        "first_file": set.first_file,
        "contents": set.contents.as_ref().map(|contents| json!({
            "sources": contents.roots.iter().map(|root| escape(root)).collect::<Vec<_>>(),
            "sources_total": contents.roots_total,
            "members": contents.members,
            "files": contents.files,
            "source_bytes": contents.source_bytes,
            "archive_bytes": contents.archive_bytes,
        })),
    })
}

/// Writes the list, and stops the run when a write fails.
struct Printer<'a> {
    form: Form,
    output: BufWriter<StdoutLock<'static>>,
    error: Option<std::io::Error>,
    cancel: &'a Cancel,
}

impl Printer<'_> {
    fn new(form: Form, cancel: &Cancel) -> Printer<'_> {
        let output = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
        Printer { form, output, error: None, cancel }
    }

    fn print(&mut self, listed: &Listed<'_>) {
        if self.error.is_some() {
            return;
        }
        let member = listed.member;
        let written = match self.form {
            Form::Name => writeln!(self.output, "{}", shown_path(member)),
            Form::NameAndNul => {
                self.output.write_all(&member.path).and_then(|()| self.output.write_all(b"\0"))
            }
            Form::Long => writeln!(self.output, "{}", long_line(member)),
            Form::Json => {
                let line = format!("{}\n", document(listed));
                self.output.write_all(Printable::of(line.as_bytes()).as_bytes())
            }
        };
        if let Err(error) = written {
            self.error = Some(error);
            self.cancel.cancel();
        }
    }

    fn finish(mut self) -> Option<std::io::Error> {
        let flushed = self.output.flush().err();
        self.error.take().or(flushed)
    }
}

fn shown_path(member: &Member) -> String {
    let slash = if member.kind == MemberKind::Directory { "/" } else { "" };
    escape(&member.path) + slash
}

/// A line as of `ls -l`, with the time in UTC.
fn long_line(member: &Member) -> String {
    let name =
        |name: &[u8], number: u64| if name.is_empty() { number.to_string() } else { escape(name) };
    let owner = format!("{}/{}", name(&member.user, member.uid), name(&member.group, member.gid));
    let size = match &member.kind {
        MemberKind::CharacterDevice { major, minor } | MemberKind::BlockDevice { major, minor } => {
            format!("{major},{minor}")
        }
        _ => member.size_bytes.to_string(),
    };
    let leads_to = match &member.kind {
        // The index of a set on tape does not have the targets of links.
        MemberKind::SymbolicLink { target } if target.is_empty() => String::new(),
        MemberKind::SymbolicLink { target } => format!(" -> {}", escape(target)),
        MemberKind::HardLink { target } => format!(" link to {}", escape(target)),
        _ => String::new(),
    };
    let (mode, time, path) =
        (mode_text(member), time_text(member.modified.seconds), shown_path(member));
    format!("{mode} {owner} {size:>12} {time} {path}{leads_to}")
}

fn mode_text(member: &Member) -> String {
    let kind = match member.kind {
        MemberKind::File => '-',
        MemberKind::HardLink { .. } => 'h',
        MemberKind::Directory => 'd',
        MemberKind::SymbolicLink { .. } => 'l',
        MemberKind::Fifo => 'p',
        MemberKind::CharacterDevice { .. } => 'c',
        MemberKind::BlockDevice { .. } => 'b',
    };
    let mut text = String::from(kind);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = member.mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & 1 != 0, member.mode & special != 0) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

fn document(listed: &Listed<'_>) -> serde_json::Value {
    let member = listed.member;
    let (kind, target) = match &member.kind {
        MemberKind::File => ("file", None),
        MemberKind::Directory => ("directory", None),
        MemberKind::SymbolicLink { target } => ("symbolic link", Some(target)),
        MemberKind::HardLink { target } => ("hard link", Some(target)),
        MemberKind::Fifo => ("fifo", None),
        MemberKind::CharacterDevice { .. } => ("character device", None),
        MemberKind::BlockDevice { .. } => ("block device", None),
    };
    json!({
        "path": escape(&member.path),
        "kind": kind,
        "target": target.map(|target| escape(target)),
        "mode": format!("{:04o}", member.mode),
        "uid": member.uid,
        "gid": member.gid,
        "user": escape(&member.user),
        "group": escape(&member.group),
        "size_bytes": member.size_bytes,
        "stored_bytes": listed.stored_bytes,
        "modified_seconds": member.modified.seconds,
        "modified_nanoseconds": member.modified.nanoseconds,
        "header_offset_bytes": listed.header_offset_bytes.bytes(),
    })
}
