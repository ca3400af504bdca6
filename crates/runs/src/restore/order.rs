//! Which worker gets what, and what waits for what.
//!
//! With these rules the outcome is that of one thread that goes through the archive in order:
//!
//! - Small files go in batches, and large ones in pieces, to the next worker that has nothing to
//!   do. Batches are written in the order of the archive (see `workers`).
//! - The parsing thread creates directories at once, so they exist before their content.
//! - An object that may collide with another one of its name in progress (in an archive that holds
//!   both), and a hard link whose target may be in progress, wait for everything in progress. A bit
//!   table of hashed paths answers whether they may: a false yes costs a short wait and nothing
//!   else. Files of which the run knows that their name is new do not ask it.
//! - The parsing thread creates hard links.
//! - A repeated name replaces what this run created under it, and nothing else. Hashes of the
//!   created paths are kept, up to [`MADE_MAX`]; a later duplicate is refused like any other
//!   existing object, with a warning.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::BufReader;
use std::sync::Arc;

use archive::index::{IndexReader, IndexSection, Trailer};
use archive::member::{Member, MemberKind};
use flow::account::Account;
use flow::budget::Loan;
use flow::cancel::Stopped;
use flow::monitor::Harm;
use machine::open_files;
use tree::{Destination, Overwrite, Worker};
use twox_hash::XxHash3_64;

use super::RestoreOptions;
use super::workers::{Batch, Large, Made, Object, RestoreJob, Workers};
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
/// Most directories that are kept, by hash: 8 bytes each, in a table of up to 9 MiB. Before each
/// object in a further one, its parents are looked for among the objects in progress.
const DIRECTORIES_MAX: usize = 1 << 19;
/// Files that all workers together may have open, as a share of the limit of open files. The rest
/// is for directories.
const OPEN_FILES_SHARE: usize = 4;
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
    /// Number of jobs that were passed on.
    given: u64,
    /// Objects that are held back until a batch is full.
    batch: Vec<Object>,
    batch_bytes: u64,
    /// Objects of a full batch.
    batch_objects_max: usize,
    /// Number of batches that were passed on.
    batches: u64,
    /// Existing directories.
    directories: Hashes,
    made: Hashes,
    under_way: Vec<u64>,
    /// Directory of the last object.
    parent: Vec<u8>,
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
            given: 0,
            batch: Vec::with_capacity(BATCH_OBJECTS_MAX),
            batch_bytes: 0,
            batch_objects_max: batch_objects_max(workers.len(), open_files::limit()),
            batches: 0,
            directories: Hashes::default(),
            made: Hashes::default(),
            under_way: vec![0; UNDER_WAY_BITS / 64],
            parent: Vec::new(),
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
        self.flush(account)?;
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
                self.flush(account)?;
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
                Some(Item::EndOfSegment) => self.flush(account)?,
                None => return Ok(()),
            }
        }
    }

    /// Waits until all workers have finished their jobs.
    pub fn drain(&mut self, account: &mut Account) -> Result<(), Stopped> {
        self.flush(account)?;
        self.workers.wait_for(self.given, account)?;
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
        self.settle(XxHash3_64::oneshot(&target), account)?;
        let path = plain(&member.path);
        self.enter(split(&path).0, account)?;
        let key = XxHash3_64::oneshot(&path);
        self.settle(key, account)?;
        self.replace_directory(key, account)?;
        let worker = match self.remember(key) {
            Name::New | Name::Unknown => &mut self.strict,
            Name::Used => &mut self.replacing,
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
        self.flush(account)?;
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
            (content, missing_bytes) = stream.collect(account, |account| self.flush(account))?;
            if missing_bytes == 0 {
                return self.object(member, loan, content, stored_bytes, account);
            }
        }
        let made = self.place(&member.path, account)?;
        self.flush(account)?;
        let pieces = self.workers.pieces();
        let large = Large { member, made, loan, pieces: Arc::clone(&pieces) };
        self.give(RestoreJob::Large(large), account)?;
        for slice in content {
            pieces.push(ContentPiece::Data(slice), account)?;
        }
        if missing_bytes > 0 {
            pieces.push(ContentPiece::Missing { bytes: missing_bytes }, account)?;
        }
        while let Some(piece) = stream.next_piece(account)? {
            pieces.push(piece, account)?;
        }
        pieces.close();
        Ok(())
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
        let made = self.place(&member.path, account)?;
        self.batch.push(Object { member, content, made, loan });
        self.batch_bytes += stored_bytes;
        if self.batch.len() >= self.batch_objects_max || self.batch_bytes >= BATCH_BYTES_MAX {
            self.flush(account)?;
        }
        Ok(())
    }

    /// Waits for everything that an object must wait for that is no directory.
    fn place(&mut self, path: &[u8], account: &mut Account) -> Result<Made, Stopped> {
        let path = plain(path);
        self.enter(split(&path).0, account)?;
        let key = XxHash3_64::oneshot(&path);
        self.replace_directory(key, account)?;
        let name = self.remember(key);
        if name != Name::New {
            self.settle(key, account)?;
        }
        let bit = key as usize % UNDER_WAY_BITS;
        self.under_way[bit / 64] |= 1 << (bit % 64);
        Ok(if name == Name::Used { Made::Again } else { Made::First })
    }

    /// Makes sure that no other object is in progress where `parent` is, or leads to.
    fn enter(&mut self, parent: &[u8], account: &mut Account) -> Result<(), Stopped> {
        if self.parent == parent {
            return Ok(());
        }
        let key = XxHash3_64::oneshot(parent);
        if !parent.is_empty() && !self.directories.contains(&key) {
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
        if self.directories.remove(&key) {
            self.drain(account)?;
            self.parent.clear();
            self.parent.push(b'/');
        }
        Ok(())
    }

    /// Whether this run created an object of this name before.
    fn remember(&mut self, key: u64) -> Name {
        if self.overwrite == Overwrite::Replace {
            return Name::Unknown;
        }
        if self.made.contains(&key) {
            return Name::Used;
        }
        if self.made.len() >= MADE_MAX {
            return Name::Unknown;
        }
        self.made.insert(key);
        Name::New
    }

    /// Records an existing directory.
    fn add_directory(&mut self, key: u64) {
        if self.directories.len() < DIRECTORIES_MAX {
            self.directories.insert(key);
        }
    }

    fn give(&mut self, job: RestoreJob, account: &mut Account) -> Result<(), Stopped> {
        self.given += 1;
        self.workers.push(job, account)
    }

    /// Passes on the objects that were held back.
    fn flush(&mut self, account: &mut Account) -> Result<(), Stopped> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let objects = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH_OBJECTS_MAX));
        self.batch_bytes = 0;
        let ticket = self.batches;
        self.batches += 1;
        self.give(RestoreJob::Batch(Batch { objects, ticket }), account)
    }
}

/// What is known of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// This run created nothing under it.
    New,
    /// This run may have created something under it.
    Unknown,
    /// This run created something under it.
    Used,
}

/// Objects of a full batch: a worker has all of its files open at once.
fn batch_objects_max(workers: usize, open_files_max: usize) -> usize {
    (open_files_max / OPEN_FILES_SHARE / workers.max(1)).clamp(1, BATCH_OBJECTS_MAX)
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
    fn batches_are_smaller_where_few_files_may_be_open() {
        assert_eq!(batch_objects_max(2, 1024), 32);
        assert_eq!(batch_objects_max(64, 1024), 4);
        assert_eq!(batch_objects_max(1024, 256), 1);
        assert_eq!(batch_objects_max(8, usize::MAX), 32);
    }

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
