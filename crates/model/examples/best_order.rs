//! How far the order in which a backup reads files is from the best that is found.
//!
//! ```text
//! cargo run --release -p model --example best_order PRESET CAPACITY [WINDOW [STEPS]] < EXTENTS
//! ```
//!
//! `EXTENTS` has a line `ADDRESS BYTES` for each piece, in the order of names, as
//! `scripts/read-order-speed` writes it. `CAPACITY` is that of the disk, `WINDOW` what may be read
//! ahead, all in bytes. The times are the model's, with sixteen reads in flight: in the order of
//! names, in that of the sweep (`crates/runs/src/sweep.rs`), and in the best order that
//! simulated annealing finds from there, which moves stretches of the order to other places as far
//! as the window allows.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::BTreeSet;

use model::BILLION;
use model::disk::{DiskChanges, DiskParameters, time_of_reads};

const DEPTH: usize = 32;
const STEPS: u64 = 20_000;
/// Longest stretch that is moved.
const MOVED_MAX: u64 = 8;
/// The cooling begins where a step that is worse by this share of the time is often taken.
const WORSE_AT_FIRST: f64 = 0.002;

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| given.get(place).map(|text| text.parse::<u64>().unwrap());
    let changes = DiskChanges { capacity_bytes: number(1), ..DiskChanges::default() };
    let disk = DiskParameters::named(&given[0]).unwrap().with(&changes);
    let pieces: Vec<(u64, u64)> =
        std::io::stdin().lines().map(|line| piece(&line.unwrap())).collect();
    let tree = Tree { window: number(2).unwrap_or(u64::MAX), disk, pieces };
    let names: Vec<usize> = (0..tree.pieces.len()).collect();
    let sweep = tree.sweep();
    assert!(tree.is_possible(&sweep), "the sweep reads further ahead than the window");
    let best = tree.anneal(&sweep, number(3).unwrap_or(STEPS));
    println!("| order | s | to the best |\n|---|---:|---:|");
    for (name, order) in [("names", &names), ("sweep", &sweep), ("best", &best)] {
        let [took, least] = [order, &best].map(|order| tree.seconds(order));
        println!("| {name} | {took:.3} | {:.3} |", took / least);
    }
}

fn piece(line: &str) -> (u64, u64) {
    let (address, bytes) = line.split_once(' ').unwrap();
    (address.parse().unwrap(), bytes.parse().unwrap())
}

struct Tree {
    disk: DiskParameters,
    /// In the order of names.
    pieces: Vec<(u64, u64)>,
    window: u64,
}

impl Tree {
    fn seconds(&self, order: &[usize]) -> f64 {
        let reads: Vec<(u64, u64)> = order.iter().map(|number| self.pieces[*number]).collect();
        time_of_reads(&self.disk, &reads, DEPTH) as f64 / BILLION as f64
    }

    /// By address, from where the heads are to the end and again from the start, among the pieces
    /// that the window holds.
    fn sweep(&self) -> Vec<usize> {
        let mut order = Vec::new();
        let (mut waiting, mut admitted) = (BTreeSet::new(), 0);
        let mut window = Window::of(self);
        let mut heads_at = (0, 0);
        while order.len() < self.pieces.len() {
            while admitted < self.pieces.len() && window.holds(admitted) {
                waiting.insert((self.pieces[admitted].0, admitted));
                admitted += 1;
            }
            let ahead = waiting.range(heads_at..).next().or_else(|| waiting.first());
            let next = *ahead.unwrap();
            waiting.remove(&next);
            heads_at = next;
            window.read(next.1);
            order.push(next.1);
        }
        order
    }

    /// Whether no piece is read before the window holds it.
    fn is_possible(&self, order: &[usize]) -> bool {
        let mut window = Window::of(self);
        order.iter().all(|number| {
            let holds = window.holds(*number);
            window.read(*number);
            holds
        })
    }

    fn anneal(&self, begin: &[usize], steps: u64) -> Vec<usize> {
        let mut random = Random(7);
        let mut now = (begin.to_vec(), self.seconds(begin));
        let mut best = now.clone();
        for step in 0..steps {
            let warmth = WORSE_AT_FIRST * now.1 * (1.0 - step as f64 / steps as f64);
            let mut other = now.0.clone();
            let count = 1 + random.below(MOVED_MAX.min(other.len() as u64));
            let from = random.below(other.len() as u64 - count + 1);
            let moved: Vec<usize> = other.drain(from as usize..(from + count) as usize).collect();
            let to = random.below(other.len() as u64 + 1) as usize;
            other.splice(to..to, moved);
            if !self.is_possible(&other) {
                continue;
            }
            let seconds = self.seconds(&other);
            let chance = ((now.1 - seconds) / warmth.max(1e-12)).exp();
            if chance > random.below(1 << 30) as f64 / f64::from(1 << 30) {
                now = (other, seconds);
            }
            if now.1 < best.1 {
                best = now.clone();
            }
        }
        best.0
    }
}

/// What is read ahead of the first piece that is missing.
struct Window<'a> {
    tree: &'a Tree,
    is_read: Vec<bool>,
    /// The first that is not read, and the bytes before each piece.
    first: usize,
    before: Vec<u64>,
}

impl Window<'_> {
    fn of(tree: &Tree) -> Window<'_> {
        let bytes = tree.pieces.iter().scan(0, |sum, (_, bytes)| {
            let before = *sum;
            *sum += bytes;
            Some(before)
        });
        Window { tree, is_read: vec![false; tree.pieces.len()], first: 0, before: bytes.collect() }
    }

    fn holds(&self, number: usize) -> bool {
        let end = self.before[number] + self.tree.pieces[number].1;
        number == self.first || end - self.before[self.first] <= self.tree.window
    }

    fn read(&mut self, number: usize) {
        self.is_read[number] = true;
        while self.is_read.get(self.first) == Some(&true) {
            self.first += 1;
        }
    }
}

/// Knuth's linear generator, without its low bits.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.0 >> 16) % limit.max(1)
    }
}
