//! What a run looks like at its end: numbers as text, aligned tables, the explanation in words, and
//! the document that `--json` prints.
//!
//! Everything here turns plain data into text and returns it. Nothing prints, and nothing knows a
//! device or an option.
//!
//! # Map
//!
//! - [`summary`]: the document that `--json` prints, and its table.
//! - [`run_record`]: a run in a file, with its stages over time.
//! - [`verdict`]: the first line: whether the run succeeded, and its counts.
//! - [`explanation`]: what limited a run, in words.
//! - [`streaming`]: whether the drive streamed.
//! - [`findings`]: how a finding is printed.
//! - [`rules`]: the rules of limits and streaming.
//! - [`figure`]: charts as SVG.
//! - [`page`]: pages as HTML.
//! - [`table`]: aligned tables.

pub mod explanation;
pub mod figure;
pub mod findings;
pub mod page;
pub mod rules;
pub mod run_record;
pub mod streaming;
pub mod summary;
pub mod table;
pub mod verdict;
