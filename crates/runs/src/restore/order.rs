//! Which worker gets what, and what waits for what.
//!
//! With these rules the outcome is that of one thread that goes through the archive in order:
//!
//! - All objects of one directory go to one worker, first in, first out: the worker with least to
//!   do when the directory first appeared.
//! - The parsing thread creates directories at once, so they exist before their content.
//! - The parsing thread creates a hard link after the workers of its target and of its own
//!   directory have finished all earlier jobs.
//! - If a directory may collide with another object of its name in progress (in an archive that
//!   holds both), everything in progress is waited for. A bit table of hashed paths answers whether
//!   it may: a false yes costs a short wait and nothing else.
//! - A repeated name replaces what this run created under it, and nothing else. Hashes of the
//!   created paths are kept, up to [`MADE_MAX`]; a later duplicate is refused like any other
//!   existing object, with a warning.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::BufReader;
use std::sync::Arc;

use archive::index::{IndexReader, IndexSection, Trailer};
use archive::member::{Member, MemberKind};
use flow::account::Account;
use flow::budget::Loan;
use flow::cancel::Stopped;
use flow::monitor::Harm;
use tree::{Destination, Overwrite, Worker};
use twox_hash::XxHash3_64;

use super::RestoreOptions;
use super::workers::{Made, Object, RestoreJob, Workers};
use crate::read::block_check::KeptChecksums;
use crate::read::late_check::{
    IndexFault, LateCheck, LateOutcome, is_trailer, read_trailer, section_of,
};
use crate::read::members::{ContentPiece, Found, Item, MemberStream};
use crate::read::ranges::StandIns;
use crate::read::section::SectionReader;
use crate::selection::{Selection, is_absolute, normal, strip_components, without_root};
use crate::warnings::Warnings;

/// Files of up to this many stored bytes travel in batches.
const SMALL_BYTES_MAX: u64 = 256 << 10;
/// A batch is passed on with this many objects,
const BATCH_OBJECTS_MAX: usize = 32;
/// or this many bytes of content.
const BATCH_BYTES_MAX: u64 = 512 << 10;
/// Most hashes of created objects: 8 bytes each, in a table of up to 36 MiB.
const MADE_MAX: usize = 1 << 21;
/// Most directories that are kept, by hash, with their worker: 16 bytes each, in a table of up to
/// 18 MiB. Further directories go to the worker of their hash.
const DIRECTORIES_MAX: usize = 1 << 19;
/// A directory without objects so far.
const NO_WORKER: u16 = u16::MAX;
/// Bits of the table of paths in progress.
const UNDER_WAY_BITS: usize = 1 << 23;

/// Keys are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers");
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

type Hashes = HashSet<u64, BuildHasherDefault<AsItIs>>;
type Homes = HashMap<u64, u16, BuildHasherDefault<AsItIs>>;

/// Jobs of one worker.
#[derive(Default)]
struct Given {
    jobs: u64,
    batch: Vec<Object>,
    batch_bytes: u64,
}

/// The parsing thread's side of a restore.
pub(crate) struct Dispatcher<'a> {
    workers: &'a Workers<'a>,
    selection: &'a mut Selection,
    strip_components: usize,
    overwrite: Overwrite,
    warnings: &'a Warnings<'a>,
    /// Members that are restored under the name of a link, if the index was read.
    stand_ins: Option<&'a StandIns>,
    strict: Worker,
    replacing: Worker,
    given: Vec<Given>,
    /// Existing directories, and the workers of their objects.
    directories: Homes,
    /// The table is full: a directory that is not in it would change its worker.
    directories_full: bool,
    made: Hashes,
    under_way: Vec<u64>,
    /// Directory of the last object, and its hash.
    parent: Vec<u8>,
    parent_key: u64,
    told_of_root: bool,
    /// Checksums of the blocks, for an index that follows them.
    kept: Option<&'a KeptChecksums>,
    late_check: Option<LateCheck<'a>>,
    late_outcome: Option<LateOutcome>,
}

impl<'a> Dispatcher<'a> {
    pub fn new(
        workers: &'a Workers<'a>,
        destination: &Arc<Destination>,
        options: &RestoreOptions,
        selection: &'a mut Selection,
        warnings: &'a Warnings<'a>,
    ) -> Dispatcher<'a> {
        Dispatcher {
            workers,
            selection,
            strip_components: options.strip_components,
            overwrite: options.overwrite,
            warnings,
            stand_ins: None,
            strict: destination.worker(),
            replacing: destination.replacing_worker(),
            given: (0..workers.len()).map(|_| Given::default()).collect(),
            directories: Homes::default(),
            directories_full: false,
            made: Hashes::default(),
            under_way: vec![0; UNDER_WAY_BITS / 64],
            parent: Vec::new(),
            parent_key: XxHash3_64::oneshot(b""),
            told_of_root: false,
            kept: None,
            late_check: None,
            late_outcome: None,
        }
    }

    /// Restores unselected members under the names that stand in for them.
    pub fn with_stand_ins(mut self, stand_ins: &'a StandIns) -> Dispatcher<'a> {
        self.stand_ins = Some(stand_ins);
        self
    }

    /// Compares the blocks with the checksums of an index that follows them.
    pub fn with_kept(mut self, kept: Option<&'a KeptChecksums>) -> Dispatcher<'a> {
        self.kept = kept;
        self.late_check = kept.map(LateCheck::new);
        self
    }

    /// The result of that; `None` without such an index.
    pub fn late_outcome(self) -> Option<LateOutcome> {
        self.late_outcome
    }

    /// Reads the index sections that show whether the restored data are those of the backup.
    fn index_section(
        &mut self,
        path: &[u8],
        stream: &mut MemberStream<'_>,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        if self.late_check.is_none() {
            return Ok(());
        }
        // Jobs that are held back would keep blocks of the ring.
        self.flush_all(account)?;
        let marked = stream.is_marked();
        let mut reader = SectionReader::new(stream, account);
        let result = if section_of(path) == Some(IndexSection::Blocks) {
            let buffered = BufReader::with_capacity(64 << 10, &mut reader);
            let check = self.late_check.as_mut().expect("looked at above");
            check.hold_against(IndexReader::new(buffered))
        } else if is_trailer(path) {
            read_trailer(&mut reader).and_then(|trailer| self.conclude_late(&trailer, marked))
        } else {
            Ok(())
        };
        reader.stopped()?;
        if let Err(fault) = result {
            let consequence = "; the restored files could not be checked";
            self.warnings.damage(&fault.damage(consequence));
        }
        Ok(())
    }

    fn conclude_late(&mut self, trailer: &Trailer, marked: bool) -> Result<(), IndexFault> {
        let Some(outcome) = self.late_check.take().and_then(|check| check.conclude(trailer)) else {
            return if marked { Err(IndexFault::OtherBlocks) } else { Ok(()) };
        };
        let all = self.late_outcome.get_or_insert_with(|| LateOutcome {
            blocks: 0,
            differing_count: 0,
            differing: Vec::new(),
            ..outcome
        });
        all.blocks += outcome.blocks;
        all.differing_count += outcome.differing_count;
        all.differing.extend(outcome.differing);
        Ok(())
    }

    /// Goes through the archive.
    pub fn dispatch(
        &mut self,
        stream: &mut MemberStream<'_>,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        loop {
            if stream.would_wait() {
                // Jobs that are held back would keep blocks of the ring, and workers idle.
                self.flush_all(account)?;
            }
            match stream.next(account)? {
                Some(Item::Member(found)) => self.member(found, stream, account)?,
                Some(Item::IndexSection { path }) => self.index_section(&path, stream, account)?,
                Some(Item::Damage(damage)) => self.warnings.damage(&damage),
                Some(Item::NextArchive { offset_bytes }) => {
                    self.warnings.next_archive(offset_bytes);
                    self.late_check = self.kept.map(LateCheck::new);
                }
                Some(Item::Passed { what }) => self.warnings.note(b"", what),
                Some(Item::EndOfSegment) => self.flush_all(account)?,
                None => return Ok(()),
            }
        }
    }

    /// Waits until all workers have finished their jobs.
    pub fn drain(&mut self, account: &mut Account) -> Result<(), Stopped> {
        self.flush_all(account)?;
        for worker in 0..self.given.len() {
            self.workers.wait_for(worker, self.given[worker].jobs, account)?;
        }
        self.under_way.fill(0);
        Ok(())
    }

    fn member(
        &mut self,
        found: Found,
        stream: &mut MemberStream<'_>,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        let Found { mut member, notes, stored_bytes, .. } = found;
        if !self.selects(&mut member) {
            return Ok(());
        }
        for note in &notes {
            self.warnings.warn(Harm::Metadata, &member.path, note.to_string());
        }
        self.take_off_root(&mut member);
        if self.strip_components > 0 {
            let Some(path) = strip_components(&member.path, self.strip_components) else {
                return Ok(());
            };
            member.path = path;
            if let MemberKind::HardLink { target } = &mut member.kind {
                *target = strip_components(target, self.strip_components).unwrap_or_default();
            }
        }
        match &member.kind {
            MemberKind::Directory => self.directory(&member, account),
            MemberKind::HardLink { target } => {
                let target = target.clone();
                self.hard_link(&member, &target, account)
            }
            MemberKind::File => {
                let loan = self.borrow(&member, account)?;
                self.file(member, loan, stored_bytes, stream, account)
            }
            _ => {
                let loan = self.borrow(&member, account)?;
                self.object(member, loan, Vec::new(), 0, account)
            }
        }
    }

    /// Whether a member is wanted; it may get another name, and a link another target.
    fn selects(&mut self, member: &mut Member) -> bool {
        let Some(stand_ins) = self.stand_ins else { return self.selection.selects(&member.path) };
        if let Some(link) = stand_ins.link_of(&member.path) {
            member.path = link.to_vec();
            return self.selection.selects(&member.path);
        }
        if !self.selection.selects(&member.path) {
            return false;
        }
        let MemberKind::HardLink { target } = &mut member.kind else { return true };
        let Some(link) = stand_ins.link_of(target) else { return true };
        *target = link.to_vec();
        // The link that stands in exists already, with the content.
        normal(&member.path) != *target
    }

    /// Absolute paths are restored below the destination; that is reported once.
    fn take_off_root(&mut self, member: &mut Member) {
        let mut absolute = is_absolute(&member.path);
        without_root(&mut member.path);
        if let MemberKind::HardLink { target } = &mut member.kind {
            absolute |= is_absolute(target);
            without_root(target);
        }
        if absolute && !self.told_of_root {
            self.told_of_root = true;
            self.warnings.note(&member.path, "restored without the leading / of its path");
        }
    }

    fn directory(&mut self, member: &Member, account: &mut Account) -> Result<(), Stopped> {
        let path = plain(&member.path);
        let (parent, _) = split(&path);
        self.enter(parent, account)?;
        let key = XxHash3_64::oneshot(&path);
        self.settle(key, account)?;
        let made = self.made.contains(&key);
        let worker = if made { &mut self.replacing } else { &mut self.strict };
        match worker.create_directory(member) {
            Ok(problems) => {
                problems.iter().for_each(|problem| self.warnings.metadata(problem));
                self.workers.count_member();
                self.add_directory(key);
            }
            Err(error) => self.workers.refuse(member, error),
        }
        Ok(())
    }

    fn hard_link(
        &mut self,
        member: &Member,
        target: &[u8],
        account: &mut Account,
    ) -> Result<(), Stopped> {
        let target = plain(target);
        let target_worker = self.worker_of(XxHash3_64::oneshot(split(&target).0));
        self.wait_for(target_worker, account)?;
        let path = plain(&member.path);
        self.enter(split(&path).0, account)?;
        let own_worker = self.worker_of(self.parent_key);
        self.wait_for(own_worker, account)?;
        let key = XxHash3_64::oneshot(&path);
        self.replace_directory(key, account)?;
        let worker = match self.remember(key) {
            Made::First => &mut self.strict,
            Made::Again => &mut self.replacing,
        };
        match worker.create(member) {
            Ok(problems) => {
                problems.iter().for_each(|problem| self.warnings.metadata(problem));
                self.workers.count_member();
            }
            Err(error) => self.workers.refuse(member, error),
        }
        Ok(())
    }

    /// Waits until there is room for one more member in progress.
    fn borrow(&mut self, member: &Member, account: &mut Account) -> Result<Loan, Stopped> {
        let bytes = member.memory_bytes();
        let workers = self.workers;
        if let Some(loan) = workers.budget().try_take(bytes) {
            return Ok(loan);
        }
        self.flush_all(account)?;
        workers.budget().take(bytes, account)
    }

    fn file(
        &mut self,
        member: Box<Member>,
        loan: Loan,
        stored_bytes: u64,
        stream: &mut MemberStream<'_>,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        let (mut content, mut missing_bytes) = (Vec::new(), 0);
        if stored_bytes <= SMALL_BYTES_MAX {
            (content, missing_bytes) =
                stream.collect(account, |account| self.flush_all(account))?;
            if missing_bytes == 0 {
                return self.object(member, loan, content, stored_bytes, account);
            }
        }
        let (worker, made) = self.place(&member.path, account)?;
        self.give(worker, RestoreJob::Begin(member, made, loan), account)?;
        for slice in content {
            self.give(worker, RestoreJob::Piece(ContentPiece::Data(slice)), account)?;
        }
        if missing_bytes > 0 {
            let missing = ContentPiece::Missing { bytes: missing_bytes };
            self.give(worker, RestoreJob::Piece(missing), account)?;
        }
        self.stream_content(worker, stream, account)
    }

    fn stream_content(
        &mut self,
        worker: usize,
        stream: &mut MemberStream<'_>,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        while let Some(piece) = stream.next_piece(account)? {
            self.give(worker, RestoreJob::Piece(piece), account)?;
            if stream.would_wait() {
                self.flush_all(account)?;
            }
        }
        self.give(worker, RestoreJob::End, account)
    }

    /// Passes on an object that is complete.
    fn object(
        &mut self,
        member: Box<Member>,
        loan: Loan,
        content: Vec<crate::read::Slice>,
        stored_bytes: u64,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        let (worker, made) = self.place(&member.path, account)?;
        let given = &mut self.given[worker];
        given.batch.push(Object { member, content, made, loan });
        given.batch_bytes += stored_bytes;
        if given.batch.len() >= BATCH_OBJECTS_MAX || given.batch_bytes >= BATCH_BYTES_MAX {
            self.flush(worker, account)?;
        }
        Ok(())
    }

    /// The worker for an object that is no directory, after everything that it must wait for.
    fn place(&mut self, path: &[u8], account: &mut Account) -> Result<(usize, Made), Stopped> {
        let path = plain(path);
        self.enter(split(&path).0, account)?;
        let key = XxHash3_64::oneshot(&path);
        self.replace_directory(key, account)?;
        let made = self.remember(key);
        let bit = key as usize % UNDER_WAY_BITS;
        self.under_way[bit / 64] |= 1 << (bit % 64);
        Ok((self.worker_of(self.parent_key), made))
    }

    /// Makes sure that no other object is in progress where `parent` is, or leads to.
    fn enter(&mut self, parent: &[u8], account: &mut Account) -> Result<(), Stopped> {
        if self.parent == parent {
            return Ok(());
        }
        let key = XxHash3_64::oneshot(parent);
        if !parent.is_empty() && !self.directories.contains_key(&key) {
            // The hashes of all its parents, from one pass through its bytes.
            let mut hasher = XxHash3_64::new();
            for (at, name) in parent.split(|byte| *byte == b'/').enumerate() {
                if at > 0 {
                    hasher.write(b"/");
                }
                hasher.write(name);
                self.settle(hasher.finish(), account)?;
            }
            self.add_directory(key);
        }
        self.parent.clear();
        self.parent.extend_from_slice(parent);
        self.parent_key = key;
        Ok(())
    }

    /// Waits for everything in progress, if something of this name may be.
    fn settle(&mut self, key: u64, account: &mut Account) -> Result<(), Stopped> {
        let bit = key as usize % UNDER_WAY_BITS;
        if self.under_way[bit / 64] & 1 << (bit % 64) == 0 {
            return Ok(());
        }
        self.drain(account)
    }

    /// Another object replaces a directory that was created.
    fn replace_directory(&mut self, key: u64, account: &mut Account) -> Result<(), Stopped> {
        if self.directories.remove(&key).is_some() {
            self.drain(account)?;
            self.parent.clear();
            self.parent.push(b'/');
        }
        Ok(())
    }

    /// Whether this run created an object of this name before.
    fn remember(&mut self, key: u64) -> Made {
        if self.overwrite == Overwrite::Replace {
            return Made::First;
        }
        if self.made.contains(&key) {
            return Made::Again;
        }
        if self.made.len() < MADE_MAX {
            self.made.insert(key);
        }
        Made::First
    }

    /// Records an existing directory. It gets its worker with its first object.
    fn add_directory(&mut self, key: u64) {
        self.directories_full |= self.directories.len() >= DIRECTORIES_MAX;
        if !self.directories_full {
            self.directories.entry(key).or_insert(NO_WORKER);
        }
    }

    /// The worker for the objects of a directory.
    fn worker_of(&mut self, parent_key: u64) -> usize {
        let Some(home) = self.directories.get_mut(&parent_key) else {
            // The upper half: the lower bits choose the place in tables.
            return ((parent_key >> 32) % self.given.len() as u64) as usize;
        };
        if *home == NO_WORKER {
            let load = |worker: &usize| {
                let given = &self.given[*worker];
                let jobs = given.jobs - self.workers.jobs_done(*worker);
                (jobs, given.batch.len())
            };
            let idlest = (0..self.given.len()).min_by_key(load).unwrap_or(0);
            *home = idlest as u16;
        }
        usize::from(*home)
    }

    fn wait_for(&mut self, worker: usize, account: &mut Account) -> Result<(), Stopped> {
        self.flush(worker, account)?;
        self.workers.wait_for(worker, self.given[worker].jobs, account)
    }

    /// Passes on a job after everything that was held back for the worker.
    fn give(
        &mut self,
        worker: usize,
        job: RestoreJob,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        self.flush(worker, account)?;
        self.given[worker].jobs += 1;
        self.workers.push(worker, job, account)
    }

    fn flush(&mut self, worker: usize, account: &mut Account) -> Result<(), Stopped> {
        let given = &mut self.given[worker];
        if given.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::replace(&mut given.batch, Vec::with_capacity(BATCH_OBJECTS_MAX));
        given.batch_bytes = 0;
        given.jobs += 1;
        self.workers.push(worker, RestoreJob::Batch(batch), account)
    }

    fn flush_all(&mut self, account: &mut Account) -> Result<(), Stopped> {
        (0..self.given.len()).try_for_each(|worker| self.flush(worker, account))
    }
}

/// A path in its normal form: `a/b`, without extra slashes and dots.
fn plain(path: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    let odd = path.first().is_none_or(|byte| matches!(byte, b'/' | b'.'))
        || path.ends_with(b"/")
        || path.windows(2).any(|pair| matches!(pair, b"//" | b"/."));
    if odd { strip_components(path, 0).unwrap_or_default().into() } else { path.into() }
}

/// The directory and the name of a plain path.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_its_directory_and_its_name() {
        let check = |path: &str, directory: &str, name: &str| {
            assert_eq!(split(path.as_bytes()), (directory.as_bytes(), name.as_bytes()), "{path}");
        };
        check("a/b/c", "a/b", "c");
        check("c", "", "c");
        check("", "", "");
    }
}
