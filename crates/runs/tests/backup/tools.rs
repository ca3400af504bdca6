//! The other programs: GNU tar, bsdtar, Python's tarfile, zstd and gzip.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use archive::chunk::Compression;

/// Runs a program that must succeed without output on standard error.
pub fn quiet(command: &mut Command) -> Vec<u8> {
    command.env("LC_ALL", "C.UTF-8").env_remove("TAR_OPTIONS").current_dir("/");
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("this test needs {command:?}: {error}"));
    // POSIX demands the record for names that are not UTF-8; GNU tar knows it not and needs it not.
    let errors = String::from_utf8_lossy(&output.stderr)
        .replace("tar: Ignoring unknown extended header keyword 'hdrcharset'\n", "");
    assert!(output.status.success() && errors.is_empty(), "{command:?}: {errors}");
    output.stdout
}

/// Extracts with everything that the program can restore.
pub fn gnu_extract(archive: &Path, into: &Path) {
    std::fs::create_dir_all(into).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["-xp", "--xattrs", "--xattrs-include=*", "--acls", "--numeric-owner", "--sparse"]);
    quiet(tar.arg("-C").arg(into).arg("-f").arg(archive));
}

pub fn bsd_extract(archive: &Path, into: &Path) {
    std::fs::create_dir_all(into).unwrap();
    let mut tar = Command::new("bsdtar");
    tar.args(["-xp", "--xattrs", "--acls", "--numeric-owner"]);
    quiet(tar.arg("-C").arg(into).arg("-f").arg(archive));
}

/// Names as GNU tar lists them.
pub fn gnu_names(archive: &Path) -> Vec<String> {
    let mut tar = Command::new("tar");
    let listed = quiet(tar.args(["-t", "--quoting-style=escape", "-f"]).arg(archive));
    String::from_utf8(listed).unwrap().lines().map(str::to_owned).collect()
}

/// Sends `bytes` through a program.
pub fn filter(program: &str, arguments: &[&str], bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("this test needs {program}: {error}"));
    let mut input = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(bytes));
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{program} {arguments:?}");
        output.stdout
    })
}

/// What `zstd -d` or `gzip -d` make of a whole stream.
pub fn decompressed(bytes: &[u8], compression: Compression) -> Vec<u8> {
    match compression {
        Compression::None => bytes.to_vec(),
        Compression::Zstd { .. } => filter("zstd", &["-dqc"], bytes),
        Compression::Gzip { .. } => filter("gzip", &["-dqc"], bytes),
    }
}

/// One member as Python's tarfile sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonMember {
    pub path: Vec<u8>,
    pub type_flag: u8,
    pub header_offset: u64,
    pub content_offset: u64,
    pub size: u64,
    pub mode: u32,
    pub uid: u64,
    pub gid: u64,
    /// Target of a link.
    pub link: Vec<u8>,
    /// Runs of a sparse file.
    pub sparse: Option<Vec<(u64, u64)>>,
}

const PYTHON: &str = r#"
import sys, tarfile
t = tarfile.open(sys.argv[1], "r:", encoding="utf-8", errors="surrogateescape")
def raw(s): return s.encode("utf-8", "surrogateescape").hex() or "-"
for m in t:
    runs = "-" if m.sparse is None else ",".join("%d:%d" % r for r in m.sparse if r[1])
    flag = m.type[0] if not m.issparse() else ord("0")
    print(raw(m.name), flag, m.offset, m.offset_data, m.size, m.mode, m.uid, m.gid,
          raw(m.linkname), runs or ",")
"#;

/// All members, by Python's tarfile.
pub fn python_members(archive: &Path) -> Vec<PythonMember> {
    let arguments = [OsStr::new("-c"), OsStr::new(PYTHON), archive.as_os_str()];
    let listed = String::from_utf8(quiet(Command::new("python3").args(arguments))).unwrap();
    listed.lines().map(python_member).collect()
}

fn python_member(line: &str) -> PythonMember {
    let fields: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| fields[at].parse::<u64>().unwrap();
    let bytes = |at: usize| match fields[at] {
        "-" => Vec::new(),
        hex => (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect(),
    };
    let sparse = (fields[9] != "-").then(|| {
        let runs = fields[9].split(',').filter(|run| !run.is_empty());
        runs.map(|run| {
            let (offset, length) = run.split_once(':').unwrap();
            (offset.parse().unwrap(), length.parse().unwrap())
        })
        .collect()
    });
    PythonMember {
        path: bytes(0),
        type_flag: number(1) as u8,
        header_offset: number(2),
        content_offset: number(3),
        size: number(4),
        mode: number(5) as u32,
        uid: number(6),
        gid: number(7),
        link: bytes(8),
        sparse,
    }
}
