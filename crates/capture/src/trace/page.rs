//! A page of the ring buffer: consecutive events, each with the time since the one before
//! (Documentation/trace/ring-buffer-design.rst; `include/linux/ring_buffer.h`).
//!
//! Pages come from the kernel, but are parsed as untrusted input. This module does no I/O.

use crate::trace::error::LayoutError;

use crate::trace::format::{self, Field, place};

/// Smaller types of entries are lengths, in words of 4 bytes.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the time difference in the header of an entry, of 59.
const DELTA_BITS: u32 = 27;
/// Bits of a time stamp; the higher bits come from the time before it.
const STAMP_BITS: u32 = 59;
/// Beside the length in `commit` (`RB_MISSED_EVENTS`, `RB_MISSED_STORED`).
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
const LENGTH: u64 = (1 << 27) - 1;

/// The layout of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    timestamp: Field,
    commit: Field,
    data_offset: usize,
    /// Bytes of a whole page.
    pub page_bytes: usize,
}

impl Layout {
    /// From the text of `events/header_page`.
    ///
    /// # Errors
    /// When a field has no offset.
    pub fn parse(text: &[u8]) -> Result<Layout, LayoutError> {
        let fields = format::fields(&String::from_utf8_lossy(text))?;
        let find = |name: &str| {
            let field = fields.iter().find(|field| field.name == name).cloned();
            field.ok_or_else(|| LayoutError::Field(name.to_owned()))
        };
        let data = find("data")?;
        Ok(Layout {
            timestamp: find("timestamp")?,
            commit: find("commit")?,
            data_offset: data.offset,
            page_bytes: data.offset + data.size,
        })
    }
}

/// An entry of a page that is an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// When, in ns of the instance's clock.
    pub time_ns: u64,
    /// What its `format` describes.
    pub event: &'a [u8],
}

/// The entries of a page, in order. It ends with the first that makes no sense.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    data: &'a [u8],
    at: usize,
    time_ns: u64,
    /// Events that were lost in front of this page, if any were: how many, where it is told.
    pub missed: Option<Option<u64>>,
}

impl<'a> Entries<'a> {
    /// Of a page, as `trace_pipe_raw` gives it.
    ///
    /// # Errors
    /// When its header makes no sense.
    pub fn of(layout: &Layout, page: &'a [u8]) -> Result<Entries<'a>, LayoutError> {
        let short = || LayoutError::ShortPage(page.len());
        let time_ns = layout.timestamp.value(page).ok_or_else(short)?;
        let commit = layout.commit.value(page).ok_or_else(short)?;
        let data = page.get(layout.data_offset..).ok_or_else(short)?;
        let said = commit & LENGTH;
        let length = usize::try_from(said).ok().filter(|length| *length <= data.len());
        let length = length.ok_or(LayoutError::PageLength { said, has: data.len() })?;
        let stored = || place(data, length, 8).filter(|_| commit & MISSED_STORED != 0);
        let missed = (commit & MISSED != 0).then(stored);
        Ok(Entries { data: &data[..length], at: 0, time_ns, missed })
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.data.get(at..at.checked_add(4)?)?;
        Some(u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
    }

    /// Where the next entry begins, and the event of this one if it is one; `None` at the end.
    fn step(&mut self) -> Option<Option<(usize, usize, usize)>> {
        let header = self.word(self.at)?;
        let (kind, delta) = split(header);
        let behind = self.at + 4;
        let array = || self.word(behind);
        let found = match kind {
            // What is left of the page is empty.
            PADDING if delta == 0 => return Some(None),
            PADDING => {
                let length = array()? as usize;
                self.time_ns = self.time_ns.wrapping_add(delta);
                (behind.checked_add(length)?, 0, 0)
            }
            TIME_EXTEND => {
                let high = u64::from(array()?) << DELTA_BITS;
                self.time_ns = self.time_ns.wrapping_add(high + delta);
                (behind + 4, 0, 0)
            }
            TIME_STAMP => {
                let low = (u64::from(array()?) << DELTA_BITS) + delta;
                let above = self.time_ns >> STAMP_BITS << STAMP_BITS;
                self.time_ns = above | low;
                (behind + 4, 0, 0)
            }
            0 => {
                let length = array()? as usize;
                self.time_ns = self.time_ns.wrapping_add(delta);
                let end = behind.checked_add(length.max(4))?;
                (end.checked_add(3)? & !3, behind + 4, end)
            }
            words => {
                self.time_ns = self.time_ns.wrapping_add(delta);
                let end = behind + words as usize * 4;
                (end, behind, end)
            }
        };
        (found.0 <= self.data.len()).then_some(Some(found))
    }
}

/// The type of an entry, and the time since the one before it.
fn split(header: u32) -> (u32, u64) {
    if cfg!(target_endian = "big") {
        (header >> DELTA_BITS, u64::from(header & ((1 << DELTA_BITS) - 1)))
    } else {
        (header & 31, u64::from(header >> 5))
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, LayoutError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.data.len() {
            let begun = self.at;
            let Some(step) = self.step() else {
                self.at = self.data.len();
                return Some(Err(LayoutError::PageEntry(begun)));
            };
            let Some((next, from, to)) = step else {
                self.at = self.data.len();
                return None;
            };
            self.at = next;
            if from < to {
                let event = &self.data[from..to];
                return Some(Ok(Entry { time_ns: self.time_ns, event }));
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "page/tests.rs"]
mod tests;
