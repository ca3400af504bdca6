//! Blocks of all sizes, variable and fixed (facts 2, 3, 4, 8, 9).

use device::tape::BlockMode;
use device::tape::raw::MtOperation;
use rustix::io::Errno;

use crate::harness::{Calls, Harness, ROOM_BYTES, content, errno};

const SIZES: [usize; 12] = [
    512,
    1024,
    4096,
    10_240,
    32 * 1024,
    64 * 1024,
    100_000,
    128 * 1024,
    256 * 1024,
    512 * 1024,
    1_000_000,
    1024 * 1024,
];

pub fn variable_blocks_of_all_sizes(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    for (number, bytes) in (0..).zip(SIZES) {
        tape.write_blocks(number..number + 1, bytes);
    }
    tape.operate(MtOperation::Rewind, 1).unwrap();
    for (number, bytes) in (0..).zip(SIZES) {
        tape.expect_block(number, bytes, bytes);
    }
    tape.expect_nothing();
}

pub fn fixed_blocks_of_all_sizes(harness: &Harness) {
    let mut tape = harness.tape();
    for bytes in SIZES {
        tape.rewind().unwrap();
        tape.set_block_mode(BlockMode::Fixed(bytes as u32)).unwrap();
        tape.raw().write_blocks(0..2, bytes);
        tape.rewind().unwrap();
        tape.raw().expect_block(0, bytes, bytes);
        tape.raw().expect_block(1, bytes, bytes);
        tape.raw().expect_nothing();
    }
}

pub fn sizes_mixed(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    let sizes = [4, 5, 511, 65_536, 4, 1_048_575, 513];
    for (number, bytes) in (0..).zip(sizes) {
        tape.write_blocks(number..number + 1, bytes);
    }
    tape.operate(MtOperation::Rewind, 1).unwrap();
    for (number, bytes) in (0..).zip(sizes) {
        tape.expect_block(number, bytes, ROOM_BYTES);
    }
    tape.expect_nothing();
}

pub fn shorter_block_has_its_length(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..3, 10_000);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.expect_block(0, 10_000, 10_001);
    tape.expect_block(1, 10_000, 65_536);
    tape.expect_block(2, 10_000, ROOM_BYTES);
}

pub fn larger_block_is_passed_over(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..3, 20_000);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    assert_eq!(errno(tape.read(&mut [0; 10_000])), Errno::NOMEM);
    assert_eq!(tape.place(), (0, 1), "the tape is behind the block");
    tape.expect_block(1, 20_000, 20_000);
    tape.operate(MtOperation::BackwardBlocks, 2).unwrap();
    tape.expect_block(0, 20_000, 20_000);
}

pub fn wrong_fixed_size_steps_back(harness: &Harness) {
    let mut tape = harness.tape();
    tape.raw().write_blocks(0..3, 2048);
    for bytes in [1024_u32, 4096] {
        tape.rewind().unwrap();
        tape.set_block_mode(BlockMode::Fixed(bytes)).unwrap();
        let mut buffer = vec![0; bytes as usize];
        assert_eq!(errno(tape.raw().read(&mut buffer)), Errno::IO);
        assert_eq!(tape.raw().place(), (0, 0), "the driver has stepped back");
        tape.set_block_mode(BlockMode::Variable).unwrap();
        tape.raw().expect_block(0, 2048, 65_536);
    }
}

pub fn several_fixed_blocks_at_once(harness: &Harness) {
    let mut tape = harness.tape();
    tape.set_block_mode(BlockMode::Fixed(1024)).unwrap();
    let data = content(7, 64 * 1024);
    assert_eq!(tape.raw().write(&data).unwrap(), data.len());
    assert_eq!(tape.raw().place(), (0, 64));
    tape.rewind().unwrap();
    let mut buffer = vec![0; 16 * 1024];
    for part in data.chunks(buffer.len()) {
        assert_eq!(tape.raw().read(&mut buffer).unwrap(), part.len());
        assert!(buffer == part);
    }
    assert_eq!(tape.raw().place(), (0, 64));
}

pub fn fixed_blocks_up_to_a_filemark(harness: &Harness) {
    let mut tape = harness.tape();
    tape.set_block_mode(BlockMode::Fixed(512)).unwrap();
    let first = content(1, 3 * 512);
    let second = content(2, 2 * 512);
    tape.raw().write(&first).unwrap();
    tape.raw().operate(MtOperation::WriteFilemarks, 1).unwrap();
    tape.raw().write(&second).unwrap();
    tape.rewind().unwrap();
    let mut buffer = vec![0; 8 * 512];
    assert_eq!(tape.raw().read(&mut buffer).unwrap(), first.len());
    assert!(buffer[..first.len()] == first[..]);
    tape.raw().expect_nothing();
    assert_eq!(tape.raw().place(), (1, 0));
    assert_eq!(tape.raw().read(&mut buffer).unwrap(), second.len());
    assert!(buffer[..second.len()] == second[..]);
    tape.raw().expect_nothing();
    assert_eq!(tape.raw().place(), (2, 0));
}

pub fn fixed_blocks_in_pieces(harness: &Harness) {
    let mut tape = harness.tape();
    tape.set_block_mode(BlockMode::Fixed(512)).unwrap();
    let data = content(3, 40 * 512);
    tape.raw().write(&data).unwrap();
    tape.rewind().unwrap();
    // A size that is not a multiple of the block: the driver reads ahead.
    let mut buffer = vec![0; 700];
    let mut all = Vec::new();
    loop {
        let read = tape.raw().read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        all.extend_from_slice(&buffer[..read]);
    }
    assert!(all == data);
    assert_eq!(tape.raw().place(), (1, 0));
    // Half a block was read: the driver returns what it read ahead, except that block.
    tape.rewind().unwrap();
    assert_eq!(tape.raw().read(&mut buffer).unwrap(), 700);
    assert_eq!(tape.raw().place(), (0, 2));
    tape.set_block_mode(BlockMode::Variable).unwrap();
    let mut block = vec![0; 4096];
    assert_eq!(tape.raw().read(&mut block).unwrap(), 512);
    assert!(block[..512] == data[1024..1536]);
}

pub fn fixed_writes_are_whole_blocks(harness: &Harness) {
    let mut tape = harness.tape();
    tape.set_block_mode(BlockMode::Fixed(512)).unwrap();
    assert_eq!(errno(tape.raw().write(&content(0, 700))), Errno::INVAL);
    assert_eq!(errno(tape.raw().write(&content(0, 511))), Errno::INVAL);
    assert_eq!(tape.raw().place(), (0, 0), "nothing was written");
    assert_eq!(tape.raw().write(&content(0, 1024)).unwrap(), 1024);
}

pub fn fixed_blocks_read_as_variable(harness: &Harness) {
    let mut tape = harness.tape();
    tape.set_block_mode(BlockMode::Fixed(4096)).unwrap();
    let data = content(5, 3 * 4096);
    tape.raw().write(&data).unwrap();
    tape.rewind().unwrap();
    tape.set_block_mode(BlockMode::Variable).unwrap();
    let mut buffer = vec![0; 65_536];
    for part in data.chunks(4096) {
        assert_eq!(tape.raw().read(&mut buffer).unwrap(), 4096, "one block at a time");
        assert!(buffer[..4096] == *part);
    }
    tape.raw().expect_nothing();
}

pub fn nothing_is_written_or_read(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    assert_eq!(tape.write(&[]).unwrap(), 0);
    tape.write_blocks(0..1, 512);
    assert_eq!(tape.write(&[]).unwrap(), 0);
    assert_eq!(tape.place(), (0, 1), "an empty write is no block");
    tape.operate(MtOperation::Rewind, 1).unwrap();
    assert_eq!(tape.read(&mut []).unwrap(), 0);
    assert_eq!(tape.place(), (0, 0));
    tape.expect_block(0, 512, 512);
}

pub fn writes_above_the_limit_are_refused(harness: &Harness) {
    let (least, most) = harness.limits;
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..1, most);
    assert_eq!(errno(tape.write(&content(1, most + 1))), Errno::INVAL);
    if least > 1 {
        assert_eq!(errno(tape.write(&content(1, least - 1))), Errno::INVAL);
    }
    assert_eq!(tape.place(), (0, 1), "nothing was written");
    tape.write_blocks(1..2, least);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.expect_block(0, most, most);
    tape.expect_block(1, least, least);
    tape.expect_nothing();
}

pub fn reads_above_the_limit_are_refused(harness: &Harness) {
    let (_, most) = harness.limits;
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..1, 512);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    assert_eq!(errno(tape.read(&mut vec![0; most + 1])), Errno::INVAL);
    tape.expect_block(0, 512, most);
}

pub fn block_sizes_outside_the_limits(harness: &Harness) {
    let (least, most) = (harness.limits.0 as i32, harness.limits.1 as i32);
    let mut tape = harness.tape();
    let tape = tape.raw();
    for refused in [least - 1, most + 1, 0xff_fffe].into_iter().filter(|size| *size > 0) {
        assert_eq!(errno(tape.operate(MtOperation::SetBlockSize, refused)), Errno::INVAL);
    }
    for taken in [least, 512, most, 0] {
        tape.operate(MtOperation::SetBlockSize, taken).unwrap();
        let status = tape.status().unwrap();
        assert_eq!(status.density_and_block_size & 0xff_ffff, i64::from(taken));
    }
}

pub fn block_size_outlives_a_close(harness: &Harness) {
    let mut tape = harness.tape();
    tape.set_block_mode(BlockMode::Fixed(2048)).unwrap();
    drop(tape);
    let mut tape = harness.open(device::tape::Access::Write).unwrap();
    assert_eq!(tape.status().unwrap().block_mode, BlockMode::Fixed(2048));
    tape.set_block_mode(BlockMode::Variable).unwrap();
}

/// `MT_ST_SETBOOLEANS | MT_ST_SILI`, and the same to clear.
const SILENT_ON: i32 = 0x3000_4000;
const SILENT_OFF: i32 = 0x4000_4000;

pub fn silent_lengths_lose_the_rest(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..3, 20_000);
    tape.operate(MtOperation::SetDriverOptions, SILENT_ON).unwrap();
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.expect_block(0, 20_000, 65_536);
    let mut buffer = vec![0; 10_000];
    assert_eq!(tape.read(&mut buffer).unwrap(), 10_000);
    assert!(buffer == content(1, 20_000)[..10_000], "the rest of the block is lost");
    tape.expect_block(2, 20_000, 65_536);
    tape.operate(MtOperation::SetDriverOptions, SILENT_OFF).unwrap();
}
