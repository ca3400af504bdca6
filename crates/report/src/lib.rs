//! Every document as text, table, figure or page: one renderer.
//!
//! Everything here turns plain data into text and returns it. Nothing prints, and nothing knows a
//! device or an option.
//!
//! # Map
//!
//! - [`run`]: the end of a run: the answer, and the table of its stages.
//! - [`backup`]: the end of a backup.
//! - [`restore`]: the end of a restore.
//! - [`verify`]: the end of a verification.
//! - [`pipe`]: the end of a pipe.
//! - [`list`]: the members of an archive, and the sets of a volume.
//! - [`many`]: many hosts: which is slow, what is shared, what each did.
//! - [`mod@media`]: the tapes that hold sets.
//! - [`mod@jobs`]: what became of jobs, and the sets of a folder.
//! - [`catalog`]: what a catalogue has.
//! - [`catalog_du`]: where the bytes of its sets are.
//! - [`catalog_ls`]: a folder as a set has it.
//! - [`tape`]: what a run adds about its tape.
//! - [`experiments`]: an experiment as text, page, figures and lines of JSON.
//! - [`mod@bench`]: what the subcommands of `takeup bench` print.
//! - [`captures`]: what was recorded of a process's calls.
//! - [`sampled`]: what `/proc` showed of a process.
//! - [`diagnose`]: what texts of other programs show.
//! - [`doctor`]: what a bug report needs of a machine.
//! - [`explain`]: the runs of a pipeline, and its bottleneck.
//! - [`probe`]: what was found of a tape drive.
//! - [`layers`]: the layers of storage below a path, as a tree.
//! - [`plan`]: a plan, its alternatives and its charts.
//! - [`sim`]: a virtual drive or disk that was mounted.
//! - [`calibration`]: the parameters of a drive or a disk that an experiment shows.
//! - [`history`]: a record of a watch as a text and a page.
//! - [`comparison`]: a comparison of two such records.
//! - [`captured`]: a capture with its devices as a text and a page.
//! - [`stages`]: the stages of Takeup's own runs over time.
//! - [`device_tree`]: devices as a tree of layers.
//! - [`glyphs`]: characters that a terminal can draw.
//! - [`rules`]: the rules by which anything is found.
//! - [`tune`]: settings that were measured, set, shown and reverted.
//! - [`mod@watch`]: what a record of readings lacks.
//! - [`findings`]: how a finding is printed.
//! - `next`: the one command that a text ends with.
//! - [`figure`]: charts as SVG.
//! - [`page`]: pages as HTML.
//! - [`table`]: aligned tables.
//! - [`prose`]: sentences, wrapped at the width of a terminal.

pub mod backup;
pub mod bench;
pub mod calibration;
pub mod captured;
pub mod captures;
pub mod catalog;
pub mod catalog_du;
pub mod catalog_ls;
pub mod comparison;
pub mod device_tree;
pub mod diagnose;
pub mod doctor;
pub mod experiments;
pub mod explain;
pub mod figure;
pub mod findings;
pub mod glyphs;
pub mod history;
pub mod jobs;
pub mod layers;
pub mod list;
pub mod many;
pub mod media;
mod next;
pub mod page;
pub mod pipe;
pub mod plan;
pub mod probe;
pub mod prose;
pub mod restore;
pub mod rules;
pub mod run;
pub mod sampled;
pub mod sim;
pub mod stages;
pub mod table;
pub mod tape;
pub mod tune;
pub mod verify;
pub mod watch;
