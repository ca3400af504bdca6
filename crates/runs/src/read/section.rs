//! The content of an index section in the stream, as a reader.

use std::io::{self, Read};

use archive::index::SetIdHasher;
use flow::account::Account;
use flow::cancel::Stopped;

use super::Slice;
use super::members::{ContentPiece, MemberStream};

/// The content of a section as a reader.
pub(crate) struct SectionReader<'s, 'a, 'b> {
    stream: &'s mut MemberStream<'a>,
    account: &'b mut Account,
    slice: Option<Slice>,
    used: usize,
    stopped: Option<Stopped>,
    /// Receives all bytes that are read.
    set_id: Option<&'b mut SetIdHasher>,
}

impl<'s, 'a, 'b> SectionReader<'s, 'a, 'b> {
    /// Reads the current section.
    pub fn new(stream: &'s mut MemberStream<'a>, account: &'b mut Account) -> Self {
        SectionReader { stream, account, slice: None, used: 0, stopped: None, set_id: None }
    }

    /// Passes all bytes to the hash that makes the set id.
    pub fn with_set_id(mut self, set_id: Option<&'b mut SetIdHasher>) -> Self {
        self.set_id = set_id;
        self
    }

    /// Why reading stopped, if the run was stopped: the reader's own error hides it.
    pub fn stopped(self) -> Result<(), Stopped> {
        self.stopped.map_or(Ok(()), Err)
    }
}

impl Read for SectionReader<'_, '_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(slice) = &self.slice {
                let rest = &slice[self.used..];
                if !rest.is_empty() {
                    let bytes = rest.len().min(out.len());
                    out[..bytes].copy_from_slice(&rest[..bytes]);
                    self.used += bytes;
                    return Ok(bytes);
                }
            }
            self.slice = None;
            self.used = 0;
            match self.stream.next_piece(self.account) {
                Ok(Some(ContentPiece::Data(slice))) => {
                    if let Some(set_id) = &mut self.set_id {
                        set_id.update(&slice);
                    }
                    self.slice = Some(slice);
                }
                Ok(Some(ContentPiece::Missing { .. })) => {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Ok(None) => return Ok(0),
                Err(stopped) => {
                    self.stopped = Some(stopped);
                    return Err(io::Error::other(stopped));
                }
            }
        }
    }
}
