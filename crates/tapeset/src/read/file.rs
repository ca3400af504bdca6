//! A tape file that another program wrote: `tar`, `dd`, anything.
//!
//! The size of its blocks is unknown, so the buffer grows until they fit. The drive is in variable
//! mode: each read returns one block of any size.
//!
//! The file may be a piece of a Takeup set without its labels. That shows in passing ([`Sign`]): in
//! a label among its blocks, or at the front of the next file.

use std::sync::atomic::{AtomicBool, Ordering};

use archive::label::{Found, Label, LabelError};
use archive::stream::StoredOffset;

use super::blocks::Met;
use super::drive::LoadedDrive;
use super::failure::TapeReadFailure;
use super::feed::Feed;
use super::label_reader::read_block;
use super::sign::Sign;
use crate::block::FIRST_BUFFER_BYTES;

/// Why a file is read as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// The user asked for it by number, whoever wrote it.
    ThisFile,
    /// The medium has no set.
    Whatever,
}

/// A tape file whose first block was read.
pub(crate) struct TapeFile {
    pub(super) drive: LoadedDrive,
    /// Number of the file, if known.
    pub number: Option<u32>,
    wish: Wish,
    sign: Option<Sign>,
    buffer: Vec<u8>,
    first: Met,
}

/// The result of reading a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileEnd {
    /// Number of the next file, if there is one.
    pub following: Option<u32>,
    /// A sign that Takeup wrote the file.
    pub sign: Option<Sign>,
    /// Bytes of its blocks, except the last.
    pub block_bytes: usize,
    /// How often the ring was full.
    pub ring_was_full: u64,
}

impl TapeFile {
    /// Reads the first block at the tape's position.
    pub(super) fn open(mut drive: LoadedDrive, wish: Wish) -> Result<TapeFile, TapeReadFailure> {
        let cancel = drive.cancel.clone();
        let blocks = drive.blocks()?;
        let number = blocks.here().map(|here| here.file);
        let mut buffer = vec![0; FIRST_BUFFER_BYTES];
        if let Some(fixed) = blocks.fixed_bytes() {
            // A read in fixed mode asks for whole blocks.
            let fixed = fixed as usize;
            buffer.resize((FIRST_BUFFER_BYTES / fixed).max(1) * fixed, 0);
        }
        let first = read_block(blocks, &mut buffer, &cancel)?;
        if first == Met::EndOfData {
            let device = blocks.device();
            return Err(match number {
                Some(0) => TapeReadFailure::Blank { device },
                _ => TapeReadFailure::AtEndOfData { device },
            });
        }
        Ok(TapeFile { drive, number, wish, sign: None, buffer, first })
    }

    /// The first file of the medium, behind whose first block the tape stands.
    pub(super) fn behind_first(drive: LoadedDrive, first: Vec<u8>) -> TapeFile {
        let (number, wish, first_bytes) = (Some(0), Wish::Whatever, first.len());
        let mut buffer = first;
        buffer.resize(first_bytes.max(FIRST_BUFFER_BYTES), 0);
        TapeFile { drive, number, wish, sign: None, buffer, first: Met::Block(first_bytes) }
    }

    /// Adds a sign that was found elsewhere on the medium.
    pub fn with_sign(self, sign: Option<Sign>) -> TapeFile {
        TapeFile { sign, ..self }
    }

    /// Whether it begins with a Takeup label, even of a later version.
    pub fn opens_with_label(&self) -> bool {
        let bytes = self.block_bytes();
        let found = Label::find(&self.buffer[..bytes]);
        matches!(found, Ok(Found::Label(_)) | Err(LabelError::Later { .. }))
    }

    /// Bytes of its first block, which is as long as the others.
    pub fn block_bytes(&self) -> usize {
        match self.first {
            Met::Block(bytes) => bytes,
            _ => 0,
        }
    }

    /// Reads the file to its end.
    pub(super) fn read(
        &mut self,
        feed: &mut Feed<'_>,
        stop: &AtomicBool,
    ) -> Result<FileEnd, TapeReadFailure> {
        let cancel = self.drive.cancel.clone();
        let block_bytes = self.block_bytes();
        let mut sign = self.sign.take();
        match std::mem::replace(&mut self.first, Met::EndOfData) {
            Met::Block(bytes) => feed.put(&self.buffer[..bytes])?,
            Met::Lost { why } => {
                // The length of the missing part is unknown, but not zero.
                feed.put_gap(StoredOffset::START, 512, self.lost(&why))?;
            }
            _ => return Ok(self.end(block_bytes, sign, feed)),
        }
        while !stop.load(Ordering::Acquire) {
            let buffer_bytes = self.buffer.len();
            let ask_bytes = match self.drive.blocks()?.fixed_bytes() {
                Some(_) => buffer_bytes,
                // The buffer that worked so far: the rest of a ring block has room for it.
                None => block_bytes.max(1),
            };
            let number = feed.position_bytes().block(block_bytes.max(1) as u64);
            let room = feed.room(ask_bytes)?;
            let in_place = room.is_some();
            let buffer = room.unwrap_or(&mut self.buffer);
            let mut met = self.drive.blocks()?.read(buffer, &cancel)?;
            let mut direct = in_place;
            if let (Met::Block(bytes), None, Wish::Whatever) = (&met, &sign, self.wish) {
                sign =
                    Sign::in_passing(&buffer[..*bytes], || format!("block {number} of the file"));
            }
            if met == Met::LargerBlock {
                direct = false;
                met = read_block(self.drive.blocks()?, &mut self.buffer, &cancel)?;
            }
            match met {
                Met::Block(bytes) if direct => feed.commit(bytes),
                Met::Block(bytes) => feed.put(&self.buffer[..bytes])?,
                Met::Lost { why } => {
                    let why = self.lost(&why);
                    // The ring holds the tape file from its beginning, as a stored stream.
                    let start_bytes = feed.position_bytes().same_in();
                    feed.put_gap(start_bytes, block_bytes.max(512) as u64, why)?;
                }
                Met::Filemark | Met::EndOfData | Met::LargerBlock => break,
            }
        }
        Ok(self.end(block_bytes, sign, feed))
    }

    fn lost(&mut self, why: &str) -> String {
        let here = self.drive.blocks().ok().and_then(|blocks| blocks.here());
        match here {
            Some(spot) => format!("before {spot} of the tape: {why}"),
            None => why.to_owned(),
        }
    }

    /// Checks whether another file follows, and leaves the tape at its beginning.
    fn end(&mut self, block_bytes: usize, sign: Option<Sign>, feed: &Feed<'_>) -> FileEnd {
        let mut end =
            FileEnd { following: None, sign, block_bytes, ring_was_full: feed.ring_was_full };
        let cancel = self.drive.cancel.clone();
        let Ok(blocks) = self.drive.blocks() else { return end };
        let Some(next) = blocks.here().filter(|here| here.block == 0 && here.file > 0) else {
            return end;
        };
        // The next program to read the tape begins with that file.
        match read_block(blocks, &mut self.buffer, &cancel) {
            Ok(Met::Block(bytes)) => {
                end.following = Some(next.file);
                if self.wish == Wish::Whatever && end.sign.is_none() {
                    let place = || format!("file {}, which follows,", next.file);
                    end.sign = Sign::in_opening(&self.buffer[..bytes], place);
                }
                let _ = blocks.step_back(next);
            }
            Ok(Met::Lost { .. }) => {
                end.following = Some(next.file);
                let _ = blocks.go_to(next);
            }
            _ => {}
        }
        end
    }
}
