//! From stored content to places in a file: contiguous for a plain file, run by run for a sparse
//! one.

use archive::member::{Extent, Member};

/// Where the next stored byte of a file belongs.
#[derive(Debug)]
pub(crate) struct Placement {
    runs: Option<Vec<Extent>>,
    /// The current run, and how much of it is filled.
    run: usize,
    filled_bytes: u64,
}

impl Placement {
    /// The begin of what the member stores.
    pub fn of(member: &Member) -> Placement {
        Placement { runs: member.sparse.clone(), run: 0, filled_bytes: 0 }
    }

    /// Passes the next stored bytes to `put`, with their offset in the file.
    pub fn place<E>(
        &mut self,
        mut bytes: &[u8],
        mut put: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.runs.is_none() {
            put(self.filled_bytes, bytes)?;
            self.filled_bytes += bytes.len() as u64;
            return Ok(());
        }
        while !bytes.is_empty() {
            // The decoder has checked that the runs add up to the stored bytes.
            let run = self.runs.as_ref().and_then(|runs| runs.get(self.run));
            let Some(run) = run.copied() else { return Ok(()) };
            let room_bytes = run.length_bytes - self.filled_bytes;
            let now_bytes = (bytes.len() as u64).min(room_bytes) as usize;
            let (now, later) = bytes.split_at(now_bytes);
            if !now.is_empty() {
                put(run.offset_bytes + self.filled_bytes, now)?;
            }
            self.advance(now_bytes as u64);
            bytes = later;
        }
        Ok(())
    }

    /// Skips missing stored bytes.
    pub fn skip(&mut self, bytes: u64) {
        let mut left = bytes;
        while left > 0 {
            let room_bytes = match &self.runs {
                None => left,
                Some(runs) => match runs.get(self.run) {
                    Some(run) => run.length_bytes - self.filled_bytes,
                    None => return,
                },
            };
            let now = left.min(room_bytes);
            self.advance(now);
            left -= now;
        }
    }

    fn advance(&mut self, bytes: u64) {
        self.filled_bytes += bytes;
        let length_bytes =
            self.runs.as_ref().and_then(|runs| runs.get(self.run)).map(|run| run.length_bytes);
        if length_bytes == Some(self.filled_bytes) {
            self.run += 1;
            self.filled_bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const RUNS: [(u64, u64); 4] = [(0, 3), (10, 0), (20, 4), (100, 5)];

    /// Where each stored byte belongs.
    fn places(is_sparse: bool) -> Vec<u64> {
        if !is_sparse {
            return (0..12).collect();
        }
        RUNS.iter().flat_map(|(offset, length)| *offset..offset + length).collect()
    }

    /// Stored bytes come in pieces, some of which are missing: the others keep their places.
    #[test]
    fn what_is_missing_moves_nothing() {
        for is_sparse in [false, true] {
            let places = places(is_sparse);
            for first in 0..=places.len() {
                for second in first..=places.len() {
                    let extent =
                        |(offset_bytes, length_bytes)| Extent { offset_bytes, length_bytes };
                    let runs = is_sparse.then(|| RUNS.map(extent).to_vec());
                    let mut placement = Placement { runs, run: 0, filled_bytes: 0 };
                    let stored: Vec<u8> = (0..places.len() as u8).collect();
                    let mut found = Vec::new();
                    let mut put = |offset: u64, bytes: &[u8]| {
                        found.extend(bytes.iter().zip(offset..).map(|(byte, at)| (*byte, at)));
                        Ok::<_, Infallible>(())
                    };
                    placement.place(&stored[..first], &mut put).unwrap();
                    placement.skip((second - first) as u64);
                    placement.place(&stored[second..], &mut put).unwrap();
                    let expected = stored.iter().copied().zip(places.iter().copied());
                    let missing = first..second;
                    let expected: Vec<(u8, u64)> = expected
                        .filter(|(byte, _)| !missing.contains(&usize::from(*byte)))
                        .collect();
                    assert_eq!(found, expected, "{is_sparse} {first}..{second}");
                }
            }
        }
    }
}
