//! Names and values of extended attributes in the keywords of other writers.
//!
//! `SCHILY.xattr.NAME` holds the value unchanged. GNU tar escapes `%` and `=` in the name, since an
//! equals sign would end the keyword (tar 1.30, xheader.c). `LIBARCHIVE.xattr.NAME` holds the value
//! in base64 without padding, with a percent-encoded name.

/// Length of what [`push_keyword`] appends.
pub(crate) fn keyword_bytes(name: &[u8]) -> usize {
    name.len() + 2 * name.iter().filter(|byte| matches!(byte, b'%' | b'=')).count()
}

/// Appends an attribute's name in the form of a `SCHILY.xattr.` keyword.
pub(crate) fn push_keyword(name: &[u8], out: &mut Vec<u8>) {
    for byte in name {
        match byte {
            b'%' => out.extend_from_slice(b"%25"),
            b'=' => out.extend_from_slice(b"%3D"),
            _ => out.push(*byte),
        }
    }
}

/// The name in a `SCHILY.xattr.` keyword: only the two escapes of GNU tar are decoded.
pub(crate) fn name_from_schily(mut keyword: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(keyword.len());
    while let [first, rest @ ..] = keyword {
        let (byte, rest) = match keyword {
            [b'%', b'2', b'5', rest @ ..] => (b'%', rest),
            [b'%', b'3', b'D', rest @ ..] => (b'=', rest),
            _ => (*first, rest),
        };
        name.push(byte);
        keyword = rest;
    }
    name
}

/// The name in a `LIBARCHIVE.xattr.` keyword: percent-encoded.
pub(crate) fn name_from_libarchive(mut keyword: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(keyword.len());
    while let [first, rest @ ..] = keyword {
        let escaped = match keyword {
            [b'%', high, low, rest @ ..] => {
                hex(*high).zip(hex(*low)).map(|(h, l)| (16 * h + l, rest))
            }
            _ => None,
        };
        let (byte, rest) = escaped.unwrap_or((*first, rest));
        name.push(byte);
        keyword = rest;
    }
    name
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// Base64 (RFC 4648) with or without padding; `None` for anything else.
pub(crate) fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().rposition(|byte| *byte != b'=').map_or(0, |at| at + 1);
    if text.len() - end > 2 {
        return None;
    }
    let mut value = Vec::with_capacity(end * 3 / 4);
    let (mut bits, mut bit_count) = (0u32, 0);
    for letter in &text[..end] {
        let sextet = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(sextet);
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            value.push((bits >> bit_count) as u8);
            bits &= (1 << bit_count) - 1;
        }
    }
    // Six bits left over are a single letter, which is not enough for a byte.
    (bit_count < 6).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_their_escapes() {
        for name in [&b"user.plain"[..], b"user.a=b", b"user.50%", b"user.%3D=%25"] {
            let mut keyword = Vec::new();
            push_keyword(name, &mut keyword);
            assert_eq!(keyword.len(), keyword_bytes(name));
            assert!(!keyword.contains(&b'='));
            assert_eq!(name_from_schily(&keyword), name);
        }
        assert_eq!(name_from_schily(b"user.%41%"), b"user.%41%");
        assert_eq!(name_from_libarchive(b"user.%41%3d%4"), b"user.A=%4");
    }

    #[test]
    fn base64_follows_the_test_vectors_of_rfc_4648() {
        let check = |text: &[u8], expected: Option<&[u8]>| {
            assert_eq!(base64(text).as_deref(), expected, "{text:?}");
        };
        check(b"", Some(b""));
        check(b"Zg==", Some(b"f"));
        check(b"Zm8=", Some(b"fo"));
        check(b"Zm9v", Some(b"foo"));
        check(b"Zm9vYg", Some(b"foob"));
        check(b"Zm9vYmE", Some(b"fooba"));
        check(b"Zm9vYmFy", Some(b"foobar"));
        check(b"Z", None);
        check(b"Zg===", None);
        check(b"Z=g=", None);
        check(b"Zm9 v", None);
    }
}
