//! The tree listed by all ranks, and the plan made of it.

use std::collections::VecDeque;
use std::time::Instant;

use flow::cancel::Cancel;

use super::terms::{Progress, SetError, SetRequest, Step, Tell, failed_host, unix_seconds, work};
use crate::conduct::{Moved, Orders, hand_out};
use crate::journal::{Begun, FORMAT, Journal, Line, PlannedShard, State};
use crate::message::Message;
use crate::name::Name;
use crate::together::Ranks;
use crate::units::{ListedTree, Listing, Mounts, Sizes, Unit, gather};

/// Folders that are to be listed.
struct Lists<'a> {
    tree: ListedTree,
    waiting: VecDeque<Name>,
    ranks: &'a Ranks,
    sources: &'a [Name],
    tell: &'a dyn Tell,
    begun: Instant,
}

impl Orders for Lists<'_> {
    type Error = SetError;

    fn next(&mut self) -> Option<Message> {
        self.waiting.pop_front().map(|path| Message::List { path })
    }

    fn answered(&mut self, rank: usize, answer: Message) -> Result<(), SetError> {
        let Message::Listed(listing) = answer else { return Err(self.wrong(rank, answer)) };
        let Listing { folders, left, failed } = *listing;
        if let Some(why) = failed {
            // Only of what was asked for first: all else was seen a moment ago, and may be gone.
            if self.tree.totals().0 == 0 || !self.sources.is_empty() && folders.is_empty() {
                let host = self.ranks.hosts[rank].clone();
                let what = "list the source".to_owned();
                return Err(SetError::Host { host, rank, what, why });
            }
        }
        folders.into_iter().for_each(|folder| self.tree.add(folder));
        self.waiting.extend(left);
        Ok(())
    }

    fn progress(&mut self, _: u64) {
        let (_, _, bytes) = self.tree.totals();
        self.tell.progress(Progress {
            step: Step::List,
            bytes: (bytes, 0),
            seconds: self.begun.elapsed().as_secs_f64(),
            ..Progress::default()
        });
    }
}

impl Lists<'_> {
    fn wrong(&self, rank: usize, answer: Message) -> SetError {
        failed_host(self.ranks, rank, "list a folder", answer)
    }
}

/// Lists the sources and begins a journal with the plan.
pub(super) fn planned(
    ranks: &Ranks,
    request: &SetRequest,
    tell: &dyn Tell,
    cancel: &Cancel,
) -> Result<(Journal, State, f64), SetError> {
    let begun = Instant::now();
    let mut lists = Lists {
        tree: ListedTree::default(),
        waiting: request.sources.iter().cloned().collect(),
        ranks,
        sources: &request.sources,
        tell,
        begun,
    };
    let host = ranks.hosts[0].clone();
    let own =
        |order, moved: &Moved, cancel: &Cancel| work(order, &request.options, &host, moved, cancel);
    hand_out(ranks, &mut lists, request.at_once, &own, cancel)?;
    let tree = lists.tree;
    for (path, why) in tree.problems() {
        tell.say(&format!("cannot list {}: {why}", base::escape::escape(&path.0)));
    }
    let (folders, files, bytes) = tree.totals();
    let list_seconds = begun.elapsed().as_secs_f64();
    let sizes = Sizes::of(files, bytes, ranks.hosts.len(), request.shard_bytes);
    let (mut units, mut last): (Vec<Unit>, Vec<Unit>) = (Vec::new(), Vec::new());
    for source in &request.sources {
        let (own, its_last) = tree.units(source, sizes.unit_bytes);
        units.extend(own);
        last.extend(its_last);
    }
    let count = units.len();
    let mut shards = gather(units, sizes);
    shards.push(last);
    let planned: Vec<PlannedShard> =
        (1..).zip(shards).map(|(shard, units)| PlannedShard { shard, units }).collect();
    tell.say(&format!(
        "listed {} in {}: {} in {}, of {} units",
        base::format::counted(files, "file", "files"),
        base::format::duration(list_seconds),
        base::format::counted(folders, "folder", "folders"),
        base::format::counted(planned.len() as u64, "shard", "shards"),
        count,
    ));
    let first = Begun {
        format: FORMAT,
        set: identity().map_err(|why| SetError::Folder {
            path: request.options.folder.clone(),
            why: why.to_string(),
        })?,
        sources: request.sources.clone(),
        options: options_text(request),
        begun_unix_seconds: unix_seconds(),
    };
    let mut journal = Journal::begin(&request.options.folder, first.clone())?;
    let mut lines: Vec<Line> = planned.iter().cloned().map(Line::Planned).collect();
    lines.push(Line::PlanEnds { shards: planned.len() as u64 });
    journal.append_all(&lines)?;
    let state = State::of_plan(first, planned);
    Ok((journal, state, list_seconds))
}

/// A new identity, as digits.
fn identity() -> std::io::Result<String> {
    Ok(base::random::id()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What the shards depend on.
pub(super) fn options_text(request: &SetRequest) -> String {
    let mounts = match request.options.mounts {
        Mounts::Enter => "all file systems",
        Mounts::Leave => "one file system",
    };
    format!("compression {}, {mounts}", request.options.compression)
}
