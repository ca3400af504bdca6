//! The arguments of the command line: what is typed becomes a request of `service`.
//!
//! Only clap is used here: no terminal, no exit code. A second program can take the same arguments.
//!
//! # Map
//!
//! - [`run`]: arguments that several runs share.
//! - [`backup`]: the arguments of `takeup backup`.
//! - [`restore`]: the arguments of `takeup restore`.
//! - [`list`]: the arguments of `takeup list`.
//! - [`catalog`]: the arguments of `takeup catalog`.
//! - [`browse`]: the arguments of `takeup browse`.
//! - [`jobs`]: the arguments of `takeup run`, `status`, `check-config` and `units`.
//! - [`verify`]: the arguments of `takeup verify`.
//! - [`pipe`]: the arguments of `takeup pipe`.
//! - [`proposing`]: values that a shell proposes.
//! - [`parameter`]: a parameter of a drive as it is typed.
//! - [`plan`]: the arguments of `takeup plan`.
//! - [`probe`]: the arguments of `takeup probe`.
//! - [`tune`]: the arguments of `takeup tune`.
//! - [`sim`]: the arguments of `takeup sim`.
//! - [`explain`]: the arguments of `takeup explain`.
//! - [`capture`]: the arguments of `takeup capture`.
//! - [`watch`]: the arguments of `takeup watch`.
//! - [`mod@bench`]: those of `takeup bench`.
//! - [`compare`]: those of `takeup compare`.
//! - [`diagnose`]: those of `takeup diagnose`.
//! - [`doctor`]: those of `takeup doctor`.
//! - [`report`]: those of `takeup report`.
//! - [`telling`]: who is told of a run besides the user.

// The doc comments of options are help texts, in which `zstd[:LEVEL]` is no link.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]

pub mod backup;
pub mod bench;
pub mod browse;
pub mod capture;
pub mod catalog;
pub mod compare;
pub mod diagnose;
pub mod doctor;
pub mod explain;
pub mod jobs;
pub mod list;
pub mod parameter;
pub mod pipe;
pub mod plan;
pub mod probe;
pub mod proposing;
pub mod report;
pub mod restore;
pub mod run;
pub mod sim;
pub mod telling;
pub mod tune;
pub mod verify;
pub mod watch;

pub use base::quantity;
