//! Whether two settings differ, are the same, or are not settled.

use experiment::record::Factor;

use crate::world::{
    Table, World, block_sizes, chance, doublings, experiments, is, percent, quiet, says_nothing,
    words,
};

const REPEATS: [u64; 3] = [3, 5, 10];

/// Share of experiments with a sentence that the setting makes no difference, over effect, noise
/// and repeats. If there is an effect, it must be at most one of twenty.
fn false_nothings(
    title: &str,
    factors: &[Factor],
    is_changed: &dyn Fn(&experiment::record::Cell) -> bool,
) {
    let count = experiments(12);
    let mut table = Table::new(title, &["n = 3", "n = 5", "n = 10"]).of(1);
    for effect in [0.0, 0.03, 0.05, 0.15] {
        for noise in [0.01, 0.03, 0.05, 0.10] {
            let said = REPEATS.map(|repeats| {
                let world = World {
                    times: &|cell| if is_changed(cell) { 1.0 + effect } else { 1.0 },
                    noise: &|_| noise,
                    ..quiet(factors.to_vec(), repeats)
                };
                percent(count, |seed| world.judged(seed).sentences.iter().any(says_nothing))
            });
            let most = if effect > 0.02 { 5.0 + chance(5.0, count) } else { 100.0 };
            let name = format!("effect {:>3} %, noise {:>3} %", effect * 100.0, noise * 100.0);
            table.row(&name, &said, 0.0..=most);
        }
    }
    table.check();
}

#[test]
fn nothing_is_said_only_where_nothing_is() {
    let factors = [words("data", &["text", "random", "mixed"]), words("engine", &["old", "new"])];
    let title = "two settings on three kinds of data: said to make no difference, %";
    false_nothings(title, &factors, &|cell| is(cell, "engine", "new"));
}

#[test]
fn no_level_that_is_faster_is_called_the_same() {
    let is_last = |cell: &_| doublings(cell, "block_bytes", 65536) == 3;
    let title = "four block sizes, the last one faster: said to make no difference, %";
    false_nothings(title, &[block_sizes(4)], &is_last);
}
