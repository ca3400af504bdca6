//! Devices as a tree of layers: each above the devices it consists of.
//!
//! A device below several others has its row below the first of them; below the others there is
//! only its name, so that nothing is shown twice.

use std::collections::{BTreeMap, BTreeSet};

use watch::intervals::DeviceInterval;

use crate::glyphs::Glyphs;

/// Maximum depth of the tree, more than any stack has.
const DEPTH_MAX: usize = 16;

/// A row of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRow {
    /// Index of the device.
    pub device: usize,
    /// The characters before its name.
    pub indent: String,
    /// The characters before the lines below its row.
    pub below: String,
    /// Whether there are devices below it.
    pub has_children: bool,
    /// Whether its numbers are in a row above.
    pub is_repeat: bool,
}

/// The sort key of rows: a number of each device, the largest first.
pub type Weight<'a> = Option<&'a dyn Fn(&DeviceInterval) -> f64>;

/// A device in the tree.
pub(crate) struct Node<'a> {
    pub(crate) name: &'a str,
    /// The devices it consists of.
    pub(crate) made_of: &'a [String],
    /// Its sort key, the largest first.
    pub(crate) weight: f64,
}

/// All devices as a tree.
pub fn rows(devices: &[DeviceInterval], weight: Weight<'_>, glyphs: Glyphs) -> Vec<DeviceRow> {
    let node = |device| Node::of(device, weight);
    rows_of(&devices.iter().map(node).collect::<Vec<_>>(), glyphs)
}

/// The same for nodes.
pub(crate) fn rows_of(nodes: &[Node<'_>], glyphs: Glyphs) -> Vec<DeviceRow> {
    let names: BTreeMap<&str, usize> =
        nodes.iter().enumerate().map(|(at, node)| (node.name, at)).collect();
    let below: Vec<Vec<usize>> = nodes.iter().map(|it| it.children(&names)).collect();
    let mut weights: Vec<f64> = nodes.iter().map(|node| node.weight).collect();
    // A device has at least the sort key of every device below it.
    for _ in 0..DEPTH_MAX {
        for (at, children) in below.iter().enumerate() {
            weights[at] = children.iter().fold(weights[at], |most, it| most.max(weights[*it]));
        }
    }
    let held: BTreeSet<usize> = below.iter().flatten().copied().collect();
    let roots: Vec<usize> = (0..nodes.len()).filter(|at| !held.contains(at)).collect();
    let mut tree = Tree { below, weights, glyphs, rows: Vec::new(), seen: BTreeSet::new() };
    for root in tree.sorted(roots) {
        tree.add(root, String::new(), String::new(), 0);
    }
    // Devices in a circle, which no kernel has, must not be lost.
    for at in 0..nodes.len() {
        if !tree.seen.contains(&at) {
            tree.add(at, String::new(), String::new(), 0);
        }
    }
    tree.rows
}

/// All devices as a flat list.
pub fn flat(devices: &[DeviceInterval], weight: Weight<'_>) -> Vec<DeviceRow> {
    let mut order: Vec<usize> = (0..devices.len()).collect();
    if let Some(weight) = weight {
        order.sort_by(|a, b| weight(&devices[*b]).total_cmp(&weight(&devices[*a])));
    }
    let row = |device| DeviceRow {
        device,
        indent: String::new(),
        below: String::new(),
        has_children: false,
        is_repeat: false,
    };
    order.into_iter().map(row).collect()
}

impl<'a> Node<'a> {
    fn of(device: &'a DeviceInterval, weight: Weight<'_>) -> Node<'a> {
        Node {
            name: &device.name,
            made_of: device.queue.as_ref().map_or(&[][..], |queue| &queue.made_of),
            weight: weight.map_or(0.0, |weight| weight(device)),
        }
    }

    /// The devices below one. A partition that is not watched is replaced by its disk; a watched
    /// partition has its disk below it.
    fn children(&self, names: &BTreeMap<&str, usize>) -> Vec<usize> {
        let made_of = self.made_of.iter().map(String::as_str);
        let mut children = Vec::new();
        for name in made_of.chain(disk_of(self.name)) {
            let at = names.get(name).copied().or_else(|| {
                let disk = disk_of(name)?;
                names.get(disk).copied()
            });
            if let Some(at) = at
                && !children.contains(&at)
                && names.get(self.name) != Some(&at)
            {
                children.push(at);
            }
        }
        children
    }
}

/// The disk of a partition, from its name: if the name of a disk ends in a digit, there is a `p`
/// before the number of the partition (`disk_name` in the kernel's block/partitions).
fn disk_of(partition: &str) -> Option<&str> {
    let disk = partition.trim_end_matches(|it: char| it.is_ascii_digit());
    if disk.len() == partition.len() {
        return None;
    }
    let numbered = disk.strip_suffix('p');
    let numbered = numbered.filter(|disk| disk.ends_with(|it: char| it.is_ascii_digit()));
    Some(numbered.unwrap_or(disk))
}

struct Tree {
    below: Vec<Vec<usize>>,
    weights: Vec<f64>,
    glyphs: Glyphs,
    rows: Vec<DeviceRow>,
    seen: BTreeSet<usize>,
}

impl Tree {
    fn sorted(&self, mut devices: Vec<usize>) -> Vec<usize> {
        devices.sort_by(|a, b| self.weights[*b].total_cmp(&self.weights[*a]));
        devices
    }

    fn add(&mut self, device: usize, indent: String, below: String, depth: usize) {
        let is_repeat = !self.seen.insert(device);
        let has_children = !is_repeat && !self.below[device].is_empty();
        self.rows.push(DeviceRow { device, indent, below: below.clone(), has_children, is_repeat });
        if is_repeat || depth == DEPTH_MAX {
            return;
        }
        let children = self.sorted(self.below[device].clone());
        let last = children.len().saturating_sub(1);
        for (number, child) in children.into_iter().enumerate() {
            let which = usize::from(number == last);
            let indent = format!("{below}{}", self.glyphs.branches()[which]);
            let trunk = format!("{below}{}", self.glyphs.trunks()[which]);
            self.add(child, indent, trunk, depth + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_of_a_partition() {
        for (partition, disk) in [
            ("sda1", Some("sda")),
            ("nvme0n1p12", Some("nvme0n1")),
            ("mmcblk0p1", Some("mmcblk0")),
            ("xvdp3", Some("xvdp")),
            ("dm", None),
        ] {
            assert_eq!(disk_of(partition), disk, "{partition}");
        }
    }
}
