//! Samples that the real programs wrote, and the real programs themselves.

use std::io::Cursor;
use std::process::Command;

use super::super::operation::{
    Asked, Engine, FileNumber, FileOperation, Known, OpenedFile, Recording, SyncCall, Unknown,
};
use super::super::profile::{FileProfile, ProfileLimits, Profiler};
use super::{
    Imported, RecordingError, RecordingFormat, blkparse, import, iolog, nanoseconds, strace,
};

/// Keeps all.
#[derive(Default)]
struct All {
    files: Vec<OpenedFile>,
    operations: Vec<FileOperation>,
}

impl Recording for All {
    fn file(&mut self, number: FileNumber, file: &OpenedFile) {
        assert_eq!(number as usize, self.files.len());
        self.files.push(file.clone());
    }

    fn file_again(&mut self, number: FileNumber, file: &OpenedFile) {
        self.files[number as usize] = file.clone();
    }

    fn operation(&mut self, operation: &FileOperation) {
        assert!((operation.file as usize) < self.files.len());
        self.operations.push(*operation);
    }

    fn lost(&mut self, _events: u64) {}
}

type Place = (Known<u64>, Known<u64>);

impl All {
    /// Where the operations on files whose path ends so began, and how long they are.
    fn places(&self, path: &str, asked: Asked) -> Vec<Place> {
        let is_of = |it: &&FileOperation| {
            let file = &self.files[it.file as usize];
            file.path.as_ref().is_ok_and(|it| it.ends_with(path)) && it.asked == asked
        };
        let place = |it: &FileOperation| (it.offset_bytes, it.done_bytes);
        self.operations.iter().filter(is_of).map(place).collect()
    }
}

fn traced(text: &str) -> (All, Imported) {
    let mut all = All::default();
    let imported = strace::import(Cursor::new(text), &mut all).unwrap();
    (all, imported)
}

#[test]
fn positions_are_followed_through_seeks_copies_and_children() {
    let (all, imported) = traced(include_str!("samples/strace_positions.txt"));
    assert_eq!((imported.lines, imported.operations), (27, 16));
    let position = Err(Unknown::Position);
    let expected: Vec<Place> = [
        (Ok(0), 1000),
        (Ok(4096), 100),
        (Ok(4196), 50),
        (Ok(0), 45),
        (Ok(4246), 30),
        (Ok(9000), 12),
        (Ok(4276), 30),
        (Ok(4306), 5),
        (position, 9),
    ]
    .map(|(offset, done)| (offset, Ok(done)))
    .to_vec();
    assert_eq!(all.places("/q", Asked::Write), expected);
    assert_eq!(all.places("/q", Asked::Read), [(Ok(0), Ok(10))], "of sendfile");
    let other = "/naïve name>, 1";
    assert_eq!(all.places(other, Asked::Write), [(Ok(10), Ok(10))], "of sendfile");
    assert_eq!(all.places(other, Asked::Allocate), [(Ok(0), Ok(4096))]);
    assert_eq!(all.places("/in", Asked::Write), [(position, Ok(14))], "open before");
    let engines: Vec<Engine> = all.operations.iter().map(|it| it.engine).take(6).collect();
    let [sync, psync] = [Engine::Sync, Engine::Psync];
    assert_eq!(engines, [sync, sync, sync, psync, Engine::Vsync, Engine::Pvsync2]);
    let child = all.operations.iter().find(|it| it.thread == 7147).unwrap();
    assert_eq!(child.process, 7147);
    let append = all.files.iter().find(|it| it.append == Ok(true)).unwrap();
    assert_eq!((append.synchronous, append.direct), (Ok(true), Ok(false)));
    let failed: Vec<i32> = all.operations.iter().map(|it| it.error).filter(|it| *it != 0).collect();
    assert_eq!(failed, [libc::EINVAL]);
    let sync = all.operations.iter().find(|it| matches!(it.asked, Asked::Sync(_))).unwrap();
    assert_eq!(sync.asked, Asked::Sync(SyncCall::Fdatasync));
    assert_eq!(sync.duration_ns, Ok(422_000));
    assert_eq!(sync.start_ns, 1_795_456_760_967_613_000);
}

#[test]
fn calls_of_two_threads_that_end_later() {
    let (all, _) = traced(include_str!("samples/strace_threads.txt"));
    let of = |asked: Asked| all.operations.iter().filter(move |it| it.asked == asked);
    assert_eq!(of(Asked::Write).count(), 12);
    assert_eq!(of(Asked::Sync(SyncCall::Fdatasync)).count(), 10);
    assert!(of(Asked::Write).all(|it| it.done_bytes == Ok(4096) && it.asked_bytes == Ok(4096)));
    let offsets: u64 = of(Asked::Write).map(|it| it.offset_bytes.unwrap()).sum();
    assert_eq!(offsets, 4096 * (0..12).sum::<u64>());
    assert_eq!(all.operations.iter().filter_map(|it| it.in_flight.ok()).max(), Some(2));
    assert!(all.operations.iter().all(|it| it.process == 7576), "threads of one process");
}

#[test]
fn requests_of_libaio_have_places_and_depth() {
    let (all, imported) = traced(include_str!("samples/strace_libaio.txt"));
    let writes: Vec<_> = all.operations.iter().collect();
    let offsets: Vec<u64> = writes.iter().map(|it| it.offset_bytes.unwrap()).collect();
    assert_eq!(offsets, [0, 4096, 8192, 12_288, 16_384, 20_480]);
    let depths: Vec<u32> = writes.iter().map(|it| it.in_flight.unwrap()).collect();
    assert_eq!(depths, [1, 2, 3, 4, 4, 4]);
    assert!(writes.iter().all(|it| it.engine == Engine::Libaio && it.asked_bytes == Ok(4096)));
    assert!(writes.iter().all(|it| it.duration_ns == Err(Unknown::NotRecorded)));
    assert_eq!((all.files[0].direct, imported.unseen.len()), (Ok(true), 1));
}

#[test]
fn a_call_that_has_not_ended_and_a_line_that_is_cut_off() {
    let text = "7 1.000000 openat(AT_FDCWD</>, \"a\", O_RDONLY) = 3</a> <0.000010>\n\
                7 1.500000 read(3</a>, \"x\"..., 10) = 10 <0.000010>\n\
                7 2.000000 read(3</a>,  <unfinished ...>\n\
                8 2.000001 wri";
    let (all, imported) = traced(text);
    assert_eq!((imported.lines, all.operations.len()), (3, 2));
    let last = all.operations[1];
    assert_eq!((last.done_bytes, last.start_ns), (Err(Unknown::NotEnded), 2_000_000_000));
}

#[test]
fn errors_name_the_line() {
    let told = |text: &str| {
        let result = strace::import(Cursor::new(text), &mut All::default());
        result.unwrap_err().to_string()
    };
    let hint = "no operation in 1 lines: make one with `strace -f -ttt -T -yy -o FILE COMMAND`";
    assert_eq!(told("1 2.0 +++ exited with 0 +++\n"), hint);
    let no_time = "line 2: no time at its start; use `strace -f -ttt -T -yy -o FILE`";
    assert_eq!(told("1 2.0 close(1) = 0\nread(3</a>, \"\", 1) = 0\n"), no_time);
    assert_eq!(told("1 2.0 read(3</a>, \"\n"), "line 1: the call of read has no closing bracket");
    assert_eq!(told("1 2.0 hello\n"), "line 1: not a line of strace");
    let long = format!("1 2.0 read(3</a>, \"{}\", 4) = 4\n", "x".repeat(1 << 20));
    assert_eq!(told(&long), "line 1: it is longer than 1 MiB");
}

#[test]
fn the_format_is_seen_by_its_first_line() {
    let of = |text: &str| RecordingFormat::of(text.lines().next().unwrap());
    assert_eq!(of(include_str!("samples/strace_threads.txt")), RecordingFormat::Strace);
    assert_eq!(of(include_str!("samples/blkparse.txt")), RecordingFormat::Blkparse);
    assert_eq!(of(include_str!("samples/iolog_3.txt")), RecordingFormat::Iolog);
    let mut all = All::default();
    let input = Cursor::new(include_str!("samples/blkparse.txt"));
    assert_eq!(import(input, &mut all).unwrap().operations, 7);
    let nothing = import(Cursor::new(""), &mut all).unwrap_err().to_string();
    assert!(nothing.starts_with("no operation in 0 lines: "), "{nothing}");
}

#[test]
fn no_digit_of_a_time_is_lost() {
    assert_eq!(nanoseconds("1795456760.966203"), Some(1_795_456_760_966_203_000));
    assert_eq!(nanoseconds("0.000000001"), Some(1));
    for wrong in ["", ".5", "1.0000000001", "-1", "1.5e3", "99999999999999999999"] {
        assert_eq!(nanoseconds(wrong), None, "{wrong}");
    }
}

#[test]
fn a_log_of_fio_in_version_3_and_2() {
    let mut all = All::default();
    let sample = include_str!("samples/iolog_3.txt");
    let imported = iolog::import(Cursor::new(sample), &mut all).unwrap();
    let count = |word: &str| sample.split_whitespace().filter(|it| *it == word).count();
    let of = |asked: Asked| all.operations.iter().filter(|it| it.asked == asked).count();
    assert_eq!(of(Asked::Read), count("read"));
    assert_eq!(of(Asked::Write), count("write"));
    assert_eq!(of(Asked::Sync(SyncCall::Fsync)), count("sync"));
    assert_eq!(imported.operations, all.operations.len() as u64);
    assert!(count("sync") > 0 && count("read") > 0 && count("write") > 0);

    let text = "fio version 2 iolog\n/srv/a add\n/srv/a open\n/srv/a write 0 4096\n\
                /srv/a wait 250 0\n/srv/a datasync 0 0\n/srv/a read 8192 512\n/srv/a close\n";
    let mut all = All::default();
    iolog::import(Cursor::new(text), &mut all).unwrap();
    let times: Vec<u64> = all.operations.iter().map(|it| it.start_ns).collect();
    assert_eq!(times, [0, 250_000, 250_000]);
    assert_eq!(all.places("/srv/a", Asked::Read), [(Ok(8192), Ok(512))]);
    let told = |text: &str| {
        let result = iolog::import(Cursor::new(text), &mut All::default());
        result.unwrap_err().to_string()
    };
    let head = "line 1: not the first line of a fio I/O log, `fio version 2 iolog` or 3";
    assert_eq!(told("a\n"), head);
    assert_eq!(told("fio version 2 iolog\na b c\n"), "line 2: it has neither two nor four words");
    let wrong = "fio version 3 iolog\n5 a read x 4096\n";
    assert_eq!(told(wrong), "line 2: the offset \"x\" is not a number");
    let nothing = iolog::import(Cursor::new("fio version 3 iolog\n"), &mut All::default());
    assert!(matches!(nothing, Err(RecordingError::Nothing { lines: 1, .. })));
}

fn ran(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn file_of(profiler: &Profiler, name: &str) -> FileProfile {
    let profile = profiler.profile();
    let is_it = |it: &&FileProfile| it.path.as_ref().is_some_and(|it| it.ends_with(name));
    profile.files.iter().find(is_it).expect("the file has a profile").clone()
}

fn fio(folder: &std::path::Path) -> Vec<String> {
    let data = format!("--filename={}/data", folder.display());
    let words = ["fio", "--name=job", &data, "--size=512k", "--thread", "--minimal"];
    words.map(str::to_owned).to_vec()
}

/// Options of fio, and what is to come back: engine, block, share of reads, writes between syncs.
type Job = (&'static [&'static str], Engine, u64, f64, Option<f64>);

#[test]
fn the_real_fio_under_the_real_strace_comes_back_as_its_job() {
    testkit::require!(Fio, Strace);
    let folder = tempfile::tempdir().unwrap();
    let jobs: [Job; 4] = [
        (&["--rw=write", "--bs=8k", "--fdatasync=1"], Engine::Psync, 8192, 0.0, Some(1.0)),
        (
            &["--rw=write", "--bs=4k", "--ioengine=sync", "--fsync=4"],
            Engine::Sync,
            4096,
            0.0,
            Some(4.0),
        ),
        (&["--rw=read", "--bs=16k", "--ioengine=vsync"], Engine::Vsync, 16_384, 1.0, None),
        (&["--rw=read", "--bs=4k", "--ioengine=pvsync2"], Engine::Pvsync2, 4096, 1.0, None),
    ];
    for (options, engine, bytes, read_share, between) in jobs {
        let trace = folder.path().join("trace");
        let mut command = Command::new("strace");
        command.args(["-f", "-ttt", "-T", "-yy", "-o"]).arg(&trace).args(fio(folder.path()));
        ran(command.args(options));
        let mut profiler = Profiler::new(ProfileLimits::default());
        let input = std::io::BufReader::new(std::fs::File::open(&trace).unwrap());
        strace::import(input, &mut profiler).unwrap();
        let file = file_of(&profiler, "/data");
        assert_eq!(file.engine, engine, "{options:?}");
        assert_eq!(file.block_bytes, Some(bytes), "{options:?}");
        assert_eq!(file.depth, Some(1.0), "{options:?}");
        assert_eq!(file.sync.operations_between, between, "{options:?}");
        // fio lays a file out before it reads it, by calls of its own.
        if read_share == 0.0 {
            assert_eq!((file.read_share, file.written_bytes), (Some(0.0), Some(512 << 10)));
            assert!(file.sequential_share.unwrap() > 0.9, "{options:?}");
        } else {
            assert_eq!(file.read_bytes, Some(512 << 10), "{options:?}");
        }
    }
}

#[test]
fn the_real_fio_writes_a_log_that_is_its_job() {
    testkit::require!(Fio);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = Command::new("fio");
    command.args(&fio(folder.path())[1..]).args(["--rw=randrw", "--rwmixread=70", "--bs=4k"]);
    ran(command
        .args(["--size=4m", "--norandommap"])
        .arg(format!("--write_iolog={}", log.display())));
    let mut profiler = Profiler::new(ProfileLimits::default());
    let input = std::io::BufReader::new(std::fs::File::open(&log).unwrap());
    iolog::import(input, &mut profiler).unwrap();
    let file = file_of(&profiler, "/data");
    assert_eq!((file.reads + file.writes, file.block_bytes), (1024, Some(4096)));
    assert!((file.read_share.unwrap() - 0.7).abs() < 0.08, "{:?}", file.read_share);
    assert!(file.sequential_share.unwrap() < 0.1, "{:?}", file.sequential_share);
    assert_eq!((file.depth, file.direct, file.engine), (None, None, Engine::Unknown));
}

#[test]
fn requests_of_the_block_layer_from_queue_to_completion() {
    let mut all = All::default();
    let sample = include_str!("samples/blkparse.txt");
    let imported = blkparse::import(Cursor::new(sample), &mut all).unwrap();
    assert_eq!((imported.operations, all.files.len()), (7, 1));
    assert_eq!(all.files[0].path, Ok("device 7,0".to_owned()));
    let it = &all.operations;
    assert_eq!((it[0].asked, it[0].offset_bytes), (Asked::Write, Ok(2048 * 512)));
    assert_eq!((it[0].duration_ns, it[0].done_bytes), (Ok(19_000), Ok(8192)));
    assert_eq!((it[0].process, it[0].in_flight), (4711, Ok(1)), "of who queued it");
    assert_eq!((it[1].asked, it[1].in_flight), (Asked::Read, Ok(2)));
    assert_eq!((it[2].asked, it[2].done_bytes), (Asked::Sync(SyncCall::Fsync), Ok(0)));
    let merged = &it[3];
    assert_eq!((merged.asked_bytes, merged.duration_ns), (Ok(8192), Ok(30_000)));
    assert_eq!(it[4].asked, Asked::Discard);
    assert_eq!((it[5].error, it[5].done_bytes), (5, Ok(0)));
    assert_eq!((it[6].asked, it[6].done_bytes), (Asked::Write, Err(Unknown::NotEnded)));
    let told = |text: &str| {
        let result = blkparse::import(Cursor::new(text), &mut All::default());
        result.unwrap_err().to_string()
    };
    let hint = "no operation in 1 lines: make one with `blktrace` and `blkparse -i TRACE`";
    assert_eq!(told("CPU0 (sda):\n"), hint);
    let line = "8,0 1 1 0.5 7 Q R x + 8 [a]\n";
    assert_eq!(told(line), "line 1: the sector \"x\" is not a number");
    // A flush before the data is no flush alone.
    let text = "8,0 1 1 0.1 7 D FWFS 8 + 8 [a]\n8,0 1 2 0.2 7 C FWFS 8 + 8 [0]\n";
    let mut all = All::default();
    blkparse::import(Cursor::new(text), &mut all).unwrap();
    assert_eq!((all.operations[0].asked, all.operations[0].synchronous), (Asked::Write, true));
    // A device of the device mapper: nothing is issued.
    let text = "253,0 0 1 0.1 7 Q R 8 + 8 [a]\n253,0 0 2 0.2 7 Q R 16 + 8 [a]\n\
                253,0 0 3 0.3 0 C R 16 + 8 [0]\n";
    let mut all = All::default();
    blkparse::import(Cursor::new(text), &mut all).unwrap();
    assert_eq!(
        (all.operations[0].in_flight, all.operations[0].duration_ns),
        (Ok(2), Ok(100_000_000))
    );
}

mod hostile {
    use proptest::prelude::*;

    use super::*;

    const SAMPLES: [&str; 5] = [
        include_str!("samples/strace_positions.txt"),
        include_str!("samples/strace_threads.txt"),
        include_str!("samples/strace_libaio.txt"),
        include_str!("samples/blkparse.txt"),
        include_str!("samples/iolog_3.txt"),
    ];

    fn import_all(text: &[u8]) {
        let mut profiler =
            Profiler::new(ProfileLimits { files: 8, words: 64, ..ProfileLimits::default() });
        let _ = strace::import(Cursor::new(text), &mut profiler);
        let _ = blkparse::import(Cursor::new(text), &mut profiler);
        let _ = iolog::import(Cursor::new(text), &mut profiler);
        let profile = profiler.profile();
        let calls: u64 = profile.files.iter().map(|it| it.calls).sum();
        assert!(calls <= 3 * text.len() as u64);
    }

    proptest! {
        #[test]
        fn no_change_of_a_sample_ends_in_a_panic(
            which in 0..SAMPLES.len(),
            changes in prop::collection::vec((0_usize..8000, any::<u8>(), 0_u8..4), 0..12),
        ) {
            let mut text = SAMPLES[which].as_bytes().to_vec();
            for (at, byte, kind) in changes {
                let at = at % text.len().max(1);
                match kind {
                    0 => text[at] = byte,
                    1 => text.insert(at, byte),
                    2 => drop(text.remove(at)),
                    _ => text.splice(at..at, *b"99999999999999999999").for_each(drop),
                }
            }
            import_all(&text);
        }
    }
}

/// Each new thread was once looked for among all that there are, so that time grew with the square
/// of their number.
#[test]
fn many_threads_at_once_are_followed_one_by_one() {
    const THREADS: u32 = 100_000;
    let mut text = String::new();
    for number in 1..=THREADS {
        let at = f64::from(number) / 1000.0;
        text.push_str(&format!("{number} {at:.6} pwrite64(3</srv/x>, \"\"..., 1, 0) = 1 <0.1>\n"));
    }
    let mut profiler =
        Profiler::new(ProfileLimits { openings: 1 << 22, ..ProfileLimits::default() });
    let imported = strace::import(Cursor::new(text), &mut profiler).unwrap();
    assert_eq!(imported.operations, u64::from(THREADS));
    assert_eq!(profiler.profile().files[0].writes, u64::from(THREADS));
}

/// The one thread that is within a clone is whose child a new thread is.
#[test]
fn a_new_thread_is_the_child_of_the_only_one_that_makes_one() {
    let (all, _) = traced(
        "1 1.000000 openat(AT_FDCWD, \"/srv/x\", O_RDWR) = 3</srv/x> <0.1>\n\
         1 1.100000 write(3</srv/x>, \"\"..., 10) = 10 <0.1>\n\
         1 1.200000 clone(flags=CLONE_VM|CLONE_FILES|CLONE_THREAD <unfinished ...>\n\
         2 1.300000 write(3</srv/x>, \"\"..., 10) = 10 <0.1>\n\
         1 1.400000 <... clone resumed>) = 2 <0.1>\n\
         3 1.500000 write(3</srv/x>, \"\"..., 10) = 10 <0.1>\n",
    );
    let offsets: Vec<Known<u64>> = all.operations.iter().map(|it| it.offset_bytes).collect();
    assert_eq!(offsets, [Ok(0), Ok(10), Err(Unknown::Position)]);
    assert_eq!(all.operations[1].process, 1);
}
