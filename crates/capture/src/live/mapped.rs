//! Pages of mapped files that had to be fetched: what can be seen of a file that is read and
//! written in memory.
//!
//! The kernel records a page that a thread touched and that was neither mapped nor mapped with its
//! neighbours as these were in memory (`filemap_fault`, mm/filemap.c): mostly one that was read
//! from the disk. Which file it is of is told by its number in its file system, and looked up
//! among what the process has mapped. What is run is mapped as well: pages of programs and their
//! libraries are left out, as whatever else belongs to a file that is mapped to be run.

use std::collections::HashMap;

use crate::trace::Event;

use super::calls::EventKind;
use super::files::{Looked, maps};
use super::follower::Follower;
use super::threads::Threads;
use crate::operation::{Asked, Engine, FileOperation, Known, Recording, Unknown};

/// Mapped files of all processes that are looked up.
const MAPPINGS_MAX: usize = 1 << 14;

/// A process and a file: of a device, with a number there.
type Key = (u32, u64, u64);

/// What a mapped file is.
#[derive(Debug)]
enum Mapped {
    /// Somebody runs it.
    Program,
    File(Looked),
    /// It was not mapped any more, or by another number, as in a container.
    Gone,
}

/// What the processes have mapped, as far as pages of it were fetched.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    all: HashMap<Key, Mapped>,
    /// The last page of each thread: a touch that waits is begun again.
    last: HashMap<u32, (u64, u64, u64)>,
    /// Pages of files that were not found.
    gone: u64,
}

impl Mappings {
    /// Looks up what is fetched for the first time, before anything is made of it.
    pub(super) fn look(&mut self, event: &Event, threads: &mut Threads) {
        if EventKind::of(event.kind) != EventKind::Fault {
            return;
        }
        let Some(key) = key(event, threads) else { return };
        if self.all.len() < MAPPINGS_MAX && !self.all.contains_key(&key) {
            let found = maps(key.0).map_or(Mapped::Gone, |text| mapped(&text, key.1, key.2));
            self.all.insert(key, found);
        }
    }

    /// A thread has ended.
    pub(super) fn ended(&mut self, thread: u32) {
        self.last.remove(&thread);
    }

    /// What could not be seen, in a sentence.
    pub(super) fn unseen(&self) -> Option<String> {
        (self.gone > 0).then(|| {
            format!(
                "{} pages of mapped files were fetched whose mapping was gone before anybody \
                 could look",
                self.gone
            )
        })
    }
}

fn key(event: &Event, threads: &mut Threads) -> Option<Key> {
    Some((threads.process(event.thread)?, event.value(0)?, event.value(1)?))
}

/// The file of that number among the lines of `maps`: `from-to rwxp offset major:minor inode path`.
fn mapped(text: &str, device: u64, inode: u64) -> Mapped {
    // As the kernel has it within (`MINORBITS`, include/linux/kdev_t.h).
    let device = format!("{:02x}:{:02x}", device >> 20, device & 0xF_FFFF);
    let inode = inode.to_string();
    let mut path = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (_, rights, _) = (words.next(), words.next(), words.next());
        if words.next() != Some(&device) || words.next() != Some(&inode) {
            continue;
        }
        if rights.is_some_and(|rights| rights.contains('x')) {
            return Mapped::Program;
        }
        path = path.or_else(|| line.find('/').map(|at| &line[at..]));
    }
    path.and_then(|path| Looked::mapped_from(path).ok()).map_or(Mapped::Gone, Mapped::File)
}

impl Follower {
    /// A page of a mapped file is fetched.
    pub(super) fn fetched(&mut self, event: &Event, to: &mut dyn Recording) {
        let Some(key) = key(event, &mut self.threads) else { return };
        let Some(page) = event.value(2) else { return };
        let this = (key.1, key.2, page);
        if self.mappings.last.insert(event.thread, this) == Some(this) {
            return;
        }
        let looked = match self.mappings.all.get(&key) {
            Some(Mapped::Program) => return,
            Some(Mapped::File(looked)) => looked,
            Some(Mapped::Gone) | None => {
                self.mappings.gone += 1;
                return;
            }
        };
        let file = self.files.number(looked, to);
        let not_seen: Known<u64> = Err(Unknown::Mapped);
        let page_bytes = rustix::param::page_size() as u64;
        to.operation(&FileOperation {
            start_ns: event.time_ns,
            duration_ns: not_seen,
            process: key.0,
            thread: event.thread,
            file,
            engine: Engine::Mmap,
            asked: Asked::Read,
            offset_bytes: Ok(page.saturating_mul(page_bytes)),
            asked_bytes: not_seen,
            done_bytes: not_seen,
            synchronous: false,
            in_flight: Err(Unknown::Mapped),
            error: 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_is_told_from_what_is_read() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let text = format!(
            "7f00-7f10 r--p 00000000 fe:00 12   /usr/lib/a library.so\n\
             7f10-7f20 r-xp 00001000 fe:00 12   /usr/lib/a library.so\n\
             7f20-7f30 rw-s 00000000 103:00 12  {}\n\
             7f30-7f40 rw-p 00000000 00:00 0\n",
            path.display()
        );
        assert!(matches!(mapped(&text, 0xfe << 20, 12), Mapped::Program));
        let Mapped::File(looked) = mapped(&text, 0x103 << 20, 12) else { panic!("not found") };
        assert_eq!(looked.file.path.as_deref(), Ok(path.to_str().unwrap()));
        assert!(matches!(mapped(&text, 0xfe << 20, 13), Mapped::Gone));
        assert!(matches!(mapped("nonsense", 0, 0), Mapped::Gone));
    }
}
