//! The tree listed by all ranks, and the plan made of it.

use std::collections::VecDeque;
use std::time::Instant;

use flow::cancel::Cancel;

use super::terms::{Progress, SetError, SetRequest, Step, Tell, failed_host, unix_seconds, work};
use crate::conduct::{Moved, Orders, hand_out};
use crate::journal::{Begun, FORMAT, Journal, Line, PlannedShard, State};
use crate::message::Message;
use crate::name::Name;
use crate::ranks::Ranks;
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

    fn next(&mut self, _: usize) -> Option<Message> {
        self.waiting.pop_front().map(|path| Message::List { path })
    }

    fn answered(&mut self, rank: usize, answer: Message) -> Result<(), SetError> {
        let Message::Listed(listing) = answer else { return Err(self.wrong(rank, answer)) };
        let Listing { asked, folders, left, failed } = *listing;
        // All but the sources were seen a moment ago, and are gone since.
        if let Some(why) = failed.filter(|_| self.sources.contains(&asked)) {
            let host = self.ranks.hosts[rank].clone();
            let what = format!("list {}", base::escape::escape(&asked.0));
            return Err(SetError::Host { host, rank, what, why });
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

/// Lists the sources and begins the journal with the plan; returns the seconds that the listing
/// took, too.
pub(super) fn planned(
    journal: &mut Journal,
    ranks: &Ranks,
    request: &SetRequest,
    tell: &dyn Tell,
    cancel: &Cancel,
) -> Result<(State, f64), SetError> {
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
    let units: Vec<Unit> =
        (request.sources.iter()).flat_map(|source| tree.units(source, sizes.unit_bytes)).collect();
    if let Some(folder) = tree.uncovered(&units) {
        let why = "it has no place in any shard: this is a defect of takeup".to_owned();
        return Err(SetError::Folder { path: folder.to_path(), why });
    }
    let last = tree.last(&request.sources, &units);
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
    journal.begin(first.clone())?;
    let mut lines: Vec<Line> = planned.iter().cloned().map(Line::Planned).collect();
    lines.push(Line::PlanEnds { shards: planned.len() as u64 });
    journal.append_all(&lines)?;
    let state = State::of_plan(first, planned);
    Ok((state, list_seconds))
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
