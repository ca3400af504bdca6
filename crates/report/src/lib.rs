//! What a run looks like at its end: numbers as text, aligned tables, the explanation in words, and
//! the document that `--json` prints.
//!
//! Everything here turns plain data into text and returns it; nothing prints, and nothing knows a
//! device or a flag.

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
