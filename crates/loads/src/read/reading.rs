//! How a run reads, from its cell.

use experiment::record::{Cell, CellError, Level, number_in, word_in};

/// Which calls read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// read(2), one after the other.
    Sync,
    /// pread(2), by as many threads as requests are to be in flight.
    Psync,
    /// Memory of a mapped file.
    Mmap,
    IoUring,
}

/// Through the page cache or past it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Through it, with read-ahead.
    Buffered,
    /// Past it (`O_DIRECT`).
    Direct,
}

/// Pages of the memory that is read into. A direct read hands the device one piece of memory for
/// each page, or for each run of pages that happen to lie side by side: 256 for 1 MiB of small
/// pages, one of a huge page. Devices have a limit of pieces (`max_segments`), and each costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// As large as the kernel gives them: 2 MiB on most machines (transparent huge pages).
    Huge,
    /// The usual ones, of 4 KiB on most machines.
    Small,
}

impl Pages {
    /// From the word in a cell; huge ones where it says nothing.
    pub fn from_cell(cell: &Cell) -> Result<Pages, CellError> {
        match cell.get("pages") {
            None => Ok(Pages::Huge),
            Some(Level::Text(text)) if text == "huge" => Ok(Pages::Huge),
            Some(Level::Text(text)) if text == "small" => Ok(Pages::Small),
            Some(level) => Err(CellError::Unknown {
                what: format!("unknown pages {}", level.shown("pages")),
                known: "huge and small",
            }),
        }
    }
}

/// How a run reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Which calls.
    pub engine: Engine,
    /// Through the page cache or past it.
    pub cache: Cache,
    /// Bytes of one request.
    pub block_bytes: usize,
    /// Read-ahead to set, or `None` to leave it.
    pub read_ahead_bytes: Option<u64>,
    /// Requests in flight through one descriptor.
    pub depth: usize,
    /// Descriptors that take turns with the blocks of the one stream.
    pub readers: usize,
    /// What the blocks lie in.
    pub pages: Pages,
}

/// Most requests in flight and most readers: a thread or a slot each.
const PARALLEL_MAX: u64 = 1024;
const BLOCK_BYTES_MAX: u64 = 64 << 20;
const MEMORY_BYTES_MAX: u64 = 4 << 30;

impl Reading {
    /// From a cell; what it does not name is what a plain `cat` does, in blocks of 128 KiB.
    pub fn from_cell(cell: &Cell) -> Result<Reading, CellError> {
        let number = |name: &str, usual: u64, most: u64| match number_in(cell, name, usual)? {
            number if (1..=most).contains(&number) => Ok(number),
            number => {
                let level = number.to_string();
                Err(CellError::OutOfRange { name: name.to_owned(), level, least: 1, most })
            }
        };
        let engine = match word_in(cell, "engine")?.unwrap_or("sync") {
            "sync" => Engine::Sync,
            "psync" => Engine::Psync,
            "mmap" => Engine::Mmap,
            "io_uring" => Engine::IoUring,
            other => {
                return Err(CellError::Unknown {
                    what: format!("unknown engine {other:?}"),
                    known: "sync, psync, mmap and io_uring",
                });
            }
        };
        let cache = match word_in(cell, "cache")?.unwrap_or("buffered") {
            "buffered" => Cache::Buffered,
            "direct" => Cache::Direct,
            other => {
                return Err(CellError::Unknown {
                    what: format!("unknown cache {other:?}"),
                    known: "buffered and direct",
                });
            }
        };
        let read_ahead_bytes = match cell.get("read_ahead_bytes") {
            Some(Level::Number(bytes)) => Some(*bytes),
            Some(Level::Text(text)) => {
                return Err(CellError::Impossible(format!("read-ahead {text:?}: no number")));
            }
            None => None,
        };
        let reading = Reading {
            engine,
            cache,
            block_bytes: number("block_bytes", 128 << 10, BLOCK_BYTES_MAX)? as usize,
            read_ahead_bytes,
            depth: number("depth", 1, PARALLEL_MAX)? as usize,
            readers: number("readers", 1, PARALLEL_MAX)? as usize,
            pages: Pages::from_cell(cell)?,
        };
        let memory = (reading.blocks() * reading.block_bytes * reading.readers) as u64;
        if memory <= MEMORY_BYTES_MAX {
            Ok(reading)
        } else {
            let text = format!("{memory} bytes of buffers: {MEMORY_BYTES_MAX} is the most");
            Err(CellError::Impossible(text))
        }
    }

    /// Blocks of memory that a reader needs: twice the depth, since blocks leave the ring in order
    /// and one late answer must not stop the others.
    pub fn blocks(&self) -> usize {
        2 * self.depth + 2
    }

    /// Whether the combination means anything by itself: calls that wait have nothing in flight,
    /// and without the page cache there is neither read-ahead nor a mapping. `lowest_read_ahead`
    /// is the level that stands for all of them there.
    pub fn is_sensible(&self, lowest_read_ahead: Option<u64>) -> bool {
        let waits = matches!(self.engine, Engine::Sync | Engine::Mmap);
        let direct = self.cache == Cache::Direct;
        let window = self.read_ahead_bytes;
        let nothing_in_flight = waits && self.depth > 1;
        let no_mapping = direct && self.engine == Engine::Mmap;
        let no_window = direct && window.is_some() && window != lowest_read_ahead;
        !(nothing_in_flight || no_mapping || no_window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::record::cell;

    #[test]
    fn a_cell_says_how_to_read() {
        let plain = Reading::from_cell(&cell(&[])).unwrap();
        assert_eq!((plain.engine, plain.cache, plain.depth), (Engine::Sync, Cache::Buffered, 1));
        let direct = cell(&[("engine", "io_uring"), ("cache", "direct"), ("depth", "8")]);
        let direct = Reading::from_cell(&direct).unwrap();
        assert!(direct.is_sensible(Some(4096)));
        assert!(!Reading { depth: 2, ..plain }.is_sensible(None));
        assert!(!Reading { engine: Engine::Mmap, ..direct }.is_sensible(None));
        assert!(!Reading { read_ahead_bytes: Some(8192), ..direct }.is_sensible(Some(4096)));
        assert!(Reading { read_ahead_bytes: Some(4096), ..direct }.is_sensible(Some(4096)));
        for (levels, expected) in [
            (vec![("engine", "libaio")], "known are sync"),
            (vec![("cache", "cold")], "known are buffered"),
            (vec![("pages", "1")], "known are huge and small"),
            (vec![("depth", "0")], "1 to 1024"),
            (vec![("block_bytes", "many")], "a number was expected"),
            (vec![("block_bytes", "67108864"), ("depth", "1024")], "bytes of buffers"),
        ] {
            let error = Reading::from_cell(&cell(&levels)).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
