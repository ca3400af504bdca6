//! Bacula's own `btape` on a virtual drive: its blocks are what ours would be, and it reads ours.
//! How fast both are is `scripts/btape-agreement`'s business.

use std::io::Write;
use std::process::{Command, Stdio};

use bench::framing::Framing;

use crate::drive::{Drive, takeup};

/// What Bacula writes unless it is told otherwise.
const BLOCK_BYTES: usize = 64_512;

/// What `btape` says to these commands, one a line.
fn btape(drive: &Drive, commands: &str) -> String {
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
    let mut program = Command::new("btape")
        .arg("-c")
        .arg(&file)
        .arg("Drive")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn btape_writes_the_blocks_that_we_would() {
    needs::require!(Fuse, Btape, MtSt);
    let drive = Drive::new();
    let said = btape(&drive, "rewind\nwr\nwr\nweof\nquit\n");
    assert!(said.contains("Wrote block to device"), "{said}");
    let blocks = drive.dd_out(&format!("bs={BLOCK_BYTES}"));
    assert_eq!(blocks.len(), 2 * BLOCK_BYTES);
    for (number, block) in blocks.chunks(BLOCK_BYTES).enumerate() {
        assert_eq!(&block[12..16], b"BB02");
        assert_eq!(block[8..12], (number as u32).to_be_bytes());
        // One record, whose data is all there is.
        let word = |at: usize| u32::from_be_bytes(block[at..at + 4].try_into().unwrap());
        assert_eq!(word(4), 24 + 12 + word(32));
        // The sum that was found on the medium is taken away and made again.
        let mut again = vec![0; BLOCK_BYTES];
        Framing::Bacula.seal(&[&[0; 4], &block[4..]].concat(), &mut again);
        assert!(again == block, "block {number}");
    }
}

#[test]
fn btape_reads_our_blocks() {
    needs::require!(Fuse, Btape);
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
    // Behind the file with our label.
    let said = btape(&drive, "rewind\nfsf\nscanblocks\nquit\n");
    let blocks: Vec<&str> = said.lines().filter(|line| line.contains(" of 64512 bytes")).collect();
    let whole: u32 = blocks.iter().filter_map(|line| counted(line)).sum();
    // 17 of random data; 240 kB of the tree are three, and a shorter one that ends it.
    assert_eq!(whole, 17 + 3, "{said}");
    assert!(said.contains("Total files=2"), "{said}");
    assert!(!said.to_lowercase().contains("checksum"), "{said}");
}

/// `*17 blocks of 64512 bytes in file 2`.
fn counted(line: &str) -> Option<u32> {
    line.trim_start_matches('*').split_whitespace().next()?.parse().ok()
}
