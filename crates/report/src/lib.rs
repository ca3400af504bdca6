//! Every document as text, table, figure or page: one renderer.
//!
//! Everything here turns plain data into text and returns it. Nothing prints, and nothing knows a
//! device or an option.
//!
//! # Map
//!
//! - [`run`]: the end of a run: the answer, and the table of its stages.
//! - [`experiments`]: an experiment as text, page, figures and table.
//! - [`bench`]: what the subcommands of `takeup bench` print.
//! - [`captures`]: what was recorded of a process's calls.
//! - [`sampled`]: what `/proc` showed of a process.
//! - [`probe`]: what was found of a tape drive.
//! - [`layers`]: the layers of storage below a path, as a tree.
//! - [`rules`]: the rules by which anything is found.
//! - [`findings`]: how a finding is printed.
//! - [`figure`]: charts as SVG.
//! - [`page`]: pages as HTML.
//! - [`table`]: aligned tables.

pub mod bench;
pub mod captures;
pub mod experiments;
pub mod figure;
pub mod findings;
pub mod layers;
pub mod page;
pub mod probe;
pub mod rules;
pub mod run;
pub mod sampled;
pub mod table;
