//! The verdict on a run for the user's data: the first line of a summary, and the exit code.
//!
//! Each warning says what it means for the data ([`Harm`]). A [`Tally`] counts the objects by harm,
//! and the verdict follows from the counts in the same way for every command.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use flow::monitor::Harm;
use flow::run::{Command, RunReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use base::format::{count, counted};

/// The result of a run, from good to bad.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Everything was done, and all that was checked is good.
    #[default]
    Done,
    /// Everything was done, but there was no data.
    Empty,
    /// Data may be lost; nothing proves that they are.
    Doubtful,
    /// The archive is sound, but the live files differ from it.
    Different,
    /// Something was left out, and was named.
    Incomplete,
    /// Part of the archive has a later format version, which this program cannot check.
    Later,
    /// Data are lost, or differ from what was archived.
    Damaged,
}

/// The state in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The result of the run.
    #[serde(rename = "verdict")]
    pub state: RunState,
    /// The first line of the summary; empty where the headline says everything.
    #[serde(rename = "verdict_text")]
    pub text: String,
}

/// Objects that are counted once each; beyond that every warning counts.
const TOLD_APART_MAX: usize = 1 << 20;

/// Objects by kind of harm.
#[derive(Debug, Default)]
pub struct Tally {
    kinds: BTreeMap<Harm, Objects>,
    seen: HashSet<u64>,
}

/// The objects of one kind of harm.
#[derive(Clone, Debug, Default)]
struct Objects {
    /// How many have a name.
    named: u64,
    /// The first by name, escaped. The first in time would depend on the threads.
    first: String,
    /// Warnings without an object: about the run, or the archive.
    unnamed: u64,
    first_text: String,
}

impl Tally {
    /// Number of objects that this has happened to.
    pub fn objects(&self, harm: Harm) -> u64 {
        self.kinds.get(&harm).map_or(0, |objects| objects.named + objects.unnamed)
    }

    /// Counts a warning. `object` is escaped, and empty for a warning about the whole run.
    pub fn count(&mut self, harm: Harm, object: &str, text: &str) {
        let kind = self.kinds.entry(harm).or_default();
        if object.is_empty() {
            kind.unnamed += 1;
            if kind.unnamed == 1 {
                // It goes before the text of an object, whose name is in the verdict anyway.
                text.clone_into(&mut kind.first_text);
            }
            return;
        }
        let mut hasher = DefaultHasher::new();
        (harm, object).hash(&mut hasher);
        let is_new = self.seen.len() >= TOLD_APART_MAX || self.seen.insert(hasher.finish());
        kind.named += u64::from(is_new);
        if kind.first.is_empty() || object < kind.first.as_str() {
            object.clone_into(&mut kind.first);
            if kind.unnamed == 0 {
                kind.first_text = format!("{object}: {text}");
            }
        }
    }

    /// The verdict on a run.
    pub fn verdict(&self, run: &RunReport) -> Verdict {
        let (state, word) = match self.worst(run) {
            None => return nothing(run),
            Some(state @ RunState::Damaged) => (state, "DAMAGED"),
            Some(state @ RunState::Later) => (state, "LATER VERSION"),
            Some(state @ RunState::Doubtful) => (state, "DOUBTFUL"),
            Some(state) => (state, "INCOMPLETE"),
        };
        // Blocks are not counted where the files in them are named.
        let has_names = self.kinds.get(&Harm::Damage).is_some_and(|damage| damage.named > 0);
        let is_told = |harm: &Harm| *harm != Harm::Blocks || !has_names;
        let kinds = self.kinds.iter().filter(|(harm, _)| is_told(harm));
        let mut clauses: Vec<String> = kinds.map(|(harm, objects)| objects.clause(*harm)).collect();
        let holds_none = run.command == Command::Backup && run.files == 0;
        if holds_none && self.kinds.contains_key(&Harm::Unread) {
            clauses.push(format!("the archive holds {}", no_file(run)));
        }
        Verdict { state, text: format!("{word}: {}", clauses.join("; ")) }
    }

    fn worst(&self, run: &RunReport) -> Option<RunState> {
        // A volume that was left out is no damage: this run could not see it. Damaged blocks of a
        // volume that was there are damage.
        let left_out = matches!(run.command, Command::Restore | Command::List)
            && self.kinds.contains_key(&Harm::Unseen)
            && run.unreadable_blocks == 0;
        let state = |harm: &Harm| match harm {
            Harm::Damage | Harm::Blocks | Harm::CutOff if left_out => RunState::Incomplete,
            Harm::Damage | Harm::Blocks | Harm::CutOff => RunState::Damaged,
            Harm::Doubt => RunState::Doubtful,
            Harm::Later => RunState::Later,
            Harm::Different => RunState::Different,
            _ => RunState::Incomplete,
        };
        self.kinds.keys().map(state).max()
    }
}

impl Objects {
    /// `60 files could not be read`; the name as well, if it is one.
    fn clause(&self, harm: Harm) -> String {
        if harm == Harm::CutOff {
            let text = "the end of the archive is missing or was overwritten: more may be lost";
            return text.to_owned();
        }
        let Some((one, many)) = words(harm) else { return self.first_text.clone() };
        if self.named == 0 {
            return match self.unnamed {
                1 => self.first_text.clone(),
                more => format!("{} ({} in all)", self.first_text, count(more)),
            };
        }
        let counted = counted(self.named, one, many);
        let others = if self.named == 1 { "" } else { " and others" };
        let beside = match self.unnamed {
            0 => String::new(),
            _ => format!("; {}", self.first_text),
        };
        format!("{counted} ({}{others}){beside}", self.first)
    }
}

/// What is counted, singular and plural; `None` where the warning's own text is the message.
fn words(harm: Harm) -> Option<(&'static str, &'static str)> {
    Some(match harm {
        Harm::Damage => {
            ("file or folder is damaged or lost", "files and folders are damaged or lost")
        }
        Harm::Unread => ("file could not be read", "files could not be read"),
        Harm::Unlisted => (
            "folder could not be listed, so its content is missing",
            "folders could not be listed, so their content is missing",
        ),
        Harm::Flawed => ("file is not archived as it was", "files are not archived as they were"),
        Harm::Existing => ("file exists already and stays", "files exist already and stay"),
        Harm::NotRestored => ("file could not be restored", "files could not be restored"),
        Harm::Metadata => (
            "file came back without part of its metadata",
            "files came back without part of their metadata",
        ),
        Harm::NotFound => ("path is not in the archive", "paths are not in the archive"),
        Harm::Different => ("file differs", "files differ"),
        Harm::NoRoom
        | Harm::Blocks
        | Harm::CutOff
        | Harm::Unseen
        | Harm::Doubt
        | Harm::Later
        | Harm::Beside => {
            return None;
        }
    })
}

/// What an archive without files lacks: it may still hold folders and links.
pub fn no_file(run: &RunReport) -> &'static str {
    if run.members > 1 { "no regular file" } else { "no file" }
}

/// The verdict on a run without warnings: whether there was anything to do.
fn nothing(run: &RunReport) -> Verdict {
    let text = match run.command {
        Command::Backup if run.files == 0 && run.members <= 1 => {
            "EMPTY: the archive holds no file: there was none to archive"
        }
        Command::Restore if run.members == 0 => "EMPTY: the archive holds nothing to restore",
        Command::Pipe if run.source_bytes == 0 => "EMPTY: the source gave no data",
        _ => return Verdict::default(),
    };
    Verdict { state: RunState::Empty, text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: Command) -> RunReport {
        RunReport { command, files: 3, members: 4, source_bytes: 100, ..RunReport::default() }
    }

    #[test]
    fn one_flaw_that_two_checks_find_is_one() {
        let mut tally = Tally::default();
        tally.count(Harm::Damage, "a/b", "its content is incomplete");
        tally.count(Harm::Damage, "a/b", "its hash differs");
        let verdict = tally.verdict(&run(Command::Restore));
        assert_eq!(verdict.state, RunState::Damaged);
        assert_eq!(verdict.text, "DAMAGED: 1 file or folder is damaged or lost (a/b)");
    }

    /// Several threads report damage in their own order.
    #[test]
    fn the_first_by_name_is_named() {
        let mut tally = Tally::default();
        for name in ["s/48", "s/07", "s/30"] {
            tally.count(Harm::Damage, name, "its content is incomplete");
        }
        let verdict = tally.verdict(&run(Command::Restore));
        assert_eq!(
            verdict.text,
            "DAMAGED: 3 files and folders are damaged or lost (s/07 and others)"
        );
    }

    /// Whatever else is lost with the end of an archive is not known.
    #[test]
    fn an_archive_that_is_cut_off_is_no_single_file() {
        let mut tally = Tally::default();
        tally.count(Harm::CutOff, "a/b", "the archive is cut off inside this member");
        tally.count(Harm::Damage, "a/b", "not restored: 5 bytes are missing");
        tally.count(Harm::Blocks, "", "checksums do not hold: 1 of 3 blocks");
        let text = tally.verdict(&run(Command::Restore)).text;
        let end = "the end of the archive is missing or was overwritten: more may be lost";
        assert_eq!(text, format!("DAMAGED: 1 file or folder is damaged or lost (a/b); {end}"));
        let mut tally = Tally::default();
        tally.count(Harm::Blocks, "", "checksums do not hold: 1 of 3 blocks");
        let text = tally.verdict(&run(Command::Restore)).text;
        assert_eq!(text, "DAMAGED: checksums do not hold: 1 of 3 blocks");
    }

    #[test]
    fn files_that_could_not_be_read_are_counted() {
        let mut tally = Tally::default();
        for number in 0..60 {
            tally.count(Harm::Unread, &format!("tree/{number}"), "permission denied");
        }
        let verdict = tally.verdict(&run(Command::Backup));
        let text = "INCOMPLETE: 60 files could not be read (tree/0 and others)";
        assert_eq!((verdict.state, &*verdict.text), (RunState::Incomplete, text));
        let none = RunReport { files: 0, members: 1, ..run(Command::Backup) };
        let with = |what: &str| format!("{text}; the archive holds {what}");
        assert_eq!(tally.verdict(&none).text, with("no file"));
        // Links and folders are in it.
        let links = RunReport { members: 3, ..none };
        assert_eq!(tally.verdict(&links).text, with("no regular file"));
    }

    #[test]
    fn damage_outweighs_what_was_left_out() {
        let mut tally = Tally::default();
        tally.count(Harm::Existing, "a", "already exists");
        assert_eq!(tally.verdict(&run(Command::Restore)).state, RunState::Incomplete);
        tally.count(Harm::Damage, "", "the index is damaged");
        assert_eq!(tally.verdict(&run(Command::Restore)).state, RunState::Damaged);
        // A volume that the user left out is no damage of the others.
        tally.count(Harm::Unseen, "", "volume 2 was left out: its data are missing");
        for command in [Command::Restore, Command::List] {
            assert_eq!(tally.verdict(&run(command)).state, RunState::Incomplete);
            let beside = RunReport { unreadable_blocks: 1, ..run(command) };
            assert_eq!(tally.verdict(&beside).state, RunState::Damaged);
        }
    }

    #[test]
    fn nothing_is_told_as_nothing() {
        let empty = RunReport { files: 0, members: 1, source_bytes: 0, ..run(Command::Backup) };
        assert_eq!(Tally::default().verdict(&empty).state, RunState::Empty);
        assert_eq!(Tally::default().verdict(&run(Command::Backup)), Verdict::default());
    }
}
