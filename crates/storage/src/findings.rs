//! Findings about the storage below a path: each rule is a function of the layers.
//!
//! Nothing here reads from the machine: [`crate::stack`] does, from this machine or a recorded one.

pub mod rules;
mod state;
#[cfg(test)]
mod tests;
mod windows;

use crate::stack::{Layer, LayerKind, Stack};
use base::finding::{Certainty, Finding, Rule, Severity, Unit};

/// All findings, the worst first. `request_bytes` is the read size of the program, where known.
pub fn findings(stack: &Stack, request_bytes: Option<u64>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for layer in &stack.layers {
        findings.extend(state::health(layer));
        findings.extend(state::not_running(stack, layer));
        findings.extend(state::paths(stack, layer));
        findings.extend(state::array(layer));
        findings.extend(flushes(stack, layer));
        findings.extend(alignment(stack, layer));
    }
    findings.extend(windows::findings(stack, request_bytes));
    for layer in &stack.layers {
        findings.extend(nvme_scheduler(layer));
        findings.extend(fewer_requests(layer));
        findings.extend(cached_twice(stack, layer));
    }
    findings.extend(not_readable(stack));
    // The sort is stable: findings of one severity keep their order.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// A finding that the kernel or the device reports.
fn told(rule: &'static Rule, what: impl Into<String>, why: impl Into<String>) -> Finding {
    Finding::new(rule, Certainty::Told, what).because(why)
}

/// The same, as a warning: the administrator should act.
fn warning(rule: &'static Rule, what: impl Into<String>, why: impl Into<String>) -> Finding {
    told(rule, what, why).severe(Severity::Warning)
}

/// The nearest layers below that have their own queue; partitions have none.
fn devices_below<'a>(stack: &'a Stack, layer: &'a Layer) -> Vec<&'a Layer> {
    let below = layer.below.iter().filter_map(|name| stack.layer(name));
    below
        .flat_map(|lower| match lower.kind {
            LayerKind::Partition if lower.settings.is_empty() => devices_below(stack, lower),
            // A file system makes new requests, so the search ends there.
            LayerKind::FileSystem | LayerKind::ZfsPool => Vec::new(),
            _ => vec![lower],
        })
        .collect()
}

fn flushes(stack: &Stack, layer: &Layer) -> Option<Finding> {
    if layer.setting("write_cache") != Some("write through") {
        return None;
    }
    let cached = devices_below(stack, layer);
    let cached = cached.iter().find(|it| it.setting("write_cache") == Some("write back"))?;
    let (name, lower) = (&layer.name, &cached.name);
    let what = format!("{name} drops flushes: it is write through, {lower} below is write back");
    let why = format!(
        "flushes do not reach the cache of {lower}: data that fsync reported as safe may be lost \
         in a power failure"
    );
    let path = layer.settings["write_cache"].path.display();
    let command = format!("echo 'write back' > {path}");
    Some(warning(&rules::FLUSHES_DROPPED, what, why).with_command(command))
}

fn alignment(stack: &Stack, layer: &Layer) -> Option<Finding> {
    if layer.kind.is_hardware() {
        return None;
    }
    let name = &layer.name;
    let devices = devices_below(stack, layer);
    let start: Option<u64> = layer.fact("start_bytes").and_then(|it| it.parse().ok());
    let physical = devices.iter().find_map(|it| it.number("physical_block_size")).unwrap_or(512);
    let offset: Option<i64> = layer.fact("alignment_offset").and_then(|it| it.parse().ok());
    let is_off = match (offset, start) {
        (Some(offset), _) => offset != 0,
        (None, Some(start)) => !start.is_multiple_of(physical),
        (None, None) => false,
    };
    if is_off {
        let what = format!("{name} is misaligned: it starts inside a physical block below");
        let why = format!(
            "a write of one block covers two physical blocks of {physical} bytes; the disk reads, \
             changes and writes both"
        );
        let finding = warning(&rules::UNALIGNED, what, why);
        let finding = finding.with_number("physical block", physical as f64, Unit::Bytes);
        return Some(
            finding.with_action("recreate the partition: current tools align it by default"),
        );
    }
    let (start, array) = (start?, devices.first()?);
    let is_parity = matches!(array.fact("level"), Some("raid4" | "raid5" | "raid6"));
    let smallest = array.number("minimum_io_size").filter(|bytes| *bytes > physical)?;
    let stripe = array.number("optimal_io_size").filter(|bytes| is_parity && *bytes > 0);
    let unit = stripe.unwrap_or(smallest);
    if start.is_multiple_of(unit) {
        return None;
    }
    let unit_shown = base::format::binary_size(unit);
    let array = &array.name;
    let what = format!("{name} is misaligned: it starts inside a {unit_shown} piece of {array}");
    let why = if stripe.is_some() {
        "a write of a whole stripe covers parts of two, so the array reads their parity first"
    } else {
        "a request that fits one piece is split in two, for two disks"
    };
    let finding = told(&rules::UNALIGNED_CHUNK, what, why);
    Some(finding.with_number("piece", unit as f64, Unit::Bytes))
}

fn nvme_scheduler(layer: &Layer) -> Option<Finding> {
    let scheduler = layer.settings.get("scheduler").filter(|setting| setting.acts)?;
    let is_nvme = matches!(layer.kind, LayerKind::Nvme | LayerKind::NvmePath);
    if !is_nvme || scheduler.value == "none" {
        return None;
    }
    let what = format!("{} uses the scheduler {}", layer.name, scheduler.value);
    let why = "requests of all processors pass through one lock; an NVMe device does not need \
               the ordering";
    let finding = Finding::new(&rules::NVME_SCHEDULER, Certainty::Inferred, what).because(why);
    let mut finding = finding;
    finding.caveat =
        Some("it may be set on purpose, to share the device fairly between programs".to_owned());
    Some(finding.with_command(format!("echo none > {}", scheduler.path.display())))
}

fn fewer_requests(layer: &Layer) -> Option<Finding> {
    let scheduler = layer.settings.get("scheduler").filter(|setting| setting.acts)?;
    let requests = layer.settings.get("nr_requests").filter(|setting| setting.acts)?;
    let queues: u64 = layer.fact("hardware_queues")?.parse().ok()?;
    let depth = layer.number("queue_depth")?;
    let count = requests.value.parse::<u64>().ok()?.saturating_mul(queues);
    if scheduler.value == "none" || count >= depth {
        return None;
    }
    let what = format!("{} accepts {depth} requests at once but gets at most {count}", layer.name);
    let why = "nr_requests limits the scheduler's queue";
    let finding = told(&rules::FEWER_REQUESTS, what, why);
    let finding = finding.with_number("requests", count as f64, Unit::Count);
    let finding = finding.with_number("device takes", depth as f64, Unit::Count);
    Some(finding.with_command(format!("echo {} > {}", depth.max(64), requests.path.display())))
}

fn cached_twice(stack: &Stack, layer: &Layer) -> Option<Finding> {
    let is_on_device =
        || layer.below.iter().any(|name| stack.layer(name).is_some_and(|it| !it.below.is_empty()));
    if layer.kind != LayerKind::Loop || layer.fact("direct_io") != Some("0") || !is_on_device() {
        return None;
    }
    let what = format!("{} reads and writes its file through the page cache", layer.name);
    let why = "its data are cached twice and copied once more";
    let finding = told(&rules::CACHED_TWICE, what, why);
    Some(finding.with_command(format!("losetup --direct-io=on /dev/{}", layer.name)))
}

fn not_readable(stack: &Stack) -> Option<Finding> {
    let first = stack.not_readable.first()?;
    let count = stack.not_readable.len() as u64;
    let files = base::format::counted(count, "file", "files");
    let what = format!("{files} could not be read, the first is {}", first.display());
    let why = "findings that need these files are missing";
    let mut finding = told(&rules::NOT_READABLE, what, why);
    finding.certainty = Certainty::Unknown;
    Some(finding.with_number("files", count as f64, Unit::Count).with_action("run as root"))
}
