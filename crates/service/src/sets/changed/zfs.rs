//! The list of changes that `zfs diff` prints.
//!
//! A line is a change, the kind of the object, its path and, of a rename, the new path, with tabs
//! between them; behind the path of a file whose links were counted anew is by how many. Bytes that
//! are no printable ASCII, blanks and backslashes are a backslash and four octal digits
//! (`lib/libzfs/libzfs_diff.c` of OpenZFS).

use std::io;
use std::path::Path;
use std::process::Output;
use std::time::SystemTime;

use archive::index::About;
use base::escape::{escape, escape_path};
use machine::mounts;
use tree::{TooManyPaths, ZfsSnapshots};

use super::{GivenList, NoList, timestamp};
use crate::failure::Failure;

/// What has changed between two snapshots, or since one.
pub(super) fn list(
    snapshots: &ZfsSnapshots,
    about: &About,
    before: &About,
) -> Result<Result<GivenList, NoList>, Failure> {
    let Ok(mounts) = mounts::now() else { return Ok(Err(NoList::Mounts)) };
    if before.mounts.is_empty() {
        return Ok(Err(NoList::MountsNotNoted));
    }
    let data_set = Path::new(&snapshots.data_set);
    let mount = mounts.iter().rfind(|mount| mount.kind == "zfs" && mount.source == data_set);
    let Some(mount) = mount else {
        let message = format!("the ZFS file system {} is not mounted", escape_path(data_set));
        return Err(Failure::of(message, Some("`zfs list -o name,mounted` shows what is")));
    };
    let mut list = GivenList::new(&about.sources, timestamp(SystemTime::now()));
    let printed = diff(snapshots)?;
    let lines = printed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for line in lines {
        let Some(paths) = parse(line) else {
            let line = escape(line);
            return Ok(Err(NoList::Unknown(format!("`zfs diff` printed another line: {line}"))));
        };
        for path in paths.iter().flatten() {
            if let Err(TooManyPaths) = list.take(path) {
                return Ok(Err(NoList::TooLong));
            }
        }
    }
    // What has changed in the rest of the file system is no mistake of the list.
    list.outside = 0;
    Ok(list.with_mounts(&mount.point, &about.sources, before).map(|()| list))
}

/// What `zfs diff` prints.
fn diff(snapshots: &ZfsSnapshots) -> Result<Vec<u8>, Failure> {
    let ZfsSnapshots { data_set, from, until } = snapshots;
    let failed = |why: &str| {
        let message = format!("cannot run zfs diff {data_set}@{from}: {why}");
        let hint = "`zfs list -t snapshot` shows the snapshots; it needs root, or `zfs allow diff`";
        Failure::of(message, Some(hint))
    };
    let run = || -> io::Result<Output> {
        let mut command = machine::programs::command("zfs")?;
        command.args(["diff", "-FH"]).arg(format!("{data_set}@{from}"));
        command.args(until.iter().map(|until| format!("{data_set}@{until}")));
        command.env("LC_ALL", "C").stdin(std::process::Stdio::null()).output()
    };
    let output = run().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => failed("there is no program zfs"),
        _ => failed(&error.to_string()),
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(&escape(said.trim().as_bytes())));
    }
    Ok(output.stdout)
}

/// The paths of a line. `None`: it has another form.
fn parse(line: &[u8]) -> Option<[Option<Vec<u8>>; 2]> {
    let mut fields = line.split(|byte| *byte == b'\t');
    let (change, kind) = (fields.next()?, fields.next()?);
    let path = unescaped(fields.next()?)?;
    let more = fields.next();
    if kind.len() != 1 || fields.next().is_some() {
        return None;
    }
    let second = match (change, more) {
        (b"M" | b"+" | b"-", None) => None,
        (b"M" | b"+" | b"-", Some(links)) if is_count(links) => None,
        (b"R", Some(new)) => Some(unescaped(new)?),
        _ => return None,
    };
    let is_absolute = |path: &Vec<u8>| path.first() == Some(&b'/');
    let are_paths = is_absolute(&path) && second.as_ref().is_none_or(is_absolute);
    are_paths.then_some([Some(path), second])
}

/// Whether a field is by how many links a file has more or fewer: `(+1)`.
fn is_count(field: &[u8]) -> bool {
    let inner = field.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")"));
    let digits = inner.and_then(|it| it.strip_prefix(b"+").or_else(|| it.strip_prefix(b"-")));
    digits.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}

/// A path without its escapes. `None`: a backslash is no escape, or means a NUL.
fn unescaped(field: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, behind)) = rest.split_first() {
        if *byte != b'\\' {
            bytes.push(*byte);
            rest = behind;
            continue;
        }
        let (digits, behind) = behind.split_at_checked(4)?;
        let is_octal = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
        let number = digits.iter().fold(0_u16, |number, digit| number << 3 | u16::from(digit & 7));
        let meant = u8::try_from(number).ok().filter(|byte| is_octal && *byte != 0)?;
        bytes.push(meant);
        rest = behind;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As OpenZFS prints a path.
    fn escaped(path: &[u8]) -> String {
        let byte = |byte: &u8| match byte {
            b'!'..=b'~' if *byte != b'\\' => char::from(*byte).to_string(),
            _ => format!("\\{byte:04o}"),
        };
        path.iter().map(byte).collect()
    }

    fn paths(line: &str) -> Option<Vec<String>> {
        let paths = parse(line.as_bytes())?;
        let text = |path: Vec<u8>| String::from_utf8(path).unwrap();
        Some(paths.into_iter().flatten().map(text).collect())
    }

    #[test]
    fn lines_of_all_kinds() {
        for (line, expected) in [
            ("M\t/\t/tank/fs", &["/tank/fs"][..]),
            ("+\tF\t/tank/fs/new\\0040name", &["/tank/fs/new name"]),
            ("-\t@\t/tank/fs/a\\0134b", &["/tank/fs/a\\b"]),
            ("R\tF\t/tank/fs/old\t/tank/fs/n\\0303\\0244", &["/tank/fs/old", "/tank/fs/nä"]),
            ("M\tF\t/tank/fs/linked\t(+1)", &["/tank/fs/linked"]),
            ("M\tF\t/tank/fs/linked\t(-12)", &["/tank/fs/linked"]),
            ("M\t?\t/tank/fs/(on_delete_queue)", &["/tank/fs/(on_delete_queue)"]),
        ] {
            assert_eq!(paths(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn lines_of_another_form() {
        for line in [
            "",
            "M",
            "M\t/tank/fs",
            "M\tF\ttank/fs",
            "X\tF\t/tank/fs",
            "M\tFF\t/tank/fs",
            "M\tF\t/tank/fs\t/tank/other",
            "M\tF\t/tank/fs\t(1)",
            "R\tF\t/tank/fs",
            "R\tF\t/tank/fs\tother",
            "R\tF\t/tank/fs\t/tank/a\t/tank/b",
            "M\tF\t/tank/fs\\040",
            "M\tF\t/tank/fs\\0400",
            "M\tF\t/tank/fs\\0000",
            "M\tF\t/tank/fs\\0089",
            "R\tF\t/tank/fs -> /tank/other",
        ] {
            assert_eq!(paths(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_read_as_it_was(
            name in proptest::collection::vec(1_u8..=255, 0..60),
            other in proptest::collection::vec(1_u8..=255, 0..60),
        ) {
            let [name, other] = [name, other].map(|name| [&b"/tank/"[..], &name].concat());
            let line = format!("R\tF\t{}\t{}", escaped(&name), escaped(&other));
            prop_assert_eq!(parse(line.as_bytes()), Some([Some(name), Some(other)]));
        }

        #[test]
        fn any_bytes_are_a_line_or_none(line in proptest::collection::vec(any::<u8>(), 0..80)) {
            for path in parse(&line).into_iter().flatten().flatten() {
                prop_assert!(path.starts_with(b"/") && !path.contains(&0));
            }
        }
    }
}
