//! The members of an archive and the sets of a volume, for people.

use archive::label::{LabelledSet, hex};
use archive::member::{Member, MemberKind};
use base::calendar::time_text;
use base::escape::escape;
use base::format::{counted, size};
use tapeset::{SetContents, SetOnVolume};

/// The sets of a volume, a line each, below what the medium is called.
pub fn sets(sets: &[SetOnVolume]) -> String {
    let newest = sets.last();
    let name = newest.and_then(|set| Some((set.medium_name?, set.medium)));
    let heading = name.map(|(name, id)| format!("medium {name} ({})\n", &hex(&id)[..8]));
    let lines = sets.iter().map(|set| set_line(set) + "\n");
    heading.into_iter().chain(lines).collect()
}

/// `  1 0123456789ab 2026-11-20 08:33:01 by db1, zstd:3, segments 1-4 from file 0,
/// complete: 4 files, 1 B: x`
fn set_line(set: &SetOnVolume) -> String {
    let seconds = i64::try_from(set.time_seconds).unwrap_or(i64::MAX);
    let time = time_text(seconds);
    let (first, last) = set.segments;
    let state = match (set.has_index, set.followed) {
        (true, _) if set.contents.as_ref().is_some_and(|it| it.ended_early.is_some()) => {
            "ended early"
        }
        (true, _) => "complete",
        (false, true) => "incomplete: its run did not end",
        (false, false) => "continues on another volume, or its run did not end",
    };
    let volume = match set.volume {
        1 => String::new(),
        number => format!(", volume {number}"),
    };
    let contents = match (&set.contents, set.has_index) {
        (Some(contents), _) => contents_text(contents),
        (None, true) => "; its index cannot be read".to_owned(),
        (None, false) => String::new(),
    };
    let compression = match set.compression.as_str() {
        "none" => "not compressed",
        method => method,
    };
    let host = set.host.as_ref().map_or(String::new(), |host| format!("by {host}, "));
    let chain = set.chain.as_ref().map_or(String::new(), chain_text);
    format!(
        "{:>3} {} {time} {host}{chain}{compression}, segments {first}-{last} from file {}{volume}, \
         {state}{contents}",
        set.number,
        &set.id[..12],
        set.first_file,
    )
}

/// `homes 12 level 1, `.
fn chain_text(chain: &LabelledSet) -> String {
    let job = escape(chain.job.as_str().as_bytes());
    match chain.level {
        0 => format!("{job} {} full, ", chain.number),
        level => format!("{job} {} level {level}, ", chain.number),
    }
}

/// `: 40 files, 1.20 GB: home/eva etc`.
fn contents_text(contents: &SetContents) -> String {
    let files = counted(contents.files, "file", "files");
    let roots: Vec<String> = contents.roots.iter().map(|root| escape(root)).collect();
    let more = match contents.roots_total - contents.roots.len() as u64 {
        0 => String::new(),
        more => format!(" and {}", counted(more, "more", "more")),
    };
    format!(": {files}, {}: {}{more}", size(contents.source_bytes), roots.join(" "))
}

/// The path of a member, escaped; that of a folder ends in a slash.
pub fn shown_path(member: &Member) -> String {
    let slash = if member.kind == MemberKind::Directory { "/" } else { "" };
    escape(&member.path) + slash
}

/// A member in a line as of `ls -l`, with the time in UTC.
pub fn long_line(member: &Member) -> String {
    let name =
        |name: &[u8], number: u64| if name.is_empty() { number.to_string() } else { escape(name) };
    let owner = format!("{}/{}", name(&member.user, member.uid), name(&member.group, member.gid));
    let size = match &member.kind {
        MemberKind::CharacterDevice { major, minor } | MemberKind::BlockDevice { major, minor } => {
            format!("{major},{minor}")
        }
        _ => member.size_bytes.to_string(),
    };
    let leads_to = match &member.kind {
        // The index of a set on tape does not have the targets of links.
        MemberKind::SymbolicLink { target } if target.is_empty() => String::new(),
        MemberKind::SymbolicLink { target } => format!(" -> {}", escape(target)),
        MemberKind::HardLink { target } => format!(" link to {}", escape(target)),
        _ => String::new(),
    };
    let (mode, time, path) =
        (mode_text(member), time_text(member.modified.seconds), shown_path(member));
    format!("{mode} {owner} {size:>12} {time} {path}{leads_to}")
}

fn mode_text(member: &Member) -> String {
    let kind = match member.kind {
        MemberKind::File => '-',
        MemberKind::HardLink { .. } => 'h',
        MemberKind::Directory => 'd',
        MemberKind::SymbolicLink { .. } => 'l',
        MemberKind::Fifo => 'p',
        MemberKind::CharacterDevice { .. } => 'c',
        MemberKind::BlockDevice { .. } => 'b',
    };
    mode_letters(kind, member.mode)
}

/// As `ls -l` has them: the letter of the kind, and permissions.
pub fn mode_letters(kind: char, mode: u32) -> String {
    let mut text = String::from(kind);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & 1 != 0, mode & special != 0) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}
