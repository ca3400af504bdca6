//! Makes names safe to print on a terminal.
//!
//! A file name may hold any byte but `/` and NUL: line ends, escape sequences that clear a screen,
//! bytes that are not UTF-8. The escaped name is one line and stays distinct from other names. The
//! notation is that of the C language, which `printf '%b'` of a shell reads back.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Escapes control characters, backslashes and bytes of `name` that are not UTF-8.
pub fn escape(name: &[u8]) -> String {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\\';
    if name.iter().all(is_plain)
        && let Ok(plain) = std::str::from_utf8(name)
    {
        return plain.to_owned();
    }
    let mut shown = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\n' => shown.push_str("\\n"),
                '\t' => shown.push_str("\\t"),
                '\r' => shown.push_str("\\r"),
                '\\' => shown.push_str("\\\\"),
                hidden if is_hidden(hidden) => {
                    let mut bytes = [0; 4];
                    push_octal(&mut shown, hidden.encode_utf8(&mut bytes).as_bytes());
                }
                plain => shown.push(plain),
            }
        }
        push_octal(&mut shown, chunk.invalid());
    }
    shown
}

/// Escapes a path like [`escape`].
pub fn escape_path(path: &Path) -> String {
    escape(path.as_os_str().as_bytes())
}

/// Escapes the control characters of a sentence, but not its backslashes: a command in the sentence
/// must stay typeable, and the names in it are escaped already.
pub fn escape_controls(sentence: &str) -> String {
    let parts: Vec<String> = sentence.split('\\').map(|part| escape(part.as_bytes())).collect();
    parts.join("\\")
}

/// Text that is safe for standard output and standard error: a terminal obeys only its line ends,
/// its tabs, and what makes our own lines bold and coloured.
///
/// Names are escaped where they are put into a sentence ([`escape`]). This type is the second
/// barrier: every text passes through it, so that a field of a record that no sentence has escaped
/// does no harm either. A hidden character becomes `\\uXXXX`, which is the same text in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printable<'a>(Cow<'a, str>);

impl<'a> Printable<'a> {
    /// Makes printable text of any bytes. Bytes that are not UTF-8 become octal, as in names.
    pub fn of(bytes: &'a [u8]) -> Printable<'a> {
        let own = |text: &str| OWN.iter().any(|code| text.starts_with(code));
        let is_kept = |text: &str| match text.chars().next() {
            Some('\n' | '\t') => true,
            Some('\u{1b}') => own(text),
            Some(character) => !is_hidden(character),
            None => true,
        };
        if let Ok(text) = std::str::from_utf8(bytes)
            && text.char_indices().all(|(at, _)| is_kept(&text[at..]))
        {
            return Printable(Cow::Borrowed(text));
        }
        let mut shown = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            for (at, character) in chunk.valid().char_indices() {
                if is_kept(&chunk.valid()[at..]) {
                    shown.push(character);
                } else {
                    shown.push_str(&format!("\\u{:04x}", u32::from(character)));
                }
            }
            push_octal(&mut shown, chunk.invalid());
        }
        Printable(Cow::Owned(shown))
    }

    /// The bytes to be written.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// What `report::table` sets around lines that stand out: bold, and bold in red, green or yellow.
const OWN: [&str; 5] = ["\x1b[1m", "\x1b[0m", "\x1b[1;31m", "\x1b[1;32m", "\x1b[1;33m"];

/// Control characters, and characters that change the direction of the text behind them. The latter
/// can make one name look like another (Unicode technical report 36, section 2.5).
fn is_hidden(character: char) -> bool {
    let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(character, '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}');
    character.is_control() || turns
}

fn push_octal(shown: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|byte| shown.push_str(&format!("\\{byte:03o}")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The reverse of `escape`, for the test.
    fn unescape(shown: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = shown.bytes();
        while let Some(byte) = rest.next() {
            if byte != b'\\' {
                bytes.push(byte);
                continue;
            }
            match rest.next().unwrap() {
                b'n' => bytes.push(b'\n'),
                b't' => bytes.push(b'\t'),
                b'r' => bytes.push(b'\r'),
                b'\\' => bytes.push(b'\\'),
                first => {
                    let digits = [first, rest.next().unwrap(), rest.next().unwrap()];
                    let octal = std::str::from_utf8(&digits).unwrap();
                    bytes.push(u8::from_str_radix(octal, 8).unwrap());
                }
            }
        }
        bytes
    }

    #[test]
    fn a_sentence_keeps_its_backslashes_and_nothing_that_a_terminal_obeys() {
        assert_eq!(escape_controls(r"sed 's/\./x/'"), r"sed 's/\./x/'");
        assert_eq!(escape_controls("a\u{1b}[2Jb\n"), r"a\033[2Jb\n");
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        assert_eq!(escape(b"a\x1b[2Jb\n\xff"), "a\\033[2Jb\\n\\377");
        assert_eq!(escape("grün ☂".as_bytes()), "grün ☂");
        assert_eq!(escape("a\u{202e}b".as_bytes()), "a\\342\\200\\256b");
    }

    #[test]
    fn nothing_that_is_printed_is_obeyed_but_our_own_bold() {
        let check = |text: &[u8], expected: &str| {
            assert_eq!(Printable::of(text).as_bytes(), expected.as_bytes(), "{text:?}");
        };
        check(b"\x1b[1mhead\x1b[0m\n\ta \\n", "\x1b[1mhead\x1b[0m\n\ta \\n");
        check(b"\x1b[2J\x1b]0;title\x07\r", "\\u001b[2J\\u001b]0;title\\u0007\\u000d");
        check("\u{9b}2J\u{202e}\x7f".as_bytes(), "\\u009b2J\\u202e\\u007f");
        check(b"\x1b[1\xff", "\\u001b[1\\377");
        let document = serde_json::json!({ "a": "\u{9b}\u{202e}\x1b\n" });
        let printed = document.to_string();
        let printed = Printable::of(printed.as_bytes());
        let read: serde_json::Value = serde_json::from_slice(printed.as_bytes()).unwrap();
        assert_eq!(read, document);
    }

    proptest! {
        #[test]
        fn names_stay_apart_and_in_one_line(name in proptest::collection::vec(any::<u8>(), 0..64)) {
            let shown = escape(&name);
            prop_assert!(!shown.chars().any(char::is_control));
            prop_assert_eq!(unescape(&shown), name);
        }
    }
}
