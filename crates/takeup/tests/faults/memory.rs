//! Memory does not grow with the number of files.

use std::process::Command;

use crate::command::{Case, run, takeup};

const RING_BYTES: u64 = 64 << 20;
/// Memory allowed beside the ring.
const SURPLUS_BYTES: u64 = 64 << 20;

/// Runs a program and prints the most memory that it had resident, in KiB, as the last line.
const MEASURE: &str = "import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)";

fn make_files(case: &Case, from: u64, to: u64) {
    for number in from..to {
        let folder = case.tree.join(format!("{:05}", number / 500));
        if number % 500 == 0 {
            std::fs::create_dir(&folder).unwrap();
        }
        std::fs::write(folder.join(format!("file-{number:09}")), number.to_string()).unwrap();
    }
}

fn resident_bytes(case: &Case, options: &[&str]) -> u64 {
    let mut python = Command::new("python3");
    python.args(["-c", MEASURE]).arg(takeup().get_program());
    python.arg("backup").arg(&case.tree).args(["-q", "--to", "/dev/null"]).args(options);
    let done = run(python.args(["--ring", "64M"]));
    assert_eq!(done.code, Some(0), "{}", done.errors);
    let last = String::from_utf8(done.output).unwrap();
    last.trim().parse::<u64>().unwrap() * 1024
}

#[test]
fn memory_is_the_ring_and_little_more() {
    let case = Case::new(0, 0);
    let mut steps = vec![0, 10_000, 200_000];
    if std::env::var_os("TAKEUP_LONG").is_some() {
        steps.push(1_000_000);
    }
    for step in steps.windows(2) {
        make_files(&case, step[0], step[1]);
        for options in [&[][..], &["--compress", "zstd"]] {
            let bytes = resident_bytes(&case, options);
            eprintln!("{} files {options:?}: {} MiB resident", step[1], bytes >> 20);
            assert!(bytes < RING_BYTES + SURPLUS_BYTES, "{} files: {bytes} bytes", step[1]);
        }
    }
}
