//! Names, each stored once: a tree of ten million files has far fewer.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};

/// Memory for names at hand, about.
const BYTES_MAX: usize = 64 << 20;
/// What an entry takes besides its bytes.
const ENTRY_BYTES: usize = 64;

/// What a name most likely is that is not at hand. To look for it in vain takes as long as to store
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likely {
    New,
    Known,
}

/// Numbers of names; makes those that are missing.
pub(super) struct Names {
    likely: Likely,
    at_hand: HashMap<Box<[u8]>, i64>,
    bytes: usize,
}

impl Names {
    pub(super) fn new(likely: Likely) -> Names {
        Names { likely, at_hand: HashMap::new(), bytes: 0 }
    }

    /// The number of a name, which is stored if it was not.
    pub(super) fn number(
        &mut self,
        connection: &Connection,
        name: &[u8],
    ) -> Result<i64, rusqlite::Error> {
        if let Some(number) = self.at_hand.get(name) {
            return Ok(*number);
        }
        let known = match self.likely {
            Likely::Known => find(connection, name)?,
            Likely::New => None,
        };
        let number = match known {
            Some(number) => number,
            None => {
                let insert = "INSERT INTO names (name) VALUES (?1) ON CONFLICT DO NOTHING";
                match connection.prepare_cached(insert)?.execute([name])? {
                    0 => find(connection, name)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?,
                    _ => connection.last_insert_rowid(),
                }
            }
        };
        if self.bytes > BYTES_MAX {
            (self.at_hand, self.bytes) = (HashMap::new(), 0);
        }
        self.bytes += name.len() + ENTRY_BYTES;
        self.at_hand.insert(name.into(), number);
        Ok(number)
    }
}

/// The number of a name, if any set has it.
pub(super) fn find(connection: &Connection, name: &[u8]) -> Result<Option<i64>, rusqlite::Error> {
    let mut select = connection.prepare_cached("SELECT id FROM names WHERE name = ?1")?;
    select.query_row([name], |row| row.get(0)).optional()
}
