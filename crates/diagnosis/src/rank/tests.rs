//! Chains of known truth.

use base::finding::{Certainty, Finding};
use model::tape::generation::Generation;
use model::tape::parameters::TapeParameters;
use proptest::prelude::*;

use super::*;
use crate::chain::{Link, SmallFiles, Source, Stream, TapeTarget, Window};
use crate::chain::{Reading, Target, WhyUnknown, Work};
use crate::change::Fastest;
use crate::line::{self, PIPE_BYTES, Role};
use crate::program::Compressor;
use crate::rules;
use crate::source::{Found, Tree};

fn measured(value: f64) -> Amount {
    Amount::of_trials(&[value]).unwrap()
}

/// 1 TB in large files that are read at `now`, and at `most` from a read-ahead of 2 MiB on.
fn stream(now: f64, most: f64) -> Source {
    let window = |bytes: u64| Window { bytes, rate: measured(most) };
    Source {
        shown: "/srv".to_owned(),
        large_bytes: 1_000_000_000_000,
        small_bytes: 0,
        small_files: 0,
        stream: Some(Stream {
            window_bytes: Some(128 << 10),
            now: measured(now),
            windows: vec![window(2 << 20), window(8 << 20)],
            request_bytes_max: None,
            most: measured(most),
        }),
        small: None,
        reading: Reading::OneByOne,
        is_whole: true,
    }
}

fn tape(name: &str) -> Target {
    let generation = Generation::all().iter().find(|it| it.name == name).unwrap();
    Target::Tape(Box::new(TapeTarget {
        shown: "/dev/nst0".to_owned(),
        parameters: TapeParameters::of(generation),
        speed_up: 1.0,
        ratio: 1.0,
        block_bytes_max: 1 << 20,
        is_virtual: true,
    }))
}

/// A line, with compressors that take `compressor` bytes a second and halve the data.
fn chain(line: &str, source: Source, target: Target, compressor: f64) -> (Chain, Typed) {
    let typed = line::typed(line).unwrap();
    let link = |program: &line::TypedProgram| Link {
        shown: program.name.clone(),
        stage: program.stage,
        work: match program.role {
            Role::Compresses => {
                Work::Compresses { rate: measured(compressor), ratio: 2.0, threads: 1.0 }
            }
            Role::Holds(bytes_per_second) => Work::Holds { bytes_per_second },
            Role::Unknown => Work::Unknown("it was not run".to_owned()),
            Role::Reads | Role::Passes => Work::Passes,
        },
        read_bytes: program.read_bytes,
        write_bytes: program.write_bytes,
        input_bytes: program.buffer_bytes.max(PIPE_BYTES),
    };
    let links = typed.programs.iter().map(link).collect();
    (Chain { source, links, target, processors: 4.0 }, typed)
}

fn ranked(chain: &Chain, typed: &Typed) -> (Ranking, Vec<Finding>) {
    let path = std::path::Path::new("/srv");
    let ground = Ground {
        typed: Some(typed),
        read_ahead_path: Some(path),
        absent: &[],
        own: None,
        fastest: None,
    };
    let ranking = rank(chain, &ground).unwrap();
    let findings = ranking.findings(chain, None);
    (ranking, findings)
}

fn commands(ranking: &Ranking) -> Vec<String> {
    ranking.steps.iter().filter_map(|step| step.changed.command.clone()).collect()
}

#[test]
fn the_read_ahead_comes_first_where_it_is_the_limit() {
    let (chain, typed) = chain("tar cf /dev/nst0 /srv", stream(46e6, 290e6), tape("LTO-6"), 1.0);
    let (ranking, findings) = ranked(&chain, &typed);
    assert_eq!(findings[0].rule, &rules::READ_AHEAD, "{findings:?}");
    assert_eq!(commands(&ranking)[0], "takeup tune set /srv read_ahead_kb=2048");
    let gain = ranking.steps[0].gain();
    // The drive's 160 MB/s come next, less what 10 KiB cost.
    assert!((1.5..3.6).contains(&gain.typical), "{gain:?}");
    assert_eq!(ranking.last.map(|it| it.station), Some(Station::Target));
    let last = findings.iter().find(|it| it.rule == &rules::DRIVE).unwrap();
    assert!(last.what.starts_with("then the drive /dev/nst0 is the limit: 160 MB/s"), "{last:?}");
}

#[test]
fn a_compressor_of_one_core_gets_all_of_them() {
    let line = "tar czf - /srv | dd of=/dev/nst0 bs=512k";
    let (chain, typed) = chain(line, stream(250e6, 290e6), tape("LTO-6"), 30e6);
    let (ranking, findings) = ranked(&chain, &typed);
    assert_eq!(findings[0].rule, &rules::COMPRESSOR, "{findings:?}");
    assert_eq!(commands(&ranking)[0], "tar cf - /srv -I 'pigz' | dd of=/dev/nst0 bs=512k");
    let gain = ranking.steps[0].gain();
    assert!((3.0..4.8).contains(&gain.typical), "{gain:?}");
    assert_eq!(findings[0].certainty, Certainty::Inferred);
}

/// Others that take a part of a core leave the rest of it; where they take most of it, more threads
/// may bring nothing, and are not proposed.
#[test]
fn a_part_of_a_core_is_used_too() {
    let line = "tar cf - /srv | gzip > /mnt/x";
    let (mut chain, typed) = chain(line, stream(250e6, 290e6), Target::Nowhere, 30e6);
    chain.processors = 1.8;
    let (ranking, findings) = ranked(&chain, &typed);
    assert_eq!(
        commands(&ranking),
        ["tar cf - /srv | pigz > /mnt/x"],
        "{findings:?} {:?}",
        ranking.now
    );
    let gain = ranking.steps[0].gain();
    assert!((1.5..2.0).contains(&gain.typical), "{gain:?}");
    for (processors, why) in [(1.4, "only a part of a second core"), (1.05, "no second core")] {
        chain.processors = processors;
        let (ranking, findings) = ranked(&chain, &typed);
        assert!(ranking.steps.is_empty(), "{findings:?}");
        assert!(findings[0].why.as_ref().unwrap().contains(why), "{findings:?}");
    }
}

/// `takeup backup --compress=gzip` is another library's gzip: what it does was tried.
#[test]
fn what_takeup_compresses_with_was_tried() {
    let small = Source {
        small_files: 5_000_000,
        small_bytes: 40_000_000_000,
        large_bytes: 0,
        stream: None,
        small: Some(SmallFiles { one_by_one: measured(5e-3), at_once: measured(1e-4) }),
        ..stream(1.0, 1.0)
    };
    let line = "tar cf - /srv | gzip > /mnt/x";
    let target = Target::Unknown { shown: "/mnt/x".to_owned(), why: WhyUnknown::NotWritten };
    let (chain, typed) = chain(line, small, target, 5e6);
    let path = std::path::Path::new("/srv");
    let gain = |own: Option<Compressor>| {
        let ground = Ground {
            typed: Some(&typed),
            read_ahead_path: Some(path),
            absent: &[],
            own,
            fastest: None,
        };
        let ranking = rank(&chain, &ground).unwrap();
        let step = ranking.steps.iter().find(|it| it.changed.change == Change::TakeupBackup);
        step.unwrap().gain().typical
    };
    // 1.6 MB/s in small files; four cores of 5 or 15 MB/s.
    let (same, faster) = (
        gain(None),
        gain(Some(Compressor { rate: measured(15e6), ratio: 2.0, seen_bytes: 1 << 20 })),
    );
    assert!((10.0..13.5).contains(&same) && faster > 2.0 * same, "{same} {faster}");
}

/// Without a free core a lower level or another library helps: each with its price, so only where
/// nothing else does.
#[test]
fn where_nothing_is_free_what_has_its_price_is_weighed() {
    let of_absent = |line: &str, processors: f64, own: f64, absent: &[&'static str]| {
        let (mut chain, typed) = chain(line, stream(250e6, 290e6), Target::Nowhere, 30e6);
        chain.processors = processors;
        let ground = Ground {
            typed: Some(&typed),
            read_ahead_path: None,
            absent,
            own: Some(Compressor { rate: measured(own), ratio: 2.0, seen_bytes: 1 << 20 }),
            fastest: Some(Fastest { level: Some("-1"), rate: 2.0, ratio: 0.9 }),
        };
        let ranking = rank(&chain, &ground).unwrap();
        (commands(&ranking), ranking.findings(&chain, None))
    };
    let of = |line: &str, processors: f64, own: f64| of_absent(line, processors, own, &[]);
    let (commands, findings) = of("tar cf - /srv | gzip -9c > /mnt/x", 1.0, 45e6);
    assert_eq!(commands[0], "tar cf - /srv | gzip -1 -c > /mnt/x", "{findings:?}");
    assert_eq!(findings[0].rule, &rules::COMPRESSOR);
    assert_eq!(findings[0].caveat.as_deref(), Some("its output becomes 11 % larger"));
    let (commands, findings) = of("tar czf - /srv | dd of=/dev/nst0 bs=512k", 1.0, 120e6);
    assert_eq!(commands[0], "takeup backup /srv --to nowhere --compress=gzip", "{findings:?}");
    assert!(
        findings[0].why.as_deref().unwrap().contains("30.0 MB/s of these data with it, and 120")
    );
    // Without pigz it has the cores, whatever one of them takes.
    let (commands, findings) = of_absent("tar cf - /srv | gzip > /mnt/x", 4.0, 30e6, &["pigz"]);
    assert!(commands[0].starts_with("takeup backup /srv"), "{findings:?}");
    assert!(findings[0].why.as_deref().unwrap().contains("on all cores"), "{findings:?}");
    // With free cores pigz makes the same, and comes first.
    let (commands, _) = of("tar cf - /srv | gzip > /mnt/x", 4.0, 45e6);
    assert_eq!(
        commands[..2],
        ["tar cf - /srv | pigz > /mnt/x", "tar cf - /srv | pigz -1 > /mnt/x"]
    );
}

/// dd's own 512 bytes cost more than a fast disk does; a slow one hides them.
#[test]
fn a_dd_without_a_size_holds_a_fast_source_back() {
    let of = |most: f64| {
        let target = Target::Unknown { shown: "/mnt/x".to_owned(), why: WhyUnknown::NotWritten };
        let line = "dd if=/srv/image of=/mnt/x status=none";
        let (chain, typed) = chain(line, stream(most, most), target, 1.0);
        let (ranking, findings) = ranked(&chain, &typed);
        (commands(&ranking), findings)
    };
    let (commands, findings) = of(2e9);
    let expected = "dd ibs=64k obs=64k if=/srv/image of=/mnt/x status=none";
    assert_eq!(commands, [expected], "{findings:?}");
    assert_eq!(findings[0].rule, &rules::BLOCKS);
    assert_eq!(findings[0].caveat, None);
    assert!(of(200e6).0.is_empty());
}

/// 780 MB at 199 MB/s are in the buffer of an LTO-6 for the most part when tar ends.
#[test]
fn the_time_ends_when_the_drive_has_written_its_buffer() {
    let source = |bytes: u64| Source { large_bytes: bytes, ..stream(250e6, 250e6) };
    let of = |target: Target| {
        let (chain, typed) =
            chain("tar -b 512 -cf /dev/nst0 /srv", source(780_000_000), target, 1.0);
        let (ranking, _) = ranked(&chain, &typed);
        780e6 / ranking.now.bytes.typical
    };
    // The drive writes 160 MB/s from the start to the end, and stops once for the filemark.
    let (tape, nowhere) = (of(tape("LTO-6")), of(Target::Nowhere));
    assert!((8.0..11.0).contains(&tape) && (3.0..3.3).contains(&nowhere), "{tape} {nowhere}");
}

/// 500 small files of 3.4 ms hold everything back, and nothing can be changed about them, since pv
/// is not in `takeup backup`: pigz brings a little, and was called the limit for it.
#[test]
fn what_brings_a_little_is_not_called_the_limit() {
    let of = |small_ms: f64| {
        let mut source = Source { large_bytes: 22_000_000, ..stream(85e6, 90e6) };
        (source.small_files, source.small_bytes) = (500, 3_000_000);
        let each = |ms: f64| measured(ms / 1e3);
        source.small =
            Some(SmallFiles { one_by_one: each(small_ms), at_once: each(small_ms / 10.0) });
        let line = "tar -cf - /srv | gzip -6 | pv -qL 60m | dd bs=512k of=/mnt/x";
        let (mut chain, typed) = chain(line, source, Target::Nowhere, 30e6);
        chain.processors = 2.0;
        ranked(&chain, &typed).1
    };
    let findings = of(3.4);
    assert_eq!(findings[0].rule, &rules::SMALL_FILES, "{findings:?}");
    assert!(findings[0].what.starts_with("the small files of /srv are the limit"), "{findings:?}");
    let beside = "what can be changed brings less: gzip takes a part of the time";
    assert_eq!(findings[1].what, beside, "{findings:?}");
    assert!(findings[1].command.is_some());
    let findings = of(0.1);
    assert_eq!(findings[0].what, "gzip is the limit", "{findings:?}");
}

/// Half its ring is full before the drive starts, so a small source is read first and then written.
#[test]
fn a_small_source_is_gathered_before_the_drive_starts() {
    let gain = |bytes: u64| {
        let source = Source { large_bytes: bytes, ..stream(50e6, 80e6) };
        let (chain, typed) = chain("tar -b 512 -cf /dev/nst0 /srv", source, tape("LTO-6"), 1.0);
        let (ranking, findings) = ranked(&chain, &typed);
        let step = ranking.steps.first().map(|it| (it.changed.change.clone(), it.gain().typical));
        (step, findings)
    };
    let (large, findings) = gain(100 << 30);
    assert!(matches!(large, Some((_, gain)) if (1.5..1.65).contains(&gain)), "{findings:?}");
    let (small, findings) = gain(40 << 20);
    assert!(!matches!(small, Some((Change::TakeupBackup, _))), "{findings:?}");
}

/// 500 MB at 115 MB/s are written without a stop, and yet the drive takes much of the time: it was
/// said to get less than its lowest speed.
#[test]
fn what_a_drive_takes_beside_the_data_is_not_called_stops() {
    let source = Source { large_bytes: 500_000_000, ..stream(115e6, 115e6) };
    let (chain, typed) = chain("tar -b 512 -cf /dev/nst0 /srv", source, tape("LTO-6"), 1.0);
    let (_, findings) = ranked(&chain, &typed);
    let beside = "the start and the end at /dev/nst0 are the limit";
    assert!(findings.iter().any(|it| it.what.ends_with(beside)), "{findings:?}");
    assert!(!findings.iter().any(|it| it.what.contains("stops and starts")), "{findings:?}");
    assert!(findings.iter().all(|it| it.rule != &rules::STOPS), "{findings:?}");
}

/// A read that is larger than the read-ahead goes to the disk as a whole: larger blocks help the
/// source, too, as far as the queue takes them.
#[test]
fn larger_blocks_read_larger_pieces() {
    let of = |most: Option<u64>| {
        let mut source = stream(46e6, 290e6);
        let own = source.stream.as_mut().unwrap();
        own.request_bytes_max = most;
        own.windows.insert(0, Window { bytes: 512 << 10, rate: measured(250e6) });
        let (chain, typed) = chain("tar cf /dev/nst0 /srv", source, tape("LTO-7"), 1.0);
        let (ranking, _) = ranked(&chain, &typed);
        ranking.steps[0].changed.change.clone()
    };
    assert_eq!(of(Some(1280 << 10)), Change::Blocks { bytes: 512 << 10, is_read_faster: true });
    assert!(matches!(of(Some(128 << 10)), Change::ReadAhead { .. }));
    assert!(matches!(of(None), Change::ReadAhead { .. }));
}

/// 200 MB/s read and 100 MB/s written, on one disk: 67 MB/s of each.
#[test]
fn one_disk_reads_and_writes_in_turn() {
    let of = |is_of_source: bool| {
        let rate = measured(100e6);
        let target = Target::Disk { shown: "/srv/x.tar".to_owned(), rate, is_of_source };
        let (chain, typed) = chain("tar cf /srv/x.tar /srv", stream(200e6, 200e6), target, 1.0);
        let (ranking, findings) = ranked(&chain, &typed);
        let is_told = findings.iter().any(|it| it.rule == &rules::SAME_DISK);
        assert_eq!(is_told, is_of_source, "{findings:?}");
        ranking.now.bytes.typical / 1e6
    };
    let (apart, together) = (of(false), of(true));
    assert!(
        (95.0..101.0).contains(&apart) && (60.0..67.0).contains(&together),
        "{apart} {together}"
    );
}

/// What comes out of a compressor is less: a rate limit behind it lets more of the source through.
#[test]
fn a_rate_limit_behind_a_compressor_counts_what_comes_there() {
    let line = "tar cf - /srv | gzip | pv -qL 15m > /mnt/srv.tar.gz";
    let (behind, typed) = chain(line, stream(250e6, 290e6), Target::Nowhere, 80e6);
    let (ranking, findings) = ranked(&behind, &typed);
    assert_eq!(findings[0].rule, &rules::PACE, "{findings:?}");
    let now = ranking.now.bytes.typical / (2.0 * f64::from(15 << 20));
    assert!((0.95..1.05).contains(&now), "{:?}", ranking.now);
    let line = "tar cf - /srv | pv -qL 15m | gzip > /mnt/srv.tar.gz";
    let (before, typed) = chain(line, stream(250e6, 290e6), Target::Nowhere, 80e6);
    let now = ranked(&before, &typed).0.now.bytes.typical / f64::from(15 << 20);
    assert!((0.95..1.05).contains(&now), "{now}");
}

#[test]
fn small_writes_to_a_drive_are_made_larger() {
    let Target::Tape(mut drive) = tape("LTO-6") else { unreachable!() };
    drive.parameters.command_overhead_ns.value = 1_000_000;
    let line = "tar cf /dev/nst0 /srv";
    let (chain, typed) = chain(line, stream(290e6, 290e6), Target::Tape(drive), 1.0);
    let (ranking, findings) = ranked(&chain, &typed);
    assert_eq!(findings[0].rule, &rules::BLOCKS, "{findings:?}");
    let first = &commands(&ranking)[0];
    assert!(first.starts_with("tar cf /dev/nst0 /srv -b "), "{first}");
    // A write of 10 KiB takes 1 ms and its bytes: under 10 MB/s.
    assert!(ranking.now.bytes.typical < 10.5e6, "{:?}", ranking.now);
}

#[test]
fn a_rate_limit_is_named_before_all_else() {
    let line = "tar cf - /srv | pv -qL 10m > /mnt/x";
    let target = Target::Unknown { shown: "/mnt/x".to_owned(), why: WhyUnknown::NotWritten };
    let (chain, typed) = chain(line, stream(46e6, 290e6), target, 1.0);
    let (ranking, findings) = ranked(&chain, &typed);
    assert_eq!(findings[0].rule, &rules::PACE, "{findings:?}");
    assert_eq!(commands(&ranking)[0], "tar cf - /srv | pv -q > /mnt/x");
    assert!((ranking.now.bytes.typical / 10.49e6 - 1.0).abs() < 0.05, "{:?}", ranking.now);
    // Then the read-ahead, and what the target takes is not known.
    assert_eq!(findings[1].rule, &rules::READ_AHEAD);
    assert!(findings.iter().any(|it| it.rule == &rules::NOT_KNOWN));
}

#[test]
fn small_files_are_read_several_at_once() {
    let small = Source {
        small_files: 5_000_000,
        small_bytes: 40_000_000_000,
        large_bytes: 0,
        stream: None,
        small: Some(SmallFiles { one_by_one: measured(5e-3), at_once: measured(1e-3) }),
        ..stream(1.0, 1.0)
    };
    let (chain, typed) = chain("tar cf /dev/nst0 /srv", small, tape("LTO-5"), 1.0);
    let (ranking, findings) = ranked(&chain, &typed);
    assert_eq!(findings[0].rule, &rules::SMALL_FILES, "{findings:?}");
    assert_eq!(commands(&ranking)[0], "takeup backup /srv --to /dev/nst0");
    let gain = ranking.steps[0].gain();
    assert!((4.0..5.5).contains(&gain.typical), "{gain:?}");
}

#[test]
fn where_nothing_helps_the_slowest_is_named_and_nothing_proposed() {
    let (chain, typed) =
        chain("tar -b 512 -cf /dev/nst0 /srv", stream(400e6, 400e6), tape("LTO-5"), 1.0);
    let (ranking, findings) = ranked(&chain, &typed);
    assert!(ranking.steps.is_empty(), "{findings:?}");
    assert_eq!(findings[0].rule, &rules::DRIVE, "{findings:?}");
    assert!((ranking.now.bytes.typical / 140e6 - 1.0).abs() < 0.1, "{:?}", ranking.now);
}

#[test]
fn what_was_not_run_is_said_to_be_unknown() {
    let line = "pg_dump shop | gzip > /dev/nst0";
    let (chain, typed) = chain(line, stream(400e6, 400e6), tape("LTO-5"), 30e6);
    let (_, findings) = ranked(&chain, &typed);
    let unknown = findings.iter().find(|it| it.rule == &rules::NOT_KNOWN).unwrap();
    assert!(unknown.what.contains("pg_dump"), "{unknown:?}");
}

/// The programs of the line may read it.
#[test]
fn what_was_not_seen_of_the_source_is_told() {
    let line = "tar cf /dev/nst0 /srv";
    let (chain, typed) = chain(line, stream(400e6, 400e6), tape("LTO-5"), 1.0);
    let (ranking, _) = ranked(&chain, &typed);
    let tree = Tree {
        other_file_systems: vec!["/srv/a b".into(), "/srv/mail".into()],
        other_file_systems_count: 5,
        problems: 1,
        ..Tree::default()
    };
    let findings = ranking.findings(&chain, Some(&Found { tree, ..Found::default() }));
    let told = |part: &str| findings.iter().find(|it| it.what.contains(part)).unwrap();
    let others = told("/srv/a b, /srv/mail, 3 more are other file systems");
    assert_eq!(others.action.as_deref(), Some("takeup diagnose '/srv/a b' looks there"));
    told("1 file or folder of the source could not be looked at");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn no_chain_is_faster_than_its_slowest_station(
        now in 10e6..600e6f64,
        compressor in 5e6..300e6f64,
        generation in 3usize..9,
        block in 1u64..64,
    ) {
        let target = Target::Tape(Box::new(TapeTarget {
            shown: "/dev/nst0".to_owned(),
            parameters: TapeParameters::of(&Generation::all()[generation]),
            speed_up: 1.0,
            ratio: 1.0,
            block_bytes_max: 1 << 20,
            is_virtual: true,
        }));
        let line = format!("tar cf - /srv | gzip | dd of=/dev/nst0 obs={}k", block * 16);
        let (chain, typed) = chain(&line, stream(now, 600e6), target, compressor);
        let forecast = forecast(&chain, Pick::Typical).unwrap().bytes_per_second;
        for station in stations(&chain) {
            let own = station.now.map_or(f64::INFINITY, |it| it.typical);
            prop_assert!(forecast <= own * 1.03, "{forecast} of {station:?}");
        }
        let (ranking, _) = ranked(&chain, &typed);
        for step in &ranking.steps {
            prop_assert!(step.after.bytes.typical >= step.before.bytes.typical * WORTH);
            prop_assert!(step.gain().low <= step.gain().high);
        }
    }
}
