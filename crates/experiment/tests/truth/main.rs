//! What the program says of experiments whose truth is known: records are made, judged as every
//! record is, and the sentences are held against what was put in. `cargo test -p experiment --test
//! truth -- --nocapture --test-threads 1` prints the tables of `docs/design/statistics.md`, `cargo
//! xtask statistics` one table of all that was found; `TAKEUP_LONG=1` takes twenty times as many
//! experiments.
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
