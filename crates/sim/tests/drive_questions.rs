//! How `device` reads drives: limits, compression, nonsense answers, positions, ends.
//!
//! These run against the drive in this process only, since no real drive misbehaves on demand;
//! `crates/device/tests/tape_lab.rs` asks real ones the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io;

use device::tape::limits::{Found, LimitedBy};
use device::tape::raw::{MtOperation, RawStatus, RawTape};
use device::tape::scsi::access_order::Segment;
use device::tape::sense::Sense;
use device::tape::survey::options;
use device::tape::{
    Access, BlockMode, Compression, CompressionError, DriveCompression, Filemark, QuestionError,
    Tape, TapeDrive, TapePlace, TapeRead, TapeWrite,
};
use proptest::prelude::*;
use sim::tape::{
    AccessOrders, Answers, Cartridge, CompressionSwitch, DriveSettings, Faults, Mishap,
    Persistence, Positioning, VirtualDrive,
};

fn drive(change: impl FnOnce(&mut DriveSettings)) -> VirtualDrive {
    let mut settings = DriveSettings::default();
    change(&mut settings);
    let drive = VirtualDrive::new("virtual", settings);
    drive.insert(Cartridge::of_capacity(64 << 20));
    drive
}

fn opened(drive: &VirtualDrive) -> Tape {
    let mut tape = drive.open(Access::Write).unwrap();
    tape.rewind().unwrap();
    tape.set_block_mode(BlockMode::Variable).unwrap();
    tape
}

/// Writes files of this many blocks; a block holds the numbers of its file and of itself.
fn write_files(tape: &mut Tape, files: &[u8]) {
    for (file, blocks) in (0..).zip(files) {
        for block in 0..*blocks {
            assert_eq!(tape.write(&[file, block, 7, 7]).unwrap(), TapeWrite::Whole);
        }
        tape.write_filemark(Filemark::Synchronising).unwrap();
    }
}

fn place(file: u32, block: u32) -> TapePlace {
    TapePlace { file_number: Some(file), block_in_file: Some(block) }
}

/// A tape whose driver does not show the drive's log, as for all users but root.
struct Silent(Box<dyn RawTape>);

impl RawTape for Silent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.0.write(block)
    }
    fn operate(&mut self, operation: MtOperation, count: i32) -> io::Result<()> {
        self.0.operate(operation, count)
    }
    fn status(&mut self) -> io::Result<RawStatus> {
        self.0.status()
    }
    fn position(&mut self) -> io::Result<u64> {
        self.0.position()
    }
    fn command(&mut self, command: &[u8], data: &mut [u8]) -> Result<usize, QuestionError> {
        self.0.command(command, data)
    }
    fn command_with(&mut self, command: &[u8], data: &[u8]) -> Result<(), QuestionError> {
        self.0.command_with(command, data)
    }
    fn statistics(&mut self) -> Option<device::tape::raw::Statistics> {
        self.0.statistics()
    }
    fn last_sense(&mut self) -> Option<Sense> {
        None
    }
    fn transfer_bytes_max(&mut self) -> Option<u64> {
        self.0.transfer_bytes_max()
    }
}

#[test]
fn limits_are_asked_for() {
    let limits = opened(&drive(|_| {})).limits();
    assert_eq!((limits.found, limits.limited_by), (Found::Asked, LimitedBy::Drive));
    assert_eq!((limits.block_bytes_min, limits.block_bytes_max), (1, 8 << 20));
}

#[test]
fn limits_are_tried_where_the_drive_cannot_be_asked() {
    for (least, most) in [(1, 8 << 20), (4, 1 << 20), (512, 0xff_ffff), (600, 70_000)] {
        let drive = drive(|settings| {
            settings.answers = Answers::Unreachable;
            (settings.block_bytes_min, settings.block_bytes_max) = (least, most);
        });
        let mut tape = opened(&drive);
        tape.set_block_mode(BlockMode::Fixed(1024)).unwrap();
        let limits = tape.limits();
        assert_eq!(limits.found, Found::Tried);
        assert_eq!(limits.block_bytes_min, u64::from(least));
        assert_eq!(limits.block_bytes_max, u64::from(most));
        // This must go unnoticed.
        assert_eq!(tape.status().unwrap().block_mode, BlockMode::Fixed(1024));
    }
}

#[test]
fn the_way_to_the_drive_can_be_the_limit() {
    let drive = drive(|settings| settings.transfer_bytes_max = Some(512 << 10));
    let limits = opened(&drive).limits();
    let error = limits.check(1 << 20).unwrap_err();
    let expected = "blocks of 1048576 bytes are too large: the host adapter takes 524288 at most";
    assert_eq!(error.to_string(), expected);
    assert_eq!(limits.recommended_block_bytes(), 512 << 10);
}

#[test]
fn compression_is_read_back() {
    let switched = |switch, wanted| {
        let drive = drive(|settings| settings.compression_switch = switch);
        opened(&drive).set_drive_compression(wanted)
    };
    let on = switched(CompressionSwitch::Obeyed, DriveCompression::On).unwrap();
    assert_eq!(on, Compression::On);
    let off = switched(CompressionSwitch::Obeyed, DriveCompression::Off).unwrap();
    assert_eq!(off, Compression::Off);
    // One of the two is the drive's current state; the other is silently refused.
    let ignored = [DriveCompression::On, DriveCompression::Off]
        .map(|wanted| switched(CompressionSwitch::Ignored, wanted));
    let told = |result: &Result<_, _>| matches!(result, Err(CompressionError::NotApplied { .. }));
    assert_eq!(ignored.iter().filter(|result| told(result)).count(), 1);
    let absent = switched(CompressionSwitch::Absent, DriveCompression::On);
    assert!(matches!(absent, Err(CompressionError::Unable { .. })), "{absent:?}");
    let absent = switched(CompressionSwitch::Absent, DriveCompression::Off).unwrap();
    assert_eq!(absent, Compression::Unable);
}

#[test]
fn a_drive_that_cannot_be_asked_is_not_believed_to_compress() {
    let drive = drive(|settings| settings.answers = Answers::Unreachable);
    let result = opened(&drive).set_drive_compression(DriveCompression::On);
    assert!(matches!(result, Err(CompressionError::ReadBack { .. })), "{result:?}");
}

#[test]
fn answers_that_make_no_sense_are_errors() {
    for answers in [Answers::Garbage, Answers::Empty, Answers::Refused] {
        let drive = drive(|settings| settings.answers = answers);
        let mut tape = opened(&drive);
        write_files(&mut tape, &[2]);
        let errors: Vec<QuestionError> = [
            tape.alerts().map(drop),
            tape.mode_header().map(drop),
            tape.volume_statistics().map(drop),
            tape.sequential_access().map(drop),
        ]
        .into_iter()
        .filter_map(Result::err)
        .collect();
        // Bytes without a meaning can look like a mode header: it has no mark of its own.
        assert!(errors.len() >= 3, "{answers:?}: {errors:?}");
        let short = |error: &QuestionError| matches!(error, QuestionError::Short { .. });
        assert!(answers != Answers::Empty || errors.iter().all(short), "{errors:?}");
        // And the tape works all the same.
        tape.rewind().unwrap();
        let limits = tape.limits();
        assert!(limits.block_bytes_min <= limits.block_bytes_max);
        assert_eq!(tape.read(&mut [0; 64]).unwrap(), TapeRead::Block(4));
    }
}

#[test]
fn a_blank_medium_is_known_from_one_that_cannot_be_read() {
    for positioning in [Positioning::Numbered, Positioning::Unsupported] {
        let drive = drive(|settings| settings.positioning = positioning);
        let mut tape = opened(&drive);
        assert!(tape.is_blank().unwrap());
        assert_eq!(tape.read(&mut [0; 64]).unwrap(), TapeRead::EndOfData);
        write_files(&mut tape, &[0]);
        assert!(!tape.is_blank().unwrap(), "a filemark is something");
        tape.rewind().unwrap();
        write_files(&mut tape, &[3]);
        drive.cartridge().unwrap().set_faults(Faults::unreadable([0]));
        assert!(!tape.is_blank().unwrap());
        let error = tape.read(&mut [0; 64]).unwrap_err();
        assert!(error.to_string().contains("medium error"), "{error}");
    }
}

#[test]
fn the_end_of_the_data_is_known_without_a_word_of_the_drive() {
    let drive = drive(|_| {});
    let mut tape = opened(&drive);
    write_files(&mut tape, &[2]);
    tape.write(b"last").unwrap();
    // Keeps the close from writing a filemark.
    tape.synchronise().unwrap();
    drop(tape);
    drive.cartridge().unwrap().set_faults(Faults::unreadable([1]));
    struct Look(VirtualDrive);
    impl Look {
        fn open(&self) -> Tape {
            let mode = sim::tape::OpenMode {
                direction: sim::tape::OpenDirection::Read,
                readiness: sim::tape::Readiness::Needed,
                on_close: sim::tape::OnClose::Stay,
            };
            Tape::new(Box::new(Silent(Box::new(self.0.open_raw(mode).unwrap()))), "silent")
        }
    }
    let mut tape = Look(drive).open();
    tape.rewind().unwrap();
    let mut buffer = [0; 64];
    assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::Block(4));
    // An error in the middle stays one.
    let error = tape.read(&mut buffer).unwrap_err();
    assert!(error.said.is_none());
    tape.go_to(place(1, 0), None).unwrap();
    assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::Block(4));
    assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::EndOfData);
    assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::EndOfData);
}

/// The driver does not log the codes of a blank check, so the drive is asked directly.
#[test]
fn a_blank_check_for_other_reasons_is_no_end() {
    let drive = drive(|_| {});
    let mut tape = opened(&drive);
    write_files(&mut tape, &[3]);
    tape.rewind().unwrap();
    let unknown = Sense { key: 8, code: 0x30, qualifier: 1, deferred: false };
    let refused =
        |times| drive.order_mishap(0, Persistence::Times(times), Mishap::Refused(unknown));
    let mut buffer = [0; 64];
    // The read, the question to the driver, and the drive's identity.
    refused(3);
    let error = tape.read(&mut buffer).unwrap_err();
    assert_eq!(error.said, Some(unknown));
    // The drive says otherwise the third time: there is a block.
    tape.rewind().unwrap();
    refused(2);
    tape.read(&mut buffer).unwrap_err();
    // A user who may not ask the drive gets the key only.
    tape.rewind().unwrap();
    drive.change_settings(|settings| settings.answers = Answers::Unreachable);
    refused(2);
    assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::EndOfData);
}

/// How a drive finds its way.
fn ways() -> impl Strategy<Value = (Positioning, bool)> {
    let positioning = prop_oneof![Just(Positioning::Numbered), Just(Positioning::Unsupported)];
    (positioning, any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is on the medium, every place is found from every other, and the end has the number
    /// of filemarks before it.
    #[test]
    fn places_and_the_end(
        files in proptest::collection::vec(0..5u8, 1..7),
        visits in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..12),
        (positioning, fast) in ways(),
    ) {
        let drive = drive(|settings| settings.positioning = positioning);
        let mut tape = opened(&drive);
        write_files(&mut tape, &files);
        if fast {
            let set = 0x3000_0000 | options::FAST_END_OF_DATA as i32;
            tape.raw().operate(MtOperation::SetDriverOptions, set).unwrap();
        }
        let mut places = Vec::new();
        let mut number = 0;
        for (file, blocks) in (0..).zip(&files) {
            for block in 0..*blocks {
                places.push((file, block, number));
                number += 1;
            }
            number += 1;
        }
        for (index, by_number) in visits {
            prop_assert_eq!(tape.to_end_of_data().unwrap(), files.len() as u32);
            if places.is_empty() {
                continue;
            }
            let (file, block, number) = *index.get(&places);
            let absolute = by_number.then_some(number);
            tape.go_to(place(u32::from(file), u32::from(block)), absolute).unwrap();
            let mut buffer = [0; 16];
            prop_assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::Block(4));
            prop_assert_eq!((buffer[0], buffer[1]), (file, block));
        }
    }
}

#[test]
fn a_drive_sorts_segments_from_where_it_stands() {
    let drive = drive(|settings| settings.access_orders = AccessOrders::Offered);
    let mut tape = opened(&drive);
    write_files(&mut tape, &[9, 9, 9, 9]);
    let segments = [12, 31, 2, 22].map(|first| Segment::of(first, 3));
    // From the end of the data back; from the beginning on.
    assert_eq!(tape.access_order(&segments).unwrap(), Some(vec![1, 3, 0, 2]));
    tape.rewind().unwrap();
    assert_eq!(tape.access_order(&segments).unwrap(), Some(vec![2, 0, 3, 1]));
    // A list that is too long is not sent.
    let many = vec![Segment::of(2, 3); 3000];
    assert_eq!(tape.access_order(&many).unwrap(), None);
    // Behind the end of the data, and on a drive that does not know the commands.
    let refused = |segment| match tape.access_order(&[segment]) {
        Err(QuestionError::Refused(sense)) => (sense.key, sense.code),
        other => panic!("{other:?}"),
    };
    assert_eq!([Segment::of(39, 2), Segment::of(4000, 9)].map(refused), [(5, 0x21); 2]);
    drive.change_settings(|settings| settings.access_orders = AccessOrders::Unknown);
    assert!(tape.access_order(&segments).unwrap_err().is_unknown());
    for answers in [Answers::Empty, Answers::Garbage, Answers::Unreachable, Answers::Refused] {
        drive.change_settings(|settings| settings.answers = answers);
        let order = tape.access_order(&segments);
        assert!(!matches!(order, Ok(Some(_))), "{answers:?}: {order:?}");
    }
}
