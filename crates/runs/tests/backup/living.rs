//! A test file system that changes between any two of its answers, and remembers every state that
//! every name ever had.
//!
//! Nothing here depends on time: a seed decides which change follows which request. The inode
//! numbers that programs see are reused as soon as no program has the file open, as in ext4. The
//! numbers that the kernel uses are not reused: it asks by the number alone, and would get another
//! file than it means.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, Request,
};
use sim::mount::attributes_of;
use tempfile::TempDir;
use testkit::samples::Random;

/// The kind of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Thing {
    File(Arc<Vec<u8>>),
    SymbolicLink(Vec<u8>),
    Fifo,
    Device,
    Folder,
}

/// The changes, in the order of [`Counts::changes`].
pub const CHANGES: [&str; 8] =
    ["reuse", "grow", "shrink", "rewrite", "rename", "link", "swap", "lease"];

/// How often each change was made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub requests: u64,
    pub changes: [u64; CHANGES.len()],
    /// New files that got the inode number of one that is gone.
    pub numbers_reused: u64,
}

struct Node {
    thing: Thing,
    /// The inode number that programs see.
    inode: u64,
    changed: u64,
    modified: u64,
    names: u32,
    handles: u32,
    /// This many attempts to open it fail.
    leased: u32,
}

/// Everything there is, and was.
pub struct World {
    random: Random,
    /// Requests between two changes, about.
    period: u64,
    /// Whether anything changes.
    alive: bool,
    now: u64,
    /// The number of the next object to the kernel.
    next: u64,
    nodes: BTreeMap<u64, Node>,
    /// Inode numbers that no object has; the last one is taken first.
    free: Vec<u64>,
    names: BTreeMap<String, u64>,
    states: HashMap<String, Vec<Thing>>,
    /// The change when a name is first opened.
    at_open: Option<(String, AtOpen)>,
    /// Listing fails after this many names.
    pub fail_listing_behind: Option<usize>,
    pub counts: Counts,
}

type AtOpen = Box<dyn FnOnce(&mut World) + Send>;

impl World {
    pub fn new(seed: u64, period: u64) -> World {
        World {
            random: Random::numbered(seed),
            period,
            alive: true,
            now: 1,
            next: 2,
            nodes: BTreeMap::new(),
            free: (2..100_000).rev().collect(),
            names: BTreeMap::new(),
            states: HashMap::new(),
            at_open: None,
            fail_listing_behind: None,
            counts: Counts::default(),
        }
    }

    /// A world whose only change is `work`, when `name` is opened.
    pub fn steady(name: &str, work: impl FnOnce(&mut World) + Send + 'static) -> World {
        let mut world = World::new(1, 1);
        world.alive = false;
        world.add_file(name, 100);
        world.at_open = Some((name.to_owned(), Box::new(work)));
        world
    }

    pub fn inode(&self, name: &str) -> u64 {
        self.nodes[&self.names[name]].inode
    }

    /// Some bytes that no other state has.
    fn bytes(&mut self, most: u64) -> Arc<Vec<u8>> {
        let length = self.random.below(most);
        let mut noise = self.random.branch(self.now << 20);
        Arc::new((0..length).map(|_| noise.below(256) as u8).collect())
    }

    pub fn add_file(&mut self, name: &str, most_bytes: u64) {
        let thing = Thing::File(self.bytes(most_bytes));
        self.put(name, thing);
    }

    /// Makes a new object under a name that is free.
    fn put(&mut self, name: &str, thing: Thing) {
        let inode = self.free.pop().expect("there are enough numbers");
        let (now, number) = (self.now, self.next);
        self.next += 1;
        let node =
            Node { thing, inode, changed: now, modified: now, names: 1, handles: 0, leased: 0 };
        self.nodes.insert(number, node);
        self.names.insert(name.to_owned(), number);
        self.remember(number);
    }

    pub fn link(&mut self, from: &str, to: &str) {
        let number = self.names[from];
        self.unlink(to);
        self.names.insert(to.to_owned(), number);
        self.touch(number, |node| node.names += 1);
    }

    pub fn unlink(&mut self, name: &str) {
        let Some(number) = self.names.remove(name) else { return };
        let now = self.now;
        let node = self.nodes.get_mut(&number).expect("a name has an object");
        node.names -= 1;
        node.changed = now;
        self.let_go(number);
    }

    /// Frees the inode number of an unused object; the next object gets it.
    fn let_go(&mut self, number: u64) {
        let node = &self.nodes[&number];
        if node.names == 0 && node.handles == 0 {
            self.free.push(node.inode);
            self.nodes.remove(&number);
        }
    }

    /// Changes an object and its time of change.
    fn touch(&mut self, number: u64, change: impl FnOnce(&mut Node)) {
        let now = self.now;
        let node = self.nodes.get_mut(&number).expect("the object is there");
        node.changed = now;
        change(node);
        self.remember(number);
    }

    /// Records the current state of all names of an object.
    fn remember(&mut self, number: u64) {
        let thing = &self.nodes[&number].thing;
        for (name, _) in self.names.iter().filter(|(_, it)| **it == number) {
            let states = self.states.entry(name.clone()).or_default();
            if states.last() != Some(thing) {
                states.push(thing.clone());
            }
        }
    }

    /// Whether the name ever was this.
    pub fn was(&self, name: &str, thing: &Thing) -> bool {
        self.states.get(name).is_some_and(|states| states.contains(thing))
    }

    /// All names that ever were this, for a message.
    pub fn names_that_were(&self, thing: &Thing) -> Vec<&String> {
        let were = self.states.iter().filter(|(_, states)| states.contains(thing));
        were.map(|(name, _)| name).collect()
    }

    /// Called before every answer.
    fn step(&mut self) {
        self.counts.requests += 1;
        if self.alive && self.random.below(self.period) == 0 {
            self.change();
        }
    }

    fn any_name(&mut self) -> String {
        let at = self.random.below(self.names.len() as u64) as usize;
        self.names.keys().nth(at).expect("there are so many").clone()
    }

    /// One change of one object. Its names stay, since a program that listed them will look them
    /// up.
    pub fn change(&mut self) {
        self.now += 1;
        let which = self.random.below(CHANGES.len() as u64) as usize;
        self.counts.changes[which] += 1;
        let name = self.any_name();
        let number = self.names[&name];
        let now = self.now;
        match which {
            0 => self.replace(&name, number),
            1..=3 => {
                let more = self.bytes(20_000);
                let keep = self.random.below(1 << 16);
                self.touch(number, |node| {
                    let Thing::File(content) = &mut node.thing else { return };
                    node.modified = now;
                    let bytes = Arc::make_mut(content);
                    match which {
                        1 => bytes.extend_from_slice(&more),
                        2 => bytes.truncate(keep as usize % (bytes.len() + 1)),
                        _ => bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1)),
                    }
                });
            }
            4 => {
                let to = self.any_name();
                if to != name {
                    self.link(&name, &to);
                    self.unlink(&name);
                    self.add_file(&name, 3000);
                }
            }
            5 => {
                let to = self.any_name();
                if to != name && self.nodes[&number].thing != Thing::Folder {
                    self.link(&name, &to);
                }
            }
            6 => {
                self.unlink(&name);
                let thing = match self.random.below(5) {
                    0 => Thing::Fifo,
                    1 => Thing::Device,
                    2 => Thing::Folder,
                    3 => Thing::File(self.bytes(5000)),
                    _ => Thing::SymbolicLink(format!("to-{now}").into_bytes()),
                };
                self.put(&name, thing);
            }
            _ => {
                let attempts = 1 + self.random.below(3) as u32;
                self.nodes.get_mut(&number).expect("it has a name").leased = attempts;
            }
        }
    }

    /// Removes a file with its other names, and makes new ones under all of them.
    fn replace(&mut self, name: &str, number: u64) {
        let others = self.names.iter().filter(|(_, it)| **it == number);
        let others: Vec<String> = others.map(|(other, _)| other.clone()).collect();
        let before = self.nodes[&number].inode;
        others.iter().for_each(|other| self.unlink(other));
        self.add_file(name, 3000);
        self.counts.numbers_reused += u64::from(self.inode(name) == before);
        for other in others.iter().filter(|other| *other != name) {
            self.link(name, other);
        }
    }

    /// The answer to fstat(2); in the answer to a lookup the number is the kernel's.
    fn attributes(&self, number: u64) -> Option<FileAttr> {
        let node = self.nodes.get(&number);
        let (size, kind) = match node.map(|node| &node.thing) {
            None if number == 1 => (0, FileType::Directory),
            None => return None,
            Some(Thing::File(content)) => (content.len() as u64, FileType::RegularFile),
            Some(Thing::SymbolicLink(to)) => (to.len() as u64, FileType::Symlink),
            Some(Thing::Fifo) => (0, FileType::NamedPipe),
            Some(Thing::Device) => (0, FileType::CharDevice),
            Some(Thing::Folder) => (0, FileType::Directory),
        };
        let time = |seconds: u64| UNIX_EPOCH + Duration::from_secs(1_000_000_000 + seconds);
        let (modified, changed): (SystemTime, SystemTime) =
            node.map_or((time(0), time(0)), |node| (time(node.modified), time(node.changed)));
        let inode = INodeNo(node.map_or(number, |node| node.inode));
        Some(FileAttr {
            ctime: changed,
            nlink: node.map_or(2, |node| node.names),
            // /dev/null: opening it does no harm.
            rdev: 0x103,
            ..attributes_of(inode, kind, size, modified)
        })
    }
}

/// The world as a file system.
struct Living(Arc<Mutex<World>>);

impl Living {
    /// The world after the change that comes before this answer.
    fn world(&self) -> MutexGuard<'_, World> {
        let mut world = self.0.lock().unwrap();
        world.step();
        world
    }
}

/// The kernel caches nothing: every question comes here.
const NO_TIME: Duration = Duration::ZERO;

impl Filesystem for Living {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let world = self.world();
        let number = name.to_str().and_then(|name| world.names.get(name));
        let number = number.filter(|_| parent == INodeNo::ROOT);
        match number.and_then(|number| Some((number, world.attributes(*number)?))) {
            Some((number, attributes)) => {
                let attributes = FileAttr { ino: INodeNo(*number), ..attributes };
                reply.entry(&NO_TIME, &attributes, Generation(0));
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.world().attributes(number.into()) {
            Some(attributes) => reply.attr(&NO_TIME, &attributes),
            None => reply.error(Errno::ESTALE),
        }
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        match self.world().nodes.get(&u64::from(number)).map(|node| &node.thing) {
            Some(Thing::SymbolicLink(to)) => reply.data(to),
            _ => reply.error(Errno::ESTALE),
        }
    }

    fn open(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let mut world = self.world();
        let is_awaited = |name: &String| world.names.get(name) == Some(&u64::from(number));
        if world.at_open.as_ref().is_some_and(|(name, _)| is_awaited(name))
            && let Some((_, work)) = world.at_open.take()
        {
            work(&mut world);
        }
        match world.nodes.get_mut(&u64::from(number)) {
            Some(node) if node.leased > 0 => {
                node.leased -= 1;
                reply.error(Errno::EAGAIN);
            }
            Some(node) => {
                node.handles += 1;
                reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
            }
            None => reply.error(Errno::ESTALE),
        }
    }

    fn release(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let mut world = self.world();
        if let Some(node) = world.nodes.get_mut(&u64::from(number)) {
            node.handles -= 1;
            world.let_go(number.into());
        }
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.world().nodes.get(&u64::from(number)).map(|node| &node.thing) {
            Some(Thing::File(content)) => {
                let from = (offset as usize).min(content.len());
                reply.data(&content[from..content.len().min(from + size as usize)]);
            }
            _ => reply.error(Errno::ESTALE),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let world = self.0.lock().unwrap();
        let last = world.fail_listing_behind.unwrap_or(usize::MAX);
        if offset as usize >= last {
            return reply.error(Errno::EIO);
        }
        let names = world.names.iter().enumerate().take(last).skip(offset as usize);
        for (at, (name, number)) in names.take_while(|_| number == INodeNo::ROOT) {
            let kind = world.attributes(*number).expect("it has a name").kind;
            if reply.add(INodeNo(*number), at as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

/// The mounted world, until it is dropped.
pub struct Mounted {
    folder: TempDir,
    world: Arc<Mutex<World>>,
    session: Option<BackgroundSession>,
}

/// Mounts a world; its requests are answered one after the other.
pub fn mount(world: World) -> Mounted {
    let world = Arc::new(Mutex::new(world));
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.n_threads = Some(1);
    let session = fuser::spawn_mount(Living(Arc::clone(&world)), folder.path(), &config)
        .expect("this test needs FUSE: /dev/fuse and root");
    Mounted { folder, world, session: Some(session) }
}

impl Mounted {
    pub fn path(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// The current state; nothing changes any more.
    pub fn stop(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().unwrap();
        world.alive = false;
        world
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = self.session.take().map(BackgroundSession::umount_and_join);
    }
}
