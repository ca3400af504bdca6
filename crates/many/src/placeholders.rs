//! The same arguments on all hosts, with what differs filled in: `{rank}`, `{host}`, and names from
//! a map for devices that are called differently on each.
//!
//! A map is a text file with three words on a line: host, name, value. `#` begins a comment.

use std::collections::BTreeMap;

/// What is filled in on one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placeholders {
    values: BTreeMap<String, String>,
}

/// Why arguments cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceholderError {
    /// A line of the map that is not three words.
    #[error("line {line} of the map: host, name and value are expected, not {text:?}")]
    Line { line: usize, text: String },
    /// A name that says nothing of this host.
    #[error("the map has no {name} for the host {host}")]
    NoValue { name: String, host: String },
    /// It would hide `{rank}`, `{host}` or `{next}`.
    #[error("line {line} of the map: {name} is filled in by itself")]
    Taken { line: usize, name: String },
}

/// Names that need no map.
const OWN: [&str; 3] = ["rank", "host", "next"];

impl Placeholders {
    /// Those of a rank; `next` is the rank behind it, whose files it reads when no host is to read
    /// its own.
    ///
    /// # Errors
    /// When the map cannot be understood, or does not say for this host what it says for another.
    pub fn new(
        rank: usize,
        ranks: usize,
        host: &str,
        map: &str,
    ) -> Result<Placeholders, PlaceholderError> {
        let mut values = BTreeMap::new();
        let mut names = Vec::new();
        for (number, text) in (1..).zip(map.lines()) {
            let text = text.split('#').next().unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().collect();
            match words[..] {
                [] => {}
                [_, name, _] if OWN.contains(&name) => {
                    return Err(PlaceholderError::Taken { line: number, name: name.to_owned() });
                }
                [its, name, value] => {
                    names.push(name.to_owned());
                    if its == host {
                        values.insert(name.to_owned(), value.to_owned());
                    }
                }
                _ => {
                    let text = text.trim().to_owned();
                    return Err(PlaceholderError::Line { line: number, text });
                }
            }
        }
        if let Some(name) = names.into_iter().find(|name| !values.contains_key(name)) {
            return Err(PlaceholderError::NoValue { name, host: host.to_owned() });
        }
        values.insert("rank".to_owned(), rank.to_string());
        values.insert("next".to_owned(), ((rank + 1) % ranks.max(1)).to_string());
        values.insert("host".to_owned(), host.to_owned());
        Ok(Placeholders { values })
    }

    /// An argument with everything known filled in; other braces stay, as `bench run` has its own.
    pub fn fill(&self, argument: &str) -> String {
        let mut filled = argument.to_owned();
        for (name, value) in &self.values {
            filled = filled.replace(&format!("{{{name}}}"), value);
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in() {
        let map = "# disks\nann disk /dev/sda\nben disk /dev/nvme0n1 # new\n";
        let ben = Placeholders::new(3, 4, "ben", map).unwrap();
        assert_eq!(ben.fill("{disk}:{rank}:{next}:{host}:{block}"), "/dev/nvme0n1:3:0:ben:{block}");
        let error = Placeholders::new(0, 4, "eve", map).unwrap_err().to_string();
        assert_eq!(error, "the map has no disk for the host eve");
        let error = Placeholders::new(0, 4, "ann", "ann disk").unwrap_err().to_string();
        assert!(error.contains("line 1 of the map"), "{error}");
        assert!(Placeholders::new(0, 4, "ann", "ann rank 7").is_err());
    }
}
