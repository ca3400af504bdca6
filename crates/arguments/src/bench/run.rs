//! The arguments of `takeup bench run`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use service::bench::run::{BenchRunRequest, Failing, NamedText};

use super::options::ExperimentArgs;
use crate::quantity::Size;

/// Compare commands and whole pipelines, with what their programs and the device do meanwhile
///
/// Each --command is a level of one factor and runs in the shell. --before runs before every run,
/// and --after checks its result; neither is timed. If a command or its check fails, the run has
/// failed. With --bytes or --bytes-of Takeup compares rates, otherwise times. It records processor
/// time and bytes of each program, and how full the pipes between them are. It discards what the
/// commands print, unless --show-output is given. A command has no terminal and no input; Takeup
/// kills it with all its programs when its time is over.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup bench run --bytes-of /srv --before 'echo 3 >/proc/sys/vm/drop_caches' --watch /srv \\
      --command tar='tar -cf - /srv | cat >/dev/null' \\
      --command takeup='takeup backup /srv --to - | cat >/dev/null'
  takeup bench run --bytes 4G --vary block=10k,64k,256k --watch /dev/nst0 \\
      --before 'mt -f /dev/nst0 rewind' --after 'mt -f /dev/nst0 status' \\
      --command tar='tar -b {block/512} -cf /dev/nst0 /srv'
  takeup bench run --bytes-of big.tar --after 'cmp big.tar /mnt/out' \\
      --command dd='dd if=big.tar bs=1M of=/mnt/out conv=fsync' \\
      --command mbuffer='mbuffer -q -i big.tar -o /mnt/out; sync /mnt/out' \\
      --each-before mbuffer='rm -f /mnt/out'
  takeup report takeup-bench-run.ndjson --html report.html

GNU tar whose archive is /dev/null does not read the files: put a pipe in between.")]
pub struct BenchRunArgs {
    /// A command and its name; may be given again. The first is what is in force today
    #[arg(long = "command", value_name = "NAME=LINE", required_unless_present = "plan")]
    commands: Vec<Named>,
    /// A factor with its levels; commands use it as {NAME}, or as {NAME/512} for a part of a
    /// number; may be given again. Sizes become bytes
    #[arg(long, value_name = "NAME=LIST")]
    vary: Vec<Named>,
    /// Runs before every run, not timed; may be given again
    #[arg(long, value_name = "LINE")]
    before: Vec<String>,
    /// Runs before every run of one command, after --before
    #[arg(hide_short_help = true, long, value_name = "NAME=LINE")]
    each_before: Vec<Named>,
    /// Runs after every run, not timed; if it fails, the run has failed. May be given again
    #[arg(long, value_name = "LINE")]
    after: Vec<String>,
    /// Bytes that every run moves
    #[arg(long, value_name = "SIZE", conflicts_with = "bytes_of")]
    bytes: Option<Size>,
    /// Bytes that every run moves: what this file, device or tree of files holds now
    #[arg(long, value_name = "PATH")]
    bytes_of: Option<PathBuf>,
    /// Read the counters of the device behind this path, or of a tape drive; may be given again
    #[arg(long, value_name = "PATH")]
    watch: Vec<PathBuf>,
    /// The shell [default: $SHELL, or /bin/sh]
    #[arg(hide_short_help = true, long, value_name = "SHELL")]
    shell: Option<String>,
    /// Only the last program of a pipeline has to succeed
    #[arg(hide_short_help = true, long)]
    last_program_only: bool,
    /// Show what the commands print, on standard error
    #[arg(long)]
    show_output: bool,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

/// `NAME=TEXT` as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    name: String,
    text: String,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Named, String> {
        let is_word = |name: &&str| !name.is_empty() && !name.contains(char::is_whitespace);
        let parts = text.split_once('=').filter(|(name, _)| is_word(name));
        let (name, text) = parts.ok_or("expected a name and =, for example tar='tar -cf x y'")?;
        Ok(Named { name: name.to_owned(), text: text.to_owned() })
    }
}

impl BenchRunArgs {
    /// Repeats, time limits, files and output.
    pub fn experiment(&self) -> &ExperimentArgs {
        &self.experiment
    }

    /// What is asked for.
    pub fn request(&self) -> BenchRunRequest {
        BenchRunRequest {
            commands: named(&self.commands),
            vary: named(&self.vary),
            before: self.before.clone(),
            each_before: named(&self.each_before),
            after: self.after.clone(),
            bytes: self.bytes.map(|size| size.0),
            bytes_of: self.bytes_of.clone(),
            watch: self.watch.clone(),
            shell: self.shell.clone(),
            failing: if self.last_program_only {
                Failing::LastProgram
            } else {
                Failing::AnyProgram
            },
            show_output: self.show_output,
            experiment: self.experiment.request(),
        }
    }
}

fn named(typed: &[Named]) -> Vec<NamedText> {
    let one = |it: &Named| NamedText { name: it.name.clone(), text: it.text.clone() };
    typed.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_the_first_equals_sign() {
        let typed: Named = "tar=tar -cf x=y".parse().unwrap();
        assert_eq!((&*typed.name, &*typed.text), ("tar", "tar -cf x=y"));
        assert!("tar -cf x=y".parse::<Named>().is_err());
        assert!("tar".parse::<Named>().is_err());
    }
}
