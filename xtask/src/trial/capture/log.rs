//! fio's own log of its requests, and the properties that follow from it.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::Context as _;

/// A request: whether it is a read, where, and how long.
#[derive(Clone, Copy, Debug)]
struct Request {
    is_read: bool,
    offset: u64,
    bytes: u64,
}

/// The work of one or several jobs on a file.
#[derive(Clone, Debug, Default)]
pub struct Run {
    requests: Vec<Request>,
    /// Number of syncs before each request, and after the last.
    before: Vec<u64>,
    pub syncs: u64,
}

/// Parts of a file that are compared.
const PARTS: u64 = 10;
/// How many last requests are searched for the one that a request continues.
const LAST: usize = 16;

impl Run {
    /// Parses a log, version 2 or 3: `[TIME] FILE ACTION [OFFSET LENGTH]`.
    pub fn read(path: &Path) -> anyhow::Result<Run> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let mut run = Run::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let Some(at) = words.iter().position(|word| is_action(word)) else { continue };
            let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(0);
            match words[at] {
                action @ ("read" | "write") => {
                    let (offset, bytes) = (number(at + 1), number(at + 2));
                    run.before.push(run.syncs);
                    run.requests.push(Request { is_read: action == "read", offset, bytes });
                }
                _ => run.syncs += 1,
            }
        }
        Ok(run)
    }

    /// The last requests, and their syncs.
    pub fn last(&self, count: usize) -> Run {
        let from = self.requests.len().saturating_sub(count);
        let skipped = self.before.get(from).copied().unwrap_or(0);
        Run {
            requests: self.requests[from..].to_vec(),
            before: self.before[from..].iter().map(|count| count - skipped).collect(),
            syncs: self.syncs - skipped,
        }
    }

    /// Several, one after the other.
    pub fn joined<'a>(runs: impl Iterator<Item = &'a Run>) -> Run {
        let mut all = Run::default();
        for run in runs {
            all.before.extend(run.before.iter().map(|count| count + all.syncs));
            all.requests.extend(&run.requests);
            all.syncs += run.syncs;
        }
        all
    }

    /// Reads and writes together.
    pub fn operations(&self) -> usize {
        self.requests.len()
    }

    /// How many reads fio logged.
    pub fn reads(&self) -> usize {
        self.requests.iter().filter(|it| it.is_read).count()
    }

    /// How many writes fio logged.
    pub fn writes(&self) -> usize {
        self.operations() - self.reads()
    }

    /// Share of reads among them, 0 to 1.
    pub fn read_share(&self) -> f64 {
        self.reads() as f64 / self.operations().max(1) as f64
    }

    /// How often each size was requested, by reads and by writes.
    pub fn sizes(&self) -> BTreeMap<(bool, u64), u64> {
        let mut sizes = BTreeMap::new();
        for request in &self.requests {
            *sizes.entry((request.is_read, request.bytes)).or_default() += 1;
        }
        sizes
    }

    /// The share of requests with another size, separately for each direction.
    pub fn sizes_apart(&self, other: &Run) -> f64 {
        let (own, others) = (self.sizes(), other.sizes());
        let share = |run: &Run, sizes: &BTreeMap<(bool, u64), u64>, key: &(bool, u64)| {
            let all = if key.0 { run.reads() } else { run.writes() };
            *sizes.get(key).unwrap_or(&0) as f64 / all.max(1) as f64
        };
        let apart = |is_read: bool| {
            let keys: HashSet<(bool, u64)> =
                own.keys().chain(others.keys()).filter(|key| key.0 == is_read).copied().collect();
            let one =
                |key: &(bool, u64)| (share(self, &own, key) - share(other, &others, key)).abs();
            keys.iter().map(one).sum::<f64>() / 2.0
        };
        let of_reads = self.read_share();
        apart(true) * of_reads + apart(false) * (1.0 - of_reads)
    }

    /// Share of requests whose first sector was read or written before.
    pub fn reuse(&self) -> f64 {
        let mut seen: HashSet<u64> = HashSet::new();
        let mut again = 0;
        for request in &self.requests {
            let first = request.offset / 512;
            again += usize::from(seen.contains(&first));
            seen.extend(first..(request.offset + request.bytes).div_ceil(512));
        }
        again as f64 / self.operations().max(1) as f64
    }

    /// Share of requests that start where one of the last of their kind ended.
    pub fn in_order(&self) -> f64 {
        let mut ends: [Vec<u64>; 2] = [Vec::new(), Vec::new()];
        let mut follow = 0;
        for request in &self.requests {
            let ends = &mut ends[usize::from(request.is_read)];
            if let Some(at) = ends.iter().position(|end| *end == request.offset) {
                follow += 1;
                ends.remove(at);
            } else if ends.len() >= LAST {
                ends.remove(0);
            }
            ends.push(request.offset + request.bytes);
        }
        follow as f64 / self.operations().max(1) as f64
    }

    fn parts(&self, file_bytes: u64) -> [f64; PARTS as usize] {
        let mut parts = [0.0; PARTS as usize];
        for request in &self.requests {
            let part = (request.offset * PARTS / file_bytes.max(1)).min(PARTS - 1);
            parts[usize::try_from(part).unwrap_or(0)] += 1.0 / self.operations() as f64;
        }
        parts
    }

    /// Share of requests that go to another tenth of the file.
    pub fn parts_apart(&self, other: &Run) -> f64 {
        let end = |run: &Run| run.requests.iter().map(|it| it.offset + it.bytes).max().unwrap_or(1);
        let file_bytes = end(self).max(end(other));
        let (own, others) = (self.parts(file_bytes), other.parts(file_bytes));
        own.iter().zip(others).map(|(own, other)| (own - other).abs()).sum::<f64>() / 2.0
    }
}

fn is_action(word: &str) -> bool {
    matches!(word, "read" | "write" | "sync" | "datasync" | "sync_file_range")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, text).unwrap();
        Run::read(&path).unwrap()
    }

    #[test]
    fn a_log_says_what_was_done() {
        let run = run("fio version 3 iolog\n1 /a add\n1 /a open\n2 /a write 0 4096\n\
                       3 /a write 4096 4096\n4 /a sync 4096 0\n5 /a read 0 512\n6 /a close\n");
        assert_eq!((run.reads(), run.writes(), run.syncs), (1, 2, 1));
        assert!(
            (run.reuse() - 1.0 / 3.0).abs() < 1e-9 && (run.in_order() - 1.0 / 3.0).abs() < 1e-9
        );
        let last = run.last(2);
        assert_eq!((last.operations(), last.syncs), (2, 1));
        assert_eq!(run.last(1).syncs, 0);
        assert!((run.sizes_apart(&run)).abs() < 1e-9);
        assert!((run.sizes_apart(&last)).abs() < 1e-9);
        assert_eq!(Run::joined([&run, &last].into_iter()).syncs, 2);
    }
}
