//! A path or a name in a message or a line of a journal: as text where it is UTF-8.
//!
//! Names on Linux are bytes without NUL. One that is not UTF-8 is written as a NUL and hexadecimal
//! digits, which no name can be mistaken for.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The bytes of a path or a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(pub Vec<u8>);

impl Name {
    /// As a path.
    pub fn to_path(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.0.clone()))
    }

    /// The name of something in this folder.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Name {
        let mut path = self.0.clone();
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        Name(path)
    }

    /// The folder that holds it; `None` where the path has no slash.
    pub fn parent(&self) -> Option<Name> {
        let slash = self.0.iter().rposition(|byte| *byte == b'/')?;
        Some(Name(self.0[..slash.max(1)].to_vec()))
    }

    /// The part behind the last slash.
    pub fn last(&self) -> &[u8] {
        self.0.iter().rposition(|byte| *byte == b'/').map_or(&self.0[..], |at| &self.0[at + 1..])
    }
}

impl From<&OsStr> for Name {
    fn from(path: &OsStr) -> Name {
        Name(path.as_bytes().to_vec())
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        String::from_utf8(name.0).unwrap_or_else(|error| {
            let digits = error.as_bytes().iter().map(|byte| format!("{byte:02x}"));
            std::iter::once("\0".to_owned()).chain(digits).collect()
        })
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Name, String> {
        let Some(digits) = text.strip_prefix('\0') else { return Ok(Name(text.into_bytes())) };
        let bad = || format!("{digits:?} are not the hexadecimal digits of a name");
        if !digits.is_ascii() || digits.len() % 2 != 0 {
            return Err(bad());
        }
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| bad());
        (0..digits.len()).step_by(2).map(byte).collect::<Result<Vec<u8>, String>>().map(Name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_name_comes_back(bytes in prop::collection::vec(1u8.., 0..40)) {
            let text = serde_json::to_string(&Name(bytes.clone())).unwrap();
            prop_assert_eq!(serde_json::from_str::<Name>(&text).unwrap().0, bytes);
        }
    }

    #[test]
    fn parents_and_parts() {
        let name = |text: &str| Name(text.as_bytes().to_vec());
        assert_eq!(name("/srv/mail").parent(), Some(name("/srv")));
        assert_eq!(name("/srv").parent(), Some(name("/")));
        assert_eq!(name("srv").parent(), None);
        assert_eq!(name("/").join(b"srv"), name("/srv"));
        assert_eq!(name("a/b").last(), b"b");
        assert!(serde_json::from_str::<Name>("\"\\u0000zz\"").is_err());
    }
}
