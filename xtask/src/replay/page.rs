//! The answers as a page of Markdown: a table of verdicts, then every question with its commands.

use std::fmt::Write as _;

use super::answer::{Account, Answer, Verdict};
use super::scene::Length;

/// How the page was made.
pub struct Made {
    /// The short or the long form.
    pub length: Length,
    /// Duration in minutes.
    pub minutes: f64,
    /// The processor and memory of the machine.
    pub processors: usize,
    /// Kernel, as `uname -r` prints it.
    pub kernel: String,
    /// Mean number of runnable processes in the minute before the start.
    pub load_before: f64,
}

/// A load above this means that other programs were working.
const BUSY: f64 = 0.5;

/// The page.
pub fn page(accounts: &[Account], made: &Made) -> String {
    let mut text = INTRODUCTION.to_owned();
    let length = match made.length {
        Length::Short => "`cargo xtask replay`, the short form that CI runs",
        Length::Long => "`cargo xtask replay --long`",
    };
    let company = if made.load_before > BUSY {
        format!(
            "other work was going on beside it (load {:.1} before the first run), so the figures \
             scatter",
            made.load_before
        )
    } else {
        "nothing else was running".to_owned()
    };
    let _ = write!(
        text,
        "This page was made by {length}, in {:.0} minutes, on {} processors, Linux {};\n\
         {company}.\n\n",
        made.minutes.max(1.0),
        made.processors,
        made.kernel,
    );
    text += &verdicts(accounts);
    for (number, account) in accounts.iter().enumerate() {
        let _ = write!(text, "\n## {}. {}\n\n{}\n", number + 1, account.title, account.about);
        if let Some(first) = &account.first_time {
            let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = write!(text, "\nIt was asked twice, since the first time came to: {first}.\n");
        }
        for (place, answer) in account.answers.iter().enumerate() {
            text += &one(&format!("{}.{}", number + 1, place + 1), answer);
        }
    }
    text
}

const INTRODUCTION: &str = "\
# Does Takeup find what five published accounts found?

Five people published how they found out what their tapes, disks and pipelines do. This page \
repeats all their experiments,
tables and questions with commands of Takeup alone, on virtual drives and disks that keep time \
([sim.md](sim.md)), and puts the
answers beside theirs. `cargo xtask replay` runs the commands, computes the verdicts, writes this \
page, and fails if a result goes
in another direction. CI runs its short form, `make test-long` the long one.

- **agrees**: the direction is theirs, and every figure that has a counterpart of theirs lies \
within a quarter of it.
- **agrees in direction**: their conclusion holds here; the figures are those of other hardware.
- **measured**: Takeup measured it, and they give no figure.
- **not askable here**: the reason follows.

Commands are as they were typed, those of each account in an empty folder. `$LOOP` is the loop \
device that
`takeup sim disk --loop` prints, `$QUEUE` its folder `/sys/block/loopN/queue`, and `published` \
stands for
[benchmarks/published](../benchmarks/published). What an account says comes from the tables in
`crates/experiment/tests/published`. None of their drives, arrays or networks is here; each part \
says what stands in for them.

";

fn verdicts(accounts: &[Account]) -> String {
    let mut text = "| | question | verdict |\n|---|---|---|\n".to_owned();
    for (number, account) in accounts.iter().enumerate() {
        let _ = writeln!(text, "| **{}** | **{}** | |", number + 1, account.title);
        for (place, answer) in account.answers.iter().enumerate() {
            let verdict = match &answer.verdict {
                Verdict::NotHere(_) => "not askable here".to_owned(),
                Verdict::Open => "measured".to_owned(),
                other => other.words(),
            };
            let (number, place) = (number + 1, place + 1);
            let _ = writeln!(text, "| {number}.{place} | {} | {verdict} |", answer.question);
        }
    }
    text
}

fn one(number: &str, answer: &Answer) -> String {
    let mut text = format!("\n### {number} {}\n\n**They**: {}\n", answer.question, answer.they);
    if !answer.typed.is_empty() {
        text += "\n```text\n";
        for line in &answer.typed {
            let _ = writeln!(text, "$ {line}");
        }
        text += "```\n";
    }
    let is_table = |line: &String| line.starts_with('|');
    for line in &answer.we {
        let who = if is_table(line) { "" } else { "**We**: " };
        let _ = write!(text, "\n{who}{line}\n");
    }
    let _ = write!(text, "\n**Verdict**: {}", answer.verdict.words());
    if answer.held.is_empty() || matches!(answer.verdict, Verdict::Disagrees(_)) {
        text += "\n";
    } else {
        let _ = writeln!(text, " (checked: {})", answer.held.join("; "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        let mut account = Account::new("tape", "Tape", "By somebody.");
        account.cannot_ask("how far?", "far", "no map");
        account.answers.push(Answer {
            question: "how fast?".to_owned(),
            they: "46 MB/s".to_owned(),
            typed: vec!["takeup bench read slow/disk".to_owned()],
            we: vec!["46.4 MB/s".to_owned(), "| a |\n| --- |\n| 1 |".to_owned()],
            held: vec!["it is faster".to_owned()],
            verdict: Verdict::Agrees,
        });
        account
    }

    #[test]
    fn a_page_has_every_question_with_its_verdict() {
        let made = Made {
            length: Length::Short,
            minutes: 3.0,
            processors: 2,
            kernel: "6.18".to_owned(),
            load_before: 3.0,
        };
        let text = page(&[account()], &made);
        assert!(text.contains("| 1.1 | how far? | not askable here |"), "{text}");
        assert!(text.contains("### 1.2 how fast?\n\n**They**: 46 MB/s"), "{text}");
        assert!(text.contains("$ takeup bench read slow/disk\n"), "{text}");
        assert!(text.contains("**Verdict**: agrees (checked: it is faster)"), "{text}");
        assert!(text.contains("**Verdict**: not askable here: no map\n"), "{text}");
        assert!(text.contains("other work was going on"), "{text}");
    }
}
