//! `cargo xtask replay`: the five published accounts, repeated with commands of Takeup alone.
//!
//! Each account has a module that types what its author would type today, on virtual drives and
//! disks, and compares the results with the published ones. `answer` defines the verdicts, `scene`
//! runs the commands. The short form is for CI and shows directions; the long one has more data and
//! repeats. Nothing here knows how a drive or a judgement works: the replay uses the product as its
//! users do.

mod answer;
mod block_device;
mod block_size;
mod btape;
mod double_buffer;
mod judged;
mod page;
mod published;
mod read_ahead;
mod scene;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::folders;
use answer::Account;
use page::Made;
use scene::{Length, Scene};

/// Arguments of `cargo xtask replay`.
#[derive(clap::Args)]
pub struct ReplayArguments {
    /// More data and repeats: up to an hour instead of minutes
    #[arg(long)]
    long: bool,

    /// Ask these accounts only
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,

    /// Where the page goes [default: target/replay.md]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Ask this binary [default: build target/release/takeup and ask it]
    #[arg(long, value_name = "FILE")]
    takeup: Option<PathBuf>,
}

/// An account without its answers, and the function that replays it.
type Asking = (fn() -> Account, fn(&Scene, &mut Account) -> anyhow::Result<()>);

const ACCOUNTS: [Asking; 5] = [
    (block_size::account, block_size::ask),
    (btape::account, btape::ask),
    (read_ahead::account, read_ahead::ask),
    (block_device::account, block_device::ask),
    (double_buffer::account, double_buffer::ask),
];

/// Replays the accounts and writes the page.
///
/// # Errors
///
/// When an answer differs from the account's, or could not be measured; the page is still written.
pub fn run(arguments: &ReplayArguments) -> anyhow::Result<ExitCode> {
    let asked = chosen(&arguments.only)?;
    let target = folders::target()?;
    let takeup = match &arguments.takeup {
        Some(path) => path.canonicalize().with_context(|| format!("find {}", path.display()))?,
        None => folders::build_takeup(&target)?,
    };
    let out = arguments.out.clone().unwrap_or_else(|| target.join("replay.md"));
    let length = if arguments.long { Length::Long } else { Length::Short };
    let load_before = load();
    let start = Instant::now();
    let mut accounts = Vec::new();
    let scene = || Scene::new(&takeup, &target.join("replay"), length);
    for asking in asked {
        let mut account = one(asking, &scene()?)?;
        // Most experiments of the short form run once, and a burst of other work can change an
        // answer. A difference counts only if it appears twice.
        if let Some(first) = answer::disagreement(&account) {
            println!("asked once more: {first}");
            account = one(asking, &scene()?)?;
            account.first_time = Some(first);
        }
        accounts.push(account);
    }
    let made = Made {
        length,
        minutes: start.elapsed().as_secs_f64() / 60.0,
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: kernel(),
        load_before,
    };
    std::fs::write(&out, page::page(&accounts, &made))
        .with_context(|| format!("write {}", out.display()))?;
    summary(&accounts);
    println!("{:.1} minutes; the page is in {}", made.minutes, out.display());
    answer::check(&accounts)?;
    Ok(ExitCode::SUCCESS)
}

/// The answers to one account, in a separate folder.
fn one((account, ask): Asking, scene: &Scene) -> anyhow::Result<Account> {
    let mut account = account();
    if let Err(error) = ask(scene, &mut account) {
        account.ask(scene, "what stands in for the hardware", "", |_| Err(error));
    }
    if scene.is_stopped() {
        bail!("stopped");
    }
    Ok(account)
}

fn chosen(only: &[String]) -> anyhow::Result<Vec<Asking>> {
    let names = ACCOUNTS.map(|(account, _)| account().name);
    if let Some(name) = only.iter().find(|name| !names.contains(&name.as_str())) {
        bail!("--only: no such account: {name} (there are: {})", names.join(", "));
    }
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    let asked = ACCOUNTS.into_iter().zip(names).filter(|(_, name)| wanted(name));
    Ok(asked.map(|(asking, _)| asking).collect())
}

fn summary(accounts: &[Account]) {
    for account in accounts {
        println!("\n{}", account.title);
        for answer in &account.answers {
            println!("  {:<60}  {}", answer.question, answer.verdict.words());
        }
    }
}

/// Mean number of runnable processes over the last minute (proc(5), `/proc/loadavg`).
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // Without suffixes of a distribution or a cloud.
    let is_version = |sign: char| sign.is_ascii_digit() || sign == '.';
    release.chars().take_while(|sign| is_version(*sign)).collect()
}

/// Bytes per second as MB/s, with three digits.
fn mb_s(rate: f64) -> String {
    let rate = rate / 1e6;
    match rate {
        0.0..10.0 => format!("{rate:.2}"),
        10.0..100.0 => format!("{rate:.1}"),
        _ => format!("{rate:.0}"),
    }
}

/// Block sizes in a readable form.
fn kib(bytes: f64) -> String {
    match bytes {
        0.0..1024.0 => format!("{bytes:.0} B"),
        1024.0..1_048_576.0 => format!("{:.0} KiB", bytes / 1024.0),
        _ => format!("{:.0} MiB", bytes / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_chosen_by_name() {
        assert_eq!(chosen(&[]).unwrap().len(), 5);
        assert_eq!(chosen(&["btape".to_owned()]).unwrap().len(), 1);
        let refused = chosen(&["tape".to_owned()]).unwrap_err().to_string();
        assert!(refused.contains("no such account: tape (there are: block-size, btape"));
    }

    #[test]
    fn figures_have_three_digits() {
        assert_eq!([9.3e6, 46.12e6, 287.4e6].map(mb_s), ["9.30", "46.1", "287"]);
        assert_eq!([512.0, 10240.0, 2_097_152.0].map(kib), ["512 B", "10 KiB", "2 MiB"]);
    }
}
