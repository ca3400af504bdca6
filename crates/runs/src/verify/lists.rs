//! Lists of results, each with a limit.

use tree::Difference;

/// Most entries of each list in a [`VerifyReport`](super::VerifyReport); the totals go on counting.
pub const LISTED_MAX: usize = 10_000;

/// Most bytes of text in each list: a path may have a megabyte.
pub const LISTED_BYTES_MAX: usize = 4 << 20;

/// Some entries and the number of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounded<T> {
    /// The first [`LISTED_MAX`], or fewer if limited by [`LISTED_BYTES_MAX`].
    pub items: Vec<T>,
    /// How many there are in all.
    pub total: u64,
    text_bytes: usize,
}

/// Something with text that an archive may make long.
pub(crate) trait Textual {
    /// How long.
    fn text_bytes(&self) -> usize;
}

impl Textual for Problem {
    fn text_bytes(&self) -> usize {
        self.path.len() + self.what.len()
    }
}

impl Textual for Differing {
    fn text_bytes(&self) -> usize {
        self.path.len() + self.differences.iter().map(difference_bytes).sum::<usize>()
    }
}

pub(super) fn difference_bytes(difference: &Difference) -> usize {
    let name = match difference {
        Difference::LinkTarget { live } => live.len(),
        Difference::Attribute { name, .. } => name.len(),
        _ => 0,
    };
    size_of::<Difference>() + name
}

impl<T> Default for Bounded<T> {
    fn default() -> Bounded<T> {
        Bounded { items: Vec::new(), total: 0, text_bytes: 0 }
    }
}

impl<T> Bounded<T> {
    pub(crate) fn push(&mut self, item: T)
    where
        T: Textual,
    {
        self.total += 1;
        self.text_bytes = self.text_bytes.saturating_add(item.text_bytes());
        if self.items.len() < LISTED_MAX && self.text_bytes <= LISTED_BYTES_MAX {
            self.items.push(item);
        }
    }
}

/// Something with a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path in the archive, or below the directory compared with; empty for the whole archive.
    pub path: Vec<u8>,
    /// What is wrong: a lowercase fragment.
    pub what: String,
}

/// A live object that differs from the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    /// Path in the archive.
    pub path: Vec<u8>,
    /// The metadata that differ.
    pub differences: Vec<Difference>,
    /// First byte of the content that differs, when both have the same length.
    pub content_differs_at_bytes: Option<u64>,
}
