//! The recommended combination as one command, before all other sentences.
//!
//! Each factor has commands of its own ([`typed`]). Two factors make two commands, and neither is
//! the combination that was measured to be the fastest: each sets only one of the two. So this
//! module joins the commands of one program, and removes them from the sentences of the factors.

use base::finding::{Certainty, Finding};

use super::typed::{MeasuredOn, SettingToType, Typed, typed};
use super::{Basis, Judgement, RateVerdict, Recommendation, Sentence, Subject, rules};
use crate::record::{Cell, Factor, Role, RunRecord, shown_cell};

/// Programs that take all of their settings in one command.
const PROGRAMS: [&str; 3] = ["takeup", "tar", "dd"];

/// Puts a sentence with one command first, for each load whose recommendation needs more than one.
pub fn put_first(
    sentences: &mut Vec<Sentence>,
    factors: &[Factor],
    judgement: &Judgement,
    runs: &[RunRecord],
) {
    let place = MeasuredOn::of(runs);
    let mut first = Vec::new();
    for found in &judgement.recommended {
        let load = match judgement.recommended.len() {
            1 => String::new(),
            _ => format!("{}: ", shown_cell(&found.load, factors)),
        };
        let is_of_load =
            |one: &Sentence| !one.typed.is_empty() && one.finding.what.starts_with(&load);
        // Without a command for any change there is nothing to join.
        if found.basis != Basis::Repeats || !sentences.iter().any(is_of_load) {
            continue;
        }
        let together = together(factors, judgement, found, &place);
        if together.is_empty() {
            continue;
        }
        for sentence in sentences.iter_mut().filter(|one| is_of_load(one)) {
            let is_alone = |it: &Typed| together.iter().all(|own| own.program != it.program);
            sentence.typed.retain(is_alone);
            sentence.finding.command = sentence.typed.first().map(|it| it.line.clone());
        }
        first.push(sentence(&load, factors, judgement, found, together));
    }
    sentences.splice(0..0, first);
}

fn sentence(
    load: &str,
    factors: &[Factor],
    judgement: &Judgement,
    found: &Recommendation,
    together: Vec<Typed>,
) -> Sentence {
    let settings = settings(factors, &judgement.cells[found.cell].cell);
    let text = format!("{load}{}: all of it in one command", shown_cell(&settings, factors));
    let mut finding = Finding::new(&rules::SETTING, Certainty::Inferred, text);
    finding.command = together.first().map(|it| it.line.clone());
    let sentence = Sentence::new(Subject::Set, finding).settled(RateVerdict::Differs);
    Sentence { typed: together, ..sentence }
}

/// The levels of a cell that the user can choose.
fn settings(factors: &[Factor], cell: &Cell) -> Cell {
    let chosen = factors.iter().filter(|it| it.role == Role::Setting && it.levels.len() > 1);
    let level = |factor: &Factor| Some((factor.name.clone(), cell.get(&factor.name)?.clone()));
    chosen.filter_map(level).collect()
}

/// For each program with commands for more than one setting, all of them in one.
fn together(
    factors: &[Factor],
    judgement: &Judgement,
    found: &Recommendation,
    place: &MeasuredOn,
) -> Vec<Typed> {
    let [to, from] = [found.cell, found.baseline].map(|cell| &judgement.cells[cell].cell);
    let lines = |from: &Cell, to: &Cell, program: &str| -> Vec<String> {
        let own = |(factor, level): (&String, &crate::record::Level)| {
            let from = from.get(factor).unwrap_or(level).clone();
            let change = SettingToType { factor: factor.clone(), from, to: level.clone() };
            typed(&change, place).into_iter().find(|it| it.program == program)
        };
        settings(factors, to).iter().filter_map(own).map(|it| it.line).collect()
    };
    let one = |program: &'static str| {
        let line = joined(&lines(from, to, program)).filter(|(count, _)| *count > 1)?.1;
        let undo = joined(&lines(to, from, program));
        let undo = undo.map_or_else(|| "leave it out".to_owned(), |(_, line)| line);
        Some(Typed { program: program.into(), line, undo })
    };
    PROGRAMS.into_iter().filter_map(one).collect()
}

/// Joins the commands of one program, and counts them.
fn joined(lines: &[String]) -> Option<(usize, String)> {
    let mut all: Vec<String> = words(lines.first()?);
    for line in &lines[1..] {
        let own = words(line);
        let common = own.iter().zip(&all).take_while(|(a, b)| a == b).count();
        for word in &own[common..] {
            if !(word.contains('=') && all.contains(word)) {
                all.push(word.clone());
            }
        }
    }
    // A size for both sides gives way to a measured size for one side.
    let has_size = all.iter().any(|word| word.starts_with("ibs=") || word.starts_with("obs="));
    all.retain(|word| !(has_size && word.starts_with("bs=")));
    Some((lines.len(), all.join(" ")))
}

/// The words of a shell command; a quoted part belongs to its word.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        is_quoted ^= letter == '\'';
        match (letter, words.last_mut()) {
            (' ', _) if !is_quoted => words.push(String::new()),
            (letter, Some(word)) => word.push(letter),
            (_, None) => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::judge;
    use super::*;
    use crate::judgement::JudgementOptions;
    use crate::record::Level;

    /// All commands, in the order of the sentences, for runs with these rates of buffered and
    /// direct reads with two block sizes.
    fn typed_lines(rates: [[f64; 2]; 2]) -> Vec<String> {
        let mut runs = Vec::new();
        for repeat in 1..=5 {
            for (cache, rates) in ["buffered", "direct"].into_iter().zip(rates) {
                for (block, rate) in [(65536u64, rates[0]), (1 << 20, rates[1])] {
                    let jitter = 1.0 + 0.002 * ((repeat + block) % 3) as f64;
                    runs.push(RunRecord {
                        cell: [
                            ("cache".to_owned(), Level::Text(cache.to_owned())),
                            ("block_bytes".to_owned(), Level::Number(block)),
                        ]
                        .into(),
                        repeat,
                        bytes: (rate * jitter) as u64,
                        seconds: 1.0,
                        environment: [("path".to_owned(), "/srv/my file".to_owned())].into(),
                        ..RunRecord::default()
                    });
                }
            }
        }
        let caches = ["buffered", "direct"].map(|name| Level::Text(name.to_owned())).to_vec();
        let blocks = [65536, 1 << 20].map(Level::Number).to_vec();
        let factors = [Factor::new("cache", caches), Factor::new("block_bytes", blocks)];
        let judgement = judge(&factors, &runs, &JudgementOptions::default());
        let lines = judgement.sentences.iter().flat_map(|one| &one.typed);
        lines.map(|it| it.line.clone()).collect()
    }

    #[test]
    fn two_settings_are_one_command_and_the_first_thing_that_is_said() {
        let both = "dd ibs=1048576 if='/srv/my file' of=TARGET iflag=direct";
        assert_eq!(typed_lines([[1e8, 1.1e8], [2e7, 4e8]]), [both]);
        // The block size in force is measured to be the best, and belongs to the command.
        let kept = "dd ibs=65536 if='/srv/my file' of=TARGET iflag=direct";
        assert_eq!(typed_lines([[1e8, 1.1e8], [4e8, 2e8]]), [kept]);
    }

    #[test]
    fn options_with_the_same_value_are_both_kept() {
        let lines = ["takeup backup S --to /t --block-size 1", "takeup backup S --to /t --ring 1"];
        let (count, line) = joined(&lines.map(str::to_owned)).unwrap();
        assert_eq!((count, &*line), (2, "takeup backup S --to /t --block-size 1 --ring 1"));
    }
}
