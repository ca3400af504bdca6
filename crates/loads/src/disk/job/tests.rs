//! Jobs as people write them, and what is wrong with others.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use super::*;

/// A job without anything beside its file.
fn read(text: &str) -> Result<ParsedJob, JobError> {
    read_with(text, &[])
}

fn read_with(text: &str, sets: &[&str]) -> Result<ParsedJob, JobError> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let variable = |name: &str| (name == "DISK").then(|| "/dev/sdx".to_owned());
    ParsedJob::read(text, Beside { sets: &sets, variable: &variable })
}

#[test]
fn a_job_says_what_it_would_do() {
    let text = "# x\n[global]\nioengine=libaio\nfilename = /dev/sdx\n[a]\nrw=randread ; all\n\
                stonewall\n[b]\nrw=randrw:8\nsize=1m # of it\noffset=10%\n";
    let job = read(text).unwrap();
    let sections = job.sections();
    assert_eq!(sections.iter().map(ParsedSection::writes).collect::<Vec<bool>>(), [false, true]);
    assert!(sections.iter().all(|one| one.files() == Some(&["/dev/sdx".to_owned()])));
    let written = "[global]\nioengine=libaio\n[a]\nrw=randread\nstonewall\nfilename=0\n[b]\n\
                   rw=randrw:8\nsize=1m\noffset=10%\nfilename=1\n";
    assert_eq!(job.text(|section| Some(format!("filename={section}\n"))), written);
    let second = "[global]\nioengine=libaio\n[b]\nrw=randrw:8\nsize=1m\noffset=10%\n";
    assert_eq!(job.text(|section| (section == 1).then(String::new)), second);
    assert_eq!(sections[1].reach_bytes(100 << 20, 1), 11 << 20);
    assert_eq!(sections[1].reach_bytes(100 << 20, 2), (10 << 20) + (512 << 10));
    assert_eq!(sections[1].reach_bytes(100 << 20, 3), 11 << 20, "it cannot be divided");
    let text = |text: &str| read(text).unwrap().text(|_| Some(String::new()));
    assert_eq!(text("[a]\ngroup_reporting=1\n"), "[a]\n");
    let writes = |text: &str| read(text).unwrap().sections()[0].writes();
    assert!(!writes("[a]\nrw=read\n"));
    assert!(!writes("[a]\n"), "fio reads unless it is told otherwise");
    assert!(writes("[a]\nreadwrite=trim\n"));
    for wrong in ["randraed", "read,randwrite", ""] {
        let error = read(&format!("[a]\nrw={wrong}\n")).unwrap_err().to_string();
        assert!(error.contains("randread"), "{error}");
    }
    assert_eq!(text("[a]\nthread=0\nrw=read\n"), "[a]\nrw=read\n");
    assert!(writes("[a]\nrw=write\nrw=read\n"), "who knows which of them counts");
}

#[test]
fn what_holds_for_all_holds_for_what_stands_behind_it() {
    let text = "[global]\nrw=write\nsize=1m\nnumjobs=2\n[a]\n[b]\nrw=read\nsize=2m\n\
                [global two]\nnrfiles=4\nfilesize=4k-16k\n[c]\n";
    let sections = read(text).unwrap().sections();
    let names: Vec<&str> = sections.iter().map(|section| section.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(sections.iter().map(ParsedSection::writes).collect::<Vec<_>>(), [true, false, true]);
    let rooms: Vec<Room> = sections.iter().map(|section| section.room().unwrap()).collect();
    let room = |files, bytes| Room { files, bytes };
    assert_eq!(rooms, [room(2, 2 << 20), room(2, 4 << 20), room(8, 128 << 10)]);
    assert_eq!(sections[1].reach_bytes(0, 1), 2 << 20);
    assert_eq!(read("[a]\nsize=50%\n").unwrap().sections()[0].room(), None);
    assert!(matches!(read("[global]\nrw=read\n"), Err(JobError::NoSection)));
}

#[test]
fn files_are_divided_by_colons() {
    let files = |line: &str| {
        let job = read(&format!("[a]\nfilename={line}\n"));
        job.map(|job| job.sections()[0].files().unwrap().join("|"))
    };
    assert_eq!(files("/dev/sdx").unwrap(), "/dev/sdx");
    assert_eq!(files("a:b/c:/d").unwrap(), "a|b/c|/d");
    assert_eq!(files("a\\:b:c\\d").unwrap(), "a:b|c\\d");
    for wrong in ["", "a::b", ":a", "-", "a:-", "$DISK", "a`b`"] {
        let error = files(wrong).unwrap_err().to_string();
        assert!(error.contains("is not a list of files"), "{error}");
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
        "exec_postrun=0",
        "include x.fio",
        "include",
        "create_only=1",
        "filesize=1g-x",
        "nrfiles=0",
        "nrfiles=2k",
        "numjobs=x",
        "read_iolog=x",
        "ioengine=external:/x.so",
        "ioengine=filedelete",
        "ioengine=mmap",
        "size=${SIZE}",
        "size=${DISK",
        "bs=${DISK}$x",
        "mem=mmaphuge:/mnt/x",
        "mem=mmapshared:/mnt/x",
        "iomem=shm:/mnt/x",
        "verify_pattern='/etc/shadow'",
        "buffer_pattern='/etc/shadow'",
        "verify_state_load=1",
        "opendir=/etc",
        "file_append=1",
        "ioscheduler=none",
        "replay_redirect=/dev/sdx",
        "merge_blktrace_file=x",
        "cgroup=x",
        "uid=0",
        "profile=tiobench",
        "unlink_each_loop=1",
        "wait_for=../x",
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
        let error = read(&format!("[a]\nrw=read\n{line}\n")).unwrap_err().to_string();
        assert!(error.contains(&format!("{line:?}")), "{line}: {error}");
    }
    let long = format!("[a]\ndescription={}\n", "x".repeat(LINE_BYTES_MAX));
    let error = read(&long).unwrap_err().to_string();
    assert!(error.contains("is longer than 4000 bytes"), "{error}");
    let outside = read("rw=write\n[a]\n").unwrap_err().to_string();
    assert!(outside.contains("is in no section"), "{outside}");
}

#[test]
fn ramps_of_parts_that_begin_together() {
    let ramp = |text: &str| read(text).unwrap().ramp();
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
    assert!(bytes("8z") > Some(1 << 50), "zones, of whatever length");
    let sizes = [("512", 512), ("4k", 4096), ("4KiB", 4096), ("2M", 2 << 20), ("1t", 1 << 40)];
    for (text, expected) in sizes {
        assert_eq!(bytes(text), Some(expected), "{text}");
    }
    for text in ["", "0", "-1", "k", "1x", "1.5g", "99999999999t"] {
        assert_eq!(bytes(text), None, "{text}");
    }
}

/// The job of the fourth account, as its author ran it.
const ACCOUNTS: &str = "[global]\nioengine=libaio\ninvalidate=1\nramp_time=5\nruntime=180\n\
    time_based\ndirect=1\ngroup_reporting=1\nper_job_logs=0\nbs=8k\nreadwrite=randrw\nsize=40g\n\
    iodepth=8\nend_fsync=1\n# gtod_reduce=1\n\x20\x20\n[test1-subtest1-blocksize32k]\n\
    filename=/mnt/sde/fio.img\nnumjobs=4\n";

#[test]
fn the_job_of_an_account_is_taken_as_it_is() {
    let job = read(ACCOUNTS).unwrap();
    let text = job.text(|_| Some(String::new()));
    let passed = ACCOUNTS.lines().map(str::trim).filter(|line| {
        let is_kept_back = ["#", "group_reporting", "per_job_logs", "filename"];
        !line.is_empty() && !is_kept_back.iter().any(|start| line.starts_with(start))
    });
    assert_eq!(text.lines().collect::<Vec<_>>(), passed.collect::<Vec<_>>());
    assert_eq!(job.left_out(), [], "the run is the same without");
    assert_eq!(job.ramp(), Ramp::For(Duration::from_secs(5)));
}

#[test]
fn what_is_set_beside_the_file_takes_the_place_of_what_is_in_it() {
    let sets = ["size=40m", "filename=/srv/x", "timeout=1"];
    let job = read_with(ACCOUNTS, &sets).unwrap();
    let section = &job.sections()[0];
    assert_eq!(section.reach_bytes(0, 1), 40 << 20);
    assert_eq!(section.files(), Some(&["/srv/x".to_owned()][..]));
    let text = job.text(|_| Some(String::new()));
    assert!(text.starts_with("[global]\nsize=40m\ntimeout=1\n[global]\n"), "{text}");
    assert!(!text.contains("40g") && !text.contains("runtime=180"), "{text}");
    for (set, expected) in [
        ("exec_prerun=x", "is refused: it runs a program"),
        ("size", "is not NAME=VALUE"),
        ("size=1m\nunlink=1", "is not a size"),
        ("bs=1m\nunlink=1", "has more in it"),
        ("rw=read:8\nunlink=1", "has more in it"),
        ("runtime=1\n[b]", "has more in it"),
        ("nosuch=1", "is not among the options"),
    ] {
        let error = read_with("[a]\nrw=read\n", &[set]).unwrap_err().to_string();
        assert!(error.contains(expected), "{set}: {error}");
    }
}

#[test]
fn all_that_is_refused_is_said_at_once_with_what_to_do() {
    let text = "[global]\nexec_prerun=rm -r /\nname=x\n[/dev/sda]\nunlink=1\nrw=read\n\
                ioengine=external:/x.so\nnosuch=1\nsize=1y\ninclude /etc/passwd\n";
    let Err(JobError::Lines { lines }) = read(text) else { panic!("it was taken") };
    let found: Vec<(usize, &str)> =
        lines.iter().map(|line| (line.number.unwrap(), &*line.line)).collect();
    let expected = [
        (2, "exec_prerun=rm -r /"),
        (4, "[/dev/sda]"),
        (5, "unlink=1"),
        (7, "ioengine=external:/x.so"),
        (8, "nosuch=1"),
        (9, "size=1y"),
        (10, "include /etc/passwd"),
    ];
    assert_eq!(found, expected);
    let is_advice = |line: &RefusedLine| line.to_string().contains(": ");
    assert!(lines.iter().all(is_advice), "{lines:?}");
}

#[test]
fn what_does_no_harm_is_passed_on_or_left_out_with_a_word() {
    let lines = [
        "gtod_reduce=1",
        "latency_target=500000",
        "latency_window=5000000",
        "latency_percentile=99.9",
        "steadystate=iops:10%",
        "ss_dur=30s",
        "flow=8",
        "numa_cpu_nodes=0",
        "numa_mem_policy=bind:0",
        "zonemode=strided",
        "zonesize=1m",
        "zoneskip=3m",
        "verify=crc32c",
        "verify_pattern=0xaa555aa5",
        "offset_increment=1m",
        "startdelay=1",
        "timeout=30",
    ];
    let text = format!("[a] # of all\nrw=write\n{}\n", lines.join("\n"));
    let job = read(&text).unwrap();
    let passed = format!("[a]\nrw=write\n{}\n", lines.join("\n"));
    assert_eq!(job.text(|_| Some(String::new())), passed);
    let job = "[a]\nname=b\nthread\nunlink=0\nwrite_bw_log=x\nwrite_lat_log\nlog_avg_msec=10\n\
               verify_dump=1\nverify_state_save=1\nerror_dump=0\nallow_mounted_write=1\n";
    let job = read(job).unwrap();
    assert_eq!(job.text(|_| Some(String::new())), "[a]\n");
    let names: Vec<&str> = job.left_out().iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["write_bw_log", "write_lat_log", "verify_dump"]);
}

#[test]
fn variables_are_replaced_and_what_they_become_is_checked() {
    let job = read("[a]\nfilename=${DISK}1:${DISK}2\nrw=read\n").unwrap();
    let files = ["/dev/sdx1", "/dev/sdx2"].map(str::to_owned);
    assert_eq!(job.sections()[0].files(), Some(&files[..]));
    let error = read("[a]\nsize=${SIZE}\n").unwrap_err().to_string();
    assert!(error.contains("run SIZE=VALUE takeup bench disk"), "{error}");
    let hostile = |name: &str| (name == "X").then(|| "4k\nexec_prerun=touch x".to_owned());
    for line in ["bs=${X}", "size=${X}", "rw=read:${X}", "ioengine=${X}", "numjobs=${X}"] {
        let text = format!("[a]\n{line}\n");
        let read = ParsedJob::read(&text, Beside { sets: &[], variable: &hostile });
        assert!(matches!(read, Err(JobError::Lines { .. })), "{line}: {read:?}");
    }
}

#[test]
fn a_section_that_waits_for_one_that_is_left_out_does_not_wait() {
    let job = read("[a]\nrw=write\n[b]\nwait_for=a\nrw=read\n").unwrap();
    let all = job.text(|_| Some(String::new()));
    assert_eq!(all, "[a]\nrw=write\n[b]\nrw=read\nwait_for=a\n");
    let second = job.text(|section| (section == 1).then(String::new));
    assert_eq!(second, "[b]\nrw=read\n");
    assert_eq!(read("[a]\nramp_time=1\n[b]\nwait_for=a\n").unwrap().ramp(), Ramp::Several);
}

#[test]
fn each_job_of_a_section_begins_behind_the_one_before_it() {
    let text = "[a]\nrw=read\nsize=1m\noffset=0\noffset_increment=2m\nnumjobs=4\n";
    assert_eq!(read(text).unwrap().sections()[0].reach_bytes(100 << 20, 1), 7 << 20);
    let writes = |text: &str| read(text).unwrap().sections()[0].writes();
    assert!(writes("[a]\nrw=read\ntrim_percentage=10\n"), "it discards");
    assert!(!writes("[a]\nrw=read\ntrim_percentage=0\n"));
}

/// Every option of the fio that is installed: a newer one with an option that the table does not
/// have fails here, and at run time that option is refused.
#[test]
fn each_option_of_the_installed_fio_is_known_to_be_passed_left_out_or_refused() {
    testkit::require!(Fio);
    let names = |arguments: &[&str]| {
        let output = Command::new("fio").args(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let name = |line: &str| {
            let (name, _) = line.split_once(" : ").or_else(|| line.split_once(": "))?;
            let name = name.trim();
            (!name.is_empty() && !name.contains(' ')).then(|| name.to_owned())
        };
        text.lines().filter_map(name).collect::<BTreeSet<String>>()
    };
    let mut all = names(&["--cmdhelp=all"]);
    assert!(all.len() > 200, "fio lists its options: {all:?}");
    for engine in ENGINES.iter().chain(ENGINES_WITHOUT_FILES) {
        all.extend(names(&[&format!("--enghelp={engine}")]));
    }
    let unknown: Vec<&String> = all.iter().filter(|name| treatment(name).is_none()).collect();
    assert!(unknown.is_empty(), "the table says nothing of {unknown:?}");
    // Second names mean what the first one means.
    for first in &all {
        let output = Command::new("fio").arg(format!("--cmdhelp={first}")).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let alias = text.lines().find_map(|line| line.trim().strip_prefix("alias:"));
        let Some(alias) = alias.map(str::trim) else { continue };
        assert_eq!(treatment(alias), treatment(first), "{first} is {alias}");
        assert_eq!(first_name(alias), first_name(first), "{first} is {alias}");
    }
}

/// The documentation has the lists of the table.
#[test]
fn the_documentation_names_each_option() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bench.md");
    let text = std::fs::read_to_string(folder).unwrap();
    let kinds: [fn(&Treatment) -> bool; 3] = [
        |it| matches!(it, Treatment::Passed),
        |it| matches!(it, Treatment::LeftOut(_)),
        |it| matches!(it, Treatment::Refused(_) | Treatment::RefusedIfSet(_)),
    ];
    for kind in kinds {
        let list: Vec<String> =
            options::names(kind).iter().map(|name| format!("`{name}`")).collect();
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let list = list.join(", ");
        assert!(flat.contains(&list), "docs/bench.md lacks:\n{list}");
    }
}

mod whatever {
    use proptest::prelude::*;

    use super::*;

    /// Lines of names that fio knows, of harm and of none, with values of any letters.
    fn line() -> impl Strategy<Value = String> {
        let names = prop::sample::select(vec![
            "bs",
            "size",
            "rw",
            "ioengine",
            "filename",
            "directory",
            "exec_prerun",
            "unlink",
            "description",
            "wait_for",
            "mem",
            "verify_pattern",
            "filename_format",
            "write_bw_log",
            "nosuch",
            "include x",
            "include",
            "offset",
            "name",
            "numjobs",
            "filesize",
            "stonewall",
        ]);
        let values = prop_oneof![
            "[a-z0-9:/.,%-]{0,12}",
            "[ -~]{0,16}",
            prop::sample::select(vec!["4k", "read", "randrw:8", "psync", "${X}", "0", "1", "-"])
                .prop_map(str::to_owned),
        ];
        let option = (names, "[ =]{0,2}", values)
            .prop_map(|(name, sign, value)| format!("{name}{sign}{value}"));
        prop_oneof![option, "[ -~]{0,20}", "\\[[ -~]{0,12}\\]?"]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Whatever stands in a job, in the environment and on the command line: fio gets heads of
        /// sections, and options that are passed on with values that mean nothing but themselves.
        #[test]
        fn fio_gets_nothing_but_what_is_passed_on(
            lines in prop::collection::vec(line(), 0..8),
            sets in prop::collection::vec(line(), 0..3),
            value in "[ -~\n]{0,12}",
        ) {
            let text = format!("[a]\n{}\n", lines.join("\n"));
            let variable = |_: &str| Some(value.clone());
            let read = ParsedJob::read(&text, Beside { sets: &sets, variable: &variable });
            let Ok(job) = read else { return Ok(()) };
            for line in job.text(|_| Some(String::new())).lines() {
                if let Some(head) = line.strip_prefix('[') {
                    let name = head.strip_suffix(']').unwrap();
                    prop_assert!(!name.is_empty() && name.chars().all(is_plain_letter), "{line}");
                    continue;
                }
                let (name, value) = line.split_once('=').unwrap_or((line, ""));
                prop_assert_eq!(treatment(name), Some(Treatment::Passed), "{}", line);
                let is_plain = value.chars().all(is_plain_value);
                prop_assert!(is_plain || name == "filename_format", "{line}");
                prop_assert!(!["filename", "directory"].contains(&name), "{line}");
            }
        }
    }
}
