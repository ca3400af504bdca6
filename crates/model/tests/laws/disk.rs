//! The disk: rates, seeks, parallel service, and a comparison with a naive model.

use model::disk::{DiskChanges, DiskModel, DiskParameters, PRESETS, Placement, Positioning};
use model::transfer_ns;
use proptest::prelude::*;

fn check_rate(name: &str, request_bytes: u64, depth: usize, expected_mb_s: f64) {
    let mut disk = DiskModel::new(DiskParameters::named(name).unwrap());
    let mut under_way = std::collections::VecDeque::new();
    let (mut now_ns, mut at) = (0, 0);
    for _ in 0..2000 {
        if under_way.len() >= depth {
            now_ns = now_ns.max(under_way.pop_front().unwrap());
        }
        under_way.push_back(disk.submit(now_ns, at, request_bytes));
        at += request_bytes;
    }
    let end_ns = under_way.into_iter().max().unwrap();
    let rate = at as f64 / (end_ns as f64 / 1e9) / 1e6;
    assert!((rate / expected_mb_s - 1.0).abs() < 0.1, "{name}: {rate} MB/s");
}

#[test]
fn presets_stream_as_their_kind_does() {
    check_rate("sas15k", 1 << 20, 1, 196.0);
    // The drive reads on while the next command is on its way.
    check_rate("sata7200", 64 << 10, 1, 210.0);
    check_rate("ssd-sata", 128 << 10, 32, 530.0);
    check_rate("nvme", 128 << 10, 32, 3200.0);
    // The drives handle a command while the arm works on the last one.
    check_rate("array:4", 1 << 20, 16, 800.0);
    for name in PRESETS {
        assert!(DiskParameters::named(name).is_some(), "{name}");
    }
    for name in ["floppy", "array:", "array:0", "array:9999999"] {
        assert_eq!(DiskParameters::named(name), None, "{name}");
    }
}

/// Random requests of 8 KiB, 32 in flight, on the SATA SSD of `published/block-device.toml`:
/// 20,255 reads and 20,301 writes a second.
#[test]
fn the_ssd_serves_what_was_measured() {
    let mut disk = DiskModel::new(DiskParameters::ssd_sata());
    let mut under_way = std::collections::BinaryHeap::new();
    let (mut now_ns, mut place) = (0, 1u64);
    let requests = 100_000;
    for _ in 0..requests {
        if under_way.len() >= 32 {
            let std::cmp::Reverse(earliest) = under_way.pop().unwrap();
            now_ns = earliest;
        }
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        under_way.push(std::cmp::Reverse(disk.submit(now_ns, place % (1 << 40), 8192)));
    }
    let rate = f64::from(requests) / (now_ns as f64 / 1e9);
    assert!((rate / 40_556.0 - 1.0).abs() < 0.05, "{rate} requests a second");
}

proptest! {
    /// One spindle with one request after the other: the sum of its parts, computed by hand.
    #[test]
    fn a_spindle_is_the_sum_of_its_parts(
        requests in proptest::collection::vec((0u64..1_000_000, 1u64..2000, 0u64..9), 1..60),
    ) {
        const SEEK_NS: u64 = 5_400_000;
        let changes = DiskChanges {
            seek_ns: Some(SEEK_NS),
            request_bytes_max: Some(1 << 30),
            ..DiskChanges::default()
        };
        let parameters = DiskParameters::sas15k().with(&changes);
        let mut disk = DiskModel::new(parameters.clone());
        let (mut now_ns, mut ended_at) = (0, None);
        for (sector, sectors, goes_on) in requests {
            let at = if goes_on > 4 { ended_at.unwrap_or(sector * 512) } else { sector * 512 };
            let bytes = sectors * 512;
            let seek_ns = if ended_at == Some(at) { 0 } else { SEEK_NS };
            let expected = now_ns + parameters.command_ns + seek_ns
                + transfer_ns(bytes, parameters.server_bytes_per_second);
            let link_ns = transfer_ns(bytes, parameters.link_bytes_per_second);
            let done_ns = disk.submit(now_ns, at, bytes);
            prop_assert!(done_ns >= expected && done_ns <= expected + link_ns);
            now_ns = done_ns;
            ended_at = Some(at + bytes);
        }
    }

    /// Bytes and pieces are complete, no request ends before it arrives, and the link's limit
    /// holds.
    #[test]
    fn requests_are_cut_and_none_is_lost(
        servers in 1usize..20,
        seek_ns in proptest::option::of(0u64..10_000_000),
        stripe_kb in proptest::option::of(4u64..300),
        most_kb in 4u64..2000,
        requests in proptest::collection::vec((0u64..1 << 40, 1u64..4_000_000, 0u64..5_000), 1..60),
    ) {
        let placement = match stripe_kb {
            Some(kb) => Placement::Striped { stripe_bytes: kb << 10 },
            None => Placement::AnyServer,
        };
        let parameters = DiskParameters {
            servers,
            placement,
            request_bytes_max: most_kb << 10,
            positioning: match seek_ns {
                Some(ns) => Positioning::Constant { ns },
                None => DiskParameters::sas15k().positioning,
            },
            ..DiskParameters::sas15k()
        };
        let mut disk = DiskModel::new(parameters.clone());
        let (mut now_ns, mut bytes_total, mut last_ns) = (0, 0, 0);
        for (at, bytes, pause_us) in requests {
            now_ns += pause_us * 1000;
            let done_ns = disk.submit(now_ns, at, bytes);
            prop_assert!(done_ns > now_ns + parameters.command_ns);
            bytes_total += bytes;
            last_ns = last_ns.max(done_ns);
        }
        prop_assert_eq!(disk.counters().bytes, bytes_total);
        prop_assert!(disk.counters().pieces >= disk.counters().requests);
        prop_assert!(last_ns >= transfer_ns(bytes_total, parameters.link_bytes_per_second));
        let capacity_ns = u128::from(last_ns) * servers as u128;
        prop_assert!(u128::from(disk.counters().busy_ns) <= capacity_ns);
    }
}
