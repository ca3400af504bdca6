//! The words of a stage, as the shell would make them.

/// A stage's words, and the files of its redirections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    pub words: Vec<String>,
    /// The file of `<`.
    pub from: Option<String>,
    /// The file of `>` or `>>`.
    pub to: Option<String>,
    /// It is that of `>>`, and keeps what it has.
    pub appends: bool,
}

/// The words of a stage; `None` where only a shell would know them: variables, patterns, commands
/// within.
pub fn words(stage: &str) -> Option<Words> {
    let mut read = Words::default();
    let mut letters = stage.chars().peekable();
    let mut place = Place::Word;
    loop {
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        let Some(&letter) = letters.peek() else { break };
        if letter == '<' || letter == '>' {
            letters.next();
            if letters.next_if_eq(&'>').is_some() {
                read.appends = true;
            } else {
                letters.next_if_eq(&'|');
            }
            if letters.peek() == Some(&'&') || letters.peek() == Some(&'<') {
                return None;
            }
            place = if letter == '<' { Place::From } else { Place::To };
            continue;
        }
        let word = word(&mut letters)?;
        // `2>&1` and `2>/dev/null` are for messages.
        if word == "2" && letters.peek() == Some(&'>') {
            letters.next();
            letters.next_if_eq(&'>');
            while letters.next_if(|letter| letter.is_whitespace() || *letter == '&').is_some() {}
            self::word(&mut letters)?;
            continue;
        }
        match std::mem::replace(&mut place, Place::Word) {
            // `1>` is `>`.
            Place::Word if word == "1" && letters.peek() == Some(&'>') => {}
            Place::Word => read.words.push(word),
            Place::From => read.from = Some(word),
            Place::To => read.to = Some(word),
        }
    }
    (place == Place::Word).then_some(read)
}

/// What the next word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Word,
    From,
    To,
}

/// Letters that make the shell change a word.
const CHANGED: &str = "$`*?[(){}&;#~";

fn word(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let mut word = String::new();
    while let Some(&letter) = letters.peek() {
        match letter {
            letter if letter.is_whitespace() => break,
            '<' | '>' => break,
            '\'' => {
                letters.next();
                loop {
                    match letters.next()? {
                        '\'' => break,
                        letter => word.push(letter),
                    }
                }
                continue;
            }
            '"' => {
                letters.next();
                loop {
                    match letters.next()? {
                        '"' => break,
                        '$' | '`' => return None,
                        // Elsewhere within these quotes it stands for itself.
                        '\\' => match letters.next()? {
                            kept @ ('"' | '\\' | '$' | '`') => word.push(kept),
                            other => word.extend(['\\', other]),
                        },
                        letter => word.push(letter),
                    }
                }
                continue;
            }
            '\\' => {
                letters.next();
                word.push(letters.next()?);
                continue;
            }
            // Within a word some of these mean nothing: `a#b`, `a~`.
            '#' | '~' if !word.is_empty() => word.push(letter),
            letter if CHANGED.contains(letter) => return None,
            letter => word.push(letter),
        }
        letters.next();
    }
    Some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_shell() {
        let check = |stage: &str, expected: &[&str], to: Option<&str>| {
            let read = words(stage).unwrap();
            assert_eq!(read.words, expected, "{stage}");
            assert_eq!(read.to.as_deref(), to, "{stage}");
        };
        check("tar cf - 'a b' \"c d\" e\\ f", &["tar", "cf", "-", "a b", "c d", "e f"], None);
        check("gzip -c >/dev/nst0 2>/dev/null", &["gzip", "-c"], Some("/dev/nst0"));
        check("gzip -c 2>&1 1>x", &["gzip", "-c"], Some("x"));
        check("a >> x", &["a"], Some("x"));
        assert!(words("a >> x").unwrap().appends && !words("a > x 2>> y").unwrap().appends);
        check("a x2 2> y", &["a", "x2"], None);
        assert_eq!(words("a < b").unwrap().from.as_deref(), Some("b"));
        for stage in ["a $b", "a *.c", "(a)", "a >", "a 'b", "a `b`", "a ~/b"] {
            assert_eq!(words(stage), None, "{stage}");
        }
    }
}
