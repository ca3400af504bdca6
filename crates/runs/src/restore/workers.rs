//! The `create` stage: threads that create the objects that the parsing thread passes to them.
//!
//! All take their jobs from one queue, oldest first. Capacity: [`JOBS_MAX`] jobs, and as many
//! pieces of each large file. Content is on loan from the ring, which bounds its bytes; a budget
//! bounds the rest of each member.
//!
//! One queue, so that the batch with the lowest ticket always has a worker: with a queue for each,
//! it stood behind others while a worker waited for it.
//!
//! Small files come in batches with a ticket. Several workers open the files of their batches, and
//! give them metadata and names, at once; but they write the contents in the order of the tickets.
//! ext4 and btrfs give files their place on the disk in the order in which they were first written
//! to, so that files lie in the order of the archive, whatever the number of workers.

use std::io;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use archive::member::{Member, MemberKind};
use base::failures::{lock, with_causes};
use flow::account::{Account, Stage, ThreadState};
use flow::budget::{Budget, Loan};
use flow::cancel::{POLL, Stopped};
use flow::crew::{Crew, cores};
use flow::monitor::{Counter, Harm};
use flow::queue::Queue;
use flow::run::{RunReport, StageKind};
use flow::turnstile::Turnstile;
use machine::Machine;
use storage::stack::{Stack, StackTarget};
use tree::{Created, Destination, Overwrite, RestoreFile, Worker};

use super::{INCOMPLETE_SUFFIX, RestoreError, RestoreOptions};
use crate::read::members::ContentPiece;
use crate::read::placement::Placement;
use crate::read::{MEMBERS_BYTES_MAX, Slice};
use crate::warnings::Warnings;

/// Most jobs that wait for a worker, and most pieces of a file that wait for its worker.
const JOBS_MAX: usize = 256;

/// Most workers.
const WORKERS_MAX: usize = 1024;

/// Whether this run already created an object of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    First,
    Again,
}

/// One object with all of its content.
#[derive(Debug)]
pub(crate) struct Object {
    pub member: Box<Member>,
    pub content: Vec<Slice>,
    pub made: Made,
    pub loan: Loan,
}

/// Objects with different names, in the order of the archive.
#[derive(Debug)]
pub(crate) struct Batch {
    pub objects: Vec<Object>,
    /// Batches are written in the order of their tickets: 0, 1, 2, ... in the order of `push`.
    pub ticket: u64,
}

/// A file that is too large for a batch.
#[derive(Debug)]
pub(crate) struct Large {
    pub member: Box<Member>,
    pub made: Made,
    pub loan: Loan,
    /// Its content, until the queue is closed.
    pub pieces: Arc<Queue<ContentPiece>>,
}

/// Work for a worker.
#[derive(Debug)]
pub(crate) enum RestoreJob {
    Batch(Batch),
    Large(Large),
}

/// All workers and what they share.
pub(crate) struct Workers<'a> {
    destination: &'a Arc<Destination>,
    /// What to do with existing files; with `Refuse` an incomplete file never replaces another.
    overwrite: Overwrite,
    stage: &'a Arc<Stage>,
    warnings: &'a Warnings<'a>,
    crew: &'a Crew<'a, RestoreError>,
    queue: Queue<RestoreJob>,
    threads: usize,
    /// The order in which batches are written; `None` where it does not matter: waiting for a turn
    /// takes time, a sixth of a restore onto a disk that is as fast as memory.
    turnstile: Option<Turnstile>,
    /// Most bytes of members in progress besides their content.
    budget: Budget,
    done: Done,
    members: AtomicU64,
    files: AtomicU64,
    source_bytes: AtomicU64,
    existing: AtomicU64,
}

/// Jobs that are finished.
#[derive(Default)]
struct Done {
    jobs: Mutex<u64>,
    changed: Condvar,
}

impl<'a> Workers<'a> {
    pub fn new(
        destination: &'a Arc<Destination>,
        options: &RestoreOptions,
        stage: &'a Arc<Stage>,
        warnings: &'a Warnings<'a>,
        crew: &'a Crew<'a, RestoreError>,
    ) -> Workers<'a> {
        let cancel = crew.cancel();
        let threads = options.threads.map_or_else(cores, NonZero::get).min(WORKERS_MAX);
        Workers {
            destination,
            overwrite: options.overwrite,
            stage,
            warnings,
            crew,
            queue: Queue::new(JOBS_MAX, cancel.clone()),
            threads,
            turnstile: keeps_order(destination, &options.into)
                .then(|| Turnstile::new(cancel.clone())),
            budget: Budget::new(MEMBERS_BYTES_MAX, cancel.clone()),
            done: Done::default(),
            members: AtomicU64::new(0),
            files: AtomicU64::new(0),
            source_bytes: AtomicU64::new(0),
            existing: AtomicU64::new(0),
        }
    }

    /// Number of workers.
    pub fn len(&self) -> usize {
        self.threads
    }

    /// Runs the workers while `feed` gives them jobs, until all jobs are done.
    pub fn run(&self, feed: impl FnOnce() -> Result<(), RestoreError>) -> Result<(), RestoreError> {
        self.crew.scope(StageKind::Parse, |scope| {
            for _ in 0..self.len() {
                self.crew.spawn(scope, self.stage, move |account| self.work(account))?;
            }
            feed()?;
            self.queue.close();
            Ok(())
        })
    }

    /// Passes on a job.
    pub fn push(&self, job: RestoreJob, account: &mut Account) -> Result<(), Stopped> {
        self.queue.push(job, account)
    }

    /// A queue for the content of a large file.
    pub fn pieces(&self) -> Arc<Queue<ContentPiece>> {
        Arc::new(Queue::new(JOBS_MAX, self.crew.cancel().clone()))
    }

    /// The bytes that members in progress share.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Waits until `jobs` jobs are finished.
    pub fn wait_for(&self, jobs: u64, account: &mut Account) -> Result<(), Stopped> {
        let done = &self.done;
        let mut finished = lock(&done.jobs);
        if *finished >= jobs {
            return Ok(());
        }
        account.switch(ThreadState::Blocked);
        while *finished < jobs {
            let waited = done.changed.wait_timeout(finished, POLL);
            (finished, _) = waited.unwrap_or_else(PoisonError::into_inner);
            self.crew.cancel().check().inspect_err(|_| account.switch(ThreadState::Working))?;
        }
        account.switch(ThreadState::Working);
        Ok(())
    }

    /// Number of objects that the workers created.
    pub fn report(&self) -> RunReport {
        RunReport {
            members: self.members.load(Ordering::Relaxed),
            files: self.files.load(Ordering::Relaxed),
            source_bytes: self.source_bytes.load(Ordering::Relaxed),
            ..RunReport::default()
        }
    }

    /// Members that were refused because their path exists.
    pub fn existing(&self) -> u64 {
        self.existing.load(Ordering::Relaxed)
    }

    /// Counts an object that was created.
    pub fn count_member(&self) {
        self.members.fetch_add(1, Ordering::Relaxed);
        self.warnings.monitor().count(Counter::Members, 1);
    }

    /// Warns of a member that cannot be created, or ends the run if nothing more can be written.
    pub fn refuse(&self, member: &Member, error: tree::RestoreError) {
        if let tree::RestoreError::Exists { .. } = error {
            self.existing.fetch_add(1, Ordering::Relaxed);
        }
        if !ends_the_run(&error) {
            let harm = match error {
                tree::RestoreError::Exists { .. } => Harm::Existing,
                _ => Harm::NotRestored,
            };
            self.warnings.warn(harm, &member.path, sentence(&error));
            return;
        }
        self.crew.fail(error.into());
    }

    /// Reports the file whose content is written next.
    fn announce(&self, member: &Member) {
        self.warnings.monitor().object(&member.path, member.content_bytes());
    }

    /// Writes the next stored bytes of a file.
    fn put(&self, open: &mut OpenFile, bytes: &[u8]) -> io::Result<()> {
        let OpenFile { placement, file, .. } = open;
        placement.place(bytes, |offset, bytes| file.write_at(offset, bytes))?;
        self.stage.add_bytes(bytes.len() as u64);
        Ok(())
    }

    fn work(&self, account: &mut Account) -> Result<(), RestoreError> {
        let mut creator = Creator {
            shared: self,
            strict: self.destination.worker(),
            replacing: self.destination.replacing_worker(),
        };
        while let Some(job) = self.queue.pop(account)? {
            match job {
                RestoreJob::Batch(batch) => creator.make(batch, account)?,
                RestoreJob::Large(large) => creator.make_large(large, account)?,
            }
            *lock(&self.done.jobs) += 1;
            self.done.changed.notify_all();
        }
        Ok(())
    }
}

/// Whether the order in which small files are written decides how soon they can be read again.
fn keeps_order(destination: &Destination, into: &Path) -> bool {
    let is_without_heads = || {
        let place = StackTarget::of(into);
        place.is_ok_and(|place| Stack::is_without_heads(&Machine::this(), &place))
    };
    destination.is_placed_as_written() && !is_without_heads()
}

/// Whether nothing more can be written after this error.
fn ends_the_run(error: &tree::RestoreError) -> bool {
    let source: &io::Error = match error {
        tree::RestoreError::Write { source, .. }
        | tree::RestoreError::Create { source, .. }
        | tree::RestoreError::Parent { source, .. }
        | tree::RestoreError::Link { source, .. }
        | tree::RestoreError::Rename { source, .. } => source,
        tree::RestoreError::Destination { .. } | tree::RestoreError::Synchronise { .. } => {
            return true;
        }
        _ => return false,
    };
    const EIO: i32 = 5;
    matches!(
        source.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ReadOnlyFilesystem
    ) || source.raw_os_error() == Some(EIO)
}

/// The error without the path, which the notice has.
fn sentence(error: &tree::RestoreError) -> String {
    use tree::RestoreError as E;
    match error {
        E::Refused { reason, .. } => format!("refused, {reason}"),
        E::LinkRefused { target, reason, .. } => {
            format!("refused, link target {}: {reason}", String::from_utf8_lossy(target))
        }
        E::Exists { .. } => "already exists".to_owned(),
        E::DirectoryInTheWay { .. } => "a directory that is not empty is in the way".to_owned(),
        E::Parent { source, .. } => format!("cannot reach its directory: {source}"),
        E::Create { source, .. } => format!("cannot create: {source}"),
        E::Link { target, source, .. } => {
            format!("cannot link to {}: {source}", String::from_utf8_lossy(target))
        }
        E::LinkChanged { target, .. } => {
            format!("another program changed the link target {}", String::from_utf8_lossy(target))
        }
        E::Changed { .. } => "was changed by another program while it was created".to_owned(),
        E::Remember { source, .. } => format!("cannot keep its metadata for the end: {source}"),
        E::DeviceNeedsRoot { .. } => "devices can be restored by root only".to_owned(),
        E::Write { source, .. } => format!("cannot write: {source}"),
        E::Rename { source, .. } => format!("cannot rename into place: {source}"),
        E::Destination { .. } | E::NotAFolder { .. } | E::Synchronise { .. } => with_causes(error),
    }
}

/// A file whose content arrives in pieces.
struct OpenFile {
    member: Box<Member>,
    made: Made,
    file: RestoreFile,
    placement: Placement,
    /// What the first failed write returned.
    written: io::Result<()>,
    missing_bytes: u64,
    _loan: Loan,
}

/// What one worker creates with.
struct Creator<'a> {
    shared: &'a Workers<'a>,
    strict: Worker,
    replacing: Worker,
}

impl Creator<'_> {
    fn worker(&mut self, made: Made) -> &mut Worker {
        match made {
            Made::First => &mut self.strict,
            Made::Again => &mut self.replacing,
        }
    }

    /// Creates objects that are complete. Their contents are written in their turn.
    fn make(&mut self, batch: Batch, account: &mut Account) -> Result<(), Stopped> {
        let mut files = Vec::with_capacity(batch.objects.len());
        for Object { member, content, made, loan } in batch.objects {
            if member.kind == MemberKind::File {
                files.extend(self.begin(member, made, loan).map(|open| (open, content)));
            } else {
                self.create(&member, made);
            }
        }
        let turn = match &self.shared.turnstile {
            Some(turnstile) => {
                Some(turnstile.enter(batch.ticket, account, ThreadState::Working)?)
            }
            None => None,
        };
        for (open, content) in files.iter_mut() {
            self.shared.announce(&open.member);
            open.written = content.drain(..).try_for_each(|slice| self.shared.put(open, &slice));
        }
        if let Some(turn) = turn {
            turn.pass();
        }
        files.into_iter().for_each(|(open, _)| self.finish(open));
        Ok(())
    }

    /// Creates an object without content.
    fn create(&mut self, member: &Member, made: Made) {
        match self.worker(made).create(member) {
            Ok(problems) => {
                problems.iter().for_each(|problem| self.shared.warnings.metadata(problem));
                self.shared.count_member();
            }
            Err(error) => self.shared.refuse(member, error),
        }
    }

    /// Makes a file, still without content and name. `None` if an existing one stays.
    fn begin(&mut self, member: Box<Member>, made: Made, loan: Loan) -> Option<OpenFile> {
        match self.worker(made).create_file(&member) {
            Ok(Created::File(file)) => {
                let placement = Placement::of(&member);
                return Some(OpenFile {
                    member,
                    made,
                    file,
                    placement,
                    written: Ok(()),
                    missing_bytes: 0,
                    _loan: loan,
                });
            }
            Ok(Created::Kept) => {}
            Ok(Created::KeptShorter) => self.shared.warnings.warn(
                Harm::Existing,
                &member.path,
                "stays: newer than the archived one but shorter, as after an interrupted copy",
            ),
            Err(error) => self.shared.refuse(&member, error),
        }
        None
    }

    /// Makes a file whose content arrives in pieces. Takes all of them, whatever fails: the parsing
    /// thread may wait for room.
    fn make_large(&mut self, large: Large, account: &mut Account) -> Result<(), Stopped> {
        let Large { member, made, loan, pieces } = large;
        self.shared.announce(&member);
        let mut open = self.begin(member, made, loan);
        while let Some(piece) = pieces.pop(account)? {
            let Some(mut file) = open.take() else { continue };
            match piece {
                ContentPiece::Data(slice) => file.written = self.shared.put(&mut file, &slice),
                ContentPiece::Missing { bytes } => {
                    file.placement.skip(bytes);
                    file.missing_bytes += bytes;
                }
            }
            if file.written.is_err() {
                self.finish(file);
            } else {
                open = Some(file);
            }
        }
        open.into_iter().for_each(|open| self.finish(open));
        Ok(())
    }

    /// Gives a file its metadata and its name, if it has all of its content.
    fn finish(&mut self, open: OpenFile) {
        if open.missing_bytes > 0 {
            self.end_incomplete(open);
            return;
        }
        let OpenFile { member, file, written, .. } = open;
        if let Err(source) = written {
            let error = tree::RestoreError::Write { path: member.path.clone(), source };
            drop(file);
            self.shared.refuse(&member, error);
            return;
        }
        match file.finish(&member.path) {
            Ok(problems) => {
                problems.iter().for_each(|problem| self.shared.warnings.metadata(problem));
                let bytes = member.content_bytes();
                self.shared.files.fetch_add(1, Ordering::Relaxed);
                self.shared.source_bytes.fetch_add(bytes, Ordering::Relaxed);
                self.shared.count_member();
                self.shared.warnings.monitor().count(Counter::SourceBytes, bytes);
            }
            Err(error) => self.shared.refuse(&member, error),
        }
    }

    /// An incomplete file gets another name, unless it would have replaced a file.
    fn end_incomplete(&mut self, open: OpenFile) {
        let OpenFile { member, made, file, missing_bytes, .. } = open;
        let replaces_nothing = made == Made::First && self.shared.overwrite == Overwrite::Refuse;
        let mut name = member.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
        name.extend_from_slice(INCOMPLETE_SUFFIX.as_bytes());
        let kept = if replaces_nothing && file.keep_as(&name).is_ok() {
            Kept::BesideIt
        } else {
            Kept::Not
        };
        self.warn_incomplete(&member.path, missing_bytes, kept);
    }

    fn warn_incomplete(&self, path: &[u8], missing_bytes: u64, kept: Kept) {
        let what = match kept {
            Kept::BesideIt => "the available data were kept as",
            Kept::Not => "the available data were removed instead of kept as",
        };
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let name = String::from_utf8_lossy(name);
        self.shared.warnings.warn(
            Harm::Damage,
            path,
            format!(
                "not restored: {missing_bytes} bytes of its content are missing; \
                 {what} {name}{INCOMPLETE_SUFFIX}"
            ),
        );
    }
}

/// What happened to an incomplete file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    BesideIt,
    Not,
}
