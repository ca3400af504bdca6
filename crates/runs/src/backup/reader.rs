//! The read stage: many workers that turn entries of the scan into bytes of the archive.
//!
//! A worker takes a batch of entries and handles it in two parts. First, in parallel with all
//! others, it opens and describes the objects and encodes their headers, so that it knows how many
//! bytes the batch takes. Then it waits for its turn, reserves these bytes in the ring, and passes
//! the turn on. Every place is fixed now, and the contents are read straight into it, again in
//! parallel. Order costs a few microseconds a batch, and no byte is copied twice.
//!
//! Hard links are found while the worker has its turn, since "seen before" means earlier in the
//! archive. A file too large to be reserved at once is streamed while the turn is held.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use archive::encode::{Listing, encode_directory, encode_member};
use archive::index::{AgainReason, AgainRecord, ContentBatch, WarningRecord};
use archive::member::{Member, MemberKind};
use base::failures::{lock, with_causes};
use flow::account::{Account, ThreadState};
use flow::backend::Choice;
use flow::cancel::{Cancel, Stopped};
use flow::in_flight::InFlight;
use flow::monitor::{Counter, Harm, Level, Monitor, Notice};
use flow::queue::Queue;
use flow::ring::{Producer, Reservation};
use flow::turnstile::{Turn, Turnstile};
use tree::{Capture, CaptureError, Capturer, Entry, LeaseWait, Skip, SparseMap};

use super::draft::{Content, Draft, fill_content};
use super::error::BackupError;
use super::groups::{Finding, Findings, Groups, HashGroup, in_archive};
use super::hasher::{AGAIN_MAX, Hasher};
use super::link_table::LinkTable;
use super::pace::{Pace, SleepMeter, Spent};
use super::placed::{self, PLACED_BYTES_MIN, Placed, PlacedJob};
use super::room::Room;
use super::work::{Batch, Work};
use crate::sweep::{Held, Sweep};
use tapeset::Segments;

/// What all read workers share.
pub(super) struct Shared<'a> {
    pub(super) batches: &'a Queue<Batch>,
    /// In front of them: files are fetched in the order of the disk.
    pub(super) sweep: Option<Sweep<'a, Work>>,
    /// Files whose place is fixed and whose content is to be read, and blocks to be copied.
    pub(super) placed: Queue<PlacedJob>,
    pub(super) turnstile: Turnstile,
    pub(super) producer: &'a Producer,
    pub(super) groups: &'a Groups,
    /// Hashes blocks in the thread that fills them.
    pub(super) hasher: &'a Hasher<'a>,
    pub(super) links: Mutex<LinkTable>,
    /// Hashes of the paths that could not be read.
    pub(super) unread: Mutex<HashSet<u64>>,
    pub(super) monitor: &'a dyn Monitor,
    pub(super) pace: Pace,
    pub(super) engine: &'a Choice,
    /// The file that the target will replace; left out like the target itself.
    pub(super) replaced: Option<tree::Identity>,
    /// Most bytes of one reservation; a file with more content is streamed.
    pub(super) group_bytes_max: usize,
    /// On tape: where segments end.
    pub(super) segments: Option<&'a Segments>,
    pub(super) room: &'a Room,
    pub(super) cancel: &'a Cancel,
}

impl Shared<'_> {
    /// Where the walk puts its batches.
    pub(super) fn first_queue(&self) -> &Queue<Batch> {
        self.sweep.as_ref().map_or(self.batches, |sweep| &sweep.incoming)
    }

    /// Whether files are fetched in the order of the disk.
    pub(super) fn is_sweeping(&self) -> bool {
        self.sweep.as_ref().is_some_and(Sweep::is_sweeping)
    }
}

/// One thread of the read stage.
pub(super) struct Reader<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) account: &'a mut Account,
    /// The io_uring of the last streamed file, for the next one.
    pub(super) in_flight: Option<InFlight>,
    capturer: Capturer,
    headers: Vec<u8>,
    meter: SleepMeter,
    content_batch: ContentBatch,
    small_hashes: Vec<[u8; 32]>,
    /// Warnings about objects of the batch that have no place in the archive.
    passed_over: Vec<Finding>,
    /// The list of the last batch, and finished members, whose memory is reused. Allocating it anew
    /// for each small file cost a quarter of the time outside the kernel.
    drafts: VecDeque<Draft>,
    spare: Vec<Member>,
}

/// An entry of a batch on which another program holds a lease.
struct Leased<'a> {
    number: usize,
    /// Number of entries before it in the batch that needed no wait.
    place: usize,
    entry: &'a Entry,
}

/// Most members that are kept for their memory.
const SPARE_MAX: usize = 64;

impl<'a> Reader<'a> {
    pub(super) fn new(
        shared: &'a Shared<'a>,
        account: &'a mut Account,
        capturer: Capturer,
    ) -> Reader<'a> {
        Reader {
            shared,
            account,
            in_flight: None,
            capturer,
            headers: Vec::new(),
            meter: SleepMeter::new(),
            content_batch: ContentBatch::new(),
            small_hashes: Vec::new(),
            passed_over: vec![],
            drafts: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Works until the scan has ended and all batches are done. Calls `start_next` to start another
    /// reader, as soon as this one has a batch.
    pub(super) fn run(
        mut self,
        start_next: &dyn Fn() -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        let shared = self.shared;
        let mut start_next = Some(start_next);
        loop {
            let permit = shared.pace.enter(self.account)?;
            loop {
                let Some(batch) = shared.batches.pop(self.account)? else { return Ok(()) };
                if let Some(start_next) = start_next.take() {
                    start_next()?;
                }
                let spent = self.batch(batch)?;
                shared.pace.learn(spent);
                if !shared.pace.may_stay() {
                    break;
                }
            }
            drop(permit);
        }
    }

    fn batch(&mut self, batch: Batch) -> Result<Spent, BackupError> {
        let batch = Batch { works: self.shared.room.of_works(batch.works), ..batch };
        self.meter.next_batch(&self.shared.pace);
        self.meter.start();
        self.headers.clear();
        let mut rest = std::mem::take(&mut self.drafts);
        let mut leased = Vec::new();
        for (number, work) in batch.works.iter().enumerate() {
            match work {
                Work::Entry(entry) => match self.capturer.capture(entry, self.spare.pop()) {
                    Err(CaptureError::Leased) => {
                        leased.push(Leased { number, place: rest.len(), entry });
                    }
                    captured => {
                        let draft = self.draft(entry, captured, None);
                        let is_fetched = batch.is_fetched(number);
                        rest.extend(draft.map(|draft| Draft { is_fetched, ..draft }));
                    }
                },
                Work::Folder { entry, listing } => {
                    let captured = self.capturer.capture(entry, self.spare.pop());
                    rest.extend(self.draft(entry, captured, listing.as_ref()));
                }
                Work::Relink(relinked) => rest.extend(self.relinked(relinked)),
                Work::Left(path) => self.leave(path),
                Work::Problem(problem) => {
                    self.warn(Harm::Unlisted, &problem.path, problem_text(problem))
                }
            }
        }
        let mut spent = self.meter.spent();
        self.wait_for_leases(leased, &mut rest)?;
        // If files could not be opened for lack of descriptors, the run ends instead of warning.
        base::interruptible::check_shortage()?;
        let Batch { ticket, works, held } = batch;
        drop(works);
        let shared = self.shared;
        let turn = shared.turnstile.enter(ticket, self.account, ThreadState::Blocked)?;
        self.resolve_links(&mut rest);
        self.drop_dangling(&mut rest);
        self.announce_passed_over();
        spent += self.in_turn(turn, &mut rest, held)?;
        self.drafts = rest;
        Ok(spent)
    }

    /// Gives every draft its place, and reads it. The turn is passed on once no place is left to
    /// be given.
    fn in_turn(
        &mut self,
        turn: Turn<'_>,
        rest: &mut VecDeque<Draft>,
        held: Option<Arc<Held>>,
    ) -> Result<Spent, BackupError> {
        let (mut turn, mut spent) = (Some(turn), Spent::default());
        while let Some(first) = rest.front_mut() {
            self.close_segment()?;
            if first.total_bytes() > self.shared.group_bytes_max as u64 {
                let still = self.shared.sweep.as_ref().map(Sweep::stream);
                self.stream(first)?;
                drop(still);
                rest.pop_front();
                continue;
            }
            if first.content_bytes >= PLACED_BYTES_MIN {
                rest.pop_front().map_or(Ok(()), |draft| self.place(draft, held.clone()))?;
                continue;
            }
            let length = self.group_length(rest);
            let (reservation, findings) = self.reserve_group(&rest.make_contiguous()[..length])?;
            if length == rest.len()
                && let Some(turn) = turn.take()
            {
                turn.pass();
            }
            self.meter.start();
            self.read_group(&mut rest.make_contiguous()[..length], reservation, &findings)?;
            self.keep(rest.drain(..length));
            spent += self.meter.spent();
        }
        if let Some(turn) = turn {
            turn.pass();
        }
        Ok(spent)
    }

    /// Keeps the memory of finished members.
    fn keep(&mut self, done: impl Iterator<Item = Draft>) {
        let room = SPARE_MAX - self.spare.len();
        // All are removed, also those that are not kept.
        for (number, draft) in done.enumerate() {
            if number < room {
                self.spare.push(draft.captured.member);
            }
        }
    }

    /// Ends the segment where it is long enough. Called with the turn held, between members.
    fn close_segment(&mut self) -> Result<(), Stopped> {
        let shared = self.shared;
        if let Some(segments) = shared.segments {
            let bytes = segments.close_if_full(shared.producer, self.account)?;
            shared.monitor.count(Counter::ArchiveBytes, bytes);
        }
        Ok(())
    }

    /// Fixes the place of a file of medium size and passes it on to be read. Called with the turn
    /// held.
    fn place(&mut self, draft: Draft, held: Option<Arc<Held>>) -> Result<(), BackupError> {
        let shared = self.shared;
        let (mut reservation, findings) = self.reserve_group(std::slice::from_ref(&draft))?;
        let header_offset_bytes = in_archive(reservation.start_bytes());
        let mut header = reservation.split_front(draft.header.len());
        header.filler().put(self.header(&draft));
        shared.monitor.count(Counter::ArchiveBytes, draft.header.len() as u64);
        header.commit();
        let placed = Placed { draft, header_offset_bytes, reservation, findings, _held: held };
        if let Err(PlacedJob::File(placed)) =
            shared.placed.try_push(PlacedJob::File(Box::new(placed)))
        {
            placed::read(*placed, shared, self.account);
        }
        Ok(())
    }

    /// Opens the entries on which another program holds a lease, once it releases them; all leases
    /// were broken before. No turn is held meanwhile.
    fn wait_for_leases(
        &mut self,
        mut leased: Vec<Leased<'_>>,
        drafts: &mut VecDeque<Draft>,
    ) -> Result<(), Stopped> {
        if leased.is_empty() {
            return Ok(());
        }
        let wait = LeaseWait::begin();
        let mut late = Vec::new();
        while !leased.is_empty() {
            self.shared.cancel.check()?;
            let goes_on = wait.step();
            leased.retain(|it| match self.capturer.capture(it.entry, None) {
                Err(CaptureError::Leased) if goes_on => true,
                captured => {
                    let draft = self.draft(it.entry, captured, None);
                    late.extend(draft.map(|draft| (it.number, it.place, draft)));
                    false
                }
            });
        }
        // From last to first, so that earlier positions stay valid.
        late.sort_by_key(|(number, ..)| std::cmp::Reverse(*number));
        for (_, place, draft) in late {
            drafts.insert(place, draft);
        }
        Ok(())
    }

    /// The archive entry of an object that was examined, with its header encoded.
    fn draft(
        &mut self,
        entry: &Entry,
        captured: Result<Capture, CaptureError>,
        listing: Option<&Vec<u8>>,
    ) -> Option<Draft> {
        let captured = match captured {
            Ok(Capture::Object(captured)) => captured,
            Ok(Capture::Skipped(Skip::Socket)) => {
                self.note(&entry.path(), "socket, not archived".into());
                return None;
            }
            Ok(Capture::Skipped(Skip::Output)) => {
                self.note(&entry.path(), "is the archive itself, not archived".into());
                return None;
            }
            Err(error) => {
                self.warn(Harm::Unread, &entry.path(), with_causes(&error));
                return None;
            }
        };
        if self.shared.replaced == Some(captured.identity) {
            let text = "is the archive that this one replaces, not archived";
            self.note(&captured.member.path, text.into());
            return None;
        }
        let is_folder = captured.member.kind == MemberKind::Directory;
        let listing = listing.filter(|_| is_folder).cloned();
        let mut draft = Draft { listing, ..Draft::of(captured) };
        self.look_closer(&mut draft);
        self.encode(&mut draft)?;
        Some(draft)
    }

    /// What only some objects need: holes, and warnings.
    fn look_closer(&mut self, draft: &mut Draft) {
        let captured = &mut draft.captured;
        if let Some(listed) = captured.turned_from {
            let listed = format!("{listed:?}").to_lowercase();
            draft.warnings.push(match captured.member.kind {
                MemberKind::Directory => format!(
                    "was a {listed} when it was listed and is a directory now, archived without \
                     its content"
                ),
                _ => format!("was a {listed} when it was listed, archived as it is now"),
            });
        }
        if let Some(error) = &captured.attributes_problem {
            draft.warnings.push(format!("extended attributes are incomplete: {error}"));
        }
        if captured.may_be_sparse()
            && let Some(file) = &captured.file
        {
            match tree::sparse_map(file, captured.member.size_bytes) {
                Ok(map) => {
                    let size_bytes = captured.member.size_bytes;
                    let aligned =
                        |map: &SparseMap| archive::sparse::align_extents(&map.extents, size_bytes);
                    captured.member.sparse = map.as_ref().map(aligned);
                    if let Some(text) = map.as_ref().and_then(filled_text) {
                        tell(self.shared.monitor, Level::Note, &captured.member.path, text);
                    }
                }
                Err(error) => draft.warnings.push(format!("cannot find its holes: {error}")),
            }
        }
    }

    /// Encodes the header; `None` if the object cannot be archived.
    pub(super) fn encode(&mut self, draft: &mut Draft) -> Option<()> {
        let start = self.headers.len();
        let member = &draft.captured.member;
        let encoded = match &draft.listing {
            Some(listing) => encode_directory(member, listing, &mut self.headers),
            None => encode_member(member, &mut self.headers).map(|()| Listing::Written),
        };
        match encoded {
            Ok(Listing::Written) => {}
            Ok(Listing::TooLong) => {
                let text = "has more names than an archive can list for GNU tar: what is deleted \
                            in it is known to takeup alone";
                tell(self.shared.monitor, Level::Note, &member.path, text.into());
            }
            Err(error) => {
                self.headers.truncate(start);
                let text = format!("cannot be archived: {error}");
                self.warn(Harm::Unread, &draft.captured.member.path, text);
                return None;
            }
        }
        draft.header = start..self.headers.len();
        draft.content_bytes = member.content_bytes();
        Some(())
    }

    /// Turns later names of a file into links to the first one. Called with the turn held.
    fn resolve_links(&mut self, drafts: &mut VecDeque<Draft>) {
        let several = |draft: &Draft| draft.captured.generation.is_some();
        if !drafts.iter().any(several) {
            return;
        }
        let shared = self.shared;
        let mut table = lock(&shared.links);
        drafts.retain_mut(|draft| {
            let target = if several(draft) { table.earlier_name(draft) } else { None };
            let Some(target) = target else { return true };
            let member = &mut draft.captured.member;
            member.kind = MemberKind::HardLink { target };
            member.size_bytes = 0;
            member.sparse = None;
            draft.captured.file = None;
            self.encode(draft).is_some()
        });
    }

    /// How many of the next drafts are small and are reserved together. A group ends where a
    /// segment may end, so that segments end between the same members however these were batched.
    fn group_length(&self, drafts: &VecDeque<Draft>) -> usize {
        let shared = self.shared;
        let room = shared.segments.map_or(u64::MAX, |it| it.room_bytes(shared.producer));
        let mut bytes = 0;
        let fits = drafts.iter().take_while(|draft| {
            let begins_in_segment = bytes == 0 || bytes < room;
            bytes += draft.total_bytes();
            begins_in_segment
                && draft.content_bytes < PLACED_BYTES_MIN
                && bytes <= shared.group_bytes_max as u64
        });
        fits.count()
    }

    fn announce_passed_over(&mut self) {
        if !self.passed_over.is_empty() {
            let findings = std::mem::take(&mut self.passed_over);
            let end_bytes = in_archive(self.shared.producer.position_bytes());
            self.shared.groups.put(end_bytes, HashGroup::of(Arc::new(Mutex::new(findings))));
        }
    }

    fn reserve_group(&mut self, group: &[Draft]) -> Result<(Reservation, Findings), Stopped> {
        let bytes: u64 = group.iter().map(Draft::total_bytes).sum();
        let reservation = self.shared.producer.reserve(bytes as usize, self.account)?;
        let findings = Findings::default();
        let end_bytes = in_archive(reservation.start_bytes()) + bytes;
        self.shared.groups.put(end_bytes, HashGroup::of(Arc::clone(&findings)));
        Ok((reservation, findings))
    }

    fn read_group(
        &mut self,
        group: &mut [Draft],
        mut reservation: Reservation,
        findings: &Findings,
    ) -> Result<(), BackupError> {
        let mut at = in_archive(reservation.start_bytes());
        let bytes = reservation.remaining_bytes() as u64;
        let mut filler = reservation.filler();
        let mut small = Vec::with_capacity(group.len());
        let mut hashes = vec![None; group.len()];
        for (number, draft) in group.iter_mut().enumerate() {
            filler.put(&self.headers[draft.header.clone()]);
            match fill_content(draft, &mut filler) {
                Content::None => {}
                Content::Small(content) => small.push((number, content)),
                Content::Hashed(hash) => hashes[number] = Some(hash),
            }
        }
        // The small contents are hashed together, while they are in the processor's cache.
        let contents: Vec<&[u8]> = small.iter().map(|(_, content)| *content).collect();
        self.content_batch.hash_whole(&contents, &mut self.small_hashes);
        for ((number, _), hash) in small.iter().zip(&self.small_hashes) {
            hashes[*number] = Some(*hash);
        }
        let mut found = Vec::with_capacity(group.len());
        for (draft, hash) in group.iter_mut().zip(hashes) {
            draft.find(at, at + draft.header.len() as u64, hash, &mut found);
            at += draft.total_bytes();
        }
        let source_bytes = group.iter().map(|draft| draft.content_bytes).sum();
        self.report_group(group, source_bytes, bytes);
        *lock(findings) = found;
        // This thread has the filled block in its cache: no other is woken to hash it.
        reservation.commit_unheard();
        self.shared.hasher.pass_ready(self.account)
    }

    /// Counts finished members in the monitor.
    pub(super) fn report_group(&mut self, group: &[Draft], source_bytes: u64, bytes: u64) {
        let monitor = self.shared.monitor;
        if let Some(last) = group.last() {
            monitor.object(&last.captured.member.path, last.content_bytes);
        }
        monitor.count(Counter::Members, group.len() as u64);
        monitor.count(Counter::SourceBytes, source_bytes);
        monitor.count(Counter::ArchiveBytes, bytes);
        self.account.stage().add_bytes(source_bytes);
        group.iter().for_each(|draft| tell_warnings(monitor, draft));
    }

    pub(super) fn header(&self, draft: &Draft) -> &[u8] {
        &self.headers[draft.header.clone()]
    }

    /// Warns of an object that is not archived although it should be.
    fn warn(&mut self, harm: Harm, path: &[u8], text: String) {
        let warning = WarningRecord { path: path.to_vec(), text: text.clone() };
        self.passed_over.push(Finding::Warning(warning));
        if harm == Harm::Unread {
            let mut unread = lock(&self.shared.unread);
            if unread.len() < AGAIN_MAX {
                unread.insert(AgainRecord::path_hash(path));
            }
            drop(unread);
            self.passed_over.push(Finding::Again(unread_at(path)));
        }
        tell(self.shared.monitor, Level::Warning(harm), path, text);
    }

    /// Notes an object for which there is no room.
    fn leave(&mut self, path: &[u8]) {
        self.shared.room.leave_one();
        self.passed_over.push(Finding::Again(unread_at(path)));
    }

    fn note(&self, path: &[u8], text: String) {
        tell(self.shared.monitor, Level::Note, path, text);
    }
}

/// What says that an object is not in the archive.
fn unread_at(path: &[u8]) -> AgainRecord {
    AgainRecord { path: AgainRecord::path_hash(path), inode: 0, reason: AgainReason::Unread }
}

/// Reports what happened to an object while it was archived.
pub(super) fn tell_warnings(monitor: &dyn Monitor, draft: &Draft) {
    for text in &draft.warnings {
        let level = Level::Warning(Harm::Flawed);
        tell(monitor, level, &draft.captured.member.path, text.clone());
    }
}

fn tell(monitor: &dyn Monitor, level: Level, path: &[u8], text: String) {
    monitor.notice(Notice { level, object: path.to_vec(), text });
}

/// The note on a file with more holes than a map holds.
fn filled_text(map: &SparseMap) -> Option<String> {
    let (holes, bytes) = (map.filled_holes, map.filled_bytes);
    let runs = tree::EXTENTS_MAX;
    (holes > 0).then(|| {
        format!(
            "has more than {runs} runs of data: its {holes} smallest holes, {bytes} bytes, are \
             archived as zeros"
        )
    })
}

fn problem_text(problem: &tree::ScanProblem) -> String {
    match &problem.source {
        Some(source) => format!("{}: {source}", problem.what),
        None => problem.what.to_string(),
    }
}
