//! An archive whose start cannot be read.

use archive::chunk::ChunkError;
use archive::header;
use base::failures::lock;
use flow::crew::Failure;

use super::decompress::FirstLoss;
use super::members::{AfterEnd, MemberStream};
use super::{Pipeline, ReadFailure};

impl<E: Failure + From<ReadFailure>> Pipeline<'_, E> {
    /// Why not even the first member could be read, where the start of the archive is cut or
    /// damaged. What decompresses to something else is no archive, whatever follows; and on a tape,
    /// where a run that died leaves its begin, there are no data.
    pub(super) fn lost_from_the_start(&self, stream: &MemberStream<'_>) -> Option<ReadFailure> {
        if self.after_end == AfterEnd::Segments {
            return None;
        }
        let name = || self.name.clone();
        let is_first = |loss: &FirstLoss| {
            stream.is_archive() || loss.archive_bytes < header::UNIT_BYTES as u64
        };
        match lock(&self.first_loss).take().filter(is_first).map(|loss| loss.error) {
            Some(ChunkError::Truncated { end_bytes, .. }) => {
                Some(ReadFailure::CutOff { name: name(), end_bytes: end_bytes.bytes() })
            }
            Some(source) => Some(ReadFailure::Unreadable { name: name(), source }),
            None if stream.is_cut_in_header() => {
                let end_bytes = stream.position_bytes().bytes();
                Some(ReadFailure::CutOff { name: name(), end_bytes })
            }
            None => None,
        }
    }
}
