//! The rate limit of a program, from its command line.
//!
//! A program with a rate limit catches up after it had to wait: its sleeping time does not show how
//! long it would take undisturbed, but the limit does. The programs here keep an average by the
//! clock. Samples cannot show the pace of any other program that sleeps.

/// A program with a rate limit, and the options that set it.
struct Holder {
    program: &'static str,
    long: &'static [&'static str],
    letters: &'static [char],
    /// Other letters that take a value, in the same word or in the next.
    valued: &'static [char],
}

const HOLDERS: [Holder; 3] = [
    Holder {
        program: "pv",
        long: &["--rate-limit"],
        letters: &['L'],
        valued: &['D', 's', 'i', 'w', 'H', 'N', 'F', 'R', 'P', 'd', 'B', 'E'],
    },
    Holder {
        program: "mbuffer",
        long: &[],
        letters: &['r', 'R'],
        valued: &['i', 'o', 'I', 'O', 'b', 's', 'm', 'n', 'P', 'p', 'T', 'l', 'u', 'a', 'v', 'A'],
    },
    Holder { program: "takeup", long: &["--rate-limit"], letters: &[], valued: &[] },
];

/// The rate limit of a command line in bytes per second, if it has one and the program is known.
///
/// ```text
/// pv -qL 10m     ->  10485760
/// gzip -1        ->  nothing
/// ```
pub fn declared(words: &[String]) -> Option<f64> {
    let holder = holder(words.first()?)?;
    let at = place(holder, words.get(1..)?)?;
    rate(&at.value(&words[1..])?)
}

/// A stage, as typed, without the rate limit of a program in it; `None` where it is not clear which
/// words to remove.
pub fn without_rate(typed: &str) -> Option<String> {
    // Words cannot be changed safely within quotes.
    if typed.contains(['"', '\'', '\\', '`', '$']) {
        return None;
    }
    let spaced = typed.replace('(', " ( ").replace(')', " ) ").replace('|', " | ");
    let words: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();
    let starts = |at: &usize| *at == 0 || matches!(words[*at - 1].as_str(), "|" | "(" | "{");
    let mut found = None;
    for start in (0..words.len()).filter(starts) {
        let Some(holder) = holder(&words[start]) else { continue };
        let length = words[start..].iter().position(|it| matches!(it.as_str(), "|" | ")" | "}"));
        let end = start + length.unwrap_or(words.len() - start);
        let Some(place) = place(holder, &words[start + 1..end]) else { continue };
        if found.replace((start + 1, place)).is_some() {
            return None;
        }
    }
    let (start, place) = found?;
    let mut kept = words;
    if place.is_next {
        kept.remove(start + place.word + 1);
    }
    let word = &mut kept[start + place.word];
    *word = word[..place.rest].to_owned();
    if word.is_empty() || *word == "-" {
        kept.remove(start + place.word);
    }
    Some(kept.join(" ").replace("( ", "(").replace(" )", ")"))
}

fn holder(word: &str) -> Option<&'static Holder> {
    let program = word.rsplit('/').next()?;
    HOLDERS.iter().find(|holder| holder.program == program)
}

/// Where the rate limit is on the command line.
struct OptionPlace {
    /// Index of its word.
    word: usize,
    /// Bytes of that word before the option.
    rest: usize,
    /// Byte offset of its value in that word.
    value: usize,
    /// The value is the next word.
    is_next: bool,
}

impl OptionPlace {
    fn value(&self, words: &[String]) -> Option<String> {
        if self.is_next {
            words.get(self.word + 1).cloned()
        } else {
            Some(words[self.word][self.value..].to_owned())
        }
    }
}

fn place(holder: &Holder, words: &[String]) -> Option<OptionPlace> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if word == "--" {
            return None;
        }
        if word.starts_with("--") {
            for long in holder.long {
                let Some(rest) = word.strip_prefix(long) else { continue };
                let (value, is_next) = (long.len() + 1, rest.is_empty());
                if is_next || rest.starts_with('=') {
                    return Some(OptionPlace { word: at, rest: 0, value, is_next });
                }
            }
        } else if let Some(letters) = word.strip_prefix('-') {
            for (place, letter) in letters.char_indices() {
                let value = 1 + place + letter.len_utf8();
                let is_next = value == word.len();
                if holder.letters.contains(&letter) {
                    return Some(OptionPlace { word: at, rest: 1 + place, value, is_next });
                }
                if holder.valued.contains(&letter) {
                    at += usize::from(is_next);
                    break;
                }
            }
        }
        at += 1;
    }
    None
}

/// A rate as these programs read it: `k`, `m` and `g` are powers of 1024.
fn rate(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: f64 = digits.parse().ok()?;
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1_048_576.0,
        "g" | "gib" => 1_073_741_824.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        _ => return None,
    };
    (number > 0.0).then_some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_from_the_words() {
        let check = |typed: &str, expected: Option<f64>| {
            let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
            assert_eq!(declared(&words), expected, "{typed}");
        };
        check("pv -qL 10m", Some(10.0 * 1_048_576.0));
        check("/usr/bin/pv -q -L16k", Some(16384.0));
        check("pv --rate-limit=1.5M -q", Some(1.5 * 1_048_576.0));
        check("pv --rate-limit 300", Some(300.0));
        // The name of a pane, not a rate.
        check("pv -N L -q", None);
        check("pv -q", None);
        check("mbuffer -q -m 64M -R 5M", Some(5.0 * 1_048_576.0));
        check("takeup pipe --from /dev/zero --rate-limit 8M", Some(8.0 * 1_048_576.0));
        check("gzip -L 10m", None);
        check("pv -L", None);
        check("pv -L nonsense", None);
    }

    #[test]
    fn the_rate_is_left_out_of_the_line() {
        let check = |typed: &str, expected: Option<&str>| {
            assert_eq!(without_rate(typed).as_deref(), expected, "{typed}");
        };
        check("pv -qL 10m", Some("pv -q"));
        check("pv -L 10m -q", Some("pv -q"));
        check("pv --rate-limit=10m -q", Some("pv -q"));
        check("(head -c 40M r | pv -qL10m)", Some("(head -c 40M r | pv -q)"));
        check("mbuffer -q -R 5M -m 64M > x", Some("mbuffer -q -m 64M > x"));
        check("pv -q", None);
        check("pv -L 1m | pv -L 2m", None);
        check("echo 'pv -L 3m' | sh", None);
    }

    proptest::proptest! {
        #[test]
        fn no_words_panic(typed in r"(pv|mbuffer|takeup|[a-zL=é 0-9()|-]{0,6}| ){0,12}") {
            let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
            let _ = (declared(&words), without_rate(&typed));
        }
    }
}
