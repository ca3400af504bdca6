//! What writing and reading a set have in common.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use flow::cancel::Cancel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conduct::Moved;
use crate::journal::JournalError;
use crate::message::{MailError, Message, unexpected};
use crate::name::Name;
use crate::ranks::Ranks;
use crate::shards::{self, ShardOptions};
use crate::units::list;

/// Why a set was not written, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// The hosts cannot talk to each other, or the job is being stopped.
    #[error(transparent)]
    Mail(#[from] MailError),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A host failed.
    #[error("{host} (rank {rank}), {what}: {why}")]
    Host { host: String, rank: usize, what: String, why: String },
    /// The folder of the shards cannot be used.
    #[error("{}: {why}", path.display())]
    Folder { path: PathBuf, why: String },
    /// The folder has the journal of something else.
    #[error("{} has the shards of another backup: {what}", path.display())]
    Another { path: PathBuf, what: String },
    /// A file of the set is not what was sealed.
    #[error("{0}")]
    Shard(String),
    /// The set is not complete.
    #[error("{} is not complete: {missing} of {shards} shards are missing", path.display())]
    Incomplete { path: PathBuf, missing: u64, shards: u64 },
}

/// Receives what is to be shown meanwhile.
pub trait Tell {
    /// A sentence.
    fn say(&self, text: &str);
    /// How far it is.
    fn progress(&self, progress: Progress);
}

/// How far all ranks are together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// What is done.
    pub step: Step,
    /// Shards that are done, and all.
    pub shards: (u64, u64),
    /// Bytes of content that were moved, and all.
    pub bytes: (u64, u64),
    /// Seconds since the step began.
    pub seconds: f64,
}

/// The steps of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// The tree is listed.
    #[default]
    List,
    Write,
    Verify,
    Restore,
}

/// What to back up.
#[derive(Clone, Debug, PartialEq)]
pub struct SetRequest {
    /// Folders.
    pub sources: Vec<Name>,
    pub options: ShardOptions,
    /// Bytes of a shard at most, unless one file is larger.
    pub shard_bytes: u64,
    /// Most ranks that work at a time.
    pub at_once: usize,
}

/// A sharded set, written or read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetAnswer {
    /// Folder of the shards.
    pub folder: String,
    /// Identity of the set.
    pub set: String,
    pub shards: u64,
    /// Shards that an earlier run had sealed.
    pub kept_shards: u64,
    /// The backup was complete before this run, which wrote nothing.
    pub was_complete: bool,
    pub members: u64,
    /// Bytes of content.
    pub source_bytes: u64,
    /// Bytes of the shards.
    pub stored_bytes: u64,
    /// Seconds of this run.
    pub seconds: f64,
    /// Seconds of them in which the tree was listed.
    pub list_seconds: f64,
    /// What was left out, is damaged or was not restored.
    pub warnings: u64,
    /// Some of these, in words.
    pub first_warnings: Vec<String>,
    /// What each rank did.
    pub hosts: Vec<HostShare>,
}

/// What one rank did of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostShare {
    pub host: String,
    pub rank: u64,
    pub shards: u64,
    pub source_bytes: u64,
    /// Seconds in which it had a shard in hand.
    pub busy_seconds: f64,
    /// The stage that held most of its shards back.
    pub limit: Option<String>,
}

/// Carries out one order; on every rank.
pub fn work(
    order: Message,
    options: &ShardOptions,
    host: &str,
    moved: &Moved,
    cancel: &Cancel,
) -> Message {
    let failed = |run, why| Message::Failed { run, why };
    match order {
        Message::List { path } => Message::Listed(Box::new(list(&path, options.mounts))),
        Message::Write(order) => match shards::write(&order, options, host, moved, cancel) {
            Ok(sealed) => Message::Written(Box::new(sealed)),
            Err(why) => failed(order.shard, why),
        },
        Message::Read { sealed, reading } => {
            match shards::read(&sealed, &reading, options, host, moved, cancel) {
                Ok(read) => Message::ReadDone(Box::new(read)),
                Err(why) => failed(sealed.shard, why),
            }
        }
        other => failed(0, format!("{other:?} is no order")),
    }
}

/// What rank 0 says of an answer that is a failure, or none at all.
pub(super) fn failed_host(ranks: &Ranks, rank: usize, what: &str, answer: Message) -> SetError {
    match answer {
        Message::Failed { why, .. } => {
            let (host, what) = (ranks.hosts[rank].clone(), what.to_owned());
            SetError::Host { host, rank, what, why }
        }
        other => unexpected(rank, &other).into(),
    }
}

/// What the ranks did.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares(Vec<(HostShare, BTreeMap<String, u64>)>);

impl Shares {
    pub(super) fn of(ranks: &Ranks) -> Shares {
        let one = |(rank, host): (usize, &String)| {
            let share = HostShare { host: host.clone(), rank: rank as u64, ..HostShare::default() };
            (share, BTreeMap::new())
        };
        Shares(ranks.hosts.iter().enumerate().map(one).collect())
    }

    pub(super) fn add(&mut self, rank: usize, bytes: u64, seconds: f64, limit: Option<&str>) {
        let (share, limits) = &mut self.0[rank];
        share.shards += 1;
        share.source_bytes += bytes;
        share.busy_seconds += seconds;
        if let Some(limit) = limit {
            *limits.entry(limit.to_owned()).or_default() += 1;
        }
    }

    pub(super) fn end(self) -> Vec<HostShare> {
        let one = |(mut share, limits): (HostShare, BTreeMap<String, u64>)| {
            share.limit = limits.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name);
            share
        };
        self.0.into_iter().map(one).collect()
    }
}

/// A set that was read, and what could not be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetRead {
    pub answer: SetAnswer,
    /// Shards that are damaged or could not be read, in words.
    pub damaged: Vec<String>,
}

/// Seconds of Unix time.
pub(super) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
