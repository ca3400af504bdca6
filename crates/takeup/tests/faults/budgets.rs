//! Memory and time stay within the documented limits, whatever an archive contains: a zoo of
//! hostile archives, each through `list`, `verify` and `restore` of the binary.
//!
//! Resident memory is the kernel's own count (`wait4`, through Python), at most the ring and
//! [`SURPLUS_BYTES`]. Processor time is at most [`BASE_SECONDS`] and [`NS_PER_BYTE`] for each byte
//! of the archive, decompressed. The constants are those of `docs/design/safety.md`. Processor time
//! is not wall time: other work on the machine changes it little. The test looks for quadratic
//! time, which exceeds the limit a hundredfold.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use archive::chunk::Compression;
use archive::index::{
    IndexSection, SectionPlace, SectionSummary, Trailer, encode_index_header,
    encode_section_header, encode_trailer,
};
use archive::stream::StoredOffset;
use tempfile::tempdir;

use crate::command::{run, takeup};

/// Default memory of the rings.
const RING_BYTES: u64 = 64 << 20;
/// Memory allowed beside the ring.
const SURPLUS_BYTES: u64 = 128 << 20;
/// Processor time that any run may take.
const BASE_SECONDS: f64 = 3.0;
/// Processor time for each byte of archive in a debug build, system calls included: a member of
/// 512 bytes is an object to create, a component of two bytes a folder.
const NS_PER_BYTE: f64 = 2500.0;
/// For each folder that a restore makes: two bytes of a path make one.
const NS_PER_FOLDER: f64 = 100_000.0;

/// Runs a program and prints the most memory that it had resident, in KiB, and its processor time
/// in seconds, as the last line.
const MEASURE: &str = "import os, sys
pid = os.fork()
if pid == 0:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.execv(sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_maxrss, used.ru_utime + used.ru_stime)";

/// Writes an archive and returns its length before compression.
struct Writer {
    out: Box<dyn Write>,
    bytes: u64,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) {
        self.out.write_all(bytes).unwrap();
        self.bytes += bytes.len() as u64;
    }

    /// A header of ustar (or GNU) and its content, padded.
    fn member(&mut self, name: &[u8], kind: u8, content: &[u8]) {
        self.header(name, kind, content.len() as u64, &[]);
        self.content(content);
    }

    fn content(&mut self, content: &[u8]) {
        self.put(content);
        self.put(&[0; 512][..content.len().wrapping_neg() % 512]);
    }

    /// A header with more fields put at their offsets.
    fn header(&mut self, name: &[u8], kind: u8, size: u64, fields: &[(usize, &[u8])]) {
        let mut unit = [0; 512];
        unit[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
        let put = |unit: &mut [u8; 512], at: usize, bytes: &[u8]| {
            unit[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(&mut unit, 100, b"0000644\0");
        put(&mut unit, 108, b"0000000\0");
        put(&mut unit, 116, b"0000000\0");
        put(&mut unit, 124, format!("{size:011o}\0").as_bytes());
        put(&mut unit, 136, b"00000000000\0");
        unit[156] = kind;
        put(&mut unit, 257, if kind == b'S' { b"ustar  \0" } else { b"ustar\x0000" });
        for (at, bytes) in fields {
            put(&mut unit, *at, bytes);
        }
        put(&mut unit, 148, b"        ");
        let sum: u32 = unit.iter().map(|byte| u32::from(*byte)).sum();
        put(&mut unit, 148, format!("{sum:06o}\0 ").as_bytes());
        self.put(&unit);
    }

    fn link(&mut self, name: &str, target: &str) {
        self.header(name.as_bytes(), b'1', 0, &[(157, target.as_bytes())]);
    }
}

fn record(keyword: &str, value: &[u8]) -> Vec<u8> {
    let rest = keyword.len() + value.len() + 3;
    let digits = |bytes: usize| bytes.to_string().len();
    let mut length = rest + digits(rest);
    length = rest + digits(length);
    let mut out = format!("{length} {keyword}=").into_bytes();
    out.extend_from_slice(value);
    out.push(b'\n');
    out
}

/// An animal of the zoo: what it is, and how it is made at a size.
struct Animal {
    name: &'static str,
    make: fn(&mut Writer, u64),
    /// Number of its parts: in the short form, and in the long one.
    sizes: [u64; 2],
    compressed: Option<&'static str>,
}

const fn animal(name: &'static str, sizes: [u64; 2], make: fn(&mut Writer, u64)) -> Animal {
    Animal { name, make, sizes, compressed: None }
}

const ZOO: &[Animal] = &[
    animal("attributes of files, 60 KB each", [300, 6000], |out, count| {
        let value = vec![b'v'; 60_000];
        for number in 0..count {
            out.member(b"x", b'x', &record("SCHILY.xattr.user.bomb", &value));
            out.member(format!("file {number}").as_bytes(), b'0', b"");
        }
    }),
    animal("a hundred thousand attributes of one file", [6, 40], |out, count| {
        for number in 0..count {
            let records: Vec<u8> = (0..100_000u32)
                .flat_map(|number| record(&format!("SCHILY.xattr.user.{number}"), b""))
                .collect();
            out.member(b"x", b'x', &records);
            out.member(format!("file {number}").as_bytes(), b'0', b"");
        }
    }),
    animal("global records, each keyword new", [2000, 60_000], |out, count| {
        for number in 0..count {
            let keyword = format!("SCHILY.xattr.user.{number}");
            out.member(b"g", b'g', &record(&keyword, b"value"));
            out.member(b"same", b'0', b"");
        }
    }),
    animal("one global header of a megabyte before many members", [1000, 60_000], |out, count| {
        let records: Vec<u8> = (0..40_000u32)
            .flat_map(|number| record(&format!("SCHILY.xattr.user.{number}"), b"v"))
            .collect();
        out.member(b"g", b'g', &records);
        for number in 0..count {
            out.member(format!("file {number}").as_bytes(), b'0', b"");
        }
    }),
    animal("global records repeated within a header", [15, 400], |out, count| {
        let records = record("uname", b"somebody").repeat(20_000);
        for _ in 0..count {
            out.member(b"g", b'g', &records);
        }
        out.member(b"file", b'0', b"");
    }),
    animal("long names of a megabyte", [20, 400], |out, count| {
        let path = b"d/".repeat(500_000);
        for number in 0..count {
            out.member(b"x", b'L', &[&path[..], number.to_string().as_bytes()].concat());
            // A refused path: the test makes no path beyond the kernel's limits.
            out.member(b"short", b'1', b"");
        }
    }),
    animal("deep trees", [1, 12], |out, count| {
        for number in 0..count {
            let mut path = format!("tree {number}").into_bytes();
            path.extend(b"/d".repeat(20_000));
            out.member(b"x", b'L', &path);
            out.member(b"short", b'0', b"");
        }
    }),
    animal("sparse maps of a million runs", [1, 8], |out, count| {
        for number in 0..count {
            let mut map = String::from("1048570\n");
            (0..1_048_570u64).for_each(|run| map += &format!("{run}\n0\n"));
            map.push_str(&"\0".repeat(map.len().wrapping_neg() % 512));
            let records = [
                record("GNU.sparse.major", b"1"),
                record("GNU.sparse.minor", b"0"),
                record("GNU.sparse.name", format!("sparse {number}").as_bytes()),
                record("GNU.sparse.realsize", b"4194304"),
            ];
            out.member(b"x", b'x', &records.concat());
            out.member(b"sparse", b'0', map.as_bytes());
        }
    }),
    animal("old sparse headers that go on and on", [20_000, 200_000], |out, count| {
        out.header(b"sparse", b'S', 0, &[(482, b"\x01"), (483, b"00000001000\0")]);
        for _ in 0..count {
            let mut unit = [0; 512];
            unit[504] = 1;
            out.put(&unit);
        }
        out.put(&[0; 512]);
    }),
    animal("members that each are warned of", [8000, 300_000], |out, count| {
        let records: Vec<u8> = (0..3).flat_map(|_| record("uid", b"nobody")).collect();
        for number in 0..count {
            out.member(b"x", b'x', &records);
            out.member(format!("../{number}").as_bytes(), b'0', b"");
        }
    }),
    animal("records that cannot be read, by the hundred thousand", [8, 60], |out, count| {
        for number in 0..count {
            out.member(b"x", b'x', &record("uid", b"nobody").repeat(100_000));
            out.member(format!("file {number}").as_bytes(), b'0', b"");
        }
    }),
    animal("warnings with names of 100 KB", [200, 3000], |out, count| {
        let path = [&b"../"[..], &b"n".repeat(100_000)].concat();
        for _ in 0..count {
            out.member(b"x", b'x', &record("path", &path));
            out.member(b"short", b'0', b"");
        }
    }),
    animal("hard links to nothing", [10_000, 100_000], |out, count| {
        (0..count).for_each(|number| out.link(&format!("link {number}"), "nowhere/at/all"));
    }),
    animal("one name again and again", [4000, 200_000], |out, count| {
        (0..count).for_each(|number| out.member(b"same", b'0', &[number as u8; 3]));
    }),
    animal("a folder and a file of one name in turns", [1500, 40_000], |out, count| {
        for _ in 0..count {
            out.member(b"name", b'0', b"");
            out.member(b"name/", b'5', b"");
        }
    }),
    animal("headers that fail their checksum", [20_000, 1_000_000], |out, count| {
        out.member(b"file", b'0', b"");
        (0..count).for_each(|number| out.put(&[(number % 7) as u8 + 1; 512]));
    }),
    Animal {
        name: "empty members in a few kilobytes of zstd",
        make: |out, count| (0..count).for_each(|_| out.member(b"same", b'0', b"")),
        sizes: [20_000, 2_000_000],
        compressed: Some("zstd"),
    },
    Animal {
        name: "attributes in a few kilobytes of zstd",
        make: |out, count| {
            let value = vec![b'v'; 60_000];
            for _ in 0..count {
                out.member(b"x", b'x', &record("SCHILY.xattr.user.bomb", &value));
                out.member(b"same", b'0', b"");
            }
        },
        sizes: [500, 20_000],
        compressed: Some("zstd"),
    },
    Animal {
        name: "zeros in a few kilobytes of gzip",
        make: |out, count| {
            out.member(b"file", b'0', b"");
            (0..count).for_each(|_| out.put(&[0; 1 << 20]));
        },
        sizes: [100, 4000],
        compressed: Some("gzip"),
    },
    Animal {
        name: "zeros in a few kilobytes of zstd",
        make: |out, count| {
            out.member(b"file", b'0', b"");
            (0..count).for_each(|_| out.put(&[0; 1 << 20]));
        },
        sizes: [100, 4000],
        compressed: Some("zstd"),
    },
    animal(
        "a seek table of millions of frames without a byte",
        [2_000_000, 1 << 24],
        |out, count| {
            let frame = zstd_frame(out);
            seek_table(&[(frame, TAR_BYTES)], count - 1, out);
        },
    ),
    animal("a seek table with more frames than any has", [1 << 23, 1 << 26], |out, count| {
        let frame = zstd_frame(out);
        seek_table(&[(frame, TAR_BYTES)], count - 1, out);
    }),
    animal("a seek table with a last frame of hundreds of megabytes", [200, 3000], |out, count| {
        let frame = zstd_frame(out);
        let (rest, tail) = ((count << 20) as u32, 1024);
        // Bytes that are not valid compressed data.
        (0..count).for_each(|_| out.put(&[0; 1 << 20]));
        seek_table(&[(frame, TAR_BYTES), (rest, tail)], 0, out);
    }),
    Animal {
        name: "a window of 128 MiB",
        make: zeros_of_mebibytes,
        sizes: [200, 4000],
        compressed: Some("zstd --long=27"),
    },
    Animal {
        name: "a window of 2 GiB",
        make: zeros_of_mebibytes,
        sizes: [200, 4000],
        compressed: Some("zstd --ultra --long=31"),
    },
    animal("an index that counts more than there is", [1, 1], |out, _| {
        hostile_index(out, |_, summary| summary.records = u64::MAX);
    }),
    animal("an index of records that claim to be long", [1 << 20, 1 << 26], |out, count| {
        let content = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        let content = content.repeat(count as usize / 8);
        hostile_index(out, |section, summary| {
            section.extend_from_slice(&content);
            *summary = SectionSummary { length_bytes: content.len() as u64, records: 1 << 60 };
        });
    }),
    animal("an index of nothing, a million times", [1 << 20, 1 << 26], |out, count| {
        hostile_index(out, |section, summary| {
            section.resize(count as usize, 0);
            *summary = SectionSummary { length_bytes: count, records: count };
        });
    }),
];

/// Length of the smallest archive: a file without content, and the end.
const TAR_BYTES: u32 = 1536;

fn zeros_of_mebibytes(out: &mut Writer, count: u64) {
    out.header(b"zeros", b'0', count << 20, &[]);
    (0..count).for_each(|_| out.put(&[0; 1 << 20]));
}

/// A frame that is stored, with the smallest archive in it; returns its length.
fn zstd_frame(out: &mut Writer) -> u32 {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x60];
    frame.extend_from_slice(&(TAR_BYTES as u16 - 256).to_le_bytes());
    frame.extend_from_slice(&(TAR_BYTES << 3 | 1).to_le_bytes()[..3]);
    out.put(&frame);
    out.member(b"file", b'0', b"");
    out.put(&[0; 1024]);
    frame.len() as u32 + TAR_BYTES
}

/// A table with these frames and as many empty ones.
fn seek_table(frames: &[(u32, u32)], empty: u64, out: &mut Writer) {
    let count = frames.len() as u64 + empty;
    out.put(&0x184d_2a5eu32.to_le_bytes());
    out.put(&((count * 8 + 9) as u32).to_le_bytes());
    for (compressed, content) in frames {
        out.put(&compressed.to_le_bytes());
        out.put(&content.to_le_bytes());
    }
    (0..empty).for_each(|_| out.put(&[0; 8]));
    out.put(&(count as u32).to_le_bytes());
    out.put(&[0, 0xb1, 0xea, 0x92, 0x8f]);
}

/// A file with an index whose sections are changed. Their summaries are changed too, so that hashes
/// and checksums still hold.
fn hostile_index(out: &mut Writer, change: impl Fn(&mut Vec<u8>, &mut SectionSummary)) {
    out.member(b"file", b'0', b"content");
    out.put(&[0; 1024]);
    let archive_bytes = out.bytes;
    let mut sections = IndexSection::ALL.map(|_| (Vec::new(), SectionSummary::default()));
    sections.iter_mut().for_each(|(section, summary)| change(section, summary));
    // The one number that must fit the archive.
    sections[IndexSection::Blocks as usize].1.records = archive_bytes.div_ceil(512);
    let mut index = encode_index_header().to_vec();
    let mut places = [SectionPlace::default(); IndexSection::ALL.len()];
    for (number, (content, summary)) in sections.iter().enumerate() {
        let length_bytes = content.len() as u64;
        index.extend_from_slice(
            &encode_section_header(IndexSection::ALL[number], length_bytes).unwrap(),
        );
        let offset_bytes = index.len() as u64;
        places[number] = SectionPlace { offset_bytes, summary: *summary };
        index.extend_from_slice(content);
        index.resize(index.len().next_multiple_of(512), 0);
    }
    let trailer = Trailer {
        set_id: [7; 32],
        index_hash: None,
        named: None,
        compression: Compression::None,
        chunk_bytes: 0,
        block_bytes: 512,
        archive_bytes,
        index_compressed_offset_bytes: StoredOffset::new(archive_bytes),
        sections: places,
    };
    index.extend_from_slice(&encode_trailer(&trailer).unwrap());
    out.put(&index);
}

/// Makes an animal; returns its bytes before compression.
fn make(animal: &Animal, size: u64, archive: &Path) -> u64 {
    let plain = archive.with_extension("plain");
    let out = Box::new(BufWriter::with_capacity(1 << 20, File::create(&plain).unwrap()));
    let mut writer = Writer { out, bytes: 0 };
    (animal.make)(&mut writer, size);
    if !animal.name.starts_with("a seek table") {
        writer.put(&[0; 1024]);
    }
    writer.out.flush().unwrap();
    let bytes = writer.bytes;
    drop(writer);
    match animal.compressed {
        None => fs::rename(&plain, archive).unwrap(),
        Some(program) => {
            let output = File::create(archive).unwrap();
            // Through standard input: the header then has neither a name nor a length.
            let input = File::open(&plain).unwrap();
            let mut words = program.split(' ');
            let mut command = Command::new(words.next().unwrap());
            command.args(words).arg("-qc").stdin(input).stdout(output);
            let done = command.status();
            assert!(done.unwrap().success(), "{program}");
            fs::remove_file(plain).unwrap();
        }
    }
    bytes
}

/// Exit code, resident bytes and processor seconds of a run.
fn measure(arguments: &[&Path]) -> (i32, u64, f64, String) {
    let mut python = Command::new("python3");
    python.args(["-c", MEASURE]).arg(takeup().get_program()).args(arguments);
    let done = run(python.arg("-q"));
    let output = String::from_utf8(done.output).unwrap();
    let numbers: Vec<f64> = output.split_whitespace().map(|word| word.parse().unwrap()).collect();
    (numbers[0] as i32, numbers[1] as u64 * 1024, numbers[2], done.errors)
}

/// Folders at and below a place; `find` changes into each, where a path would be too long.
fn folders(at: &Path) -> usize {
    let found = Command::new("find").arg(at).args(["-type", "d", "-printf", "x"]).output();
    found.unwrap().stdout.len()
}

#[test]
fn the_zoo_stays_within_memory_and_time() {
    let long = std::env::var_os("TAKEUP_LONG").is_some();
    let only = std::env::var("TAKEUP_ANIMAL").ok();
    let folder = tempdir().unwrap();
    let archive = folder.path().join("animal");
    let into = folder.path().join("into");
    let mut told = Vec::new();
    for animal in ZOO {
        if only.as_ref().is_some_and(|only| !animal.name.contains(only.as_str())) {
            continue;
        }
        let bytes = make(animal, animal.sizes[usize::from(long)], &archive);
        let list: Vec<PathBuf> = ["list".into(), archive.clone()].to_vec();
        let verify: Vec<PathBuf> = ["verify".into(), archive.clone()].to_vec();
        let mut restore: Vec<PathBuf> = ["restore".into(), archive.clone()].to_vec();
        restore.extend(["--into".into(), into.clone(), "--no-sync".into()]);
        for arguments in [list, verify, restore] {
            let arguments: Vec<&Path> = arguments.iter().map(PathBuf::as_path).collect();
            let (code, resident, seconds, errors) = measure(&arguments);
            let run = arguments[0].display();
            let mib = resident >> 20;
            eprintln!("{}: {run} of {bytes} bytes: {mib} MiB, {seconds:.2} s", animal.name);
            assert!((0..=2).contains(&code), "{}: {run}: {code} {errors}", animal.name);
            if resident > RING_BYTES + SURPLUS_BYTES {
                told.push(format!("{}: {run}: {mib} MiB", animal.name));
            }
            let more_ns = bytes as f64 * NS_PER_BYTE + folders(&into) as f64 * NS_PER_FOLDER;
            if seconds > BASE_SECONDS + more_ns / 1e9 {
                told.push(format!("{}: {run} of {bytes} bytes: {seconds} s", animal.name));
            }
        }
        // Too deep for programs that use paths.
        let removed = Command::new("rm").arg("-rf").arg(&into).status().unwrap();
        assert!(removed.success());
    }
    assert!(told.is_empty(), "{told:#?}");
}
