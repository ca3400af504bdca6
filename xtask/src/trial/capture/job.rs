//! The job from `takeup capture --fio`: its sections, the file that each stands for, and their
//! depth together.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::ensure;

/// A section of the job.
#[derive(Clone, Debug)]
pub struct Section {
    name: String,
    /// The captured file, and whether it stands for others.
    captured: PathBuf,
    has_more: bool,
    options: Vec<(String, String)>,
    /// The fio jobs that it becomes, by their numbers over all sections.
    pub jobs: Vec<usize>,
}

/// All sections, and the text before them.
#[derive(Clone, Debug)]
pub struct Sections {
    global: String,
    all: Vec<Section>,
}

impl Section {
    /// The value of an option.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(option, _)| option == name).map(|(_, value)| value.as_str())
    }

    /// Whether it makes the syncs of another section.
    pub fn is_of_syncs(&self) -> bool {
        self.name.ends_with("-syncs")
    }

    fn number(&self, name: &str) -> u64 {
        self.option(name).and_then(|value| value.parse().ok()).unwrap_or(1)
    }
}

impl Sections {
    /// Parses the text of a job.
    pub fn of(text: &str) -> anyhow::Result<Sections> {
        let mut global = String::new();
        let mut all: Vec<Section> = Vec::new();
        for line in text.lines() {
            let name = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            if let Some(name) = name.filter(|name| *name != "global") {
                all.push(Section {
                    name: name.to_owned(),
                    captured: PathBuf::new(),
                    has_more: false,
                    options: Vec::new(),
                    jobs: Vec::new(),
                });
                continue;
            }
            let Some(section) = all.last_mut() else {
                let _ = writeln!(global, "{line}");
                continue;
            };
            if let Some(path) = line.strip_prefix("; captured: ") {
                let (path, more) = path.split_once(" and ").unwrap_or((path, ""));
                (section.captured, section.has_more) = (PathBuf::from(path), !more.is_empty());
            } else if !line.starts_with(';') && !line.is_empty() {
                let (name, value) = line.split_once('=').unwrap_or((line, ""));
                section.options.push((name.to_owned(), value.to_owned()));
            }
        }
        ensure!(!all.is_empty(), "the job has no section");
        let mut number = 0;
        for section in &mut all {
            let jobs = usize::try_from(section.number("numjobs")).unwrap_or(1);
            section.jobs = (number..number + jobs).collect();
            number += jobs;
        }
        Ok(Sections { global, all })
    }

    /// The sections that stand for a file: those that name it, or name a similar one.
    pub fn of_file(&self, path: &Path) -> Vec<&Section> {
        let named: Vec<&Section> = self.all.iter().filter(|it| it.captured == path).collect();
        if named.is_empty() {
            return self.all.iter().filter(|it| it.has_more).collect();
        }
        named
    }

    /// The job as text, with a log for each fio job, and the paths of the logs. Jobs of one section
    /// become separate sections, since fio lets them overwrite each other's log.
    pub fn with_logs(&self, folder: &Path) -> (String, Vec<PathBuf>) {
        let mut text = self.global.clone();
        let mut logs = Vec::new();
        for section in &self.all {
            for (at, job) in section.jobs.iter().enumerate() {
                // The last one keeps the name, for sections that wait for it.
                let is_last = at + 1 == section.jobs.len();
                let end = if is_last { String::new() } else { format!("-job{at}") };
                let _ = write!(text, "\n[{}{end}]\n", section.name);
                for (name, value) in section.options.iter().filter(|it| it.0 != "numjobs") {
                    let sign = if value.is_empty() { "" } else { "=" };
                    let _ = writeln!(text, "{name}{sign}{value}");
                }
                let log = folder.join(format!("again{job}.log"));
                let _ = writeln!(text, "write_iolog={}", log.display());
                logs.push(log);
            }
        }
        (text, logs)
    }

    /// Most requests that some sections have in flight, by their options: sections that start
    /// together are added up.
    pub fn depth(&self, own: &[&Section]) -> u64 {
        let turn = |section: &Section| {
            let (mut turn, mut at) = (0, section);
            while let Some(before) = at.option("wait_for")
                && turn < self.all.len()
                && let Some(found) = self.all.iter().find(|it| it.name == before)
            {
                (turn, at) = (turn + 1, found);
            }
            turn
        };
        let of = |section: &Section| match section.option("ioengine") {
            Some("libaio" | "io_uring") => section.number("iodepth") * section.number("numjobs"),
            _ => section.number("numjobs"),
        };
        // Sections with pauses are seldom in flight together.
        let pauses = |section: &Section| {
            ["rate_iops", "thinktime"].iter().any(|it| section.option(it).is_some())
        };
        let mut turns = vec![0; self.all.len() + 1];
        for section in own.iter().filter(|it| !it.is_of_syncs()) {
            let sum = &mut turns[turn(section)];
            *sum = if pauses(section) { of(section).max(*sum) } else { *sum + of(section) };
        }
        turns.into_iter().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_that_wait_are_not_in_flight_together() {
        let more = "; captured: /x and 1 more that are alike";
        let text = format!(
            "; said\n[global]\nthread\n\n[a-reads]\n{more}\nfilename=f\nioengine=libaio\n\
             iodepth=8\n\n[a-writes]\n{more}\nioengine=libaio\niodepth=4\nwait_for=a-reads\n\
             [a-writes-2]\n; captured: /x\nioengine=libaio\niodepth=2\nwait_for=a-reads\n\
             [b]\n; captured: /y\nnumjobs=2\n"
        );
        let text = text.as_str();
        let sections = Sections::of(text).unwrap();
        assert_eq!(sections.depth(&sections.of_file(Path::new("/x"))), 8);
        assert_eq!(sections.depth(&sections.of_file(Path::new("/y"))), 2);
        assert_eq!(sections.of_file(Path::new("/z")).len(), 2);
        let (text, logs) = sections.with_logs(Path::new("/f"));
        assert_eq!(logs.len(), 5);
        assert!(
            text.contains("[b-job0]\nwrite_iolog=/f/again3.log\n") && !text.contains("numjobs")
        );
    }
}
