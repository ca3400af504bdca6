//! Bacula's own `btape` on a virtual drive: its blocks are the same as Takeup's in that format, and
//! it reads Takeup's. `scripts/btape-agreement` compares the rates.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use loads::framing::Framing;

use crate::drive::{Drive, takeup};

/// Bacula's default block size.
const BLOCK_BYTES: usize = 64_512;

/// Bacula's configuration for the drive.
fn configuration(drive: &Drive) -> PathBuf {
    let folder = drive.folder().display();
    let file = drive.folder().join("bacula-sd.conf");
    let tape = drive.tape();
    let configuration = format!(
        "Storage {{\n\
           Name = test; Working Directory = \"{folder}\"; Pid Directory = \"{folder}\"\n\
         }}\n\
         Director {{ Name = test; Password = \"none\" }}\n\
         Messages {{ Name = Standard; director = test = all }}\n\
         Device {{\n\
           Name = Drive; Media Type = LTO; Archive Device = \"{}\"; Device Type = Tape\n\
           Removable Media = yes; Random Access = no; Maximum Block Size = {BLOCK_BYTES}\n\
         }}\n",
        tape.display()
    );
    std::fs::write(&file, configuration).unwrap();
    file
}

/// The output of a program that gets these lines.
fn said(command: &mut Command, lines: &str) -> String {
    let mut program = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// The output of `btape` for these commands, one per line.
fn btape(drive: &Drive, commands: &str) -> String {
    let file = configuration(drive);
    said(Command::new("btape").arg("-c").arg(file).arg("Drive"), commands)
}

/// The commands with which `btape` writes 1 GiB of its zeros, raw or in its blocks.
fn speed(framing: &str) -> String {
    let skipped = if framing == "raw" { "skip_block" } else { "skip_raw" };
    format!("rewind\nspeed file_size=1 nb_file=1 skip_random {skipped}\nquit\n")
}

/// The same load with Takeup.
fn ours(drive: &Drive, framing: &str) -> Command {
    let mut command = takeup();
    command
        .args(["bench", "tape", "--data", "zeros", "--length", "1G", "--ring", "0", "--overwrite"])
        .args(["--block-size", "64512", "--repeats", "1", "--repeats-max", "1", "--quiet"])
        .args(["--framing", framing])
        .arg(drive.tape())
        .arg("--output")
        .arg(drive.folder().join(format!("{framing}.ndjson")));
    command
}

#[test]
fn btape_writes_the_blocks_that_we_would() {
    testkit::require!(Fuse, Btape, MtSt);
    let drive = Drive::new();
    let said = btape(&drive, "rewind\nwr\nwr\nweof\nquit\n");
    assert!(said.contains("Wrote block to device"), "{said}");
    let blocks = drive.dd_out(&format!("bs={BLOCK_BYTES}"));
    assert_eq!(blocks.len(), 2 * BLOCK_BYTES);
    for (number, block) in blocks.chunks(BLOCK_BYTES).enumerate() {
        assert_eq!(&block[12..16], b"BB02");
        assert_eq!(block[8..12], (number as u32).to_be_bytes());
        // One record, with all the data.
        let word = |at: usize| u32::from_be_bytes(block[at..at + 4].try_into().unwrap());
        assert_eq!(word(4), 24 + 12 + word(32));
        // Clears the checksum and computes it again.
        let mut again = vec![0; BLOCK_BYTES];
        Framing::Bacula.seal(&[&[0; 4], &block[4..]].concat(), &mut again);
        assert!(again == block, "block {number}");
    }
}

#[test]
fn btape_reads_our_blocks() {
    testkit::require!(Fuse, Btape);
    let drive = Drive::new();
    let tree = drive.folder().join("tree");
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join("letter"), "dear reader ".repeat(20_000)).unwrap();
    let output = takeup()
        .args(["bench", "tape", "--framing", "bacula", "--block-size", "64512", "--length", "1M"])
        .args(["--repeats", "1", "--repeats-max", "1", "--quiet", "--data"])
        .arg(format!("random,{}", tree.display()))
        .arg(drive.tape())
        .current_dir(drive.folder())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // After the file with the label.
    let said = btape(&drive, "rewind\nfsf\nscanblocks\nquit\n");
    let blocks: Vec<&str> = said.lines().filter(|line| line.contains(" of 64512 bytes")).collect();
    let whole: u32 = blocks.iter().filter_map(|line| counted(line)).sum();
    // 17 blocks of random data; the 240 kB of the tree take three, and a shorter one at the end.
    assert_eq!(whole, 17 + 3, "{said}");
    assert!(said.contains("Total files=2"), "{said}");
    assert!(!said.to_lowercase().contains("checksum"), "{said}");
}

/// Blocks of each file on the tape, up to the end of the data.
fn files(drive: &Drive) -> Vec<usize> {
    drive.mt(&["rewind"]);
    let mut source = std::ffi::OsString::from("if=");
    source.push(drive.tape());
    let next = || {
        let block = format!("bs={BLOCK_BYTES}");
        let output = Command::new("dd").arg(&source).args(["of=/dev/null", &block]).output();
        let told = String::from_utf8(output.unwrap().stderr).unwrap();
        // `15500+0 records in`; the label is a partial record.
        let (whole, part) = told.split_once(' ')?.0.split_once('+')?;
        let blocks = whole.parse::<usize>().ok()? + part.parse::<usize>().ok()?;
        (blocks > 0).then_some(blocks)
    };
    std::iter::from_fn(next).collect()
}

/// A filemark in the middle of a gigabyte costs more than all other work of Bacula.
#[test]
fn btape_puts_its_filemarks_where_we_do() {
    testkit::require!(Fuse, Btape, MtSt);
    let drive = Drive::with(&["--time", "none", "--capacity", "4G"]);
    for (framing, expected) in [("raw", &[16_645][..]), ("bacula", &[15_500, 1145])] {
        btape(&drive, &speed(framing));
        // btape writes the number of blocks in a gibibyte, give or take one.
        let theirs = files(&drive);
        assert!(ours(&drive, framing).status().unwrap().success());
        // After the label.
        let own = files(&drive).split_off(1);
        assert_eq!(own, expected, "{framing}");
        assert_eq!(theirs.len(), own.len(), "{framing}: {theirs:?}");
        assert!(theirs.iter().zip(&own).all(|(a, b)| a.abs_diff(*b) <= 1), "{framing}: {theirs:?}");
    }
}

/// Seconds of processor time that a program with these input lines spends in its own code.
fn processor_seconds(command: &Command, lines: &str) -> f64 {
    let mut timed = Command::new("bash");
    let line = "TIMEFORMAT=%U; time \"$@\" >/dev/null 2>&1";
    timed.args(["-c", line, "time"]).arg(command.get_program()).args(command.get_args());
    said(timed.env("LC_ALL", "C"), lines).trim().parse().unwrap()
}

/// The cost of framing is the extra time for structured blocks over raw ones: processor time in the
/// program's own code, without the drive and without other programs. All four are run alternately.
/// On a busy machine single runs are off by a fifth. Another checksum would be off by a factor of
/// three or more (byte by byte a third of the rate, by carry-less multiplication ten times as
/// much).
#[test]
fn framing_takes_as_much_processor_time_as_bacula_s_own() {
    const ROUNDS: usize = 5;
    const BAND: std::ops::RangeInclusive<f64> = 0.6..=1.6;
    testkit::require!(Fuse, Btape);
    testkit::long_run!();
    let drive = Drive::with(&["--time", "none", "--capacity", "4G"]);
    let file = configuration(&drive);
    let mut theirs = Command::new("btape");
    theirs.arg("-c").arg(&file).arg("Drive");
    let [mut bacula, mut own] = [0.0, 0.0];
    for _ in 0..ROUNDS {
        for (framing, sign) in [("raw", -1.0), ("bacula", 1.0)] {
            bacula += sign * processor_seconds(&theirs, &speed(framing));
            own += sign * processor_seconds(&ours(&drive, framing), "");
            std::fs::remove_file(drive.folder().join(format!("{framing}.ndjson"))).unwrap();
        }
    }
    let ratio = own / bacula;
    eprintln!("framing: {own:.2} s by us, {bacula:.2} s by Bacula, {ROUNDS} GiB each");
    assert!(BAND.contains(&ratio), "{own:.2} s by us, {bacula:.2} s by Bacula");
}

/// `*17 blocks of 64512 bytes in file 2`.
fn counted(line: &str) -> Option<u32> {
    line.trim_start_matches('*').split_whitespace().next()?.parse().ok()
}
