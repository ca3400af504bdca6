//! The cases: fio jobs made from random numbers.

use std::fmt;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use testkit::samples::Random;

/// The order of a job's requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Places {
    /// Front to back.
    InOrder,
    /// Each place once.
    Once,
    /// Any place.
    Any,
    /// A distribution of fio, by its name.
    Hot(&'static str),
}

/// The options of a job.
#[derive(Clone, Debug)]
pub struct Told {
    pub number: usize,
    pub engine: &'static str,
    pub is_direct: bool,
    pub depth: u64,
    /// In per cent.
    pub reads: u64,
    pub sizes: &'static str,
    pub places: Places,
    /// The call, and the number of writes before it.
    pub sync: Option<(&'static str, u64)>,
    pub file_bytes: u64,
    pub operations: u64,
}

/// Jobs that run side by side, and how they are captured.
#[derive(Clone, Debug)]
pub struct Case {
    pub jobs: Vec<Told>,
    /// The capture is attached to the running jobs.
    pub is_attached: bool,
    /// Threads of one process, not separate processes.
    has_threads: bool,
}

/// How long fio runs with an attached capture.
const SECONDS: u64 = 2;
/// Limit for the syncs of a job, since each waits for the disk.
const SYNCS_MAX: u64 = 60;

fn one<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.index(of.len())]
}

impl Told {
    fn of(random: &mut Random, number: usize) -> Told {
        let engine = one(random, &["psync", "libaio", "io_uring"]);
        let is_direct = match engine {
            "psync" => random.below(5) < 2,
            _ => true,
        };
        // fio rounds the depth of a ring to a power of two (3.33).
        let depth = match engine {
            "psync" => 1,
            "libaio" => one(random, &[1, 2, 3, 4, 6, 8, 12, 16, 32]),
            _ => one(random, &[1, 2, 4, 8, 16, 32]),
        };
        let reads = one(random, &[100, 100, 0, 0, 30, 50, 70]);
        let single = ["bs=4k", "bs=8k", "bs=16k", "bs=64k"];
        let split = ["bssplit=4k/60:16k/40", "bssplit=4k/50:8k/30:64k/20", "bssplit=8k/83:64k/17"];
        let sizes = if random.below(3) == 0 { one(random, &split) } else { one(random, &single) };
        let places = match random.below(10) {
            0 | 1 => Places::InOrder,
            2 | 3 => Places::Once,
            4 | 5 => Places::Any,
            6 | 7 => Places::Hot(one(random, &["zipf:0.8", "zipf:1.1", "zipf:1.3"])),
            8 => Places::Hot(one(random, &["pareto:0.2", "pareto:0.3"])),
            _ => Places::Hot(one(random, &["zoned:60/10:30/20:10/70", "zoned:10/50:90/50"])),
        };
        let call = one(random, &["fsync", "fdatasync"]);
        let every = one(random, &[1, 2, 3, 8, 32]);
        let sync = (reads < 100 && random.below(2) == 0).then_some((call, every));
        let wanted = 400 + random.below(1200);
        let operations = match sync {
            Some((_, every)) => wanted.min(SYNCS_MAX * every * 100 / (100 - reads)),
            None => wanted,
        };
        let file_bytes = one(random, &[8, 16, 32]) << 20;
        Told {
            number,
            engine,
            is_direct,
            depth,
            reads,
            sizes,
            places,
            sync,
            file_bytes,
            operations,
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        format!("job{}", self.number)
    }

    /// Whether some parts of its files are used more often than others.
    pub fn has_hot_parts(&self) -> bool {
        matches!(self.places, Places::Hot(name) if name.starts_with("zoned"))
    }

    fn text(&self, folder: &Path, is_attached: bool) -> String {
        let plain = match self.reads {
            100 => "read",
            0 => "write",
            _ => "rw",
        };
        let random = if self.places == Places::InOrder { "" } else { "rand" };
        let mut text = format!(
            "[{}]\nfilename={}\nioengine={}\ndirect={}\niodepth={}\nrw={random}{plain}\n\
             rwmixread={}\n{}\nfilesize={}\noverwrite=1\nwrite_iolog={}\n",
            self.name(),
            Case::path(folder, self.number).display(),
            self.engine,
            u8::from(self.is_direct),
            self.depth,
            self.reads,
            self.sizes,
            self.file_bytes,
            Case::log(folder, self.number).display(),
        );
        match self.places {
            Places::Any => text.push_str("norandommap=1\n"),
            Places::Hot(name) => {
                let _ = writeln!(text, "random_distribution={name}");
            }
            Places::InOrder | Places::Once => {}
        }
        if self.sizes.contains("bssplit") && self.places != Places::InOrder {
            text.push_str("norandommap=1\n");
        }
        if let Some((call, every)) = self.sync {
            let _ = writeln!(text, "{call}={every}");
        }
        if is_attached {
            let _ = write!(text, "time_based\nruntime={SECONDS}\n");
            if !self.is_direct {
                text.push_str("thinktime=1000\n");
            }
        } else {
            let _ = write!(text, "number_ios={}\nio_size=4g\n", self.operations);
        }
        text
    }
}

impl Case {
    /// Draws a job.
    pub fn of(random: &mut Random) -> Case {
        let jobs = one(random, &[1, 1, 2, 3]);
        let is_attached = random.below(2) == 0;
        let has_threads = random.below(2) == 0;
        let jobs: Vec<Told> = (0..jobs).map(|number| Told::of(random, number)).collect();
        // Which of several files of one process a libaio request is for is not visible.
        let is_seen = jobs.len() == 1 || jobs.iter().all(|job| job.engine != "libaio");
        Case { jobs, is_attached, has_threads: has_threads && is_seen }
    }

    fn path(folder: &Path, number: usize) -> PathBuf {
        folder.join(format!("file{number}.dat"))
    }

    /// The log of the job with this number.
    pub fn log(folder: &Path, number: usize) -> PathBuf {
        folder.join(format!("first{number}.log"))
    }

    /// The file of each job.
    pub fn paths(&self, folder: &Path) -> Vec<PathBuf> {
        self.jobs.iter().map(|job| Case::path(folder, job.number)).collect()
    }

    /// Makes the files before fio starts.
    pub fn make_files(&self, folder: &Path) -> anyhow::Result<()> {
        for job in &self.jobs {
            let path = Case::path(folder, job.number);
            let made = std::fs::File::create(&path).and_then(|mut file| {
                let piece = vec![0xA5; 1 << 20];
                (0..job.file_bytes >> 20).try_for_each(|_| file.write_all(&piece))?;
                file.sync_all()
            });
            made.with_context(|| format!("write {}", path.display()))?;
        }
        Ok(())
    }

    /// The job in fio's format.
    pub fn text(&self, folder: &Path) -> String {
        let mut text = String::from("[global]\nallow_file_create=0\n");
        if self.has_threads {
            text.push_str("thread\n");
        }
        for job in &self.jobs {
            text += &job.text(folder, self.is_attached);
        }
        text
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_attached { "attached" } else { "started" })?;
        for job in &self.jobs {
            let direct = if job.is_direct { "direct" } else { "buffered" };
            write!(
                f,
                "; {} {direct} depth {}, {} % reads, {}, {:?}",
                job.engine, job.depth, job.reads, job.sizes, job.places
            )?;
            if let Some((call, every)) = job.sync {
                write!(f, ", {call}={every}")?;
            }
            write!(f, ", {} MiB", job.file_bytes >> 20)?;
            if !self.is_attached {
                write!(f, ", {} requests", job.operations)?;
            }
        }
        Ok(())
    }
}
