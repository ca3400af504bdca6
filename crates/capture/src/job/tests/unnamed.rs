//! Runs of a job of which the recording was too late for names of files.

use super::*;

/// A job of reads, then writes, and its run, in which a part of the reads has no file.
fn run_without(reads: u64) -> (Profile, FioJob, Profile) {
    let sync = Sync { call: "fdatasync", calls: 100, ..Sync::default() };
    let captured = profile(vec![FileProfile { sync, ..table(1) }]);
    let job = FioJob::of(&captured, &JobTarget::default()).unwrap();
    let mut run = perfect(&captured.files, &job);
    run.files[0].reads -= reads;
    run.files.push(FileProfile { path: None, reads, writes: 0, ..table(2) });
    (captured, job, run)
}

#[test]
fn reads_whose_file_has_no_name_are_not_called_missing() {
    let (captured, job, run) = run_without(700);
    let validation = compare(&captured, &job, &run);
    assert_eq!(validation.unnamed_operations, 700);
    let group = &validation.groups[0];
    assert!(group.properties.values().all(|score| score.percent.is_none()), "{group:#?}");
    let why = "data: cannot be compared: 700 reads and writes may have gone to a file that was \
               closed before its name was looked up";
    assert!(validation.not_reproduced.contains(&why.to_owned()), "{validation:#?}");
    let said = format!("{:?}", validation.not_reproduced);
    assert!(!said.contains("0 % reads") && !said.contains("did not use"), "{said}");
}

/// A job that lacks its reads lacks them, whatever else fio reads by other means.
#[test]
fn other_files_without_a_name_excuse_nothing() {
    let (captured, job, mut run) = run_without(700);
    let other = run.files.last_mut().unwrap();
    (other.engine, other.direct) = (Engine::Sync, Some(false));
    let validation = compare(&captured, &job, &run);
    assert_eq!(validation.unnamed_operations, 0);
    assert!(validation.properties["mix"].percent.unwrap() < 50.0, "{validation:#?}");
}

#[test]
fn a_few_without_a_name_change_nothing() {
    let (captured, job, run) = run_without(5);
    let validation = compare(&captured, &job, &run);
    assert_eq!(validation.unnamed_operations, 0);
    assert!(validation.properties["mix"].percent.unwrap() > 99.0, "{validation:#?}");
}

/// Nobody knows to which of two groups the same operations belong: neither is judged, and they are
/// counted once.
#[test]
fn two_groups_may_lack_the_same_operations() {
    let sync = Sync { call: "fdatasync", calls: 100, ..Sync::default() };
    let other = FileProfile { direct: Some(true), ..table(2) };
    let other = FileProfile { class: Class::Other, ..other };
    let captured = profile(vec![FileProfile { sync, ..table(1) }, other]);
    let job = FioJob::of(&captured, &JobTarget::default()).unwrap();
    assert_eq!(job.groups.len(), 2);
    let mut run = perfect(&captured.files, &job);
    for file in &mut run.files {
        file.reads -= 300;
    }
    let nameless = FileProfile { path: None, reads: 400, writes: 0, direct: None, ..table(3) };
    run.files.push(nameless);
    let validation = compare(&captured, &job, &run);
    assert_eq!(validation.unnamed_operations, 400);
    let judged = |group: &Compared| group.properties["mix"].percent.is_some();
    assert!(!validation.groups.iter().any(judged), "{validation:#?}");
}
