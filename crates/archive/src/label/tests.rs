//! Labels can be read back, whatever the numbers, and other readers skip them.

use std::io::Write as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;
use crate::member::{MemberKind, Timestamp};

fn compression() -> impl Strategy<Value = Compression> {
    prop_oneof![
        Just(Compression::None),
        Just(Compression::Zstd { level: 3 }),
        Just(Compression::Gzip { level: 6 }),
    ]
}

fn label() -> impl Strategy<Value = Label> {
    let ids = (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<bool>(), any::<u64>());
    let numbers = (1u32.., 1u32.., 1u32.., any::<u64>(), any::<Option<u32>>());
    let blocks = prop_oneof![Just(1u32), Just(2), Just(20), Just(2048), 1u32..5000];
    (ids, numbers, blocks, compression()).prop_map(|(ids, numbers, block_units, compression)| {
        let (segment, part, volume, stream, previous) = numbers;
        let is_index = ids.2;
        let stream_bytes = match compression {
            Compression::None => stream / 512 * 512,
            _ if is_index => stream / 512 * 512,
            _ => stream,
        };
        Label {
            set: ids.0,
            kind: if is_index { LabelKind::Index } else { LabelKind::Data },
            segment,
            part,
            volume,
            medium: ids.1,
            stream_bytes: StoredOffset::new(stream_bytes),
            block_bytes: block_units * 512,
            length_bytes: 0,
            compression,
            previous,
            time_seconds: ids.3,
            host: HostName::new(&vec![b'h'; (ids.3 % 70) as usize]),
            medium_name: MediumName::new(&"n".repeat((ids.3 % 37) as usize)),
            chain: (ids.3 % 3 > 0).then(|| LabelledSet {
                job: JobText::new(&"ä ".repeat((ids.3 % 21) as usize + 1)).expect("a name"),
                number: ids.3,
                level: (ids.3 % 256) as u8,
                parent: (ids.3 % 3 == 2).then_some(ids.1),
            }),
        }
    })
}

fn plain(block_bytes: u32) -> Label {
    Label {
        set: [0xab; 16],
        kind: LabelKind::Data,
        segment: 1,
        part: 1,
        volume: 1,
        medium: [0x01; 16],
        stream_bytes: StoredOffset::START,
        block_bytes,
        length_bytes: 0,
        compression: Compression::None,
        previous: None,
        time_seconds: 1_700_000_000,
        host: None,
        medium_name: None,
        chain: None,
    }
}

fn member(path: &str, size_bytes: u64) -> Member {
    Member {
        path: path.into(),
        kind: MemberKind::File,
        mode: 0o640,
        uid: 0,
        gid: 0,
        user: Vec::new(),
        group: Vec::new(),
        modified: Timestamp { seconds: 1_700_000_000, nanoseconds: 500_000_000 },
        size_bytes,
        sparse: None,
        xattrs: vec![(b"user.x".to_vec(), vec![1; 3000])],
        acl_access: None,
        acl_default: None,
    }
}

/// Reads like a reader of blocks: no more than requested.
fn find(bytes: &[u8]) -> Result<Found, LabelError> {
    let mut have = 512.min(bytes.len());
    loop {
        match Label::find(&bytes[..have])? {
            Found::NeedMore { prefix_bytes } => {
                assert!(prefix_bytes > have, "more is asked for than there is");
                if prefix_bytes > bytes.len() {
                    return Ok(Found::NeedMore { prefix_bytes });
                }
                have = prefix_bytes;
            }
            found => return Ok(found),
        }
    }
}

fn run(command: &str, input: &[u8]) -> (String, bool) {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("the shell ends");
    feeder.join().expect("the feeder ends");
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.success())
}

/// The digits of the length of a record may leave a byte over, which depends on the room.
#[test]
fn a_label_of_every_length_is_filled() {
    for name in 1..600 {
        let mut label =
            Label { stream_bytes: StoredOffset::new(1024), part: 2, volume: 2, ..plain(1024) };
        let member = member(&"n".repeat(name), 9000);
        let rest = Continuation::Inside { member: &member, rest_bytes: 4000 };
        let bytes = label.encode(rest).expect("encodable");
        assert_eq!(bytes.len(), label.length_bytes as usize, "{name}");
        assert!(matches!(find(&bytes), Ok(Found::Label(found)) if found == label), "{name}");
    }
}

#[test]
fn a_host_has_a_name_of_printable_letters() {
    let name = |bytes: &[u8]| HostName::new(bytes).map(|name| name.as_str().to_owned());
    assert_eq!(name(b"db1.example.org").as_deref(), Some("db1.example.org"));
    assert_eq!(name(&[b'x'; 64]), Some("x".repeat(64)));
    for wrong in [&b""[..], b"two words", b"\x1b[2J", "\u{e9}".as_bytes(), &[b'x'; 65]] {
        assert_eq!(name(wrong), None, "{wrong:?}");
    }
    let shown = format!("{:?}", HostName::new(b"db1"));
    assert_eq!(shown, "Some(HostName(\"db1\"))");
    // Older sets have none.
    let bytes = plain(1024).encode(Continuation::None).expect("encodable");
    assert!(matches!(find(&bytes), Ok(Found::Label(Label { host: None, .. }))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn labels_come_back(mut label in label()) {
        let bytes = label.encode(Continuation::None).expect("encodable");
        let block = u64::from(label.block_bytes);
        prop_assert_eq!(bytes.len(), label.length_bytes as usize);
        prop_assert_eq!(bytes.len() as u64 % block, label.stream_bytes % block);
        prop_assert!(bytes.len() as u64 >= block);
        prop_assert!(matches!(find(&bytes), Ok(Found::Label(found)) if found == label));
        prop_assert_eq!(Label::of_text(&label.text()).expect("its own text"), label);
    }

    #[test]
    fn damage_is_noticed(mut label in label(), at: prop::sample::Index, bit in 0u8..8) {
        let good = label.encode(Continuation::None).expect("encodable");
        let mut bytes = good.clone();
        let at = at.index(bytes.len().min(1500));
        bytes[at] ^= 1 << bit;
        if let Ok(Found::Label(found)) = find(&bytes) {
            // Padding, and names in the header, are not covered by the checksum; the fields are.
            prop_assert_eq!(found, label);
        }
    }

    #[test]
    fn any_bytes_give_an_answer(front in prop::collection::vec(any::<u8>(), 0..3000)) {
        let _ = find(&front);
        let mut global = Vec::new();
        let text = [b"takeup 1 ", &front[..]].concat();
        push_global("", text, &[], 512 + (front.len() + 40).next_multiple_of(512), &mut global)
            .expect("encodable");
        prop_assert!(!matches!(find(&global), Ok(Found::Label(_))));
    }
}

/// `dd if=/dev/nst0 | head -c 100` shows what a tape is.
#[test]
fn people_can_read_a_label() {
    let chain = LabelledSet {
        job: JobText::new("homes").expect("a name"),
        number: 12,
        level: 1,
        parent: Some([0xcd; 16]),
    };
    let mut label = Label {
        host: HostName::new(b"db1"),
        medium_name: MediumName::new("000123L6"),
        chain: Some(chain),
        ..plain(1024)
    };
    let bytes = label.encode(Continuation::None).expect("encodable");
    let name = b"PaxHeaders/takeup db1 homes level 1 2023-11-14T22:13:20Z volume 1\0";
    assert_eq!(&bytes[..name.len()], name, "{:?}", String::from_utf8_lossy(&bytes[..100]));
    let text = String::from_utf8_lossy(&bytes);
    let parent = "cd".repeat(16);
    let fields =
        format!(" host=db1 name=000123L6 job=homes number=12 level=1 parent={parent} check=");
    assert!(text.contains(&fields), "{text}");
}

#[test]
fn the_longest_names_leave_room() {
    let chain = LabelledSet {
        job: JobText::new(&"\u{e9}".repeat(32)).expect("a name"),
        number: u64::MAX,
        level: u8::MAX,
        parent: Some([0xcd; 16]),
    };
    for compression in [Compression::None, Compression::Zstd { level: 3 }] {
        let mut label = Label {
            host: HostName::new(&[b'x'; 64]),
            medium_name: MediumName::new(&"n".repeat(32)),
            chain: Some(chain),
            compression,
            segment: u32::MAX,
            part: u32::MAX,
            volume: u32::MAX,
            stream_bytes: StoredOffset::new(u64::MAX / 512 * 512),
            previous: Some(u32::MAX),
            time_seconds: u64::MAX,
            ..plain(512)
        };
        let bytes = label.encode(Continuation::None).expect("encodable");
        assert!(matches!(find(&bytes), Ok(Found::Label(found)) if found == label));
        assert!(label.text().len() < TEXT_BYTES_MAX - 20, "{}", label.text().len());
    }
    assert_eq!(MediumName::new(&"n".repeat(33)), None);
    assert_eq!(MediumName::new("week 3"), None);
    assert_eq!(JobText::new(&"x".repeat(65)), None);
    assert_eq!(JobText::new("a\nb"), None);
}

#[test]
fn large_blocks_are_filled_with_several_headers() {
    for block_bytes in [512 * 3, 512 << 10, (512 << 10) + 512, 1 << 20, (1 << 20) + 1024, 16 << 20]
    {
        let mut label = plain(block_bytes);
        let bytes = label.encode(Continuation::None).expect("encodable");
        assert_eq!(bytes.len() as u32, block_bytes);
        let archive = [&bytes[..], &[0; 1024]].concat();
        for reader in ["tar -b1 -tvf -", "bsdtar -tvf -"] {
            assert_eq!(run(reader, &archive), (String::new(), true), "{reader} {block_bytes}");
        }
    }
}

#[test]
fn compressed_labels_hold_nothing_for_others() {
    for (compression, tool) in
        [(Compression::Zstd { level: 3 }, "zstd -dc"), (Compression::Gzip { level: 6 }, "gzip -dc")]
    {
        for (block_bytes, stream_bytes) in [(512, 0), (4096, 17), (1 << 20, (1 << 20) - 1)] {
            let stream_bytes = StoredOffset::new(stream_bytes);
            let mut label = Label { compression, stream_bytes, ..plain(block_bytes) };
            let bytes = label.encode(Continuation::None).expect("encodable");
            let twice = [&bytes[..], &bytes].concat();
            let (_, success) = run(&format!("{tool} | tar -tf -"), &twice);
            assert!(success, "{tool} {block_bytes}");
            let (listed, success) = run(&format!("{tool} | wc -c"), &twice);
            assert_eq!((listed.trim(), success), ("2048", true), "{tool} {block_bytes}");
        }
    }
}

#[test]
fn a_rest_is_a_file_for_those_who_begin_here() {
    let long = "d/".repeat(120) + "file";
    for path in ["file", &long] {
        let member = member(path, 5000);
        let mut label =
            Label { stream_bytes: StoredOffset::new(1024), part: 2, volume: 2, ..plain(1024) };
        let inside = Continuation::Inside { member: &member, rest_bytes: 1000 };
        let mut bytes = label.encode(inside).expect("encodable");
        assert_eq!(bytes.len() % 1024, 0);
        assert!(matches!(find(&bytes), Ok(Found::Label(found)) if found == label));
        bytes.resize(bytes.len() + 1024 + 1024, 0);
        let (listed, success) = run("tar -b1 -tvf -", &bytes);
        assert!(success && listed.contains("1000 2023") && listed.contains(path), "{listed}");
    }
}

/// Whatever the length, the label stays a label, the directory comes back, and others pass over it.
#[test]
fn a_directory_is_found_and_passed_over() {
    for lines in [0, 1, 3, 40, 700] {
        let directory = "a line of some set, \u{e4} and more\n".repeat(lines);
        for block_bytes in [512, 1024, 10_240, 1 << 20] {
            let mut label = Label { kind: LabelKind::Index, ..plain(block_bytes) };
            let bytes = label.encode_with(Continuation::None, Some(&directory)).expect("encodable");
            let what = format!("{lines} lines, blocks of {block_bytes}");
            assert_eq!(bytes.len(), label.length_bytes as usize, "{what}");
            assert!(bytes.len().is_multiple_of(block_bytes as usize), "{what}");
            assert!(matches!(find(&bytes), Ok(Found::Label(found)) if found == label), "{what}");
            assert_eq!(find_directory(&bytes), Some(&*directory), "{what}");
            let archive = [&bytes[..], &[0; 1024]].concat();
            for reader in ["tar -b1 -tvf -", "bsdtar -tvf -"] {
                assert_eq!(run(reader, &archive), (String::new(), true), "{reader}, {what}");
            }
        }
    }
    let without = plain(1024).encode(Continuation::None).expect("encodable");
    assert_eq!(find_directory(&without), None);
}

#[test]
fn a_damaged_directory_says_nothing() {
    let mut label = Label { kind: LabelKind::Index, ..plain(4096) };
    let good = label.encode_with(Continuation::None, Some("one\ntwo\n")).expect("encodable");
    let at = good.windows(3).position(|bytes| bytes == b"two").expect("it is there");
    for (place, length) in [(at, good.len()), (at - 30, good.len()), (0, at)] {
        let mut bytes = good[..length].to_vec();
        bytes[place] ^= 1;
        assert_eq!(find_directory(&bytes), None, "{place} of {length}");
    }
}
