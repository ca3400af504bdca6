//! Where random requests go: everywhere alike, to hot blocks, or to hot parts of the file.
//!
//! What a distribution makes of a section is foretold as the share of requests whose place was
//! used before. Of N requests to blocks that are chosen with the probabilities p, each covering
//! its block with probability q (larger where requests are larger than a block), the share is the
//! sum of p (1 - (1 - (1 - q)^N) / (N q)). By that Zipf's exponent is fitted to the share that was
//! captured; fio scatters its hot blocks over the file. Hot parts are told from hot blocks by that
//! they alone bring the share.

use base::format::percent;

use super::group::FileGroup;
use super::numbers::whole;

/// Exponents that are tried: fio takes none that is 1 (3.33).
const ZIPF: [f64; 2] = [0.05, 2.5];
/// Shares are alike up to this difference.
const NEAR: f64 = 0.03;
/// The last ends that any request is held against.
const ENDS_LEAST: f64 = 8.0;
/// The share in order that hot parts come to may be so much more than was captured.
const IN_ORDER_NEAR: f64 = 0.08;
/// Parts of a file that are told apart.
const PARTS: usize = 20;
/// What share of the requests goes elsewhere than if all parts were alike, for parts to be hot.
const SKEWED: f64 = 0.15;

/// From this share on nearly all was used before, however hot the blocks are.
const SATURATED: f64 = 0.85;
/// The chance that two requests go to one block, above which blocks are hot.
const SAME_BLOCK: f64 = 0.004;

/// A distribution for fio.
#[derive(Clone, Debug, PartialEq)]
pub enum Spread {
    /// Each place once before any is used again: fio's map.
    Once,
    /// Every place alike.
    Even,
    /// Hot blocks, by Zipf's exponent.
    Blocks(f64),
    /// Hot parts of the file: per cent of the requests, and of the file.
    Parts(Vec<(u64, u64)>),
}

/// A section as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Reads and writes of it.
    pub operations: u64,
    pub file_bytes: u64,
    /// The smallest and the mean request.
    pub block_bytes: u64,
    /// The mean request.
    pub mean_bytes: f64,
    /// All requests have one size.
    pub is_one_size: bool,
}

impl Load {
    fn blocks(&self) -> f64 {
        (self.file_bytes as f64 / self.block_bytes.max(1) as f64).max(1.0)
    }

    /// The share in order that random requests may come to: each may begin at one of the last ends,
    /// a map leaves fewer places, and in hot parts they are nearer to each other.
    pub fn in_order_by_chance(&self, group: &FileGroup) -> f64 {
        let ends = looked_at(group);
        let in_parts = match parts(group) {
            Some(Spread::Parts(parts)) => 1.5 * self.in_order_in_parts(&parts, ends),
            _ => 0.0,
        };
        let places = ends * self.mean_bytes / self.file_bytes.max(1) as f64;
        // Of a file with hardly more places than ends nearly all of it may be chance.
        let of_few = -2.0 * (-places).exp_m1();
        (6.5 * places).min(0.35).max(of_few).max(in_parts)
    }

    /// The same with as many operations as a whole group has.
    fn of_all(&self, group: &FileGroup) -> Load {
        Load { operations: self.operations.max(group.operations()), ..*self }
    }

    /// The share in order that hot parts come to: the next request begins at one of the last ends,
    /// of which those in a small part are many.
    fn in_order_in_parts(&self, parts: &[(u64, u64)], ends: f64) -> f64 {
        let part = |(requests, size): &(u64, u64)| {
            let (requests, size) = (*requests as f64 / 100.0, *size as f64 / 100.0);
            let blocks = (size * self.file_bytes as f64 / self.mean_bytes.max(1.0)).max(1.0);
            requests * -(-ends * requests / blocks).exp_m1()
        };
        parts.iter().map(part).sum()
    }

    /// The share of places used again where a block is chosen with probability `chance`.
    fn again(&self, chance: f64) -> f64 {
        // The rest of a larger request is in blocks that are neighbours by chance.
        self.again_where_covered(chance + (self.mean_blocks() - 1.0) / self.blocks())
    }

    /// Blocks of the mean request.
    fn mean_blocks(&self) -> f64 {
        (self.mean_bytes / self.block_bytes.max(1) as f64).max(1.0)
    }

    /// The same where a request covers a block with this probability.
    fn again_where_covered(&self, covered: f64) -> f64 {
        let covered = covered.min(1.0);
        let count = self.operations.max(1) as f64;
        if covered <= 0.0 {
            return 0.0;
        }
        let ever = -(count * (-covered).ln_1p()).exp_m1();
        (1.0 - ever / (count * covered)).clamp(0.0, 1.0)
    }

    /// What a distribution makes of it.
    pub fn reuse(&self, spread: &Spread) -> f64 {
        match spread {
            Spread::Once => (1.0 - self.blocks() / self.operations.max(1) as f64).max(0.0),
            Spread::Even => self.again(1.0 / self.blocks()),
            Spread::Blocks(exponent) => self.zipf(*exponent),
            Spread::Parts(parts) => {
                let part = |(requests, size): &(u64, u64)| {
                    let (requests, size) = (*requests as f64 / 100.0, *size as f64 / 100.0);
                    // All of a request is in the part.
                    let chance = requests / (size * self.blocks()).max(1.0);
                    requests * self.again_where_covered(chance * self.mean_blocks())
                };
                parts.iter().map(part).sum()
            }
        }
    }

    /// The blocks in the order of their chances, in groups that grow with them: the weight of one,
    /// and how many there are.
    fn groups(&self, exponent: f64) -> Vec<(f64, f64)> {
        let blocks = self.blocks();
        let (mut from, mut groups) = (1.0, Vec::new());
        while from <= blocks {
            let to = (from * 1.05).ceil().max(from + 1.0).min(blocks + 1.0);
            groups.push((f64::powf((from + to - 1.0) / 2.0, -exponent), to - from));
            from = to;
        }
        groups
    }

    fn zipf(&self, exponent: f64) -> f64 {
        let groups = self.groups(exponent);
        let weights: f64 = groups.iter().map(|(each, count)| each * count).sum();
        let part = |(each, count): &(f64, f64)| {
            let chance = each / weights;
            chance * count * self.again(chance)
        };
        groups.iter().map(part).sum()
    }

    /// The chance that two requests go to one block.
    fn same_block(&self, exponent: f64) -> f64 {
        let groups = self.groups(exponent);
        let weights: f64 = groups.iter().map(|(each, count)| each * count).sum();
        let squares: f64 = groups.iter().map(|(each, count)| each * each * count).sum();
        squares / (weights * weights)
    }

    /// The exponent by how uneven parts of the file were used: of blocks that are scattered over
    /// them two requests go to one part because they go to one block, or by chance.
    fn fitted_to_parts(&self, group: &FileGroup) -> Option<f64> {
        let counts = &group.places.counts;
        let all: f64 = counts.iter().map(|(_, count)| *count as f64).sum();
        let parts = (group.size_bytes? as f64 / group.places.cell_bytes.max(1) as f64)
            .max(counts.len() as f64);
        if parts < 16.0 || all < 500.0 {
            return None;
        }
        let squares: f64 = counts.iter().map(|(_, count)| (*count as f64 / all).powi(2)).sum();
        let same = (squares - 1.0 / parts - 1.0 / all) / (1.0 - 1.0 / parts);
        let even = 1.0 / self.blocks();
        let is_hot = same > SAME_BLOCK.max(1.5 * even);
        is_hot.then(|| Load::solved(|exponent| self.same_block(exponent) < same))
    }

    /// The exponent that makes the share.
    fn fitted(&self, reuse: f64) -> f64 {
        Load::solved(|exponent| self.zipf(exponent) < reuse)
    }

    /// The exponent up to which something is so.
    fn solved(is_less: impl Fn(f64) -> bool) -> f64 {
        let [mut low, mut high] = ZIPF;
        for _ in 0..14 {
            let middle = f64::midpoint(low, high);
            if is_less(middle) { low = middle } else { high = middle }
        }
        let exponent = (f64::midpoint(low, high) * 100.0).round() / 100.0;
        if (exponent - 1.0).abs() < 0.005 { 1.01 } else { exponent }
    }
}

/// How many of the last ends the profile looks at, of which there are more where more requests are
/// in flight.
fn looked_at(group: &FileGroup) -> f64 {
    match group.depth {
        Some(depth) if depth > 1.0 => (ENDS_LEAST + 3.0 * depth).min(128.0),
        _ => ENDS_LEAST,
    }
}

/// What comes nearest to what a group did; where the share of places used again is not known, what
/// asks for the least.
pub fn of(group: &FileGroup, load: &Load) -> Spread {
    let Some(reuse) = group.reuse else {
        return if load.is_one_size { Spread::Once } else { Spread::Even };
    };
    let is_near = |spread: &Spread| (load.reuse(spread) - reuse).abs() <= NEAR;
    // Reads and writes that have a section each are in the same parts.
    if let Some(Spread::Parts(hot)) = parts(group)
        && (load.of_all(group).reuse(&Spread::Parts(hot.clone())) - reuse).abs() <= 2.5 * NEAR
        && group
            .sequential
            .is_none_or(|share| load.in_order_in_parts(&hot, ENDS_LEAST) <= share + IN_ORDER_NEAR)
    {
        return Spread::Parts(hot);
    }
    if load.is_one_size && is_each_as_often(group, load) {
        return Spread::Once;
    }
    let even = load.reuse(&Spread::Even);
    if reuse >= SATURATED
        && let Some(exponent) = load.fitted_to_parts(group)
    {
        return Spread::Blocks(exponent);
    }
    if load.is_one_size && reuse < even - NEAR {
        return Spread::Once;
    }
    if is_near(&Spread::Even) || reuse < even {
        return Spread::Even;
    }
    Spread::Blocks(load.fitted(reuse))
}

/// Whether all cells of the file were used as often as each other, more evenly than by chance: each
/// place once, again and again.
fn is_each_as_often(group: &FileGroup, load: &Load) -> bool {
    /// The variance by the mean is 1 of what goes anywhere.
    const EVEN: f64 = 0.3;
    const PASSES: f64 = 2.0;
    const CELLS: usize = 8;
    let counts = &group.places.counts;
    // The first and the last may be cut.
    let Some(inner) = counts.len().checked_sub(1).and_then(|last| counts.get(1..last)) else {
        return false;
    };
    let count = inner.len() as f64;
    let mean = inner.iter().map(|(_, count)| *count as f64).sum::<f64>() / count;
    let squares = inner.iter().map(|(_, count)| (*count as f64 - mean).powi(2)).sum::<f64>();
    inner.len() >= CELLS
        && group.operations() as f64 >= PASSES * load.blocks()
        && squares / (count - 1.0) < EVEN * mean
}

/// Parts of the file that have more requests than others, if any have.
fn parts(group: &FileGroup) -> Option<Spread> {
    let places = &group.places;
    let first = places.counts.first()?.0;
    let last = places.counts.last()?.0.saturating_add(places.cell_bytes);
    // Places on a device begin somewhere.
    let base = if group.is_queued() { first } else { 0 };
    let size = group.size_bytes?.max(1);
    let all: u64 = places.counts.iter().map(|(_, count)| count).sum();
    if all < 100 {
        return None;
    }
    // A file in pieces on its device: in the order of the pieces.
    let is_whole = last.saturating_sub(base) <= size.saturating_add(2 * places.cell_bytes);
    let width =
        if is_whole { places.cell_bytes as f64 } else { size as f64 / places.counts.len() as f64 };
    let mut bins = [0.0; PARTS];
    for (number, (start, count)) in places.counts.iter().enumerate() {
        // A cell may lie in several parts.
        let begin = if is_whole { (start - base) as f64 } else { number as f64 * width };
        let at = |byte: f64| byte / size as f64 * PARTS as f64;
        let (from, to) = (at(begin), at(begin + width));
        for (index, bin) in bins.iter_mut().enumerate() {
            let (low, high) = (index as f64, (index + 1) as f64);
            let high = if index + 1 == PARTS { f64::MAX } else { high };
            let common = (to.min(high) - from.max(low)).max(0.0);
            *bin += common / (to - from).max(1e-9) * *count as f64;
        }
    }
    let even = all as f64 / PARTS as f64;
    let skew = bins.iter().map(|bin| (bin - even).abs()).sum::<f64>() / (2.0 * all as f64);
    // What is left to chance where all are alike.
    let chance = (PARTS as f64 / (2.0 * std::f64::consts::PI * all as f64)).sqrt();
    if skew <= SKEWED + chance {
        return None;
    }
    let parts = joined(&bins, all as f64);
    // Requests of 64 KiB begin in one of 16 cells.
    let steps = places.counts.windows(2).map(|two| two[1].0 - two[0].0);
    let width =
        if is_whole { steps.min().unwrap_or(0).max(places.cell_bytes) as f64 } else { width };
    let cells = places.counts.iter().enumerate().map(|(number, (start, count))| {
        let begin = if is_whole { (start - base) as f64 } else { number as f64 * width };
        ([begin / size as f64, (begin + width) / size as f64], *count as f64)
    });
    (!are_of_single_blocks(&parts, cells, all as f64)).then_some(Spread::Parts(parts))
}

/// Whether the cells within parts differ by far more than by chance: a few blocks of them are hot,
/// and not the parts. Cells are a range as shares of the file, and a count.
fn are_of_single_blocks(
    parts: &[(u64, u64)],
    cells: impl Iterator<Item = ([f64; 2], f64)>,
    all: f64,
) -> bool {
    /// The variance by the mean is 1 by chance.
    const UNEVEN: f64 = 6.0;
    /// Parts are told as whole per cents, and joined where they are nearly alike.
    const NEARLY: f64 = 0.2;
    const CELLS: f64 = 16.0;
    let mut ends = Vec::with_capacity(parts.len());
    let mut from = 0.0;
    for (requests, size) in parts {
        let to = from + *size as f64 / 100.0;
        ends.push((from, to, *requests as f64 / 100.0 / (to - from)));
        from = to;
    }
    let (mut sum, mut number) = (0.0, 0.0);
    for ([low, high], count) in cells {
        // One that lies in two parts is of neither.
        let part = ends.iter().find(|(from, to, _)| *from <= low + 1e-9 && high <= *to + 1e-9);
        let Some((_, _, density)) = part else { continue };
        let expected = (density * (high - low) * all).max(1.0);
        sum += (count - expected).powi(2) / (expected + (NEARLY * expected).powi(2));
        number += 1.0;
    }
    number >= CELLS && sum / number > UNEVEN
}

/// Neighbours that are nearly alike, as whole per cents of the requests and of the file.
fn joined(bins: &[f64], all: f64) -> Vec<(u64, u64)> {
    let width = 100 / PARTS as u64;
    let mut groups: Vec<(f64, u64)> = Vec::new();
    for bin in bins {
        let noise = 2.0 * bin.sqrt().max(1.0) + 0.15 * bin;
        match groups.last_mut() {
            Some((sum, size)) if (*sum * width as f64 / *size as f64 - bin).abs() <= noise => {
                *sum += bin;
                *size += width;
            }
            _ => groups.push((*bin, width)),
        }
    }
    let mut shares: Vec<(u64, u64)> =
        groups.iter().map(|(sum, size)| (whole(sum / all * 100.0), *size)).collect();
    // They are to come to 100: the largest bears what rounding left.
    let sum: u64 = shares.iter().map(|it| it.0).sum();
    if let Some(largest) = shares.iter_mut().max_by_key(|it| it.0) {
        largest.0 = (largest.0 + 100).saturating_sub(sum);
    }
    shares
}

impl Spread {
    /// As fio takes it, and what is said of it.
    pub fn lines(&self, load: &Load, reuse: Option<f64>) -> Vec<(String, String)> {
        let captured = match reuse {
            Some(reuse) => format!("{} of requests went to places used before", percent(reuse)),
            None => "whether places were used before is not known".to_owned(),
        };
        let brings = format!("brings {}", percent(load.reuse(self)));
        let map = ("norandommap=1".to_owned(), format!("{captured}; without a map {brings}"));
        match self {
            Spread::Once => Vec::new(),
            Spread::Even => vec![map],
            Spread::Blocks(exponent) => vec![(
                format!("random_distribution=zipf:{exponent}"),
                format!("{captured}: hot blocks; this exponent {brings}"),
            )],
            Spread::Parts(parts) => {
                let parts: Vec<String> =
                    parts.iter().map(|(requests, size)| format!("{requests}/{size}")).collect();
                vec![(
                    format!("random_distribution=zoned:{}", parts.join(":")),
                    format!("{captured}: hot parts, per cent of requests / of the file; {brings}"),
                )]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_block_is_no_hot_part() {
        let cells = |hot: fn(usize) -> f64| {
            (0..100).map(move |at| ([at as f64 / 100.0, (at + 1) as f64 / 100.0], hot(at)))
        };
        let parts = [(50, 10), (50, 90)];
        // 5,000 requests in ten cells and as many in the other ninety, and nearly all of the former
        // in one of them.
        let even = |at: usize| if at < 10 { 480.0 + at as f64 * 4.0 } else { 55.0 };
        let single = |at: usize| if at == 4 { 4500.0 } else { 55.0 };
        assert!(!are_of_single_blocks(&parts, cells(even), 10_000.0));
        assert!(are_of_single_blocks(&parts, cells(single), 10_000.0));
    }

    /// 440 requests of 4 and 16 KiB, 60 % of them in a tenth of 8 MiB: 49 % were captured.
    #[test]
    fn requests_of_a_part_cover_it_and_nothing_else() {
        let load = Load {
            operations: 440,
            file_bytes: 8 << 20,
            block_bytes: 4096,
            mean_bytes: 8.8 * 1024.0,
            is_one_size: false,
        };
        let reuse = load.reuse(&Spread::Parts(vec![(60, 10), (30, 20), (10, 70)]));
        assert!((reuse - 0.49).abs() < 0.06, "{reuse}");
    }

    /// What requests to such blocks do, drawn one by one.
    fn drawn(load: &Load, exponent: f64) -> f64 {
        let blocks = load.file_bytes / load.block_bytes;
        let mut sums = vec![0.0];
        for rank in 1..=blocks {
            sums.push(sums[sums.len() - 1] + (rank as f64).powf(-exponent));
        }
        let mut random = testkit::samples::Random::numbered(7);
        let (mut seen, mut again) = (std::collections::HashSet::new(), 0);
        for _ in 0..load.operations {
            let share = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
            let drawn = share * sums[sums.len() - 1];
            let block = sums.partition_point(|sum| *sum <= drawn);
            again += u64::from(!seen.insert(block));
        }
        again as f64 / load.operations as f64
    }

    #[test]
    fn what_is_foretold_is_what_is_drawn_and_an_exponent_comes_back() {
        for (operations, exponent) in [(300, 0.4), (2000, 0.9), (2000, 1.3), (8000, 0.7)] {
            let (file_bytes, block_bytes) = (32 << 20, 4096);
            let load =
                Load { operations, file_bytes, block_bytes, mean_bytes: 4096.0, is_one_size: true };
            let found = drawn(&load, exponent);
            assert!((found - load.zipf(exponent)).abs() < 0.04, "{found}, {}", load.zipf(exponent));
            assert!((load.zipf(load.fitted(found)) - found).abs() < 0.02);
        }
    }
}
