//! The bytes on tape do not depend on threads, and other streams are written unchanged.

use std::path::Path;
use std::time::Duration;

use archive::chunk::Compression;
use device::tape::{Access, TapeDrive};
use device::target::Existing;
use flow::backend::Engine;
use flow::cancel::Cancel;
use flow::ring::LastBlock;
use flow::run::{Endpoint, StageKind};
use runs::backup::BackupOptions;
use runs::pipe::{PipeError, PipeOptions, pipe};
use sim::tape::Library;
use sim::tape::pace::{self, Act, Pace};
use tapeset::{Refused, TapeOptions, TapeSetError};
use testkit::samples::noise;

use super::media::{check_set, files, parts};
use super::{Operator, destination, library, set_id, tape_options, tree, write_well};
use crate::harness::Recorder;

#[test]
fn the_same_tree_gives_the_same_segments() {
    let tree = tree(30, 300, 40_000);
    for compression in [Compression::None, Compression::Gzip { level: 1 }] {
        let mut expected = None;
        for threads in [1, 2, 7, 32] {
            let library = library(&[64 << 20], 1 << 20);
            let options = BackupOptions {
                read_threads: Some(threads),
                compress_threads: Some(threads),
                ..tape_options(tree.path(), 4096, compression)
            };
            let tape = TapeOptions { segment_bytes: Some(150_000), ..TapeOptions::default() };
            let written = write_well(&options, &tape, &library);
            let set = check_set(library.cartridges(), set_id(&written.report), compression);
            let found: Vec<_> = parts(library.cartridges())
                .iter()
                .map(|found| (found.label.stream_bytes, found.file))
                .collect();
            let all = (found, set.stored, set.archive);
            assert!(*expected.get_or_insert_with(|| all.clone()) == all, "{threads} threads");
        }
    }
}

pub fn pipe_options(from: &Path, library: &Library, block_bytes: usize) -> PipeOptions {
    let drive = library.drive().clone();
    PipeOptions {
        from: from.into(),
        to: destination(drive, TapeOptions::default(), Operator::of(library)),
        block_bytes,
        ring_bytes: 1 << 20,
        start_fill_percent: 0,
        rate_limit_bytes_per_second: None,
        last_block: LastBlock::Short,
        engine: Engine::Auto,
        existing: Existing::Keep,
        mode: device::target::FileMode::Usual,
    }
}

#[test]
fn a_pipe_puts_a_stream_on_tape() {
    let source = tempfile::NamedTempFile::new().unwrap();
    let content = noise(1, 100_000);
    std::fs::write(source.path(), &content).unwrap();
    let library = library(&[1 << 20], 100 << 10);
    let run = |block_bytes, last_block| {
        let options =
            PipeOptions { last_block, ..pipe_options(source.path(), &library, block_bytes) };
        pipe(&options, &Recorder::default(), &Cancel::new())
    };
    assert_eq!(run(10_240, LastBlock::Short).unwrap().target, Endpoint::Tape);
    run(64 << 10, LastBlock::Padded).unwrap();
    // It continues at the tape's position, like dd.
    let found = files(&library.cartridges()[0]);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].concat(), content);
    assert_eq!(found[0].iter().map(Vec::len).max(), Some(10_240));
    assert!(found[1].concat().starts_with(&content) && found[1].len() == 2);
    let error = run(16 << 20, LastBlock::Short).unwrap_err();
    assert!(matches!(error, PipeError::Tape(TapeSetError::BlockSize { .. })), "{error}");
}

/// The wait for the medium at the end is flushing, as in a backup, and no work of the writer.
#[test]
fn the_last_flush_of_a_pipe_is_no_work_of_the_writer() {
    const FLUSH: Duration = Duration::from_millis(300);
    struct SlowFlush;
    impl Pace for SlowFlush {
        fn native_bytes(&mut self, block: &[u8], _: pace::Compression) -> u32 {
            block.len() as u32
        }
        fn take(&mut self, act: Act) {
            if act == Act::Synchronise {
                std::thread::sleep(FLUSH);
            }
        }
    }
    let source = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(source.path(), noise(1, 100_000)).unwrap();
    let library = library(&[1 << 20], 100 << 10);
    library.drive().set_pace(Box::new(SlowFlush));
    let options = pipe_options(source.path(), &library, 10_240);
    let report = pipe(&options, &Recorder::default(), &Cancel::new()).unwrap();
    let writer = report.stages.last().unwrap();
    assert_eq!(writer.kind, StageKind::Write);
    assert!(report.synchronise_seconds >= FLUSH.as_secs_f64(), "{report:?}");
    assert!(writer.apart_seconds >= FLUSH.as_secs_f64(), "{writer:?}");
    let rest = report.seconds - writer.apart_seconds;
    assert!(writer.working_seconds <= rest, "{writer:?} of {report:?}");
    assert!(writer.occupied_seconds <= rest, "{writer:?} of {report:?}");
}

#[test]
fn a_pipe_says_how_much_is_on_a_full_medium() {
    let source = tempfile::NamedTempFile::new().unwrap();
    let content = noise(2, 2 << 20);
    std::fs::write(source.path(), &content).unwrap();
    let library = library(&[1 << 20], 100 << 10);
    let options = pipe_options(source.path(), &library, 10_240);
    let result = pipe(&options, &Recorder::default(), &Cancel::new());
    let Err(PipeError::Tape(TapeSetError::EndOfMedium { bytes, .. })) = result else {
        panic!("{result:?}")
    };
    let found = files(&library.cartridges()[0]);
    assert_eq!((found.len(), found[0].concat()), (1, content[..bytes as usize].to_vec()));
}

/// The tape may not be where the user put it: after a reset, or with another medium, it is at the
/// beginning.
#[test]
fn a_pipe_writes_over_nothing_unless_asked() {
    let source = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(source.path(), noise(3, 50_000)).unwrap();
    let library = library(&[1 << 20], 100 << 10);
    let run = |existing| {
        let options = PipeOptions { existing, ..pipe_options(source.path(), &library, 10_240) };
        pipe(&options, &Recorder::default(), &Cancel::new())
    };
    run(Existing::Keep).unwrap();
    run(Existing::Keep).unwrap();
    let before = library.cartridges()[0].objects().unwrap();
    // It was exchanged for itself: the tape is at the beginning. Then in the middle, by hand.
    library.load(0);
    for files in [0, 1] {
        let mut tape = library.drive().open(Access::Read).unwrap();
        tape.rewind().unwrap();
        tape.space_filemarks(files).unwrap();
        drop(tape);
        let error = run(Existing::Keep).unwrap_err();
        let refused = Refused::DataFollow;
        let expected = TapeSetError::Refused { device: "/dev/nst0".into(), refused };
        assert_eq!(error.to_string(), expected.to_string());
        assert_eq!(library.cartridges()[0].objects().unwrap(), before);
    }
    library.load(0);
    run(Existing::Replace).unwrap();
    assert_eq!(files(&library.cartridges()[0]).len(), 1);
}
