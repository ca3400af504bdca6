//! The real tape driver, in the lab: `cargo xtask lab` runs this with a drive in `TAKEUP_TAPE` and
//! `cartridge`, the drive's operator, in the path.
//!
//! The lab has two drives: tgt's, which supports less than a real one, and that of crate `sim`.
//! Tests for only one of them are in a module of its name.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use device::tape::limits::{Found, LimitedBy};
use device::tape::st::StDrive;
use device::tape::{
    Access, BlockMode, Compression, CompressionError, DriveCompression, Filemark, OpenError, Tape,
    TapeDrive, TapePlace, TapeRead, TapeWrite, find,
};

const CARTRIDGE: &str = "device";

/// The drive with a fresh cartridge of this many MiB.
fn drive(mebibytes: u32) -> StDrive {
    operate(&["eject"]);
    operate(&["new", CARTRIDGE, &mebibytes.to_string()]);
    operate(&["load", CARTRIDGE]);
    find(Path::new(&node())).expect("TAKEUP_TAPE leads to a tape drive")
}

/// Name of the node that `TAKEUP_TAPE` gives.
fn node() -> String {
    std::env::var("TAKEUP_TAPE").unwrap()
}

/// Whether this is tgt's drive.
fn is_tgt(tape: &mut Tape) -> bool {
    tape.inquiry().unwrap().product == "VIRTUAL-TAPE"
}

/// Runs the drive's operator; ejecting an empty drive is not a failure.
fn operate(arguments: &[&str]) {
    let output = Command::new("cartridge").args(arguments).output().unwrap();
    assert!(output.status.success() || arguments == ["eject"], "{arguments:?}: {output:?}");
}

/// A tape in variable mode at its beginning.
fn opened(drive: &impl TapeDrive, access: Access) -> Tape {
    let mut tape = drive.open(access).unwrap();
    tape.set_block_mode(BlockMode::Variable).unwrap();
    tape.rewind().unwrap();
    tape
}

fn block(number: u8) -> Vec<u8> {
    vec![number; 4096]
}

/// Blocks 0, 1, 2 in file 0; 10, 11 in file 1; 20 in file 2.
fn three_files(tape: &mut Tape) {
    for file in [vec![0, 1, 2], vec![10, 11], vec![20]] {
        for number in file {
            assert_eq!(tape.write(&block(number)).unwrap(), TapeWrite::Whole);
        }
        tape.write_filemark(Filemark::Synchronising).unwrap();
    }
}

#[track_caller]
fn reads(tape: &mut Tape, number: u8) {
    let mut buffer = vec![0; 8192];
    assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::Block(4096));
    assert_eq!(buffer[0], number);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn an_empty_drive_is_told_at_once() {
    let drive = drive(16);
    operate(&["eject"]);
    let begin = Instant::now();
    for access in [Access::Read, Access::Write] {
        let error = drive.open(access).err().unwrap();
        assert!(matches!(error, OpenError::NoMedium { .. }), "{error}");
    }
    // The driver itself would have waited two minutes, each time.
    assert!(begin.elapsed() < Duration::from_secs(60));
    let mut tape = drive.open(Access::Look).unwrap();
    assert!(tape.status().unwrap().no_medium);
    assert!(tape.inquiry().unwrap().product.starts_with("VIRTUAL-T"));
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_protected_medium_can_be_read_only() {
    let drive = drive(16);
    three_files(&mut opened(&drive, Access::Write));
    operate(&["protect", CARTRIDGE]);
    let error = drive.open(Access::Write).err().unwrap();
    assert!(matches!(error, OpenError::WriteProtected { .. }), "{error}");
    let mut tape = drive.open(Access::Read).unwrap();
    assert!(tape.status().unwrap().write_protected);
    tape.rewind().unwrap();
    reads(&mut tape, 0);
    drop(tape);
    operate(&["unprotect", CARTRIDGE]);
}

/// A process that has the drive open and sends it no command.
struct Other(Child);

impl Other {
    fn with(path: &str) -> Other {
        let script = format!("exec 3<{path}; echo open; exec sleep 600");
        let mut child =
            Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = [0; 5];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        Other(child)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn who_has_the_drive_is_named() {
    let drive = drive(16);
    let other = Other::with(&format!("{}a", node()));
    let error = drive.open(Access::Look).err().unwrap();
    let OpenError::Busy { holder: Some(holder), .. } = error else { panic!("{error}") };
    assert_eq!(holder.process, other.0.id());
    drop(other);
    // A program that bypasses the tape driver does not lock out others, but is found all the same.
    let generic = drive.folder().unwrap().generic_device().unwrap();
    let other = Other::with(generic.to_str().unwrap());
    assert_eq!(drive.holder().map(|holder| holder.process), Some(other.0.id()));
    drop(other);
    assert_eq!(drive.holder(), None);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_driver_that_never_waits_is_not_written_through() {
    let drive = drive(16);
    /// `MT_ST_NOWAIT_EOF`.
    const NO_WAIT_FILEMARKS: &str = "0x8000";
    let set_options = |name: &str| {
        let mt = Command::new("mt").args(["-f", &node(), name, NO_WAIT_FILEMARKS]).status();
        assert!(mt.unwrap().success());
    };
    set_options("stsetoptions");
    let (written, read) = (drive.open(Access::Write).err(), drive.open(Access::Read).err());
    set_options("stclearoptions");
    assert!(matches!(written, Some(OpenError::NeverWaits { .. })), "{written:?}");
    assert!(read.is_none());
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_node_that_rewinds_is_opened_by_its_sister() {
    let drive = drive(16);
    three_files(&mut opened(&drive, Access::Write));
    let rewinding = find(Path::new(&node().replace("nst", "st"))).unwrap();
    assert_eq!(rewinding.path(), Path::new(&node()));
    assert!(!rewinding.rewinds());
    let place = |tape: &mut Tape| tape.status().unwrap().file_number;
    assert_eq!(place(&mut rewinding.open(Access::Look).unwrap()), Some(3));
    assert_eq!(place(&mut rewinding.open(Access::Look).unwrap()), Some(3));
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_place_is_found_from_everywhere() {
    let drive = drive(16);
    let mut tape = opened(&drive, Access::Write);
    three_files(&mut tape);
    // File, block, content, number as MTIOCPOS counts.
    let places = [(0, 0, 0, 0), (0, 2, 2, 2), (1, 0, 10, 4), (1, 1, 11, 5), (2, 0, 20, 7)];
    for (from_file, from_block, from, _) in places {
        for (file, block, number, absolute) in places {
            for absolute in [None, Some(absolute)] {
                let place =
                    |file, block| TapePlace { file_number: Some(file), block_in_file: Some(block) };
                tape.go_to(place(from_file, from_block), None).unwrap();
                reads(&mut tape, from);
                // It also works without absolute numbers.
                tape.go_to(place(file, block), absolute).unwrap();
                reads(&mut tape, number);
            }
        }
    }
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn the_end_of_the_data_has_a_file_number() {
    let drive = drive(16);
    let mut tape = opened(&drive, Access::Write);
    // For a blank medium tgt's answer is not clear.
    assert!(is_tgt(&mut tape) || tape.is_blank().unwrap());
    three_files(&mut tape);
    assert!(!tape.is_blank().unwrap());
    assert_eq!(tape.to_end_of_data().unwrap(), 3);
    assert_eq!(tape.write(&block(30)).unwrap(), TapeWrite::Whole);
    tape.write_filemark(Filemark::Synchronising).unwrap();
    tape.rewind().unwrap();
    assert_eq!(tape.to_end_of_data().unwrap(), 4);
    drop(tape);
    // Set to be fast, the driver does not count.
    let set_options = |name: &str| {
        let mt = Command::new("mt").args(["-f", &node(), name, "fast-eod"]).status();
        assert!(mt.unwrap().success());
    };
    set_options("stsetoptions");
    let mut tape = drive.open(Access::Write).unwrap();
    tape.rewind().unwrap();
    let found = tape.to_end_of_data();
    drop(tape);
    set_options("stclearoptions");
    assert_eq!(found.unwrap(), 4);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn the_limits_are_those_of_the_drive() {
    let drive = drive(16);
    let mut tape = opened(&drive, Access::Write);
    let limits = tape.limits();
    assert_eq!((limits.found, limits.limited_by), (Found::Asked, LimitedBy::Drive));
    let expected = if is_tgt(&mut tape) { (4, 1 << 20) } else { (1, 8 << 20) };
    assert_eq!((limits.block_bytes_min, limits.block_bytes_max), expected);
    assert_eq!(limits.recommended_block_bytes(), 1 << 20);
    assert_eq!(tape.write(&vec![7; 1 << 20]).unwrap(), TapeWrite::Whole);
    let too_large = vec![7; expected.1 as usize + 512];
    let refused = tape.write(&too_large).unwrap_err();
    assert_eq!(refused.source.raw_os_error(), Some(22));
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn an_error_says_what_the_drive_said() {
    let drive = drive(16);
    let mut tape = opened(&drive, Access::Write);
    three_files(&mut tape);
    let (error, said) = if is_tgt(&mut tape) {
        // This drive does not support LOCATE, and reports so; the driver returns EIO and logs it.
        (tape.seek(3), "illegal request, invalid command operation code (sense 5/20/00)")
    } else {
        operate(&["faults", CARTRIDGE, "unreadable=1"]);
        tape.go_to(TapePlace { file_number: Some(0), block_in_file: Some(1) }, None).unwrap();
        let read = tape.read(&mut [0; 8192]);
        operate(&["faults", CARTRIDGE]);
        (read.map(|_| ()), "medium error, unrecovered read error (sense 3/11/00)")
    };
    let text = error.unwrap_err().to_string();
    assert!(text.contains(said), "{text}");
    // A call that failed for another reason does not report the old sense data.
    let error = tape.set_block_mode(BlockMode::Fixed(0xff_ffff)).unwrap_err();
    assert!(!error.to_string().contains(said), "{error}");
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn questions_move_no_tape() {
    let drive = drive(16);
    let mut tape = opened(&drive, Access::Write);
    three_files(&mut tape);
    let place = TapePlace { file_number: Some(1), block_in_file: Some(1) };
    tape.go_to(place, None).unwrap();
    assert!(!tape.serial_number().unwrap().is_empty());
    assert!(!tape.mode_header().unwrap().write_protected);
    if is_tgt(&mut tape) {
        assert!(tape.alerts().unwrap_err().is_unknown());
        assert!(tape.sequential_access().unwrap_err().is_unknown());
        assert!(tape.volume_statistics().unwrap_err().is_unknown());
        assert!(tape.long_position().is_err());
    } else {
        assert_eq!(tape.alerts().unwrap(), []);
        assert!(tape.sequential_access().is_ok());
        assert!(tape.long_position().is_ok_and(|position| position.object == Some(5)));
    }
    tape.limits();
    reads(&mut tape, 11);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn statistics_count_what_was_written() {
    let drive = drive(16);
    let mut tape = opened(&drive, Access::Write);
    let before = tape.statistics().unwrap();
    three_files(&mut tape);
    let after = tape.statistics().unwrap();
    assert_eq!(after.writes - before.writes, 6);
    assert_eq!(after.write_bytes - before.write_bytes, 6 * 4096);
    assert!(after.write_ns > before.write_ns);
    // Three filemarks, and not a single question between the blocks.
    assert_eq!(after.others - before.others, 3);
    assert_eq!(drive.folder().unwrap().in_flight(), Some(0));
}

mod on_sim_drive {
    use super::*;

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn the_end_of_the_data_is_no_error() {
        let drive = drive(16);
        let mut tape = opened(&drive, Access::Write);
        let mut buffer = vec![0; 8192];
        assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::EndOfData, "blank");
        tape.rewind().unwrap();
        three_files(&mut tape);
        assert_eq!(tape.write(&block(30)).unwrap(), TapeWrite::Whole);
        // Ends without a filemark, as after a power loss: after synchronising, close writes none.
        tape.synchronise().unwrap();
        drop(tape);
        let mut tape = opened(&drive, Access::Read);
        tape.space_filemarks(2).unwrap();
        reads(&mut tape, 20);
        assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::Filemark);
        reads(&mut tape, 30);
        assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::EndOfData, "behind a block");
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn compression_is_set_and_read_back() {
        let drive = drive(16);
        let mut tape = opened(&drive, Access::Write);
        for wanted in [DriveCompression::Off, DriveCompression::On, DriveCompression::On] {
            let expected = match wanted {
                DriveCompression::On => Compression::On,
                DriveCompression::Off => Compression::Off,
            };
            assert_eq!(tape.set_drive_compression(wanted).unwrap(), expected);
            assert_eq!(tape.drive_compression().unwrap(), expected);
        }
    }
}

mod on_tgtd_drive {
    use super::*;

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn compression_that_is_not_there_is_not_switched_on() {
        let drive = drive(16);
        let mut tape = opened(&drive, Access::Write);
        three_files(&mut tape);
        assert_eq!(tape.drive_compression().unwrap(), Compression::Unable);
        let error = tape.set_drive_compression(DriveCompression::On).unwrap_err();
        assert!(matches!(error, CompressionError::Unable { .. }), "{error}");
        let now = tape.set_drive_compression(DriveCompression::Off).unwrap();
        assert_eq!(now, Compression::Unable);
        // No command was sent that would lose the position.
        assert_eq!(tape.status().unwrap().file_number, Some(3));
    }
}
