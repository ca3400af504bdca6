//! Judgements of experiments with known truth: records are simulated, judged like any record, and
//! the sentences are compared with the truth. `cargo test -p experiment --test truth -- --nocapture
//! --test-threads 1` prints the tables of `docs/design/statistics.md`, `cargo xtask statistics` one
//! table of all results; `TAKEUP_LONG=1` runs twenty times as many experiments.
#![allow(clippy::unwrap_used)]
#![expect(clippy::print_stdout, reason = "the tables of the document")]

mod choices;
mod comparisons;
mod costs;
mod courses;
mod curves;
mod designs;
mod differences;
mod repeats;
mod world;
