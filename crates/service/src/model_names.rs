//! Names of drives, media and disks whose parameters the models know. A name is written in a
//! request as it is typed.

use std::str::FromStr;

use model::disk::DiskParameters;
use model::tape::generation::Generation;
use model::tape::maker::Maker;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A generation of drives or media: `lto8`, `LTO-8`; `lto7m` and `m8` for LTO-7 Type M.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct GenerationName(pub &'static Generation);

/// A generation of drives, with a maker where it matters: `lto8`, `hp-lto3`, `ibm-lto3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct DriveName(pub &'static Generation);

/// A kind of disk: `sas15k`, `sata7200`, `ssd-sata`, `nvme`, `array` or `array:N`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct DiskName {
    /// As typed.
    pub name: String,
    pub parameters: DiskParameters,
}

impl FromStr for GenerationName {
    type Err = String;

    fn from_str(text: &str) -> Result<GenerationName, String> {
        let plain = |name: &str| plain(name).replace("type", "");
        let typed = match plain(text).as_str() {
            "m8" => "lto7m".to_owned(),
            typed => typed.to_owned(),
        };
        let known = Generation::all().iter().find(|known| plain(known.name) == typed);
        known.map(GenerationName).ok_or_else(|| {
            let names: Vec<String> = Generation::all().iter().map(|one| plain(one.name)).collect();
            format!("known are {}", names.join(" "))
        })
    }
}

impl FromStr for DriveName {
    type Err = String;

    fn from_str(text: &str) -> Result<DriveName, String> {
        let typed = plain(text);
        let (maker, name) = match (typed.strip_prefix("hp"), typed.strip_prefix("ibm")) {
            (Some(name), _) => (Some(Maker::Hp), name),
            (_, Some(name)) => (Some(Maker::Ibm), name),
            _ => (None, &typed[..]),
        };
        let found = Generation::all().iter().find(|one| plain(one.name) == name);
        let found = found.map(|one| maker.map_or(one, |maker| one.made_by(maker)));
        let known = || {
            "use lto1 to lto10 or \"lto7 type m\", with the maker hp-lto3 or ibm-lto3".to_owned()
        };
        found.map(DriveName).ok_or_else(known)
    }
}

impl FromStr for DiskName {
    type Err = String;

    fn from_str(text: &str) -> Result<DiskName, String> {
        let known = || "use sas15k, sata7200, ssd-sata, nvme, array or array:N".to_owned();
        let parameters = DiskParameters::named(text).ok_or_else(known)?;
        Ok(DiskName { name: text.to_owned(), parameters })
    }
}

/// Letters and digits alone, in lower case.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

impl TryFrom<String> for GenerationName {
    type Error = String;

    fn try_from(text: String) -> Result<GenerationName, String> {
        text.parse()
    }
}

impl TryFrom<String> for DriveName {
    type Error = String;

    fn try_from(text: String) -> Result<DriveName, String> {
        text.parse()
    }
}

impl TryFrom<String> for DiskName {
    type Error = String;

    fn try_from(text: String) -> Result<DiskName, String> {
        text.parse()
    }
}

impl From<GenerationName> for String {
    fn from(name: GenerationName) -> String {
        name.0.name.to_owned()
    }
}

impl From<DriveName> for String {
    fn from(name: DriveName) -> String {
        match name.0.maker {
            Some(maker) => format!("{maker} {}", name.0.name),
            None => name.0.name.to_owned(),
        }
    }
}

impl From<DiskName> for String {
    fn from(name: DiskName) -> String {
        name.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for one in Generation::all() {
            let medium = GenerationName(one);
            assert_eq!(String::from(medium).parse(), Ok(medium));
            for row in std::iter::once(one).chain(one.by_maker()) {
                let drive = DriveName(row);
                assert_eq!(String::from(drive).parse(), Ok(drive));
            }
        }
        let json = serde_json::to_string(&"array:12".parse::<DiskName>().unwrap()).unwrap();
        assert_eq!(json, "\"array:12\"");
        assert!(serde_json::from_str::<DiskName>("\"floppy\"").is_err());
    }
}
