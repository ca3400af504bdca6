//! Sizes of requests as `bs` and `bssplit`, in whole per cents.

use base::format::{count, counted};

use super::group::FileGroup;
use super::numbers::bytes;
use super::part::{Part, SectionLines};

/// Sizes that are told apart in `bssplit`.
const SIZES_MAX: usize = 16;

/// What is asked for in one request; returns the largest size.
pub fn add(group: &FileGroup, part: Part, lines: &mut SectionLines) -> u64 {
    let directions = [
        ("reads", &group.read_sizes, part.reads(group), group.read_bytes),
        ("writes", &group.write_sizes, part.writes(group), group.written_bytes),
    ];
    let (mut splits, mut origins) = (Vec::new(), Vec::new());
    let mut largest = 0;
    let mut odd = false;
    for (what, sizes, calls, moved) in directions.into_iter().filter(|of| of.2 > 0) {
        let split = Split::of(sizes);
        let Some(split) = split else {
            let (assumed, taken) = assumed_block(group, calls, moved);
            let (why, taken) = (group.reason("block_bytes"), format!("{taken} ({what})"));
            origins.push(format!("block size unknown: {why}; {taken} is an assumption"));
            largest = largest.max(assumed);
            splits.push(Split { shares: vec![(assumed, 100)] });
            continue;
        };
        origins.push(split.origin(sizes, what));
        largest = largest.max(split.largest());
        odd |= split.is_odd();
        splits.push(split);
    }
    let single: Option<Vec<String>> = splits.iter().map(Split::single).collect();
    let (option, values) = match single {
        Some(values) => ("bs", values),
        None => ("bssplit", splits.iter().map(Split::text).collect()),
    };
    lines.add(format!("{option}={}", values.join(",")), origins.join("; "));
    if odd {
        lines.add("bs_unaligned=1", "some sizes are not multiples of the smallest");
    }
    largest
}

/// The mean size where the sizes themselves are not seen.
fn assumed_block(group: &FileGroup, calls: u64, moved: Option<u64>) -> (u64, String) {
    if let Some(median) = group.block_bytes.filter(|bytes| *bytes > 0) {
        return (median, format!("the median, {},", bytes(median)));
    }
    match moved.and_then(|moved| moved.checked_div(calls)).filter(|mean| *mean > 0) {
        Some(mean) => {
            let block = mean.next_multiple_of(512);
            (block, format!("the mean, {},", bytes(block)))
        }
        None => (4096, "4096".to_owned()),
    }
}

/// Sizes with whole per cents that sum up to 100.
struct Split {
    shares: Vec<(u64, u64)>,
}

impl Split {
    /// By the largest remainder, so that the per cents come to 100.
    fn of(sizes: &[(u64, u64)]) -> Option<Split> {
        let sizes: Vec<(u64, u64)> =
            sizes.iter().copied().filter(|(bytes, _)| *bytes > 0).take(SIZES_MAX).collect();
        let calls: u64 = sizes.iter().map(|(_, calls)| calls).sum();
        if calls == 0 {
            return None;
        }
        // No count of calls comes near what would overflow here.
        let parts = |own: u64| own.saturating_mul(100);
        let mut shares: Vec<(u64, u64, u64)> = sizes
            .iter()
            .map(|(bytes, own)| (*bytes, parts(*own) / calls, parts(*own) % calls))
            .collect();
        let mut missing = 100 - shares.iter().map(|(_, share, _)| share).sum::<u64>().min(100);
        shares.sort_by_key(|(_, _, rest)| std::cmp::Reverse(*rest));
        for (_, share, _) in &mut shares {
            *share += missing.min(1);
            missing = missing.saturating_sub(1);
        }
        let mut shares: Vec<(u64, u64)> =
            shares.into_iter().map(|(bytes, share, _)| (bytes, share)).collect();
        shares.retain(|(_, share)| *share > 0);
        shares.sort_by_key(|(bytes, share)| (std::cmp::Reverse(*share), *bytes));
        Some(Split { shares })
    }

    fn largest(&self) -> u64 {
        self.shares.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0)
    }

    fn is_odd(&self) -> bool {
        let smallest = self.shares.iter().map(|(bytes, _)| *bytes).min().unwrap_or(1);
        self.shares.iter().any(|(bytes, _)| !bytes.is_multiple_of(smallest))
    }

    fn single(&self) -> Option<String> {
        let [(bytes, _)] = self.shares[..] else { return None };
        Some(fio_size(bytes))
    }

    fn text(&self) -> String {
        let one = |(bytes, share): &(u64, u64)| format!("{}/{share}", fio_size(*bytes));
        self.shares.iter().map(one).collect::<Vec<_>>().join(":")
    }

    /// `8192: 99.6 % of 12 044 writes`.
    fn origin(&self, sizes: &[(u64, u64)], what: &str) -> String {
        const SHOWN: usize = 4;
        let calls: u64 = sizes.iter().map(|(_, calls)| calls).sum();
        let share = |bytes: u64| {
            let own = sizes.iter().find(|(size, _)| *size == bytes).map_or(0, |(_, own)| *own);
            own as f64 / calls as f64 * 100.0
        };
        let one = |(bytes, _): &(u64, u64)| format!("{bytes}: {:.1} %", share(*bytes));
        let shown: Vec<String> = self.shares.iter().take(SHOWN).map(one).collect();
        let less = sizes.len().saturating_sub(self.shares.len());
        let mut text = format!("{} of {} {what}", shown.join(", "), count(calls));
        if self.shares.len() > SHOWN {
            text += &format!(", and {} sizes more", self.shares.len() - SHOWN);
        }
        if less > 0 {
            let sizes = counted(less as u64, "size", "sizes");
            text += &format!("; {sizes} below 1 %");
        }
        text
    }
}

/// A size as fio takes it.
pub fn fio_size(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        _ => bytes.to_string(),
    }
}
