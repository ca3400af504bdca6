//! The compress stage: one chunk per thread at a time, out in the order they came in.

use std::sync::Mutex;

use archive::chunk::{ChunkCompressor, Compression};
use base::failures::lock;
use flow::account::{Account, ThreadState};
use flow::ring::{Consumer, Producer};
use flow::turnstile::Turnstile;
use tapeset::{Chunks, Segments};

use super::error::BackupError;
use super::groups::in_archive;

/// What the threads of the stage share.
#[derive(Clone)]
pub(super) struct Shared<'a> {
    pub(super) consumer: &'a Consumer,
    pub(super) producer: &'a Producer,
    pub(super) turnstile: &'a Turnstile,
    pub(super) compression: Compression,
    pub(super) chunks: &'a Mutex<Chunks>,
    /// On tape: where segments end.
    pub(super) segments: Option<&'a Segments>,
}

/// One thread of the stage. A block of the ring before it is a chunk.
pub(super) fn run(shared: &Shared<'_>, account: &mut Account) -> Result<(), BackupError> {
    let mut compressor =
        ChunkCompressor::new(shared.compression).map_err(BackupError::Compression)?;
    let (mut chunk, mut padding) = (Vec::new(), Vec::new());
    while let Some(block) = shared.consumer.next(account)? {
        chunk.clear();
        compressor.compress(&block, &mut chunk).map_err(BackupError::Compress)?;
        let (number, bytes) = (block.number(), block.len() as u64);
        let archive_end = in_archive(block.position_bytes()) + bytes;
        drop(block);
        let turn = shared.turnstile.enter(number, account, ThreadState::Blocked)?;
        lock(shared.chunks).push((chunk.len() as u32, bytes as u32));
        put(shared.producer, &chunk, account)?;
        if let Some(segments) = shared.segments {
            // The ring behind this stage holds the stored stream.
            let stored_end = shared.producer.position_bytes().same_in();
            segments.padding_behind(archive_end, stored_end, &mut padding);
            if !padding.is_empty() {
                lock(shared.chunks).push((padding.len() as u32, 0));
                put(shared.producer, &padding, account)?;
            }
        }
        turn.pass();
        account.stage().add_bytes(bytes);
    }
    Ok(())
}

/// Appends bytes to a ring, in reservations small enough to be granted.
pub(super) fn put(
    producer: &Producer,
    bytes: &[u8],
    account: &mut Account,
) -> Result<(), flow::cancel::Stopped> {
    for part in bytes.chunks(producer.block_bytes()) {
        let mut reservation = producer.reserve(part.len(), account)?;
        reservation.filler().put(part);
        reservation.commit();
    }
    Ok(())
}
