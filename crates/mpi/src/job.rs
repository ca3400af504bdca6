//! From the command line to the exit code, on every rank.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;
use std::thread;

use clap::Parser;
use flow::cancel::Cancel;
use many::clock::OwnClock;
use many::communicator::Communicator;
use many::meet::{MeetError, Met, identity_of, meet};
use many::message::Introduction;
use many::placeholders::Placeholders;
use many::ranks::Ranks;
use service::failure::{Failure, FailureKind};
use service::outcome::Outcome;
use signal_hook::consts::{SIGINT, SIGTERM};
use storage::layers::Storage;

use crate::arguments::{ManyArgs, ManyBench, ManyCommand};
use crate::bench::{Place, Ready};
use crate::say::to_standard_error;
use crate::{bench, set};

/// How a rank ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// With this exit code; all ranks know that it is over.
    Code(u8),
    /// It failed alone: the others wait for it and have to be ended.
    Alone,
}

/// Runs a command line on this rank.
pub fn run(typed: &[OsString], by: Rc<dyn Communicator>) -> JobEnd {
    let host = host_name();
    let filled = match filled(typed, &host, &*by) {
        Ok(filled) => filled,
        Err(failure) => return refused(&host, typed, &failure, &*by),
    };
    let arguments = match ManyArgs::try_parse_from(filled) {
        Ok(arguments) => arguments,
        Err(error) => {
            // All have the same arguments, so all end here.
            if by.rank() == 0 {
                let _ = error.print();
            }
            return JobEnd::Code(u8::from(error.use_stderr()));
        }
    };
    let cancel = Cancel::new();
    watch_signals(&cancel, by.rank());
    let place = Place { is_first: by.rank() == 0, ranks: by.size() };
    let ready = match ready(&arguments, place) {
        Ok(ready) => ready,
        Err(failure) => return refused(&host, typed, &failure, &*by),
    };
    let mut introduction = introduction(&host, typed, target_of(&arguments), None);
    introduction.shared = shared_by(&arguments);
    let Met { hosts, differences } = match meet(introduction, &*by, &cancel) {
        Ok(met) => met,
        Err(error) => return not_met(&error, None, &*by),
    };
    let rank = by.rank();
    let clock = Rc::new(OwnClock::default());
    // Only rank 0 asks for the names of others; each knows its own.
    let hosts = if rank == 0 { hosts } else { vec![host.clone(); by.size()] };
    let ranks = Rc::new(Ranks { by, clock, hosts });
    let job = Job { ranks, host, differences, cancel };
    let ended = ready(&job);
    conclude(ended, &job)
}

/// All that can fail on this host alone, before the ranks meet.
fn ready(arguments: &ManyArgs, place: Place) -> Result<Ready<'_>, Failure> {
    match arguments.command() {
        ManyCommand::Bench(ManyBench::Read(it)) => bench::read(it, place),
        ManyCommand::Bench(ManyBench::Disk(it)) => bench::disk(it, place),
        ManyCommand::Bench(ManyBench::Run(it)) => bench::commands(it, place),
        ManyCommand::Backup(it) => Ok(Box::new(|job| set::backup(it, job))),
        ManyCommand::Verify(it) => Ok(Box::new(|job| set::verify(it, job))),
        ManyCommand::Restore(it) => Ok(Box::new(|job| set::restore(it, job))),
    }
}

/// What a command gets on each rank.
pub struct Job {
    /// All ranks.
    pub ranks: Rc<Ranks>,
    /// This host.
    pub host: String,
    /// What differs between the hosts; known on rank 0.
    pub differences: Vec<String>,
    pub cancel: Cancel,
}

impl Job {
    /// Whether this is the rank that conducts and speaks.
    pub fn is_first(&self) -> bool {
        self.ranks.by.rank() == 0
    }
}

fn conclude(ended: Result<Outcome, Failure>, job: &Job) -> JobEnd {
    match ended {
        Ok(outcome) => JobEnd::Code(match outcome {
            Outcome::Done => 0,
            Outcome::Warned => 2,
            Outcome::Bad => 1,
            Outcome::Later => 3,
        }),
        Err(failure) if job.is_first() => {
            to_standard_error(&failure.to_text());
            // The others wait for the next message.
            let _ = many::conduct::quit(&job.ranks);
            JobEnd::Code(if failure.kind() == FailureKind::LaterVersion { 3 } else { 1 })
        }
        Err(failure) => {
            let rank = job.ranks.by.rank();
            to_standard_error(&format!("{} (rank {rank}): {}", job.host, failure.to_text()));
            JobEnd::Alone
        }
    }
}

fn not_met(error: &MeetError, hint: Option<&str>, by: &dyn Communicator) -> JobEnd {
    if by.rank() == 0 {
        to_standard_error(&Failure::new(error, hint.map(str::to_owned)).to_text());
    }
    match error {
        MeetError::Refused(_) => JobEnd::Code(1),
        MeetError::Mail(_) => JobEnd::Alone,
    }
}

/// Tells the others that this rank cannot take part.
fn refused(host: &str, typed: &[OsString], failure: &Failure, by: &dyn Communicator) -> JobEnd {
    let why = Some(failure.message().to_owned());
    let introduction = introduction(host, typed, BTreeMap::new(), why);
    match meet(introduction, by, &Cancel::new()) {
        Ok(_) => JobEnd::Alone,
        Err(error) => not_met(&error, failure.hint(), by),
    }
}

fn introduction(
    host: &str,
    typed: &[OsString],
    target: BTreeMap<String, String>,
    refused: Option<String>,
) -> Introduction {
    let text = |argument: &OsString| argument.to_string_lossy().into_owned();
    Introduction {
        host: host.to_owned(),
        version: version(),
        // Not the first one: where the program lies may differ.
        arguments: typed.iter().skip(1).map(text).collect(),
        target,
        shared: BTreeMap::new(),
        refused,
    }
}

/// The folders of a set, which all hosts have to see.
fn shared_by(arguments: &ManyArgs) -> BTreeMap<String, String> {
    let folders: Vec<&Path> = match arguments.command() {
        ManyCommand::Bench(_) => Vec::new(),
        ManyCommand::Backup(it) => {
            it.sources.iter().chain([&it.to]).map(std::path::PathBuf::as_path).collect()
        }
        ManyCommand::Verify(it) => vec![&it.from],
        ManyCommand::Restore(it) => vec![&it.from, &it.into],
    };
    let one = |path: &Path| {
        let path = set::absolute(path);
        (path.display().to_string(), identity_of(&path))
    };
    folders.into_iter().map(one).collect()
}

/// The version that this rank has; in debug builds the tests can pretend another one.
fn version() -> String {
    #[cfg(debug_assertions)]
    if let Ok(version) = std::env::var("TAKEUP_MPI_VERSION") {
        return version;
    }
    env!("CARGO_PKG_VERSION").to_owned()
}

/// The arguments of this rank: with its numbers and names filled in.
fn filled(typed: &[OsString], host: &str, by: &dyn Communicator) -> Result<Vec<OsString>, Failure> {
    let map = match map_file(typed) {
        Some(path) => machine::small_file::text(Path::new(&path)).map_err(|error| {
            Failure::of(format!("read {}: {error}", path.to_string_lossy()), None)
        })?,
        None => String::new(),
    };
    let names = Placeholders::new(by.rank(), by.size(), host, &map)
        .map_err(|error| Failure::new(&error, None))?;
    let fill = |argument: &OsString| match argument.to_str() {
        Some(text) => OsString::from(names.fill(text)),
        None => argument.clone(),
    };
    Ok(typed.iter().map(fill).collect())
}

/// The file behind `--map`, which has to be read before the other arguments mean anything.
fn map_file(typed: &[OsString]) -> Option<OsString> {
    let mut typed = typed.iter();
    while let Some(argument) = typed.next() {
        if argument == "--map" {
            return typed.next().cloned();
        }
        if let Some(path) = argument.to_str().and_then(|text| text.strip_prefix("--map=")) {
            return Some(path.into());
        }
    }
    None
}

/// What the target of a command is on this host, as far as it may differ between hosts.
fn target_of(arguments: &ManyArgs) -> BTreeMap<String, String> {
    let path = match arguments.command() {
        ManyCommand::Bench(ManyBench::Read(it)) => {
            it.own.request().ok().and_then(|request| request.paths.first().cloned())
        }
        ManyCommand::Bench(ManyBench::Disk(it)) => it.own.request().path,
        ManyCommand::Bench(ManyBench::Run(_)) => None,
        ManyCommand::Backup(it) => it.sources.first().cloned(),
        ManyCommand::Verify(it) => Some(it.from.clone()),
        ManyCommand::Restore(it) => Some(it.from.clone()),
    };
    let mut found = match path {
        Some(path) => match Storage::of(&path) {
            Ok(storage) => experiment::environment::of(&path, &storage),
            Err(_) => experiment::environment::of_this_machine(),
        },
        None => experiment::environment::of_this_machine(),
    };
    // Of its own on every host.
    found.retain(|name, _| !OWN_OF_A_HOST.iter().any(|own| name.starts_with(own)));
    found
}

/// What says nothing if it differs.
const OWN_OF_A_HOST: [&str; 6] = ["path", "lasting", "serial", "host", "device", "free memory"];

/// Name of this host, as `uname -n` has it.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The first SIGINT or SIGTERM ends the run, the second one the process.
fn watch_signals(cancel: &Cancel, rank: usize) {
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else { return };
    let cancel = cancel.clone();
    let watch = move || {
        let mut stopping = false;
        for _ in signals.forever() {
            if stopping {
                std::process::exit(1);
            }
            stopping = true;
            cancel.cancel();
            if rank == 0 {
                to_standard_error("takeup-mpi: stopping; interrupt again to stop at once\n");
            }
        }
    };
    // Without it signals keep their usual effect.
    let _ = thread::Builder::new().name("takeup-signals".to_owned()).spawn(watch);
}
