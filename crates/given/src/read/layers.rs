//! `lsblk`: which device lies below which. The depth is the indentation of the name.

use super::{Before, Met};
use crate::piece::{Layer, What};

/// Columns that were printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// Of the words behind the name, the one with the type.
    kind_at: usize,
    mount: Mount,
}

/// Where the column of mount points stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mount {
    BehindKind,
    Elsewhere,
}

/// Columns that are never empty, so that their words can be counted.
const FULL: [&str; 10] =
    ["KNAME", "MAJ:MIN", "RM", "SIZE", "RO", "ROTA", "PHY-SEC", "LOG-SEC", "RQ-SIZE", "PATH"];
const KINDS: [&str; 14] = [
    "disk", "part", "lvm", "crypt", "loop", "rom", "mpath", "dm", "md", "tape", "zram", "swap",
    "raid", "linear",
];
/// Width of a step of the tree.
const STEP_COLUMNS: usize = 2;

pub(super) fn row(text: &str, before: &mut Before) -> Met {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let ["NAME", names @ ..] = &words[..] {
        return header(names, before);
    }
    let Some(columns) = &before.layers else { return Met::Nothing };
    let is_tree = |it: &char| matches!(it, ' ' | '│' | '├' | '└' | '─' | '|' | '`' | '-');
    let indent = text.chars().take_while(is_tree).count();
    let row: String = text.chars().skip(indent).collect();
    let words: Vec<&str> = row.split_whitespace().collect();
    let kind = words.get(columns.kind_at + 1).filter(|kind| is_kind(kind));
    let Some(kind) = kind.filter(|_| indent.is_multiple_of(STEP_COLUMNS)) else {
        let looks_like = indent > 0 && text.contains('─');
        let met = Met::begun("a row of lsblk without its type");
        return if looks_like { met } else { Met::Nothing };
    };
    let mounted_at = match columns.mount {
        Mount::BehindKind => behind_words(&row, columns.kind_at + 2),
        Mount::Elsewhere => "",
    };
    Met::Whole(What::Layer(Layer {
        name: words[0].to_owned(),
        depth: u32::try_from(indent / STEP_COLUMNS).unwrap_or(u32::MAX),
        kind: (*kind).to_owned(),
        mounted_at: mounted_at.to_owned(),
    }))
}

/// What stands behind so many words: a mount point, which may have spaces. A remark of somebody
/// stands apart from it.
fn behind_words(row: &str, count: usize) -> &str {
    let behind = (0..count).fold(row, |rest, _| {
        rest.trim_start().split_once(char::is_whitespace).map_or("", |(_, rest)| rest)
    });
    let marks = ["  ", "\t", " #", " <"];
    let end = marks.iter().filter_map(|mark| behind.trim_start().find(mark)).min();
    let behind = behind.trim_start();
    behind[..end.unwrap_or(behind.len())].trim_end()
}

fn header(names: &[&str], before: &mut Before) -> Met {
    let Some(kind_at) = names.iter().position(|name| *name == "TYPE") else { return Met::Nothing };
    if !names[..kind_at].iter().all(|name| FULL.contains(name)) {
        before.layers = None;
        return Met::Nothing;
    }
    let is_mount = |name: &&&str| name.starts_with("MOUNTPOINT");
    let mount = match names.get(kind_at + 1).filter(is_mount) {
        Some(_) if names.len() == kind_at + 2 => Mount::BehindKind,
        _ => Mount::Elsewhere,
    };
    before.layers = Some(Columns { kind_at, mount });
    Met::Whole(What::Passed)
}

fn is_kind(word: &str) -> bool {
    KINDS.contains(&word.trim_end_matches(|it: char| it.is_ascii_digit()))
}
