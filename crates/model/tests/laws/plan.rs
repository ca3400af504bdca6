//! Plans compared with sums by hand, and advice compared with the facts.

use model::ModelError;
use model::plan::alternatives::{Alternative, Choices, Effort, alternatives, best};
use model::plan::{Compression, Drain, Limit, PlanSource, Refill, Setup, plan};
use model::program::Ratio;
use model::tape::generation::Generation;
use model::tape::parameters::TapeParameters;
use proptest::prelude::*;

const MB: u64 = 1_000_000;
const TB: u64 = 1_000_000 * MB;

fn generation(number: u8) -> &'static Generation {
    let name = format!("LTO-{number}");
    Generation::all().iter().find(|generation| generation.name == name).unwrap()
}

fn setup(number: u8, source_mb: u64, size_bytes: u64) -> Setup {
    Setup {
        drive: TapeParameters::of(generation(number)),
        drives: 1,
        source: PlanSource { size_bytes, files: 0, bytes_per_second: source_mb * MB, file_ns: 0 },
        compression: Compression::None,
        ring_bytes: 64 << 20,
        start_fill_percent: 0,
        refill: Refill::WhenSlow,
        drain: Drain::Unlimited,
        block_bytes: 1 << 20,
        change_ns: 60_000_000_000,
    }
}

fn choices<'a>(generations: &'a [&'static Generation]) -> Choices<'a> {
    Choices {
        drive_ratio: Ratio::of(2.0),
        software: Some((Ratio::of(2.5), 800 * MB)),
        staging_bytes_per_second: 400 * MB,
        host_bytes_per_second: None,
        generations,
    }
}

#[test]
fn a_fast_source_writes_at_the_highest_step() {
    let plan = plan(&setup(7, 1000, 2 * TB)).unwrap();
    // 2 TB at 306 MB/s, and 37 turns of 2 s.
    let by_hand_s = 2e12 / 306e6 + 37.0 * 2.0;
    assert!((plan.seconds / by_hand_s - 1.0).abs() < 0.01, "{}", plan.seconds);
    assert_eq!((plan.volumes, plan.back_hitches, plan.limit), (1, 0, Limit::Medium));
}

#[test]
fn volumes_and_their_changes_are_counted() {
    let plan = plan(&setup(7, 1000, 13 * TB)).unwrap();
    // 5.88 TB fit before the early warning.
    assert_eq!(plan.volumes, 3);
    let change_s = 2.0 * (20.0 + 15.0 + 60.0 + 2.0 + 3.0);
    assert!((plan.change_seconds - change_s).abs() < 1.0, "{}", plan.change_seconds);
}

#[test]
fn small_files_are_time_of_their_own() {
    let mut setup = setup(9, 500, TB);
    setup.source.files = 10_000_000;
    setup.source.file_ns = 400_000;
    let plan = plan(&setup).unwrap();
    let by_hand_s = 1e12 / 500e6 + 4000.0;
    assert!((plan.seconds / by_hand_s - 1.0).abs() < 0.02, "{}", plan.seconds);
    assert_eq!(plan.limit, Limit::Source);
    assert_eq!(plan.archive_bytes, TB + 7680 * MB);
}

#[test]
fn a_slow_source_stops_the_tape_as_often_as_the_formula_says() {
    let slow = setup(8, 60, TB);
    let unpaced = plan(&slow).unwrap();
    // The facts: B = 0.8 GB, v = 112, r = 60: about 580 stops for each TB.
    assert!((unpaced.back_hitches as f64 / 580.0 - 1.0).abs() < 0.05, "{}", unpaced.back_hitches);
    let ring_bytes = 16 << 30;
    let paced =
        Setup { ring_bytes, start_fill_percent: 100, drain: Drain::LowestStep, ..slow.clone() };
    let paced = plan(&paced).unwrap();
    let formula = 1e12 / (ring_bytes as f64 * 112.0 / (112.0 - 60.0));
    assert!((paced.back_hitches as f64 / formula - 1.0).abs() < 0.1, "{}", paced.back_hitches);
    assert!((paced.seconds / unpaced.seconds - 1.0).abs() < 0.05);
    assert!(slow.is_slow() && !setup(8, 120, TB).is_slow());
}

/// With a source between the lowest and the highest step, a writer that waits for a full ring
/// causes the stops that it is meant to save.
#[test]
fn waiting_for_a_full_ring_is_for_slow_sources_only() {
    let hitches = |refill| {
        let ring = Setup { ring_bytes: 1 << 30, start_fill_percent: 95, ..setup(6, 70, TB) };
        plan(&Setup { refill, ..ring }).unwrap().back_hitches
    };
    assert_eq!((hitches(Refill::Never), hitches(Refill::WhenSlow)), (0, 0));
    assert!(hitches(Refill::Always) > 500);
}

/// A drive that matches its speed to the source is not reported to stop, with or without a ring.
#[test]
fn a_source_between_the_speeds_is_planned_without_stops() {
    for (number, source_mb) in [(3, 45), (3, 63), (4, 57), (4, 70), (5, 60), (9, 200)] {
        for ring_bytes in [64 << 20, 1 << 30, 16 << 30] {
            let setup = Setup { ring_bytes, ..setup(number, source_mb, 2 * TB) };
            let plan = plan(&setup).unwrap();
            assert_eq!(plan.back_hitches, 0, "LTO-{number} at {source_mb} MB/s, {ring_bytes}");
            assert_eq!(plan.limit, Limit::Source);
        }
    }
}

#[test]
fn each_part_can_be_the_limit() {
    let check = |setup: Setup, limit| assert_eq!(plan(&setup).unwrap().limit, limit);
    check(setup(7, 100, TB), Limit::Source);
    check(setup(7, 5000, TB), Limit::Medium);
    let drive = Compression::Drive(Ratio::of(5.0));
    check(Setup { compression: drive, ..setup(7, 5000, TB) }, Limit::Interface);
    check(Setup { block_bytes: 2048, ..setup(7, 5000, TB) }, Limit::Commands);
    let software = Compression::Software { ratio: Ratio::of(3.0), bytes_per_second: 200 * MB };
    check(Setup { compression: software, ..setup(7, 5000, TB) }, Limit::SoftwareCompression);
}

/// Compression raises the rate that the host has to deliver: off is best for a slow source, on for
/// a fast one.
#[test]
fn advice_on_compression_depends_on_the_source() {
    let with = |source_mb| {
        let compression = Compression::Drive(Ratio::of(2.0));
        let setup = Setup { compression, ..setup(9, source_mb, 4 * TB) };
        let choices = Choices { software: None, ..choices(&[]) };
        let list = alternatives(&setup, "asked", &choices).unwrap();
        best(&list, Effort::Setting).unwrap().name.clone()
    };
    assert_eq!(with(250), "drive compression off");
    assert_eq!(with(900), "asked");
}

/// A source that keeps one drive in motion makes two drives stop; a source that is faster than a
/// drive profits from a second one.
#[test]
fn the_number_of_drives_is_weighed() {
    let list = |drives, source_mb| {
        let setup = Setup { drives, ..setup(8, source_mb, 20 * TB) };
        alternatives(&setup, "asked", &Choices { software: None, ..choices(&[]) }).unwrap()
    };
    let plan_of = |list: &[Alternative], name: &str| {
        list.iter().find(|one| one.name == name).map(|one| one.plan)
    };
    let two = list(2, 150);
    let (asked, one) = (two[0].plan, plan_of(&two, "one drive").unwrap());
    assert!(asked.back_hitches > 1000 && one.back_hitches == 0, "{asked:?} {one:?}");
    assert_eq!(best(&two, Effort::Setting).unwrap().name, "one drive");
    let more = |list: &[Alternative]| plan_of(list, "2 drives").is_some();
    assert!(!more(&list(1, 150)), "the source is the limit");
    let fast = list(1, 700);
    assert!(plan_of(&fast, "2 drives").unwrap().seconds < fast[0].plan.seconds * 0.6);
    assert_eq!(plan_of(&fast, "one drive"), None);
}

/// The limit of a staged backup is that of its longer half.
#[test]
fn the_limit_of_staging_is_named() {
    let limit = |source_mb, staging_mb| {
        let choices = Choices { staging_bytes_per_second: staging_mb * MB, ..choices(&[]) };
        let list = alternatives(&setup(8, source_mb, TB), "asked", &choices).unwrap();
        list.iter().find(|one| one.name == "staged to disk first").unwrap().plan.limit
    };
    assert_eq!(limit(60, 400), Limit::Source);
    assert_eq!(limit(500, 400), Limit::Medium);
    assert_eq!(limit(500, 200), Limit::StagingDisk);
}

#[test]
fn the_list_has_what_was_promised() {
    let generations = [generation(6), generation(8)];
    let list = alternatives(&setup(7, 60, TB), "asked", &choices(&generations)).unwrap();
    let names: Vec<&str> = list.iter().map(|one| one.name.as_str()).collect();
    let expected = [
        "asked",
        "drive compression on",
        "compression in software",
        "256 MiB of memory, fill first",
        "1 GiB of memory, fill first",
        "4 GiB of memory, fill first",
        "16 GiB of memory, fill first",
        "64 GiB of memory, fill first",
        "at most 101 MB/s",
        "each block as it comes",
        "start at 25 % of the memory",
        "start at 50 % of the memory",
        "start at 100 % of the memory",
        "two such sources at once",
        "staged to disk first",
        "LTO-6",
        "LTO-8",
    ];
    assert_eq!(names, expected);
    // Each setting has options to type.
    let typed = |name: &str| list.iter().find(|one| one.name == name).unwrap().options.clone();
    let is_setting = |one: &&Alternative| one.effort == Effort::Setting;
    assert!(list.iter().filter(is_setting).all(|one| one.options.is_some()));
    assert_eq!(
        typed("4 GiB of memory, fill first").as_deref(),
        Some("--ring 4G --start-fill 100 --rate-limit 101MB")
    );
    // 60 MB/s is below the lowest step of LTO-7, and within those of LTO-6.
    assert_eq!(best(&list, Effort::Asked).unwrap().name, "asked");
    let plan_of = |name: &str| list.iter().find(|one| one.name == name).unwrap().plan;
    let hitches = |name: &str| plan_of(name).back_hitches;
    assert_eq!((hitches("LTO-6"), hitches("staged to disk first")), (0, 0));
    assert!(hitches("64 GiB of memory, fill first") < hitches("4 GiB of memory, fill first"));
    // Compression halves the bytes that reach the medium, so each of them sees more stops.
    let per_byte = |name: &str| hitches(name) as f64 / plan_of(name).medium_bytes as f64;
    assert!(per_byte("drive compression on") > 1.5 * per_byte("asked"));
}

#[test]
fn nothing_is_planned_without_data() {
    let zero = |setup: Setup| matches!(plan(&setup), Err(ModelError::Zero { .. }));
    assert!(zero(setup(7, 0, TB)) && zero(setup(7, 10, 0)));
    assert!(zero(Setup { drives: 0, ..setup(7, 10, TB) }));
    assert!(zero(Setup { block_bytes: 0, ..setup(7, 10, TB) }));
    let many = Setup { drives: 1, ..setup(1, 10, u64::MAX / 2) };
    assert!(matches!(plan(&many), Err(ModelError::TooManyVolumes { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// No plan is faster than its limit, and none without stops is much slower.
    #[test]
    fn a_plan_keeps_to_its_limit(
        number in 1u8..11,
        source_mb in 1u64..2000,
        size_gb in 50u64..20_000,
        permille in 1000u64..5000,
        drives in 1u64..5,
    ) {
        let compression = Compression::Drive(Ratio { permille });
        let size_bytes = size_gb * 1000 * MB;
        let setup = Setup { compression, drives, ..setup(number, source_mb, size_bytes) };
        let plan = plan(&setup).unwrap();
        prop_assert!(plan.bytes_per_second <= plan.limit_bytes_per_second * 1.001);
        let writing_s = plan.seconds - plan.change_seconds;
        let least_s = size_bytes as f64 / plan.limit_bytes_per_second;
        // Start and end, turns of wraps, and steps that do not match exactly.
        let fixed_s = 3.0 + 2.0 * setup.drive.buffer_bytes.value as f64
            / setup.drive.lowest_bytes_per_second() as f64;
        prop_assert!(writing_s <= least_s * 1.2 + fixed_s, "{} {}", writing_s, least_s);
        prop_assert!(plan.volumes * setup.drive.capacity_bytes.value >= plan.medium_bytes);
    }
}

/// Options are tried in both directions: memory, start fill, and small blocks even if the source
/// hides their cost.
#[test]
fn memory_start_fill_and_blocks_are_alternatives_like_others() {
    let names = |setup: &Setup| -> Vec<String> {
        let list = alternatives(setup, "as asked", &choices(&[])).unwrap();
        list.into_iter().map(|one| one.name).collect()
    };
    let slow = Setup { ring_bytes: 4 << 30, block_bytes: 10 << 10, ..setup(8, 60, TB) };
    let list = names(&slow);
    let wanted = [
        "256 MiB of memory, fill first",
        "16 GiB of memory, fill first",
        "each block as it comes",
        "start at 25 % of the memory",
        "start at 100 % of the memory",
        "blocks of 64 KiB",
    ];
    for name in wanted {
        assert!(list.iter().any(|one| one == name), "{name}: {list:?}");
    }
    let asked = Setup { start_fill_percent: 50, ..slow };
    assert!(!names(&asked).iter().any(|one| one == "start at 50 % of the memory"));
    let fast = names(&Setup { ring_bytes: 4 << 30, ..setup(7, 1000, TB) });
    assert!(fast.iter().any(|one| one == "1 GiB of memory"), "{fast:?}");
    assert!(!fast.iter().any(|one| one == "4 GiB of memory"), "{fast:?}");
    assert!(!fast.iter().any(|one| one.starts_with("start at")), "{fast:?}");
}

/// A larger ring, and a higher start fill, stop the tape less often.
#[test]
fn a_ring_that_is_smaller_or_starts_earlier_stops_more_often() {
    let slow = Setup { ring_bytes: 4 << 30, start_fill_percent: 95, ..setup(8, 60, TB) };
    let list = alternatives(&slow, "as asked", &choices(&[])).unwrap();
    let stops = |name: &str| {
        list.iter().find(|one| one.name == name).map(|one| one.plan.back_hitches).unwrap()
    };
    assert!(stops("256 MiB of memory, fill first") > stops("1 GiB of memory, fill first"));
    assert!(stops("1 GiB of memory, fill first") > stops("16 GiB of memory, fill first"));
    assert!(stops("start at 25 % of the memory") > stops("start at 100 % of the memory"));
}

/// However small blocks are, all their commands are counted: the time follows from the rate of the
/// commands.
#[test]
fn tiny_blocks_take_as_long_as_their_commands() {
    for block_bytes in [4 << 10, 2 << 10, 512, 100] {
        let plan = plan(&Setup { block_bytes, ..setup(8, 100, 5 * TB) }).unwrap();
        assert_eq!(plan.limit, Limit::Commands, "{block_bytes}");
        let least = 5.0 * TB as f64 / plan.limit_bytes_per_second;
        let ratio = plan.seconds / least;
        assert!((0.98..1.1).contains(&ratio), "{block_bytes}: {ratio}");
    }
}

/// 10 KiB blocks keep an LTO-7 busy with commands; the list has larger ones, and they are better.
#[test]
fn larger_blocks_are_weighed_where_commands_are_the_limit() {
    let small = Setup { block_bytes: 10 << 10, ..setup(7, 1000, TB) };
    let list = alternatives(&small, "as asked", &choices(&[])).unwrap();
    assert_eq!(list[0].plan.limit, Limit::Commands);
    let named = |name: &str| list.iter().find(|one| one.name == name).unwrap();
    assert!(named("blocks of 64 KiB").plan.seconds < list[0].plan.seconds * 0.8);
    let (smaller, larger) = (named("blocks of 256 KiB"), named("blocks of 1024 KiB"));
    assert!(larger.plan.seconds <= smaller.plan.seconds, "{larger:?}");
    let large = alternatives(&setup(7, 1000, TB), "as asked", &choices(&[])).unwrap();
    assert!(large.iter().all(|one| !one.name.starts_with("blocks of ")));
}
