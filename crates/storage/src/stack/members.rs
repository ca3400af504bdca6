//! States of the parts of a layer: members of an array, paths to a disk.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::layers::file_name;
use machine::Machine;

/// A member of an array or a pool, or a path to a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    pub name: String,
    /// Its state, in the words of the kernel or the program that reports it.
    pub state: String,
    /// Whether it is in service.
    pub works: bool,
}

/// Members of an array: `md/dev-sda1/state` (Documentation/admin-guide/md.rst).
pub(super) fn of_array(machine: &Machine, array: &Path) -> Vec<Member> {
    let member = |entry: &std::path::PathBuf| {
        let name = file_name(entry).strip_prefix("dev-")?.to_owned();
        let state = machine.word(&entry.join("state")).unwrap_or_else(|| "not known".to_owned());
        let fails = state.split(',').any(|word| word == "faulty" || word == "blocked");
        Some(Member { name, works: !fails, state })
    };
    machine.entries(&array.join("md")).iter().filter_map(member).collect()
}

/// Paths of a multipath device in the output of `dmsetup status`: each by its number, with `A` for
/// active and `F` for failed (drivers/md/dm-mpath.c, `multipath_status`). Without that output, the
/// state of the disk of each path counts.
pub(super) fn of_multipath(machine: &Machine, name: &str, paths: &[String]) -> Vec<Member> {
    let answer = machine.answer("dmsetup", &["status", name]).unwrap_or_default();
    let told = path_states(&answer);
    let member = |path: &String| {
        let folder = machine.at("sys/class/block").join(path);
        let number = machine.word(&folder.join("dev")).unwrap_or_default();
        let disk = machine.word(&folder.join("device/state"));
        let by_map = told.iter().find(|(of, _)| *of == number).map(|(_, works)| *works);
        let disk_works = disk.as_deref().is_none_or(|state| state == "running" || state == "live");
        let works = by_map.unwrap_or(disk_works) && disk_works;
        let state = match (by_map, disk) {
            (Some(false), Some(disk)) => format!("failed, {disk}"),
            (Some(false), None) => "failed".to_owned(),
            (Some(true), None) => "active".to_owned(),
            (Some(true), Some(disk)) => format!("active, {disk}"),
            (None, Some(disk)) => disk,
            (None, None) => "not known".to_owned(),
        };
        Member { name: path.clone(), state, works }
    };
    paths.iter().map(member).collect()
}

fn path_states(text: &str) -> Vec<(&str, bool)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_number = |word: &str| {
        word.split_once(':').is_some_and(|(major, minor)| {
            [major, minor].iter().all(|it| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    let path = |pair: &[&'_ str]| match pair[1] {
        "A" => Some(true),
        "F" => Some(false),
        _ => None,
    };
    words
        .windows(2)
        .filter(|pair| is_number(pair[0]))
        .filter_map(|pair| Some((pair[0], path(pair)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_in_a_status() {
        let text = "0 83886080 multipath 2 0 1 0 2 1 A 0 1 2 8:16 A 0 0 1 E 0 1 2 8:32 F 3 0 1 \n";
        assert_eq!(path_states(text), [("8:16", true), ("8:32", false)]);
        let named = "mpatha: 0 83886080 multipath 2 0 0 0 1 1 E 0 1 0 66:176 A 0 \n";
        assert_eq!(path_states(named), [("66:176", true)]);
        assert_eq!(path_states(""), []);
    }

    proptest! {
        #[test]
        fn no_status_panics(text in "[0-9:AF ]{0,60}") {
            path_states(&text);
        }
    }
}
