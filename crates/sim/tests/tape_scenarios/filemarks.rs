//! Filemarks: how they read, and when the driver writes them by itself (facts 5, 6, 7).

use device::tape::Access;
use device::tape::raw::{MtOperation, RawTape};

use crate::harness::{Calls, Harness, content};

/// `MT_ST_SETBOOLEANS | MT_ST_TWO_FM`, and the same to clear.
const TWO_ON: i32 = 0x3000_0010;
const TWO_OFF: i32 = 0x4000_0010;

pub fn filemark_reads_as_nothing(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..2, 512);
    tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    tape.write_blocks(2..3, 512);
    tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.expect_block(0, 512, 512);
    tape.expect_block(1, 512, 512);
    tape.expect_nothing();
    assert_eq!(tape.place(), (1, 0));
    tape.expect_block(2, 512, 512);
    tape.expect_nothing();
    assert_eq!(tape.place(), (2, 0));
}

/// Counts filemarks on the medium: forward over them one by one until that fails.
fn filemarks_on(tape: &mut dyn RawTape) -> u32 {
    tape.operate(MtOperation::Rewind, 1).unwrap();
    let mut count = 0;
    while tape.operate(MtOperation::ForwardFilemarks, 1).is_ok() {
        count += 1;
        assert!(count < 100, "the medium has no end");
    }
    count
}

/// Writes two blocks, does something, closes, and counts.
fn filemarks_after(harness: &Harness, last: impl FnOnce(&mut dyn RawTape)) -> u32 {
    let mut tape = harness.tape();
    tape.raw().write_blocks(0..2, 512);
    last(tape.raw());
    drop(tape);
    let mut tape = harness.open(Access::Read).unwrap();
    filemarks_on(tape.raw())
}

pub fn close_behind_data_writes_one(harness: &Harness) {
    assert_eq!(filemarks_after(harness, |_| {}), 1);
}

pub fn close_writes_two_on_request(harness: &Harness) {
    let mut tape = harness.tape();
    tape.raw().operate(MtOperation::SetDriverOptions, TWO_ON).unwrap();
    tape.raw().write_blocks(0..2, 512);
    drop(tape);
    let mut tape = harness.open(Access::Write).unwrap();
    // The tape is between the two, so that the next file overwrites the second.
    assert_eq!(tape.raw().place(), (1, 0));
    assert_eq!(filemarks_on(tape.raw()), 2);
    tape.raw().operate(MtOperation::SetDriverOptions, TWO_OFF).unwrap();
}

pub fn close_behind_a_filemark_writes_none(harness: &Harness) {
    let count = filemarks_after(harness, |tape| {
        tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    });
    assert_eq!(count, 1);
}

pub fn close_behind_an_immediate_one_writes_none(harness: &Harness) {
    let count = filemarks_after(harness, |tape| {
        tape.operate(MtOperation::WriteFilemarksImmediate, 1).unwrap();
    });
    assert_eq!(count, 1);
}

pub fn close_behind_a_synchronisation_writes_none(harness: &Harness) {
    let count = filemarks_after(harness, |tape| {
        tape.operate(MtOperation::WriteFilemarks, 0).unwrap();
    });
    assert_eq!(count, 0, "no file ends here: whoever synchronises last must write the filemark");
}

pub fn close_after_reading_writes_none(harness: &Harness) {
    let mut tape = harness.tape();
    tape.raw().write_blocks(0..3, 512);
    tape.rewind().unwrap();
    tape.raw().expect_block(0, 512, 512);
    drop(tape);
    let mut tape = harness.open(Access::Read).unwrap();
    tape.raw().expect_block(1, 512, 512);
    assert_eq!(filemarks_on(tape.raw()), 1);
}

pub fn rewind_behind_data_writes_one(harness: &Harness) {
    let count = filemarks_after(harness, |tape| {
        tape.operate(MtOperation::Rewind, 1).unwrap();
        assert_eq!(tape.place(), (0, 0));
    });
    assert_eq!(count, 1);
}

pub fn back_spacing_behind_data_writes_one(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..1, 512);
    tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    tape.write_blocks(1..2, 512);
    // Over the filemark that is written now, and over the one before.
    tape.operate(MtOperation::BackwardFilemarks, 1).unwrap();
    tape.expect_nothing();
    tape.expect_block(1, 512, 512);
    assert_eq!(filemarks_on(tape), 2);
}

pub fn seek_behind_data_writes_one(harness: &Harness) {
    let count = filemarks_after(harness, |tape| {
        tape.operate(MtOperation::Seek, 1).unwrap();
        tape.expect_block(1, 512, 512);
    });
    assert_eq!(count, 1);
}

pub fn forward_spacing_behind_data_writes_none(harness: &Harness) {
    let count = filemarks_after(harness, |tape| {
        assert!(tape.operate(MtOperation::ForwardFilemarks, 1).is_err(), "nothing is there");
    });
    assert_eq!(count, 0);
}

pub fn several_at_once(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..1, 512);
    tape.operate(MtOperation::WriteFilemarks, 3).unwrap();
    assert_eq!(tape.place(), (3, 0));
    tape.write_blocks(1..2, 512);
    assert_eq!(filemarks_on(tape), 4);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.operate(MtOperation::ForwardFilemarks, 3).unwrap();
    tape.expect_block(1, 512, 512);
}

pub fn synchronising_writes_nothing(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..2, 512);
    tape.operate(MtOperation::WriteFilemarks, 0).unwrap();
    // The driver wrongly believes that it is behind a filemark.
    assert_eq!(tape.place(), (0, 0));
    tape.write_blocks(2..3, 512);
    tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    tape.operate(MtOperation::Rewind, 1).unwrap();
    for number in 0..3 {
        tape.expect_block(number, 512, 512);
    }
    tape.expect_nothing();
    assert_eq!(filemarks_on(tape), 1);
}

pub fn immediate_ones_read_back(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    for number in 0..5 {
        tape.write_blocks(number..number + 1, 4096);
        tape.operate(MtOperation::WriteFilemarksImmediate, 1).unwrap();
    }
    assert_eq!(tape.place(), (5, 0));
    tape.operate(MtOperation::WriteFilemarks, 0).unwrap();
    tape.operate(MtOperation::Rewind, 1).unwrap();
    for number in 0..5 {
        tape.expect_block(number, 4096, 4096);
        tape.expect_nothing();
    }
}

pub fn state_is_asked_between_blocks(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    for number in 0..4 {
        assert_eq!(tape.write(&content(number, 1024)).unwrap(), 1024);
        tape.status().unwrap();
        tape.operate(MtOperation::Nothing, 1).unwrap();
    }
    assert_eq!(tape.place(), (0, 4));
    assert_eq!(filemarks_on(tape), 1, "asking does not end the file");
    tape.operate(MtOperation::Rewind, 1).unwrap();
    for number in 0..4 {
        tape.expect_block(number, 1024, 1024);
    }
}
