//! What ranks say to each other, as JSON: a job sends some hundreds of them, and they can be read.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use experiment::record::{Cell, RunRecord};
use flow::cancel::Cancel;
use serde::{Deserialize, Serialize};

use crate::communicator::{CommunicationError, Communicator, Waiting};
use crate::journal::SealedShard;
use crate::name::Name;
use crate::shards::{Reading, ShardOrder, ShardRead};
use crate::units::Listing;

/// Longest wait between two looks at whether the job is being stopped.
const LOOK: Duration = Duration::from_millis(50);

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// To rank 0, first of all.
    Introduce(Box<Introduction>),
    /// From rank 0: every rank may begin, or why none does.
    Begin { refused: Option<String> },
    /// From rank 0: what does your clock say?
    Ping,
    /// To rank 0.
    Pong { now_ns: i64 },
    /// From rank 0: prepare this run and say that you are ready.
    Prepare { run: u64, cell: Cell, seconds_max: f64 },
    /// To rank 0.
    Ready { run: u64 },
    /// From rank 0: the measured part begins when your clock says this.
    Start { at_ns: i64 },
    /// From rank 0: the run does not begin.
    Abandon { why: String },
    /// From rank 0, whose own part is over: what did you measure?
    Report,
    /// To rank 0: what was measured, without latencies, which are summed.
    Done(Box<Done>),
    /// To rank 0: the run failed.
    Failed { run: u64, why: String },
    /// From rank 0, to all: sum the latencies of the run.
    Sum { run: u64 },
    /// From rank 0: list this folder and what is below it, for a while.
    List { path: Name },
    /// To rank 0: what is in it.
    Listed(Box<Listing>),
    /// From rank 0: write these units as a shard.
    Write(Box<ShardOrder>),
    /// To rank 0: the shard is there.
    Written(Box<SealedShard>),
    /// From rank 0: do this with a shard that is there.
    Read { sealed: Box<SealedShard>, reading: Reading },
    /// To rank 0: that was done.
    ReadDone(Box<ShardRead>),
    /// To rank 0: bytes moved for the order in hand.
    Moved { bytes: u64 },
    /// From rank 0: all is done.
    Quit,
}

/// What a rank tells of itself before anything starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Introduction {
    /// Name of its host.
    pub host: String,
    /// Version of the program.
    pub version: String,
    /// The arguments as typed, before `{rank}` and `{host}` are filled in.
    pub arguments: Vec<String>,
    /// What its target is: storage, file system, settings, by name.
    pub target: BTreeMap<String, String>,
    /// Folders that all hosts have to see, and what stands for each: which one exists of it and
    /// those above it, and its inode.
    pub shared: BTreeMap<String, String>,
    /// Why it cannot take part.
    pub refused: Option<String>,
}

/// A run that a rank has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Which one.
    pub run: u64,
    /// When it passed the gate, by its own clock.
    pub begun_ns: i64,
    /// When its measured part ended, by its own clock.
    pub ended_ns: i64,
    pub record: RunRecord,
}

/// Why a message that was waited for is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// The ranks cannot talk to each other.
    #[error(transparent)]
    Communication(#[from] CommunicationError),
    /// It did not come in time.
    #[error("no answer within {0} s")]
    Late(u64),
    /// It is none of ours, or not the one that belongs here.
    #[error("rank {from} sent what does not belong here: {what}")]
    Unexpected { from: usize, what: String },
    /// The job is being stopped.
    #[error(transparent)]
    Stopped(#[from] flow::cancel::Stopped),
}

/// Sends a message.
///
/// # Errors
/// When the rank is gone.
pub fn send(to: usize, message: &Message, by: &dyn Communicator) -> Result<(), MailError> {
    let bytes = serde_json::to_vec(message).expect("a message is made of strings and numbers");
    Ok(by.send(to, &bytes)?)
}

/// Sends a message to all other ranks.
///
/// # Errors
/// When one is gone.
pub fn send_to_all(message: &Message, by: &dyn Communicator) -> Result<(), MailError> {
    (0..by.size()).filter(|rank| *rank != by.rank()).try_for_each(|rank| send(rank, message, by))
}

/// The next message; `None` if none came within one look, 50 ms.
///
/// # Errors
/// When ranks are gone, or it is not a message.
pub fn look(by: &dyn Communicator) -> Result<Option<(usize, Message)>, MailError> {
    look_for(by, LOOK)
}

/// The next message; `None` if none came in this time.
///
/// # Errors
/// As [`look`].
pub fn look_for(
    by: &dyn Communicator,
    wait: Duration,
) -> Result<Option<(usize, Message)>, MailError> {
    let Some((from, bytes)) = by.receive(wait, Waiting::Idle)? else { return Ok(None) };
    parse(from, &bytes).map(Some)
}

/// Waits for the next message.
///
/// # Errors
/// When ranks are gone, the job is being stopped, or nothing came in this time.
pub fn receive(
    by: &dyn Communicator,
    most: Duration,
    cancel: &Cancel,
) -> Result<(usize, Message), MailError> {
    let end = Instant::now() + most;
    while Instant::now() < end {
        if let Some(found) = look(by)? {
            return Ok(found);
        }
        cancel.check()?;
    }
    Err(MailError::Late(most.as_secs()))
}

/// Waits for the next message and looks all the time.
///
/// # Errors
/// As [`receive`].
pub fn receive_at_once(
    by: &dyn Communicator,
    most: Duration,
) -> Result<(usize, Message), MailError> {
    match by.receive(most, Waiting::Busy)? {
        Some((from, bytes)) => parse(from, &bytes),
        None => Err(MailError::Late(most.as_secs())),
    }
}

fn parse(from: usize, bytes: &[u8]) -> Result<(usize, Message), MailError> {
    let message = serde_json::from_slice(bytes)
        .map_err(|error| MailError::Unexpected { from, what: error.to_string() })?;
    Ok((from, message))
}

/// A message that does not belong where it came.
pub fn unexpected(from: usize, message: &Message) -> MailError {
    let mut what = format!("{message:?}");
    what.truncate(what.char_indices().nth(80).map_or(what.len(), |(at, _)| at));
    MailError::Unexpected { from, what }
}
