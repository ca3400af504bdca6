//! A set verified or restored by all ranks.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Instant;

use flow::cancel::Cancel;

use super::terms::{Progress, SetAnswer, SetError, SetRead, Shares, Step, Tell, work};
use crate::conduct::{Moved, Orders, hand_out};
use crate::journal::{JOURNAL, Journal, SealedShard, State};
use crate::message::{Message, unexpected};
use crate::shards::{Reading, ShardOptions, ShardRead};
use crate::together::Ranks;

/// Shards that are to be read.
struct Reads<'a> {
    ranks: &'a Ranks,
    waiting: VecDeque<(SealedShard, Reading)>,
    last: Option<(SealedShard, Reading)>,
    in_hand: u64,
    done: Vec<ShardRead>,
    damaged: Vec<String>,
    share: Shares,
    tell: &'a dyn Tell,
    step: Step,
    total: (u64, u64),
    begun: Instant,
}

impl Orders for Reads<'_> {
    type Error = SetError;

    fn next(&mut self) -> Option<Message> {
        let (sealed, reading) = match self.waiting.pop_front() {
            Some(order) => order,
            None if self.in_hand == 0 => self.last.take()?,
            None => return None,
        };
        self.in_hand += 1;
        Some(Message::Read { sealed: Box::new(sealed), reading })
    }

    fn answered(&mut self, rank: usize, answer: Message) -> Result<(), SetError> {
        self.in_hand -= 1;
        match answer {
            Message::ReadDone(read) => {
                self.share.add(rank, read.source_bytes, read.seconds, read.limit.as_deref());
                self.done.push(*read);
                Ok(())
            }
            // What cannot be read is damage of this shard; the others are looked at all the same.
            Message::Failed { run, why } => {
                self.damaged
                    .push(format!("shard {run}, {} (rank {rank}): {why}", self.ranks.hosts[rank]));
                Ok(())
            }
            other => Err(unexpected(rank, &other).into()),
        }
    }

    fn progress(&mut self, in_hand_bytes: u64) {
        let done: u64 = self.done.iter().map(|it| it.source_bytes).sum();
        self.tell.progress(Progress {
            step: self.step,
            shards: (self.done.len() as u64, self.total.0),
            bytes: (done + in_hand_bytes, self.total.1),
            seconds: self.begun.elapsed().as_secs_f64(),
        });
    }
}

/// Verifies or restores all shards of a set, with all ranks; on rank 0.
///
/// # Errors
/// See [`SetError`]. Damage of shards is in the result.
pub fn read_set(
    ranks: &Ranks,
    options: &ShardOptions,
    reading: &Reading,
    at_once: usize,
    tell: &dyn Tell,
    cancel: &Cancel,
) -> Result<SetRead, SetError> {
    let begun = Instant::now();
    let folder = &options.folder;
    let state = complete(folder)?;
    let shards = state.planned.len() as u64;
    let of = |sealed: &SealedShard| {
        let reading = match reading {
            Reading::Restore { into, .. } if sealed.shard == shards => {
                // Links in it replace the files of other shards.
                Reading::Restore { into: into.clone(), replaces: true }
            }
            other => other.clone(),
        };
        (sealed.clone(), reading)
    };
    let mut waiting: VecDeque<(SealedShard, Reading)> = state.sealed.values().map(of).collect();
    let last = waiting.pop_back();
    let total = (shards, state.sealed.values().map(|it| it.source_bytes).sum());
    let step = match reading {
        Reading::Verify => Step::Verify,
        Reading::Restore { .. } => Step::Restore,
    };
    let mut orders = Reads {
        ranks,
        waiting,
        last,
        in_hand: 0,
        done: Vec::new(),
        damaged: Vec::new(),
        share: Shares::of(ranks),
        tell,
        step,
        total,
        begun,
    };
    let host = ranks.hosts[0].clone();
    let own = |order, moved: &Moved, cancel: &Cancel| work(order, options, &host, moved, cancel);
    hand_out(ranks, &mut orders, at_once, &own, cancel)?;
    let Reads { done, damaged, share, .. } = orders;
    let answer = SetAnswer {
        folder: folder.display().to_string(),
        set: state.begun.set.clone(),
        shards,
        kept_shards: 0,
        members: done.iter().map(|it| it.members).sum(),
        source_bytes: done.iter().map(|it| it.source_bytes).sum(),
        stored_bytes: done.iter().map(|it| it.stored_bytes).sum(),
        seconds: begun.elapsed().as_secs_f64(),
        list_seconds: 0.0,
        warnings: done.iter().map(|it| it.warnings).sum(),
        first_warnings: done.iter().flat_map(|it| it.first_warnings.clone()).take(20).collect(),
        hosts: share.end(),
    };
    Ok(SetRead { answer, damaged })
}

/// The journal of a set of which all shards are sealed.
fn complete(folder: &Path) -> Result<State, SetError> {
    let no_set = || SetError::Folder {
        path: folder.to_owned(),
        why: format!("it has no {JOURNAL}, so it is no set of shards"),
    };
    let state = Journal::read(folder)?.ok_or_else(no_set)?;
    let (shards, missing) = (state.planned.len() as u64, state.open_shards().count() as u64);
    if !state.plan_is_whole || missing > 0 {
        return Err(SetError::Incomplete { path: folder.to_owned(), missing, shards });
    }
    Ok(state)
}
