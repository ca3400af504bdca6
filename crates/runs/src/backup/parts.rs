//! The unread parts of a large file, cut where its runs and the blocks of the ring end.

use std::collections::VecDeque;

use archive::member::Extent;

use super::draft::padded;

/// The parts that no thread has taken yet, in archive order.
#[derive(Debug, Default)]
pub(super) struct Parts {
    runs: VecDeque<Extent>,
    /// Bytes that follow the last run.
    padding_bytes: usize,
}

/// Bytes of the file that are adjacent in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Where they are in the file.
    pub(super) offset_bytes: u64,
    pub(super) content_bytes: u64,
    /// Zeros behind them: the padding at the end of the content.
    pub(super) padding_bytes: usize,
    /// Whether the content ends with it.
    pub(super) is_last: bool,
}

impl Part {
    /// Bytes that it takes in the archive.
    pub(super) fn total_bytes(&self) -> usize {
        self.content_bytes as usize + self.padding_bytes
    }
}

impl Parts {
    /// All of a content of this many bytes in these runs.
    pub(super) fn new(runs: Vec<Extent>, content_bytes: u64) -> Parts {
        let runs = runs.into_iter().filter(|run| run.length_bytes > 0).collect();
        Parts { runs, padding_bytes: (padded(content_bytes) - content_bytes) as usize }
    }

    /// The next part, if `room_bytes` are left in the block. The padding is in the same block as
    /// the data before it: blocks and places are multiples of 512.
    pub(super) fn next(&self, room_bytes: u64) -> Option<Part> {
        let run = self.runs.front()?;
        let content_bytes = run.length_bytes.min(room_bytes);
        let is_last = self.runs.len() == 1 && content_bytes == run.length_bytes;
        let padding_bytes = if is_last { self.padding_bytes } else { 0 };
        Some(Part { offset_bytes: run.offset_bytes, content_bytes, padding_bytes, is_last })
    }

    /// Marks the next part as taken.
    pub(super) fn take(&mut self, part: Part) {
        if let Some(run) = self.runs.front_mut() {
            run.offset_bytes += part.content_bytes;
            run.length_bytes -= part.content_bytes;
            if run.length_bytes == 0 {
                self.runs.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_with_blocks_and_runs_and_the_last_has_the_padding() {
        let run = |offset_bytes, length_bytes| Extent { offset_bytes, length_bytes };
        let runs = vec![run(4096, 2048), run(8192, 0), run(16384, 700)];
        let mut parts = Parts::new(runs, 2748);
        let mut seen = Vec::new();
        for room_bytes in [1536, 4096, 3584, 4096] {
            if let Some(part) = parts.next(room_bytes) {
                parts.take(part);
                seen.push((part.offset_bytes, part.total_bytes(), part.is_last));
            }
        }
        assert_eq!(seen, [(4096, 1536, false), (5632, 512, false), (16384, 1024, true)]);
    }
}
