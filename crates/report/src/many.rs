//! Many hosts in words: which one is slow, what is shared, what each did.

use base::escape::escape;
use base::format::{counted, duration, rate, size};
use experiment::judgement::quoted;
use many::set::SetAnswer;
use many::verdict::{HostRates, HostsVerdict};
use service::many::{ManyBenchAnswer, ManySetAnswer, TogetherRun};

use statistics::median;

use crate::table::{Align, Emphasis, Style, Table, strong};

/// An experiment on many hosts: the verdict, the hosts, how well they ran together.
pub fn bench(answer: &ManyBenchAnswer, style: Style) -> String {
    let verdict = &answer.verdict;
    let mut text = format!("{}\n", strong(&first_line(verdict, answer.run.as_ref()), style));
    if let Some(why) = &verdict.not_known {
        text.push_str(&format!("not known: {}\n", escape(why.as_bytes())));
    }
    text.push('\n');
    text.push_str(&hosts(verdict).render(style));
    if let Some(run) = &answer.run {
        text.push_str(&together(run));
    }
    for difference in &answer.differences {
        text.push_str(&format!("{}\n", escape(difference.as_bytes())));
    }
    text.push('\n');
    text
}

/// The answer in one line.
fn first_line(verdict: &HostsVerdict, run: Option<&TogetherRun>) -> String {
    let count = counted(verdict.hosts.len() as u64, "host", "hosts");
    let together = run.map_or(count.clone(), |run| {
        format!("{} from {count} together", rate(run.bytes_per_second))
    });
    let named = |ranks: &[u64]| {
        let known = |rank: &u64| verdict.hosts.iter().find(|host| host.rank == *rank);
        let names: Vec<String> = ranks.iter().filter_map(known).map(name).collect();
        names.join(", ")
    };
    let mut found = Vec::new();
    match &verdict.slow[..] {
        [] => {}
        [one] => found.push(format!("{} is slow{}", named(&[*one]), how_slow(verdict, *one))),
        many => found.push(format!("{} are slow", named(many))),
    }
    if !verdict.disadvantaged.is_empty() {
        let who = named(&verdict.disadvantaged);
        found.push(format!("{who} gets less than the others, but not alone"));
    }
    match (verdict.is_shared, verdict.together_over_alone) {
        (Some(true), Some(share)) => found.push(format!(
            "what the hosts use is shared: a host gets {:.0} % of what it gets alone",
            share * 100.0
        )),
        // How much they take from each other below what is called shared is not decided: the share
        // says it.
        (Some(false), Some(share)) => {
            if found.is_empty() {
                found.push("no host is slow".to_owned());
            }
            found
                .push(format!("together a host gets {:.0} % of what it gets alone", share * 100.0));
        }
        _ => {}
    }
    if found.is_empty() {
        return together;
    }
    format!("{together}: {}", found.join("; "))
}

/// What a slow host gets, and what the others do.
fn how_slow(verdict: &HostsVerdict, rank: u64) -> String {
    let is_own = |host: &&HostRates| host.rank == rank;
    let own = verdict.hosts.iter().find(is_own).and_then(|it| it.together_bytes_per_second);
    let others: Vec<f64> = (verdict.hosts.iter())
        .filter(|host| !is_own(host))
        .filter_map(|host| host.together_bytes_per_second)
        .collect();
    match (own, median(&others)) {
        (Some(own), Some(others)) => {
            format!(", {} where the others get {}", rate(own), rate(others))
        }
        _ => String::new(),
    }
}

fn name(host: &HostRates) -> String {
    format!("{} (rank {})", escape(host.host.as_bytes()), host.rank)
}

/// Most hosts in the table: the slowest, and then the fastest.
const SHOWN_MAX: usize = 16;

fn hosts(verdict: &HostsVerdict) -> Table {
    let mut table = Table::new(&[
        ("host", Align::Left),
        ("rank", Align::Right),
        ("together", Align::Right),
        ("alone", Align::Right),
        ("over the others", Align::Right),
    ]);
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), rate);
    let (slowest, fastest) = match verdict.hosts.len() {
        many if many > SHOWN_MAX => (SHOWN_MAX - 2, 2),
        few => (few, 0),
    };
    let left_out = verdict.hosts.len() - slowest - fastest;
    for (place, host) in verdict.hosts.iter().enumerate() {
        if place == slowest && left_out > 0 {
            let more = format!("and {left_out} more");
            table.row(
                vec![more, String::new(), String::new(), String::new(), String::new()],
                Emphasis::None,
            );
        }
        if place >= slowest && place < slowest + left_out {
            continue;
        }
        let over = host.over_others.map_or("-".to_owned(), |share| {
            format!("{:.2} ({:.2} to {:.2})", share.ratio, share.low, share.high)
        });
        let is_named = verdict.slow.contains(&host.rank);
        let emphasis = if is_named { Emphasis::Strong } else { Emphasis::None };
        table.row(
            vec![
                escape(host.host.as_bytes()),
                host.rank.to_string(),
                shown(host.together_bytes_per_second),
                shown(host.alone_bytes_per_second),
                over,
            ],
            emphasis,
        );
    }
    table
}

/// How well the runs of the hosts lie over each other.
fn together(run: &TogetherRun) -> String {
    format!(
        "all were active for {} of {}: {} in that window, {} from the first start to the last \
         end, {} when the first was done\nthe last began {} behind the agreed instant; the \
         clocks are known to {}\n",
        duration(run.window_seconds),
        duration(run.whole_seconds),
        rate(run.bytes_per_second),
        rate(run.whole_bytes_per_second),
        rate(run.first_done_bytes_per_second),
        milliseconds(run.start_skew_seconds.max(0.0)),
        milliseconds(run.clock_doubt_seconds),
    )
}

/// What is far below a second, with its digits.
fn milliseconds(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

/// A set that was written, verified or restored by many hosts.
pub fn set(answer: &ManySetAnswer, style: Style) -> String {
    let set = &answer.set;
    if set.was_complete {
        let folder = escape(set.folder.as_bytes());
        let first = format!(
            "nothing was written: {folder} holds a complete set of {} in {}",
            counted(set.members, "member", "members"),
            counted(set.shards, "shard", "shards"),
        );
        return format!("{}\nname another folder for a new backup\n", strong(&first, style));
    }
    let verb = match answer.command.as_str() {
        "many verify" => "verified",
        "many restore" => "restored",
        _ => "wrote",
    };
    let seconds = set.seconds.max(1e-9);
    let kept = match set.kept_shards {
        0 => String::new(),
        kept => format!(", {} of them from an earlier run", base::format::count(kept)),
    };
    let first = format!(
        "{verb} {} with {} of content in {}{kept} in {} ({})",
        counted(set.members, "member", "members"),
        size(set.source_bytes),
        counted(set.shards, "shard", "shards"),
        duration(set.seconds),
        rate(moved(set) as f64 / seconds),
    );
    let mut text = format!("{}\n\n", strong(&first, style));
    let mut table = Table::new(&[
        ("host", Align::Left),
        ("rank", Align::Right),
        ("shards", Align::Right),
        ("content", Align::Right),
        ("busy", Align::Right),
        ("limit", Align::Left),
    ]);
    for host in &set.hosts {
        table.row(
            vec![
                escape(host.host.as_bytes()),
                host.rank.to_string(),
                host.shards.to_string(),
                size(host.source_bytes),
                format!("{:.0} %", (100.0 * host.busy_seconds / seconds).min(100.0)),
                host.limit.clone().unwrap_or_else(|| "-".to_owned()),
            ],
            Emphasis::None,
        );
    }
    text.push_str(&table.render(style));
    for damaged in &answer.damaged {
        text.push_str(&format!("damaged: {}\n", escape(damaged.as_bytes())));
    }
    if set.warnings > 0 {
        text.push_str(&format!("{}:\n", counted(set.warnings, "warning", "warnings")));
        for warning in &set.first_warnings {
            text.push_str(&format!("  {}\n", escape(warning.as_bytes())));
        }
    }
    text.push_str(&next(answer));
    text
}

/// Bytes of content that this run moved itself.
fn moved(set: &SetAnswer) -> u64 {
    set.hosts.iter().map(|host| host.source_bytes).sum()
}

fn next(answer: &ManySetAnswer) -> String {
    let folder = quoted(&answer.set.folder);
    match answer.command.as_str() {
        "many backup" => crate::next::next(
            &format!("mpirun ... takeup-mpi verify {folder}"),
            "reads all shards and compares them with their checksums",
        ),
        _ => String::new(),
    }
}
