//! A line with its output thrown away, so that it can run without writing what it writes.

use super::compressors::COMPRESSORS;
use super::{Role, Typed, TypedTarget, typed};

/// Programs that write nothing but their output, with the options that are understood of them.
const HARMLESS: [&str; 7] = ["tar", "gtar", "bsdtar", "cat", "dd", "pv", "mbuffer"];
/// Programs of these folders are what their names say.
const SYSTEM: [&str; 3] = ["/usr/bin/", "/bin/", "/usr/local/bin/"];
/// What a program opens in the place of its file: its own standard output.
const OUTPUT: &str = "/dev/stdout";
const MESSAGES: [&str; 2] = ["2>/dev/null", "2> /dev/null"];

/// The line, read to its end by a program that keeps nothing: `tar` does not read its files where
/// its archive is `/dev/null`. `None` where it is not certain that nothing else is written, or
/// where the target is not one word of the line.
pub fn to_nowhere(line: &str) -> Option<String> {
    if !is_plain(line) {
        return None;
    }
    let typed = typed(line)?;
    // A compressor of a file may leave its file compressed, or not at all.
    if typed.programs.first().is_none_or(|it| it.role == Role::Compresses) {
        return None;
    }
    let is_harmless =
        typed.programs.iter().all(is_harmless) && typed.stages.iter().all(|it| is_by_name(it));
    if typed.is_special || typed.sources.is_empty() || !is_harmless {
        return None;
    }
    let open = match &typed.target {
        TypedTarget::Path(path) => with_word(line, path.to_str()?)?,
        // Not to be mistaken for that of `2>/dev/null`.
        TypedTarget::Nowhere if ends_in_nothing(&typed) => with_word(line, "/dev/null")?,
        // A tar that writes to nothing reads nothing.
        TypedTarget::Nowhere if names_nothing(line) => return None,
        TypedTarget::Nowhere => line.to_owned(),
        TypedTarget::Elsewhere(_) => return None,
    };
    // The word that was replaced was the target, and no other place of the same name.
    let target = super::typed(&open)?.target;
    let is_open = target == TypedTarget::Path(OUTPUT.into()) || target == TypedTarget::Nowhere;
    (is_open && writes_no_file(&open)).then(|| format!("{open} | cat > /dev/null"))
}

/// Whether a shell reads the line as it is read here: letters, numbers and the signs of paths and
/// options, in words apart by spaces; words between single quotes are as plain; a bar is a pipe.
fn is_plain(line: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:+%@ ".contains(letter);
    let line = MESSAGES.iter().fold(line.to_owned(), |line, it| line.replace(it, ""));
    let line = line.replace("2>&1", "");
    let mut is_quoted = false;
    let is_plain = line.chars().all(|letter| {
        is_quoted ^= letter == '\'';
        letter == '\'' || is_word(letter) || (!is_quoted && "|>".contains(letter))
    });
    is_plain && !is_quoted
}

/// Whether the program of a stage is found by its name, or in a folder of the system; and not by
/// another user, whose programs cannot be ended.
fn is_by_name(stage: &str) -> bool {
    let Some(read) = super::words(stage) else { return false };
    let is_another = read.words.iter().any(|word| word == "sudo" || word.ends_with("/sudo"));
    let kept = super::without_prefixes(&read.words);
    // What stands in front of the program, and a compressor that tar starts: a word of its own, or
    // behind an option.
    let is_elsewhere = |word: &String| {
        let program = word.split_whitespace().next().unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or_default();
        let is_program = COMPRESSORS.contains(&name) || super::PREFIXES.contains(&name);
        is_program && !is_of_the_system(program)
    };
    let is_known = kept.is_some_and(|words| is_of_the_system(&words[0]));
    is_known && !is_another && !read.words.iter().any(is_elsewhere)
}

fn is_of_the_system(program: &str) -> bool {
    let name = SYSTEM.iter().find_map(|folder| program.strip_prefix(folder)).unwrap_or(program);
    !name.contains('/')
}

fn names_nothing(line: &str) -> bool {
    MESSAGES.iter().fold(line.to_owned(), |line, it| line.replace(it, "")).contains("/dev/null")
}

fn is_harmless(program: &super::TypedProgram) -> bool {
    match program.role {
        Role::Unknown => false,
        Role::Compresses => true,
        Role::Reads | Role::Passes | Role::Holds(_) => HARMLESS.contains(&program.name.as_str()),
    }
}

/// Whether the last stage names `/dev/null` itself.
fn ends_in_nothing(typed: &Typed) -> bool {
    let words = typed.stages.last().and_then(|stage| super::words(stage));
    words.is_some_and(|it| {
        it.to.as_deref() == Some("/dev/null")
            || it.words.iter().any(|word| word.trim_start_matches("of=") == "/dev/null")
    })
}

/// The line with the one word that is this path replaced; `None` if there is none or several.
fn with_word(line: &str, path: &str) -> Option<String> {
    let opens = |before: &str| {
        let is_output = before.ends_with('>') && !before.ends_with("2>");
        before.is_empty() || before.ends_with([' ', '=', '\'']) || is_output
    };
    let closes = |behind: &str| behind.is_empty() || behind.starts_with([' ', '|', '\'']);
    // `2> /dev/null` is for messages.
    let is_message = |before: &str| before.trim_end().ends_with("2>");
    let mut places = line.match_indices(path).map(|(at, _)| at).filter(|at| {
        let (before, behind) = (&line[..*at], &line[at + path.len()..]);
        opens(before) && closes(behind) && !is_message(before)
    });
    let (at, None) = (places.next()?, places.next()) else { return None };
    Some(format!("{}{OUTPUT}{}", &line[..at], &line[at + path.len()..]))
}

/// Whether all redirections go to where nothing is kept.
fn writes_no_file(line: &str) -> bool {
    line.match_indices('>').all(|(at, _)| {
        let to = line[at + 1..].trim_start();
        let ends = |word: &str| {
            to.strip_prefix(word).is_some_and(|it| it.is_empty() || it.starts_with([' ', '|']))
        };
        [OUTPUT, "/dev/null", "&1", "&2"].into_iter().any(ends)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        let expected = expected.map(|it| format!("{it} | cat > /dev/null"));
        assert_eq!(to_nowhere(line), expected, "{line}");
    }

    #[test]
    fn the_target_of_a_line_is_replaced() {
        check("tar czf drive/nst0 srv", Some("tar czf /dev/stdout srv"));
        check(
            "tar cf - srv | gzip -1 | dd of=/dev/nst0 bs=512k",
            Some("tar cf - srv | gzip -1 | dd of=/dev/stdout bs=512k"),
        );
        check(
            "tar cf - srv 2>/dev/null | pv -qL 10m >x.tar",
            Some("tar cf - srv 2>/dev/null | pv -qL 10m >/dev/stdout"),
        );
        check("tar cf - srv | zstd", Some("tar cf - srv | zstd"));
        check("tar cf /dev/null srv", Some("tar cf /dev/stdout srv"));
        check("tar cf - srv | gzip > /dev/null", Some("tar cf - srv | gzip > /dev/stdout"));
        check(
            "nice -n 19 /usr/bin/tar cf x srv",
            Some("nice -n 19 /usr/bin/tar cf /dev/stdout srv"),
        );
        check("tar cf 'my drive' srv", Some("tar cf '/dev/stdout' srv"));
    }

    #[test]
    fn a_line_that_may_write_more_is_none() {
        for line in [
            "tar cf - srv | tee copy | gzip > x",
            "tar cf - -g snar srv | gzip > x",
            "tar cf - srv 2> log | gzip > x",
            "tar cvf x srv > log",
            "cp -a srv x",
            "rsync -a srv x",
            "takeup backup srv --to x",
            "tar cf - srv | ssh host 'cat > x'",
            "gzip srv/a",
            "tar cf x.tar x.tar",
            "tar cf x srv && rm -r srv",
            "pg_dump shop | gzip > x",
            "tar -cfx srv",
            "tar cf - srv | gzip >> x.gz; date",
            // Options that write elsewhere, beside a rate.
            "tar cf - srv | gzip | mbuffer -t -R 50M -f -o drive",
            "tar cf - srv | gzip | mbuffer -R 50M -l log -o drive",
            "tar cf - srv | gzip | pv -L 50m -P pid > x",
            "tar cf - srv | mbuffer -R 1M -f -o drive -o x",
            "tar cf - srv | mbuffer -R 1M -T /dev/sdb -o x",
            "dd if=srv/a of=drive of=x",
            // Another word of the same name.
            "pv -L 1m -N out srv/a | dd of=out\tbs=1M",
            "pv -L 1m -N out srv/a | dd of=o\\ut",
            // What looks like a known program.
            "./tar cf x srv",
            "tar cf - srv | /tmp/gzip > x",
            "tar -I ./gzip -cf x srv",
            "tar -I 'gzip < x' -cf y srv",
            "sudo tar cf x srv",
            "nice sudo tar cf x srv",
            "find srv | cpio -oa > x",
            "./nice cat srv/a | pv -qL 10m > x",
            "tar -I \"'/tmp/gzip'\" -cf - srv | pv -qL 2m > x",
            "tar -I '/tmp/gz\\ip' -cf - srv | pv -qL 2m > x",
            // A bar that only the shell sees.
            "pv -q srv/a -N \"(\"|tee -i victim|pv -q -N \")\" | pv -qL 10m > x",
            "pv -L 1m -N a\\|tee srv/a > x",
            // White space that is none to the shell.
            "pv -L 1m srv/a >\u{a0} /dev/null",
            "pv -L 1m srv/a | gzip 'file'\u{a0}-c > x",
            "pv -L 1m srv/a >\r/dev/null",
            // A file that is compressed in its place.
            "gzip -1 c -c | pv -qL 2m > x",
            "cat srv/a | zstd -q -T 2 | pv -qL 2m > x",
            "tar -I 'zstd -T 2' -cf - srv | pv -qL 2m > x",
            // What a shell makes of it.
            "tar cf - $HOME | pv -qL 2m > x",
            "tar cf - srv/* | pv -qL 2m > x",
            "tar cf - `touch x` srv | pv -qL 2m > x",
            "tar cf - srv | pv -qL 2m > x #",
            "tar cf - ~ | pv -qL 2m > x",
            "tar -cf/dev/null srv",
            "tar --create --file=/dev/null srv",
        ] {
            check(line, None);
        }
    }

    proptest::proptest! {
        /// Whatever is typed: what comes out names no other file behind `>` or `of=`.
        #[test]
        fn nothing_else_is_written(
            line in r#"(tar cf|dd|pv|cat|gzip|mbuffer -o) [a-z |>&'"0-9/.=-]{0,60}"#,
        ) {
            if let Some(line) = to_nowhere(&line) {
                let all = line.strip_suffix(" | cat > /dev/null").unwrap();
                let again = typed(all).unwrap();
                let own = TypedTarget::Path(OUTPUT.into());
                assert!(again.target == own || again.target == TypedTarget::Nowhere, "{line}");
            }
        }
    }
}
