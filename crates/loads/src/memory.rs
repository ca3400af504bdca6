//! Memory that a virtual machine has given back to its host, and taking it again before a run.
//!
//! With free page reporting (virtio 1.2, 5.5.6.7; Linux: `mm/page_reporting.c`) a guest tells its
//! host of pages that have been free for about two seconds, and the host takes the memory away.
//! Whoever touches such a page next waits until the host has found another one. A run through the
//! page cache fills gigabytes of free pages: right behind another run it finds them warm, three
//! seconds later it reads at a sixth of the rate, and neither says anything about the disk. So
//! before such a run the memory that it is going to fill is touched and freed.

use flow::cancel::Cancel;
use flow::ring::{RingOptions, ring};
use machine::counters::memory::Memory;

use experiment::environment::is_memory_given_back;

/// Share of the memory that is available which is touched at most.
const SHARE: u64 = 2;

/// Bytes of a huge page: the page cache takes its memory in large pieces, too.
const BLOCK_BYTES: usize = 2 << 20;

/// Touches and frees so many bytes, where free memory is given back: the pages that are freed last
/// are the next ones to be used.
pub fn take_back(bytes: u64) {
    if !is_memory_given_back() {
        return;
    }
    let bytes = bytes.min(Memory::now().map_or(0, |memory| memory.available_bytes) / SHARE);
    let blocks = usize::try_from(bytes / BLOCK_BYTES as u64).unwrap_or(0).max(2);
    let options = RingOptions { block_bytes: BLOCK_BYTES, blocks, consumers: 1 };
    let Ok((producer, _consumers)) = ring(options, Cancel::new()) else { return };
    for _ in 0..blocks {
        let Some(mut reservation) = producer.try_reserve(BLOCK_BYTES) else { return };
        reservation.slices_mut().for_each(|slice| slice.fill(1));
        reservation.commit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_memory_back_ends() {
        take_back(1 << 20);
    }
}
