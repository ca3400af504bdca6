//! How long a backup takes to read many files from a disk with heads.
//!
//! Takeup does not read such files in the order of their names: a window of them is opened in the
//! order of their inodes and fetched in the order of their addresses, again and again from the
//! lowest to the highest (crate `runs`, `sweep`). This module plays the same steps over the
//! model of the disk: the look at the access time, the reads of inodes, the window that gets room
//! when the first files of it are complete, and up to 32 reads in flight.
//!
//! Assumed, because a plan knows only bytes and number: all files have the same size, lie at equal
//! distances over a part in the middle of the disk, and their places have nothing to do
//! with their names. Inodes are read in runs, as ext4 does.
//!
//! A window of many thousands of files is played by a part of them: fewer files, in proportion, in
//! four zones of the part of the disk. Of many windows the first few are played, and the others
//! take as long as the last of these.
//!
//! Not here: folders, and the processor.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::disk::{DiskModel, DiskParameters, Operation, Ticket, time_of_reads};
use crate::whole;

/// Files on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesOnDisk {
    pub files: u64,
    /// Content of each.
    pub file_bytes: u64,
    /// The part in the middle of the disk over which they lie; at least their content.
    pub spread_bytes: u64,
}

/// What a backup fetches ahead of the order of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Content in the window.
    pub window_bytes: u64,
    /// Of any size.
    pub window_files: u64,
    /// Larger files are not fetched, but read when it is their turn.
    pub fetched_bytes_max: u64,
    /// Larger files are read alone, one after the other.
    pub several_bytes_max: u64,
}

/// A block of the file system, and a page of the cache.
const BLOCK_BYTES: u64 = 4096;
/// Reads in flight while files are fetched in the order of the disk.
const FETCHES: usize = 32;
/// Readers of small files in the order of names, readers of files of medium size, and the smallest
/// of these.
const READERS: usize = 32;
const PLACED_READERS: usize = 20;
const PLACED_BYTES_MIN: u64 = 128 << 10;
/// Files of this size are read past the page cache in reads of a block. Of smaller ones the kernel
/// reads about so much in one go.
const DIRECT_BYTES_MIN: u64 = 1 << 20;
const CACHED_READ_BYTES: u64 = 448 << 10;
/// Reads at once of a large file.
const STREAM_READS: usize = 8;
const STREAM_READ_BYTES: u64 = 1 << 20;
/// Files that are opened together, and waiting reads with which the heads set out.
const CHUNK_FILES: usize = 2048;
const SET_OUT_READS: u64 = 8192;
/// The look: files that are read until the disk is known to be slow, and how many a tree needs for
/// a look.
const LOOKED: u64 = 4;
const LOOK_AMONG: u64 = 16;
/// Inodes that one read brings: ext4 reads 32 blocks of 4 KiB ahead (`inode_readahead_blks`), each
/// with 16 inodes of 256 bytes.
const RUN_INODES: f64 = 512.0;
const RUN_BYTES: u64 = 128 << 10;
/// Files of a window that are played, and windows that are. So many files are all played.
const PLAYED_FILES: u64 = 8192;
const PLAYED_WINDOWS: u64 = 4;
const PLAYED_MAX: u64 = 4 * PLAYED_FILES;
/// Most files for which places are drawn.
const DRAWN_FILES: u64 = 256 << 10;
const ZONES: u64 = 4;
/// Bytes of a file that show how it streams, and files and bytes that show the order of names.
const SHOWN_BYTES: u64 = 32 << 20;
const SHOWN_FILES: u64 = 4000;
const SHOWN_ALL_BYTES: u64 = 2 << 30;

impl FilesOnDisk {
    /// Time in ns in which a backup reads them from an idle disk.
    pub fn read_ns(&self, disk: &DiskParameters, limits: &FetchLimits) -> u64 {
        let placed = Placed::new(self, disk);
        if self.is_fetched(limits) {
            placed.look_ns() + placed.fetch_ns(limits)
        } else {
            placed.by_name_ns(limits)
        }
    }

    /// The same in the order of names.
    pub fn by_name_ns(&self, disk: &DiskParameters, limits: &FetchLimits) -> u64 {
        Placed::new(self, disk).by_name_ns(limits)
    }

    /// Time in ns in which their bytes pass as one stream.
    pub fn stream_ns(&self, disk: &DiskParameters) -> u64 {
        let placed = Placed::new(self, disk);
        let bytes = self.files as f64 * self.file_bytes as f64;
        whole(bytes * placed.stream_ns_per_byte())
    }

    /// Whether they are fetched in the order of the disk.
    pub fn is_fetched(&self, limits: &FetchLimits) -> bool {
        self.files >= LOOK_AMONG && self.file_bytes <= limits.fetched_bytes_max
    }

    /// Files in the window at once, at most all.
    pub fn window_files(&self, limits: &FetchLimits) -> u64 {
        let pages = self.file_bytes + BLOCK_BYTES / 2;
        (limits.window_bytes / pages).min(limits.window_files).min(self.files).max(1)
    }
}

/// Files on a disk that holds them.
struct Placed {
    files: FilesOnDisk,
    disk: DiskParameters,
    /// Where they begin.
    from_bytes: u64,
}

impl Placed {
    fn new(files: &FilesOnDisk, disk: &DiskParameters) -> Placed {
        let FilesOnDisk { files, file_bytes, spread_bytes } = *files;
        // A file begins and ends with a block of the file system, half of which is empty.
        let (files, file_bytes) = (files.max(1), file_bytes.max(1) + BLOCK_BYTES / 2);
        let spread_bytes = spread_bytes.max(files.saturating_mul(file_bytes));
        let disk = disk.clone().holding(spread_bytes);
        let free_bytes = disk.capacity_bytes().unwrap_or(spread_bytes) - spread_bytes;
        let from_bytes = free_bytes / 2 / BLOCK_BYTES * BLOCK_BYTES;
        Placed { files: FilesOnDisk { files, file_bytes, spread_bytes }, disk, from_bytes }
    }

    /// A few files, one read after the other.
    fn look_ns(&self) -> u64 {
        let places = self.draw(1.0, self.files.files.min(DRAWN_FILES), LOOKED);
        let reads: Vec<_> = places.iter().map(|at| (*at, self.files.file_bytes)).collect();
        time_of_reads(&self.disk, &reads, 1)
    }

    fn fetch_ns(&self, limits: &FetchLimits) -> u64 {
        let files = self.files.files - LOOKED;
        if files == 0 {
            return 0;
        }
        let window = self.files.window_files(limits).min(files);
        let part = (PLAYED_FILES as f64 / window as f64).min(1.0);
        let scaled = |number: u64| whole((number as f64 * part).round()).max(1);
        let (window, all) = (scaled(window), scaled(files));
        let drawn = all.min(DRAWN_FILES);
        let play = |number: u64| {
            let places = self.draw(part, drawn, number.min(drawn));
            let set_out_reads = index(scaled(SET_OUT_READS));
            let fetching = Fetching::new(&self.disk, self.files.file_bytes, places, window);
            Fetching { set_out_reads, ..fetching }.play() as f64
        };
        // Whole windows, since the heads go back after each.
        let windows = PLAYED_FILES.div_ceil(window).max(PLAYED_WINDOWS / 2);
        let most = if all <= PLAYED_MAX { all } else { 2 * windows * window };
        let mut total_ns = play(most);
        if all > most {
            let file_ns = (total_ns - play(most / 2)) / (most - most / 2) as f64;
            total_ns += (all - most) as f64 * file_ns;
        }
        whole(total_ns / part)
    }

    /// In the order of names: many files at once, or a large file alone.
    fn by_name_ns(&self, limits: &FetchLimits) -> u64 {
        let FilesOnDisk { files, file_bytes, .. } = self.files;
        let shown_bytes = file_bytes.min(SHOWN_BYTES);
        let number = files.min(SHOWN_FILES).min((SHOWN_ALL_BYTES / shown_bytes).max(64));
        let places = self.draw(1.0, files.min(DRAWN_FILES), number);
        let shown_ns = if file_bytes > limits.several_bytes_max {
            let parts = |at: u64| {
                let steps = (0..shown_bytes).step_by(index(STREAM_READ_BYTES));
                steps.map(move |it| (at + it, STREAM_READ_BYTES.min(shown_bytes - it)))
            };
            let reads: Vec<_> = places.iter().flat_map(|at| parts(*at)).collect();
            time_of_reads(&self.disk, &reads, STREAM_READS)
        } else {
            let is_direct = file_bytes >= DIRECT_BYTES_MIN;
            let read_bytes = if is_direct { STREAM_READ_BYTES } else { CACHED_READ_BYTES };
            let is_placed = file_bytes >= PLACED_BYTES_MIN;
            let readers = if is_placed { PLACED_READERS } else { READERS };
            let requests = Requests::new(&self.disk);
            Readers { requests, file_bytes, read_bytes, at_work: Vec::new() }.play(&places, readers)
        };
        let rest_bytes = (file_bytes - shown_bytes) as f64;
        let rest_ns = if rest_bytes > 0.0 { rest_bytes * self.stream_ns_per_byte() } else { 0.0 };
        let inode_ns = self.disk.positioning.mean_ns() as f64 / RUN_INODES;
        whole((shown_ns as f64 / number as f64 + rest_ns + inode_ns) * files as f64)
    }

    /// Time of a byte of a stream, as a mean over the part of the disk.
    fn stream_ns_per_byte(&self) -> f64 {
        let per_byte = |zone: u64| {
            let from = self.from_bytes
                + (self.files.spread_bytes / ZONES * zone) / BLOCK_BYTES * BLOCK_BYTES;
            let time = |bytes: u64| {
                let steps = (0..bytes).step_by(index(STREAM_READ_BYTES));
                let reads: Vec<_> = steps.map(|step| (from + step, STREAM_READ_BYTES)).collect();
                time_of_reads(&self.disk, &reads, STREAM_READS) as f64
            };
            (time(SHOWN_BYTES) - time(SHOWN_BYTES / 2)) / (SHOWN_BYTES / 2) as f64
        };
        (0..ZONES).map(per_byte).sum::<f64>() / ZONES as f64
    }

    /// Addresses of the first files in the order of names, of so many that are drawn: these stand
    /// for a part of the tree, in zones of its part of the disk. Each is anywhere in its share.
    fn draw(&self, part: f64, drawn: u64, number: u64) -> Vec<u64> {
        let mut random = Random(1);
        let mut slots: Vec<u64> = (0..drawn).collect();
        for place in 0..number {
            let other = place + random.below(drawn - place);
            slots.swap(index(place), index(other));
        }
        slots.truncate(index(number));
        let zones = if part < 1.0 { ZONES } else { 1 };
        let spread_bytes = self.files.spread_bytes as f64;
        let slot_bytes = spread_bytes * part / drawn as f64;
        let room_bytes = whole(slot_bytes).saturating_sub(self.files.file_bytes);
        let in_zone = drawn.div_ceil(zones);
        let mut address = |slot: u64| {
            let zone = (slot / in_zone) as f64 * spread_bytes / zones as f64;
            let share = whole(zone + (slot % in_zone) as f64 * slot_bytes);
            self.from_bytes + share + random.below(room_bytes)
        };
        slots.into_iter().map(&mut address).collect()
    }
}

/// A number of files that are drawn or played, which is small.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A disk in virtual time, and its requests that are not complete.
struct Requests {
    disk: DiskModel,
    now_ns: u64,
    ends: BinaryHeap<Reverse<(u64, Ticket)>>,
}

impl Requests {
    fn new(disk: &DiskParameters) -> Requests {
        Requests { disk: DiskModel::new(disk.clone()), now_ns: 0, ends: BinaryHeap::new() }
    }

    fn read(&mut self, offset: u64, bytes: u64) -> Ticket {
        self.disk.arrive(self.now_ns, Operation::Read { offset, bytes })
    }

    /// Lets time pass to the first end of a request.
    fn next_end(&mut self) -> Option<Ticket> {
        loop {
            let known_ns = self.ends.peek().map(|Reverse((end_ns, _))| *end_ns);
            let next_ns = self.disk.next_ns();
            if known_ns.is_some() && next_ns.is_none_or(|next_ns| known_ns <= Some(next_ns)) {
                let Reverse((end_ns, ticket)) = self.ends.pop()?;
                self.now_ns = self.now_ns.max(end_ns);
                return Some(ticket);
            }
            let found = self.disk.advance(next_ns?);
            self.ends.extend(found.iter().map(|it| Reverse((it.done_ns, it.ticket))));
        }
    }
}

/// Readers that take file after file in the order of names, with one request at a time each.
struct Readers {
    requests: Requests,
    file_bytes: u64,
    read_bytes: u64,
    /// The file of each reader: its request, and the bytes that follow it.
    at_work: Vec<(Ticket, u64, u64)>,
}

impl Readers {
    /// Time in ns until all are read.
    fn play(mut self, places: &[u64], readers: usize) -> u64 {
        let mut next = places.iter();
        for at in next.by_ref().take(readers) {
            self.begin(*at);
        }
        while let Some(ticket) = self.requests.next_end() {
            let Some(place) = self.at_work.iter().position(|it| it.0 == ticket) else { continue };
            let (_, at, end) = self.at_work.swap_remove(place);
            if at < end {
                self.go_on(at, end);
            } else if let Some(at) = next.next() {
                self.begin(*at);
            }
        }
        self.requests.now_ns
    }

    /// The first read ends with a block of the ring, which on average is half of one.
    fn begin(&mut self, at: u64) {
        self.read(at, self.read_bytes / 2, at + self.file_bytes);
    }

    fn go_on(&mut self, at: u64, end: u64) {
        self.read(at, self.read_bytes, end);
    }

    fn read(&mut self, at: u64, bytes_max: u64, end: u64) {
        let bytes = bytes_max.min(end - at);
        let ticket = self.requests.read(at, bytes);
        self.at_work.push((ticket, at + bytes, end));
    }
}

/// The window over the disk, in virtual time.
struct Fetching {
    requests: Requests,
    file_bytes: u64,
    /// In the order of names.
    places: Vec<u64>,
    window: usize,
    /// Where the inodes lie.
    inodes_at: u64,
    /// Files that were opened, and those of them that have room in the window.
    opened: usize,
    admitted: usize,
    /// The read of inodes that is under way, and reads of inodes so far.
    opening: Option<Ticket>,
    inode_reads: u64,
    is_fetched: Vec<bool>,
    /// The first file, in the order of names, that is not fetched.
    first: usize,
    waiting: BTreeSet<(u64, usize)>,
    heads_at: (u64, usize),
    are_heads_out: bool,
    set_out_reads: usize,
    in_flight: Vec<(Ticket, usize)>,
}

impl Fetching {
    fn new(disk: &DiskParameters, file_bytes: u64, places: Vec<u64>, window: u64) -> Fetching {
        Fetching {
            requests: Requests::new(disk),
            file_bytes,
            inodes_at: places.iter().copied().min().unwrap_or(0),
            is_fetched: vec![false; places.len()],
            places,
            window: index(window),
            opened: 0,
            admitted: 0,
            opening: None,
            inode_reads: 0,
            first: 0,
            waiting: BTreeSet::new(),
            heads_at: (0, 0),
            are_heads_out: false,
            set_out_reads: index(SET_OUT_READS),
            in_flight: Vec::new(),
        }
    }

    /// Time in ns until all are fetched.
    fn play(mut self) -> u64 {
        loop {
            self.open();
            self.send();
            let Some(ticket) = self.requests.next_end() else { return self.requests.now_ns };
            if self.opening == Some(ticket) {
                self.opening = None;
                continue;
            }
            let Some(place) = self.in_flight.iter().position(|it| it.0 == ticket) else { continue };
            let (_, file) = self.in_flight.swap_remove(place);
            self.is_fetched[file] = true;
            while self.is_fetched.get(self.first) == Some(&true) {
                self.first += 1;
            }
        }
    }

    /// Opens the next files and gives them room in the window, as far as that goes now.
    fn open(&mut self) {
        while self.opening.is_none() {
            let end = self.opened.min(self.first + self.window);
            for file in self.admitted..end {
                self.waiting.insert((self.places[file], file));
            }
            self.admitted = self.admitted.max(end);
            self.are_heads_out |= self.waiting.len() >= self.set_out_reads;
            if self.admitted < self.opened || self.opened == self.places.len() {
                self.are_heads_out = true;
                return;
            }
            self.opened = (self.opened + CHUNK_FILES).min(self.places.len());
            self.read_inodes();
        }
    }

    /// The inodes of what is opened, in one request for all runs: they lie side by side.
    fn read_inodes(&mut self) {
        let due = whole((self.opened as f64 / RUN_INODES).ceil());
        let runs = due - self.inode_reads;
        if runs > 0 {
            let at = self.inodes_at + self.inode_reads * RUN_BYTES;
            self.opening = Some(self.requests.read(at, runs * RUN_BYTES));
            self.inode_reads = due;
        }
    }

    fn send(&mut self) {
        while self.are_heads_out && self.in_flight.len() < FETCHES {
            let ahead = self.waiting.range(self.heads_at..).next().or_else(|| self.waiting.first());
            let Some(next) = ahead.copied() else { return };
            self.waiting.remove(&next);
            self.heads_at = next;
            self.in_flight.push((self.requests.read(next.0, self.file_bytes), next.1));
            self.are_heads_out = !self.waiting.is_empty() || self.admitted == self.places.len();
        }
    }
}

/// Knuth's linear generator, without its low bits.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.0 >> 16) % limit.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of the files in zones takes the same part of the time of all.
    #[test]
    fn a_part_of_a_window_stands_for_all_of_it() {
        let disk = DiskParameters::sata7200();
        let files = FilesOnDisk { files: 20_000, file_bytes: 30_000, spread_bytes: 1 << 40 };
        let placed = Placed::new(&files, &disk);
        for window in [4096, 20_000] {
            let limits = FetchLimits {
                window_bytes: u64::MAX,
                window_files: window,
                fetched_bytes_max: 8 << 20,
                several_bytes_max: 8 << 20,
            };
            let places = placed.draw(1.0, files.files, files.files);
            let all = Fetching::new(&placed.disk, files.file_bytes, places, window).play();
            let share = placed.fetch_ns(&limits) as f64 / all as f64;
            assert!((0.93..1.07).contains(&share), "{window}: {share}");
        }
    }
}
