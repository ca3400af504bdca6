//! A disk with heads: where its bytes are, what a request costs by its place, and what the drive's
//! own order of requests brings.

use model::disk::{
    Completion, DiskChanges, DiskModel, DiskParameters, Heads, Operation, Positioning, SeekCurve,
    time_of_reads,
};
use proptest::prelude::*;

const TB: u64 = 1_000_000_000_000;
const SECTOR_BYTES: u64 = 512;

fn heads_of(disk: &DiskParameters) -> Heads {
    match disk.positioning {
        Positioning::Heads(heads) => heads,
        Positioning::Constant { .. } => panic!("{disk:?}"),
    }
}

fn with_queue(mut disk: DiskParameters, queue: usize) -> DiskParameters {
    disk.positioning = Positioning::Heads(Heads { queue, ..heads_of(&disk) });
    disk
}

fn spindles() -> [DiskParameters; 2] {
    [DiskParameters::sata7200(), DiskParameters::sas15k()]
}

/// Reads of 4 KiB in places that are the same in each run.
fn random_reads(count: usize, within_bytes: u64) -> Vec<(u64, u64)> {
    let mut place = 1u64;
    let mut next = || {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        // The low bits of such a generator repeat.
        ((place >> 24) % (within_bytes >> 12)) << 12
    };
    (0..count).map(|_| (next(), 4096)).collect()
}

/// Curves whose root and line both rise.
fn curves() -> impl Strategy<Value = (SeekCurve, u64)> {
    (100_000u64..2_000_000, 2u64..40, 0.0..1.0, 2u64..400_000).prop_map(
        |(single_ns, times, place, cylinders)| {
            let full_ns = single_ns * times;
            let (least, most) = ((2 * single_ns + full_ns) / 3, (7 * single_ns + 8 * full_ns) / 15);
            let average_ns = least + ((most - least) as f64 * place) as u64;
            (SeekCurve { single_ns, average_ns, full_ns }, cylinders)
        },
    )
}

proptest! {
    #[test]
    fn a_seek_takes_longer_the_further_it_goes(
        (curve, cylinders) in curves(),
        places in proptest::collection::vec(0.0..1.0, 1..30),
    ) {
        prop_assert_eq!(curve.ns(0, cylinders), 0);
        prop_assert_eq!(curve.ns(1, cylinders), curve.single_ns);
        if cylinders > 2 {
            prop_assert!(curve.ns(cylinders - 1, cylinders).abs_diff(curve.full_ns) <= 1);
        }
        let mut distances: Vec<u64> =
            places.iter().map(|place| (place * cylinders as f64) as u64).collect();
        distances.sort_unstable();
        for pair in distances.windows(2) {
            prop_assert!(curve.ns(pair[0], cylinders) <= curve.ns(pair[1], cylinders) + 1);
        }
    }

    #[test]
    fn the_mean_of_all_seeks_is_the_average((curve, _) in curves()) {
        const CYLINDERS: u64 = 20_000;
        // Of all pairs of cylinders, 2 (n - d) are d apart.
        let total: u128 = (1..CYLINDERS)
            .map(|far| u128::from(2 * (CYLINDERS - far)) * u128::from(curve.ns(far, CYLINDERS)))
            .sum();
        let mean = total as f64 / (CYLINDERS as f64).powi(2);
        prop_assert!((mean / curve.average_ns as f64 - 1.0).abs() < 0.005, "{}", mean);
    }

    /// However the caller's steps are, each request is complete once, and none before it could be.
    #[test]
    fn no_request_is_lost_and_steps_change_nothing(
        servers in 1usize..4,
        requests in proptest::collection::vec(
            (0u64..3 * TB / SECTOR_BYTES, 0u64..4000, 0u64..20_000, 0u8..20),
            1..80,
        ),
    ) {
        let disk = DiskParameters { servers, ..DiskParameters::array(4) };
        let run = |steps: u64| {
            let mut model = DiskModel::new(disk.clone());
            let (mut now_ns, mut arrived, mut done) = (0, Vec::new(), Vec::<Completion>::new());
            for &(sector, sectors, pause_us, kind) in &requests {
                for _ in 0..steps {
                    now_ns += pause_us * 1000 / steps;
                    if steps > 1 {
                        done.extend(model.advance(now_ns));
                    }
                }
                let (offset, bytes) = (sector * SECTOR_BYTES, sectors * SECTOR_BYTES);
                let operation = match kind {
                    0 => Operation::Flush,
                    1 => Operation::Discard { offset },
                    2..10 => Operation::Write { offset, bytes },
                    _ => Operation::Read { offset, bytes },
                };
                arrived.push((model.arrive(now_ns, operation), now_ns, operation));
            }
            done.extend(model.advance(u64::MAX));
            done.sort_by_key(|completion| completion.ticket);
            assert_eq!(model.next_ns(), None);
            (arrived, done)
        };
        let (arrived, done) = run(1);
        prop_assert_eq!(arrived.len(), done.len());
        let mut latest_ns = 0;
        for ((ticket, now_ns, operation), completion) in arrived.iter().zip(&done) {
            prop_assert_eq!(*ticket, completion.ticket);
            let least_ns = match operation {
                Operation::Read { bytes: 0, .. } | Operation::Write { bytes: 0, .. } => 0,
                Operation::Flush => disk.command_ns + latest_ns.max(*now_ns) - now_ns,
                _ => disk.command_ns,
            };
            prop_assert!(completion.done_ns >= now_ns + least_ns, "{:?}", operation);
            if *operation != Operation::Flush {
                latest_ns = latest_ns.max(completion.done_ns);
            }
        }
        // With pauses that all steps divide.
        if requests.iter().all(|request| request.2 % 4 == 0) {
            prop_assert_eq!(done, run(4).1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// The order of a drive looks one request ahead, so it can be a little worse than the order of
    /// arrival for few requests: never by more than a twentieth and one full stroke.
    #[test]
    fn a_queue_is_hardly_ever_slower(
        places in proptest::collection::vec(0u64..3 * TB / 4096, 1..200),
        depth in 1usize..64,
    ) {
        let reads: Vec<(u64, u64)> = places.iter().map(|place| (place << 12, 4096)).collect();
        for disk in spindles() {
            let sorted_ns = time_of_reads(&disk, &reads, depth);
            let first_come_ns = time_of_reads(&with_queue(disk.clone(), 1), &reads, depth);
            let stroke_ns = heads_of(&disk).seek.full_ns + heads_of(&disk).turn_ns() as u64;
            prop_assert!(sorted_ns as f64 <= first_come_ns as f64 * 1.05 + stroke_ns as f64);
        }
    }

    /// What lies between two reads passes under the heads: up to the bytes of a turn it costs the
    /// time of its bytes, further away a seek and no more than a turn.
    #[test]
    fn a_gap_costs_its_bytes(
        begin in 0u64..2000 * TB / 1000 / SECTOR_BYTES,
        bytes in 8u64..256,
        gap in 0u64..20_000,
    ) {
        let disk = DiskParameters::sata7200();
        let [begin, bytes, gap] = [begin, bytes, gap].map(|it| it * SECTOR_BYTES);
        let one = time_of_reads(&disk, &[(begin, bytes)], 1);
        let through = time_of_reads(&disk, &[(begin, bytes + gap + bytes)], 1);
        let two = time_of_reads(&disk, &[(begin, bytes), (begin + bytes + gap, bytes)], 1);
        let heads = heads_of(&disk);
        let most_ns = one + heads.seek.single_ns * 2 + heads.turn_ns() as u64
            + 2 * disk.command_ns + bytes * 1_000_000_000 / 100_000_000;
        // Pieces that are in the cache already cost the command and the link.
        let cached_ns = one + disk.command_ns + bytes * 1_000_000_000 / disk.link_bytes_per_second;
        if gap < 1 << 20 {
            prop_assert!(two.abs_diff(through.max(cached_ns)) < 200_000, "{} {}", two, through);
        }
        prop_assert!(two <= most_ns, "{} {} {}", two, through, most_ns);
    }
}

/// Reads in a row at the outer edge, in the middle and at the inner edge.
#[test]
fn streams_have_the_rate_of_their_tracks() {
    for disk in spindles() {
        let heads = heads_of(&disk);
        let rate = |from: u64, depth| {
            let reads: Vec<_> = (0..512).map(|block| (from + (block << 18), 1 << 18)).collect();
            let jump_ns = time_of_reads(&disk, &reads[..1], 1);
            let ns = time_of_reads(&disk, &reads, depth) - jump_ns;
            (511 << 18) as f64 / (ns as f64 / 1e9)
        };
        let outer = disk.server_bytes_per_second as f64;
        let inner = outer * heads.inner_rate_percent as f64 / 100.0;
        for depth in [1, 4] {
            assert!((rate(0, depth) / outer - 1.0).abs() < 0.01, "{}", rate(0, depth));
            let last = heads.capacity_bytes - (512 << 18);
            assert!((rate(last, depth) / inner - 1.0).abs() < 0.01, "{}", rate(last, depth));
            let middle = rate(heads.capacity_bytes / 2, depth);
            assert!(inner * 1.2 < middle && middle < outer * 0.95, "{middle}");
        }
    }
}

/// Bytes are denser outside, so random bytes are a little nearer to each other than random
/// cylinders.
#[test]
fn random_reads_take_an_average_seek_and_half_a_turn() {
    for disk in spindles() {
        let reads = random_reads(4000, heads_of(&disk).capacity_bytes);
        let mean_ns = time_of_reads(&disk, &reads, 1) / 4000;
        let expected_ns = disk.positioning.mean_ns() + disk.command_ns;
        let off = mean_ns as f64 / expected_ns as f64 - 1.0;
        assert!((-0.03..0.01).contains(&off), "{mean_ns} {expected_ns}");
    }
}

/// 32 requests to choose from bring two to three times as many reads as one. That is the model's;
/// no measurement of a real drive stands behind the bounds.
#[test]
fn a_queue_brings_more_reads() {
    for disk in spindles() {
        let reads = random_reads(4000, heads_of(&disk).capacity_bytes);
        let [alone, queued] = [1, 32].map(|depth| time_of_reads(&disk, &reads, depth) as f64);
        assert!((1.8..3.5).contains(&(alone / queued)), "{}", alone / queued);
        let unsorted = time_of_reads(&with_queue(disk.clone(), 1), &reads, 32) as f64;
        assert!((unsorted / alone - 1.0).abs() < 0.03, "only the commands overlap");
    }
}

/// A sorted list needs a short seek and half a turn for each read, where an unsorted one needs an
/// average seek. Where all of it is near, only the turns are left to be saved.
#[test]
fn the_order_of_reads_matters() {
    let disk = DiskParameters::sata7200();
    let times = |within_bytes| {
        let mut reads = random_reads(4000, within_bytes);
        let as_listed = time_of_reads(&disk, &reads, 1);
        reads.sort_unstable();
        time_of_reads(&disk, &reads, 1) as f64 / as_listed as f64
    };
    assert!((0.35..0.5).contains(&times(3 * TB)), "{}", times(3 * TB));
    assert!((0.7..0.8).contains(&times(TB / 50)), "{}", times(TB / 50));
    // A mean gap of 250 KB is read through.
    assert!(times(TB / 1000) < 0.35, "{}", times(TB / 1000));
}

/// One far away request among others that never end.
#[test]
fn no_request_waits_forever() {
    let disk = DiskParameters::sata7200();
    let mut model = DiskModel::new(disk.clone());
    let near = random_reads(20_000, 1 << 30);
    let operation = |(offset, bytes)| Operation::Read { offset, bytes };
    let mut near = near.into_iter().map(operation);
    for _ in 0..8 {
        model.arrive(0, near.next().unwrap());
    }
    let far = model.arrive(0, operation((5 * TB / 2, 4096)));
    let done_ns = loop {
        let next_ns = model.next_ns().unwrap();
        let Some(found) = model.advance(next_ns).pop() else { continue };
        if found.ticket == far {
            break found.done_ns;
        }
        model.arrive(found.done_ns, near.next().unwrap());
    };
    assert!((1_000_000_000..1_100_000_000).contains(&done_ns), "{done_ns}");
}

/// Long after a read, what was read on is in the cache, and more once the drive has read further.
#[test]
fn what_was_read_on_costs_no_positioning() {
    let disk = DiskParameters::sata7200();
    let mut model = DiskModel::new(disk.clone());
    let mut now_ns = model.submit(0, 0, 4096);
    assert_eq!(model.counters().seeks, 1, "the first one");
    // Before anything is read, four megabytes more are under way each time.
    for block in 0..100 {
        now_ns += 1_000_000_000;
        for part in 0..16 {
            let began_ns = now_ns;
            now_ns = model.submit(now_ns, 4096 + (block << 20) + (part << 16), 1 << 16);
            let link_ns = (1 << 16) * 1_000_000_000 / disk.link_bytes_per_second + 1;
            assert_eq!(now_ns - began_ns, disk.command_ns + link_ns, "{block} {part}");
        }
    }
    assert_eq!(model.counters().seeks, 1);
    // A read of more than the cache has waits until its bytes have passed.
    let far = 5 << 20;
    let stop = model.submit(now_ns, 4096 + (100 << 20), 1 << 16);
    assert!(model.submit(stop, 4096 + (100 << 20) + (1 << 16), far) > stop + 5_000_000);
}

/// Without a write cache each write that was not in the queue comes too late for its track.
#[test]
fn writes_do_not_come_from_the_cache() {
    let disk = DiskParameters::sata7200();
    let turn_ns = heads_of(&disk).turn_ns();
    let mut model = DiskModel::new(disk.clone());
    let mut now_ns = 0;
    let mut write = |number: u64| {
        let operation = Operation::Write { offset: number << 16, bytes: 1 << 16 };
        now_ns = model.settle(now_ns, operation);
        now_ns
    };
    let first_ns = write(0);
    let each_ns = ((1..=100).map(&mut write).last().unwrap() - first_ns) as f64 / 100.0;
    let pass_ns = 65536.0 / 0.21;
    assert!((each_ns / (turn_ns + pass_ns) - 1.0).abs() < 0.01, "{each_ns}");
    // All of them in the queue pass at the rate of the track.
    let mut model = DiskModel::new(disk);
    for number in 0..100 {
        model.arrive(0, Operation::Write { offset: number << 16, bytes: 1 << 16 });
    }
    let last_ns = model.advance(u64::MAX).iter().map(|it| it.done_ns).max().unwrap();
    assert!((last_ns as f64) < 100.0 * pass_ns + turn_ns * 1.1, "{last_ns}");
}

/// A small image with the capacity of its own costs what a whole disk costs.
#[test]
fn a_small_image_stands_for_a_whole_disk() {
    let image_bytes = 2 << 30;
    let reads = random_reads(2000, image_bytes);
    for whole in spindles() {
        let capacity_bytes = Some(image_bytes);
        let changed = whole.clone().with(&DiskChanges { capacity_bytes, ..Default::default() });
        assert_eq!(changed.capacity_bytes(), capacity_bytes);
        let [near, far] = [&whole, &changed].map(|disk| time_of_reads(disk, &reads, 1) / 2000);
        let mean_ns = whole.positioning.mean_ns() + whole.command_ns;
        assert!((far as f64 / mean_ns as f64 - 1.0).abs() < 0.05, "{far} {mean_ns}");
        assert!((near as f64) < mean_ns as f64 * 0.7, "{near} {mean_ns}");
        assert_eq!(whole.clone().holding(image_bytes), whole, "larger already");
        assert_eq!(changed.holding(10 * TB).capacity_bytes(), Some(10 * TB));
    }
    let array = DiskParameters::array(8);
    let changes = DiskChanges { capacity_bytes: Some(1 << 30), ..DiskChanges::default() };
    assert_eq!(heads_of(&array.with(&changes)).capacity_bytes, 1 << 27, "of each disk");
}

/// A given time of a seek, of a request, or several requests at once have no arm.
#[test]
fn given_times_replace_heads() {
    let disk = DiskParameters::sata7200();
    let with = |changes| disk.clone().with(&changes).positioning;
    let none = DiskChanges::default();
    let constant = |ns| Positioning::Constant { ns };
    assert_eq!(with(DiskChanges { seek_ns: Some(4), ..none }), constant(4));
    assert_eq!(with(DiskChanges { service_ns: Some(4), ..none }), constant(0));
    assert_eq!(with(DiskChanges { servers: Some(2), ..none }), constant(12_666_666));
    assert_eq!(with(DiskChanges { servers: Some(1), ..none }), disk.positioning);
    assert_eq!(with(DiskChanges { bytes_per_second: Some(4), ..none }), disk.positioning);
}

#[test]
fn a_list_one_at_a_time_is_one_read_after_the_other() {
    for name in model::disk::PRESETS {
        let disk = DiskParameters::named(name).unwrap();
        let reads = random_reads(50, 1 << 36);
        let mut model = DiskModel::new(disk.clone());
        let step = |now_ns, &(offset, bytes): &(u64, u64)| model.submit(now_ns, offset, bytes);
        assert_eq!(time_of_reads(&disk, &reads, 1), reads.iter().fold(0, step), "{name}");
    }
    assert_eq!(time_of_reads(&DiskParameters::sata7200(), &[], 4), 0);
}
