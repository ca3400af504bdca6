//! Any bytes as a word of printable ASCII, for lines that people read: `%` and two hexadecimal
//! digits for what is none.

use std::fmt::Write as _;

/// Bytes as a word of printable ASCII.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len()), |mut text, byte| {
        if byte.is_ascii_graphic() && *byte != b'%' {
            text.push(char::from(*byte));
        } else {
            write!(text, "%{byte:02X}").expect("a string takes any text");
        }
        text
    })
}

/// The bytes of a word; `None` if it is none of [`escaped`].
pub(crate) fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
                let digits = std::str::from_utf8(&digits).ok().filter(|_| is_hex)?;
                u8::from_str_radix(digits, 16).ok()?
            }
            byte => byte,
        };
        out.push(byte);
    }
    Some(out)
}
