//! The operator of the lab's second drive: makes, loads, protects and damages cartridges.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use sim::tape::{
    Cartridge, CartridgeSettings, Faults, Object, Persistence, Protection, ScsiTarget,
};

/// Bytes of a mebibyte.
const MIB: u64 = 1 << 20;

/// A drive with a shelf.
pub struct Operator {
    target: Arc<ScsiTarget>,
    shelf: BTreeMap<String, Cartridge>,
    loaded: Option<String>,
}

impl Operator {
    /// An empty shelf.
    pub fn new(target: Arc<ScsiTarget>) -> Operator {
        Operator { target, shelf: BTreeMap::new(), loaded: None }
    }

    /// Runs a command and returns the text to print. The commands are those of the guest's program
    /// `cartridge`, whose head explains them.
    ///
    /// # Errors
    /// When the command is unknown or names a cartridge that does not exist.
    pub fn obey(&mut self, words: &[&str]) -> anyhow::Result<String> {
        match *words {
            ["new", name, mib] => {
                let capacity_bytes = number(mib)? * MIB;
                // Early warning at the requested size, as in tgtd's drive; a real tape also has
                // room after it.
                let room = (capacity_bytes / 8).max(4 * MIB);
                let settings = CartridgeSettings {
                    capacity_bytes: capacity_bytes + room,
                    early_warning_bytes: room,
                    ..CartridgeSettings::default()
                };
                self.shelf.insert(name.to_owned(), Cartridge::blank(settings));
            }
            ["load", name] => {
                self.target.insert(self.find(name)?.clone());
                self.loaded = Some(name.to_owned());
            }
            ["eject"] => {
                self.target.eject();
                self.loaded = None;
            }
            ["protect", name] => self.find(name)?.set_protection(Protection::Protected),
            ["unprotect", name] => self.find(name)?.set_protection(Protection::Writable),
            ["loaded"] => return Ok(self.loaded.clone().unwrap_or_default()),
            ["list"] => return Ok(self.shelf.keys().cloned().collect::<Vec<_>>().join(" ")),
            ["objects", name] => return objects(self.find(name)?),
            ["faults", name, ref faults @ ..] => {
                self.find(name)?.set_faults(parse_faults(faults)?);
            }
            ["cut", name, object] => self.find(name)?.cut(number(object)?)?,
            _ => bail!("not understood: {}", words.join(" ")),
        }
        Ok(String::new())
    }

    fn find(&self, name: &str) -> anyhow::Result<&Cartridge> {
        self.shelf.get(name).with_context(|| format!("no such cartridge: {name}"))
    }
}

/// The content of a cartridge: `N` for a block of N bytes, `|` for a filemark, `NxM` for M equal
/// ones.
fn objects(cartridge: &Cartridge) -> anyhow::Result<String> {
    let mut runs: Vec<(String, u64)> = Vec::new();
    for object in cartridge.objects()? {
        let word = match object {
            Object::Block(bytes) => bytes.len().to_string(),
            Object::Filemark => "|".to_owned(),
        };
        match runs.last_mut() {
            Some((last, count)) if *last == word => *count += 1,
            _ => runs.push((word, 1)),
        }
    }
    let words = runs.into_iter().map(|(word, count)| match count {
        1 => word,
        _ => format!("{word}x{count}"),
    });
    Ok(words.collect::<Vec<_>>().join(" "))
}

/// `unreadable=N`, `unreadable-once=N`, `shortened=N:BYTES`, `unwritable=N`, `lost-from=N`,
/// `reset-before=N`; the numbers are those of objects. No words remove all faults.
fn parse_faults(words: &[&str]) -> anyhow::Result<Faults> {
    let mut faults = Faults::default();
    for word in words {
        let (name, value) = word.split_once('=').with_context(|| format!("no value: {word}"))?;
        match name {
            "unreadable" => {
                faults.unreadable.insert(number(value)?, Persistence::Always);
            }
            "unreadable-once" => {
                faults.unreadable.insert(number(value)?, Persistence::Times(1));
            }
            "shortened" => {
                let (object, bytes) = value.split_once(':').context("shortened=N:BYTES")?;
                let bytes = u32::try_from(number(bytes)?).context("too many bytes")?;
                faults.shortened.insert(number(object)?, bytes);
            }
            "unwritable" => {
                faults.unwritable.insert(number(value)?);
            }
            "lost-from" => faults.lost_from = Some(number(value)?),
            "reset-before" => faults.reset_before = Some(number(value)?),
            _ => bail!("no such fault: {name}"),
        }
    }
    Ok(faults)
}

fn number(text: &str) -> anyhow::Result<u64> {
    text.parse().with_context(|| format!("no number: {text}"))
}
