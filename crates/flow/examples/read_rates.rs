//! How fast a disk serves one stream, by the alignment of requests in the file and in memory.
//!
//! ```text
//! read_rates FILE LEAD_BYTES FILE_OFFSET_BYTES BLOCK_BYTES BLOCKS DEPTH \
//!     discard|sum warmest|coldest
//! ```
//!
//! Reads FILE past the page cache, from the offset to the end, into the blocks of a ring, of which
//! the first `LEAD_BYTES` are used before: headers shift a file's content like that in an archive.
//! The consumer frees the blocks at once, or first adds up all their words, as a hash stage reads
//! them; the last argument says which free block is filled next. Drop the page cache before each
//! run; compare with
//! `fio --rw=read --direct=1 --bs=1M --iodepth=8 --ioengine=io_uring --filename=FILE`.
#![allow(clippy::print_stdout)]

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use device::file::{Direct, set_direct};
use flow::account::Stage;
use flow::backend::{Choice, Engine, Memory, TransferRequest};
use flow::cancel::Cancel;
use flow::ring::{Consumer, Producer, Reuse, RingOptions, ring};
use flow::run::StageKind;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, lead, offset, block, blocks, depth, consume, reuse] = &arguments[..] else {
        panic!("usage: see the first lines of this file");
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let file = OwnedFd::from(std::fs::File::open(path).expect("FILE can be opened"));
    let length_bytes = rustix::fs::fstat(&file).expect("FILE has a length").st_size as u64;
    set_direct(&file, Direct::On).expect("FILE can be read past the cache");
    let options = RingOptions { block_bytes: number(block), blocks: number(blocks), consumers: 1 };
    let (producer, mut consumers) = ring(options, Cancel::new()).expect("there is memory");
    let consumer = consumers.pop().expect("there is one");
    if reuse == "coldest" {
        producer.set_reuse(Reuse::Coldest);
    }
    let sum = consume == "sum";
    let start = Instant::now();
    let thread = std::thread::spawn(move || drain(&consumer, sum));
    let offset_bytes = number(offset) as u64;
    let bytes = length_bytes - offset_bytes;
    read(Arc::new(file), &producer, number(lead), offset_bytes..length_bytes, number(depth));
    producer.finish();
    let total = thread.join().expect("the consumer does not panic");
    let seconds = start.elapsed().as_secs_f64();
    let rate = bytes as f64 / seconds / 1e6;
    println!("{bytes} bytes in {seconds:.3} s: {rate:.0} MB/s (sum {total:x})");
}

fn read(
    file: Arc<OwnedFd>,
    producer: &Producer,
    lead_bytes: usize,
    range: std::ops::Range<u64>,
    depth: usize,
) {
    let mut account = Stage::new(StageKind::Read).open();
    let engine = Choice::new(Engine::IoUring).expect("io_uring is to be had");
    let mut in_flight = engine.open(depth).expect("io_uring is to be had");
    if lead_bytes > 0 {
        producer.try_reserve(lead_bytes).expect("the ring is empty").commit();
    }
    let mut at = range.start;
    loop {
        while at < range.end && !in_flight.is_full() {
            let block_bytes = producer.block_bytes() as u64;
            let here = block_bytes - producer.position_bytes() % block_bytes;
            let bytes = here.min(range.end - at) as usize;
            let reservation = in_flight.reserve(producer, bytes, &mut account);
            let Some(reservation) = reservation.expect("nobody cancels") else { break };
            let piece = reservation.into_pieces().next().expect("a piece lies in one block");
            let operation = TransferRequest::new(&file, at, Memory::Fill(piece));
            in_flight.begin(operation).expect("the kernel takes it");
            at += bytes as u64;
        }
        let Some(done) = in_flight.wait_whole().expect("FILE can be read") else { return };
        done.into_piece().commit();
    }
}

fn drain(consumer: &Consumer, sum: bool) -> u64 {
    let mut account = Stage::new(StageKind::Write).open();
    let mut total = 0u64;
    while let Some(block) = consumer.next(&mut account).expect("nobody cancels") {
        if sum {
            let words = block.chunks_exact(8);
            total = words.fold(total, |total, word| {
                total.wrapping_add(u64::from_le_bytes(word.try_into().expect("eight bytes")))
            });
        }
    }
    total
}
