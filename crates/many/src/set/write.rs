//! A set written by all ranks.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::time::Instant;

use flow::cancel::Cancel;

use super::list::{options_text, planned};
use super::terms::{
    Progress, SetAnswer, SetError, SetRequest, Shares, Step, Tell, failed_host, unix_seconds, work,
};
use crate::conduct::{Moved, Orders, hand_out};
use crate::journal::{Complete, Journal, Line, PlannedShard, State};
use crate::message::{Message, unexpected};
use crate::name::Name;
use crate::shards;
use crate::together::Ranks;

/// Shards that are to be written.
struct Writes<'a> {
    ranks: &'a Ranks,
    journal: &'a mut Journal,
    state: &'a mut State,
    waiting: VecDeque<PlannedShard>,
    /// The last shard, when it is to be written: after all others, since it gives the folders
    /// their times as they are then.
    last: Option<PlannedShard>,
    in_hand: u64,
    share: &'a mut Shares,
    tell: &'a dyn Tell,
    begun: Instant,
    total_bytes: u64,
}

impl Orders for Writes<'_> {
    type Error = SetError;

    fn next(&mut self) -> Option<Message> {
        let order = match self.waiting.pop_front() {
            Some(order) => order,
            None if self.in_hand == 0 => self.last.take()?,
            None => return None,
        };
        self.in_hand += 1;
        Some(Message::Write(Box::new(order)))
    }

    fn answered(&mut self, rank: usize, answer: Message) -> Result<(), SetError> {
        self.in_hand -= 1;
        let sealed = match answer {
            Message::Written(sealed) => *sealed,
            Message::Failed { run, .. } => {
                let what = self.what(run);
                return Err(failed_host(self.ranks, rank, &what, answer));
            }
            other => return Err(unexpected(rank, &other).into()),
        };
        self.journal.append(&Line::Sealed(sealed.clone()))?;
        let (bytes, seconds) = (sealed.source_bytes, sealed.seconds);
        self.share.add(rank, bytes, seconds, sealed.limit.as_deref());
        self.state.sealed.insert(sealed.shard, sealed);
        Ok(())
    }

    fn progress(&mut self, in_hand_bytes: u64) {
        let sealed: u64 = self.state.sealed.values().map(|it| it.source_bytes).sum();
        self.tell.progress(Progress {
            step: Step::Write,
            shards: (self.state.sealed.len() as u64, self.state.planned.len() as u64),
            bytes: (sealed + in_hand_bytes, self.total_bytes),
            seconds: self.begun.elapsed().as_secs_f64(),
        });
    }
}

impl Writes<'_> {
    /// A shard and its first unit, in words.
    fn what(&self, shard: u64) -> String {
        let planned = self.state.planned.iter().find(|it| it.shard == shard);
        let first = planned.and_then(|it| it.units.first());
        let from = first.map(|it| format!(" ({})", base::escape::escape(&it.path.0)));
        format!("shard {shard}{}", from.unwrap_or_default())
    }
}

/// Backs up folders into shards, with all ranks; on rank 0.
///
/// # Errors
/// See [`SetError`]. What was sealed stays, and the next run goes on from there.
pub fn back_up(
    ranks: &Ranks,
    request: &SetRequest,
    tell: &dyn Tell,
    cancel: &Cancel,
) -> Result<SetAnswer, SetError> {
    let begun = Instant::now();
    let folder = &request.options.folder;
    let failed =
        |why: std::io::Error| SetError::Folder { path: folder.clone(), why: why.to_string() };
    fs::create_dir_all(folder).map_err(failed)?;
    let (mut journal, mut state, list_seconds) = begun_or_planned(ranks, request, tell, cancel)?;
    forget_changed(&mut state, folder, tell);
    let kept_shards = state.sealed.len() as u64;
    if kept_shards > 0 {
        tell.say(&format!(
            "{kept_shards} of {} shards are sealed already: going on",
            state.planned.len()
        ));
    }
    let mut share = Shares::of(ranks);
    let mut waiting: VecDeque<PlannedShard> = state.open_shards().cloned().collect();
    let last_number = state.planned.len() as u64;
    let last = waiting.pop_back_if(|shard| shard.shard == last_number);
    let units = state.planned.iter().flat_map(|it| &it.units);
    let total_bytes = units.map(|unit| unit.bytes).sum();
    let mut orders = Writes {
        ranks,
        journal: &mut journal,
        state: &mut state,
        waiting,
        last,
        in_hand: 0,
        share: &mut share,
        tell,
        begun: Instant::now(),
        total_bytes,
    };
    let host = ranks.hosts[0].clone();
    let own =
        |order, moved: &Moved, cancel: &Cancel| work(order, &request.options, &host, moved, cancel);
    hand_out(ranks, &mut orders, request.at_once, &own, cancel)?;
    if state.complete.is_none() {
        let complete = complete(&state);
        journal.append(&Line::Complete(complete.clone()))?;
        state.complete = Some(complete);
    }
    let answer = answer(&state, folder);
    let seconds = begun.elapsed().as_secs_f64();
    Ok(SetAnswer { kept_shards, seconds, list_seconds, hosts: share.end(), ..answer })
}

/// The last line of a journal of which all shards are sealed.
fn complete(state: &State) -> Complete {
    let sealed = state.sealed.values();
    Complete {
        shards: state.sealed.len() as u64,
        members: sealed.clone().map(|it| it.members).sum(),
        source_bytes: sealed.clone().map(|it| it.source_bytes).sum(),
        warnings: sealed.map(|it| it.warnings).sum(),
        ended_unix_seconds: unix_seconds(),
    }
}

/// What the journal of a complete set says.
fn answer(state: &State, folder: &Path) -> SetAnswer {
    let complete = complete(state);
    let sealed = state.sealed.values();
    SetAnswer {
        folder: folder.display().to_string(),
        set: state.begun.set.clone(),
        shards: complete.shards,
        members: complete.members,
        source_bytes: complete.source_bytes,
        stored_bytes: sealed.clone().map(|it| it.stored_bytes).sum(),
        warnings: complete.warnings,
        first_warnings: sealed.flat_map(|it| it.first_warnings.clone()).take(20).collect(),
        ..SetAnswer::default()
    }
}

/// The journal in the folder, if it is of this backup, else a new one with its plan; and the
/// seconds in which the tree was listed. Nothing is sealed before a plan is whole.
fn begun_or_planned(
    ranks: &Ranks,
    request: &SetRequest,
    tell: &dyn Tell,
    cancel: &Cancel,
) -> Result<(Journal, State, f64), SetError> {
    let folder = &request.options.folder;
    let Some(state) = Journal::read(folder)? else { return planned(ranks, request, tell, cancel) };
    check_same(&state, request)?;
    if !state.plan_is_whole {
        return planned(ranks, request, tell, cancel);
    }
    Ok((Journal::go_on(folder, &state)?, state, 0.0))
}

/// Whether a journal is of this backup.
fn check_same(state: &State, request: &SetRequest) -> Result<(), SetError> {
    let shown = |sources: &[Name]| {
        let shown: Vec<String> =
            sources.iter().map(|source| base::escape::escape(&source.0)).collect();
        shown.join(", ")
    };
    let path = request.options.folder.clone();
    if state.begun.sources != request.sources {
        return Err(SetError::Another { path, what: shown(&state.begun.sources) });
    }
    let options = options_text(request);
    if state.begun.options != options {
        let what = format!("it was begun with {}, not {options}", state.begun.options);
        return Err(SetError::Another { path, what });
    }
    Ok(())
}

/// Forgets sealed shards whose files are gone or are others now: they are written anew. If the last
/// shard was sealed and another one was not, it is written anew, too.
fn forget_changed(state: &mut State, folder: &Path, tell: &dyn Tell) {
    let wrong: Vec<(u64, String)> = state
        .sealed
        .iter()
        .filter_map(|(number, sealed)| Some((*number, shards::check(sealed, folder).err()?)))
        .collect();
    for (number, why) in wrong {
        tell.say(&format!("{why}: written anew"));
        state.sealed.remove(&number);
        state.complete = None;
    }
    let last = state.planned.len() as u64;
    if state.sealed.len() < state.planned.len() && state.sealed.remove(&last).is_some() {
        state.complete = None;
    }
}
