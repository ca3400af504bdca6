//! Medium files that are used, torn, damaged and made by others.

use proptest::prelude::*;

use super::super::medium::Object;
use super::record::PACKED_LENGTH_MAX;
use super::*;

/// A block that does not shrink.
fn block(number: u8, bytes: usize) -> Object {
    Object::Block(testkit::samples::noise(u64::from(number), bytes))
}

/// One that does.
fn dull(number: u8, bytes: usize) -> Object {
    Object::Block((0..bytes).map(|at| number.wrapping_add((at / 100) as u8)).collect())
}

fn native_bytes(object: &Object) -> u32 {
    match object {
        Object::Block(bytes) => bytes.len() as u32 / 2,
        Object::Filemark => 0,
    }
}

fn append(cartridge: &Cartridge, object: &Object, packing: Packing) {
    let reference = match object {
        Object::Block(bytes) => ObjectRef::Block(bytes),
        Object::Filemark => ObjectRef::Filemark,
    };
    cartridge.lock().append(reference, native_bytes(object), packing).unwrap();
}

fn objects() -> Vec<Object> {
    vec![
        dull(1, 512),
        dull(2, 700),
        dull(3, 300),
        Object::Filemark,
        dull(4, 100_000),
        block(5, 50_000),
        block(6, 1),
    ]
}

/// The first that the last filemark does not protect.
const UNPROTECTED: usize = 4;

fn settings() -> CartridgeSettings {
    CartridgeSettings { capacity_bytes: 1 << 30, density: 0x5e, ..CartridgeSettings::default() }
}

fn filled(path: &Path, packing: Packing) {
    let cartridge = Cartridge::in_file(path, settings()).unwrap();
    objects().iter().for_each(|object| append(&cartridge, object, packing));
}

fn reopened(path: &Path) -> Cartridge {
    Cartridge::in_file(path, CartridgeSettings::default()).unwrap()
}

/// Runs a check with a medium file without and with frames in it.
fn check(check: impl Fn(&Path, Packing)) {
    for packing in [Packing::Leave, Packing::Shrink] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medium");
        filled(&path, packing);
        check(&path, packing);
    }
}

/// Where each record of a medium file ends, from its headers; the end of the head first.
fn ends(file: &[u8]) -> Vec<usize> {
    let mut ends = vec![HEAD_BYTES];
    while *ends.last().unwrap() < file.len() {
        let begin = *ends.last().unwrap();
        let header = file[begin..begin + RECORD_BYTES].try_into().unwrap();
        let record = decode_record(header, Version::Packed).unwrap();
        ends.push(begin + record.content.record_bytes() as usize);
    }
    ends
}

#[test]
fn comes_back_as_it_was() {
    check(|path, _| {
        let cartridge = reopened(path);
        assert_eq!(cartridge.objects().unwrap(), objects());
        assert_eq!(cartridge.lock().settings, settings());
        let native_bytes = objects().iter().map(native_bytes).map(u64::from).sum::<u64>();
        assert_eq!(cartridge.used_bytes(), native_bytes);
        let mut part = [0; 99];
        cartridge.lock().read(4, &mut part).unwrap();
        assert_eq!(part, [4; 99]);
    });
}

#[test]
fn what_shrinks_is_stored_smaller() {
    check(|path, packing| {
        let cartridge = reopened(path);
        cartridge.cut(0).unwrap();
        append(&cartridge, &dull(1, 100_000), packing);
        let bytes = std::fs::metadata(path).unwrap().len() as usize - HEAD_BYTES;
        assert_eq!(bytes < 10_000, packing == Packing::Shrink, "{bytes}");
    });
}

/// A file of the first release can be read and appended to, and its records do not change.
#[test]
fn a_file_of_version_1_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("medium");
    std::fs::write(&path, include_bytes!("version-1.medium")).unwrap();
    let block = |text: &[u8]| Object::Block(text.to_vec());
    let mut expected =
        vec![block(b"a block"), Object::Filemark, block(b"anot"), block(b"her"), Object::Filemark];
    let cartridge = reopened(&path);
    assert_eq!(cartridge.objects().unwrap(), expected);
    expected.push(dull(1, 100_000));
    append(&cartridge, &dull(1, 100_000), Packing::Shrink);
    drop(cartridge);
    let file = std::fs::read(&path).unwrap();
    assert_eq!(file[8], 1);
    assert_eq!(file.len(), include_bytes!("version-1.medium").len() + RECORD_BYTES + 100_000);
    assert_eq!(reopened(&path).objects().unwrap(), expected);
}

#[test]
fn a_later_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("medium");
    let mut head = encode_head(&settings(), &Chip::of_new_cartridge(), Version::Packed);
    head[8] = 3;
    let checksum = XxHash3_64::oneshot(&head[..HEAD_BYTES - 8]);
    head[HEAD_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(&path, head).unwrap();
    let opened = Cartridge::in_file(&path, settings()).map(|_| ());
    assert!(matches!(opened, Err(MediumFileError::Version { version: 3, .. })), "{opened:?}");
}

#[test]
fn a_frame_in_a_file_of_version_1_is_no_record() {
    let content = Content::Packed { length: 100, stored: 20 };
    let record = Record { content, native_bytes: 50, number: 0, checksum: 1 };
    let bytes = encode_record(&record);
    assert_eq!(decode_record(&bytes, Version::Packed), Some(record));
    assert_eq!(decode_record(&bytes, Version::Plain), None);
    for (length, stored) in [(100, 100), (100, 101), (PACKED_LENGTH_MAX + 1, 20), (u32::MAX, 5)] {
        let content = Content::Packed { length, stored };
        let bytes = encode_record(&Record { content, ..record });
        assert_eq!(decode_record(&bytes, Version::Packed), None, "{length} {stored}");
    }
}

#[test]
fn writing_in_the_middle_cuts_the_file() {
    check(|path, packing| {
        let cartridge = reopened(path);
        cartridge.cut(2).unwrap();
        append(&cartridge, &dull(9, 640), packing);
        drop(cartridge);
        let mut expected = objects()[..2].to_vec();
        expected.push(dull(9, 640));
        assert_eq!(reopened(path).objects().unwrap(), expected);
    });
}

/// Wherever a killed process stopped writing, records that were complete before exist.
#[test]
fn torn_at_any_byte() {
    check(|path, _| {
        let whole = std::fs::read(path).unwrap();
        let ends = ends(&whole);
        assert_eq!(ends.len(), objects().len() + 1);
        let cuts = (HEAD_BYTES..HEAD_BYTES + 1700).chain(whole.len() - 200..=whole.len());
        for cut in cuts {
            std::fs::write(path, &whole[..cut]).unwrap();
            let left = ends.iter().filter(|&&end| end <= cut).count() - 1;
            assert_eq!(reopened(path).objects().unwrap(), objects()[..left], "cut at {cut}");
            assert_eq!(std::fs::metadata(path).unwrap().len(), ends[left] as u64);
        }
    });
}

#[test]
fn a_power_cut_takes_what_is_behind_the_last_filemark() {
    check(|path, _| {
        let mut bytes = std::fs::read(path).unwrap();
        let begin = ends(&bytes)[UNPROTECTED] + RECORD_BYTES;
        let lost = begin + 10..begin + 300;
        bytes[lost].fill(0);
        std::fs::write(path, &bytes).unwrap();
        assert_eq!(reopened(path).objects().unwrap(), objects()[..UNPROTECTED]);
    });
}

#[test]
fn damage_before_a_filemark_is_a_read_error() {
    check(|path, _| {
        let mut bytes = std::fs::read(path).unwrap();
        // The second block, which may be a frame of few bytes.
        let begin = ends(&bytes)[1];
        bytes[begin + RECORD_BYTES + 10] ^= 1;
        std::fs::write(path, &bytes).unwrap();
        let cartridge = reopened(path);
        assert_eq!(cartridge.len() as usize, objects().len());
        let mut medium = cartridge.lock();
        assert!(medium.read(1, &mut [0; 700]).is_err());
        assert!(medium.read(1, &mut [0; 10]).is_err());
        medium.read(2, &mut [0; 300]).unwrap();
    });
}

#[test]
fn only_one_drive_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("medium");
    let first = Cartridge::in_file(&path, settings()).unwrap();
    let second = Cartridge::in_file(&path, settings()).map(|_| ());
    assert!(matches!(second, Err(MediumFileError::InUse { .. })));
    drop(first);
    reopened(&path);
}

#[test]
fn other_files_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("medium");
    let head = encode_head(&settings(), &Chip::of_new_cartridge(), Version::Packed);
    for content in [vec![1; 10], vec![1; 10_000], head[..100].to_vec()] {
        std::fs::write(&path, &content).unwrap();
        let opened = Cartridge::in_file(&path, settings()).map(|_| ());
        assert!(matches!(opened, Err(MediumFileError::Foreign { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
}

#[test]
fn a_read_only_file_is_protected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("medium");
    filled(&path, Packing::Shrink);
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    let cartridge = reopened(&path);
    assert_eq!(cartridge.lock().settings.protection, Protection::Protected);
    assert_eq!(cartridge.objects().unwrap(), objects());
}

/// Actions of a user on a cartridge.
#[derive(Clone, Debug)]
enum Step {
    Append(Object, Packing),
    /// Everything from there on goes.
    Cut(prop::sample::Index),
    /// The process ends.
    Reopen,
    /// The process is killed while it appends to the file; this many bytes of the last record
    /// exist.
    Torn(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop_oneof![0..200_usize, 4000..4200_usize, Just(65_536)];
    let object = (any::<u8>(), bytes, 0..5).prop_map(|(number, bytes, kind)| match kind {
        0 => Object::Filemark,
        1 | 2 => block(number, bytes),
        _ => dull(number, bytes),
    });
    let packing = prop_oneof![Just(Packing::Leave), Just(Packing::Shrink), Just(Packing::Shrink)];
    let step = prop_oneof![
        8 => (object, packing).prop_map(|(object, packing)| Step::Append(object, packing)),
        1 => any::<prop::sample::Index>().prop_map(Step::Cut),
        1 => Just(Step::Reopen),
        1 => any::<prop::sample::Index>().prop_map(Step::Torn),
    ];
    prop::collection::vec(step, 1..40)
}

fn take(step: &Step, path: &Path, cartridge: Cartridge, model: &mut Vec<Object>) -> Cartridge {
    match step {
        Step::Append(object, packing) => {
            append(&cartridge, object, *packing);
            model.push(object.clone());
            cartridge
        }
        Step::Cut(index) => {
            let number = index.index(model.len() + 1);
            cartridge.cut(number as u64).unwrap();
            model.truncate(number);
            cartridge
        }
        Step::Reopen => {
            drop(cartridge);
            reopened(path)
        }
        Step::Torn(index) => {
            drop(cartridge);
            let file = std::fs::read(path).unwrap();
            if let [.., begin, end] = ends(&file)[..] {
                std::fs::write(path, &file[..begin + index.index(end - begin)]).unwrap();
                model.pop();
            }
            reopened(path)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_medium_file_is_a_list_of_objects(steps in steps()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medium");
        let mut cartridge = Cartridge::in_file(&path, settings()).unwrap();
        let mut model = Vec::new();
        for step in &steps {
            cartridge = take(step, &path, cartridge, &mut model);
            prop_assert_eq!(cartridge.len() as usize, model.len());
            let native_bytes = model.iter().map(native_bytes).map(u64::from).sum::<u64>();
            prop_assert_eq!(cartridge.used_bytes(), native_bytes);
        }
        prop_assert_eq!(cartridge.objects().unwrap(), &model[..]);
        drop(cartridge);
        prop_assert_eq!(reopened(&path).objects().unwrap(), model);
    }
}

/// The length of a disk is 0 as well: it was taken for an empty file, and overwritten.
#[test]
fn only_a_file_is_a_medium() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for path in [&pipe, Path::new("/dev/null")] {
        let refused = Cartridge::in_file(path, CartridgeSettings::default());
        assert!(matches!(refused, Err(MediumFileError::NoFile { .. })), "{}", path.display());
    }
}

/// What the chip says without the drive.
fn chip(cartridge: &Cartridge) -> ([u8; 16], u32, Option<String>) {
    let mut medium = cartridge.lock();
    let reference = medium.read_change_reference();
    (medium.chip.serial, reference, medium.chip.barcode.clone())
}

#[test]
fn the_chip_outlives_the_process_and_counts_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("000123L6.medium");
    let cartridge = Cartridge::in_file(&path, settings()).unwrap();
    let (serial, first, barcode) = chip(&cartridge);
    assert_eq!(barcode.as_deref(), Some("000123L6"));
    append(&cartridge, &block(1, 100), Packing::Leave);
    append(&cartridge, &block(2, 100), Packing::Leave);
    let second = chip(&cartridge).1;
    assert_ne!(second, first);
    drop(cartridge);
    let cartridge = Cartridge::in_file(&path, settings()).unwrap();
    assert_eq!(chip(&cartridge), (serial, second, barcode), "nothing was written since");
    cartridge.cut(1).unwrap();
    let third = chip(&cartridge).1;
    assert!(third != second && third != first);
    assert_eq!(cartridge.objects().unwrap(), [block(1, 100)]);
    // Files of before had no chip: they get one when they are next written to.
    drop(cartridge);
    let mut head = std::fs::read(&path).unwrap();
    head[32..52].fill(0);
    let checksum = XxHash3_64::oneshot(&head[..HEAD_BYTES - 8]);
    head[HEAD_BYTES - 8..HEAD_BYTES].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(&path, head).unwrap();
    let old = Cartridge::in_file(&path, settings()).unwrap();
    let (given, ..) = chip(&old);
    assert!(given != serial && given != [0; 16]);
    append(&old, &Object::Filemark, Packing::Leave);
    drop(old);
    assert_eq!(chip(&Cartridge::in_file(&path, settings()).unwrap()).0, given);
}
