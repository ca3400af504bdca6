//! Which extents are damaged, and how.

use archive::header::UNIT_BYTES;
use testkit::samples::Random;

/// The fate of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It was never written, and reads as zeros.
    Zeroed,
    /// It was never written, and has older data: an archive of the same tree.
    Stale,
    /// It and another of its length were written to each other's place.
    Swapped { with: usize },
    /// It is missing, and the following data moved up; to the tail, the file was cut.
    Cut,
}

/// An extent in bytes, and its damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub start: usize,
    pub length: usize,
    pub damage: Damage,
}

impl Case {
    /// The archive as the disk gives it back.
    pub fn apply(&self, archive: &[u8], stale: &[u8]) -> Vec<u8> {
        let mut out = archive.to_vec();
        let end = (self.start + self.length).min(out.len());
        match self.damage {
            Damage::Zeroed => out[self.start..end].fill(0),
            Damage::Stale => {
                let end = end.min(stale.len()).max(self.start.min(stale.len()));
                let start = self.start.min(end);
                out[start..end].copy_from_slice(&stale[start..end]);
            }
            Damage::Swapped { with } => {
                let length = (end - self.start).min(out.len().saturating_sub(with));
                let first = out[self.start..self.start + length].to_vec();
                let second = out[with..with + length].to_vec();
                let apart = self.start + length <= with || with + length <= self.start;
                if apart {
                    out[self.start..self.start + length].copy_from_slice(&second);
                    out[with..with + length].copy_from_slice(&first);
                }
            }
            Damage::Cut => drop(out.drain(self.start..end)),
        }
        out
    }
}

/// All cases of a small archive: extents from every unit on, of one, two and seven units and up to
/// the tail, with every kind of damage.
pub fn cases(bytes: usize) -> Vec<Case> {
    let units = bytes.div_ceil(UNIT_BYTES);
    let mut all = Vec::new();
    for unit in 0..units {
        let start = unit * UNIT_BYTES;
        for length in [1, 2, 7, units].map(|units| units * UNIT_BYTES) {
            let mut add = |damage| all.push(Case { start, length, damage });
            add(Damage::Zeroed);
            add(Damage::Stale);
            add(Damage::Cut);
            for step in [1, 3, units / 2] {
                add(Damage::Swapped { with: (unit + step) % units * UNIT_BYTES });
            }
        }
    }
    all
}

/// This many random cases, of lengths from a unit to the tail, most of them whole units.
pub fn random_cases(bytes: usize, seed: u64, count: usize) -> Vec<Case> {
    let mut random = Random::numbered(seed);
    let mut below = |limit: usize| random.index(limit.max(1));
    let mut all = Vec::new();
    for _ in 0..count {
        let unit = if below(8) == 0 { 1 } else { UNIT_BYTES };
        // The end, with the index, is hit as often as all the rest.
        let start = match below(2) {
            0 => below(bytes),
            _ => bytes.saturating_sub(1 + below(16 << 10)),
        };
        let start = start / unit * unit;
        let length = match below(4) {
            0 => bytes - start,
            1 => UNIT_BYTES,
            _ => UNIT_BYTES << below(12),
        };
        let damage = match below(4) {
            0 => Damage::Zeroed,
            1 => Damage::Stale,
            2 => Damage::Cut,
            _ => Damage::Swapped { with: below(bytes) / unit * unit },
        };
        all.push(Case { start, length, damage });
    }
    all
}
