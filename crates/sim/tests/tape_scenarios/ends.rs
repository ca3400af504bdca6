//! The end of the data, the early warning and the end of the medium (facts 1, 5, 12).

use device::tape::raw::{GMT_EOD, GMT_EOT, MtOperation, RawTape};
use device::tape::{Access, BlockMode};
use rustix::io::Errno;

use crate::harness::{Calls, Harness, content, errno};

const MIB: usize = 1 << 20;

pub fn end_of_data_behind_a_filemark(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..1, 512);
    tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.expect_block(0, 512, 512);
    tape.expect_nothing();
    assert_eq!(tape.status().unwrap().general_status & GMT_EOD, 0);
    tape.expect_nothing();
    assert_eq!(tape.status().unwrap().general_status & GMT_EOD, GMT_EOD);
    assert_eq!(errno(tape.read(&mut [0; 512])), Errno::IO);
    assert_eq!(errno(tape.read(&mut [0; 512])), Errno::IO);
}

pub fn end_of_data_behind_a_block(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..2, 512);
    // Without a filemark there is no second chance.
    assert_eq!(errno(tape.read(&mut [0; 512])), Errno::IO);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.expect_block(0, 512, 512);
    tape.expect_block(1, 512, 512);
}

pub fn blank_medium(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    assert_eq!(tape.place(), (0, 0));
    assert_eq!(errno(tape.read(&mut [0; 512])), Errno::IO);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    assert_eq!(tape.place(), (0, 0));
    assert_eq!(errno(tape.operate(MtOperation::ForwardFilemarks, 1)), Errno::IO);
    tape.operate(MtOperation::EndOfData, 1).unwrap();
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.write_blocks(0..1, 512);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.expect_block(0, 512, 512);
}

/// `files` files of one block each; the tape is at the beginning.
fn write_files(tape: &mut dyn RawTape, files: u64) {
    for number in 0..files {
        tape.write_blocks(number..number + 1, 512);
        tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    }
    tape.operate(MtOperation::Rewind, 1).unwrap();
}

pub fn to_the_end_keeps_the_file_number(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_files(tape, 3);
    tape.operate(MtOperation::EndOfData, 1).unwrap();
    assert_eq!(tape.place(), (3, -1));
    assert_eq!(tape.status().unwrap().general_status & GMT_EOD, GMT_EOD);
    assert_eq!(errno(tape.read(&mut [0; 512])), Errno::IO);
}

/// `MT_ST_SETBOOLEANS | MT_ST_FAST_MTEOM`, and the same to clear.
const FAST_ON: i32 = 0x3000_0020;
const FAST_OFF: i32 = 0x4000_0020;

pub fn to_the_end_fast_loses_it(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_files(tape, 3);
    tape.operate(MtOperation::SetDriverOptions, FAST_ON).unwrap();
    tape.operate(MtOperation::EndOfData, 1).unwrap();
    tape.operate(MtOperation::SetDriverOptions, FAST_OFF).unwrap();
    assert_eq!(tape.place(), (-1, -1));
    assert_eq!(tape.status().unwrap().general_status & GMT_EOD, GMT_EOD);
    tape.write_blocks(3..4, 512);
    assert_eq!(tape.place(), (-1, -1));
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.operate(MtOperation::ForwardFilemarks, 3).unwrap();
    tape.expect_block(3, 512, 512);
}

pub fn append_at_the_end(harness: &Harness) {
    let mut tape = harness.tape();
    write_files(tape.raw(), 3);
    tape.raw().operate(MtOperation::EndOfData, 1).unwrap();
    tape.raw().write_blocks(3..5, 512);
    drop(tape);
    let mut tape = harness.open(Access::Read).unwrap();
    let tape = tape.raw();
    tape.operate(MtOperation::Rewind, 1).unwrap();
    for number in 0..3 {
        tape.expect_block(number, 512, 512);
        tape.expect_nothing();
    }
    tape.expect_block(3, 512, 512);
    tape.expect_block(4, 512, 512);
    tape.expect_nothing();
    assert_eq!(tape.place(), (4, 0));
}

pub fn forward_past_the_end(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_files(tape, 3);
    assert_eq!(errno(tape.operate(MtOperation::ForwardFilemarks, 5)), Errno::IO);
    assert_eq!(tape.place(), (3, -1));
    assert_eq!(tape.status().unwrap().general_status & GMT_EOD, GMT_EOD);
    // Appending is possible from here.
    tape.write_blocks(3..4, 512);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.operate(MtOperation::ForwardFilemarks, 3).unwrap();
    tape.expect_block(3, 512, 512);
}

pub fn writing_in_the_middle_ends_the_data(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..10, 512);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.operate(MtOperation::ForwardBlocks, 4).unwrap();
    tape.write_blocks(20..21, 1024);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    for number in 0..4 {
        tape.expect_block(number, 512, 4096);
    }
    tape.expect_block(20, 1024, 4096);
    // The filemark that the rewind wrote; nothing follows it.
    tape.expect_nothing();
    assert!(tape.operate(MtOperation::ForwardFilemarks, 1).is_err());
}

pub fn writing_over_a_filemark_ends_the_data(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_files(tape, 4);
    tape.operate(MtOperation::ForwardFilemarks, 2).unwrap();
    tape.operate(MtOperation::BackwardFilemarks, 1).unwrap();
    tape.write_blocks(9..10, 512);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.expect_block(0, 512, 512);
    tape.expect_nothing();
    tape.expect_block(1, 512, 512);
    tape.expect_block(9, 512, 512);
    tape.expect_nothing();
    assert!(tape.operate(MtOperation::ForwardFilemarks, 1).is_err());
}

/// Writes blocks of 1 MiB until one is refused; the number of those that were taken.
fn write_until_refused(tape: &mut dyn RawTape) -> u64 {
    for number in 0..64 {
        match tape.write(&content(number, MIB)) {
            Ok(written) => assert_eq!(written, MIB),
            Err(error) => {
                assert_eq!(Errno::from_io_error(&error), Some(Errno::NOSPC));
                return number;
            }
        }
    }
    panic!("the medium has no end");
}

pub fn warnings_alternate(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    let taken = write_until_refused(tape);
    assert!((7..=9).contains(&taken), "{taken} MiB on a medium that warns at 8");
    for _ in 0..3 {
        assert_eq!(tape.write(&content(99, 4096)).unwrap(), 4096, "let through for a trailer");
        assert_eq!(tape.status().unwrap().general_status & GMT_EOT, GMT_EOT);
        assert_eq!(errno(tape.write(&content(99, 4096))), Errno::NOSPC);
    }
}

pub fn what_was_taken_reads_back(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    let taken = write_until_refused(tape);
    // The one that was refused, in its place.
    tape.write_blocks(taken..taken + 1, MIB);
    assert_eq!(tape.place(), (0, taken as i32 + 1));
    tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    tape.operate(MtOperation::Rewind, 1).unwrap();
    for number in 0..=taken {
        tape.expect_block(number, MIB, MIB);
    }
    tape.expect_nothing();
}

pub fn filemark_behind_the_warning(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    let taken = write_until_refused(tape);
    tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    assert_eq!(tape.place(), (1, 0));
    // After a filemark it begins again: one write is allowed, the next is refused.
    tape.write_blocks(50..51, 4096);
    assert_eq!(errno(tape.write(&content(0, 4096))), Errno::NOSPC);
    tape.operate(MtOperation::WriteFilemarksImmediate, 1).unwrap();
    tape.operate(MtOperation::Rewind, 1).unwrap();
    for number in 0..taken {
        tape.expect_block(number, MIB, MIB);
    }
    tape.expect_nothing();
    tape.expect_block(50, 4096, 4096);
    tape.expect_nothing();
}

pub fn fixed_blocks_at_the_warning(harness: &Harness) {
    let mut tape = harness.tape();
    tape.set_block_mode(BlockMode::Fixed(65_536)).unwrap();
    let taken = write_until_refused(tape.raw());
    tape.raw().write_blocks(taken..taken + 1, 65_536);
    tape.rewind().unwrap();
    for number in 0..taken {
        tape.raw().expect_block(number, MIB, MIB);
    }
    tape.raw().expect_block(taken, 65_536, 65_536);
    tape.raw().expect_nothing();
}

pub fn physical_end(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    let mut taken = write_until_refused(tape);
    let mut refused_in_a_row = 0;
    for _ in 0..100 {
        match tape.write(&content(taken, MIB)) {
            Ok(written) => {
                assert_eq!(written, MIB);
                taken += 1;
                refused_in_a_row = 0;
            }
            Err(error) => {
                assert_eq!(Errno::from_io_error(&error), Some(Errno::NOSPC));
                refused_in_a_row += 1;
            }
        }
        if refused_in_a_row > 4 {
            break;
        }
    }
    assert!(refused_in_a_row > 4, "the medium has no end");
    tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    tape.operate(MtOperation::Rewind, 1).unwrap();
    for number in 0..taken {
        tape.expect_block(number, MIB, MIB);
    }
    tape.expect_nothing();
}
