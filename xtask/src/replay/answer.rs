//! A question of an account, its published answer, the answer of our commands, and a verdict that
//! is computed from the two, never written by hand.

use anyhow::bail;

use super::scene::Scene;

/// The two answers agree if they are within this factor: hardware and decade differ.
const NEAR: f64 = 1.25;

/// The verdict on a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The direction is the same, and the numbers are near.
    Agrees,
    /// The direction is the same; the numbers are not near, or none was published.
    Direction,
    /// Measured, but the account has no result to compare with.
    Open,
    /// It cannot be measured here, with the reason.
    NotHere(String),
    /// The result differs, or could not be measured.
    Disagrees(String),
}

impl Verdict {
    /// The verdict in words.
    pub fn words(&self) -> String {
        match self {
            Verdict::Agrees => "agrees".to_owned(),
            Verdict::Direction => "agrees in direction".to_owned(),
            Verdict::Open => "measured; they give nothing to compare it with".to_owned(),
            Verdict::NotHere(why) => format!("not askable here: {why}"),
            Verdict::Disagrees(why) => format!("DISAGREES: {why}"),
        }
    }
}

/// One question with its answers.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The question in one line.
    pub question: String,
    /// The published answer.
    pub they: String,
    /// The typed commands.
    pub typed: Vec<String>,
    /// The results, as lines of Markdown.
    pub we: Vec<String>,
    /// The conditions that had to hold, and did.
    pub held: Vec<String>,
    pub verdict: Verdict,
}

/// The questions of one account.
pub struct Account {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its subject.
    pub title: &'static str,
    /// Its author, and what replaces the hardware of the account.
    pub about: &'static str,
    /// The questions, in the order of the account.
    pub answers: Vec<Answer>,
    /// The different results of the first try, if it was repeated.
    pub first_time: Option<String>,
}

impl Account {
    /// An account without answers yet.
    pub fn new(name: &'static str, title: &'static str, about: &'static str) -> Account {
        Account { name, title, about, answers: Vec::new(), first_time: None }
    }

    /// Asks a question. An error is an answer, too, and the next question follows.
    pub fn ask(
        &mut self,
        scene: &Scene,
        question: &str,
        they: impl Into<String>,
        work: impl FnOnce(&mut Asked) -> anyhow::Result<()>,
    ) {
        eprintln!("\n==> {}: {question}", self.name);
        let mut asked = Asked::default();
        let verdict = match work(&mut asked) {
            Ok(()) => asked.verdict(),
            Err(error) => Verdict::Disagrees(format!("{error:#}")),
        };
        eprintln!("    {}", verdict.words());
        self.answers.push(Answer {
            question: question.to_owned(),
            they: they.into(),
            typed: scene.take_typed(),
            we: asked.we,
            held: asked.held,
            verdict,
        });
    }

    /// A question that cannot be measured here because something is missing.
    pub fn cannot_ask(&mut self, question: &str, they: impl Into<String>, why: &str) {
        self.answers.push(Answer {
            question: question.to_owned(),
            they: they.into(),
            typed: Vec::new(),
            we: Vec::new(),
            held: Vec::new(),
            verdict: Verdict::NotHere(why.to_owned()),
        });
    }
}

/// A question that is being answered.
#[derive(Default)]
pub struct Asked {
    we: Vec<String>,
    held: Vec<String>,
    wrong: Vec<String>,
    /// Whether each number is near the published one.
    near: Vec<bool>,
    is_open: bool,
    not_here: Option<String>,
}

impl Asked {
    /// Adds a result as a line of Markdown.
    pub fn says(&mut self, text: impl Into<String>) {
        self.we.push(text.into());
    }

    /// Adds a result as a table of Markdown.
    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
        let rule = vec!["---".to_owned(); head.len()];
        let rows = rows.iter().map(|row| line(row));
        let lines: Vec<String> = [line(&head), line(&rule)].into_iter().chain(rows).collect();
        self.we.push(lines.join("\n"));
    }

    /// A condition that must hold, or the direction differs.
    pub fn holds(&mut self, what: impl Into<String>, holds: bool) {
        if holds { self.held.push(what.into()) } else { self.wrong.push(what.into()) }
    }

    /// Whether a number is near the published one; if it is not, this is no disagreement.
    pub fn near(&mut self, ours: f64, theirs: f64) {
        self.near.push((ours / theirs).ln().abs() <= NEAR.ln());
    }

    /// The account has no result to compare with.
    pub fn is_open(&mut self) {
        self.is_open = true;
    }

    /// These results are all that can be shown: the question itself needs hardware that is missing.
    pub fn is_not_here(&mut self, why: &str) {
        self.not_here = Some(why.to_owned());
    }

    fn verdict(&self) -> Verdict {
        if !self.wrong.is_empty() {
            return Verdict::Disagrees(format!("it does not hold that {}", self.wrong.join(", ")));
        }
        if self.held.is_empty() {
            return Verdict::Disagrees("nothing was held against anything".to_owned());
        }
        match &self.not_here {
            Some(why) => Verdict::NotHere(why.clone()),
            None if self.is_open => Verdict::Open,
            None if !self.near.is_empty() && self.near.iter().all(|near| *near) => Verdict::Agrees,
            None => Verdict::Direction,
        }
    }
}

/// The answers that differ from an account's; `None` if all agree.
pub fn disagreement(account: &Account) -> Option<String> {
    let wrong = |answer: &Answer| match &answer.verdict {
        Verdict::Disagrees(why) => {
            Some(format!("{}: {}\n    {why}", account.name, answer.question))
        }
        _ => None,
    };
    let wrong: Vec<String> = account.answers.iter().filter_map(wrong).collect();
    (!wrong.is_empty()).then(|| wrong.join("\n"))
}

/// Fails when an answer differs from the account's.
///
/// # Errors
/// With the questions whose answers differ.
pub fn check(accounts: &[Account]) -> anyhow::Result<()> {
    let wrong: Vec<String> = accounts.iter().filter_map(disagreement).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("some answers are not those of the accounts:\n{}", wrong.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(work: impl FnOnce(&mut Asked)) -> Verdict {
        let mut asked = Asked::default();
        work(&mut asked);
        asked.verdict()
    }

    #[test]
    fn a_verdict_is_worked_out() {
        let agrees = verdict(|asked| {
            asked.holds("it is faster", true);
            asked.near(3.0, 3.26);
        });
        assert_eq!(agrees, Verdict::Agrees);
        let direction = verdict(|asked| {
            asked.holds("it is faster", true);
            asked.near(3.0, 3.26);
            asked.near(1.5, 3.26);
        });
        assert_eq!(direction, Verdict::Direction);
        assert_eq!(verdict(|asked| asked.holds("it is faster", true)), Verdict::Direction);
        let open = verdict(|asked| {
            asked.holds("it is measured", true);
            asked.is_open();
        });
        assert_eq!(open, Verdict::Open);
    }

    #[test]
    fn another_direction_or_none_disagrees() {
        let wrong = verdict(|asked| {
            asked.holds("it is faster", false);
            asked.near(3.0, 3.0);
            asked.is_not_here("no drive");
        });
        assert!(matches!(&wrong, Verdict::Disagrees(why) if why.contains("it is faster")));
        assert!(matches!(verdict(|asked| asked.near(3.0, 3.0)), Verdict::Disagrees(_)));
    }

    #[test]
    fn one_wrong_answer_fails_the_replay() {
        let mut account = Account::new("name", "title", "about");
        account.cannot_ask("how far?", "far", "no map");
        assert!(check(std::slice::from_ref(&account)).is_ok());
        account.answers[0].verdict = Verdict::Disagrees("it is near".to_owned());
        let error = check(&[account]).unwrap_err().to_string();
        assert!(error.contains("name: how far?") && error.contains("it is near"), "{error}");
    }
}
