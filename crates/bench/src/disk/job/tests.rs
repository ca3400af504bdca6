//! Jobs as people write them, and what is wrong with others.

use super::*;

#[test]
fn a_job_says_what_it_would_do() {
    let text = "# x\n[global]\nioengine=libaio\nfilename = /dev/sdx\n[a]\nrw=randread ; all\n\
                stonewall\n[b]\nrw=randrw:8\nsize=1m # of it\noffset=10%\n";
    let job = Job::read(text).unwrap();
    let sections = job.sections();
    assert_eq!(sections.iter().map(Section::writes).collect::<Vec<bool>>(), [false, true]);
    assert!(sections.iter().all(|one| one.files() == Some(&["/dev/sdx".to_owned()])));
    let written = "[global]\nioengine=libaio\n[a]\nrw=randread\nstonewall\nfilename=0\n[b]\n\
                   rw=randrw:8\nsize=1m\noffset=10%\nfilename=1\n";
    assert_eq!(job.text(|section| Some(format!("filename={section}\n"))), written);
    let second = "[global]\nioengine=libaio\n[b]\nrw=randrw:8\nsize=1m\noffset=10%\n";
    assert_eq!(job.text(|section| (section == 1).then(String::new)), second);
    assert_eq!(sections[1].reach_bytes(100 << 20, 1), 11 << 20);
    assert_eq!(sections[1].reach_bytes(100 << 20, 2), (10 << 20) + (512 << 10));
    assert_eq!(sections[1].reach_bytes(100 << 20, 3), 11 << 20, "it cannot be divided");
    let text = |text: &str| Job::read(text).unwrap().text(|_| Some(String::new()));
    assert_eq!(text("[a]\ngroup_reporting=1\n"), "[a]\n");
    let writes = |text: &str| Job::read(text).unwrap().sections()[0].writes();
    assert!(!writes("[a]\nrw=read\n"));
    assert!(!writes("[a]\n"), "fio reads unless it is told otherwise");
    assert!(writes("[a]\nreadwrite=trim\n"));
    for wrong in ["randraed", "read,randwrite", ""] {
        let error = Job::read(&format!("[a]\nrw={wrong}\n")).unwrap_err().to_string();
        assert!(error.contains("randread"), "{error}");
    }
    assert_eq!(text("[a]\nthread=0\nrw=read\n"), "[a]\nrw=read\n");
    assert!(writes("[a]\nrw=write\nrw=read\n"), "who knows which of them counts");
}

#[test]
fn what_holds_for_all_holds_for_what_stands_behind_it() {
    let text = "[global]\nrw=write\nsize=1m\nnumjobs=2\n[a]\n[b]\nrw=read\nsize=2m\n\
                [global two]\nnrfiles=4\nfilesize=4k-16k\n[c]\n";
    let sections = Job::read(text).unwrap().sections();
    let names: Vec<&str> = sections.iter().map(|section| section.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(sections.iter().map(Section::writes).collect::<Vec<_>>(), [true, false, true]);
    let rooms: Vec<Room> = sections.iter().map(|section| section.room().unwrap()).collect();
    let room = |files, bytes| Room { files, bytes };
    assert_eq!(rooms, [room(2, 2 << 20), room(2, 4 << 20), room(8, 128 << 10)]);
    assert_eq!(sections[1].reach_bytes(0, 1), 2 << 20);
    assert_eq!(Job::read("[a]\nsize=50%\n").unwrap().sections()[0].room(), None);
    assert!(matches!(Job::read("[global]\nrw=read\n"), Err(JobError::NoSection)));
}

#[test]
fn files_are_divided_by_colons() {
    let files = |line: &str| {
        let job = Job::read(&format!("[a]\nfilename={line}\n"));
        job.map(|job| job.sections()[0].files().unwrap().join("|"))
    };
    assert_eq!(files("/dev/sdx").unwrap(), "/dev/sdx");
    assert_eq!(files("a:b/c:/d").unwrap(), "a|b/c|/d");
    assert_eq!(files("a\\:b:c\\d").unwrap(), "a:b|c\\d");
    for wrong in ["", "a::b", ":a", "-", "a:-", "${DISK}", "a`b`"] {
        let error = files(wrong).unwrap_err().to_string();
        assert!(error.contains("is no list of files"), "{error}");
    }
}

#[test]
fn what_is_not_on_the_list_is_refused() {
    for line in [
        "unlink=1",
        "opendir=/srv",
        "filename_format=x/$jobnum",
        "filename_format=${HOME}",
        "exec_prerun=touch x",
        "include x.fio",
        "include",
        "create_only=1",
        "create_on_open=1",
        "filesize=1g-x",
        "nrfiles=0",
        "nrfiles=2k",
        "numjobs=x",
        "write_bw_log=x",
        "read_iolog=x",
        "allow_file_create=1",
        "ioengine=external:/x.so",
        "ioengine=filedelete",
        "ioengine=mmap",
        "size=${SIZE}",
        "size=0",
        "size=1e",
        "bs=4k\"",
        "description=`x`",
        "[../x]",
        "[/dev/sdx]",
        "[a",
        "Unlink=1",
        "unlink = 1",
        "--unlink=1",
    ] {
        let error = Job::read(&format!("[a]\nrw=read\n{line}\n")).unwrap_err().to_string();
        assert!(error.contains(&format!("{line:?}")), "{line}: {error}");
    }
    let long = format!("[a]\ndescription={}\n", "x".repeat(LINE_BYTES_MAX));
    let error = Job::read(&long).unwrap_err().to_string();
    assert!(error.contains("is longer than 4000 bytes"), "{error}");
    let outside = Job::read("rw=write\n[a]\n").unwrap_err().to_string();
    assert!(outside.contains("stands in no section"), "{outside}");
}

#[test]
fn ramps_of_parts_that_begin_together() {
    let ramp = |text: &str| Job::read(text).unwrap().ramp();
    assert_eq!(ramp("[a]\nrw=read\n"), Ramp::None);
    assert_eq!(ramp("[a]\nramp_time=0\n"), Ramp::None);
    let second = Ramp::For(Duration::from_secs(1));
    assert_eq!(ramp("[a]\nrw=read\nramp_time=1\n"), second);
    assert_eq!(ramp("[global]\nramp_time=1000ms\n[a]\nrw=read\n[b]\nrw=read\n"), second);
    assert_eq!(ramp("[a]\nramp_time=1\n[b]\nrw=read\n"), Ramp::Several);
    assert_eq!(ramp("[global]\nramp_time=1\n[a]\n[b]\nstonewall\n"), Ramp::Several);
    assert_eq!(ramp("[a]\nramp_time=1y\n"), Ramp::Several);
}

#[test]
fn sizes_are_those_of_fio() {
    let sizes = [("512", 512), ("4k", 4096), ("4KiB", 4096), ("2M", 2 << 20), ("1t", 1 << 40)];
    for (text, expected) in sizes {
        assert_eq!(bytes(text), Some(expected), "{text}");
    }
    for text in ["", "0", "-1", "k", "1x", "1.5g", "99999999999t"] {
        assert_eq!(bytes(text), None, "{text}");
    }
}
