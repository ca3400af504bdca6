//! Splits a pipeline as you type it into stages, and changes one of them.
//!
//! It knows as much of the shell's grammar as it takes to find the bars between stages: quotes,
//! escapes and everything in brackets belong to their stage. A line that is more than one pipeline
//! is not split.

pub mod blocks;

/// The stages of a line that is one pipeline; `None` where it is something else.
///
/// ```
/// use pipeline::line::stages;
///
/// assert_eq!(stages("tar cf - 'a|b' | gzip -c").unwrap(), ["tar cf - 'a|b'", "gzip -c"]);
/// assert_eq!(stages("make && tar cf - . | gzip"), None);
/// ```
pub fn stages(line: &str) -> Option<Vec<String>> {
    let mut found = vec![String::new()];
    for (letter, is_plain, before, after) in Letters::of(line)? {
        match letter {
            '|' if is_plain
                && (after == Some('|') || after == Some('&') || before == Some('|')) =>
            {
                return None;
            }
            // Not the bar of `>|`, and below not the `&` of `2>&1` and `&>`.
            '|' if is_plain && before != Some('>') => {
                found.push(String::new());
                continue;
            }
            '&' if is_plain && before != Some('>') && after != Some('>') => return None,
            // Joining the stages of a continued line would change its meaning.
            '\n' => return None,
            ';' | '#' if is_plain && !(letter == '#' && before.is_some_and(is_word)) => {
                return None;
            }
            _ => {}
        }
        found.last_mut()?.push(letter);
    }
    let found: Vec<String> = found.iter().map(|stage| stage.trim().to_owned()).collect();
    found.iter().all(|stage| !stage.is_empty()).then_some(found)
}

fn is_word(letter: char) -> bool {
    !letter.is_whitespace()
}

/// Splits a stage into its command and its redirection of standard output (with the `>`), if it
/// ends with one.
pub fn redirection(stage: &str) -> Option<(&str, &str)> {
    let mut place = None;
    let mut at = 0;
    for (letter, is_plain, before, _) in Letters::of(stage)? {
        let is_output = before.is_none_or(char::is_whitespace) || before == Some('1');
        if letter == '>' && is_plain && is_output && place.is_none() {
            place = Some(if before == Some('1') { at - 1 } else { at });
        }
        at += letter.len_utf8();
    }
    let (command, redirected) = stage.split_at(place?);
    let target = redirected.trim_start_matches(['1', '>']).trim();
    // More words after the target would be arguments of the command.
    let is_one = !target.is_empty() && !target.contains(char::is_whitespace);
    (is_one && !target.starts_with('&')).then(|| (command.trim(), redirected.trim()))
}

/// Letters, each with whether the shell gives it a special meaning, and its neighbours.
struct Letters {
    all: Vec<(char, bool)>,
    at: usize,
}

impl Letters {
    /// `None` for a line with an open quote or bracket.
    fn of(line: &str) -> Option<Letters> {
        let mut all = Vec::new();
        // Open quotes and brackets, the innermost last.
        let mut open: Vec<char> = Vec::new();
        let mut is_escaped = false;
        for letter in line.chars() {
            let inner = open.last().copied();
            let is_plain = open.is_empty() && !is_escaped;
            if is_escaped {
                is_escaped = false;
                all.push((letter, false));
                continue;
            }
            match (inner, letter) {
                (Some('\''), '\'') | (Some('"'), '"') | (Some('`'), '`') | (Some(')'), ')') => {
                    open.pop();
                }
                (Some('}'), '}') => drop(open.pop()),
                (Some('\''), _) => {}
                (_, '\\') => is_escaped = true,
                (_, '\'') if inner != Some('"') => open.push('\''),
                (_, '"') => open.push('"'),
                (_, '`') => open.push('`'),
                (_, '(') => open.push(')'),
                (_, '{') => open.push('}'),
                _ => {}
            }
            all.push((letter, is_plain && open.is_empty()));
        }
        (open.is_empty() && !is_escaped).then_some(Letters { all, at: 0 })
    }
}

impl Iterator for Letters {
    type Item = (char, bool, Option<char>, Option<char>);

    fn next(&mut self) -> Option<Self::Item> {
        let &(letter, is_plain) = self.all.get(self.at)?;
        let before = self.at.checked_sub(1).map(|at| self.all[at].0);
        let after = self.all.get(self.at + 1).map(|it| it.0);
        self.at += 1;
        Some((letter, is_plain, before, after))
    }
}

/// The line with a buffer before its last write: it replaces a `dd` that only collects blocks, else
/// it follows the last stage and takes over its redirection or target.
pub fn buffered(stages: &[String]) -> Option<String> {
    let (last, first) = stages.split_last()?;
    let (command, target) = match redirection(last) {
        Some((command, target)) => (command, format!(" {target}")),
        None => (last.as_str(), String::new()),
    };
    let mut all: Vec<String> = first.to_vec();
    let buffer = match dd(command) {
        Some(dd) => {
            match dd.from {
                // This `dd` reads a file itself: another `dd` reads it into the buffer.
                Some(from) => all.push(format!("dd bs=1M if={from}")),
                None if first.is_empty() => return None,
                None => {}
            }
            // Earlier `dd` that were meant as buffers go as well.
            while all.len() > 1 && all.last().and_then(|it| self::dd(it)).is_some_and(Dd::is_filter)
            {
                all.pop();
            }
            if dd.to.is_none() && target.is_empty() {
                return None;
            }
            let to = dd.to.map_or(String::new(), |to| format!(" --overwrite --to {to}"));
            format!("takeup pipe --block-size {}{to}", dd.block.unwrap_or("512k"))
        }
        None if target.is_empty() => {
            let (command, to) = to_standard_output(command)?;
            all.push(command);
            format!("takeup pipe --block-size 512k --overwrite --to {to}")
        }
        None => {
            all.push(command.to_owned());
            "takeup pipe --block-size 512k".to_owned()
        }
    };
    all.push(buffer + &target);
    Some(all.join(" | "))
}

/// A tar that opens its archive itself, changed to write to standard output, and the archive's
/// path.
fn to_standard_output(command: &str) -> Option<(String, String)> {
    if command.contains(['"', '\'', '\\', '`', '$', '(', '{']) {
        return None;
    }
    let mut words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    if words.first()?.rsplit('/').next() != Some("tar") {
        return None;
    }
    // The word that ends in `f` and has no other letter that takes a value.
    let takes = |letter: char| "bCTXIgHLNVKF".contains(letter);
    let is_file = |(at, word): (usize, &String)| {
        let letters = word.strip_prefix('-').or((at == 1).then_some(word.as_str()));
        let letters = letters.and_then(|letters| letters.strip_suffix('f'));
        letters.is_some_and(|it| !it.contains(takes) && !it.contains('-') && !it.contains('/'))
    };
    let at = words.iter().enumerate().skip(1).find(|it| is_file(*it))?.0 + 1;
    let target = std::mem::replace(words.get_mut(at)?, "-".to_owned());
    (target != "-" && !target.starts_with('-')).then(|| (words.join(" "), target))
}

/// The line with a buffer of that size after one of its stages.
pub fn buffered_behind(stages: &[String], at: usize, ring: &str) -> Option<String> {
    let mut all = stages.to_vec();
    if at + 1 >= all.len() || redirection(&all[at]).is_some() {
        return None;
    }
    all.insert(at + 1, format!("takeup pipe --ring {ring}"));
    Some(all.join(" | "))
}

/// The line with one stage replaced.
pub fn with_stage(stages: &[String], at: usize, stage: String) -> Option<String> {
    let mut all = stages.to_vec();
    *all.get_mut(at)? = stage;
    Some(all.join(" | "))
}

/// The line with one stage's program replaced; its options stay.
pub fn with_program(stages: &[String], at: usize, program: &str) -> Option<String> {
    let stage = stages.get(at)?;
    let end = stage.find(char::is_whitespace).unwrap_or(stage.len());
    let mut all = stages.to_vec();
    all[at] = format!("{program}{}", &stage[end..]);
    Some(all.join(" | "))
}

/// The line without its last stage; the output is discarded.
pub fn without_last(stages: &[String]) -> Option<String> {
    let (_, first) = stages.split_last()?;
    // `cat` hides /dev/null: a program that writes to it directly may skip its work.
    (!first.is_empty()).then(|| format!("{} | cat >/dev/null", first.join(" | ")))
}

/// A `dd` that only collects blocks.
#[derive(Clone, Copy)]
struct Dd<'a> {
    block: Option<&'a str>,
    from: Option<&'a str>,
    to: Option<&'a str>,
}

impl Dd<'_> {
    /// Whether it reads standard input and writes standard output.
    fn is_filter(self) -> bool {
        self.from.is_none() && self.to.is_none()
    }
}

fn dd(command: &str) -> Option<Dd<'_>> {
    let mut words = command.split_whitespace();
    if words.next()?.rsplit('/').next() != Some("dd") {
        return None;
    }
    let mut found = Dd { block: None, from: None, to: None };
    for word in words {
        match word.split_once('=')? {
            ("bs" | "obs", size) if is_size(size) => found.block = Some(size),
            ("ibs" | "status", _) | ("iflag", "fullblock") => {}
            ("if", path) => found.from = Some(path),
            ("of", path) => found.to = Some(path),
            _ => return None,
        }
    }
    Some(found)
}

/// Whether dd and takeup read a size alike: dd's `b`, `w`, `x` and `kB` differ.
fn is_size(text: &str) -> bool {
    let digits = text.trim_end_matches(['k', 'K', 'M', 'G']);
    let unit = text.len() - digits.len();
    let number: Option<u64> = digits.parse().ok();
    number.is_some_and(|number| {
        number > 0 && (unit == 1 || (unit == 0 && number.is_multiple_of(512)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<String> {
        stages(line).unwrap()
    }

    #[test]
    fn bars_between_stages_are_found_and_no_others() {
        let check = |line: &str, expected: &[&str]| assert_eq!(split(line), expected, "{line}");
        check("a | b|c", &["a", "b", "c"]);
        check(r#"a "x|y" \| | b 'p|q'"#, &[r#"a "x|y" \|"#, "b 'p|q'"]);
        check("(a | b) 2>&1 | c", &["(a | b) 2>&1", "c"]);
        check("a $(b | c) | { d | e; }", &["a $(b | c)", "{ d | e; }"]);
        check("a >| file", &["a >| file"]);
        check("a 2>&1 x#y | b", &["a 2>&1 x#y", "b"]);
        for line in [
            "a; b",
            "a && b",
            "a || b",
            "a &",
            "a |& b",
            "a 'b",
            "a |",
            "",
            "a # b",
            "a \\",
            "a \\\n | b",
        ] {
            assert_eq!(stages(line), None, "{line}");
        }
    }

    #[test]
    fn where_standard_output_goes_is_told_apart() {
        assert_eq!(redirection("gzip -c > /dev/nst0"), Some(("gzip -c", "> /dev/nst0")));
        assert_eq!(redirection("gzip -c 1>x"), Some(("gzip -c", "1>x")));
        assert_eq!(redirection("gzip 2>/dev/null >> x"), Some(("gzip 2>/dev/null", ">> x")));
        for stage in ["gzip -c", "gzip 2> x", "echo '>' a", "gzip >&2", "> x gzip -c"] {
            assert_eq!(redirection(stage), None, "{stage}");
        }
    }

    #[test]
    fn a_buffer_takes_the_place_of_a_dd_or_the_redirection() {
        let check = |line: &str, expected: &str| {
            assert_eq!(buffered(&split(line)).as_deref(), Some(expected), "{line}");
        };
        check(
            "tar cf - a | gzip | dd obs=512k of=/dev/nst0",
            "tar cf - a | gzip | takeup pipe --block-size 512k --overwrite --to /dev/nst0",
        );
        check(
            "tar cf - a | dd obs=64k > /dev/nst0",
            "tar cf - a | takeup pipe --block-size 64k > /dev/nst0",
        );
        check(
            "tar cf - a | dd obs=512k | dd obs=512k > /dev/nst0",
            "tar cf - a | takeup pipe --block-size 512k > /dev/nst0",
        );
        check(
            "dd if=a bs=64k | dd bs=64k iflag=fullblock of=b",
            "dd if=a bs=64k | takeup pipe --block-size 64k --overwrite --to b",
        );
        check(
            "dd if=a of=/dev/nst0 bs=10k",
            "dd bs=1M if=a | takeup pipe --block-size 10k --overwrite --to /dev/nst0",
        );
        check(
            "tar cf /dev/nst0 a",
            "tar cf - a | takeup pipe --block-size 512k --overwrite --to /dev/nst0",
        );
        check(
            "tar -C /srv -cf /dev/nst0 a",
            "tar -C /srv -cf - a | takeup pipe --block-size 512k --overwrite --to /dev/nst0",
        );
        assert_eq!(buffered(&split("tar -cf 'a b' c")), None);
        assert_eq!(buffered(&split("tar cbf 20 /dev/nst0 a")), None);
        check("tar cf - a > x", "tar cf - a | takeup pipe --block-size 512k > x");
        // What else a dd does, and a program that opens its target itself, stay.
        assert_eq!(buffered(&split("a | dd bs=1M conv=sync of=x")), None);
        assert_eq!(buffered(&split("a | dd bs=64k")), None);
        assert_eq!(buffered(&split("a | dd bs=2b of=x")), None);
    }

    #[test]
    fn a_stage_is_changed_or_left_out() {
        let line = split("tar cf - a | gzip -c | dd of=x");
        let expected = "tar cf - a | pigz -c | dd of=x";
        assert_eq!(with_program(&line, 1, "pigz").as_deref(), Some(expected));
        assert_eq!(with_program(&line, 9, "pigz"), None);
        let expected = "tar cf - a | gzip -c | cat >/dev/null";
        assert_eq!(without_last(&line).as_deref(), Some(expected));
        assert_eq!(without_last(&split("a")), None);
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in r#"[a-z |&;<>'"\\(){}$`#12=]{0,40}"#) {
            if let Some(stages) = stages(&line) {
                let _ = (buffered(&stages), without_last(&stages), with_program(&stages, 0, "x"));
                proptest::prop_assert!(stages.iter().all(|stage| !stage.is_empty()));
            }
        }
    }
}
