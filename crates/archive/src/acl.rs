//! POSIX ACLs between the kernel's binary form and the text that tar carries.
//!
//! The binary form is `struct posix_acl_xattr_header` (a little-endian version, 2) and then one
//! `posix_acl_xattr_entry` of tag, permissions and id each (linux/posix_acl_xattr.h). The text is
//! that of `acl_from_text(3)` with numeric ids, which GNU tar and libarchive both resolve without a
//! look-up. The caller resolves names in foreign texts through [`NameLookup`].

use crate::malformed::Malformed;
use crate::pax;

const VERSION: [u8; 4] = 2u32.to_le_bytes();
const ENTRY_BYTES: usize = 8;
const NO_ID: u32 = u32::MAX;

const USER_OBJECT: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OBJECT: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// Resolves the names in ACL texts to ids; called only if the text has no number.
pub trait NameLookup {
    /// Id of the user `name`, `None` if this machine does not know it.
    fn user_id(&mut self, name: &[u8]) -> Option<u32>;
    /// Id of the group `name`, `None` if this machine does not know it.
    fn group_id(&mut self, name: &[u8]) -> Option<u32>;
}

/// Knows no names: entries without a number stay unresolved.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl NameLookup for NoNames {
    fn user_id(&mut self, _name: &[u8]) -> Option<u32> {
        None
    }

    fn group_id(&mut self, _name: &[u8]) -> Option<u32> {
        None
    }
}

#[derive(Clone, Copy)]
struct Entry {
    tag: u16,
    permissions: u16,
    id: u32,
}

/// Entries of an ACL in the kernel's form.
fn entries(binary: &[u8]) -> Result<impl Iterator<Item = Entry>, Malformed> {
    let body = binary.strip_prefix(&VERSION).ok_or(Malformed::AclForm)?;
    if body.len() % ENTRY_BYTES != 0 {
        return Err(Malformed::AclForm);
    }
    Ok(body.chunks_exact(ENTRY_BYTES).map(|bytes| Entry {
        tag: u16::from_le_bytes([bytes[0], bytes[1]]),
        permissions: u16::from_le_bytes([bytes[2], bytes[3]]),
        id: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
    }))
}

fn tag_text(tag: u16) -> Option<&'static [u8]> {
    Some(match tag {
        USER_OBJECT => b"user::",
        USER => b"user:",
        GROUP_OBJECT => b"group::",
        GROUP => b"group:",
        MASK => b"mask::",
        OTHER => b"other::",
        _ => return None,
    })
}

/// Length of the text that [`push_text`] appends; an error if the ACL has no text form.
pub(crate) fn text_bytes(binary: &[u8]) -> Result<usize, Malformed> {
    let mut total = 0;
    for entry in entries(binary)? {
        let tag =
            tag_text(entry.tag).filter(|_| entry.permissions <= 7).ok_or(Malformed::AclEntry)?;
        let id = match entry.tag {
            USER | GROUP => pax::decimal_bytes(u64::from(entry.id)) + 1,
            _ => 0,
        };
        total += tag.len() + id + "rwx,".len();
    }
    // Commas are only between entries.
    Ok(total.saturating_sub(1))
}

/// Appends the text of an ACL that [`text_bytes`] accepted.
pub(crate) fn push_text(binary: &[u8], out: &mut Vec<u8>) {
    let Ok(entries) = entries(binary) else { return };
    for (index, entry) in entries.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(tag_text(entry.tag).unwrap_or_default());
        if matches!(entry.tag, USER | GROUP) {
            pax::push_decimal(u64::from(entry.id), out);
            out.push(b':');
        }
        for (bit, letter) in [(4, b'r'), (2, b'w'), (1, b'x')] {
            out.push(if entry.permissions & bit != 0 { letter } else { b'-' });
        }
    }
}

/// An ACL read from text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FromText {
    /// The kernel's form; `None` when no entry is left.
    pub(crate) binary: Option<Vec<u8>>,
    /// Names that could not be resolved; their entries are left out.
    pub(crate) unknown_names: Vec<Vec<u8>>,
}

/// Reads an ACL text: `TAG:QUALIFIER:PERMISSIONS[:ID]` separated by commas or newlines, comments
/// behind `#`, and Solaris' two-field `mask:rwx` and `other:rwx`.
pub(crate) fn from_text(text: &[u8], names: &mut dyn NameLookup) -> Result<FromText, Malformed> {
    let mut entries = Vec::new();
    let mut unknown_names = Vec::new();
    for line in text.split(|byte| matches!(byte, b'\n' | b',')) {
        let line = line.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
        if line.is_empty() {
            continue;
        }
        match entry_from_text(line, names)? {
            Parsed::Entry(entry) => entries.push(entry),
            Parsed::Unknown(name) => unknown_names.push(name),
        }
    }
    // The kernel requires the tags in this order (posix_acl_valid in fs/posix_acl.c).
    entries.sort_by_key(|entry| entry.tag);
    let binary = (!entries.is_empty()).then(|| {
        let mut binary = VERSION.to_vec();
        for entry in &entries {
            binary.extend_from_slice(&entry.tag.to_le_bytes());
            binary.extend_from_slice(&entry.permissions.to_le_bytes());
            binary.extend_from_slice(&entry.id.to_le_bytes());
        }
        binary
    });
    Ok(FromText { binary, unknown_names })
}

enum Parsed {
    Entry(Entry),
    Unknown(Vec<u8>),
}

fn entry_from_text(line: &[u8], names: &mut dyn NameLookup) -> Result<Parsed, Malformed> {
    let mut fields = line.split(|byte| *byte == b':').map(<[u8]>::trim_ascii).peekable();
    fields.next_if(|field| matches!(*field, b"default" | b"d"));
    let tag = fields.next().unwrap_or_default();
    let second = fields.next().ok_or(Malformed::AclEntry)?;
    let third = fields.next();
    let numeric = fields.next().and_then(id_from_text);
    let (qualifier, permissions) = match third {
        Some(third) => (second, third),
        None => (&b""[..], second),
    };
    let permissions = permissions_from_text(permissions)?;
    let (object, named) = match tag {
        b"user" | b"u" => (USER_OBJECT, Some(USER)),
        b"group" | b"g" => (GROUP_OBJECT, Some(GROUP)),
        b"mask" | b"m" => (MASK, None),
        b"other" | b"o" => (OTHER, None),
        _ => return Err(Malformed::AclEntry),
    };
    let entry = |tag, id| Ok(Parsed::Entry(Entry { tag, permissions, id }));
    match (qualifier, named) {
        (b"", _) => entry(object, NO_ID),
        (_, None) => Err(Malformed::AclEntry),
        (name, Some(tag)) => {
            let id = numeric.or_else(|| id_from_text(name)).or_else(|| match tag {
                USER => names.user_id(name),
                _ => names.group_id(name),
            });
            match id {
                Some(id) => entry(tag, id),
                None => Ok(Parsed::Unknown(name.to_vec())),
            }
        }
    }
}

fn id_from_text(text: &[u8]) -> Option<u32> {
    pax::decimal(text).and_then(|id| u32::try_from(id).ok())
}

fn permissions_from_text(text: &[u8]) -> Result<u16, Malformed> {
    let mut permissions = 0;
    for letter in text {
        permissions |= match letter {
            b'r' => 4,
            b'w' => 2,
            b'x' => 1,
            b'-' => 0,
            _ => return Err(Malformed::AclEntry),
        };
    }
    Ok(permissions)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Names;

    impl NameLookup for Names {
        fn user_id(&mut self, name: &[u8]) -> Option<u32> {
            (name == b"joerg").then_some(1001)
        }

        fn group_id(&mut self, name: &[u8]) -> Option<u32> {
            (name == b"staff").then_some(50)
        }
    }

    fn check(text: &str, canonical: &str, unknown: &[&str]) {
        let read = from_text(text.as_bytes(), &mut Names).expect(text);
        let binary = read.binary.expect(text);
        let mut out = Vec::new();
        push_text(&binary, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), canonical, "{text}");
        assert_eq!(text_bytes(&binary), Ok(out.len()));
        let unknown: Vec<Vec<u8>> = unknown.iter().map(|name| name.as_bytes().to_vec()).collect();
        assert_eq!(read.unknown_names, unknown);
    }

    #[test]
    fn texts_of_other_writers_are_read() {
        let short = "user::rw-,user:1001:r-x,group::r--,mask::r-x,other::---";
        check(short, short, &[]);
        check("u::rw,u:joerg:rx,g::r,m::rx,o::-", short, &[]);
        check("user::rw-\nuser:joerg:r-x #note\n\ngroup::r--\nmask:r-x\nother:---\n", short, &[]);
        check("user:someone:r-x:1001,user::rw-,group::r--,other::---,mask::r-x", short, &[]);
        check("default:user::rwx, default:group:staff:r--", "user::rwx,group:50:r--", &[]);
        check("user::rwx,user:nobody-here:r--", "user::rwx", &["nobody-here"]);
    }

    #[test]
    fn broken_acls_are_errors() {
        for text in ["user", "user::z", "owner::rwx", "mask:joe:rwx", "other:x:y"] {
            assert_eq!(
                from_text(text.as_bytes(), &mut NoNames),
                Err(Malformed::AclEntry),
                "{text}"
            );
        }
        assert_eq!(text_bytes(b""), Err(Malformed::AclForm));
        assert_eq!(text_bytes(&[2, 0, 0, 0, 1]), Err(Malformed::AclForm));
        assert_eq!(text_bytes(&[2, 0, 0, 0, 3, 0, 7, 0, 0, 0, 0, 0]), Err(Malformed::AclEntry));
        assert_eq!(text_bytes(&[2, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0, 0]), Err(Malformed::AclEntry));
        assert_eq!(text_bytes(&[2, 0, 0, 0]), Ok(0));
    }
}
