//! A set written by all ranks.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base::failures::with_causes;
use flow::cancel::Cancel;

use super::list::{options_text, planned};
use super::terms::{
    Progress, SetAnswer, SetError, SetRequest, Shares, Step, Tell, failed_host, unix_seconds, work,
};
use crate::conduct::{Moved, Orders, hand_out};
use crate::journal::{Complete, Journal, Line, PlannedShard, SealedShard, State};
use crate::message::{Message, unexpected};
use crate::name::Name;
use crate::ranks::Ranks;
use crate::shards;

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
    folder: PathBuf,
    share: &'a mut Shares,
    tell: &'a dyn Tell,
    begun: Instant,
    total_bytes: u64,
}

impl Orders for Writes<'_> {
    type Error = SetError;

    fn next(&mut self, _: usize) -> Option<Message> {
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
        if let Err(why) = wait_for(&sealed, &self.folder) {
            let (host, what) = (self.ranks.hosts[rank].clone(), self.what(sealed.shard));
            return Err(SetError::Host { host, rank, what, why });
        }
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
    // Before anything is made: a refusal leaves nothing behind.
    check_places(request)?;
    fs::create_dir_all(folder)
        .map_err(|error| SetError::Folder { path: folder.clone(), why: with_causes(&error) })?;
    let (mut journal, found) = Journal::open(folder)?;
    let (mut state, list_seconds) = match found {
        Some(state) => {
            if state.plan_is_whole {
                check_same(&state, request)?;
                (state, 0.0)
            } else {
                // Nothing is sealed before a plan is whole.
                planned(&mut journal, ranks, request, tell, cancel)?
            }
        }
        None => {
            check_no_shards(folder)?;
            planned(&mut journal, ranks, request, tell, cancel)?
        }
    };
    forget_changed(&mut state, folder, tell);
    let was_complete = state.complete.is_some();
    let kept_shards = state.sealed.len() as u64;
    if kept_shards > 0 && !was_complete {
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
        folder: folder.clone(),
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
    let hosts = share.end();
    Ok(SetAnswer { kept_shards, was_complete, seconds, list_seconds, hosts, ..answer })
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

/// Whether the sources are folders, none of them lies in another one, and the shards lie in none.
fn check_places(request: &SetRequest) -> Result<(), SetError> {
    for source in &request.sources {
        let path = source.to_path();
        let why = match fs::symlink_metadata(&path) {
            Ok(status) if status.is_dir() => continue,
            Ok(status) if status.is_symlink() => "it is a link: name the folder itself".to_owned(),
            Ok(_) => "it is no folder".to_owned(),
            Err(error) => with_causes(&error),
        };
        return Err(SetError::Folder { path, why });
    }
    let folder = real(&request.options.folder);
    let sources: Vec<PathBuf> = request.sources.iter().map(|it| real(&it.to_path())).collect();
    for (place, source) in sources.iter().enumerate() {
        let lies_in = |(other, it): &(usize, &PathBuf)| *other != place && it.starts_with(source);
        let inside = sources.iter().enumerate().find(lies_in);
        if let Some((_, inside)) = inside {
            let why = format!("it lies in {}, which is a source, too", source.display());
            return Err(SetError::Folder { path: inside.clone(), why });
        }
        if folder.starts_with(source) {
            let why = format!("the shards would lie in the source {}", source.display());
            return Err(SetError::Folder { path: folder, why });
        }
    }
    Ok(())
}

/// A path without links, also where its end is not there yet.
fn real(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(found), Ok(rest)) = (fs::canonicalize(above), path.strip_prefix(above)) {
            return found.join(rest);
        }
    }
    path.to_owned()
}

/// Shards without a journal are of a backup that nothing is known of.
fn check_no_shards(folder: &Path) -> Result<(), SetError> {
    let failed =
        |why: std::io::Error| SetError::Folder { path: folder.to_owned(), why: why.to_string() };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name.to_string_lossy().starts_with("shard-") {
            let why = format!("it has {} and no journal of it", name.to_string_lossy());
            return Err(SetError::Folder { path: folder.to_owned(), why });
        }
    }
    Ok(())
}

/// Longest time until what another host wrote is seen here: caches of network file systems keep
/// what they know for up to a minute.
const SEEN_MAX: Duration = Duration::from_secs(90);

/// Waits until a shard is here as its host has sealed it: that all hosts see the same folder is
/// what the set rests on.
fn wait_for(sealed: &SealedShard, folder: &Path) -> Result<(), String> {
    let end = Instant::now() + SEEN_MAX;
    loop {
        match shards::check(sealed, folder) {
            Ok(()) => return Ok(()),
            Err(why) if Instant::now() >= end => {
                return Err(format!("what it wrote is not seen by rank 0: {why}"));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    }
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
