//! As much of Rust's grammar as the rules need: what is code, and where functions start and end.
//!
//! The rules need no parser: comments, strings and braces are enough to count the lines of a
//! function. Macros that build functions are not expanded.

/// One function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Line of the word `fn`, from 1.
    pub line: usize,
    /// Lines from there to the closing brace, both included.
    pub lines: usize,
    /// Whether it is `pub` in any form.
    pub is_public: bool,
    /// The text between the parentheses.
    pub parameters: String,
}

/// The source with comments, strings and characters replaced by spaces; line numbers stay the same.
pub fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut code = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'\'' => character_end(bytes, at),
            b'r' | b'b' | b'c' if !follows_word(bytes, at) => prefixed_string_end(bytes, at),
            _ => at,
        };
        if end == at {
            code.push(bytes[at]);
            at += 1;
        } else {
            let blanked =
                bytes[at..end].iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' });
            code.extend(blanked);
            at = end;
        }
    }
    // Outside comments and strings Rust is ASCII except for rare names, which do not matter here.
    String::from_utf8_lossy(&code).into_owned()
}

/// All functions with bodies, nested ones too, in the order of their first lines.
pub fn functions(code: &str) -> Vec<Function> {
    let bytes = code.as_bytes();
    words(code, "fn").filter_map(|start| function_at(bytes, start)).collect()
}

/// Places where `word` stands on its own.
pub fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(start, _)| start).filter(move |&start| {
        let end = start + word.len();
        !follows_word(bytes, start) && !bytes.get(end).copied().is_some_and(is_word)
    })
}

/// Line of a byte, from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count()
}

fn function_at(bytes: &[u8], start: usize) -> Option<Function> {
    let name_start = skip_spaces(bytes, start + 2);
    let name_end = bytes[name_start..].iter().position(|byte| !is_word(*byte))? + name_start;
    if name_end == name_start {
        // A function pointer type: `fn(u8)`.
        return None;
    }
    let open = bytes[name_end..].iter().position(|byte| *byte == b'(')? + name_end;
    let close = matching(bytes, open)?;
    let body = body_start(bytes, close + 1)?;
    let end = matching(bytes, body)?;
    let text = |range: &[u8]| String::from_utf8_lossy(range).into_owned();
    let line_start = bytes[..start].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let before = text(&bytes[line_start..start]);
    let newlines = |range: &[u8]| range.iter().filter(|byte| **byte == b'\n').count();
    Some(Function {
        name: text(&bytes[name_start..name_end]),
        line: 1 + newlines(&bytes[..start]),
        lines: 1 + newlines(&bytes[start..end]),
        is_public: words(&before, "pub").next().is_some(),
        parameters: text(&bytes[open + 1..close]),
    })
}

/// The brace that opens a body, or none when a semicolon ends the signature first.
fn body_start(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'{' => return Some(at),
            b';' => return None,
            b'(' | b'[' => at = matching(bytes, at)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The bracket that closes the one at `open`.
fn matching(bytes: &[u8], open: usize) -> Option<usize> {
    let (opening, closing) = match bytes[open] {
        b'{' => (b'{', b'}'),
        b'[' => (b'[', b']'),
        _ => (b'(', b')'),
    };
    let mut depth = 0usize;
    for (offset, byte) in bytes[open..].iter().enumerate() {
        if *byte == opening {
            depth += 1;
        } else if *byte == closing {
            depth -= 1;
            if depth == 0 {
                return Some(open + offset);
            }
        }
    }
    None
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

/// Block comments nest.
fn comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0usize);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// End of the string whose quote stands at `quote`.
fn string_end(bytes: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// End of a string with a prefix such as `r#"` or `b"`; `at` itself if there is none.
fn prefixed_string_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let letters = rest.iter().take(2).take_while(|byte| b"rbc".contains(byte)).count();
    let is_raw = rest[..letters].contains(&b'r');
    let hashes = rest[letters..].iter().take_while(|byte| **byte == b'#').count();
    let quote = letters + hashes;
    if rest.get(quote) != Some(&b'"') || (hashes > 0 && !is_raw) {
        return at;
    }
    if !is_raw {
        return string_end(bytes, at + quote);
    }
    let closing = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
    let from = at + quote + 1;
    let length = bytes[from..].windows(closing.len()).position(|window| window == closing);
    length.map_or(bytes.len(), |length| from + length + closing.len())
}

/// End of the character whose quote stands at `quote`; `quote` itself if it opens a lifetime.
fn character_end(bytes: &[u8], quote: usize) -> usize {
    if bytes.get(quote + 1) == Some(&b'\\') {
        let closing = bytes.get(quote + 3..).and_then(|rest| rest.iter().position(|b| *b == b'\''));
        return closing.map_or(quote, |length| quote + 3 + length + 1);
    }
    // A character is at most four bytes of UTF-8.
    let window = bytes.get(quote + 2..bytes.len().min(quote + 6)).unwrap_or(&[]);
    match window.iter().position(|byte| *byte == b'\'') {
        Some(0) => quote + 3,
        Some(length) if bytes[quote + 1] >= 0x80 => quote + 2 + length + 1,
        _ => quote,
    }
}

fn skip_spaces(bytes: &[u8], from: usize) -> usize {
    let spaces = bytes[from..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    from + spaces
}

fn follows_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_word(bytes[at - 1])
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_are_blanked() {
        for (source, code) in [
            ("a // fn\nb", "a      \nb"),
            ("a /* { /* } */ { */ b", "a                   b"),
            (r#"a("fn { \" {") b"#, r"a(           ) b"),
            (r###"a(r#"{"fn"#) b"###, r"a(         ) b"),
            ("m == '{' || c", "m ==     || c"),
            (r"m == '\'' || '\u{7b}' == c", r"m ==      ||          == c"),
            ("m == '\"' || c == 'ü' { }", "m ==     || c ==      { }"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("for r in bar", "for r in bar"),
        ] {
            assert_eq!(code_only(source), code, "{source}");
        }
    }

    #[test]
    fn functions_are_found_with_their_lines() {
        let source = "\
pub(crate) fn first(a: [u8; 2], on: bool) -> Vec<[u8; 2]>
where
    T: Fn(),
{
    let text = \"}\";
    fn inner() { }
}

trait Shape { fn area(&self) -> f64; }
type Pointer = fn(u8) -> u8;
fn last() {}
";
        let found = functions(&code_only(source));
        let short: Vec<_> =
            found.iter().map(|f| (f.name.as_str(), f.line, f.lines, f.is_public)).collect();
        let expected = [("first", 1, 7, true), ("inner", 6, 1, false), ("last", 11, 1, false)];
        assert_eq!(short, expected);
        assert_eq!(found[0].parameters, "a: [u8; 2], on: bool");
    }

    #[test]
    fn words_stand_alone() {
        let text = "unsafe_code unsafe xunsafe (unsafe)";
        assert_eq!(words(text, "unsafe").collect::<Vec<_>>(), [12, 28]);
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }
}
