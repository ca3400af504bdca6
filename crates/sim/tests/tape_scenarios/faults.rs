//! What a drive does only when it is broken; the drive in this process does it on demand.

use device::tape::raw::{GMT_BOT, GMT_EOD, MtOperation, QuestionError, RawTape};
use device::tape::{Access, BlockMode, OpenError};
use rustix::io::Errno;
use sim::tape::{
    AfterReadError, Answers, Cartridge, CompressionSwitch, DriveSettings, Faults, Object, OnClose,
    OpenDirection, OpenMode, Persistence, Positioning, Readiness,
};

use crate::harness::{Calls, Harness, content, errno};

const MEDIUM_ERROR: u8 = 0x3;
const UNIT_ATTENTION: u8 = 0x6;

fn break_it(harness: &Harness, faults: Faults) {
    harness.own().cartridge().expect("a cartridge").set_faults(faults);
}

fn objects(harness: &Harness) -> usize {
    harness.own().cartridge().expect("a cartridge").objects().unwrap().len()
}

fn key(tape: &mut dyn RawTape) -> u8 {
    tape.last_sense().expect("the drive said something").key
}

pub fn unreadable_block(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..5, 512);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    break_it(harness, Faults::unreadable([2]));
    tape.expect_block(0, 512, 512);
    tape.expect_block(1, 512, 512);
    assert_eq!(errno(tape.read(&mut [0; 512])), Errno::IO);
    assert_eq!(key(tape), MEDIUM_ERROR);
    assert_eq!(tape.place(), (0, -1));
    assert_eq!(tape.position().unwrap(), 3, "the drive knows where it is");
    tape.expect_block(3, 512, 512);
}

pub fn unreadable_block_before(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..5, 512);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    let after_read_error = AfterReadError::Before;
    break_it(harness, Faults { after_read_error, ..Faults::unreadable([0]) });
    assert_eq!(errno(tape.read(&mut [0; 512])), Errno::IO);
    assert_eq!(errno(tape.read(&mut [0; 512])), Errno::IO);
    assert_eq!(tape.position().unwrap(), 0);
    tape.operate(MtOperation::ForwardBlocks, 1).unwrap();
    tape.expect_block(1, 512, 512);
}

pub fn unreadable_at_first(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..3, 512);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    let unreadable = [(1, Persistence::Times(2))].into();
    break_it(harness, Faults { unreadable, ..Faults::default() });
    tape.expect_block(0, 512, 512);
    for _ in 0..2 {
        assert_eq!(errno(tape.read(&mut [0; 512])), Errno::IO);
        tape.operate(MtOperation::Seek, 1).unwrap();
    }
    tape.expect_block(1, 512, 512);
}

pub fn unreadable_among_fixed_blocks(harness: &Harness) {
    let mut tape = harness.tape();
    tape.set_block_mode(BlockMode::Fixed(512)).unwrap();
    tape.raw().write(&content(0, 10 * 512)).unwrap();
    tape.rewind().unwrap();
    break_it(harness, Faults::unreadable([6]));
    let mut buffer = [0; 4 * 512];
    assert_eq!(tape.raw().read(&mut buffer).unwrap(), 4 * 512);
    assert_eq!(errno(tape.raw().read(&mut buffer)), Errno::IO);
    assert_eq!(key(tape.raw()), MEDIUM_ERROR);
}

pub fn block_cannot_be_written(harness: &Harness) {
    let mut tape = harness.tape();
    break_it(harness, Faults { unwritable: [3].into(), ..Faults::default() });
    let tape = tape.raw();
    tape.write_blocks(0..3, 512);
    assert_eq!(errno(tape.write(&content(3, 512))), Errno::IO);
    assert_eq!(key(tape), MEDIUM_ERROR);
    assert_eq!(tape.place(), (0, -1));
    assert_eq!(objects(harness), 3);
}

/// Five blocks, only two of which reach the medium.
fn write_lost_blocks(harness: &Harness, tape: &mut dyn RawTape) {
    break_it(harness, Faults { lost_from: Some(2), ..Faults::default() });
    tape.write_blocks(0..5, 512);
}

pub fn lost_blocks_surface_at_a_synchronising_filemark(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_lost_blocks(harness, tape);
    assert_eq!(errno(tape.operate(MtOperation::WriteFilemarks, 1)), Errno::IO);
    let sense = tape.last_sense().expect("the drive said something");
    assert!(sense.key == MEDIUM_ERROR && sense.deferred);
    assert_eq!(objects(harness), 2);
}

pub fn lost_blocks_surface_at_a_synchronisation(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_lost_blocks(harness, tape);
    assert_eq!(errno(tape.operate(MtOperation::WriteFilemarks, 0)), Errno::IO);
    assert_eq!(objects(harness), 2);
}

pub fn lost_blocks_surface_at_close(harness: &Harness) {
    let mode = OpenMode {
        direction: OpenDirection::ReadWrite,
        readiness: Readiness::Needed,
        on_close: OnClose::Stay,
    };
    drop(harness.tape());
    let mut tape = harness.own().open_raw(mode).unwrap();
    write_lost_blocks(harness, &mut tape);
    assert_eq!(errno(tape.close()), Errno::IO);
    assert_eq!(objects(harness), 2);
}

pub fn immediate_filemark_tells_nothing(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    write_lost_blocks(harness, tape);
    tape.operate(MtOperation::WriteFilemarksImmediate, 1).unwrap();
    tape.write_blocks(5..6, 512);
    assert_eq!(errno(tape.operate(MtOperation::WriteFilemarks, 1)), Errno::IO);
}

pub fn reset_loses_position_and_buffer(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..3, 512);
    tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    break_it(harness, Faults { reset_before: Some(6), ..Faults::default() });
    tape.write_blocks(3..5, 512);
    assert_eq!(errno(tape.write(&content(5, 512))), Errno::IO);
    assert_eq!(key(tape), UNIT_ATTENTION);
    assert_eq!(objects(harness), 4, "what was synchronised");
    // Nothing more is allowed, neither a write nor the filemark of a close.
    assert_eq!(errno(tape.write(&content(5, 512))), Errno::IO);
    assert_eq!(errno(tape.operate(MtOperation::WriteFilemarks, 1)), Errno::IO);
    assert_eq!(errno(tape.status()), Errno::IO);
    assert_eq!(objects(harness), 4);
}

pub fn reset_ends_with_a_rewind(harness: &Harness) {
    let mut tape = harness.tape();
    tape.raw().write_blocks(0..3, 512);
    tape.rewind().unwrap();
    break_it(harness, Faults { reset_before: Some(1), ..Faults::default() });
    tape.raw().expect_block(0, 512, 512);
    assert_eq!(errno(tape.raw().read(&mut [0; 512])), Errno::IO);
    drop(tape);
    let mut tape = harness.open(Access::Read).unwrap();
    assert_eq!(errno(tape.raw().read(&mut [0; 512])), Errno::IO, "reopening is not enough");
    tape.rewind().unwrap();
    assert_eq!(tape.raw().status().unwrap().general_status & GMT_BOT, GMT_BOT);
    for number in 0..3 {
        tape.raw().expect_block(number, 512, 512);
    }
}

pub fn changed_behind_our_back(harness: &Harness) {
    let mut tape = harness.tape();
    tape.raw().write_blocks(0..3, 512);
    let other = Cartridge::of_capacity(1 << 20);
    harness.own().insert(other.clone());
    assert_eq!(errno(tape.raw().write(&content(3, 512))), Errno::IO);
    assert_eq!(key(tape.raw()), UNIT_ATTENTION);
    assert!(other.is_empty());
    // The driver did not notice: the next data go to the other medium, and so does the filemark of
    // the close. A program must stop at an error.
    tape.raw().write_blocks(4..5, 512);
    drop(tape);
    assert_eq!(other.objects().unwrap(), [Object::Block(content(4, 512)), Object::Filemark]);
}

pub fn removed_behind_our_back(harness: &Harness) {
    let mut tape = harness.tape();
    tape.raw().write_blocks(0..3, 512);
    let cartridge = harness.own().eject().unwrap();
    assert_eq!(errno(tape.raw().write(&content(3, 512))), Errno::IO);
    assert_eq!(errno(tape.raw().operate(MtOperation::WriteFilemarks, 1)), Errno::IO);
    drop(tape);
    assert!(matches!(harness.open(Access::Read), Err(OpenError::NoMedium { .. })));
    assert_eq!(cartridge.len(), 3);
}

const BLOCK_LIMITS: [u8; 6] = [0x05, 0, 0, 0, 0, 0];

pub fn answers_are_garbage(harness: &Harness) {
    harness.own().change_settings(|settings| settings.answers = Answers::Garbage);
    let mut tape = harness.tape();
    let (mut first, mut second) = ([0; 6], [0; 6]);
    assert_eq!(tape.raw().command(&BLOCK_LIMITS, &mut first).unwrap(), 6);
    assert_eq!(tape.raw().command(&BLOCK_LIMITS, &mut second).unwrap(), 6);
    assert_eq!(first, second, "the same garbage every time");
    tape.raw().write_blocks(0..1, 512);
}

pub fn answers_are_refused(harness: &Harness) {
    let mut tape = harness.tape();
    let mut limits = [0; 6];
    assert_eq!(tape.raw().command(&BLOCK_LIMITS, &mut limits).unwrap(), 6);
    assert_eq!(limits, [0, 0x10, 0, 0, 0, 4]);
    harness.own().change_settings(|settings| settings.answers = Answers::Refused);
    let refused = tape.raw().command(&BLOCK_LIMITS, &mut limits);
    assert!(matches!(refused, Err(QuestionError::Refused(sense)) if sense.key == 0x5));
    harness.own().change_settings(|settings| settings.answers = Answers::Unreachable);
    let unreachable = tape.raw().command(&BLOCK_LIMITS, &mut limits);
    assert!(matches!(unreachable, Err(QuestionError::NoGenericDevice)));
}

pub fn block_is_read_short(harness: &Harness) {
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..3, 1024);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    break_it(harness, Faults { shortened: [(1, 700)].into(), ..Faults::default() });
    tape.expect_block(0, 1024, 4096);
    let mut buffer = vec![0; 4096];
    assert_eq!(tape.read(&mut buffer).unwrap(), 700);
    assert!(buffer[..700] == content(1, 1024)[..700]);
    tape.expect_block(2, 1024, 4096);
}

pub fn compression_is_not_applied(harness: &Harness) {
    let mut tape = harness.tape();
    let compression = |tape: &mut dyn RawTape| {
        let mut page = [0; 28];
        tape.command(&[0x1a, 0, 0x0f, 0, 28, 0], &mut page).map(|_| page[14] & 0x80 != 0)
    };
    tape.raw().operate(MtOperation::Compression, 0).unwrap();
    assert!(!compression(tape.raw()).unwrap());
    harness.own().change_settings(|settings| {
        settings.compression_switch = CompressionSwitch::Ignored;
    });
    tape.raw().operate(MtOperation::Compression, 1).unwrap();
    assert!(!compression(tape.raw()).unwrap(), "it said yes and did not");
    harness.own().change_settings(|settings| {
        settings.compression_switch = CompressionSwitch::Absent;
    });
    assert_eq!(errno(tape.raw().operate(MtOperation::Compression, 1)), Errno::IO);
    compression(tape.raw()).unwrap_err();
}

pub fn drive_without_numbers(harness: &Harness) {
    harness.own().change_settings(|settings| settings.positioning = Positioning::Unsupported);
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..2, 512);
    assert_eq!(errno(tape.position()), Errno::IO);
    assert_eq!(errno(tape.operate(MtOperation::Seek, 1)), Errno::IO);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.operate(MtOperation::ForwardBlocks, 1).unwrap();
    assert_eq!(tape.place(), (0, 1));
    tape.expect_block(1, 512, 512);
}

/// The observed behaviour of tgtd's drive in the lab (`device::tape_lab`).
pub fn drive_with_vague_ends(harness: &Harness) {
    harness.own().change_settings(|settings| *settings = DriveSettings::like_tgtd());
    let mut tape = harness.tape();
    let tape = tape.raw();
    tape.write_blocks(0..2, 512);
    tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    tape.operate(MtOperation::Rewind, 1).unwrap();
    // Forward over filemarks the drive reports no residual, and the driver believes it went all the
    // way.
    assert_eq!(errno(tape.operate(MtOperation::ForwardFilemarks, 3)), Errno::IO);
    assert_eq!(tape.place(), (3, -1));
    assert_eq!(tape.status().unwrap().general_status & GMT_EOD, 0);
    tape.operate(MtOperation::Rewind, 1).unwrap();
    tape.operate(MtOperation::ForwardFilemarks, 1).unwrap();
    // There are no data, and the driver returns its whole buffer.
    assert_eq!(tape.read(&mut [0; 4096]).unwrap(), 4096);
    assert_eq!(tape.status().unwrap().general_status & GMT_EOD, GMT_EOD);
    // The next write counts as a trailer after the end of the medium.
    tape.write_blocks(2..3, 512);
    assert_eq!(errno(tape.write(&content(3, 512))), Errno::NOSPC);
    tape.operate(MtOperation::WriteFilemarks, 1).unwrap();
    tape.operate(MtOperation::Rewind, 1).unwrap();
    // Filemarks count as blocks.
    tape.operate(MtOperation::ForwardBlocks, 3).unwrap();
    tape.expect_block(2, 512, 512);
    tape.operate(MtOperation::ForwardFilemarks, 1).unwrap();
    tape.operate(MtOperation::BackwardFilemarks, 1).unwrap();
    tape.expect_block(2, 512, 512);
}

pub fn rewinding_device_rewinds(harness: &Harness) {
    drop(harness.tape());
    let mode = OpenMode {
        direction: OpenDirection::ReadWrite,
        readiness: Readiness::Needed,
        on_close: OnClose::Rewind,
    };
    let mut tape = harness.own().open_raw(mode).unwrap();
    (&mut tape as &mut dyn RawTape).write_blocks(0..2, 512);
    tape.close().unwrap();
    let mut tape = harness.open(Access::Read).unwrap();
    assert_eq!(tape.raw().place(), (0, 0));
    tape.raw().expect_block(0, 512, 512);
    tape.raw().expect_block(1, 512, 512);
    tape.raw().expect_nothing();
}
