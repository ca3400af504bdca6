//! What a set carries of the journal, so that a machine that lost its own has it again: how the
//! last runs ended, and which archives were read back.

use std::collections::HashSet;

use crate::journal::{Entry, Event};

/// Longest digest: some hundred lines.
pub const DIGEST_BYTES_MAX: usize = 64 << 10;
/// Runs that it has; trends are of the last ten.
const RUNS: usize = 20;

/// The lines that a set of a job carries, the oldest first: of the runs of the job into this place,
/// and of what is known of archives that are still there. Where it would be too long, the oldest
/// are left out.
pub fn digest(entries: &[Entry], job: &str, to: &str) -> Vec<u8> {
    let of_job = || entries.iter().rev().filter(|entry| entry.job == job && entry.to == to);
    let mut chosen = Chosen::default();
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let mut bytes = 0;
    for entry in of_job().filter(|entry| chosen.takes(&entry.event)) {
        let Ok(mut line) = serde_json::to_vec(entry) else { continue };
        line.push(b'\n');
        bytes += line.len();
        if bytes > DIGEST_BYTES_MAX {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    lines.concat()
}

/// The entries of a digest that are of this job and this place. What is not understood is passed
/// over: nothing depends on it.
pub fn read_digest(digest: &[u8], job: &str, to: &str) -> Vec<Entry> {
    let lines = digest.split(|byte| *byte == b'\n');
    let entries = lines.filter_map(|line| serde_json::from_slice::<Entry>(line).ok());
    entries.filter(|entry| entry.job == job && entry.to == to).collect()
}

/// What was taken so far, the newest first.
#[derive(Default)]
struct Chosen<'e> {
    runs: usize,
    has_trial: bool,
    /// Sets whose archives are gone.
    forgotten: HashSet<&'e str>,
    /// Sets of which all parts were read at once.
    verified: HashSet<&'e str>,
}

impl<'e> Chosen<'e> {
    fn takes(&mut self, event: &'e Event) -> bool {
        match event {
            Event::Run(_) => {
                self.runs += 1;
                self.runs <= RUNS
            }
            Event::Tried { .. } => !std::mem::replace(&mut self.has_trial, true),
            // That is known by looking.
            Event::Forgotten { set, .. } => {
                self.forgotten.insert(set);
                false
            }
            Event::Verified { set, .. } => {
                !self.forgotten.contains(&**set) && self.verified.insert(set)
            }
            // What was read before all of it was says no more.
            Event::Sampled { set, .. } => {
                !self.forgotten.contains(&**set) && !self.verified.contains(&**set)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::journal::{Journaled, RunResult};

    fn entry(minute: i64, event: Event) -> Entry {
        let at = Timestamp::from_second(1_793_584_800 + 60 * minute).unwrap();
        Entry { at, job: "homes".to_owned(), to: "/mnt/sets".to_owned(), event }
    }

    fn run(minute: i64) -> Entry {
        let set = format!("{minute:032x}");
        let run = Journaled {
            result: RunResult::Done,
            set: Some(set),
            archive: Some("a.tar".to_owned()),
            level: Some(1),
            files: 5,
            bytes: 700,
            seconds: 1.5,
            warnings: 0,
            limit: None,
            error: None,
            notes: Vec::new(),
        };
        entry(minute, Event::Run(Box::new(run)))
    }

    fn verified(minute: i64, set: &str) -> Entry {
        let (set, archive, text) = (set.to_owned(), format!("{set}.tar"), "sound".to_owned());
        entry(minute, Event::Verified { set, archive, sound: true, bytes: 9, text })
    }

    fn sampled(minute: i64, set: &str) -> Entry {
        let (set, archive, text) = (set.to_owned(), format!("{set}.tar"), "sound".to_owned());
        let (from_bytes, to_bytes, archive_bytes) = (0, 512, 1024);
        let sound = true;
        let event =
            Event::Sampled { set, archive, sound, from_bytes, to_bytes, archive_bytes, text };
        entry(minute, event)
    }

    fn forgotten(minute: i64, set: &str) -> Entry {
        let (set, archive) = (set.to_owned(), format!("{set}.tar"));
        entry(minute, Event::Forgotten { set, archive, bytes: 9 })
    }

    #[test]
    fn what_still_counts_is_read_back_in_its_order() {
        let entries = [
            run(0),
            verified(1, "gone"),
            sampled(2, "read"),
            verified(3, "read"),
            sampled(4, "read"),
            sampled(5, "part"),
            forgotten(6, "gone"),
            verified(7, "read"),
            sampled(8, "read"),
            run(9),
        ];
        let kept = [0, 5, 7, 8, 9].map(|at: usize| entries[at].clone());
        let digest = digest(&entries, "homes", "/mnt/sets");
        assert_eq!(read_digest(&digest, "homes", "/mnt/sets"), kept);
        assert_eq!(read_digest(&digest, "other", "/mnt/sets"), []);
        assert_eq!(read_digest(&digest, "homes", "/mnt/copy"), []);
        let mut later = b"{\"event\":\"whim\"}\n\xff\n".to_vec();
        later.extend_from_slice(&digest);
        assert_eq!(read_digest(&later, "homes", "/mnt/sets"), kept);
    }

    #[test]
    fn another_place_and_another_job_are_left_out() {
        let mut entries = vec![run(0), run(1), run(2)];
        entries[0].job = "other".to_owned();
        entries[1].to = "/mnt/copy".to_owned();
        let digest = digest(&entries, "homes", "/mnt/sets");
        assert_eq!(read_digest(&digest, "homes", "/mnt/sets"), entries[2..]);
    }

    #[test]
    fn of_many_runs_and_long_lines_the_newest_are_there() {
        let runs: Vec<Entry> = (0..100).map(run).collect();
        let kept = read_digest(&digest(&runs, "homes", "/mnt/sets"), "homes", "/mnt/sets");
        assert_eq!(kept, runs[100 - RUNS..]);
        let long = "x".repeat(DIGEST_BYTES_MAX / 3);
        let long: Vec<Entry> =
            (0..9).map(|minute| verified(minute, &format!("{minute}{long}"))).collect();
        let bytes = digest(&long, "homes", "/mnt/sets");
        assert!(bytes.len() <= DIGEST_BYTES_MAX, "{}", bytes.len());
        assert_eq!(read_digest(&bytes, "homes", "/mnt/sets"), long[8..]);
    }
}
