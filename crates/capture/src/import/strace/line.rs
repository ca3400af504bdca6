//! One line of `strace` in its parts. Strings, structures and names of descriptors may hold
//! anything, so that no comma and no bracket counts that stands within them.

use super::super::super::operation::FileKind;

/// A line without its process and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A whole call: name, and what stands behind its opening bracket.
    Call(&'a str, &'a str),
    /// The beginning of one: name, and arguments so far.
    Unfinished(&'a str, &'a str),
    /// The end of one: name, and the rest.
    Resumed(&'a str, &'a str),
    /// The process is gone.
    Exited,
    /// A signal, or a word of strace itself.
    Other,
}

/// What a line says; `None` if nothing that is understood.
pub fn line(text: &str) -> Option<Line<'_>> {
    if text.starts_with("+++ ") {
        let is_end = text.starts_with("+++ exited") || text.starts_with("+++ killed");
        return Some(if is_end { Line::Exited } else { Line::Other });
    }
    if text.starts_with("--- ") || text.starts_with("strace: ") {
        return Some(Line::Other);
    }
    if let Some(rest) = text.strip_prefix("<... ") {
        let (name, rest) = rest.split_once(" resumed>")?;
        return Some(Line::Resumed(name, rest));
    }
    let (name, rest) = text.split_once('(')?;
    let is_name = |it: &str| it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    if name.is_empty() || !is_name(name) {
        return None;
    }
    match rest.strip_suffix("<unfinished ...>") {
        Some(arguments) => Some(Line::Unfinished(name, arguments)),
        None => Some(Line::Call(name, rest)),
    }
}

/// Brackets within one another that are followed; strace itself goes not half as deep.
const DEPTH_MAX: usize = 64;

/// The arguments of a call, and what stands behind its closing bracket; `None` if that is missing.
pub fn arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let (parts, end) = parts(text, b')');
    let end = end?;
    Some((parts, &text[end + 1..]))
}

/// The arguments of a call whose line ends before its closing bracket.
pub fn parts_so_far(text: &str) -> (Vec<&str>, Option<usize>) {
    parts(text, b')')
}

/// Elements of an array or fields of a structure, without its own brackets.
pub fn elements(text: &str) -> Vec<&str> {
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
    parts(inner, 0).0
}

/// What commas part until `end`, and where that is.
fn parts(text: &str, end: u8) -> (Vec<&str>, Option<usize>) {
    let bytes = text.as_bytes();
    let (mut parts, mut begin, mut at) = (Vec::new(), 0, 0);
    let mut open: Vec<u8> = Vec::new();
    while at < bytes.len() {
        let byte = bytes[at];
        let closes = open.last().copied();
        match byte {
            b'"' => at = end_of_string(bytes, at),
            _ if open.is_empty() && byte == end => {
                push(&mut parts, &text[begin..at]);
                return (parts, Some(at));
            }
            // Within the name of a descriptor only another name, of a device, or an address in
            // square brackets, which has `->` in it.
            _ if closes == Some(byte) => drop(open.pop()),
            b'[' if open.len() < DEPTH_MAX => open.push(b']'),
            b'<' if open.len() < DEPTH_MAX && is_name_of_descriptor(bytes, at) => open.push(b'>'),
            b'{' if closes != Some(b'>') && open.len() < DEPTH_MAX => open.push(b'}'),
            b'(' if closes != Some(b'>') && open.len() < DEPTH_MAX => open.push(b')'),
            b',' if open.is_empty() => {
                push(&mut parts, &text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    push(&mut parts, text.get(begin..).unwrap_or(""));
    (parts, None)
}

fn push<'a>(parts: &mut Vec<&'a str>, part: &'a str) {
    let part = part.trim();
    if !part.is_empty() {
        parts.push(part);
    }
}

/// A number, `AT_FDCWD` or a name of a kind stands before it.
fn is_name_of_descriptor(bytes: &[u8], at: usize) -> bool {
    at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || b"_]/)".contains(&bytes[at - 1]))
}

/// The place of the closing quote.
fn end_of_string(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

/// What a call returned.
#[derive(Clone, Debug, PartialEq)]
pub struct Returned<'a> {
    /// The value, `None` for `?`.
    pub value: Option<i64>,
    /// The value as text, with the name of a descriptor.
    pub text: &'a str,
    /// The name of an error.
    pub error: Option<&'a str>,
    /// How long the call took, from `-T`.
    pub duration: Option<&'a str>,
}

/// Of what stands behind the closing bracket.
pub fn returned(rest: &str) -> Option<Returned<'_>> {
    let rest = rest.trim_start().strip_prefix('=')?.trim();
    let (rest, duration) = match rest.rsplit_once(" <") {
        Some((before, last)) if last.ends_with('>') && nanoseconds_like(last) => {
            (before, last.strip_suffix('>'))
        }
        _ => (rest, None),
    };
    let number_ends = rest.find(|it: char| !"-?".contains(it) && !it.is_ascii_alphanumeric());
    let (number, behind) = rest.split_at(number_ends.unwrap_or(rest.len()));
    let value = match number.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().and_then(|it| i64::try_from(it).ok()),
        None => number.parse().ok(),
    };
    let word = behind.split_ascii_whitespace().next();
    let error = word.filter(|it| it.starts_with('E') && value.is_none_or(|it| it < 0));
    Some(Returned { value, text: rest, error, duration })
}

fn nanoseconds_like(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_digit() || it == b'.' || it == b'>')
}

/// A descriptor as `-yy` prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub number: i32,
    /// The path, or `pipe:[1]`; `None` if it was recorded without `-y`.
    pub path: Option<String>,
    /// What it is, as far as the name says.
    pub kind: FileKind,
    /// It has no name any more.
    pub deleted: bool,
}

/// `3</srv/x>`, `4<pipe:[12]>`, `5</dev/sda<block 8:0>>`, `6</srv/x>(deleted)`; `None` for anything
/// else, as a working folder.
pub fn descriptor(text: &str) -> Option<Descriptor> {
    let (number, name) = match text.split_once('<') {
        Some((number, name)) => (number, Some(name)),
        None => (text, None),
    };
    let number = number.parse().ok().filter(|it| *it >= 0)?;
    let Some(name) = name else {
        return Some(Descriptor { number, path: None, kind: FileKind::Other, deleted: false });
    };
    let (name, behind) = name.rsplit_once('>')?;
    let (name, device) = match name.rsplit_once('<') {
        Some((name, device)) => (name, device.strip_suffix('>').unwrap_or(device)),
        None => (name, ""),
    };
    let (name, is_deleted) = match name.strip_suffix(" (deleted)") {
        Some(name) => (name, true),
        None => (name, behind.contains("(deleted)")),
    };
    let kind = match (device.split(' ').next(), name) {
        (Some("block"), _) => FileKind::BlockDevice,
        (Some("char"), _) => FileKind::CharacterDevice,
        (_, name) if name.starts_with('/') => FileKind::Regular,
        (_, name) if name.starts_with("pipe:") => FileKind::Pipe,
        (_, name) if name.starts_with("anon_inode:") => FileKind::Other,
        _ => FileKind::Socket,
    };
    Some(Descriptor { number, path: Some(unescaped(name)), kind, deleted: is_deleted })
}

/// A name as strace writes it: octal numbers for what is not printed.
fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            plain.push(bytes[at]);
            at += 1;
            continue;
        }
        let digits: Vec<u8> = bytes[at + 1..]
            .iter()
            .take(3)
            .copied()
            .take_while(|it| (b'0'..=b'7').contains(it))
            .collect();
        let value = digits.iter().fold(0_u32, |sum, it| sum * 8 + u32::from(it - b'0'));
        match u8::try_from(value) {
            Ok(value) if !digits.is_empty() => plain.push(value),
            _ => {
                let letter = bytes.get(at + 1).copied().unwrap_or(b'\\');
                plain.push(match letter {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    other => other,
                });
            }
        }
        at += 1 + digits.len().max(1);
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_strings_and_names_parts_nothing() {
        let call = r#"3</tmp/a, b>, "\"x<>, 8192) = 5", 45, 0) = 45 <0.000009>"#;
        let (parts, rest) = arguments(call).unwrap();
        assert_eq!(parts, ["3</tmp/a, b>", r#""\"x<>, 8192) = 5""#, "45", "0"]);
        let returned = returned(rest).unwrap();
        assert_eq!((returned.value, returned.duration), (Some(45), Some("0.000009")));
        let socket = "7<TCP:[127.0.0.1:5432->127.0.0.1:40000]>, [{iov_base=\"1\", iov_len=1}], 1)";
        let (parts, _) = arguments(socket).unwrap();
        assert_eq!(parts.len(), 3);
        let fields = elements(elements(parts[1])[0]);
        assert_eq!(fields, ["iov_base=\"1\"", "iov_len=1"]);
        let (parts, _) = arguments("3</a>, 4</b>, [0] => [10], 10) = 10").unwrap();
        assert_eq!(parts, ["3</a>", "4</b>", "[0] => [10]", "10"]);
        assert_eq!(arguments("3</a>, \"abc"), None);
    }

    #[test]
    fn descriptors_have_names_of_many_kinds() {
        let of = |text: &str| descriptor(text).map(|it| (it.number, it.path, it.kind, it.deleted));
        let name = |it: &str| Some(it.to_owned());
        assert_eq!(of("3</srv/x>"), Some((3, name("/srv/x"), FileKind::Regular, false)));
        let disk = Some((0, name("/dev/sda"), FileKind::BlockDevice, false));
        assert_eq!(of("0</dev/sda<block 8:0>>"), disk);
        assert_eq!(of("1<pipe:[97]>"), Some((1, name("pipe:[97]"), FileKind::Pipe, false)));
        assert_eq!(of("3</a>(deleted)"), Some((3, name("/a"), FileKind::Regular, true)));
        assert_eq!(
            of("3</na\\303\\257ve\\76>"),
            Some((3, name("/naïve>"), FileKind::Regular, false))
        );
        assert_eq!(of("3"), Some((3, None, FileKind::Other, false)));
        assert_eq!(of("AT_FDCWD</srv>"), None);
        assert_eq!(of("-1"), None);
    }

    #[test]
    fn returns_with_errors_and_without_a_value() {
        let error = returned(" = -1 ENOENT (No such file or directory) <0.000010>").unwrap();
        assert_eq!((error.value, error.error), (Some(-1), Some("ENOENT")));
        let restart = returned(" = ? ERESTARTSYS (To be restarted)").unwrap();
        assert_eq!((restart.value, restart.error), (None, Some("ERESTARTSYS")));
        assert_eq!(returned("   = ?").unwrap().value, None);
        let opened = returned(" = 3</tmp/q> <0.000044>").unwrap();
        assert_eq!((opened.value, opened.text), (Some(3), "3</tmp/q>"));
        assert_eq!(returned(" = 0x7f8b05bd3000").unwrap().value, Some(0x7f8b_05bd_3000));
    }
}
