//! Which process a thread is of, and the threads of a process with all that it has started.

use std::collections::{BTreeSet, HashMap};
use std::fs;

/// More processes are not gone through.
const PROCESSES_MAX: usize = 4096;
/// More threads are forgotten and asked for again.
const THREADS_MAX: usize = 1 << 16;
/// Threads come while they are counted: so often is counted again.
const ROUNDS_MAX: usize = 8;

/// Which process each thread is of.
#[derive(Debug, Default)]
pub(super) struct Threads {
    processes: HashMap<u32, Option<u32>>,
}

impl Threads {
    /// The process of a thread; `None` if it ended before the lookup.
    pub(super) fn process(&mut self, thread: u32) -> Option<u32> {
        if self.processes.len() > THREADS_MAX {
            self.processes.clear();
        }
        *self.processes.entry(thread).or_insert_with(|| group(thread))
    }

    /// A thread was started by another.
    pub(super) fn started(&mut self, thread: u32, process: u32) {
        self.processes.insert(thread, Some(process));
    }

    /// It has ended; another one may get its number.
    pub(super) fn ended(&mut self, thread: u32) {
        self.processes.remove(&thread);
    }
}

/// The process of a thread (proc_pid_status(5)).
fn group(thread: u32) -> Option<u32> {
    let text = fs::read(format!("/proc/{thread}/status")).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

/// All threads of these processes and of all that they have started, and these processes; again
/// and again until there are no new ones.
pub fn family(roots: &[u32]) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let mut threads = BTreeSet::new();
    let mut processes = BTreeSet::new();
    for _ in 0..ROUNDS_MAX {
        let before = threads.len();
        let mut left: Vec<u32> = roots.to_vec();
        let mut seen = BTreeSet::new();
        while let Some(process) = left.pop() {
            if seen.len() >= PROCESSES_MAX || !seen.insert(process) {
                continue;
            }
            processes.insert(process);
            threads.extend(threads_of(process));
            left.extend(machine::processes::children(process));
        }
        if threads.len() == before {
            break;
        }
    }
    (threads, processes)
}

/// Every thread of a process, kernel-made ones of its rings included.
fn threads_of(process: u32) -> Vec<u32> {
    let Ok(all) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
