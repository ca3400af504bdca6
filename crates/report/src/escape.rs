//! Names as the terminal may see them.
//!
//! A file name may hold any byte but `/` and NUL: line ends, escape sequences that clear a screen,
//! bytes that are no UTF-8. What is shown is one line and can be told from other names; it is the
//! notation of the C language, which `printf '%b'` of a shell reads back.

/// `name` with control characters, backslashes and whatever is no UTF-8 escaped.
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

/// A sentence with control characters escaped. What it has of backslashes stays as it is: a command
/// in it is to be typed, and where a name stands in it, it has been escaped before.
pub fn escape_controls(sentence: &str) -> String {
    let parts: Vec<String> = sentence.split('\\').map(|part| escape(part.as_bytes())).collect();
    parts.join("\\")
}

/// Control characters, and those that change the direction of what follows, with which one name
/// can be made to look like another (Unicode technical report 36, section 2.5).
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

    /// The reverse, for the test alone.
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

    proptest! {
        #[test]
        fn names_stay_apart_and_in_one_line(name in proptest::collection::vec(any::<u8>(), 0..64)) {
            let shown = escape(&name);
            prop_assert!(!shown.chars().any(char::is_control));
            prop_assert_eq!(unescape(&shown), name);
        }
    }
}
