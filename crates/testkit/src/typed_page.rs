//! A page of the documents whose commands are typed in their order, by a reader who has a folder of
//! their own. Each has to print what the page says, but for times, sizes and identities.
//!
//! Commands and what they print stand four spaces in. A command begins with `$ ` and goes on in
//! lines that begin with `> `; `...` stands for any lines, and at
//! the end of a line for the rest of it. A command that ends with ` &` goes on in
//! the background, and what it prints is waited for. What stands below the comment
//! `<!-- typed: first N lines -->` is so on any machine in its first lines alone: the rest depends
//! on the disks there, and on what else they do. Where `TAKEUP_UPDATE` is set, the page gets
//! what was printed in the place of what is not so any more.

use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a background command prints has to come within this time.
const PRINTS_WITHIN: Duration = Duration::from_secs(60);
/// A command that is not in the background has to end within this time.
const ENDS_WITHIN: &str = "600s";
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Nobody types faster than the clock of a file system moves on.
const TICK: Duration = Duration::from_millis(70);
/// Stands for any lines.
const ANY_LINES: &str = "...";
/// What is around the number of lines that are compared.
const FIRST_LINES: (&str, &str) = ("<!-- typed: first ", " lines -->");

/// The reader of a page.
#[derive(Debug)]
pub struct Reader {
    /// Their home, where each command begins.
    pub home: PathBuf,
    /// The folders of programs, the first one first.
    pub path: String,
    /// Further variables of the environment.
    pub environment: Vec<(String, String)>,
    /// What is replaced in all that is printed before it is compared: from, to.
    pub reads_as: Vec<(String, String)>,
}

/// A command of the page, what it prints, and the lines where that stands.
#[derive(Debug)]
struct Step {
    command: String,
    printed: Vec<String>,
    printed_at: Range<usize>,
    /// How many lines are compared.
    compared: usize,
}

impl Step {
    fn is_printed(&self, printed: &[String]) -> bool {
        let first = |lines: &[String]| lines[..lines.len().min(self.compared)].to_vec();
        matches(&first(&self.printed), &first(printed))
    }
}

impl Reader {
    /// Types the commands of a section, named by its heading without the marks, or of the whole
    /// page. Returns their number.
    ///
    /// # Panics
    /// When there is no such page or section, a command fails, or prints something else.
    pub fn follow(&self, page: &Path, section: Option<&str>) -> usize {
        let text = fs::read_to_string(page).expect("the page");
        let lines: Vec<&str> = text.lines().collect();
        let within = range_of(&lines, section);
        let steps = steps(&lines, within);
        let mut changed: Vec<(Range<usize>, Vec<String>)> = Vec::new();
        for step in &steps {
            std::thread::sleep(TICK);
            let printed = self.type_in(step);
            if !step.is_printed(&printed) {
                let shown = printed.join("\n");
                assert!(
                    std::env::var_os("TAKEUP_UPDATE").is_some(),
                    "{} prints:\n{shown}\nand the page has:\n{}",
                    step.command,
                    step.printed.join("\n")
                );
                changed.push((step.printed_at.clone(), printed));
            }
        }
        if !changed.is_empty() {
            fs::write(page, renewed(&lines, changed)).expect("the page is written");
        }
        steps.len()
    }

    /// What a command prints, on both outputs.
    fn type_in(&self, step: &Step) -> Vec<String> {
        let printed = tempfile::NamedTempFile::new().expect("a file for what is printed");
        let output = |file: &File| Stdio::from(file.try_clone().expect("a second handle"));
        let status = Command::new("/usr/bin/timeout")
            .args(["--foreground", ENDS_WITHIN, "/bin/bash", "-c", &step.command])
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", &self.home)
            .envs([("LC_ALL", "C.UTF-8"), ("TZ", "UTC")])
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.home)
            .stdin(Stdio::null())
            .stdout(output(printed.as_file()))
            .stderr(output(printed.as_file()))
            .status()
            .expect("a shell");
        let look = || self.as_read(&fs::read(printed.path()).expect("what was printed"));
        assert!(status.success(), "{}: {}", step.command, look().join("\n"));
        let begun = Instant::now();
        while step.command.ends_with(" &")
            && !step.is_printed(&look())
            && begun.elapsed() < PRINTS_WITHIN
        {
            std::thread::sleep(LOOK_EVERY);
        }
        look()
    }

    fn as_read(&self, printed: &[u8]) -> Vec<String> {
        let mut text = String::from_utf8_lossy(printed).into_owned();
        for (from, to) in &self.reads_as {
            text = text.replace(from, to);
        }
        text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

/// The lines of a section, or all.
fn range_of(lines: &[&str], section: Option<&str>) -> Range<usize> {
    let Some(section) = section else { return 0..lines.len() };
    let heading = |line: &&str| line.strip_prefix("## ").is_some_and(|name| name == section);
    let start = lines.iter().position(heading).unwrap_or_else(|| panic!("no section {section}"));
    let after = lines[start + 1..].iter().position(|line| line.starts_with("## "));
    start..after.map_or(lines.len(), |after| start + 1 + after)
}

fn steps(lines: &[&str], within: Range<usize>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_going_on = false;
    let mut compared = usize::MAX;
    for at in within {
        let marked = lines[at].strip_prefix(FIRST_LINES.0);
        if let Some(number) = marked.and_then(|rest| rest.strip_suffix(FIRST_LINES.1)) {
            compared = number.parse().expect("a number of lines");
        }
        let Some(line) = lines[at].strip_prefix("    ") else {
            // An empty line is printed where what is printed goes on behind it.
            let next = lines.get(at + 1).and_then(|line| line.strip_prefix("    "));
            is_going_on = is_going_on
                && lines[at].is_empty()
                && next.is_some_and(|next| !next.starts_with("$ "));
            if is_going_on && let Some(step) = steps.last_mut() {
                step.printed.push(String::new());
            }
            continue;
        };
        if let Some(command) = line.strip_prefix("$ ") {
            let printed_at = at + 1..at + 1;
            let command = command.to_owned();
            steps.push(Step { command, printed: Vec::new(), printed_at, compared });
            compared = usize::MAX;
            is_going_on = true;
        } else if is_going_on && let Some(step) = steps.last_mut() {
            match line.strip_prefix("> ").or((line == ">").then_some("")) {
                Some(more) => {
                    step.command.push_str(&format!("\n{more}"));
                    step.printed_at = at + 1..at + 1;
                }
                None => {
                    step.printed.push(line.to_owned());
                    step.printed_at.end = at + 1;
                }
            }
        }
    }
    steps
}

/// Whether what was printed is what the page has.
fn matches(page: &[String], printed: &[String]) -> bool {
    match page.split_first() {
        None => printed.is_empty(),
        Some((any, rest)) if any.trim() == ANY_LINES => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, others)| is_line(line, first) && matches(rest, others)),
    }
}

/// Whether a line is that of the page, of which the end may be left out.
fn is_line(page: &str, printed: &str) -> bool {
    match page.strip_suffix(ANY_LINES) {
        Some(start) => shape(printed).starts_with(shape(start).as_str()),
        None => shape(page) == shape(printed),
    }
}

/// The page with other lines in the place of some; ranges are in their order.
fn renewed(lines: &[&str], changed: Vec<(Range<usize>, Vec<String>)>) -> String {
    let (mut text, mut at) = (String::new(), 0);
    for (range, printed) in changed {
        for line in &lines[at..range.start] {
            text.push_str(&format!("{line}\n"));
        }
        for line in printed {
            text.push_str(format!("    {line}").trim_end());
            text.push('\n');
        }
        at = range.end;
    }
    for line in &lines[at..] {
        text.push_str(&format!("{line}\n"));
    }
    text
}

/// A line without what differs from run to run: of words with digits only their other letters
/// count, and units not at all.
fn shape(line: &str) -> String {
    let units = ["B", "kB", "MB", "GB", "B/s", "kB/s", "MB/s", "GB/s", "ms", "s", "min", "h"];
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        let bare = word.trim_matches(|letter: char| "(),;:".contains(letter));
        let has_digit = word.chars().any(|letter| letter.is_ascii_digit());
        if units.contains(&bare) {
            continue;
        }
        if has_digit {
            // Names of archives and times keep what is no number.
            let digits = |letter: char| letter.is_ascii_hexdigit() || ".:,();".contains(letter);
            let kept: String = word.chars().filter(|letter| !digits(*letter)).collect();
            // A space stands in numbers from a thousand on.
            if !kept.is_empty() || words.last().is_none_or(|last| last != "#") {
                words.push(format!("#{kept}"));
            }
        } else {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# A page

## First

    $ echo \"took 12 ms\"
    took 7 s
    $ cat <<END
    > one
    >
    > 2
    > END
    ...

    3

words

## Second

    $ echo now &
    now
";

    fn reader(home: &Path) -> Reader {
        Reader {
            home: home.to_owned(),
            path: "/usr/bin:/bin".into(),
            environment: Vec::new(),
            reads_as: vec![(home.display().to_string(), "/home/eva".into())],
        }
    }

    fn page(folder: &Path, text: &str) -> PathBuf {
        let page = folder.join("page.md");
        fs::write(&page, text).unwrap();
        page
    }

    #[test]
    fn sections_are_typed_and_numbers_may_differ() {
        let home = tempfile::tempdir().unwrap();
        let page = page(home.path(), PAGE);
        assert_eq!(reader(home.path()).follow(&page, Some("First")), 2);
        assert_eq!(reader(home.path()).follow(&page, Some("Second")), 1);
        assert_eq!(reader(home.path()).follow(&page, None), 3);
    }

    #[test]
    #[should_panic(expected = "echo other prints:\nother\nand the page has:\nthis")]
    fn other_words_are_found() {
        let home = tempfile::tempdir().unwrap();
        let page = page(home.path(), "    $ echo other\n    this\n");
        reader(home.path()).follow(&page, None);
    }

    #[test]
    fn only_the_first_lines_are_compared_where_the_page_says_so() {
        let home = tempfile::tempdir().unwrap();
        let text = "<!-- typed: first 1 lines -->\n    $ seq 3 | tr 3 x\n    1\n    2\n    y\n";
        reader(home.path()).follow(&page(home.path(), text), None);
        let marked = steps(&text.lines().collect::<Vec<_>>(), 0..5);
        let of = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(marked[0].is_printed(&of("7\nz")));
        assert!(!marked[0].is_printed(&of("z\n2")));
    }

    #[test]
    #[should_panic(expected = "false: ")]
    fn a_command_that_fails_is_found() {
        let home = tempfile::tempdir().unwrap();
        let page = page(home.path(), "    $ false\n");
        reader(home.path()).follow(&page, None);
    }

    #[test]
    fn what_was_printed_takes_the_place_of_what_was() {
        let lines: Vec<&str> = PAGE.lines().collect();
        let found = steps(&lines, range_of(&lines, Some("First")));
        let changed = vec![(found[0].printed_at.clone(), vec!["a".to_owned(), "b".to_owned()])];
        let text = renewed(&lines, changed);
        assert_eq!(text, PAGE.replace("    took 7 s\n", "    a\n    b\n"));
    }

    #[test]
    fn lines_that_are_left_out() {
        let of = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let check = |page: &str, printed: &str, expected: bool| {
            assert_eq!(matches(&of(page), &of(printed)), expected, "{page:?} {printed:?}");
        };
        check("a\n...\nb", "a\nx\ny\nb", true);
        check("a\n...\nb", "a\nb", true);
        check("a\n...\nb", "a\nx", false);
        check("...", "", true);
        check("a", "a\nb", false);
        check("", "", true);
        check("read 43.3 MB/s (41 MB/s to 45 MB/s)", "read 143 MB/s (141 kB/s to 1.45 GB/s)", true);
        check("read 3 files", "wrote 3 files", false);
        check("read 946 files", "read 1 021 files", true);
        check("read 3 files...", "read 3 files and more", true);
        check("read 3 files...", "read no files", false);
    }
}
