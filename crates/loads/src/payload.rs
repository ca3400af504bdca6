//! What is written in an experiment with tape: zeros, random bytes, data of a known ratio, a file,
//! a tree of files.
//!
//! A drive compresses what it gets, so that the data decide the rate. Zeros show the host interface
//! and nothing of the medium; random bytes show the medium; real data lie between, and
//! [`Data::Text`] puts them where one wants. None of them may be the limit: each is made at several
//! times the rate of the fastest drive (`cargo run --release -p loads --example payload_rates`).
//!
//! A payload is one endless stream of bytes: how it is cut into buffers changes nothing in it, and
//! the same seed gives the same bytes. What is read from its disk as a backup would ([`tree`]) has
//! an end. Headers around either are [`crate::framing`]'s.

mod file;
mod noise;
mod text;
pub mod tree;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use file::FileData;
use noise::Noise;
use text::Text;

use base::names::{meant, there_are};

pub use file::MEMORY_BYTES_MAX;
pub use text::{RATIO_MAX, RATIO_MIN};

/// Data that are made, by their names.
const NAMES: [&str; 3] = ["zeros", "random", "text:RATIO"];

/// What to write, as it is typed and kept in the file of runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Nothing but zeros: some 90:1 in an LTO drive.
    Zeros,
    /// Random bytes, which nothing compresses and of which nothing comes twice.
    Random,
    /// Words that come again within a KiB, as in text, in a share that a drive makes `ratio`:1 of.
    Text {
        /// Host bytes for each byte on the medium, as a drive with SLDC compresses (ECMA-321):
        /// [`RATIO_MIN`] to [`RATIO_MAX`].
        ratio: f64,
    },
    /// The content of a file, again and again, or a tree of files as a backup reads it.
    Path(PathBuf),
}

impl FromStr for Data {
    type Err = PayloadError;

    /// `zeros`, `random`, `text:3`, or else the path of a file or folder: one that is called as the
    /// others is written `./zeros`.
    fn from_str(text: &str) -> Result<Data, PayloadError> {
        match text {
            "" => Err(PayloadError::Empty),
            "zeros" => Ok(Data::Zeros),
            "random" => Ok(Data::Random),
            other => match other.strip_prefix("text:") {
                Some(ratio) => ratio_of(ratio).map(|ratio| Data::Text { ratio }),
                None => Ok(Data::Path(PathBuf::from(other))),
            },
        }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::Zeros => formatter.write_str("zeros"),
            Data::Random => formatter.write_str("random"),
            Data::Text { ratio } => write!(formatter, "text:{ratio}"),
            Data::Path(path) => write!(formatter, "{}", path.display()),
        }
    }
}

fn ratio_of(text: &str) -> Result<f64, PayloadError> {
    let ratio = text.parse::<f64>().ok().filter(|ratio| (RATIO_MIN..=RATIO_MAX).contains(ratio));
    ratio.ok_or_else(|| PayloadError::Ratio { text: text.to_owned() })
}

/// Why there are no such data.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// No data at all were named.
    #[error("data without a name: zeros, random, text:RATIO, a file or a folder")]
    Empty,
    /// A ratio that cannot be made.
    #[error("text:{text}: a ratio is a number from {RATIO_MIN} to {RATIO_MAX}")]
    Ratio {
        /// As typed.
        text: String,
    },
    /// A file that holds nothing.
    #[error("{}: the file is empty", path.display())]
    EmptyFile { path: PathBuf },
    /// A file that cannot be read.
    #[error("read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A word that is no file, and nearly the name of data that can be made.
    #[error("{} does not exist, and no data are called {typed}: {}", path.display(),
            there_are(typed, &NAMES))]
    Unknown {
        path: PathBuf,
        /// Its name, as it was typed.
        typed: String,
    },
    /// A tree of nothing but names.
    #[error("{}: all files in it are empty", path.display())]
    EmptyTree {
        /// The tree.
        path: PathBuf,
    },
    /// A tree that cannot be walked.
    #[error(transparent)]
    Scan(#[from] ::tree::ScanError),
    /// A block in which the framing has no place.
    #[error("a block of {block_bytes} bytes: {why}")]
    Block {
        block_bytes: usize,
        /// What it would have to be.
        why: &'static str,
    },
    /// The name of a framing is unknown.
    #[error("{text}: a framing is raw, tar or bacula")]
    Framing {
        /// The name as typed.
        text: String,
    },
}

impl PayloadError {
    fn read(path: &Path, source: io::Error) -> PayloadError {
        let typed = path.file_name().map_or(String::new(), |name| name.to_string_lossy().into());
        if source.kind() == io::ErrorKind::NotFound && meant(&typed, NAMES).is_some() {
            return PayloadError::Unknown { path: path.to_owned(), typed };
        }
        PayloadError::Read { path: path.to_owned(), source }
    }
}

impl Data {
    /// What is read from its disk while it is written: a folder, and of a file whatever is to be
    /// read in blocks of a size that was asked for.
    pub fn tree(&self, read_block_bytes: Option<usize>) -> Option<&Path> {
        match self {
            Data::Path(path) if read_block_bytes.is_some() || path.is_dir() => Some(path),
            _ => None,
        }
    }
}

/// An endless stream of such data.
#[derive(Debug)]
pub struct Payload {
    stream: Stream,
}

#[derive(Debug)]
enum Stream {
    Zeros,
    Noise(Box<Noise>),
    Text(Box<Text>),
    File(FileData),
}

impl Payload {
    /// The beginning of the stream. Runs that are not to be the same bytes get different seeds;
    /// zeros and files have no use for one.
    ///
    /// # Errors
    /// A ratio out of range, or a file that cannot be read or is empty.
    pub fn open(data: &Data, seed: u64) -> Result<Payload, PayloadError> {
        let stream = match data {
            Data::Zeros => Stream::Zeros,
            Data::Random => Stream::Noise(Box::new(Noise::new(seed))),
            Data::Text { ratio } if (RATIO_MIN..=RATIO_MAX).contains(ratio) => {
                Stream::Text(Box::new(Text::new(*ratio, seed)))
            }
            Data::Text { ratio } => return Err(PayloadError::Ratio { text: ratio.to_string() }),
            Data::Path(path) => Stream::File(FileData::open(path)?),
        };
        Ok(Payload { stream })
    }

    /// Fills `buffer` with what comes next.
    ///
    /// # Errors
    /// Only with a file that is too large for memory: reading it failed, or it shrank to nothing.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<(), PayloadError> {
        match &mut self.stream {
            Stream::Zeros => buffer.fill(0),
            Stream::Noise(noise) => noise.fill(buffer),
            Stream::Text(text) => text.fill(buffer),
            Stream::File(file) => file.fill(buffer)?,
        }
        Ok(())
    }

    /// What should be known of these data when a run is judged: that they may be the limit, or that
    /// they are so short that a drive sees them again. Empty of all that are made here.
    pub fn cautions(&self) -> Vec<String> {
        match &self.stream {
            Stream::File(file) => file.cautions(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
