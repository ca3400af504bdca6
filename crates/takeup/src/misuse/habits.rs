//! Words and options of other programs, and what to type instead: tar, dd, fio, iostat, strace,
//! mbuffer, restic and borg.
//!
//! [`HABITS`] is one table, so that a habit is one more row. It is looked at after clap has refused
//! a command line, so a row never changes what a valid command does.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A word of another program.
struct Habit {
    /// The words of the command in front of it: `bench disk`; empty for `takeup` itself.
    command: &'static str,
    /// Words that are typed, separated by blanks. `bs=` is a word with a value; `-t` also stands
    /// for a bundle that tar would read as `-t`, such as `-tvf`.
    typed: &'static str,
    /// What to do. `{NAME}` becomes the value of the word, or the word after it; `{NAME...}` the
    /// words after that. Without such a word, the name stays, as a placeholder.
    hint: &'static str,
}

const fn habit(command: &'static str, typed: &'static str, hint: &'static str) -> Habit {
    Habit { command, typed, hint }
}

const HABITS: &[Habit] = &[
    // tar
    habit("", "-t --list", "run `takeup list {ARCHIVE}` to list an archive"),
    habit("", "-x --extract --get", "run `takeup restore {ARCHIVE} --into DIR` to restore it"),
    habit(
        "",
        "-c --create",
        "run `takeup backup {PATH...} --to {ARCHIVE}`: the name of the archive decides its \
         compression",
    ),
    habit("", "-d --diff --compare", "run `takeup verify {ARCHIVE} --against DIR` to compare"),
    habit(
        "",
        "-r -u -A --append --update",
        "run `takeup backup PATH --to ARCHIVE`: takeup writes new archives, and appends to none",
    ),
    habit("backup", "-czf", "run `takeup backup {PATH...} --to {ARCHIVE}`"),
    habit("backup", "-f --file --archive --repo --repository", "use --to {ARCHIVE}"),
    habit("backup", "-z --gzip", "use --compress=gzip, or a target that ends in .tar.gz"),
    habit("backup", "--zstd", "use --compress=zstd, or a target that ends in .tar.zst"),
    habit("backup", "-j -J --xz --bzip2 --lz4", "use --compress=zstd or --compress=gzip"),
    habit("backup", "-C --directory", "name the folder itself: `takeup backup {DIR} --to ARCHIVE`"),
    habit("backup", "-p -a --acls --xattrs", "leave {WORD} out: takeup always does that"),
    habit(
        "backup",
        "-g --listed-incremental",
        "use --incremental and --to FOLDER/: the sets in the folder are its memory",
    ),
    habit("restore", "-f -x --extract", "run `takeup restore {ARCHIVE} --into DIR`"),
    habit("restore", "-C --directory --target --destination", "use --into {DIR}"),
    habit("restore", "-p -k --keep-old-files", "leave {WORD} out: takeup always does that"),
    habit(
        "restore",
        "--include --exclude",
        "name what to restore: `takeup restore ARCHIVE PATH --into DIR`",
    ),
    habit("list", "-f -t --list", "run `takeup list {ARCHIVE}`; -l shows sizes and times"),
    habit("verify", "-d -C --diff --compare --directory", "use --against {DIR}"),
    habit("verify", "-f -t --test", "run `takeup verify {ARCHIVE}`"),
    habit("verify", "--read-data --check-data", "leave {WORD} out: takeup reads all data"),
    // restic, borg
    habit("", "ls info contents show archives", "run `takeup list ARCHIVE` to see what it holds"),
    habit(
        "",
        "snapshots history",
        "run `takeup list FOLDER/` for sets; other backups are an archive each",
    ),
    habit("", "check test fsck scrub", "run `takeup verify ARCHIVE`"),
    habit(
        "",
        "forget prune delete remove rm expire compact",
        "run `takeup catalog forget FOLDER/ --keep-daily 14` for sets; other archives go with `rm`",
    ),
    habit("", "extract x unpack get recover", "run `takeup restore ARCHIVE --into DIR`"),
    habit("", "create save archive tar", "run `takeup backup PATH --to ARCHIVE`"),
    habit("", "init", "run `takeup backup PATH --to ARCHIVE`: there is nothing to set up first"),
    habit(
        "",
        "mount",
        "run `takeup restore ARCHIVE PATH --into DIR` for a part: takeup mounts no archive",
    ),
    habit(
        "",
        "find grep locate",
        "run `takeup list ARCHIVE | grep NAME`, or `takeup catalog find NAME` over all archives",
    ),
    habit(
        "",
        "catalogue snapshots versions history",
        "run `takeup catalog sets` or `catalog find NAME`",
    ),
    habit(
        "",
        "diff",
        "run `takeup verify ARCHIVE --against DIR`, or `catalog diff FOLDER/ 1 2` for two sets",
    ),
    habit("", "cron timer schedule", "run `takeup units JOB`"),
    // dd, mbuffer
    habit("", "dd copy cat mbuffer pv buffer", "run `takeup pipe --from FILE --to FILE`"),
    habit("pipe", "if= -i --input", "use --from {FILE}"),
    habit("pipe", "of= -o --output", "use --to {FILE}"),
    habit("pipe", "bs= obs= ibs= --bs -s", "use --block-size {SIZE}"),
    habit("pipe", "count=", "leave it out: takeup reads to the end; `head -c` cuts a stream"),
    habit("pipe", "conv= oflag= iflag= status=", "leave it out: takeup syncs and shows progress"),
    habit("pipe", "-m --memory", "use --ring {SIZE}"),
    habit("pipe", "-P --fill", "use --start-fill {PERCENT}"),
    habit("pipe", "-r -R -L --rate", "use --rate-limit {RATE}"),
    // fio
    habit(
        "",
        "fio benchmark hdparm ioping",
        "run `takeup bench disk PATH` for random loads, `takeup bench read PATH` for one stream",
    ),
    habit("bench", "fio random randread", "run `takeup bench disk PATH`"),
    habit("bench", "write randwrite randrw", "run `takeup bench disk PATH --load {WORD}`"),
    habit("bench", "dd stream", "run `takeup bench read PATH`"),
    habit("bench disk", "--bs --blocksize", "use --block-size {LIST}"),
    habit("bench disk", "--rw --readwrite", "use --load {LIST}"),
    habit("bench disk", "--iodepth --qd", "use --depth {LIST}"),
    habit("bench disk", "--size --filesize", "use --length {SIZE}"),
    habit("bench disk", "--numjobs --threads", "use --jobs {LIST}"),
    habit("bench disk", "--ioengine --engine", "use --engines {LIST}"),
    habit("bench disk", "--rwmixread", "use --read-percent {LIST}"),
    habit("bench disk", "--nrfiles", "use --files {LIST}"),
    habit("bench disk", "--fdatasync", "use --fsync {LIST}"),
    habit("bench disk", "--name", "use --title {TEXT}"),
    habit("bench disk", "--direct --buffered", "use --cache direct or --cache buffered"),
    habit("bench disk", "--filename --directory", "leave it out: `takeup bench disk {PATH}`"),
    habit("bench disk", "--time_based --group_reporting", "leave {WORD} out: that is always so"),
    habit("bench disk", "--output-format --minimal", "use --json"),
    habit("bench read", "--bs bs= --blocksize", "use --block-size {LIST}"),
    habit("bench read", "--iodepth --qd", "use --depth {LIST}"),
    habit("bench read", "--size count=", "use --length {SIZE}"),
    habit("bench read", "--ioengine --engine", "use --engines {LIST}"),
    habit("bench read", "--direct --buffered", "use --cache direct or --cache buffered"),
    habit("bench read", "--filename --directory", "leave it out: `takeup bench read {PATH}`"),
    habit("bench read", "--runtime", "use --length SIZE: a run ends with its bytes"),
    habit("bench read", "--rw --load --readwrite", "run `takeup bench disk PATH --load {LIST}`"),
    // iostat
    habit("", "iostat iotop top sar monitor", "run `takeup watch`"),
    habit(
        "watch",
        "-x -d -k -m -t -y -z -c -p",
        "leave {WORD} out: `takeup watch --interval 1s` has all columns of iostat -x",
    ),
    // strace
    habit("", "strace ltrace trace perf", "run `takeup capture --pid PID`"),
    habit("capture", "-p", "use --pid {PID}"),
    habit("capture", "-o --output", "use --record {FILE}"),
    habit("capture", "-f -ff -c -e -y -yy -T -tt -ttt -s", "leave {WORD} out: that is always so"),
    habit("explain", "-p", "use --pid {PID}"),
    // Others
    habit("", "analyze analyse why profile", "run `takeup explain 'PIPELINE'`"),
    habit("", "lsblk inspect mt", "run `takeup probe PATH`"),
    habit("", "estimate predict forecast", "run `takeup plan --drive lto8 PATH`"),
    habit("", "blockdev set sysctl", "run `takeup tune set PATH read_ahead_kb=VALUE`"),
    habit("", "simulate emulate virtual", "run `takeup sim tape DIR` or `takeup sim disk DIR`"),
    habit("tune", "get list status", "run `takeup tune show`"),
    habit("tune", "reset undo restore", "run `takeup tune revert`"),
    habit("tune", "keep save", "run `takeup tune persist`"),
    habit("sim", "stop umount unmount", "run `umount DIR`"),
    habit("plan", "--data --bytes --amount", "use --size {SIZE}"),
    habit("plan", "--source --rate", "use --source-rate {RATE}, or name the folder itself"),
    habit("watch", "--for --seconds --duration --time", "use --interval 1s --count SECONDS"),
    habit("bench run", "--factor --level --parameter", "use --vary {NAME=LIST}"),
    habit("bench run", "--cmd -c --exec --program", "use --command NAME={LINE}"),
    habit("bench tape", "--yes -y --force", "use --overwrite to write over what the medium holds"),
    habit("list", "--from --archive", "run `takeup list {ARCHIVE}`"),
    habit("verify", "--from --archive", "run `takeup verify {ARCHIVE}`"),
    habit("restore", "--from --archive", "run `takeup restore {ARCHIVE} --into DIR`"),
    habit("sim tape", "--medium-size --size", "use --capacity {SIZE}"),
    habit("report", "--output --page", "use --html {FILE}"),
    habit("compare", "--output --page", "use --html {FILE}"),
];

/// What to do about a command line that clap has refused, if another program takes it. `root` is
/// the whole command line of takeup.
pub fn habit_hint(error: &clap::Error, root: &Command, typed: &[String]) -> Option<String> {
    let (command, rest) = command_of(root, typed);
    let place =
        rest.iter().position(|word| is_refused(error, word) && find(&command, word).is_some());
    let place = place?;
    let word = &rest[place];
    let found = find(&command, word)?;
    Some(filled(found.hint, word, &rest[place + 1..]))
}

/// The names of the command at the start of what was typed, and the words after them.
fn command_of<'a>(root: &Command, typed: &'a [String]) -> (String, &'a [String]) {
    let (mut command, mut names) = (root, Vec::new());
    for word in typed {
        let Some(below) = command.find_subcommand(word) else { break };
        command = below;
        names.push(word.as_str());
    }
    (names.join(" "), &typed[names.len()..])
}

/// Whether this word may be what clap refused. Where clap names another word, it is not.
fn is_refused(error: &clap::Error, word: &str) -> bool {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => Some(name.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            named(ContextKind::InvalidArg).is_none_or(|name| word.starts_with(name))
        }
        ErrorKind::InvalidSubcommand => {
            named(ContextKind::InvalidSubcommand).is_none_or(|name| word == name)
        }
        _ => true,
    }
}

/// The row for a word of this command.
fn find(command: &str, word: &str) -> Option<&'static Habit> {
    let name = match word.split_once('=') {
        Some((name, _)) if name.starts_with('-') => name.to_owned(),
        Some((name, _)) => format!("{name}="),
        None => word.to_owned(),
    };
    let row = |name: &str| {
        let of_it = HABITS.iter().filter(|habit| habit.command == command);
        let mut of_it = of_it.filter(|habit| habit.typed.split(' ').any(|typed| typed == name));
        of_it.next()
    };
    row(&name).or_else(|| row(&tar_bundle(command, &name)?))
}

/// The option that a bundle of tar's options stands for: `-t` for `-tvf` and, where no command is
/// named, for `tvf`; `-czf` for each one that begins an archive in `backup`.
fn tar_bundle(command: &str, word: &str) -> Option<String> {
    const OPERATIONS: &str = "ctxdruA";
    const OTHERS: &str = "vfzjJaphkmSWwCZP";
    let letters = match word.strip_prefix('-') {
        Some(letters) => letters,
        None if command.is_empty() => word,
        None => return None,
    };
    let is_known = |letter: char| OPERATIONS.contains(letter) || OTHERS.contains(letter);
    if letters.len() < 2 || !letters.chars().all(is_known) {
        return None;
    }
    match (command, letters.chars().find(|letter| OPERATIONS.contains(*letter))) {
        ("backup", Some('c')) => Some("-czf".to_owned()),
        (_, Some(operation)) => Some(format!("-{operation}")),
        (_, None) => Some(format!("-{}", letters.chars().next()?)),
    }
}

/// The hint with what was typed in its places.
fn filled(hint: &str, word: &str, after: &[String]) -> String {
    let value = word.split_once('=').map(|(_, value)| value).filter(|value| !value.is_empty());
    let plain = |word: &&String| !word.starts_with('-');
    let (next, rest) = match value {
        Some(value) => (Some(value), after),
        None => match after.split_first().filter(|(next, _)| plain(next)) {
            Some((next, rest)) => (Some(next.as_str()), rest),
            None => (None, after),
        },
    };
    let rest: Vec<&str> = rest.iter().take_while(plain).map(String::as_str).collect();
    let mut text = String::new();
    for part in hint.split_inclusive(['{', '}']) {
        let Some(name) = part.strip_suffix('}') else {
            text.push_str(part.strip_suffix('{').unwrap_or(part));
            continue;
        };
        match name.strip_suffix("...") {
            Some(name) if rest.is_empty() => text.push_str(name),
            Some(_) => text.push_str(&rest.join(" ")),
            None if name == "WORD" => text.push_str(word),
            None => text.push_str(next.unwrap_or(name)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hint for a command line, which clap must refuse.
    #[track_caller]
    fn hint(line: &str) -> Option<String> {
        let root = crate::commands::command();
        let typed: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let words = typed.iter().map(std::ffi::OsString::from);
        let words =
            arguments::backup::with_method(std::iter::once("takeup".into()).chain(words).collect());
        let error = crate::commands::command().try_get_matches_from(words).unwrap_err();
        habit_hint(&error, &root, &typed)
    }

    #[test]
    fn words_of_other_programs_lead_to_the_command() {
        let check = |line: &str, expected: &str| {
            assert_eq!(hint(line).as_deref(), Some(expected), "{line}");
        };
        check("-tvf x.tar", "run `takeup list x.tar` to list an archive");
        check("tvf x.tar", "run `takeup list x.tar` to list an archive");
        check("-xf x.tar", "run `takeup restore x.tar --into DIR` to restore it");
        check(
            "-czf x.tar.gz /srv /home",
            "run `takeup backup /srv /home --to x.tar.gz`: the name of the archive decides its \
             compression",
        );
        check("backup -czf x.tar.gz /srv", "run `takeup backup /srv --to x.tar.gz`");
        check("list -f x.tar", "run `takeup list x.tar`; -l shows sizes and times");
        check("list -tvf x.tar", "run `takeup list x.tar`; -l shows sizes and times");
        check("restore -x -C /tmp", "run `takeup restore ARCHIVE --into DIR`");
        check("restore x.tar -C /tmp", "use --into /tmp");
        check("verify x.tar -d /srv", "use --against /srv");
        check("pipe if=a of=b bs=1M", "use --from a");
        check("pipe bs=1M", "use --block-size 1M");
        check("bench disk /srv --bs=4k", "use --block-size 4k");
        check("bench disk /srv --iodepth 32", "use --depth 32");
        check("bench read /srv --size=1G", "use --length 1G");
        check("bench write", "run `takeup bench disk PATH --load write`");
        check(
            "watch -x 1",
            "leave -x out: `takeup watch --interval 1s` has all columns of iostat -x",
        );
        check("capture -p 4711", "use --pid 4711");
        check("plan --drive lto8 --data 2TB", "use --size 2TB");
        check("watch sda --for 10s", "use --interval 1s --count SECONDS");
        check("bench run --factor level=1,6", "use --vary level=1,6");
        check("extract x.tar", "run `takeup restore ARCHIVE --into DIR`");
        assert_eq!(hint("frobnicate"), None);
        assert_eq!(hint("pipe --bogus"), None);
        // What clap names is the cause, not another word that looks like a habit.
        assert_eq!(hint("bench disk --bogus --bs"), None);
    }

    /// A row for what a command takes would never be found, or mislead.
    #[test]
    fn no_row_is_a_word_that_its_command_takes() {
        let root = crate::commands::command();
        for Habit { command, typed, hint } in HABITS {
            let mut below = &root;
            for name in command.split_whitespace() {
                below = below.find_subcommand(name).unwrap_or_else(|| panic!("{command}"));
            }
            for word in typed.split(' ') {
                assert!(below.find_subcommand(word).is_none(), "{command} {word}");
                let long = word.strip_prefix("--");
                let short = word.strip_prefix('-').filter(|rest| rest.len() == 1);
                let is_taken = below.get_arguments().any(|argument| {
                    let shorts = argument.get_short_and_visible_aliases().unwrap_or_default();
                    let longs = argument.get_long_and_visible_aliases().unwrap_or_default();
                    long.is_some_and(|long| longs.contains(&long))
                        || short
                            .is_some_and(|short| shorts.contains(&short.chars().next().unwrap()))
                });
                assert!(!is_taken, "takeup {command} takes {word}");
            }
            assert_eq!(hint.matches('{').count(), hint.matches('}').count(), "{hint}");
        }
    }
}
