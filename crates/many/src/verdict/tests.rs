//! Verdicts on rates of known truth.

use super::*;
use experiment::record::{HostPart, Level};
use proptest::prelude::*;

/// Runs of hosts with these rates of their own, which share a whole, each with noise in parts of
/// its rate: five of all, and two of each alone.
fn runs(own: &[f64], shared: f64, noise: &mut dyn FnMut() -> f64) -> Vec<RunRecord> {
    let run = |ranks: &[usize], noise: &mut dyn FnMut() -> f64| {
        let mut left = shared;
        let mut waiting: Vec<usize> = ranks.to_vec();
        waiting.sort_by(|a, b| own[*a].total_cmp(&own[*b]));
        let mut rates = vec![0.0; own.len()];
        while let Some(rank) = (!waiting.is_empty()).then(|| waiting.remove(0)) {
            let rate = own[rank].min(left / (waiting.len() + 1) as f64);
            left -= rate;
            rates[rank] = rate * noise();
        }
        let part = |rank: &usize| HostPart {
            host: format!("host{rank}"),
            rank: *rank as u64,
            window_bytes_per_second: Some(rates[*rank]),
            ..HostPart::default()
        };
        let cell = [("hosts".to_owned(), Level::Number(ranks.len() as u64))].into();
        let hosts = ranks.iter().map(part).collect();
        let bytes = rates.iter().sum::<f64>() as u64;
        RunRecord { cell, hosts, bytes, seconds: 1.0, ..RunRecord::default() }
    };
    let all: Vec<usize> = (0..own.len()).collect();
    let mut made: Vec<RunRecord> = (0..5).map(|_| run(&all, noise)).collect();
    made.extend(all.iter().chain(&all).map(|rank| run(&[*rank], noise)));
    made
}

proptest! {
    /// One host is slow, or what all use is shared, or both, or neither.
    #[test]
    fn the_truth_is_said(
        hosts in 3usize..9, slow in prop::option::of((0usize..9, 0.2..0.6f64)),
        is_shared in any::<bool>(), seed in any::<u64>(),
    ) {
        let slow = slow.map(|(rank, share)| (rank % hosts, share));
        let mut own = vec![100e6; hosts];
        if let Some((rank, share)) = slow {
            own[rank] *= share;
        }
        let shared = if is_shared { 0.6 * own.iter().sum::<f64>() } else { f64::MAX };
        let mut random = testkit::samples::Random::numbered(seed);
        let mut noise = || 0.97 + random.below(61) as f64 / 1000.0;
        let found = verdict(&runs(&own, shared, &mut noise), hosts);
        let expected: Vec<u64> = slow.iter().map(|(rank, _)| *rank as u64).collect();
        prop_assert_eq!(&found.slow, &expected, "{:?}", found);
        prop_assert!(found.disadvantaged.is_empty(), "{:?}", found);
        prop_assert_eq!(found.is_shared, Some(is_shared), "{:?}", found);
    }
}

#[test]
fn a_host_that_gets_less_only_together_is_no_slow_host() {
    let mut noise = || 1.0;
    let mut made = runs(&[100.0; 4], f64::MAX, &mut noise);
    for (at, run) in made.iter_mut().filter(|run| run.hosts.len() == 4).enumerate() {
        run.hosts[2].window_bytes_per_second = Some(50.0 + at as f64);
    }
    let found = verdict(&made, 4);
    assert_eq!((found.slow.len(), &found.disadvantaged[..]), (0, &[2][..]));
    assert_eq!(found.hosts[0].rank, 2);
}

#[test]
fn what_is_not_known_is_said() {
    let mut noise = || 1.0;
    let made = runs(&[100.0; 4], f64::MAX, &mut noise);
    let alone = verdict(&made[..5], 4);
    assert_eq!(alone.is_shared, None);
    assert!(alone.not_known.unwrap().contains("ran alone"));
    let few = verdict(&made[3..], 4);
    assert!(few.not_known.unwrap().contains("3 runs of all hosts are needed"), "");
    assert!(verdict(&[], 4).not_known.is_some());
}
