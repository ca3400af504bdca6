//! A line as it is typed, read as programs with their block sizes, its source and its target.
//!
//! Nothing is run. What is not understood is [`Role::Unknown`], and nothing is claimed of it.

mod compressors;
mod nowhere;
mod options;
mod words;

use std::path::PathBuf;

use compressors::COMPRESSORS;
use pipeline::pace;

pub use nowhere::to_nowhere;
pub use words::words;

/// A line that is one pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed {
    /// The stages as they were typed.
    pub stages: Vec<String>,
    /// The same, read.
    pub programs: Vec<TypedProgram>,
    /// What is read, as far as it is understood.
    pub sources: Vec<PathBuf>,
    pub target: TypedTarget,
    /// Whether options choose files or change them, or the target keeps what it has: another
    /// program would not do the same.
    pub is_special: bool,
    /// Whether it is a tar that looks at its files and reads none of them: its archive is
    /// `/dev/null`.
    pub skips_data: bool,
}

/// Where the output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedTarget {
    /// To standard output, or to nothing.
    Nowhere,
    Path(PathBuf),
    /// To another machine, or somewhere that is not understood.
    Elsewhere(String),
}

/// A program of the line.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedProgram {
    /// Without its folder.
    pub name: String,
    /// The stage that it belongs to: tar may start a compressor of its own.
    pub stage: usize,
    /// Its words, where it may be tried on data.
    pub words: Vec<String>,
    pub role: Role,
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// Its own buffer, if it has one.
    pub buffer_bytes: u64,
}

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// It reads files and writes an archive or a copy of them.
    Reads,
    /// It passes data on.
    Passes,
    Compresses,
    /// It holds a rate, in bytes for each second.
    Holds(f64),
    /// Another program decides, such as the one at the other end of a network.
    Unknown,
}

/// What a pipe holds (pipe(7)).
pub const PIPE_BYTES: u64 = 64 << 10;
/// `takeup pipe` without `--ring`.
pub const RING_BYTES: u64 = 64 << 20;
const TARS: [&str; 3] = ["tar", "gtar", "bsdtar"];
/// Those that do not read what they would write to nothing.
const GNU_TARS: [&str; 2] = ["tar", "gtar"];
const NOTHING: &str = "/dev/null";

/// What a stage says.
#[derive(Debug, Default)]
struct Said {
    programs: Vec<TypedProgram>,
    sources: Vec<PathBuf>,
    target: Option<TypedTarget>,
    is_special: bool,
    skips_data: bool,
}

/// Words in front of a program that do not change what it reads and writes.
const PREFIXES: [&str; 6] = ["sudo", "nice", "ionice", "time", "nohup", "env"];

/// A line of a crontab without the times in front of it, and the user that `/etc/crontab` has
/// there (crontab(5)); any other line as it is.
pub fn without_times(line: &str) -> &str {
    const MONTHS: &str = "jan feb mar apr may jun jul aug sep oct nov dec";
    const DAYS: &str = "sun mon tue wed thu fri sat";
    /// Minute, hour, day, month, day of the week, each with its names.
    const FIELDS: [&str; 5] = ["", "", "", MONTHS, DAYS];
    let is_number = |part: &str| {
        let has = part.starts_with('*') || part.starts_with(|it: char| it.is_ascii_digit());
        has && part.bytes().all(|it| it.is_ascii_digit() || b"*/-".contains(&it))
    };
    let is_time = |word: &str, names: &str| {
        let is_name = |part: &str| names.split(' ').any(|it| it.eq_ignore_ascii_case(part));
        let is_named = |part: &str| !part.is_empty() && part.split('-').all(is_name);
        word.split(',').all(|part| is_number(part) || is_named(part))
    };
    // Five years in a row are the names of five folders.
    let is_short = |word: &str| word.len() <= 2 || !word.bytes().all(|it| it.is_ascii_digit());
    let mut rest = line.trim_start();
    if let Some(behind) = rest.strip_prefix('@') {
        // @daily and the like.
        return behind.split_once(char::is_whitespace).map_or(line, |(_, rest)| user_off(rest));
    }
    for names in FIELDS {
        let Some((word, behind)) = rest.split_once(char::is_whitespace) else { return line };
        if !is_time(word, names) || !is_short(word) {
            return line;
        }
        rest = behind.trim_start();
    }
    user_off(rest)
}

/// Without a first word that is `root`: other users' names could be programs.
fn user_off(rest: &str) -> &str {
    let rest = rest.trim_start();
    match rest.split_once(char::is_whitespace) {
        Some(("root", behind)) => behind.trim_start(),
        _ => rest,
    }
}

/// Reads a line; `None` where it is not one pipeline.
pub fn typed(line: &str) -> Option<Typed> {
    let stages = pipeline::line::stages(line)?;
    let mut typed = Typed {
        stages: stages.clone(),
        programs: Vec::new(),
        sources: Vec::new(),
        target: TypedTarget::Nowhere,
        is_special: false,
        skips_data: false,
    };
    let count = stages.len();
    let mut is_broken = false;
    for (at, stage) in stages.iter().enumerate() {
        let said = said(stage, at);
        typed.is_special |= said.is_special;
        typed.skips_data |= said.skips_data;
        // A later stage that reads a file does not read its pipe, and a stage in front that writes
        // a file leaves the pipe empty.
        is_broken |= at > 0 && !said.sources.is_empty();
        typed.sources.extend(said.sources);
        typed.programs.extend(said.programs);
        match said.target {
            Some(target) if at + 1 == count => typed.target = target,
            Some(_) => is_broken = true,
            None => {}
        }
    }
    if is_broken {
        typed.sources.clear();
    }
    Some(typed)
}

fn said(stage: &str, at: usize) -> Said {
    let unknown = || {
        let name = stage.split_whitespace().next().unwrap_or("?").to_owned();
        Said { programs: vec![program(&name, at, Role::Unknown)], ..Said::default() }
    };
    let Some(mut read) = words(stage) else { return unknown() };
    let Some(kept) = without_prefixes(&read.words) else { return unknown() };
    read.words = kept;
    let Some(first) = read.words.first() else { return unknown() };
    let name = first.rsplit('/').next().unwrap_or(first).to_owned();
    let mut said = match name.as_str() {
        tar if TARS.contains(&tar) => options::tar(tar, &read.words, at),
        "dd" => options::dd(&read.words, at),
        "cat" | "cp" | "rsync" => options::copies(&name, &read.words, at),
        "find" => options::find(&read.words, at),
        "cpio" => options::cpio(&read.words, at),
        "pv" | "mbuffer" | "takeup" => options::buffer(&name, &read.words, at),
        compressor if COMPRESSORS.contains(&compressor) => {
            options::compressor(&name, &read.words, at)
        }
        "ssh" | "nc" | "ncat" | "socat" | "curl" | "rclone" => Some(Said {
            programs: vec![program(&name, at, Role::Unknown)],
            target: Some(TypedTarget::Elsewhere(format!("through {name}"))),
            ..Said::default()
        }),
        _ => None,
    }
    .unwrap_or_else(unknown);
    if let (Some(rate), Some(own)) = (pace::declared(&read.words), said.programs.last_mut()) {
        // One that is not understood may do anything else beside.
        if own.role != Role::Unknown {
            own.role = Role::Holds(rate);
        }
    }
    if let Some(from) = read.from {
        said.sources.push(from.into());
    }
    // Messages may go behind those of yesterday.
    said.is_special |= read.appends && said.target.is_none();
    // GNU tar looks whether its archive is /dev/null. One that a compressor of its own writes for
    // it knows only the name.
    if let [own] = &said.programs[..] {
        let to_nothing = said.target.is_none() && read.to.as_deref() == Some(NOTHING);
        said.skips_data |= to_nothing && own.role == Role::Reads && GNU_TARS.contains(&&*own.name);
    }
    // What a program writes itself does not go to its standard output.
    if let (Some(to), None) = (read.to, &said.target) {
        said.target = Some(target(&to));
    }
    said
}

/// The words of the program itself; `None` where a prefix has options that are not known.
fn without_prefixes(words: &[String]) -> Option<Vec<String>> {
    let mut rest = words;
    while let Some((first, behind)) = rest.split_first() {
        if !PREFIXES.contains(&first.rsplit('/').next().unwrap_or(first)) {
            break;
        }
        rest = behind;
        // `nice -n 19`, `ionice -c 3 -n 7`, `nice -19`.
        while let Some((option, behind)) = rest.split_first() {
            let is_number = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
            match option.as_str() {
                "-n" | "-c" => {
                    behind.first().filter(|word| is_number(word))?;
                    rest = &behind[1..];
                }
                other if other.starts_with('-') => {
                    let digits = other.trim_start_matches(['-', 'n', 'c']);
                    (!digits.is_empty() && is_number(&digits.to_owned())).then_some(())?;
                    rest = behind;
                }
                _ => break,
            }
        }
    }
    (!rest.is_empty()).then(|| rest.to_vec())
}

fn program(name: &str, stage: usize, role: Role) -> TypedProgram {
    TypedProgram {
        name: name.to_owned(),
        stage,
        words: Vec::new(),
        role,
        read_bytes: PIPE_BYTES,
        write_bytes: PIPE_BYTES,
        buffer_bytes: 0,
    }
}

fn target(path: &str) -> TypedTarget {
    let is_remote =
        path.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'));
    match path {
        NOTHING => TypedTarget::Nowhere,
        remote if is_remote => TypedTarget::Elsewhere(remote.to_owned()),
        path => TypedTarget::Path(path.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn check(line: &str, source: &str, to: &str, programs: &[(&str, Role, u64)]) {
        let typed = typed(line).unwrap();
        let sources: Vec<&Path> = typed.sources.iter().map(PathBuf::as_path).collect();
        let expected: Vec<&Path> = source.split_whitespace().map(Path::new).collect();
        assert_eq!(sources, expected, "{line}");
        let expected = match to {
            "" => TypedTarget::Nowhere,
            far if far.starts_with("through") => TypedTarget::Elsewhere(far.to_owned()),
            path => TypedTarget::Path(path.into()),
        };
        assert_eq!(typed.target, expected, "{line}");
        let found: Vec<(&str, Role, u64)> =
            typed.programs.iter().map(|it| (it.name.as_str(), it.role, it.write_bytes)).collect();
        assert_eq!(found, programs, "{line}");
    }

    #[test]
    fn lines_of_crontabs_are_read() {
        use Role::{Compresses, Holds, Passes, Reads, Unknown};
        let k = |kib: u64| kib << 10;
        check("tar cf /dev/nst0 /srv", "/srv", "/dev/nst0", &[("tar", Reads, k(10))]);
        check("tar -b 128 -cf /dev/nst0 /srv", "/srv", "/dev/nst0", &[("tar", Reads, k(64))]);
        check("tar -C /srv -b512 -cf - a b", "/srv/a /srv/b", "", &[("tar", Reads, k(256))]);
        check(
            "tar czf - /srv | dd of=/dev/nst0 bs=512k",
            "/srv",
            "/dev/nst0",
            &[("tar", Reads, k(64)), ("gzip", Compresses, k(64)), ("dd", Passes, k(512))],
        );
        check(
            "tar -I 'zstd -T0' -cf /mnt/x.tar.zst /srv",
            "/srv",
            "/mnt/x.tar.zst",
            &[("tar", Reads, k(64)), ("zstd", Compresses, k(64))],
        );
        check(
            "tar -cf - /srv | gzip -1 > /mnt/x.gz",
            "/srv",
            "/mnt/x.gz",
            &[("tar", Reads, k(10)), ("gzip", Compresses, k(64))],
        );
        check("dd if=/dev/sdb of=/dev/nst0", "/dev/sdb", "/dev/nst0", &[("dd", Reads, 512)]);
        check(
            "cat /srv/a | mbuffer -m 1G -s 256k -o /dev/nst0",
            "/srv/a",
            "/dev/nst0",
            &[("cat", Reads, k(128)), ("mbuffer", Passes, k(256))],
        );
        check(
            "tar cf - /srv | pv -qL 10m | ssh host 'cat > x'",
            "/srv",
            "through ssh",
            &[("tar", Reads, k(10)), ("pv", Holds(10_485_760.0), k(64)), ("ssh", Unknown, k(64))],
        );
        check("cp -a /srv /mnt", "/srv", "/mnt", &[("cp", Reads, k(128))]);
        check(
            "pg_dump shop | gzip > x",
            "",
            "x",
            &[("pg_dump", Unknown, k(64)), ("gzip", Compresses, k(64))],
        );
        check(
            "find /srv -print0 | cpio -o -0 -H newc > /dev/nst0",
            "/srv",
            "/dev/nst0",
            &[("find", Passes, k(64)), ("cpio", Reads, 512)],
        );
        check(
            "sudo nice -n 19 takeup backup /srv --to /dev/nst0",
            "/srv",
            "/dev/nst0",
            &[("takeup", Reads, k(1024))],
        );
        check("tar xf /dev/nst0", "", "", &[("tar", Unknown, k(64))]);
        check(
            "tar cf - $DIRS | gzip > x",
            "",
            "x",
            &[("tar", Unknown, k(64)), ("gzip", Compresses, k(64))],
        );
        check("tar cvf /dev/nst0 /srv > log 2>&1", "/srv", "/dev/nst0", &[("tar", Reads, k(10))]);
        assert_eq!(typed("make && tar cf - ."), None);
    }

    /// GNU tar 1.34, by strace: with these it reads none of its files, and with those it does.
    #[test]
    fn a_tar_whose_archive_is_nothing_skips_its_data() {
        for line in [
            "tar cf /dev/null /srv",
            "tar cf - /srv > /dev/null",
            "tar czf /dev/null /srv",
            "tar -I zstd -cf /dev/null /srv",
            "nice -n 19 tar -cf /dev/null /srv 2>/dev/null",
        ] {
            assert!(typed(line).unwrap().skips_data, "{line}");
        }
        for line in [
            "tar cf - /srv | cat > /dev/null",
            "tar czf - /srv > /dev/null",
            "bsdtar cf /dev/null /srv",
            "tar cf /dev/zero /srv",
            "tar cf /dev/nst0 /srv 2>/dev/null",
            "cat /srv/a > /dev/null",
            "dd if=/srv/a of=/dev/null",
        ] {
            assert!(!typed(line).unwrap().skips_data, "{line}");
        }
    }

    #[test]
    fn what_is_not_understood_names_no_source() {
        for line in [
            "tar cf x.tar /srv | gzip > y",
            "cat /srv/a | gzip - < /srv/b > x",
            "cp -t /mnt /srv/a",
            "rsync -a -e ssh /srv /mnt",
            "rsync --bwlimit=100 /srv /mnt",
            "tar caf x.tar.gz /srv",
            "tar cf x --files-from list",
            "tar --lzma -cf x /srv",
            "find /srv -name x | cpio -o > y",
            "cpio -pdm /mnt < list",
            "dd if=/srv/a of=x count=3",
            "gzip /srv/a",
            "zstd --rm /srv/a",
            "env A=b tar cf x /srv",
        ] {
            let typed = typed(line).unwrap();
            let unknown = typed.programs.iter().any(|it| it.role == Role::Unknown);
            assert!(typed.sources.is_empty() || unknown, "{line}: {typed:?}");
        }
        assert!(typed("tar --exclude=x -cf y /srv").unwrap().is_special);
        // What `takeup backup --overwrite` would replace.
        assert!(typed("tar cf - /srv | gzip >> all.tgz").unwrap().is_special);
        let with_log = "tar cf /dev/nst0 /srv >> /var/log/backup.log 2>&1";
        assert!(!typed(with_log).unwrap().is_special);
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in r#"(tar|dd|pv|cp|gzip|mbuffer) [a-zA-Z |<>'"$=0-9/.-]{0,50}"#) {
            let _ = typed(&line);
        }
    }

    #[test]
    fn times_of_a_crontab_are_no_part_of_the_line() {
        for times in ["0 3 * * *", "*/5 1-4 1,15 jan mon,Wed-fri", "@daily", "0 3 * * 0 root"] {
            assert_eq!(without_times(&format!("{times} tar cf x.tar /srv")), "tar cf x.tar /srv");
        }
        for line in [
            "tar cf x.tar /srv",
            "tar czf - etc usr var | ssh h 'cat > x'",
            "tar czf - etc usr | ssh h 'cat > x'",
            "cat 2019 2020 2021 2022 | gzip > x",
            "2019 2020 2021 2022 2023 x",
            "dd 1 2 3 4 5 6",
            "1 2 3",
            "",
        ] {
            assert_eq!(without_times(line), line);
        }
    }
}
