//! Jobs of made-up profiles, held against what they must say, against fio, and against themselves.

use std::collections::BTreeMap;
use std::process::Command;

use flow::cancel::Cancel;
use loads::disk::fio::FioRun;
use proptest::prelude::*;

use super::super::operation::Engine;
use super::super::profile::{BlockSizes, Places, Sync};
use super::*;

/// The WAL of PostgreSQL under inserts of single rows, as a profile has it.
fn log() -> FileProfile {
    FileProfile {
        path: Some("/srv/pg/pg_wal/000000010000000000000001".to_owned()),
        class: Class::WriteAheadLog,
        kind: FileKind::Regular,
        engine: Engine::Psync,
        engines: BTreeMap::from([(Engine::Psync, 4000)]),
        calls: 8000,
        reads: 0,
        writes: 4000,
        read_share: Some(0.0),
        read_bytes: Some(0),
        written_bytes: Some(4000 * 8192),
        block_bytes: Some(8192),
        block_sizes: BlockSizes { read: vec![], write: vec![(8192, 3988), (16384, 12)], others: 0 },
        sequential_share: Some(0.025),
        rewrite_share: Some(0.975),
        reuse_share: Some(0.975),
        direct: Some(false),
        synchronous: Some(false),
        append: Some(false),
        sync: Sync {
            call: "fdatasync",
            calls: 4000,
            operations_between: Some(1.0),
            seconds: Some(1e-3),
            ..Sync::default()
        },
        depth: Some(1.0),
        threads: 1,
        think_seconds: Some(1e-3),
        operations_per_second: 400.0,
        burstiness: Some(0.2),
        latency_seconds: Some(2e-5),
        size_bytes: Some(16 << 20),
        errors: 0,
        unknown: BTreeMap::new(),
        known_share: BTreeMap::new(),
        series: vec![[0, 327_680]; 100],
        places: Places::default(),
    }
}

/// Tables that are read at random in three of four calls, and written.
fn table(number: u32) -> FileProfile {
    FileProfile {
        path: Some(format!("/srv/pg/base/5/{number}")),
        class: Class::Data,
        calls: 1000,
        reads: 700,
        writes: 300,
        read_share: Some(0.7),
        read_bytes: Some(700 * 8192),
        written_bytes: Some(300 * 8192),
        block_sizes: BlockSizes { read: vec![(8192, 700)], write: vec![(8192, 300)], others: 0 },
        sequential_share: Some(0.25),
        rewrite_share: Some(0.0),
        reuse_share: Some(0.3),
        sync: Sync { call: "none", ..Sync::default() },
        think_seconds: Some(1e-6),
        size_bytes: Some(1 << 30),
        ..log()
    }
}

fn profile(files: Vec<FileProfile>) -> Profile {
    Profile { seconds: 10.0, files, ..Profile::default() }
}

fn job(files: Vec<FileProfile>) -> FioJob {
    FioJob::of(&profile(files), &JobTarget::default()).unwrap()
}

/// The options of a section, without comments.
fn options(text: &str, section: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| *line != format!("[{section}]")).skip(1);
    let own = lines.take_while(|line| !line.starts_with('['));
    own.filter(|line| !line.starts_with(';') && !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_log_writes_its_last_block_again() {
    let text = job(vec![log()]).text();
    assert!(text.contains("directory=${TAKEUP_JOB_DIR}\n"), "{text}");
    assert!(text.contains("; 8192: 99.7 % of 4 000 writes; 1 size below 1 %\nbs=8k\n"), "{text}");
    assert_eq!(
        options(&text, "write-ahead-log"),
        [
            "filename=takeup-write-ahead-log.0",
            "ioengine=psync",
            "bs=8k",
            "filesize=16m",
            "number_ios=4000",
            "io_size=32000k",
            "overwrite=1",
            "rw=randwrite:40",
            "rw_sequencer=identical",
            "percentage_random=0",
            "fdatasync=1",
            "rate_iops=400",
        ]
    );
}

#[test]
fn alike_files_are_one_section_and_a_mix_stays_whole_without_syncs() {
    let text = job(vec![table(1), table(2)]).text();
    assert_eq!(
        options(&text, "data"),
        [
            "filename=takeup-data.0:takeup-data.1",
            "ioengine=psync",
            "bs=8k,8k",
            "filesize=1024m",
            "nrfiles=2",
            "number_ios=2000",
            "io_size=2048m",
            "overwrite=1",
            "rwmixread=70",
            "rw=randrw",
            "percentage_random=75",
            "norandommap=1",
        ]
    );
}

#[test]
fn reads_and_writes_with_syncs_are_sections_of_their_own_on_one_file() {
    let sync = Sync {
        call: "fsync",
        calls: 10,
        operations_between: Some(30.0),
        seconds: None,
        ..Sync::default()
    };
    let text = job(vec![FileProfile { sync, ..table(1) }]).text();
    let (reads, writes) = (options(&text, "data-reads"), options(&text, "data-writes"));
    assert_eq!(reads[0], writes[0]);
    let has = |lines: &[String], wanted: &str| lines.iter().any(|line| line == wanted);
    assert!(has(&reads, "rw=randread") && has(&reads, "number_ios=700"), "{text}");
    assert!(has(&writes, "rw=randwrite") && has(&writes, "number_ios=300"), "{text}");
    // One behind each 30 would make 9, since there is none behind the last write.
    assert!(has(&writes, "fsync=29") && !has(&reads, "fsync=29"), "{text}");
}

/// fio asks a ring for the syncs of a section with a ring; a program may call them beside it.
#[test]
fn syncs_by_call_beside_a_ring_are_a_section_in_step_with_it() {
    let sync = Sync {
        call: "fdatasync",
        calls: 50,
        operations_between: Some(7.0),
        seconds: None,
        ..Sync::default()
    };
    let ring = FileProfile {
        engine: Engine::IoUring,
        reads: 0,
        writes: 1000,
        read_share: Some(0.0),
        block_sizes: BlockSizes { read: vec![], write: vec![(16384, 1000)], others: 0 },
        depth: Some(64.0),
        direct: Some(true),
        sync: sync.clone(),
        ..table(1)
    };
    let text = job(vec![ring.clone()]).text();
    let (writes, syncs) = (options(&text, "data-writes"), options(&text, "data-syncs"));
    let has = |lines: &[String], wanted: &str| lines.iter().any(|line| line == wanted);
    for wanted in ["ioengine=io_uring", "iodepth=64", "number_ios=950", "flow_id=1", "flow=152"] {
        assert!(has(&writes, wanted), "{wanted}: {text}");
    }
    for wanted in ["ioengine=psync", "number_ios=50", "flow_id=1", "flow=8", "fdatasync=1"] {
        assert!(has(&syncs, wanted), "{wanted}: {text}");
    }
    assert_eq!(writes[0], syncs[0], "{text}");
    assert!(!has(&writes, "fdatasync=1") && !text.contains("iodepth=1\n"), "{text}");
    // fio would make 128 of 93.
    let text = job(vec![FileProfile { depth: Some(93.0), ..ring.clone() }]).text();
    let depths = ["data-writes", "data-writes-2", "data-writes-3"].map(|section| {
        let lines = options(&text, section);
        let depth = lines.iter().find_map(|line| line.strip_prefix("iodepth=")).unwrap();
        depth.parse::<u64>().unwrap()
    });
    assert_eq!(depths, [64, 16, 16], "{text}");
    // Of a ring that is asked for its syncs one section does both, and which call it was is open.
    let asked = Sync { call: "sync of the ring", ..sync };
    let shallow = FileProfile { depth: Some(1.0), sync: asked.clone(), ..ring.clone() };
    let text = job(vec![shallow]).text();
    assert!(has(&options(&text, "data"), "fsync=20"), "{text}");
    // fio repeats those of a deeper ring: they have a ring of their own, of a depth of 1.
    let text = job(vec![FileProfile { sync: asked, ..ring }]).text();
    let syncs = options(&text, "data-syncs");
    assert!(has(&syncs, "ioengine=io_uring") && has(&syncs, "fsync=1"), "{text}");
    assert!(text.contains("fsync is an assumption"), "{text}");
}

#[test]
fn what_is_unknown_is_said_and_what_was_taken_is_called_an_assumption() {
    let ring = FileProfile {
        engine: Engine::IoUring,
        sequential_share: None,
        depth: None,
        unknown: BTreeMap::from([
            ("sequential_share", "requests of io_uring are seen without their offset"),
            ("depth", "what was recorded does not say it"),
        ]),
        ..table(1)
    };
    let text = job(vec![ring]).text();
    for line in [
        "; order unknown: requests of io_uring are seen without their offset; at random is an \
         assumption\nrw=randrw\n",
        "; depth unknown: what was recorded does not say it; 1 is an assumption\niodepth=1\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn limits_cut_all_sections_by_the_same_share() {
    let limits = JobLimits { file_bytes: 64 << 20, operations: 500, seconds: 100.0 };
    let target = JobTarget { folder: None, limits: Some(limits) };
    let job = FioJob::of(&profile(vec![log(), table(1)]), &target).unwrap();
    let text = job.text();
    assert!(options(&text, "write-ahead-log").contains(&"number_ios=400".to_owned()), "{text}");
    assert!(options(&text, "data").contains(&"number_ios=100".to_owned()), "{text}");
    assert!(job.file_bytes() <= 64 << 20, "{}", job.file_bytes());
}

/// What the lines say, fio does: so many reads and writes, of these sizes, with so many syncs.
#[test]
fn fio_does_what_the_job_says() {
    testkit::require!(Fio);
    let folder = tempfile::tempdir().unwrap();
    let sync = Sync {
        call: "fsync",
        calls: 10,
        operations_between: Some(30.0),
        seconds: None,
        ..Sync::default()
    };
    let paced = FileProfile { think_seconds: Some(0.000_1), ..log() };
    // As insert loads come: fio dies of bursts beside syncs.
    let bursty = FileProfile { burstiness: Some(6.0), ..paced };
    let captured = profile(vec![bursty, FileProfile { sync, ..table(1) }]);
    let limits = JobLimits { file_bytes: 16 << 20, operations: 1000, seconds: 30.0 };
    let trial = Trial::prepare(&captured, folder.path(), limits, &Cancel::new(), &mut |_| {});
    let trial = trial.unwrap();
    let made: u64 = trial.job().files().len() as u64;
    assert_eq!(made, 2);
    assert!(trial.job().text().contains("crashes with rate_process=poisson"));
    let command = trial.command();
    let output = Command::new(&command[0]).args(&command[1..]).output().unwrap();
    assert!(output.status.success(), "{output:?}\n{}", trial.job().text());
    let run = FioRun::parse(&fs::read(trial.output()).unwrap()).unwrap();
    // Of syncs fio 3.33 tells times and no count.
    let did = |name: &str| {
        let section = run.sections.iter().find(|section| section.name == name).unwrap();
        [section.read.requests, section.write.requests, section.sync.latency.count()]
    };
    // 1000 of 5000; the last one of a section is followed by no sync.
    assert_eq!(did("write-ahead-log"), [0, 800, 799]);
    assert_eq!(did("data-reads"), [140, 0, 0]);
    assert_eq!(did("data-writes"), [0, 60, 2]);
    assert_eq!(run.bytes(), 1000 * 8192);
    trial.remove().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_device_becomes_a_file_and_pipes_are_left_out() {
    let device = FileProfile {
        kind: FileKind::BlockDevice,
        class: Class::Device,
        size_bytes: Some(1 << 40),
        ..table(1)
    };
    let pipe = FileProfile { kind: FileKind::Pipe, class: Class::Device, ..table(2) };
    let job = job(vec![device, pipe]);
    let text = job.text();
    assert!(text.contains("; left out: 1 file with 1 000 reads and writes (no disk"), "{text}");
    assert_eq!(job.files(), ["takeup-device.0"]);
    assert!(job.file_bytes() <= 64 << 20, "{text}");
    let pipe = FileProfile { kind: FileKind::Pipe, ..table(2) };
    let nothing = FioJob::of(&profile(vec![pipe]), &JobTarget::default());
    assert!(matches!(nothing, Err(CaptureJobError::Nothing)));
}

#[test]
fn a_folder_with_a_captured_file_is_refused_by_any_of_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    fs::create_dir(&real).unwrap();
    let captured = real.join("takeup-data.0");
    let path = captured.to_str().unwrap().to_owned();
    let seen = profile(vec![FileProfile { path: Some(path), ..table(1) }]);
    let job = FioJob::of(&seen, &JobTarget::default()).unwrap();
    let refused = |folder: &Path| {
        matches!(check_folder(&job, folder, &seen), Err(CaptureJobError::Captured { .. }))
    };
    // By its name, though nothing is there any more; by a link to its folder; by a hard link.
    assert!(refused(&real));
    let linked = folder.path().join("linked");
    std::os::unix::fs::symlink(&real, &linked).unwrap();
    assert!(refused(&linked));
    fs::write(&captured, "data").unwrap();
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    assert!(!refused(&other));
    fs::hard_link(&captured, other.join("takeup-data.0")).unwrap();
    assert!(refused(&other));
}

/// What a perfect run of a job leaves.
fn perfect(captured: &[FileProfile], job: &FioJob) -> Profile {
    let own = job.files();
    let files = captured.iter().zip(own).map(|(file, name)| {
        let path = Some(format!("/mnt/job/{name}"));
        FileProfile { path, ..file.clone() }
    });
    profile(files.collect())
}

fn percents(validation: &Validation) -> Vec<Option<f64>> {
    let of = |property: &&str| validation.properties[*property].percent.map(f64::round);
    compare::PROPERTIES.iter().map(of).collect()
}

#[test]
fn the_same_again_has_full_scores_and_each_difference_costs_its_own() {
    let captured = profile(vec![log()]);
    let job = FioJob::of(&captured, &JobTarget::default()).unwrap();
    let same = perfect(&captured.files, &job);
    let validation = compare(&captured, &job, &same);
    assert_eq!(percents(&validation), [Some(100.0); 7]);
    assert_eq!(validation.not_reproduced, Vec::<String>::new());

    let mut run = same;
    let file = &mut run.files[0];
    file.engine = Engine::Sync;
    file.direct = Some(true);
    // A quarter has another size.
    file.block_sizes.write = vec![(8192, 3000), (4096, 1000)];
    file.sequential_share = Some(0.525);
    file.rewrite_share = Some(0.475);
    (file.reads, file.writes) = (1000, 3000);
    file.block_sizes.read = vec![(8192, 1000)];
    file.sync.calls = 750;
    file.depth = Some(2.0);
    let validation = compare(&captured, &job, &run);
    let found = percents(&validation);
    // Rewrites are of all operations: 0.475 of three in four.
    let wanted = [0.0, 0.0, 75.0, 38.0, 75.0, 25.0, 50.0].map(Some);
    assert_eq!(found, wanted);
    assert!(
        validation.not_reproduced.iter().any(|sentence| sentence
            == "write-ahead-log: sync at 25 %: captured fdatasync each 1, job fdatasync each 4"),
        "{:?}",
        validation.not_reproduced
    );
}

#[test]
fn what_one_side_cannot_see_has_no_score_but_a_reason() {
    let why = "requests of io_uring are seen without their offset";
    let ring = FileProfile {
        sequential_share: None,
        unknown: BTreeMap::from([("sequential_share", why)]),
        ..table(1)
    };
    let captured = profile(vec![ring]);
    let job = FioJob::of(&captured, &JobTarget::default()).unwrap();
    let run = perfect(&captured.files, &job);
    let offsets = &compare(&captured, &job, &run).properties["offsets"];
    assert_eq!(offsets.percent, None);
    assert!(offsets.reason.as_ref().unwrap().ends_with(why), "{offsets:?}");
    // A job that did nothing is no good job.
    let nothing = compare(&captured, &job, &profile(vec![]));
    assert_eq!(nothing.properties["mix"].percent, Some(0.0));
}

prop_compose! {
    fn sizes()(
        list in prop::collection::vec(
            (prop_oneof![Just(512u64), Just(4096), Just(8192), Just(131_072), 1u64..3_000_000],
             1u64..100_000),
            0..12,
        ),
    ) -> Vec<(u64, u64)> { list }
}

fn share() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![Just(None), Just(Some(0.0)), Just(Some(1.0)), (0.0..1.0f64).prop_map(Some)]
}

fn flag() -> impl Strategy<Value = Option<bool>> {
    prop_oneof![Just(None), Just(Some(false)), Just(Some(true))]
}

fn engines() -> impl Strategy<Value = Engine> {
    prop::sample::select(vec![
        Engine::Sync,
        Engine::Psync,
        Engine::Vsync,
        Engine::Pvsync,
        Engine::Pvsync2,
        Engine::Libaio,
        Engine::IoUring,
        Engine::Mmap,
        Engine::Splice,
        Engine::Unknown,
    ])
}

prop_compose! {
    fn any_file()(
        class in prop::sample::select(vec![
            Class::WriteAheadLog, Class::Data, Class::Temporary, Class::Stream, Class::Messages,
            Class::Other,
        ]),
        engine in engines(),
        read in sizes(),
        write in sizes(),
        (reads, writes) in (0u64..1_000_000, 0u64..1_000_000),
        shares in [share(), share(), share()],
        flags in [flag(), flag(), flag()],
        call in prop::sample::select(vec![
            "none", "fsync", "fdatasync", "sync_file_range", "msync", "sync", "sync of the ring",
        ]),
        syncs in 1u64..100_000,
        between in prop::option::of(0.0..1e6f64),
        (depth, threads) in (prop::option::of(1.0..5000.0f64), 1u32..600),
        (think, latency) in (prop::option::of(0.0..20.0f64), prop::option::of(0.0..1.0f64)),
        size in prop::option::of(prop_oneof![0u64..100_000, 0u64..1 << 44]),
        path in prop::option::of("\\PC{1,40}|/srv/a\nb=c"),
        series in prop::collection::vec([0u64..3, 0u64..3], 0..=100),
    ) -> FileProfile {
        let calls = if call == "none" { 0 } else { syncs };
        FileProfile {
            path, class, engine, reads, writes,
            block_sizes: BlockSizes { read, write, others: 0 },
            sequential_share: shares[0], rewrite_share: shares[1], reuse_share: shares[2],
            direct: flags[0], synchronous: flags[1], append: flags[2],
            sync: Sync { call, calls, operations_between: between, ..Sync::default() },
            depth, threads, think_seconds: think, latency_seconds: latency, size_bytes: size,
            series,
            ..log()
        }
    }
}

/// fio reads it as it is, whatever was captured: no line is unknown to it or out of range.
#[test]
fn the_real_fio_takes_every_job() {
    testkit::require!(Fio);
    let files = prop::collection::vec(any_file(), 1..6);
    proptest!(ProptestConfig::with_cases(32), |(files in files, limited in any::<bool>())| {
        let limits = JobLimits { file_bytes: 1 << 24, operations: 1000, seconds: 5.0 };
        let target = JobTarget { folder: None, limits: limited.then_some(limits) };
        match FioJob::of(&profile(files), &target) {
            Err(CaptureJobError::Nothing) => {}
            Ok(job) => is_taken(&job)?,
            Err(error) => prop_assert!(false, "{error}"),
        }
    });
}

fn is_taken(job: &FioJob) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.fio");
    fs::write(&path, job.text()).unwrap();
    let mut fio = Command::new("fio");
    fio.arg("--parse-only").arg(&path).env(DIRECTORY_VARIABLE, folder.path());
    let output = fio.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    prop_assert!(output.status.success() && said.is_empty(), "{said}\n{}", job.text());
    Ok(())
}

/// Sizes and offsets are numbers that a file of others said: none of them ends the program.
#[test]
fn numbers_at_the_end_of_all_make_a_job() {
    for bytes in [u64::MAX, u64::MAX - 4095, u64::MAX / 2] {
        let huge = FileProfile {
            written_bytes: Some(bytes),
            block_bytes: Some(bytes),
            block_sizes: BlockSizes { read: vec![], write: vec![(bytes, 4000)], others: 0 },
            ..log()
        };
        for size_bytes in [None, Some(bytes)] {
            for (kind, written_bytes) in [
                (FileKind::Regular, huge.written_bytes),
                (FileKind::BlockDevice, huge.written_bytes),
                // They were asked for, and failed.
                (FileKind::Regular, Some(0)),
            ] {
                let file = FileProfile { size_bytes, kind, written_bytes, ..huge.clone() };
                assert!(job(vec![file.clone()]).text().contains("filesize="));
                let limits = JobLimits { file_bytes: 1 << 24, operations: 1000, seconds: 5.0 };
                let target = JobTarget { folder: None, limits: Some(limits) };
                assert!(FioJob::of(&profile(vec![file]), &target).is_ok());
            }
        }
    }
}

fn number_of(lines: &[String], option: &str) -> f64 {
    let value = lines.iter().find_map(|line| line.strip_prefix(&format!("{option}=")));
    value.unwrap_or_else(|| panic!("{option} in {lines:?}")).parse().unwrap()
}

#[test]
fn syncs_that_come_in_bunches_keep_their_number() {
    for (calls, writes) in [(235, 2000), (1829, 14_577), (1333, 2000), (800, 2000)] {
        for between in [0.0, 1.0] {
            let sync =
                Sync { call: "fsync", calls, operations_between: Some(between), ..log().sync };
            let file = FileProfile {
                writes,
                sync,
                rewrite_share: Some(0.0),
                sequential_share: Some(0.0),
                block_sizes: BlockSizes { read: vec![], write: vec![(8192, writes)], others: 0 },
                ..log()
            };
            let text = job(vec![file]).text();
            let sections = ["write-ahead-log", "write-ahead-log-2"].map(|it| options(&text, it));
            let made = |lines: &Vec<String>| {
                (number_of(lines, "number_ios") / number_of(lines, "fsync")).floor()
            };
            let all: f64 = sections.iter().filter(|it| !it.is_empty()).map(made).sum();
            assert!((all / calls as f64 - 1.0).abs() < 0.1, "{all} of {calls}:\n{text}");
        }
    }
}

#[test]
fn sizes_that_differ_are_asked_for_without_a_map() {
    let ring = FileProfile {
        engine: Engine::IoUring,
        sequential_share: None,
        reuse_share: None,
        reads: 0,
        writes: 1000,
        block_sizes: BlockSizes {
            read: vec![],
            write: vec![(4096, 830), (65_536, 170)],
            others: 0,
        },
        ..table(1)
    };
    let text = job(vec![ring]).text();
    assert!(options(&text, "data").contains(&"norandommap=1".to_owned()), "{text}");
}

#[test]
fn hot_places_are_hot_in_the_job() {
    let hot = FileProfile {
        size_bytes: Some(64 << 20),
        sequential_share: Some(0.0),
        reuse_share: Some(0.53),
        ..table(1)
    };
    let text = job(vec![hot.clone()]).text();
    let lines = options(&text, "data");
    let zipf = lines.iter().find_map(|line| line.strip_prefix("random_distribution=zipf:"));
    let zipf: f64 = zipf.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
    assert!((0.5..2.0).contains(&zipf), "{zipf}");
    let cold = FileProfile { reuse_share: Some(0.06), ..hot };
    assert!(!job(vec![cold]).text().contains("random_distribution"));
}

mod beside;
mod unnamed;
