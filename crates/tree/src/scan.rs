//! The walk over the sources of a backup: every object once, in archive order.
//!
//! Archive order is: the sources as given; a source itself, then its contents, depth first, a
//! directory before its contents, the names of a directory sorted by their bytes. Of a set in a
//! chain ([`Look::Status`]) what is no directory comes before the directories beside it, so that
//! all that decides on a directory is known when its turn comes. The walk uses
//! descriptors throughout and never follows a symbolic link. So a user who renames a directory or
//! replaces it by a link meanwhile cannot lead the walk elsewhere.
//!
//! The walk only lists directories: opening and stating the objects is the work of many threads at
//! once ([`crate::Capturer`]). A few threads list subdirectories ahead of their turn
//! ([`crate::look_ahead`]); the walk puts the results in order.
//!
//! These are alive at any time: the listings from the source down to the current directory, those
//! of the look-ahead (bounded by number and by bytes of names), and the directories of entries that
//! the caller still holds. Of the first kind only the innermost keep their descriptors, as many as
//! `open_levels`. On the way back up a directory is opened again as `..` of its child and its
//! identity compared. So at most `directories + open_levels + 2` descriptors ([`LookAheadLimits`])
//! are open, plus those that entries in flight hold.
//!
//! A directory of a million names is listed as a whole (sorting needs that), about 25 bytes a name
//! plus the names.

mod selective;
mod waiting;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::fs::fstat;
use rustix::io::Errno;

pub use super::file_systems::FileSystems;
use crate::ScanError;
use crate::changed_paths::ChangedPaths;
use crate::directory::Directory;
use crate::entry_kind::EntryKind;
use crate::exclude::Excludes;
use crate::identity::Identity;
use crate::item::{Entry, Extent, Item};
use crate::listing::{GETDENTS_BYTES, open_directory};
use crate::listing::{ListRules, Listed, ListingJob, Look, Names, NamesBudget};
use crate::look_ahead::{Claim, LookAhead, Ticket};
use crate::scan_problem::{ScanProblem, ScanProblemKind};
use crate::source::{Source, Stripped};
use crate::source_part::SourcePart;
use crate::status::Status;
use selective::{LastFolder, passed};
use waiting::Waiting;

/// How far ahead of their turn directories are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookAheadLimits {
    /// Threads that list. With 0 the thread that calls [`Scan::next_batch`] lists everything.
    pub threads: usize,
    /// Directories listed or being listed ahead; each holds one descriptor.
    pub directories: usize,
    /// Bytes of their names. A directory that does not fit is listed when its turn comes.
    pub names_bytes: usize,
    /// Number of innermost directories below the source that keep their descriptors.
    pub open_levels: usize,
    /// Most items that one batch adds; each may hold a directory of its own open.
    pub batch_items: usize,
}

impl Default for LookAheadLimits {
    fn default() -> LookAheadLimits {
        LookAheadLimits {
            threads: 8,
            directories: 64,
            names_bytes: 8 << 20,
            open_levels: OPEN_LEVELS_MAX,
            batch_items: BATCH_ITEMS_MAX,
        }
    }
}

/// What to walk and how.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// Names left out.
    pub excludes: Excludes,
    /// Stay on one file system or not.
    pub file_systems: FileSystems,
    /// What to find out of each object.
    pub look: Look,
    /// What has changed, of a walk that looks at the state of everything: only the folders that
    /// hold some of it are read, and those that [`Scan::list_last`] asks for. `None`: all are.
    pub changed: Option<Arc<ChangedPaths>>,
    /// Which part of each source, by its place. With any, the sources are pieces of a tree that
    /// was listed before: one that is gone meanwhile, or cannot be read, is a problem of the walk
    /// and no error, and each is opened only when its turn comes.
    pub parts: Arc<[SourcePart]>,
    pub look_ahead: LookAheadLimits,
    /// Set it from any thread to end the scan within one read of a directory.
    pub stop: Arc<AtomicBool>,
}

/// Whether more is to come after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Call again. The batch may be empty if a slow directory kept the walk waiting for
    /// [`WAIT_MAX`].
    More,
    /// Everything has been given.
    End,
    /// [`ScanOptions::stop`] was set.
    Stopped,
}

/// Most items that one batch adds, if there are enough descriptors.
pub const BATCH_ITEMS_MAX: usize = 64;
/// Longest wait of [`Scan::next_batch`] for a listing that is under way.
pub const WAIT_MAX: Duration = Duration::from_millis(50);
/// Most directories below the source that keep their descriptors, if there are enough descriptors.
pub const OPEN_LEVELS_MAX: usize = 32;
/// Longest archive path of a directory that is entered: 256 KiB.
pub const PATH_BYTES_MAX: usize = 256 << 10;

/// The walk. One thread draws from it.
pub struct Scan {
    sources: VecDeque<Waiting>,
    stripped: Vec<Stripped>,
    /// The holder of the source being walked, then one level per directory.
    levels: Vec<Level>,
    /// Directories among `levels`.
    ancestors: HashSet<Identity>,
    /// The last entry returned was a directory that is still to be entered.
    entering: bool,
    /// The last item was a folder that is not walked as a whole.
    last: Option<LastFolder>,
    /// It is to be listed anew.
    relist: Option<Extent>,
    look_ahead: LookAhead,
    results: HashMap<Ticket, Listed>,
    next_ticket: u64,
    /// Jobs queued below a directory that was not walked after all.
    abandoned: Vec<Ticket>,
    /// Slots of all levels that are neither entered nor dropped yet.
    slots_ahead: usize,
    limits: LookAheadLimits,
    budget: Arc<NamesBudget>,
    rules: Arc<ListRules>,
    buffer: Vec<u8>,
}

/// A directory between the source and the current one, or one that is listed ahead.
struct Level {
    names: Arc<Names>,
    /// `None` if many levels are open further down.
    directory: Option<Arc<Directory>>,
    next_index: u32,
    /// Positions of the subdirectories, and how many of them the walk has visited.
    subdirectories: Vec<u32>,
    entered: usize,
    /// The next subdirectories, as far as they were queued.
    ahead: VecDeque<Slot>,
}

enum Slot {
    Queued(Ticket),
    Ready(Box<Arrived>),
}

struct Arrived {
    level: Option<Level>,
    problem: Option<Box<ScanProblem>>,
    status: Option<Status>,
    is_on_the_way: bool,
    deferred: bool,
}

impl Scan {
    /// Checks all sources and starts the walk.
    ///
    /// # Errors
    /// [`ScanError::NoSource`], [`ScanError::Source`] for the first missing source,
    /// [`ScanError::Thread`].
    pub fn start(sources: &[PathBuf], options: ScanOptions) -> Result<Scan, ScanError> {
        if sources.is_empty() {
            return Err(ScanError::NoSource);
        }
        let mut stripped = Vec::new();
        let wait = |(path, number): (&PathBuf, u32)| {
            if !options.parts.is_empty() {
                return Ok(Waiting::Named(path.clone(), number));
            }
            let mut source = Source::open(path, number)?;
            stripped.extend(source.stripped.take());
            Ok(Waiting::Open(source))
        };
        let opened = sources.iter().zip(0..).map(wait).collect::<Result<_, ScanError>>()?;
        let limits = options.look_ahead;
        let budget = Arc::new(NamesBudget {
            held_bytes: AtomicUsize::new(0),
            bytes_max: limits.names_bytes,
        });
        let rules = Arc::new(ListRules {
            excludes: options.excludes,
            file_systems: options.file_systems,
            look: options.look,
            changed: options.changed,
            parts: options.parts,
            stop: options.stop,
        });
        let (for_threads, its_budget) = (Arc::clone(&rules), Arc::clone(&budget));
        let look_ahead = LookAhead::start(limits.threads, for_threads, its_budget)
            .map_err(|source| ScanError::Thread { source })?;
        Ok(Scan {
            sources: opened,
            stripped,
            levels: Vec::new(),
            ancestors: HashSet::new(),
            entering: false,
            last: None,
            relist: None,
            look_ahead,
            results: HashMap::new(),
            next_ticket: 0,
            abandoned: Vec::new(),
            slots_ahead: 0,
            limits,
            budget,
            rules,
            buffer: Vec::with_capacity(GETDENTS_BYTES),
        })
    }

    /// The prefixes removed from the sources' paths, for sources that had one.
    pub fn stripped(&self) -> &[Stripped] {
        &self.stripped
    }

    /// Appends the next items, at most [`LookAheadLimits::batch_items`]. Waits only if there is
    /// none, and then at most [`WAIT_MAX`] unless this thread lists the directory itself.
    pub fn next_batch(&mut self, items: &mut Vec<Item>) -> Progress {
        let full = items.len() + self.limits.batch_items.max(1);
        let had = items.len();
        while items.len() < full {
            if self.rules.stop.load(Ordering::Relaxed) {
                return Progress::Stopped;
            }
            if let Some(extent) = self.relist.take() {
                self.list_again(items, extent);
                return Progress::More;
            }
            if self.entering {
                let wait = if items.len() == had { Wait::Some } else { Wait::No };
                // More of the folder may be asked for before the walk goes on.
                if !self.enter(items, wait) || self.last.is_some() {
                    return Progress::More;
                }
                continue;
            }
            self.last = None;
            let Some(level) = self.levels.last_mut() else {
                let Some(waiting) = self.sources.pop_front() else { return Progress::End };
                match waiting.open(&self.rules) {
                    Ok(source) => self.levels.push(Level::of_holder(source.holder)),
                    Err(problem) => items.push(Item::Problem(problem)),
                }
                continue;
            };
            if level.next_index == level.names.len() {
                self.leave(items);
                continue;
            }
            let directory = level.directory.as_ref().expect("the innermost level is open");
            let entry = Entry { directory: Arc::clone(directory), index: level.next_index };
            level.next_index += 1;
            if level.passes(&entry, &self.rules) {
                items.push(passed(entry));
                self.last = Some(LastFolder::Passed);
                return Progress::More;
            }
            self.entering = entry.kind() == EntryKind::Directory;
            let is_whole = !level.names.is_source_holder()
                || self.rules.part_of(level.names.source).has_itself();
            if is_whole && (!self.entering || self.rules.look == Look::Names) {
                items.push(Item::Entry(entry));
            }
        }
        Progress::More
    }

    /// Enters the directory returned last. False if that would mean waiting.
    fn enter(&mut self, items: &mut Vec<Item>, wait: Wait) -> bool {
        let Some(arrived) = self.arrive(wait) else { return false };
        self.entering = false;
        let level = self.levels.last_mut().expect("the entry's own directory");
        level.entered += 1;
        self.give(arrived, items);
        self.plan();
        true
    }

    /// The listing of the directory returned last, from the look-ahead or made now.
    fn arrive(&mut self, wait: Wait) -> Option<Arrived> {
        let level = self.levels.last_mut().expect("the entry's own directory");
        let may_be_there = match level.ahead.front() {
            None => false,
            Some(Slot::Queued(_)) => true,
            Some(Slot::Ready(arrived)) => !arrived.deferred,
        };
        if !may_be_there && matches!(wait, Wait::No) {
            return None;
        }
        let mut job = None;
        match level.ahead.pop_front() {
            None => {}
            Some(Slot::Ready(arrived)) => {
                self.slots_ahead -= 1;
                if !arrived.deferred {
                    if let Some(level) = &arrived.level {
                        let held_bytes = level.names.held_bytes();
                        self.budget.held_bytes.fetch_sub(held_bytes, Ordering::Relaxed);
                    }
                    return Some(*arrived);
                }
            }
            Some(Slot::Queued(ticket)) => {
                let listed = self.results.remove(&ticket).or_else(|| self.look_ahead.take(ticket));
                let claim = match (listed, wait) {
                    (Some(listed), _) => Claim::Done(listed),
                    (None, Wait::No) => Claim::UnderWay,
                    (None, Wait::Some) => self.look_ahead.claim(ticket, WAIT_MAX),
                };
                match claim {
                    Claim::UnderWay => {
                        level.ahead.push_front(Slot::Queued(ticket));
                        return None;
                    }
                    Claim::Meanwhile(other, taken) => {
                        level.ahead.push_front(Slot::Queued(ticket));
                        let budget = Some(&*self.budget);
                        let listed = self.look_ahead.list_here(&taken, &mut self.buffer, budget);
                        self.results.insert(other, listed);
                        return None;
                    }
                    Claim::Done(listed) => {
                        level.ahead.push_front(Slot::Ready(Box::new(Arrived::new(listed))));
                        return self.arrive(wait);
                    }
                    Claim::NotBegun(taken) => {
                        self.slots_ahead -= 1;
                        job = Some(taken);
                    }
                }
            }
        }
        let level = self.levels.last().expect("the entry's own directory");
        let directory = level.directory.as_ref().expect("the innermost level is open");
        let job = job.unwrap_or_else(|| ListingJob {
            parent: Arc::clone(directory),
            index: level.next_index - 1,
            wanted: None,
        });
        Some(Arrived::new(self.look_ahead.list_here(&job, &mut self.buffer, None)))
    }

    /// Why a directory that was listed is not walked.
    fn refuses(&self, names: &Names) -> Option<ScanProblemKind> {
        if names.path_bytes() > PATH_BYTES_MAX {
            Some(ScanProblemKind::PathTooLong)
        } else if self.ancestors.contains(&names.identity) {
            Some(ScanProblemKind::Loop)
        } else {
            None
        }
    }

    fn push(&mut self, level: Level) {
        self.ancestors.insert(level.names.identity);
        self.levels.push(level);
        // The holder of the source stays open: everything can be found again from there.
        let outer = self.levels.len().saturating_sub(1 + self.limits.open_levels.max(1));
        if outer > 0 {
            self.levels[outer].directory = None;
        }
    }

    /// Returns to the directory above, which may have to be opened again.
    fn leave(&mut self, items: &mut Vec<Item>) {
        let Some(level) = self.levels.pop() else { return };
        if !level.names.is_source_holder() {
            self.ancestors.remove(&level.names.identity);
        }
        let mut below = level.directory;
        while let Some(outer) = self.levels.last() {
            if outer.directory.is_some() {
                break;
            }
            match self.reopen(below.take()) {
                Ok(directory) => {
                    let outer = self.levels.last_mut().expect("looked at above");
                    outer.directory = Some(directory);
                }
                Err(error) => {
                    let lost = self.levels.pop().expect("looked at above");
                    self.ancestors.remove(&lost.names.identity);
                    if lost.next_index < lost.names.len() {
                        items.push(problem(&lost.names, ScanProblemKind::Moved, Some(error)));
                    }
                    self.drop_ahead(lost);
                }
            }
        }
    }

    /// Opens the innermost level again: as `..` of the level just left, or by name from further up.
    fn reopen(&self, below: Option<Arc<Directory>>) -> io::Result<Arc<Directory>> {
        let names = &self.levels.last().expect("there is a level to reopen").names;
        if let Some(below) = below
            && let Ok(descriptor) = open_directory(&*below, c"..")
            && is(&descriptor, names.identity)
        {
            return Ok(Directory::reopened(descriptor, Arc::clone(names)));
        }
        let open_at = self.levels.iter().rposition(|level| level.directory.is_some());
        let (mut descriptor, from) = match open_at {
            Some(at) => (self.open_next(at, None)?, at + 1),
            None => return Err(Errno::STALE.into()),
        };
        for at in from..self.levels.len() - 1 {
            descriptor = self.open_next(at, Some(&descriptor))?;
        }
        if !is(&descriptor, names.identity) {
            return Err(Errno::STALE.into());
        }
        Ok(Directory::reopened(descriptor, Arc::clone(names)))
    }

    /// Opens the level below level `at` by its name.
    fn open_next(&self, at: usize, descriptor: Option<&OwnedFd>) -> io::Result<OwnedFd> {
        let level = &self.levels[at];
        let name = level.names.name(level.next_index - 1);
        Ok(match (descriptor, &level.directory) {
            (Some(descriptor), _) => open_directory(descriptor, name)?,
            (None, Some(directory)) => open_directory(&**directory, name)?,
            (None, None) => return Err(Errno::STALE.into()),
        })
    }

    /// Drops what was listed ahead below a directory that will not be walked.
    fn drop_ahead(&mut self, level: Level) {
        self.drop_slots(level.ahead);
    }

    fn drop_slots(&mut self, slots: VecDeque<Slot>) {
        self.slots_ahead -= slots.len();
        for slot in slots {
            match slot {
                Slot::Queued(ticket) => self.abandoned.push(ticket),
                Slot::Ready(arrived) => {
                    let Some(level) = arrived.level else { continue };
                    self.budget.held_bytes.fetch_sub(level.names.held_bytes(), Ordering::Relaxed);
                    self.drop_ahead(level);
                }
            }
        }
    }

    /// Queues the next directories, in the order of the walk, as far as the limits allow. Not at
    /// every step, because the search costs time.
    fn plan(&mut self) {
        let limit = self.limits.directories;
        if self.limits.threads == 0 || self.slots_ahead > limit - limit / 4 {
            return;
        }
        self.look_ahead.collect(&mut self.results);
        self.forget_abandoned();
        if self.budget.is_spent() {
            return;
        }
        let mut plan = Plan {
            results: &mut self.results,
            next_ticket: &mut self.next_ticket,
            jobs: Vec::new(),
            room: limit - self.slots_ahead,
        };
        for level in self.levels.iter_mut().rev() {
            plan.extend(level);
        }
        self.slots_ahead += plan.jobs.len();
        self.look_ahead.queue(plan.jobs);
    }

    fn forget_abandoned(&mut self) {
        let (results, budget) = (&mut self.results, &self.budget);
        self.abandoned.retain(|ticket| match results.remove(ticket) {
            Some(listed) => {
                let names = listed.directory.map_or(0, |directory| directory.names().held_bytes());
                budget.held_bytes.fetch_sub(names, Ordering::Relaxed);
                false
            }
            None => true,
        });
    }
}

/// Chooses the directories to list ahead.
struct Plan<'a> {
    results: &'a mut HashMap<Ticket, Listed>,
    next_ticket: &'a mut u64,
    jobs: Vec<(Ticket, ListingJob)>,
    room: usize,
}

impl Plan<'_> {
    /// Queues directories below `level`: first below its subdirectories that are listed, then
    /// further ones. The number of slots bounds the depth of the recursion.
    fn extend(&mut self, level: &mut Level) {
        for slot in &mut level.ahead {
            if self.jobs.len() == self.room {
                return;
            }
            if let Slot::Queued(ticket) = slot {
                let Some(listed) = self.results.remove(ticket) else { continue };
                *slot = Slot::Ready(Box::new(Arrived::new(listed)));
            }
            if let Slot::Ready(arrived) = slot
                && let Some(level) = &mut arrived.level
            {
                self.extend(level);
            }
        }
        let Some(directory) = &level.directory else { return };
        let queued = level.entered + level.ahead.len();
        for &index in level.subdirectories[queued..].iter().take(self.room - self.jobs.len()) {
            let ticket = Ticket(*self.next_ticket);
            *self.next_ticket += 1;
            level.ahead.push_back(Slot::Queued(ticket));
            let parent = Arc::clone(directory);
            self.jobs.push((ticket, ListingJob { parent, index, wanted: None }));
        }
    }
}

impl Level {
    fn of_holder(holder: Arc<Directory>) -> Level {
        let names = Arc::clone(holder.names());
        let subdirectories = match names.kind(0) {
            EntryKind::Directory => vec![0],
            _ => Vec::new(),
        };
        Level::new(holder, names, subdirectories)
    }

    fn new(directory: Arc<Directory>, names: Arc<Names>, subdirectories: Vec<u32>) -> Level {
        Level {
            names,
            directory: Some(directory),
            next_index: 0,
            subdirectories,
            entered: 0,
            ahead: VecDeque::new(),
        }
    }
}

impl Arrived {
    fn new(listed: Listed) -> Arrived {
        let level = listed.directory.map(|directory| {
            let names = Arc::clone(directory.names());
            Level::new(directory, names, listed.subdirectories)
        });
        let Listed { problem, status, deferred, is_on_the_way, .. } = listed;
        Arrived { level, problem, status, is_on_the_way, deferred }
    }
}

fn problem(names: &Names, what: ScanProblemKind, source: Option<io::Error>) -> Item {
    Item::Problem(Box::new(scan_problem(names, what, source)))
}

fn scan_problem(names: &Names, what: ScanProblemKind, source: Option<io::Error>) -> ScanProblem {
    let mut path = Vec::new();
    names.append_path(&mut path);
    if path.is_empty() {
        path.push(b'.');
    }
    ScanProblem { path, what, source }
}

fn is(descriptor: &OwnedFd, identity: Identity) -> bool {
    fstat(descriptor).is_ok_and(|stat| Identity::of(&stat) == identity)
}

#[derive(Clone, Copy)]
enum Wait {
    No,
    Some,
}
