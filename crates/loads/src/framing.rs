//! What stands around the data on the tape: nothing, tar headers, or Bacula's block structure.
//!
//! A block of made data is filled as a whole and stands for itself: any of them can be the last
//! one. That is so with Bacula's blocks by design; of tar it takes a member that ends with its
//! block. A tree has members of its own, and ends where it ends.
//!
//! What a program does with a block in the thread that writes is [`Framing::seal`]'s: that is the
//! thread that the drive waits for.
//!
//! Not here: the data ([`crate::payload`]) and the writing.

mod bacula;
mod crc;
mod members;
mod tar;

use std::fmt;
use std::str::FromStr;

use members::Archive;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::payload::tree::{Content, Tree, WantedObjects};
use crate::payload::{Payload, PayloadError};

/// The structure of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// Data and nothing else.
    Raw,
    /// One member of a tar archive in each block.
    Tar,
    /// Bacula's block and record headers, version BB02.
    Bacula,
}

impl Framing {
    /// All of them.
    pub const ALL: [Framing; 3] = [Framing::Raw, Framing::Tar, Framing::Bacula];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Framing::Raw => "raw",
            Framing::Tar => "tar",
            Framing::Bacula => "bacula",
        }
    }

    /// Whether a block of this size has a place for headers and at least a byte.
    ///
    /// # Errors
    /// [`PayloadError::Block`], which says what it would have to be.
    pub fn check(self, block_bytes: usize) -> Result<(), PayloadError> {
        let why = match self {
            Framing::Raw => (block_bytes == 0).then_some("there is nothing in it"),
            Framing::Tar => tar::refusal(block_bytes),
            Framing::Bacula => bacula::refusal(block_bytes),
        };
        why.map_or(Ok(()), |why| Err(PayloadError::Block { block_bytes, why }))
    }

    /// Whether blocks are to be sealed by who writes them.
    pub fn is_sealed(self) -> bool {
        self == Framing::Bacula
    }

    /// Makes a block out of one that was filled, of the same length: by a copy and a sum over it in
    /// Bacula's blocks, by a copy alone elsewhere.
    ///
    /// # Panics
    /// When the two have different lengths.
    pub fn seal(self, filled: &[u8], block: &mut [u8]) {
        match self {
            Framing::Bacula => bacula::seal(filled, block),
            Framing::Raw | Framing::Tar => block.copy_from_slice(filled),
        }
    }

    /// Bytes at which a program that writes so ends a file with a filemark and goes on in the next
    /// one, unless it is told otherwise; `None` where it does not.
    pub fn file_bytes_max(self) -> Option<u64> {
        (self == Framing::Bacula).then_some(bacula::FILE_BYTES_MAX)
    }

    /// Which objects of a tree have a place in it.
    pub fn wanted(self) -> WantedObjects {
        match self {
            Framing::Tar => WantedObjects::Objects,
            Framing::Raw | Framing::Bacula => WantedObjects::Contents,
        }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Framing {
    type Err = PayloadError;

    fn from_str(text: &str) -> Result<Framing, PayloadError> {
        let known = Framing::ALL.into_iter().find(|framing| framing.name() == text);
        known.ok_or_else(|| PayloadError::Framing { text: text.to_owned() })
    }
}

/// How a stream of blocks is cut into files on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Blocks of a file; the last file may have fewer of them.
    pub file_blocks: u64,
    /// Blocks of all files at most.
    pub blocks: u64,
}

/// What comes behind a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// Another one.
    More,
    Nothing,
}

/// Fills blocks.
#[derive(Debug)]
pub struct Framer {
    framing: Framing,
    block_bytes: usize,
    layout: Layout,
    content: Stream,
    /// Blocks so far.
    blocks: u64,
}

/// What is put into them.
#[derive(Debug)]
enum Stream {
    Made { payload: Payload, headers: Vec<u8> },
    Tree(Box<TreeStream>),
}

/// A tree, and where a stream of it is.
#[derive(Debug)]
struct TreeStream {
    tree: Tree,
    /// Of tar.
    archive: Archive,
    /// Of Bacula's records.
    file_index: u32,
}

impl Framer {
    /// Blocks of `block_bytes` with what `payload` gives.
    ///
    /// # Errors
    /// As [`Framing::check`].
    pub fn new(
        framing: Framing,
        block_bytes: usize,
        payload: Payload,
        layout: Layout,
    ) -> Result<Framer, PayloadError> {
        let content = Stream::Made { payload, headers: Vec::new() };
        Framer::of(framing, block_bytes, content, layout)
    }

    /// Blocks of `block_bytes` with what is in a tree, of which [`Framing::wanted`] was asked for.
    ///
    /// # Errors
    /// As [`Framing::check`].
    pub fn of_tree(
        framing: Framing,
        block_bytes: usize,
        tree: Tree,
        layout: Layout,
    ) -> Result<Framer, PayloadError> {
        let stream = TreeStream { tree, archive: Archive::default(), file_index: 0 };
        Framer::of(framing, block_bytes, Stream::Tree(Box::new(stream)), layout)
    }

    fn of(
        framing: Framing,
        block_bytes: usize,
        content: Stream,
        layout: Layout,
    ) -> Result<Framer, PayloadError> {
        framing.check(block_bytes)?;
        assert!(layout.file_blocks > 0 && layout.blocks > 0, "a file has a block");
        Ok(Framer { framing, block_bytes, layout, content, blocks: 0 })
    }

    /// Fills `block`, which has the size of a block, as the next one, to be sealed
    /// ([`Framing::is_sealed`]). A tar archive ends with each file.
    ///
    /// # Errors
    /// As [`Payload::fill`].
    ///
    /// # Panics
    /// When `block` has another size.
    pub fn block(&mut self, block: &mut [u8]) -> Result<Follows, PayloadError> {
        assert_eq!(block.len(), self.block_bytes, "a block of another size");
        let (number, Layout { file_blocks, blocks }) = (self.blocks, self.layout);
        self.blocks += 1;
        let is_over = match &mut self.content {
            Stream::Made { payload, headers } => {
                let is_last = self.blocks.is_multiple_of(file_blocks);
                let end = if is_last { tar::End::Last } else { tar::End::More };
                match self.framing {
                    Framing::Raw => payload.fill(block)?,
                    Framing::Tar => tar::fill(block, number, end, payload, headers)?,
                    Framing::Bacula => bacula::fill(block, number, payload)?,
                }
                false
            }
            Stream::Tree(stream) => {
                let TreeStream { tree, archive, file_index } = &mut **stream;
                if number.is_multiple_of(file_blocks) {
                    archive.begin(file_blocks.saturating_mul(self.block_bytes as u64));
                }
                match self.framing {
                    Framing::Raw => fill_with_contents(block, tree),
                    Framing::Tar => archive.fill(block, tree),
                    Framing::Bacula => bacula::fill_of_tree(block, number, tree, file_index),
                }
                match self.framing {
                    Framing::Tar => archive.is_done(tree),
                    Framing::Raw | Framing::Bacula => tree.is_at_end(),
                }
            }
        };
        let is_over = is_over || self.blocks == blocks;
        Ok(if is_over { Follows::Nothing } else { Follows::More })
    }

    /// What should be known of the data, see [`Payload::cautions`].
    pub fn cautions(&self) -> Vec<String> {
        match &self.content {
            Stream::Made { payload, .. } => payload.cautions(),
            Stream::Tree(stream) => stream.tree.cautions(),
        }
    }

    /// What was read of a tree.
    pub fn read_of_tree(&self) -> Option<Content> {
        match &self.content {
            Stream::Made { .. } => None,
            Stream::Tree(stream) => Some(stream.tree.seen()),
        }
    }
}

/// The contents of files, one after the other; zeros behind the last one.
fn fill_with_contents(block: &mut [u8], tree: &mut Tree) {
    let mut at = 0;
    while at < block.len() {
        if tree.left() == 0 && tree.next_member().is_none() {
            break;
        }
        let rest = block.len() - at;
        let bytes = usize::try_from(tree.left()).unwrap_or(rest).min(rest);
        tree.read(&mut block[at..][..bytes]);
        at += bytes;
    }
    block[at..].fill(0);
}

#[cfg(test)]
mod tests;
