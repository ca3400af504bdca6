//! What lies below mount points, by `lsblk`.

use base::finding::{Certainty, Finding};

use super::{Conclusions, span};
use crate::piece::{Layer, Piece, What};
use crate::rules;

/// Most findings: a machine may have hundreds of devices.
const SAID_MAX: usize = 20;

/// A row of `lsblk` with its lines.
type Row<'a> = (&'a Layer, (u32, u32));

/// What is mounted, and the rows below it: of a device on several disks, one stack for each.
struct Mounted<'a> {
    layer: &'a Layer,
    stacks: Vec<Vec<Row<'a>>>,
}

/// Mount points that do not lie on a disk or a partition itself.
pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    let mut all: Vec<Mounted<'_>> = Vec::new();
    let (mut stack, mut begins): (Vec<Row<'_>>, usize) = (Vec::new(), 0);
    for piece in pieces {
        let What::Layer(layer) = &piece.what else {
            // Another output may be of another machine.
            begins = all.len();
            stack.clear();
            continue;
        };
        stack.truncate(layer.depth as usize);
        // A row between is missing.
        if stack.len() != layer.depth as usize {
            stack.clear();
            continue;
        }
        stack.push((layer, piece.lines));
        let is_plain = |it: &Row<'_>| matches!(it.0.kind.as_str(), "disk" | "part");
        if layer.mounted_at.is_empty() || stack.iter().all(is_plain) || stack.len() < 2 {
            continue;
        }
        let is_same = |it: &&mut Mounted<'_>| {
            (&it.layer.name, &it.layer.mounted_at) == (&layer.name, &layer.mounted_at)
        };
        let has_room = all.len() < SAID_MAX;
        match all.iter_mut().skip(begins).find(is_same) {
            Some(mounted) => mounted.stacks.push(stack.clone()),
            None if has_room => {
                all.push(Mounted { layer, stacks: vec![stack.clone()] });
            }
            None => {}
        }
    }
    for mounted in &all {
        let what = format!("{} lies on {}", mounted.layer.mounted_at, mounted.below());
        let lines = span(mounted.stacks.iter().flatten().map(|it| it.1));
        found.add(lines, Finding::new(&rules::LAYERS, Certainty::Told, what));
    }
}

impl Mounted<'_> {
    /// `vg (lvm) on md0 (raid5) on sda, sdb and sdc`
    fn below(&self) -> String {
        let named = |(it, _): &Row<'_>| format!("{} ({})", it.name, it.kind);
        let from_top = |stack: &[Row<'_>]| stack.iter().rev().map(named).collect::<Vec<_>>();
        let tops: Vec<Vec<String>> = self.stacks.iter().map(|it| from_top(it)).collect();
        let Some((first, others)) = tops.split_first().filter(|(_, others)| !others.is_empty())
        else {
            return tops.concat().join(" on ");
        };
        let is_common = |(at, name): &(usize, &String)| {
            others.iter().all(|other| other.get(*at) == Some(*name))
        };
        let common = first.iter().enumerate().take_while(is_common).map(|(_, name)| name.clone());
        let disks: Vec<&str> =
            self.stacks.iter().filter_map(|it| Some(it.first()?.0.name.as_str())).collect();
        let mut names: Vec<String> = common.collect();
        names.push(listed(&disks));
        names.join(" on ")
    }
}

/// `sda, sdb and sdc`
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
