//! Stages that ended before the first sample.
//!
//! A short `find` before a `cpio` leaves nothing to sample. Every stage keeps its number on the
//! command line, so that stage 2 in the report is the second stage that the user typed.

use super::judge::SHELLS;
use super::{Look, Stage, line};

/// First words of a stage that the shell runs itself.
const COMPOUND: [&str; 5] = ["for", "while", "until", "if", "case"];

impl Look {
    /// Adds the stages of the typed line that no sample found. Does nothing where it is not clear
    /// which stages were sampled.
    pub fn add_missed(&mut self, typed: &str) {
        let Some(typed) = line::stages(typed).filter(|typed| typed.len() > self.stages.len())
        else {
            return;
        };
        let Some(places) = places(&self.stages, &typed) else { return };
        let mut seen = std::mem::take(&mut self.stages).into_iter();
        for (at, words) in typed.iter().enumerate() {
            let known = if places.contains(&at) { seen.next() } else { None };
            self.stages.push(known.unwrap_or_else(|| missed(words)));
        }
        for pipe in &mut self.pipes {
            (pipe.from, pipe.to) = (places[pipe.from], places[pipe.to]);
        }
    }
}

/// The index among the typed stages of each sampled stage. Where two typed stages match one sampled
/// stage, the earlier one is missing: earlier stages end first.
fn places(seen: &[Stage], typed: &[String]) -> Option<Vec<usize>> {
    let mut places = Vec::new();
    let mut left = typed.len();
    for stage in seen.iter().rev() {
        left = (0..left).rev().find(|&at| is_it(stage, &typed[at]))?;
        places.push(left);
    }
    places.reverse();
    (!places.is_empty()).then_some(places)
}

fn is_it(stage: &Stage, typed: &str) -> bool {
    let is_assignment = |word: &&str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|it| it == '_' || it.is_ascii_alphanumeric())
        })
    };
    let Some(first) = typed.split_whitespace().find(|word| !is_assignment(word)) else {
        return false;
    };
    let is_of_shell = first.starts_with(['(', '{']) || COMPOUND.contains(&first);
    if is_of_shell {
        return SHELLS.contains(&stage.program());
    }
    first.rsplit('/').next() == Some(stage.program())
}

fn missed(words: &str) -> Stage {
    Stage {
        command: words.to_owned(),
        arguments: words.split_whitespace().map(str::to_owned).collect(),
        is_missed: true,
        ..Stage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pipe;

    fn seen(all: &[&str]) -> Look {
        let stage =
            |words: &&str| Stage { lifetime_seconds: 1.0, is_missed: false, ..missed(words) };
        Look { stages: all.iter().map(stage).collect(), ..Look::default() }
    }

    fn shown(look: &Look) -> Vec<(&str, bool)> {
        look.stages.iter().map(|stage| (stage.command.as_str(), stage.is_missed)).collect()
    }

    #[test]
    fn a_stage_that_ended_too_soon_keeps_its_number() {
        let mut look = seen(&["cpio -o"]);
        look.add_missed("find . -type f | cpio -o");
        assert_eq!(shown(&look), [("find . -type f", true), ("cpio -o", false)]);
        // Of two equal stages the first has ended.
        let mut look = seen(&["gzip -1", "cat"]);
        look.pipes = vec![Pipe { from: 0, to: 1, ..Pipe::default() }];
        look.add_missed("LC_ALL=C /bin/cat x | gzip -1 | cat");
        let expected = [("LC_ALL=C /bin/cat x", true), ("gzip -1", false), ("cat", false)];
        assert_eq!(shown(&look), expected);
        assert_eq!((look.pipes[0].from, look.pipes[0].to), (1, 2));
        let mut look = seen(&["bash -c x", "gzip"]);
        look.add_missed("echo | (sleep 1; cat) | gzip");
        assert_eq!(shown(&look)[0], ("echo", true));
    }

    #[test]
    fn what_cannot_be_told_apart_is_left_alone() {
        for (all, line) in [
            (vec!["sort"], "find . | cpio -o"),
            (vec!["cpio", "find ."], "cat | find . | cpio"),
            (vec![], "find . | cpio"),
            (vec!["a", "b"], "a | b"),
            (vec!["a"], "a && b"),
        ] {
            let mut look = seen(&all);
            look.add_missed(line);
            let known: Vec<&str> = shown(&look).into_iter().map(|it| it.0).collect();
            assert_eq!(known, all, "{line}");
        }
    }
}
