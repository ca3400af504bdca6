//! A tree as a tar archive: the members that a backup would make, in blocks.
//!
//! Each file on the medium is an archive that ends with its last block. A member that does not fit
//! into one goes on in the next as a member of the same name, with what was left: nothing of a
//! disk is read twice, and what an archive says of its members is what it holds.

use archive::encode::{encode_end_of_archive, encode_member};
use archive::header::UNIT_BYTES;
use archive::member::Member;

use crate::payload::tree::Tree;

/// The mark at the end of an archive.
const END_BYTES: u64 = 2 * UNIT_BYTES as u64;

/// An archive under way.
#[derive(Debug, Default)]
pub struct Archive {
    /// Bytes that are left of the file on the medium.
    room: u64,
    /// Headers, padding or the end mark, and how much of that is written.
    pending: Vec<u8>,
    written: usize,
    /// Bytes of content that follow, as the present header says.
    content: u64,
    /// A member whose content is not announced in full yet.
    member: Option<Member>,
    is_ended: bool,
}

impl Archive {
    /// Begins a file of so many bytes.
    pub fn begin(&mut self, room: u64) {
        self.room = room / UNIT_BYTES as u64 * UNIT_BYTES as u64;
        self.is_ended = false;
    }

    /// Fills the next block.
    pub fn fill(&mut self, block: &mut [u8], tree: &mut Tree) {
        let mut at = 0;
        while at < block.len() {
            let rest = &mut block[at..];
            let bytes = if self.written < self.pending.len() {
                let bytes = rest.len().min(self.pending.len() - self.written);
                rest[..bytes].copy_from_slice(&self.pending[self.written..][..bytes]);
                self.written += bytes;
                bytes
            } else if self.content > 0 {
                let bytes = usize::try_from(self.content).unwrap_or(usize::MAX).min(rest.len());
                tree.read(&mut rest[..bytes]);
                self.content -= bytes as u64;
                bytes
            } else if self.is_ended {
                rest.fill(0);
                rest.len()
            } else {
                self.next(self.room - at as u64, tree);
                0
            };
            at += bytes;
        }
        self.room -= block.len() as u64;
    }

    /// Whether all of the tree is in the archive, and its end, too.
    pub fn is_done(&self, tree: &mut Tree) -> bool {
        let is_written = self.written == self.pending.len() && self.content == 0;
        self.is_ended && is_written && self.member.is_none() && tree.is_at_end()
    }

    /// Puts up what follows: a header with the padding of the content before it, or the end.
    fn next(&mut self, room: u64, tree: &mut Tree) {
        self.written = 0;
        self.pending.clear();
        let padding = room % UNIT_BYTES as u64;
        self.pending.resize(padding as usize, 0);
        let member = self.member.take().or_else(|| tree.next_member());
        let Some(mut member) = member else { return self.end() };
        let left = tree.left();
        member.size_bytes = left;
        if let Err(error) = encode_member(&member, &mut self.pending) {
            tree.give_up(&member, &error);
            return;
        }
        let unit = UNIT_BYTES as u64;
        let besides = self.pending.len() as u64 + END_BYTES;
        let most = room.saturating_sub(besides) / unit * unit;
        if besides > room || (left > 0 && most == 0) {
            self.pending.truncate(padding as usize);
            self.member = Some(member);
            return self.end();
        }
        self.content = left.min(most);
        if left > most {
            member.size_bytes = most;
            self.pending.truncate(padding as usize);
            // Smaller numbers take no more room, and it could be encoded a moment ago.
            let _ = encode_member(&member, &mut self.pending);
            self.member = Some(member);
        }
    }

    fn end(&mut self) {
        encode_end_of_archive(&mut self.pending);
        self.is_ended = true;
    }
}
