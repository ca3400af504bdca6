//! Tests of the engine from outside: the ring against a naive model, both back ends against a plain
//! copy, streams and files from end to end, and everything that ends a run early.
#![allow(clippy::unwrap_used)]

#[path = "flow/backends.rs"]
mod backends;
#[path = "flow/in_flight.rs"]
mod in_flight;
#[path = "flow/ring.rs"]
mod ring;
#[path = "flow/stopping.rs"]
mod stopping;
#[path = "flow/streams.rs"]
mod streams;

use flow::account::{Account, Stage};
use flow::run::StageKind;

/// The byte at a place of the test stream: neighbours differ, and so do blocks.
pub fn byte_at(position: u64) -> u8 {
    (position ^ (position >> 9) ^ (position >> 17)) as u8
}

/// Some bytes of the test stream.
pub fn bytes_at(position: u64, length: usize) -> Vec<u8> {
    (position..position + length as u64).map(byte_at).collect()
}

/// An account whose times are not used.
pub fn account() -> Account {
    Stage::new(StageKind::Write).open()
}
