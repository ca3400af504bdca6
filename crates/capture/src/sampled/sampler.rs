//! Looks at processes time and again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use super::members::Members;
use super::movement::Movement;
use super::{Position, Sampled, SampledFile};
use crate::live::files::Looked;
use crate::operation::{FileKind, Known};
use crate::profile::Class;
use crate::profile::class::by_name;

/// Between two looks, at least, and how often what a look takes.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOK_SHARE: u32 = 20;
/// More files are counted, and no more.
const FILES_MAX: usize = 4096;
/// Descriptors of all processes that one look is at.
const DESCRIPTORS_MAX: usize = 1 << 14;
/// What a ring's descriptor leads to.
const RING: &str = "anon_inode:[io_uring]";

/// By which two openings are one file.
type Identity = (String, u64, u64);
/// A process and its descriptor.
type Place = (u32, u32);

/// An open file at the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    file: usize,
    position: Option<u64>,
}

/// What is known of one file so far.
#[derive(Debug)]
struct Seen {
    sampled: SampledFile,
    movement: Movement,
    /// Its size when it was met.
    first_bytes: Option<u64>,
    processes: BTreeSet<u32>,
}

/// Looks at processes and all that they start.
#[derive(Debug)]
pub struct Sampler {
    roots: Vec<u32>,
    members: Members,
    held: BTreeMap<Place, Held>,
    files: Vec<Seen>,
    by_identity: HashMap<Identity, usize>,
    left_out: HashSet<Identity>,
    has_rings: bool,
    begun: Instant,
    looked: Instant,
    next: Instant,
    looks: u64,
}

impl Sampler {
    /// Looks at them for the first time: what they have done so far counts for nothing.
    pub fn begin(roots: &[u32]) -> Sampler {
        let now = Instant::now();
        let mut sampler = Sampler {
            roots: roots.to_vec(),
            members: Members::default(),
            held: BTreeMap::new(),
            files: Vec::new(),
            by_identity: HashMap::new(),
            left_out: HashSet::new(),
            has_rings: false,
            begun: now,
            looked: now,
            next: now,
            looks: 0,
        };
        sampler.look();
        sampler
    }

    /// Looks if it is time to; how long to wait before the next call.
    pub fn step(&mut self) -> Duration {
        if Instant::now() >= self.next {
            self.look();
        }
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks for the last time.
    pub fn finish(mut self) -> Sampled {
        self.look();
        self.ended()
    }

    /// Looks, has this process wait for a child of its own, which `wait` does, and takes what the
    /// kernel tells then: nothing that the child did is missing.
    pub fn finish_with<T>(mut self, child: u32, wait: impl FnOnce() -> T) -> (Sampled, T) {
        self.look();
        let answer = self.members.wait_for(child, wait);
        self.members.look(&self.roots);
        (self.ended(), answer)
    }

    fn ended(self) -> Sampled {
        let mut files: Vec<SampledFile> = self.files.into_iter().map(Seen::ended).collect();
        files.sort_by(|a, b| {
            let key = |it: &SampledFile| (it.forward_bytes(), it.grown_bytes);
            key(b).cmp(&key(a)).then_with(|| a.path.cmp(&b.path))
        });
        Sampled {
            seconds: self.looked.duration_since(self.begun).as_secs_f64(),
            looks: self.looks,
            processes: self.members.met,
            totals: self.members.totals(),
            files,
            files_left_out: self.left_out.len() as u64,
            has_rings: self.has_rings,
            refused: self.members.refused.len() as u64,
        }
    }

    pub(super) fn look(&mut self) {
        let begun = Instant::now();
        let mut found = Vec::new();
        for process in self.members.look(&self.roots) {
            let Ok(entries) = std::fs::read_dir(format!("/proc/{process}/fd")) else { continue };
            let numbers = entries.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok());
            for descriptor in numbers.take(DESCRIPTORS_MAX.saturating_sub(found.len())) {
                if let Ok(looked) = Looked::at(process, descriptor) {
                    found.push(((process, descriptor), looked));
                }
            }
        }
        self.take(found);
        self.looked = Instant::now();
        let took = self.looked.duration_since(begun);
        self.next = self.looked + LOOK_EVERY.max(took * LOOK_SHARE);
    }

    /// What was found at a look.
    pub(super) fn take(&mut self, found: Vec<(Place, Looked)>) {
        let before = std::mem::take(&mut self.held);
        let open: HashSet<usize> = before.values().map(|held| held.file).collect();
        let is_first = self.looks == 0;
        self.looks += 1;
        let mut met: HashSet<usize> = HashSet::new();
        for (place, looked) in found {
            let Some(file) = self.file(place.0, &looked) else { continue };
            let has_positions = self.files[file].sampled.position.is_some();
            let position = looked.position.ok().filter(|_| has_positions);
            let from = match before.get(&place).filter(|held| held.file == file) {
                Some(held) => held.position,
                // Another descriptor of what is open already may be a copy of it.
                None if is_first || open.contains(&file) || met.contains(&file) => None,
                None => Some(0),
            };
            met.insert(file);
            // What is appended begins at the end, wherever that is.
            let from = from.filter(|from| *from > 0 || looked.file.append == Ok(false));
            if let (Some(from), Some(to)) = (from, position) {
                self.files[file].movement.add(from, to);
            }
            self.held.insert(place, Held { file, position });
        }
        for file in &mut self.files {
            if let Some(position) = &mut file.sampled.position {
                file.movement.end_look(position);
            }
        }
    }

    /// The number of a file here; `None` beyond the limit, and of what is no file.
    fn file(&mut self, process: u32, looked: &Looked) -> Option<usize> {
        let path = looked.file.path.clone().ok()?;
        self.has_rings |= path == RING;
        let identity = (path, looked.device, looked.inode);
        let at = match self.by_identity.get(&identity) {
            Some(at) => *at,
            None if self.files.len() >= FILES_MAX => {
                // As many again are told apart to be counted.
                if self.left_out.len() < FILES_MAX {
                    self.left_out.insert(identity);
                }
                return None;
            }
            None => {
                self.files.push(Seen::new(&identity.0, looked));
                self.by_identity.insert(identity, self.files.len() - 1);
                self.files.len() - 1
            }
        };
        self.files[at].again(process, looked);
        Some(at)
    }
}

impl Seen {
    fn new(path: &str, looked: &Looked) -> Seen {
        let file = &looked.file;
        let named = match file.kind {
            FileKind::Regular | FileKind::Other if file.deleted => Some(Class::Temporary),
            FileKind::Regular | FileKind::Other => by_name(path),
            _ => Some(Class::Device),
        };
        let has_positions = matches!(file.kind, FileKind::Regular | FileKind::BlockDevice);
        let sampled = SampledFile {
            path: path.to_owned(),
            class: named,
            kind: file.kind,
            reads: false,
            writes: false,
            direct: file.direct.ok(),
            synchronous: file.synchronous.ok(),
            append: file.append.ok(),
            size_bytes: None,
            grown_bytes: None,
            position: has_positions.then(Position::default),
            processes: 0,
        };
        Seen {
            sampled,
            movement: Movement::default(),
            first_bytes: file.size_bytes.ok(),
            processes: BTreeSet::new(),
        }
    }

    fn again(&mut self, process: u32, looked: &Looked) {
        let file = &looked.file;
        let sampled = &mut self.sampled;
        if let Ok(access) = looked.access {
            sampled.reads |= access.reads;
            sampled.writes |= access.writes;
        }
        // Opened with and without: neither.
        let both = |so_far: Option<bool>, now: Known<bool>| so_far.filter(|it| Ok(*it) == now);
        sampled.direct = both(sampled.direct, file.direct);
        sampled.synchronous = both(sampled.synchronous, file.synchronous);
        sampled.append = both(sampled.append, file.append);
        sampled.size_bytes = file.size_bytes.ok();
        self.processes.insert(process);
    }

    fn ended(self) -> SampledFile {
        let Seen { mut sampled, first_bytes, processes, .. } = self;
        let sizes = first_bytes.zip(sampled.size_bytes);
        sampled.grown_bytes = sizes.map(|(first, last)| last.saturating_sub(first));
        sampled.processes = processes.len() as u64;
        sampled
    }
}
