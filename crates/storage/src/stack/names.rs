//! Persistent names, which stay when the kernel finds disks in another order.

use std::fs;

use super::{Facts, Walk};
use crate::layers::file_name;

/// Folders of links, and the kind of name in each.
const FOLDERS: &[(&str, &str)] = &[
    ("by-uuid", "uuid"),
    ("by-label", "label"),
    ("by-partuuid", "partition_uuid"),
    ("by-id", "id"),
];

/// The rank of a link of `by-id`: links with the device's own identifier come first.
fn rank(name: &str) -> usize {
    let first = ["wwn-", "nvme-eui.", "nvme-uuid.", "dm-uuid-", "md-uuid-"];
    first.iter().position(|prefix| name.starts_with(prefix)).unwrap_or(first.len())
}

impl Walk<'_> {
    /// The names that udev gives a device in these folders of `/dev/disk`.
    pub(super) fn names_by_link(&self, device: &str, folders: &[&str]) -> Facts {
        let mut names = Facts::new();
        for (folder, fact) in FOLDERS.iter().filter(|(folder, _)| folders.contains(folder)) {
            let links = self.machine.entries(&self.machine.at("dev/disk").join(folder));
            let leads_here = |link: &&std::path::PathBuf| {
                fs::read_link(link).is_ok_and(|target| file_name(&target) == device)
            };
            let names_here = links.iter().filter(leads_here).map(|link| file_name(link));
            if let Some(name) = names_here.min_by_key(|name| (rank(name), name.clone())) {
                names.insert((*fact).into(), name);
            }
        }
        names
    }
}
