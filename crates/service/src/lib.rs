//! The commands as functions: a typed request in, a typed answer out.
//!
//! Requests and answers are read and written as JSON and have schemas, in `docs/schema/`.
//! [`document`] makes of an answer what `--json` prints. This crate and those below it decide what
//! may be set, what is refused and what is safe to read; the binary does not. Nothing here knows a
//! flag, a terminal or an exit code; `report` makes text of the answers.
//!
//! # Map
//!
//! - [`backup`]: files into an archive.
//! - [`dry_run`]: what a backup would store.
//! - [`restore`]: an archive into a folder.
//! - [`list`]: the members of an archive, and the sets on a volume.
//! - [`many`]: what many hosts found or did together.
//! - [`catalog`]: which archive has which version of which file.
//! - [`verify`]: an archive read back, and compared with live files.
//! - [`pipe`]: a buffer between two programs, files or devices.
//! - [`run`]: what these runs have in common.
//! - [`tape_source`]: a tape that an archive is read from.
//! - [`tape_forecast`]: what reading from tape needs, and how often a drive stopped.
//! - `tape_end`: what the drive reports after a run, and the tape that comes out.
//! - [`sets`]: sets of a chain in a folder.
//! - `tape_memory`: what is known of media without reading them.
//! - `tape_sets`: what is known of sets of chains on tape without a tape.
//! - [`folder_sets`]: the sets of a folder, listed.
//! - [`verify_sets`]: all archives of a folder, or all sets of a tape, read back.
//! - [`retention`]: which sets of a folder are kept, and the end of the others.
//! - [`mod@media`]: the tapes that hold sets, and which may be written over.
//! - [`mod@jobs`]: backups that a file names, and that run again and again.
//! - [`mod@journal`]: what became of runs and archives, here and in the sets.
//! - `shell`: a command of the user, ended in time.
//! - `scratch`: a folder for a while.
//! - [`change`]: changes of volume by a command.
//! - `compression_by_name`: the compression that the name of a target stands for.
//! - [`mod@doctor`]: what a bug report needs, and what stands in the way of Takeup here.
//! - `largest_file`: the largest file below a folder, which stands for it.
//! - `recording`: the record of a run.
//! - `interrupted`: what a run leaves that the user stops.
//! - [`probe`]: what a tape drive is, and the layers of storage below a path.
//! - [`plan`]: time, tapes and stops of a backup, before anything is written.
//! - [`sim`]: a virtual drive or disk for any program.
//! - [`calibration`]: the model of a drive or a disk from an experiment on it.
//! - [`model_names`]: names of drives, media and disks that the models know.
//! - [`parameter_setting`]: a parameter of the model of a drive that the user sets.
//! - [`rules`]: the rules by which anything is found.
//! - [`telling`]: what is told of a run to a monitoring system.
//! - [`tune`]: settings of storage: measured, set, remembered and reverted.
//! - [`mod@diagnose`]: why a backup is slow; what other programs printed, put together.
//! - [`explain`]: the bottleneck of a pipeline of other programs.
//! - [`mod@capture`]: how a process uses its files.
//! - [`mod@watch`]: what block devices do.
//! - [`mod@bench`]: experiments: their plans, how they are run, what they found.
//! - [`compare`]: two experiments, or two records of a watch, side by side.
//! - [`report`]: what a file of runs or a record holds.
//! - [`recorded`]: records of a watch, as input of reports and comparisons.
//! - [`notify`]: lines that the user must see while a command runs.
//! - [`outcome`]: how a command that did not fail has ended.
//! - [`failure`]: why a command failed, and what to do.
//! - [`schema`]: the schemas of requests and answers.
//! - [`state`]: where the state of Takeup lies.
//! - [`virtual_drive`]: what a virtual drive is set to be.
//! - [`output_file`]: a file that gets its name when it is whole.

pub mod backup;
pub mod bench;
pub mod calibration;
pub mod capture;
pub mod catalog;
pub mod change;
pub mod compare;
mod compression_by_name;
pub mod diagnose;
pub mod doctor;
pub mod dry_run;
pub mod explain;
pub mod failure;
pub mod folder_sets;
mod interrupted;
pub mod jobs;
pub mod journal;
mod largest_file;
pub mod list;
pub mod many;
pub mod media;
pub mod model_names;
pub mod notify;
pub mod outcome;
pub mod output_file;
pub mod parameter_setting;
pub mod pipe;
pub mod plan;
pub mod probe;
pub mod recorded;
mod recording;
pub mod report;
pub mod restore;
pub mod retention;
pub mod rules;
pub mod run;
pub mod schema;
mod scratch;
pub mod sets;
mod shell;
pub mod sim;
pub mod state;
mod tape_end;
pub mod tape_forecast;
mod tape_memory;
mod tape_sets;
pub mod tape_source;
pub mod telling;
pub mod tune;
pub mod verify;
pub mod verify_sets;
pub mod virtual_drive;
pub mod watch;

use serde::Serialize;
use serde_json::{Value, json};

/// Version of the requests and answers: a field that goes away or means something else makes a new
/// one. Fields are added without one.
pub const VERSION: u32 = 1;

/// What a command answers, as `--json` prints it.
pub trait Answer: Serialize {
    /// The command, as it is typed.
    const COMMAND: &'static str;

    /// The command of this answer, where one type is the answer of several commands.
    fn command(&self) -> &str {
        Self::COMMAND
    }
}

/// The document of an answer: its fields, its command, and the [`VERSION`] of its schema.
///
/// # Panics
/// Never: an answer consists of numbers, texts, and maps with texts as keys.
pub fn document<A: Answer>(answer: &A) -> Value {
    let mut document = serde_json::to_value(answer).expect("an answer can be written as JSON");
    document["command"] = json!(answer.command());
    document["schema_version"] = json!(VERSION);
    document
}
