//! Opening, protection, changes of medium, counters (facts 8, 13, 15).

use device::tape::raw::{GMT_DR_OPEN, GMT_ONLINE, MtOperation};
use device::tape::{Access, OpenError};
use rustix::io::Errno;

use crate::harness::{Calls, Harness, content, errno};

pub fn no_medium(harness: &Harness) {
    harness.eject();
    for access in [Access::Read, Access::Write] {
        assert!(matches!(harness.open(access), Err(OpenError::NoMedium { .. })), "{access:?}");
    }
    let mut tape = harness.open(Access::Look).unwrap();
    let status = tape.raw().status().unwrap().general_status;
    assert_eq!(status & (GMT_DR_OPEN | GMT_ONLINE), GMT_DR_OPEN);
    assert_eq!(errno(tape.raw().read(&mut [0; 512])), Errno::NOMEDIUM);
    assert_eq!(errno(tape.raw().operate(MtOperation::Rewind, 1)), Errno::NOMEDIUM);
}

pub fn protected_medium(harness: &Harness) {
    harness.protect();
    assert!(matches!(harness.open(Access::Write), Err(OpenError::WriteProtected { .. })));
    let mut tape = harness.open(Access::Read).unwrap();
    assert!(tape.status().unwrap().write_protected);
    for operation in [MtOperation::WriteFilemarks, MtOperation::WriteFilemarksImmediate] {
        assert_eq!(errno(tape.raw().operate(operation, 1)), Errno::ACCESS);
    }
}

pub fn protected_medium_reads(harness: &Harness) {
    let mut tape = harness.tape();
    tape.raw().write_blocks(0..2, 512);
    drop(tape);
    harness.protect();
    let mut tape = harness.open(Access::Read).unwrap();
    tape.rewind().unwrap();
    tape.raw().expect_block(0, 512, 512);
    tape.raw().expect_block(1, 512, 512);
    tape.raw().expect_nothing();
}

pub fn read_only_open_writes_nothing(harness: &Harness) {
    drop(harness.tape());
    let mut tape = harness.open(Access::Read).unwrap();
    assert_eq!(errno(tape.raw().operate(MtOperation::WriteFilemarks, 1)), Errno::ACCESS);
    assert!(!tape.status().unwrap().write_protected, "the medium itself is not");
}

pub fn second_opener_is_refused(harness: &Harness) {
    let tape = harness.tape();
    for access in [Access::Look, Access::Read, Access::Write] {
        assert!(matches!(harness.open(access), Err(OpenError::Busy { .. })), "{access:?}");
    }
    drop(tape);
    harness.open(Access::Look).unwrap();
}

pub fn another_medium_begins_anew(harness: &Harness) {
    let mut tape = harness.tape();
    tape.raw().write_blocks(0..3, 512);
    drop(tape);
    harness.new_cartridge(16);
    let mut tape = harness.open(Access::Write).unwrap();
    assert_eq!(tape.raw().place(), (0, 0));
    tape.raw().write_blocks(7..8, 512);
    tape.rewind().unwrap();
    tape.raw().expect_block(7, 512, 512);
    tape.raw().expect_nothing();
}

pub fn ejected_medium_is_gone(harness: &Harness) {
    let mut tape = harness.tape();
    tape.raw().write_blocks(0..1, 512);
    tape.eject().unwrap();
    assert_eq!(errno(tape.raw().write(&content(0, 512))), Errno::NOMEDIUM);
    assert_eq!(errno(tape.raw().operate(MtOperation::Rewind, 1)), Errno::NOMEDIUM);
    let status = tape.raw().status().unwrap().general_status;
    assert_eq!(status & (GMT_DR_OPEN | GMT_ONLINE), GMT_DR_OPEN);
}

pub fn loaded_again(harness: &Harness) {
    let mut tape = harness.tape();
    tape.raw().write_blocks(0..1, 512);
    tape.eject().unwrap();
    tape.raw().operate(MtOperation::Load, 1).unwrap();
    let status = tape.raw().status().unwrap().general_status;
    assert_eq!(status & (GMT_DR_OPEN | GMT_ONLINE), GMT_ONLINE);
    tape.rewind().unwrap();
    tape.raw().expect_block(0, 512, 512);
    // The eject wrote the filemark.
    tape.raw().expect_nothing();
}

pub fn counters_count(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    let before = tape.statistics().expect("the driver counts");
    tape.write_blocks(0..5, 4096);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.expect_block(0, 4096, 4096);
    let after = tape.statistics().expect("the driver counts");
    assert_eq!(after.writes - before.writes, 5);
    assert_eq!(after.write_bytes - before.write_bytes, 5 * 4096);
    assert_eq!(after.reads - before.reads, 1);
    assert_eq!(after.read_bytes - before.read_bytes, 4096);
    assert!(after.others > before.others);
    assert!(after.write_ns >= before.write_ns && after.io_ns > before.io_ns);
}

pub fn density_and_state(harness: &Harness) {
    let mut tape = harness.tape();
    let status = tape.status().unwrap();
    assert!(status.online && !status.write_protected && status.at_beginning);
    assert!(status.density != 0);
}
