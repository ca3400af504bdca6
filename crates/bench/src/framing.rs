//! What stands around the data on the tape: nothing, tar headers, or Bacula's block structure.
//!
//! A block is filled as a whole and stands for itself: any of them can be the last one. That is so
//! with Bacula's blocks by design; of tar it takes a member that ends with its block.
//!
//! Not here: the data ([`crate::payload`]) and the writing.

mod bacula;
mod tar;

use std::fmt;
use std::str::FromStr;

use crate::payload::{Payload, PayloadError};

/// The structure of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Data and nothing else.
    Raw,
    /// One member of a tar archive in each block.
    Tar,
    /// Bacula's block and record headers, version BB02.
    Bacula,
}

/// A word that is none of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}: a framing is raw, tar or bacula")]
pub struct UnknownFraming {
    /// As typed.
    pub text: String,
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
}

impl fmt::Display for Framing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Framing {
    type Err = UnknownFraming;

    fn from_str(text: &str) -> Result<Framing, UnknownFraming> {
        let known = Framing::ALL.into_iter().find(|framing| framing.name() == text);
        known.ok_or_else(|| UnknownFraming { text: text.to_owned() })
    }
}

/// Fills blocks.
#[derive(Debug)]
pub struct Framer {
    framing: Framing,
    block_bytes: usize,
    payload: Payload,
    /// Blocks so far.
    blocks: u64,
    headers: Vec<u8>,
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
    ) -> Result<Framer, PayloadError> {
        framing.check(block_bytes)?;
        Ok(Framer { framing, block_bytes, payload, blocks: 0, headers: Vec::new() })
    }

    /// Fills `block`, which has the size of a block, as the next one.
    ///
    /// # Errors
    /// As [`Payload::fill`].
    ///
    /// # Panics
    /// When `block` has another size.
    pub fn block(&mut self, block: &mut [u8]) -> Result<(), PayloadError> {
        self.fill(block, tar::End::More)
    }

    /// As [`Framer::block`], for the block after which nothing comes: a tar archive ends in it.
    ///
    /// # Errors
    /// As [`Payload::fill`].
    ///
    /// # Panics
    /// When `block` has another size.
    pub fn last_block(&mut self, block: &mut [u8]) -> Result<(), PayloadError> {
        self.fill(block, tar::End::Last)
    }

    /// What should be known of the data, see [`Payload::cautions`].
    pub fn cautions(&self) -> Vec<String> {
        self.payload.cautions()
    }

    fn fill(&mut self, block: &mut [u8], end: tar::End) -> Result<(), PayloadError> {
        assert_eq!(block.len(), self.block_bytes, "a block of another size");
        let number = self.blocks;
        self.blocks += 1;
        match self.framing {
            Framing::Raw => self.payload.fill(block),
            Framing::Tar => tar::fill(block, number, end, &mut self.payload, &mut self.headers),
            Framing::Bacula => bacula::fill(block, number, &mut self.payload),
        }
    }
}

#[cfg(test)]
mod tests;
