//! Names, each stored once: a tree of ten million files has far fewer.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};

/// Memory for names at hand, about.
const BYTES_MAX: usize = 64 << 20;
/// What an entry takes besides its bytes.
const ENTRY_BYTES: usize = 64;

/// Numbers of names; makes those that are missing.
#[derive(Default)]
pub(super) struct Names {
    at_hand: HashMap<Box<[u8]>, i64>,
    bytes: usize,
}

impl Names {
    /// The number of a name, which is stored if it was not.
    pub(super) fn number(
        &mut self,
        connection: &Connection,
        name: &[u8],
    ) -> Result<i64, rusqlite::Error> {
        if let Some(number) = self.at_hand.get(name) {
            return Ok(*number);
        }
        let number = match find(connection, name)? {
            Some(number) => number,
            None => {
                let mut insert =
                    connection.prepare_cached("INSERT INTO names (name) VALUES (?1)")?;
                insert.insert([name])?
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
