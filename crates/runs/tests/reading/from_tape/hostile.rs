//! Labels and indexes with impossible claims: their checksums are right, their numbers are not. The
//! claimed data are neither waited for nor filled with zeros.

use archive::index::{
    ExtentRecord, IndexLayout, IndexReader, IndexSection, IndexWriter, Trailer,
    encode_index_header, encode_section_header, encode_trailer, find_trailer, padding_bytes,
};
use archive::label::{Continuation, Found, Label, LabelError};
use archive::stream::StoredOffset;
use device::tape::{Access, BlockMode, Filemark, TapeDrive, TapeWrite};
use runs::backup::BackupError;
use runs::read::ReadFailure;
use runs::restore::RestoreError;
use sim::tape::{Cartridge, Library, Object, VirtualDrive};
use tapeset::{Refused, TapeReadFailure, TapeSetError};

use super::harness::{BLOCK_BYTES, TapeHarness};

/// The files of a cartridge, each its bytes.
fn files(cartridge: &Cartridge) -> Vec<Vec<u8>> {
    let objects = cartridge.objects().unwrap();
    let mut files: Vec<Vec<u8>> = Vec::new();
    for file in objects.split(|object| *object == Object::Filemark) {
        let blocks = file.iter().filter_map(|object| match object {
            Object::Block(bytes) => Some(&bytes[..]),
            Object::Filemark => None,
        });
        files.push(blocks.collect::<Vec<_>>().concat());
    }
    files.pop();
    files
}

/// A cartridge with these files.
fn cartridge(files: &[Vec<u8>]) -> Cartridge {
    let cartridge = Cartridge::of_capacity(64 << 20);
    let drive = VirtualDrive::loaded(cartridge.clone());
    let mut tape = drive.open(Access::Write).unwrap();
    tape.set_block_mode(BlockMode::Variable).unwrap();
    for file in files {
        for block in file.chunks(BLOCK_BYTES) {
            assert_eq!(tape.write(block).unwrap(), TapeWrite::Whole);
        }
        tape.write_filemark(Filemark::Synchronising).unwrap();
    }
    cartridge
}

fn label_of(file: &[u8]) -> Label {
    match Label::find(file) {
        Ok(Found::Label(label)) => label,
        other => panic!("{other:?}"),
    }
}

/// The file with another label in front.
fn relabelled(file: &[u8], change: impl FnOnce(&mut Label)) -> Vec<u8> {
    let mut label = label_of(file);
    let length = label.length_bytes as usize;
    change(&mut label);
    let mut changed = label.encode(Continuation::None).unwrap();
    assert_eq!(changed.len(), length);
    changed.extend_from_slice(&file[length..]);
    changed
}

/// The file of an index with other extents in it.
fn with_extents(file: &[u8], change: impl FnOnce(&mut Vec<ExtentRecord>)) -> Vec<u8> {
    let (label, index) = file.split_at(label_of(file).length_bytes as usize);
    let trailer = find_trailer(index).unwrap().unwrap().trailer;
    let content = |section| {
        let place = trailer.section(section);
        &index[place.offset_bytes as usize..][..place.summary.length_bytes as usize]
    };
    let mut extents: Vec<ExtentRecord> =
        IndexReader::new(content(IndexSection::Extents)).collect::<Result<_, _>>().unwrap();
    change(&mut extents);
    let (mut writer, mut section) = (IndexWriter::new(), Vec::new());
    extents.iter().for_each(|extent| writer.push(extent, &mut section).unwrap());
    let summary = writer.finish(&mut section);
    let mut summaries = trailer.sections.map(|place| place.summary);
    summaries[IndexSection::Extents as usize] = summary;
    let layout = IndexLayout::new(summaries).unwrap();
    let mut changed = [label, &encode_index_header()[..]].concat();
    for kind in IndexSection::ALL {
        let bytes = if kind == IndexSection::Extents { &section[..] } else { content(kind) };
        changed.extend_from_slice(&encode_section_header(kind, bytes.len() as u64).unwrap());
        changed.extend_from_slice(bytes);
        changed.extend_from_slice(&[0; 512][..padding_bytes(bytes.len() as u64)]);
    }
    let trailer = Trailer { sections: layout.sections, ..trailer };
    changed.extend_from_slice(&encode_trailer(&trailer).unwrap());
    changed.resize(changed.len().next_multiple_of(BLOCK_BYTES), 0);
    changed
}

/// The file with the label of a later version in front: its text, and a checksum that holds.
fn of_a_later_version(file: &[u8]) -> Vec<u8> {
    let mut changed = file.to_vec();
    let find = |wanted: &[u8]| file.windows(wanted.len()).position(|it| it == wanted).unwrap();
    let (text, check) = (find(b"takeup 1 "), find(b"check="));
    changed[text + b"takeup ".len()] = b'2';
    let sum = twox_hash::XxHash3_64::oneshot(&changed[text..check]);
    changed[check + b"check=".len()..][..16].copy_from_slice(format!("{sum:016x}").as_bytes());
    changed
}

/// A tape written by a newer version is neither damaged nor foreign: an older set is not restored
/// in place of the last one, and nothing is written after it.
#[test]
fn a_set_of_a_later_version_is_told_as_such() {
    let (harness, _, files) = written();
    for first in [0, files.len() - 1] {
        let mut files = files.clone();
        for file in &mut files[first..] {
            *file = of_a_later_version(file);
        }
        harness.library.drive().insert(cartridge(&files));
        let into = format!("from {first}");
        let error = harness.try_restore(&into, &[]).0.map(drop).unwrap_err();
        let RestoreError::Read(ReadFailure::Tape(TapeReadFailure::Label { source, .. })) = &error
        else {
            panic!("{error:?}");
        };
        assert!(matches!(source, LabelError::Later { version: 2 }), "{source}");
        let tree = harness.plain.path("t");
        let error = harness.try_write(&tree, "none", 16 << 10, BLOCK_BYTES).unwrap_err();
        let BackupError::Tape(TapeSetError::Refused { refused, .. }) = &error else {
            panic!("{error:?}");
        };
        assert_eq!(*refused, Refused::LaterVersion { version: 2 });
    }
}

/// A wrong digit in a Takeup label is damage.
#[test]
fn a_wrong_digit_is_no_later_version() {
    let (harness, expected, files) = written();
    let mut files = files.clone();
    let text = files[1].windows(9).position(|it| it == b"takeup 1 ").unwrap();
    files[1][text + 7] = b'3';
    harness.library.drive().insert(cartridge(&files));
    harness.restore("digit");
    assert!(harness.restored("digit") == expected);
}

fn written() -> (TapeHarness, std::collections::BTreeMap<String, Vec<u8>>, Vec<Vec<u8>>) {
    let harness = TapeHarness::new(1, 64 << 20);
    let expected = harness.small_tree(16, 9_000);
    harness.write(&harness.plain.path("t"), "none", 16 << 10);
    let files = files(&harness.library.cartridges()[0]);
    assert!(files.len() >= 4);
    (harness, expected, files)
}

#[test]
fn extents_that_no_tape_holds_are_not_believed() {
    let (harness, expected, files) = written();
    type Change = fn(&mut Vec<ExtentRecord>);
    let lies: [(&str, Change); 7] = [
        ("nothing changed", |_| {}),
        ("a gap of almost 2^64 bytes", |extents| {
            let last = extents.last_mut().unwrap();
            last.stream_offset_bytes = StoredOffset::MAX - last.stream_bytes;
        }),
        ("a part of almost 2^64 bytes", |extents| {
            extents.last_mut().unwrap().stream_bytes = u64::MAX - (1 << 40);
        }),
        ("a part of 2^50 bytes", |extents| extents.last_mut().unwrap().stream_bytes = 1 << 50),
        ("the last file that can be counted", |extents| extents[0].file_number = u32::MAX),
        ("the last object that can be counted", |extents| {
            extents[1].label_block = Some(u64::MAX - 1);
        }),
        ("the last volume that can be counted", |extents| {
            extents.last_mut().unwrap().volume = u32::MAX;
        }),
    ];
    for (lie, change) in lies {
        let mut files = files.clone();
        let index = files.pop().unwrap();
        files.push(with_extents(&index, change));
        harness.library.drive().insert(cartridge(&files));
        let (_, kept) = harness.restore(lie);
        assert_eq!(kept.warnings(), Vec::<String>::new(), "{lie}");
        assert!(harness.restored(lie) == expected, "{lie}");
    }
}

#[test]
fn labels_that_no_tape_holds_are_not_believed() {
    let (harness, expected, files) = written();
    let block = BLOCK_BYTES as u64;
    type Change = Box<dyn Fn(&mut Label)>;
    let lies: [(&str, Change); 5] = [
        (
            "almost 2^64 bytes before it",
            Box::new(move |label| {
                label.stream_bytes += (u64::MAX / block - 1000) * block;
            }),
        ),
        ("2^50 bytes before it", Box::new(|label| label.stream_bytes += 1 << 50)),
        ("2^40 bytes before it", Box::new(|label| label.stream_bytes += 1 << 40)),
        ("the last volume", Box::new(|label| label.volume = u32::MAX)),
        ("the last segment", Box::new(|label| label.segment = u32::MAX)),
    ];
    for (lie, change) in lies {
        for at in 0..files.len() {
            // Without the index the labels are all that there is.
            let mut files = files[..files.len() - 1].to_vec();
            let Some(file) = files.get_mut(at) else { continue };
            *file = relabelled(file, &change);
            harness.library.drive().insert(cartridge(&files));
            let into = format!("{lie} {at}");
            let (result, kept) = harness.try_restore(&into, &[]);
            let restored = harness.restored(&into);
            for (path, content) in &restored {
                let whole = path.ends_with(".incomplete") || expected[path] == *content;
                assert!(whole, "{into}: {path}");
            }
            match result {
                Ok(_) => assert!(!kept.warnings().is_empty(), "{into}: no word"),
                Err(RestoreError::Read(ReadFailure::Tape(
                    TapeReadFailure::TooMuchMissing { .. }
                    | TapeReadFailure::NoSets { .. }
                    | TapeReadFailure::NoData { .. },
                ))) => {}
                Err(error) => panic!("{into}: {error:?}"),
            }
        }
    }
}

/// A volume may be missing, so a label on a later one may leave much out, but no more than there is
/// some reason for.
#[test]
fn a_label_on_a_later_volume_is_no_reason_for_zeros_without_end() {
    let harness = TapeHarness::new(2, 300 << 10);
    harness.small_tree(20, 30_000);
    harness.write(&harness.plain.path("t"), "none", 16 << 10);
    let second = files(&harness.library.cartridges()[1]);
    assert!(second.len() >= 2, "one volume took it all");
    // Without the index, as in a run that died.
    let mut changed = second[..second.len() - 1].to_vec();
    changed[0] = relabelled(&changed[0], |label| label.stream_bytes += 1 << 46);
    let changed = cartridge(&changed);
    let library = Library::new(
        harness.library.drive().clone(),
        [harness.library.cartridges()[0].clone(), changed],
    );
    let harness = TapeHarness { library, ..harness };
    assert!(harness.library.load(0));
    let (result, _) = harness.try_restore("later", &[]);
    let error = result.map(drop).unwrap_err();
    let RestoreError::Read(ReadFailure::Tape(TapeReadFailure::TooMuchMissing { .. })) = error
    else {
        panic!("{error:?}");
    };
}
