//! Findings about failures: disks, paths, arrays and pools that failed or are about to fail.

use crate::stack::{Layer, LayerKind, Stack};
use base::finding::{Finding, Severity, Unit};

use super::{rules, told, warning};

/// A disk that has used this much of its rated life is reported as worn.
const WORN_PERCENT: u64 = 90;

pub(super) fn health(layer: &Layer) -> Vec<Finding> {
    let Some(health) = &layer.health else { return Vec::new() };
    let name = &layer.name;
    let mut findings = Vec::new();
    if health.passed == Some(false) {
        let what = format!("SMART: {name} reports that it is failing");
        let finding = told(&rules::FAILING, what, "its data may be lost at any time");
        let finding = finding.severe(Severity::Critical);
        findings.push(finding.with_action("copy its data to another disk, then replace it"));
    }
    let counts = [
        ("replaced blocks", health.replaced_blocks),
        ("unreadable blocks", health.unreadable_blocks),
        ("errors of the medium", health.medium_errors),
    ];
    let counts: Vec<(&'static str, u64)> = counts
        .into_iter()
        .filter_map(|(what, count)| Some((what, count.filter(|count| *count > 0)?)))
        .collect();
    if !counts.is_empty() {
        let words: Vec<String> =
            counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
        let what = format!("{name} has {}", words.join(", "));
        let why = "a block that is hard to read takes seconds, and a disk with bad blocks \
                   usually gets more of them";
        let mut finding = warning(&rules::DEFECTS, what, why);
        for (what, count) in counts {
            finding = finding.with_number(what, count as f64, Unit::Count);
        }
        findings.push(finding);
    }
    if let Some(used) = health.used_percent.filter(|used| *used >= WORN_PERCENT) {
        let what = format!("{name} has used {used} % of its rated life");
        let finding = warning(&rules::WORN, what, "the maker does not rate it for more writes");
        findings.push(finding.with_number("used", used as f64 / 100.0, Unit::Share));
    }
    findings
}

pub(super) fn not_running(stack: &Stack, layer: &Layer) -> Option<Finding> {
    let has_other_paths = layer.above.iter().filter_map(|name| stack.layer(name)).any(|upper| {
        upper.kind == LayerKind::Multipath
            || (upper.kind == LayerKind::Nvme && layer.kind == LayerKind::NvmePath)
    });
    if !layer.kind.is_hardware() || has_other_paths {
        return None;
    }
    let states = [
        ("the disk", "state", &["running", "live", "created"][..]),
        ("its session", "session", &["LOGGED_IN"]),
        ("its port", "port_state", &["Online"]),
    ];
    let (what, state) = states.iter().find_map(|(what, fact, good)| {
        let state = layer.fact(fact)?;
        (!good.contains(&state)).then_some((what, state))
    })?;
    let what = format!("{} is unreachable: {what} is in the state {state}", layer.name);
    let why = "requests wait or fail, and there is no other path";
    Some(told(&rules::NOT_RUNNING, what, why).severe(Severity::Critical))
}

pub(super) fn paths(stack: &Stack, layer: &Layer) -> Option<Finding> {
    if !matches!(layer.kind, LayerKind::Multipath | LayerKind::Nvme) || layer.members.is_empty() {
        return None;
    }
    let (name, count) = (&layer.name, layer.members.len());
    let down: Vec<String> = layer
        .members
        .iter()
        .filter(|path| !path.works)
        .map(|path| format!("{} ({})", path.name, path.state))
        .collect();
    if down.is_empty() {
        let only = layer.members.first().filter(|_| count == 1)?;
        // A PCIe slot has one path, even if the device supports several.
        if stack.layer(&only.name).and_then(|path| path.fact("transport")) == Some("pcie") {
            return None;
        }
        let what = format!("{name} has only one path, {}", only.name);
        let why = "if that path fails, the disk is unreachable";
        return Some(told(&rules::ONE_PATH, what, why));
    }
    let left = count - down.len();
    let what = format!("{name}: {} of {count} paths down: {}", down.len(), down.join(", "));
    let (why, severity) = match left {
        0 => ("the disk is unreachable", Severity::Critical),
        1 => ("one path is left; if it fails, the disk is unreachable", Severity::Warning),
        _ => ("the other paths carry its load", Severity::Warning),
    };
    let finding = told(&rules::PATH_DOWN, what, why).severe(severity);
    let finding = finding.with_number("down", down.len() as f64, Unit::Count);
    Some(finding.with_number("paths", count as f64, Unit::Count))
}

pub(super) fn array(layer: &Layer) -> Vec<Finding> {
    if !matches!(layer.kind, LayerKind::Md | LayerKind::ZfsPool | LayerKind::FileSystem) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let name = &layer.name;
    let failed: Vec<String> = layer
        .members
        .iter()
        .filter(|member| !member.works)
        .map(|member| format!("{} ({})", member.name, member.state))
        .collect();
    let missing: u64 = layer.fact("missing").and_then(|it| it.parse().ok()).unwrap_or(0);
    let pool_state = layer.fact("state").filter(|_| layer.kind == LayerKind::ZfsPool);
    let what = if !failed.is_empty() {
        Some(format!("{name} is degraded: it runs without {}", failed.join(", ")))
    } else if missing > 0 {
        let members = base::format::counted(missing, "member", "members");
        Some(format!("{name} is degraded: it runs without {members}"))
    } else {
        pool_state.filter(|it| *it != "ONLINE").map(|state| format!("{name} is {state}"))
    };
    if let Some(what) = what {
        let why = "it is slower, and one more failure may lose data";
        let count = (failed.len() as u64).max(missing);
        let finding = warning(&rules::DEGRADED, what, why);
        findings.push(finding.with_number("missing", count as f64, Unit::Count));
    }
    let work = layer.fact("work").filter(|work| !["idle", "none", "frozen"].contains(work));
    if let Some(work) = work.filter(|_| layer.kind == LayerKind::Md) {
        let done = layer.fact("work_done").filter(|it| *it != "none" && *it != "delayed");
        let done = done.map(|done| format!(", {done} sectors done")).unwrap_or_default();
        let what = format!("{name} is busy with background work: {work}{done}");
        let why = "that work uses the same disks, so rates measured now are too low";
        findings.push(told(&rules::REBUILDING, what, why));
    }
    findings
}
