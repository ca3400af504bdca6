//! A set verified or restored by all ranks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::time::Instant;

use flow::cancel::Cancel;

use super::terms::{Progress, SetAnswer, SetError, SetRead, Shares, Step, Tell, work};
use crate::conduct::{Moved, Orders, hand_out};
use crate::journal::{JOURNAL, Journal, SealedShard, State};
use crate::message::{Message, unexpected};
use crate::ranks::Ranks;
use crate::shards::{Reading, ShardOptions, ShardRead};

/// Shards that are to be read.
struct Reads<'a> {
    ranks: &'a Ranks,
    waiting: VecDeque<(SealedShard, Reading)>,
    /// Shards that this rank could not verify: another one tries.
    again: Vec<(SealedShard, Reading, usize)>,
    /// Ranks that could not read what another one can, and get no more.
    blind: BTreeSet<usize>,
    last: Option<(SealedShard, Reading)>,
    in_hand: BTreeMap<u64, (SealedShard, Reading)>,
    /// Shards that were tried twice, and the first rank.
    tried: BTreeMap<u64, usize>,
    done: Vec<ShardRead>,
    damaged: Vec<String>,
    share: Shares,
    tell: &'a dyn Tell,
    step: Step,
    total: (u64, u64),
    begun: Instant,
}

impl Reads<'_> {
    /// The next shard for a rank.
    fn next_shard(&mut self, rank: usize) -> Option<(SealedShard, Reading)> {
        let seeing = |other: &usize| *other != rank && !self.blind.contains(other);
        let is_alone = !(0..self.ranks.hosts.len()).any(|other| seeing(&other));
        if self.blind.contains(&rank) && !is_alone {
            return None;
        }
        if let Some(at) = self.again.iter().position(|(_, _, first)| *first != rank || is_alone) {
            let (sealed, reading, first) = self.again.swap_remove(at);
            self.tried.insert(sealed.shard, first);
            return Some((sealed, reading));
        }
        if let Some(order) = self.waiting.pop_front() {
            return Some(order);
        }
        if !self.in_hand.is_empty() || !self.again.is_empty() {
            return None;
        }
        let (sealed, mut reading) = self.last.take()?;
        let is_whole = self.damaged.is_empty() && self.done.iter().all(|it| it.warnings == 0);
        if let Reading::Restore { replaces, .. } = &mut reading {
            // Links in the last shard replace what the others have made. Where something was there
            // before, or is missing, nothing is replaced: it may be the user's.
            *replaces |= is_whole;
        }
        Some((sealed, reading))
    }

    /// A shard that a rank could not read.
    fn failed(&mut self, rank: usize, shard: u64, why: &str) {
        let order = self.in_hand.remove(&shard);
        if let Some((sealed, reading @ Reading::Verify)) = order.clone()
            && self.ranks.hosts.len() > 1
            && !self.tried.contains_key(&shard)
        {
            self.again.push((sealed, reading, rank));
            return;
        }
        if matches!(order, Some((_, Reading::Restore { .. }))) {
            self.blind.insert(rank);
        }
        let host = &self.ranks.hosts[rank];
        self.damaged.push(format!("shard {shard}, {host} (rank {rank}): {why}"));
    }
}

impl Orders for Reads<'_> {
    type Error = SetError;

    fn next(&mut self, rank: usize) -> Option<Message> {
        let (sealed, reading) = self.next_shard(rank)?;
        self.in_hand.insert(sealed.shard, (sealed.clone(), reading.clone()));
        Some(Message::Read { sealed: Box::new(sealed), reading })
    }

    fn answered(&mut self, rank: usize, answer: Message) -> Result<(), SetError> {
        match answer {
            Message::ReadDone(read) => {
                self.in_hand.remove(&read.shard);
                if let Some(first) = self.tried.get(&read.shard).filter(|first| **first != rank) {
                    let host = &self.ranks.hosts[*first];
                    self.tell.say(&format!("{host} (rank {first}) does not see what others see"));
                    self.blind.insert(*first);
                }
                self.share.add(rank, read.source_bytes, read.seconds, read.limit.as_deref());
                self.done.push(*read);
                Ok(())
            }
            Message::Failed { run, why } => {
                self.failed(rank, run, &why);
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
    let of = |sealed: &SealedShard| (sealed.clone(), reading.clone());
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
        again: Vec::new(),
        blind: BTreeSet::new(),
        last,
        in_hand: BTreeMap::new(),
        tried: BTreeMap::new(),
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
        was_complete: false,
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
