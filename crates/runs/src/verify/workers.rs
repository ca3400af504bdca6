//! The `hash` or `compare` stage: threads that hash the archived data and compare them with the
//! live files.
//!
//! Members travel in batches, large files in stretches to any free thread; if there is a live file,
//! one worker compares all stretches with it. Each batch and each large file has a ticket, and
//! results are entered in the order of the tickets, which is archive order. A worker waits for a
//! turn only after finishing all its earlier jobs, so the turn comes.

use std::collections::HashSet;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archive::index::ContentHasher;
use archive::member::{Member, MemberKind, Timestamp};
use archive::stream::ArchiveOffset;
use base::failures::{lock, with_causes};
use flow::account::{Account, Stage, ThreadState};
use flow::budget::{Budget, Loan};
use flow::cancel::Stopped;
use flow::crew::{Crew, cores};
use flow::monitor::{Counter, Harm};
use flow::queue::Queue;
use flow::run::StageKind;
use flow::turnstile::{Turn, Turnstile};
use tree::{Accounts, CompareOptions, LiveTree};

use super::ahead::{Ahead, InWindow};
use super::error::VerifyError;
use super::large::{Finished, LargeFile};
use super::lists::{Bounded, Differing, LISTED_BYTES_MAX, LISTED_MAX, Problem, Textual};
use super::live::LiveFile;
use super::options::VerifyOptions;
use super::seen::{Seen, SeenMembers};
use crate::read::{MEMBERS_BYTES_MAX, Slice};
use crate::warnings::Warnings;

/// Most jobs that wait for one worker.
const JOBS_MAX: usize = 64;
/// Most paths that are kept (as a hash of 8 bytes) to find extra files.
const PATHS_MAX: usize = 1 << 22;
/// Most bytes of directory paths kept for the same.
const DIRECTORIES_BYTES_MAX: usize = 64 << 20;

/// A member to check.
#[derive(Debug)]
pub(crate) struct Object {
    pub member: Box<Member>,
    pub header_offset_bytes: ArchiveOffset,
    /// Bytes of it that the archive should hold.
    pub stored_bytes: u64,
    /// Of a small file.
    pub content: Vec<Slice>,
    pub missing_bytes: u64,
    pub loan: Loan,
    /// Of one whose live file was fetched ahead.
    pub window: Option<InWindow>,
}

/// Work for a worker.
#[derive(Debug)]
pub(crate) enum VerifyJob {
    Batch(u64, Vec<Object>),
    /// A large file, whose content follows: it is compared with the live file.
    Begin(u64, Object),
    /// The next bytes of the current file, for that.
    Compare(Slice),
    /// The end of the current file, with its number of stretches.
    End {
        file: Arc<Large>,
        stretches: u64,
        missing_bytes: u64,
    },
    /// A stretch of any large file, to be hashed.
    Hash {
        file: Arc<Large>,
        number: u64,
        at_bytes: u64,
        slice: Slice,
    },
}

/// A large file, and its other results.
pub(crate) type Large = LargeFile<(u64, Outcome)>;

/// A live object that differs, until the index says when it was last touched.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub header_offset_bytes: ArchiveOffset,
    pub differing: Differing,
    /// Whether size and time of modification are as archived.
    pub looks_untouched: bool,
    pub live_changed: Option<Timestamp>,
}

/// The workers' results, in archive order.
#[derive(Default)]
pub(crate) struct Results {
    pub seen: SeenMembers,
    pub candidates: Vec<Candidate>,
    candidates_bytes: usize,
    /// Candidates beyond those kept: changed, or apparently untouched.
    pub changed_more: u64,
    pub differs_more: u64,
    pub missing: Bounded<Vec<u8>>,
    pub not_compared: Bounded<Problem>,
    pub compared: u64,
    pub members: u64,
    pub files: u64,
    pub source_bytes: u64,
}

/// Paths of the archive, to find extra files in the live tree.
#[derive(Default)]
pub(crate) struct Paths {
    pub hashes: HashSet<u64>,
    pub directories: Vec<Vec<u8>>,
    directories_bytes: usize,
    pub overflowed: bool,
}

/// All workers and what they share.
pub(crate) struct Workers<'a> {
    stage: &'a Arc<Stage>,
    warnings: &'a Warnings<'a>,
    crew: &'a Crew<'a, VerifyError>,
    live: Mutex<Vec<LiveTree>>,
    queues: Vec<Queue<VerifyJob>>,
    /// Most bytes of members in progress besides their content.
    budget: Budget,
    turnstile: Turnstile,
    results: Mutex<Results>,
    paths: Option<Mutex<Paths>>,
}

impl<'a> Workers<'a> {
    pub fn new(
        options: &VerifyOptions,
        stage: &'a Arc<Stage>,
        warnings: &'a Warnings<'a>,
        crew: &'a Crew<'a, VerifyError>,
    ) -> Result<Workers<'a>, VerifyError> {
        let cancel = crew.cancel();
        let for_each_core = if options.against.is_some() { 4 } else { 1 };
        let threads = options.threads.map_or_else(|| cores() * for_each_core, NonZero::get);
        let mut live = Vec::new();
        if let Some(root) = &options.against {
            let accounts = Arc::new(Accounts::load());
            let compare = CompareOptions { attributes: options.attributes, owners: options.owners };
            for _ in 0..threads {
                let tree = LiveTree::open(root, compare, Arc::clone(&accounts));
                let failed = |source| VerifyError::Against { path: PathBuf::from(root), source };
                live.push(tree.map_err(failed)?);
            }
        }
        Ok(Workers {
            stage,
            warnings,
            crew,
            paths: options.against.is_some().then(Mutex::default),
            live: Mutex::new(live),
            queues: (0..threads).map(|_| Queue::new(JOBS_MAX, cancel.clone())).collect(),
            budget: Budget::new(MEMBERS_BYTES_MAX, cancel.clone()),
            turnstile: Turnstile::new(cancel.clone()),
            results: Mutex::default(),
        })
    }

    /// Number of workers.
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// Whether live files are compared.
    pub fn compares(&self) -> bool {
        self.paths.is_some()
    }

    /// The bytes that members in progress share.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The results so far.
    pub fn results(&self) -> MutexGuard<'_, Results> {
        lock(&self.results)
    }

    /// The paths so far, if they are needed.
    pub fn paths(&self) -> Option<MutexGuard<'_, Paths>> {
        Some(self.paths.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs the workers while `feed` gives them jobs, until all jobs are done. With `ahead`, live
    /// files are fetched meanwhile.
    pub fn run<T>(
        &self,
        ahead: Option<&Ahead<'_>>,
        feed: impl FnOnce() -> Result<T, VerifyError>,
    ) -> Result<T, VerifyError> {
        // The wait of these threads for work is no time of the stage.
        let idle = Stage::new(self.stage.kind());
        self.crew.scope(StageKind::Parse, |scope| {
            if let Some(ahead) = ahead {
                let sweep = &ahead.sweep;
                self.crew.spawn(scope, &idle, |account| Ok(ahead.feed(account)?))?;
                self.crew.spawn(scope, &idle, |account| Ok(sweep.run(account)?))?;
                self.crew.spawn_as_needed(scope, &idle, Ahead::THREADS, |account, next| {
                    sweep.fetch(account, self.stage, next)
                })?;
            }
            for index in 0..self.len() {
                self.crew.spawn(scope, self.stage, move |account| self.work(index, account))?;
            }
            let fed = feed()?;
            self.queues.iter().for_each(Queue::close);
            Ok(fed)
        })
    }

    /// Hands a piece of content to a worker; waits while all are busy.
    pub fn push(
        &self,
        worker: usize,
        job: VerifyJob,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        self.queues[worker].push(job, account)
    }

    /// Waits until everything before `ticket` has been entered.
    pub fn wait_for_turn(&self, ticket: u64, account: &mut Account) -> Result<(), Stopped> {
        self.turnstile.enter(ticket, account, ThreadState::Blocked).map(Turn::pass)
    }

    fn work(&self, index: usize, account: &mut Account) -> Result<(), VerifyError> {
        let live = lock(&self.live).pop();
        let mut checker = Checker { shared: self, live, buffer: Vec::new() };
        let mut open: Option<(u64, Checking)> = None;
        while let Some(job) = self.queues[index].pop(account)? {
            match job {
                VerifyJob::Batch(ticket, objects) => {
                    let outcomes =
                        objects.into_iter().map(|object| checker.check(object)).collect();
                    self.enter(ticket, outcomes, account)?;
                }
                // Hashed in stretches.
                VerifyJob::Begin(ticket, object) => {
                    open = Some((ticket, checker.begin(object, None)))
                }
                VerifyJob::Compare(slice) => {
                    if let Some((_, checking)) = &mut open {
                        checker.compare_content(checking, &slice);
                    }
                }
                VerifyJob::End { file, stretches, missing_bytes } => {
                    if let Some((ticket, mut checking)) = open.take() {
                        checking.missing_bytes = missing_bytes;
                        let rest = (ticket, checker.end(checking));
                        self.enter_large(file.end(stretches, rest), account)?;
                    }
                }
                VerifyJob::Hash { file, number, at_bytes, slice } => {
                    self.count_content(&slice);
                    self.enter_large(file.hash(number, at_bytes, &slice), account)?;
                }
            }
        }
        Ok(())
    }

    fn count_content(&self, bytes: &[u8]) {
        self.stage.add_bytes(bytes.len() as u64);
        self.warnings.monitor().count(Counter::SourceBytes, bytes.len() as u64);
    }

    /// Enters a large file whose results are complete.
    fn enter_large(
        &self,
        finished: Option<Finished<(u64, Outcome)>>,
        account: &mut Account,
    ) -> Result<(), VerifyError> {
        let Some(((ticket, mut outcome), hash)) = finished else { return Ok(()) };
        outcome.seen.content_hash = hash;
        self.enter(ticket, vec![outcome], account)
    }

    fn enter(
        &self,
        ticket: u64,
        outcomes: Vec<Outcome>,
        account: &mut Account,
    ) -> Result<(), VerifyError> {
        let turn = self.turnstile.enter(ticket, account, ThreadState::Blocked)?;
        let mut results = self.results();
        self.warnings.monitor().count(Counter::Members, outcomes.len() as u64);
        for outcome in outcomes {
            results.enter(outcome, self.warnings)?;
        }
        drop(results);
        turn.pass();
        Ok(())
    }
}

impl Results {
    fn has_room_for(&mut self, candidate: &Candidate) -> bool {
        self.candidates_bytes =
            self.candidates_bytes.saturating_add(candidate.differing.text_bytes());
        self.candidates.len() < 2 * LISTED_MAX && self.candidates_bytes <= 2 * LISTED_BYTES_MAX
    }

    fn enter(&mut self, outcome: Outcome, warnings: &Warnings<'_>) -> Result<(), VerifyError> {
        let Outcome { member, seen, comparison, source_bytes, _loan } = outcome;
        self.members += 1;
        self.files += u64::from(member.kind == MemberKind::File);
        self.source_bytes += source_bytes;
        self.seen.push(seen).map_err(VerifyError::Spool)?;
        match comparison {
            Compared::NotAsked => return Ok(()),
            Compared::Same => {}
            Compared::Missing => {
                warnings.warn(
                    Harm::Different,
                    &member.path,
                    "in the archive, and missing in the live tree",
                );
                self.missing.push(member.path.clone());
            }
            Compared::Failed(what) => {
                warnings.warn(Harm::Different, &member.path, format!("cannot be compared: {what}"));
                self.not_compared.push(Problem { path: member.path.clone(), what });
                return Ok(());
            }
            Compared::Differs(candidate) if self.has_room_for(&candidate) => {
                self.candidates.push(candidate);
            }
            Compared::Differs(candidate) if candidate.looks_untouched => self.differs_more += 1,
            Compared::Differs(_) => self.changed_more += 1,
        }
        self.compared += 1;
        Ok(())
    }
}

/// The result for one member.
#[derive(Debug)]
pub(crate) struct Outcome {
    member: Box<Member>,
    seen: Seen,
    comparison: Compared,
    source_bytes: u64,
    _loan: Loan,
}

#[derive(Debug)]
enum Compared {
    NotAsked,
    Same,
    Missing,
    Failed(String),
    Differs(Candidate),
}

/// A member whose content is passing.
struct Checking {
    member: Box<Member>,
    header_offset_bytes: ArchiveOffset,
    hasher: Option<ContentHasher>,
    comparison: Compared,
    live: Option<LiveFile>,
    missing_bytes: u64,
    stored_bytes: u64,
    loan: Loan,
    _window: Option<InWindow>,
}

/// What one worker checks with.
struct Checker<'a> {
    shared: &'a Workers<'a>,
    live: Option<LiveTree>,
    buffer: Vec<u8>,
}

impl Checker<'_> {
    fn check(&mut self, mut object: Object) -> Outcome {
        let content = std::mem::take(&mut object.content);
        let hasher =
            (object.member.kind == MemberKind::File).then(|| match &object.member.sparse {
                Some(runs) => ContentHasher::sparse(object.member.size_bytes, runs),
                None => ContentHasher::whole(),
            });
        let mut checking = self.begin(object, hasher);
        for slice in &content {
            self.shared.count_content(slice);
            if let Some(hasher) = &mut checking.hasher {
                hasher.update(slice);
            }
            self.compare_content(&mut checking, slice);
        }
        self.end(checking)
    }

    fn begin(&mut self, object: Object, hasher: Option<ContentHasher>) -> Checking {
        let Object {
            member, header_offset_bytes, missing_bytes, stored_bytes, loan, window, ..
        } = object;
        self.shared.warnings.monitor().object(&member.path, stored_bytes);
        let (comparison, live) = self.compare(&member, header_offset_bytes, window.as_ref());
        Checking {
            member,
            header_offset_bytes,
            hasher,
            comparison,
            live,
            missing_bytes,
            stored_bytes,
            loan,
            _window: window,
        }
    }

    fn compare(
        &mut self,
        member: &Member,
        header_offset_bytes: ArchiveOffset,
        window: Option<&InWindow>,
    ) -> (Compared, Option<LiveFile>) {
        use tree::Difference;
        let Some(live) = &mut self.live else { return (Compared::NotAsked, None) };
        let found = match live.compare(member) {
            Ok(found) => found,
            Err(error) => return (Compared::Failed(with_causes(&error)), None),
        };
        if found.differences.contains(&Difference::Missing) {
            return (Compared::Missing, None);
        }
        let touched = |difference: &Difference| {
            matches!(difference, Difference::Size { .. } | Difference::Modified { .. })
        };
        let looks_untouched = !found.differences.iter().any(touched);
        let same_size =
            !found.differences.iter().any(|other| matches!(other, Difference::Size { .. }));
        // One that is not compared has its pages dropped all the same.
        let file = found.file.map(|file| LiveFile::new(file, member, window));
        let file = file.filter(|_| same_size);
        let candidate = Candidate {
            header_offset_bytes,
            differing: Differing {
                path: member.path.clone(),
                differences: found.differences,
                content_differs_at_bytes: None,
            },
            looks_untouched,
            live_changed: found.version.map(|version| version.changed),
        };
        (Compared::Differs(candidate), file)
    }

    fn compare_content(&mut self, checking: &mut Checking, bytes: &[u8]) {
        if checking.missing_bytes == 0
            && let Some(live) = &mut checking.live
        {
            live.update(bytes, &mut self.buffer);
        }
    }

    fn end(&mut self, checking: Checking) -> Outcome {
        let Checking { member, header_offset_bytes, hasher, mut comparison, live, .. } = checking;
        let (whole, loan) = (checking.missing_bytes == 0, checking.loan);
        if !whole && self.live.is_some() {
            comparison = Compared::Failed("its content in the archive is incomplete".to_owned());
        } else if let Some(live) = live {
            match live.finish(&mut self.buffer) {
                Ok(at) => {
                    if let Compared::Differs(candidate) = &mut comparison {
                        candidate.differing.content_differs_at_bytes = at;
                    }
                }
                Err(error) => {
                    comparison = Compared::Failed(format!("the live file cannot be read: {error}"));
                }
            }
        }
        if let Compared::Differs(candidate) = &comparison
            && candidate.differing.differences.is_empty()
            && candidate.differing.content_differs_at_bytes.is_none()
        {
            comparison = Compared::Same;
        }
        let content_hash = hasher.filter(|_| whole).map(|hasher| hasher.finish());
        let seen = Seen { header_offset_bytes, content_hash };
        let source_bytes = checking.stored_bytes.saturating_sub(checking.missing_bytes);
        Outcome { member, seen, comparison, source_bytes, _loan: loan }
    }
}

/// Records a path of the archive.
pub(crate) fn remember(paths: &mut Paths, member: &Member) {
    let path = crate::selection::strip_components(&member.path, 0).unwrap_or_default();
    let is_directory = member.kind == MemberKind::Directory;
    let bytes = paths.directories_bytes + path.len() + size_of::<Vec<u8>>();
    if paths.hashes.len() >= PATHS_MAX || is_directory && bytes > DIRECTORIES_BYTES_MAX {
        paths.overflowed = true;
        return;
    }
    paths.hashes.insert(twox_hash::XxHash3_64::oneshot(&path));
    if is_directory {
        paths.directories_bytes = bytes;
        paths.directories.push(path);
    }
}
