//! Going to a position, and what the driver then believes (facts 6, 11, 12).

use device::tape::raw::{GMT_BOT, GMT_EOD, GMT_EOF, MtOperation, RawTape};
use device::tape::{Access, BlockMode};
use rustix::io::Errno;

use crate::harness::{Calls, Harness, content, errno};

/// Three files: blocks 0 and 1; 2, 3 and 4; 5. The tape is behind the last filemark.
fn write_three_files(tape: &mut dyn RawTape) {
    for file in [0..2, 2..5, 5..6] {
        tape.write_blocks(file, 512);
        tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    }
}

pub fn file_and_block_numbers(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    assert_eq!(tape.place(), (0, 0));
    tape.write_blocks(0..3, 512);
    assert_eq!(tape.place(), (0, 3));
    tape.operate(MtOperation::WriteFilemarksImmediate, 1).unwrap();
    assert_eq!(tape.place(), (1, 0));
    tape.write_blocks(3..4, 512);
    assert_eq!(tape.place(), (1, 1));
    tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    assert_eq!(tape.place(), (2, 0));
    tape.operate(MtOperation::Rewind, 1).unwrap();
    assert_eq!(tape.place(), (0, 0));
    tape.expect_block(0, 512, 512);
    assert_eq!(tape.place(), (0, 1));
    tape.operate(MtOperation::ForwardFilemarks, 1).unwrap();
    assert_eq!(tape.place(), (1, 0));
    tape.expect_block(3, 512, 512);
    assert_eq!(tape.place(), (1, 1));
}

pub fn flags_of_the_beginning_and_of_files(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    let flags = |tape: &mut dyn RawTape| {
        tape.status().unwrap().general_status & (GMT_BOT | GMT_EOF | GMT_EOD)
    };
    assert_eq!(flags(tape), GMT_BOT);
    tape.write_blocks(0..1, 512);
    assert_eq!(flags(tape), 0);
    tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    assert_eq!(flags(tape), GMT_EOF);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    assert_eq!(flags(tape), GMT_BOT);
    tape.expect_block(0, 512, 512);
    assert_eq!(flags(tape), 0);
    tape.expect_nothing();
    assert_eq!(flags(tape), GMT_EOF);
}

pub fn numbers_count_filemarks(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    assert_eq!(tape.position().unwrap(), 0);
    write_three_files(tape);
    assert_eq!(tape.position().unwrap(), 9);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.operate(MtOperation::ForwardFilemarks, 1).unwrap();
    assert_eq!(tape.position().unwrap(), 3);
    tape.operate(MtOperation::ForwardBlocks, 2).unwrap();
    assert_eq!(tape.position().unwrap(), 5);
}

pub fn seek_to_every_object(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_three_files(tape);
    // Block numbers by position; `None` for a filemark.
    let objects = [Some(0), Some(1), None, Some(2), Some(3), Some(4), None, Some(5), None];
    for (position, object) in objects.into_iter().enumerate().rev() {
        tape.operate(MtOperation::Seek, position as i32).unwrap();
        assert_eq!(tape.position().unwrap(), position as u64);
        match position {
            0 => assert_eq!(tape.place(), (0, 0)),
            _ => assert_eq!(tape.place(), (-1, -1), "the driver does not know"),
        }
        match object {
            Some(number) => tape.expect_block(number, 512, 512),
            None => tape.expect_nothing(),
        }
        assert_eq!(tape.position().unwrap(), position as u64 + 1);
    }
    tape.operate(MtOperation::Seek, 9).unwrap();
    assert_eq!(tape.position().unwrap(), 9, "the end of the data can be sought");
}

pub fn seek_past_the_end(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_three_files(tape);
    assert_eq!(errno(tape.operate(MtOperation::Seek, 1000)), Errno::IO);
    assert_eq!(tape.position().unwrap(), 9, "the tape stands at the end of the data");
    tape.operate(MtOperation::Seek, 7).unwrap();
    tape.expect_block(5, 512, 512);
}

pub fn forward_over_filemarks(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_three_files(tape);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.operate(MtOperation::ForwardFilemarks, 2).unwrap();
    assert_eq!(tape.place(), (2, 0));
    tape.expect_block(5, 512, 512);
    tape.operate(MtOperation::ForwardFilemarks, 1).unwrap();
    assert_eq!(tape.place(), (3, 0));
}

pub fn back_over_filemarks(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_three_files(tape);
    tape.operate(MtOperation::BackwardFilemarks, 1).unwrap();
    // Before the last filemark: the file is known, the block is not.
    assert_eq!(tape.place(), (2, -1));
    tape.expect_nothing();
    assert_eq!(tape.place(), (3, 0));
    // To the beginning of the second file: back over two more, and forward over one.
    tape.operate(MtOperation::BackwardFilemarks, 3).unwrap();
    tape.operate(MtOperation::ForwardFilemarks, 1).unwrap();
    assert_eq!(tape.place(), (1, 0));
    tape.expect_block(2, 512, 512);
}

pub fn back_past_the_beginning(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_three_files(tape);
    assert_eq!(errno(tape.operate(MtOperation::BackwardFilemarks, 4)), Errno::IO);
    tape.expect_block(0, 512, 512);
    assert_eq!(errno(tape.operate(MtOperation::BackwardBlocks, 2)), Errno::IO);
    tape.expect_block(0, 512, 512);
}

pub fn over_blocks_in_both_directions(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..10, 512);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.operate(MtOperation::ForwardBlocks, 7).unwrap();
    assert_eq!(tape.place(), (0, 7));
    tape.expect_block(7, 512, 512);
    tape.operate(MtOperation::BackwardBlocks, 5).unwrap();
    assert_eq!(tape.place(), (0, 3));
    tape.expect_block(3, 512, 512);
    tape.operate(MtOperation::ForwardBlocks, 0).unwrap();
    assert_eq!(tape.place(), (0, 4));
}

pub fn forward_over_blocks_stops_at_a_filemark(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_three_files(tape);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    assert_eq!(errno(tape.operate(MtOperation::ForwardBlocks, 4)), Errno::IO);
    assert_eq!(tape.place(), (1, 0), "behind the filemark");
    tape.expect_block(2, 512, 512);
}

pub fn back_over_blocks_stops_at_a_filemark(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_three_files(tape);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.operate(MtOperation::ForwardFilemarks, 1).unwrap();
    tape.expect_block(2, 512, 512);
    assert_eq!(errno(tape.operate(MtOperation::BackwardBlocks, 3)), Errno::IO);
    assert_eq!(tape.place(), (0, -1), "in front of the filemark");
    tape.expect_nothing();
    tape.expect_block(2, 512, 512);
}

pub fn numbers_outlive_a_close(harness: &Harness) {
    let mut tape = harness.tape();
    write_three_files(tape.raw());
    tape.rewind().unwrap();
    tape.raw().operate(MtOperation::ForwardFilemarks, 1).unwrap();
    tape.raw().expect_block(2, 512, 512);
    drop(tape);
    let mut tape = harness.open(Access::Read).unwrap();
    assert_eq!(tape.raw().place(), (1, 1));
    tape.raw().expect_block(3, 512, 512);
}

pub fn fixed_read_up_to_a_filemark_then_space(harness: &Harness) {
    let mut tape = harness.tape();
    tape.set_block_mode(BlockMode::Fixed(512)).unwrap();
    for file in 0..3 {
        tape.raw().write(&content(file, 3 * 512)).unwrap();
        tape.raw().operate(MtOperation::WriteFilemarks, 1).unwrap();
    }
    tape.rewind().unwrap();
    let mut buffer = vec![0; 8 * 512];
    // The drive is behind the filemark, which the program does not know yet.
    assert_eq!(tape.raw().read(&mut buffer).unwrap(), 3 * 512);
    tape.raw().operate(MtOperation::ForwardFilemarks, 1).unwrap();
    assert_eq!(tape.raw().read(&mut buffer).unwrap(), 3 * 512);
    assert!(buffer[..3 * 512] == content(1, 3 * 512)[..], "the second file");
    tape.raw().operate(MtOperation::BackwardFilemarks, 1).unwrap();
    tape.raw().expect_nothing();
    assert_eq!(tape.raw().read(&mut buffer).unwrap(), 3 * 512);
    assert!(buffer[..3 * 512] == content(1, 3 * 512)[..], "again");
}
