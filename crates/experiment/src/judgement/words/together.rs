//! Joins equal sentences on several loads into one with the names of all of them.

use crate::judgement::{Judgement, Sentence};
use crate::record::{Factor, shown_cell};

/// Joins sentences that differ only in the load in front of them. Sentences with a command stay
/// apart, since a command belongs to one load.
pub fn together(
    sentences: Vec<Sentence>,
    factors: &[Factor],
    judgement: &Judgement,
) -> Vec<Sentence> {
    let loads: Vec<String> = judgement
        .recommended
        .iter()
        .map(|found| format!("{}: ", shown_cell(&found.load, factors)))
        .collect();
    let mut told: Vec<Said> = Vec::new();
    for sentence in sentences {
        let next = Said::of(sentence, &loads);
        match told.iter_mut().find(|said| said.is_same(&next)) {
            Some(said) => said.join(next),
            None => told.push(next),
        }
    }
    told.into_iter().map(|said| said.sentence(loads.len())).collect()
}

/// A sentence and the loads that it holds for, as they stand in front of it.
struct Said {
    loads: Vec<String>,
    words: String,
    sentence: Sentence,
}

impl Said {
    fn of(sentence: Sentence, loads: &[String]) -> Said {
        let of_load = |load: &&String| sentence.finding.what.starts_with(load.as_str());
        // The longest, where one begins as another does.
        let load = loads.iter().filter(of_load).max_by_key(|load| load.len());
        let words = sentence.finding.what[load.map_or(0, String::len)..].to_owned();
        Said { loads: load.into_iter().cloned().collect(), words, sentence }
    }

    fn is_same(&self, other: &Said) -> bool {
        let (one, two) = (&self.sentence, &other.sentence);
        let is_of_load = |said: &Said| !said.loads.is_empty();
        let is_plain = |it: &Sentence| it.typed.is_empty() && it.change.is_none();
        is_of_load(self)
            && is_of_load(other)
            && is_plain(one)
            && is_plain(two)
            && self.words == other.words
            && one.subject == two.subject
            && one.verdict == two.verdict
            && one.finding.rule == two.finding.rule
            && one.finding.why == two.finding.why
    }

    fn join(&mut self, other: Said) {
        self.loads.extend(other.loads);
        // Keep only the numbers that all loads share.
        let numbers = other.sentence.finding.numbers;
        self.sentence.finding.numbers.retain(|number| numbers.contains(number));
    }

    fn sentence(self, all: usize) -> Sentence {
        let Said { loads, words, mut sentence } = self;
        if loads.len() < 2 {
            return sentence;
        }
        let named: Vec<&str> = loads.iter().map(|load| load.trim_end_matches(": ")).collect();
        let of = if loads.len() == all { "every load".to_owned() } else { named.join("; ") };
        sentence.finding.what = format!("{of}: {words}");
        sentence.text = sentence.finding.sentence();
        sentence
    }
}
