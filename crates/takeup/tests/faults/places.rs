//! Targets that are not what their name suggests.

use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::command::{Case, Running, names_in, run};

/// Waits until `ready` is true; the watchdog of the run ends a wait that lasts too long.
fn wait_until(mut ready: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if ready() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("waited in vain");
}

#[test]
fn a_directory() {
    let case = Case::new(1, 10);
    let targets = case.targets();
    let line = format!("{} is a directory; name a file in it", targets.display());
    run(&mut case.backup(&targets)).assert_failed(&line);
    assert!(names_in(&targets).is_empty());
}

#[test]
fn in_a_folder_that_is_not_there() {
    let case = Case::new(1, 10);
    let target = case.targets().join("no/set.tar");
    let line = format!("cannot open {}: no such file or directory", target.display());
    run(&mut case.backup(&target)).assert_failed(&line);
    let target = case.tree.join("0/set.tar");
    let line = format!("cannot open {}: not a directory", target.display());
    run(&mut case.backup(&target)).assert_failed(&line);
}

#[test]
fn a_name_that_is_too_long() {
    let case = Case::new(1, 10);
    let target = case.targets().join("n".repeat(250));
    let line = format!("cannot open {}: file name too long", target.display());
    run(&mut case.backup(&target)).assert_failed(&line);
}

#[test]
fn a_file_that_exists() {
    let case = Case::new(1, 10);
    let target = case.target();
    std::fs::write(&target, "precious").unwrap();
    let line = format!("{} exists already", target.display());
    run(&mut case.backup(&target)).assert_failed(&line);
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    assert_eq!(names_in(&case.targets()), ["set.tar"]);
    let done = run(case.backup(&target).arg("--overwrite"));
    assert_eq!(done.code, Some(0), "{}", done.errors);
    assert_eq!(std::fs::read(&target).unwrap(), case.reference(&[]));
}

#[test]
fn a_file_that_comes_to_be_meanwhile() {
    let case = Case::new(8, 1 << 20);
    let target = case.target();
    let running = Running::start(case.backup(&target).args(["--rate-limit", "16MB"]));
    wait_until(|| !names_in(&case.targets()).is_empty());
    std::fs::write(&target, "precious").unwrap();
    running.wait().assert_failed(&format!("{} exists already", target.display()));
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    assert_eq!(names_in(&case.targets()), ["set.tar"]);
}

#[test]
fn a_source() {
    let case = Case::new(1, 10);
    for target in [case.tree.clone(), case.tree.join(".")] {
        let line = format!("{} is also the source", target.display());
        run(case.backup(&target).arg("--overwrite")).assert_failed(&line);
    }
    let file = case.tree.join("0");
    let before = std::fs::read(&file).unwrap();
    let mut command = crate::command::takeup();
    command.arg("backup").arg(&file).arg("--overwrite").arg("--to").arg(&file);
    run(&mut command).assert_failed(&format!("{} is also the source", file.display()));
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn inside_the_source_and_the_source_inside_its_folder() {
    let case = Case::new(3, 1000);
    let reference = case.reference(&[]);
    let inside = case.tree.join("set.tar");
    let done = run(&mut case.backup(&inside));
    assert_eq!(done.code, Some(0), "{}", done.errors);
    assert!(done.errors.contains("is the archive itself, not archived"), "{}", done.errors);
    std::fs::remove_file(&inside).unwrap();
    let beside = case.folder.path().join("beside.tar");
    let done = run(&mut case.backup(&beside));
    assert_eq!((done.code, done.errors.as_str()), (Some(0), ""));
    // Only the folder's time has changed since.
    assert_eq!(std::fs::metadata(&beside).unwrap().len(), reference.len() as u64);
}

#[test]
fn a_symbolic_link() {
    let case = Case::new(1, 10);
    let real = case.folder.path().join("real.tar");
    std::fs::write(&real, "old").unwrap();
    let link = case.target();
    symlink(&real, &link).unwrap();
    let line = format!("{} exists already", link.display());
    run(&mut case.backup(&link)).assert_failed(&line);
    let done = run(case.backup(&link).arg("--overwrite"));
    assert_eq!(done.code, Some(0), "{}", done.errors);
    assert!(link.symlink_metadata().unwrap().is_symlink(), "the link stays a link");
    assert_eq!(std::fs::read(&real).unwrap(), case.reference(&[]));
    assert_eq!(names_in(case.folder.path()), ["real.tar", "targets", "tree"]);
}

#[test]
fn a_symbolic_link_that_leads_nowhere() {
    let case = Case::new(1, 10);
    let link = case.target();
    symlink("nowhere", &link).unwrap();
    run(&mut case.backup(&link)).assert_failed(&format!("{} exists already", link.display()));
    assert_eq!(names_in(&case.targets()), ["set.tar"]);
    assert!(link.symlink_metadata().unwrap().is_symlink());
}

#[test]
fn one_that_another_run_writes_to() {
    let case = Case::new(8, 1 << 20);
    let target = case.target();
    let first = Running::start(case.backup(&target).args(["--rate-limit", "2MB"]));
    wait_until(|| !names_in(&case.targets()).is_empty());
    run(&mut case.backup(&target))
        .assert_failed(&format!("another run is writing to {}", target.display()));
    first.signal(Signal::INT);
    let done = first.wait();
    assert_eq!(done.code, Some(1), "{}", done.errors);
    let left = format!("takeup: cancelled: nothing is left at {}\n", target.display());
    assert!(done.errors.ends_with(&left), "{}", done.errors);
    assert!(names_in(&case.targets()).is_empty());
    assert_eq!(run(&mut case.backup(&target)).code, Some(0));
}

#[test]
fn of_many_runs_at_once_each_ends_well_or_says_why() {
    let case = Case::new(20, 50_000);
    let reference = case.reference(&[]);
    let target = case.target();
    for _ in 0..5 {
        let running: Vec<_> =
            (0..6).map(|_| Running::start(case.backup(&target).arg("--overwrite"))).collect();
        let done: Vec<_> = running.into_iter().map(Running::wait).collect();
        assert!(done.iter().any(|done| done.code == Some(0)), "one gets through: {done:?}");
        for done in done.iter().filter(|done| done.code != Some(0)) {
            done.assert_failed(&format!("another run is writing to {}", target.display()));
        }
        assert!(std::fs::read(&target).unwrap() == reference);
        assert_eq!(names_in(&case.targets()), ["set.tar"]);
    }
}

#[test]
fn a_left_over_partial_file_is_not_written_into() {
    let case = Case::new(3, 1000);
    let reference = case.reference(&[]);
    let (target, partial) = (case.target(), case.targets().join(".set.tar.takeup-partial"));
    let victim = case.folder.path().join("victim");
    let check = |make: &dyn Fn(&Path)| {
        std::fs::write(&victim, "precious").unwrap();
        make(&partial);
        let done = run(&mut case.backup(&target));
        assert_eq!(done.code, Some(0), "{}", done.errors);
        assert!(std::fs::read(&target).unwrap() == reference);
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        assert_eq!(names_in(&case.targets()), ["set.tar"]);
        std::fs::remove_file(&target).unwrap();
    };
    check(&|partial| std::fs::write(partial, vec![7; 1 << 20]).unwrap());
    check(&|partial| std::fs::hard_link(&victim, partial).unwrap());
    check(&|partial| symlink(&victim, partial).unwrap());
}

#[test]
fn a_partial_file_that_somebody_removes() {
    let case = Case::new(8, 1 << 20);
    let target = case.target();
    let running = Running::start(case.backup(&target).args(["--rate-limit", "16MB"]));
    wait_until(|| !names_in(&case.targets()).is_empty());
    let partial = case.targets().join(".set.tar.takeup-partial");
    std::fs::remove_file(&partial).unwrap();
    std::fs::write(&partial, "of another run").unwrap();
    let line = format!("cannot rename {}: no such file or directory", target.display());
    running.wait().assert_failed(&line);
    assert_eq!(std::fs::read(&partial).unwrap(), b"of another run");
    assert!(!target.exists());
}

#[test]
fn a_pipe_whose_reader_leaves() {
    let case = Case::new(40, 100_000);
    for options in [&[][..], &["--compress", "zstd"], &["--engine", "pread"]] {
        let mut command = case.backup(Path::new("-"));
        command.args(options).stdout(Stdio::piped());
        let mut running = Running::start(&mut command);
        let mut start = vec![0; 5000];
        let mut output = running.child.stdout.take().unwrap();
        output.read_exact(&mut start).unwrap();
        drop(output);
        let line = "cannot write to standard output: write at byte N: broken pipe";
        running.wait().assert_failed(line);
    }
}

#[test]
fn a_pipe_takes_what_a_file_takes() {
    let case = Case::new(40, 100_000);
    let reference = case.reference(&[]);
    let done = run(&mut case.backup(Path::new("-")));
    assert_eq!(done.code, Some(0), "{}", done.errors);
    assert!(done.output == reference);
}

#[test]
fn a_standard_output_that_is_closed() {
    let case = Case::new(1, 10);
    let command = case.backup(Path::new("-"));
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" >&-", "sh"]).arg(command.get_program());
    run(shell.args(command.get_args())).assert_failed("standard output is closed");
    // A user who writes an archive to /dev/null wants this, also where the null device is open for
    // reading too, as in services.
    for way in ["> /dev/null", "1<> /dev/null"] {
        shell = Command::new("sh");
        let script = format!("exec \"$@\" {way}");
        shell.args(["-c", &script, "sh"]).arg(command.get_program());
        let done = run(shell.args(command.get_args()));
        assert_eq!(done.code, Some(0), "{way}: {}", done.errors);
    }
}

#[test]
fn a_named_pipe() {
    let case = Case::new(40, 100_000);
    let pipe = case.target();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe).unwrap()
    });
    let done = run(&mut case.backup(&pipe));
    assert_eq!(done.code, Some(0), "{}", done.errors);
    assert!(reader.join().unwrap() == case.reference(&[]));
}
