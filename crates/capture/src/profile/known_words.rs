//! Words of a profile that are of fixed lists, read back from a record as those of the lists.
//!
//! A field that only a later version knows is left out, and a reason that only it knows becomes
//! that nothing more is known.

use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer, Error};

use super::Word;
use crate::operation::{SyncCall, Unknown};

/// There was no operation of the kind that a field is about.
pub const NONE: Word = "there was none";
/// There were not enough of them.
pub const FEW: Word = "there were too few";

/// Fields that may be unknown, or known of a part.
const FIELDS: [Word; 18] = [
    "path",
    "read_share",
    "read_bytes",
    "written_bytes",
    "block_bytes",
    "sequential_share",
    "rewrite_share",
    "reuse_share",
    "direct",
    "synchronous",
    "append",
    "depth",
    "think_seconds",
    "burstiness",
    "latency_seconds",
    "size_bytes",
    "sync.operations_between",
    "sync.seconds",
];

/// Why fields are unknown.
pub fn reasons<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<Word, Word>, D::Error> {
    let written = BTreeMap::<String, String>::deserialize(from)?;
    let reason = |text: &str| {
        let told = Unknown::ALL.iter().map(|it| it.reason());
        let known = told.chain([NONE, FEW]).find(|it| *it == text);
        known.unwrap_or(Unknown::NotRecorded.reason())
    };
    let one = |(name, text): (&String, &String)| Some((field(name)?, reason(text)));
    Ok(written.iter().filter_map(one).collect())
}

/// On what share of the operations fields rest.
pub fn shares<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<Word, f64>, D::Error> {
    let written = BTreeMap::<String, f64>::deserialize(from)?;
    Ok(written.iter().filter_map(|(name, share)| Some((field(name)?, *share))).collect())
}

/// The call of syncs.
pub fn call<'de, D: Deserializer<'de>>(from: D) -> Result<Word, D::Error> {
    let written = String::deserialize(from)?;
    let known = SyncCall::ALL.iter().map(|it| it.name()).chain(["none"]).find(|it| *it == written);
    known.ok_or_else(|| D::Error::custom("no call of that name asks for data to be on the disk"))
}

fn field(name: &str) -> Option<Word> {
    FIELDS.iter().find(|it| **it == name).copied()
}
