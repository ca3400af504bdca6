//! A list: the members of an archive, and the sets on a volume.

mod answer;

use std::io;
use std::path::PathBuf;

use base::format::counted;
use flow::cancel::Cancel;
use flow::monitor::{Harm, Level, Monitor, Notice};
use runs::list::{Detail, HeaderCheck, ListError, ListOptions, ListReport, ListWay, Listed};
use runs::origin::Origin;
use runs::read::ReadFailure;
use runs::selection::NotFound;
use runs::summary::RunSummary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapeset::{SetOnVolume, TapeOrigin, sets_on_volume};

use crate::change::SharedChanger;
use crate::failure::{Failure, nothing_found_hint};
use crate::interrupted::with_left;
use crate::outcome::Outcome;
use crate::restore::selection;
use crate::run::{ArchiveSettings, EngineChoice, RunMonitor, RunObserver};
use crate::tape_end;
use crate::tape_source::{self, TapeSourceSettings, in_another_set, no_tape};

pub use answer::{
    ListSource, ListSummary, ListedFrom, MemberLine, MemberType, SetAnswer, SetChainAnswer,
    SetContentsAnswer, SetsAnswer,
};

/// What to list and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListRequest {
    /// The archive; `-` is standard input.
    pub from: PathBuf,
    /// Only these members and what is below them; empty: everything.
    #[serde(default)]
    pub paths: Vec<PathBuf>,
    /// What is wanted of each member.
    #[serde(default)]
    pub detail: MemberDetail,
    /// Whether every header is compared with the index, not only some.
    #[serde(default)]
    pub check: bool,
    /// How the archive is read.
    #[serde(default)]
    pub archive: ArchiveSettings,
    /// What only tapes need.
    #[serde(default)]
    pub tape: TapeSourceSettings,
    /// How files are read and written.
    #[serde(default)]
    pub engine: EngineChoice,
}

/// What is wanted of each member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberDetail {
    /// What the index has: targets of links and names of owners may be missing.
    Index,
    /// Everything in the archive.
    #[default]
    Everything,
}

/// The volume whose sets are listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetsRequest {
    /// The tape drive.
    pub from: PathBuf,
    /// Which volumes, and what changes them.
    #[serde(default)]
    pub tape: TapeSourceSettings,
}

/// Takes the members of a list.
pub trait MemberSink {
    /// Takes a member.
    ///
    /// # Errors
    /// When it takes no more: that ends the list.
    fn member(&mut self, listed: &Listed<'_>) -> io::Result<()>;

    /// All members were given.
    ///
    /// # Errors
    /// When some of them were not taken.
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How a list has ended.
#[derive(Debug)]
pub enum ListEnd {
    /// All members were listed.
    Whole(Box<ListDone>),
    /// The sink took no more.
    NotTaken(io::Error),
}

/// The end of a list.
#[derive(Debug)]
pub struct ListDone {
    pub summary: RunSummary,
    pub report: ListReport,
}

/// The sets of a volume.
#[derive(Clone, Debug)]
pub struct SetsDone {
    /// In the order of their numbers.
    pub sets: Vec<SetOnVolume>,
    /// What the drive reports.
    pub reported: Vec<String>,
    /// Why the medium was not ejected, though it was to be.
    pub still_loaded: Option<String>,
}

impl ListDone {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        self.summary.verdict.state.into()
    }
}

impl SetsDone {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        let is_incomplete = |set: &SetOnVolume| !set.has_index && set.followed;
        if self.still_loaded.is_some() || self.sets.iter().any(is_incomplete) {
            Outcome::Warned
        } else {
            Outcome::Done
        }
    }
}

/// Lists the members of an archive. `changer` gets other volumes where the request has no command
/// for that.
///
/// # Errors
/// When the archive cannot be read, or has none of the requested members.
pub fn list(
    request: &ListRequest,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: SharedChanger,
    members: &mut dyn MemberSink,
) -> Result<ListEnd, Failure> {
    let from = request.tape.origin(&request.from, cancel, changer)?;
    let tape = from.as_tape().cloned();
    let options = options(request, from);
    let mut monitor = RunMonitor::new(observer);
    let mut refused = None;
    let result = runs::list::list(options, &monitor, cancel, |listed| {
        if refused.is_none()
            && let Err(error) = members.member(listed)
        {
            refused = Some(error);
            cancel.cancel();
        }
    });
    let ended = members.end().err();
    if let Some(error) = refused.or(ended) {
        return Ok(ListEnd::NotTaken(error));
    }
    let report = result
        .map_err(|error| with_left(error.into(), cancel, || "the list is incomplete".to_owned()))?;
    notify(&report, &monitor);
    let asked = request.paths.len();
    // Damage can hide a member that is in the archive: only a sound archive shows that none is.
    let is_sound = monitor.warnings_total() == asked as u64;
    if asked > 0 && report.not_found.len() == asked && is_sound {
        return Err(nothing_found(&report.not_found, tape.as_ref(), cancel));
    }
    tape_source::tell_complete_set(&request.tape, tape.as_ref(), None, &monitor, cancel);
    let reported = tape_end::end(&request.from, request.tape.eject.into(), &monitor);
    let summary = monitor.summarise(report.run.clone(), |summary| {
        summary.findings.extend(reported.iter().cloned());
    });
    Ok(ListEnd::Whole(Box::new(ListDone { summary, report })))
}

fn options(request: &ListRequest, from: Origin) -> ListOptions {
    let ring_bytes = tape_source::ring_bytes(&request.archive, &from);
    ListOptions {
        from,
        selection: selection(&request.paths),
        detail: match request.detail {
            MemberDetail::Index => Detail::Index,
            MemberDetail::Everything => Detail::Everything,
        },
        check: if request.check { HeaderCheck::All } else { HeaderCheck::Sample },
        engine: request.engine.into(),
        ring_bytes,
        index: request.archive.index(),
        threads: request.archive.threads,
    }
}

/// Reports how far the list was checked, and which paths are missing.
fn notify(report: &ListReport, monitor: &RunMonitor<'_>) {
    let text = worth(report.way);
    monitor.notice(Notice { level: Level::Detail, object: Vec::new(), text });
    for missing in &report.not_found {
        let text = "not in the archive".to_owned();
        let (level, object) = (Level::Warning(Harm::NotFound), missing.path.clone());
        monitor.notice(Notice { level, object, text });
    }
}

/// The failure when none of the requested paths is in the archive.
fn nothing_found(missing: &[NotFound], tape: Option<&TapeOrigin>, cancel: &Cancel) -> Failure {
    let elsewhere = tape.and_then(|tape| in_another_set(tape, missing, cancel));
    let hint = elsewhere.unwrap_or_else(|| nothing_found_hint(missing));
    Failure::of("none of the requested paths is in the archive", Some(&hint))
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
///
/// # Errors
/// When it is no tape drive, or the tape cannot be read.
pub fn sets(
    request: &SetsRequest,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<SetsDone, Failure> {
    let from = request.tape.origin(&request.from, cancel, changer)?;
    let Origin::Tape(tape) = &from else {
        let hint = "omit --sets: only tapes hold several sets";
        return Err(no_tape("--sets", &request.from, hint));
    };
    let sets = sets_on_volume(tape, cancel).map_err(ReadFailure::from).map_err(ListError::from)?;
    let (reported, ejected) = tape_end::look(&request.from, request.tape.eject.into());
    let reported = reported.iter().map(tape_end::line).collect();
    Ok(SetsDone { sets, reported, still_loaded: ejected.err() })
}
