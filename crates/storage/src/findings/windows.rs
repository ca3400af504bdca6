//! Read-ahead: set where it has no effect, too small for the reads, or very large.

use crate::stack::{Layer, LayerKind, Stack, VxfsReadAhead};
use base::finding::{Certainty, Finding, Unit};
use base::format::binary_size as size;

use super::{rules, told};

/// The kernel's default read-ahead, in KiB.
const USUAL_KIB: u64 = 128;
/// A window this large is costly for programs that do not read all of it.
const LARGE_BYTES: u64 = 16 << 20;
/// Less than this slows one stream on a disk array: 64 KiB gave 72 MB/s in a published account,
/// 4 MiB gave 223 MB/s.
const VXFS_BYTES: u64 = 1 << 20;

pub(super) fn findings(stack: &Stack, request_bytes: Option<u64>) -> Vec<Finding> {
    if let Some((layer, own)) =
        stack.layers.iter().find_map(|layer| Some((layer, layer.vxfs_read_ahead()?)))
    {
        return vxfs(layer, own, request_bytes).into_iter().collect();
    }
    let Some(acting) = stack.read_ahead() else { return Vec::new() };
    let Some(window) = acting.number("read_ahead_kb").map(|kib| kib.saturating_mul(1024)) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    if let Some(request) = request_bytes.filter(|request| *request > window) {
        findings.push(below_request(acting, window, request));
    }
    findings.extend(share(acting, window));
    findings.extend(large(acting, window));
    findings.extend(elsewhere(stack, acting, window));
    findings
}

/// VxFS has its own read-ahead; no other is in effect there.
fn vxfs(layer: &Layer, own: VxfsReadAhead, request_bytes: Option<u64>) -> Option<Finding> {
    let wanted = request_bytes.map_or(0, |request| request.saturating_mul(2)).max(VXFS_BYTES);
    let window = own.window_bytes();
    if window >= wanted {
        return None;
    }
    let (place, request) = (&layer.name, size(own.read_pref_io));
    let what = format!(
        "VxFS at {place} reads ahead only {}: read_nstream {} x read_pref_io {request}",
        size(window),
        own.read_nstream
    );
    let why = "one reader cannot keep a disk array busy with so little; the read-ahead of the \
               devices below has no effect on VxFS";
    let finding = Finding::new(&rules::VXFS_WINDOW, Certainty::Inferred, what).because(why);
    let finding = finding.with_number("read-ahead", window as f64, Unit::Bytes);
    let command = own.command(wanted, place);
    let action = format!("try `{command}` and measure; to keep it, edit /etc/vx/tunefstab");
    Some(finding.with_action(action).with_command(command))
}

/// A window in words; 0 is `none`.
fn shown(window: u64) -> String {
    if window == 0 { "none".to_owned() } else { size(window) }
}

fn set(layer: &Layer, kib: u64) -> String {
    format!("echo {kib} > {}", layer.settings["read_ahead_kb"].path.display())
}

fn below_request(acting: &Layer, window: u64, request: u64) -> Finding {
    let name = &acting.name;
    let own = shown(window);
    let what =
        format!("read-ahead of {name} ({own}) is smaller than the reads ({})", size(request));
    let why = "the kernel fetches each read in pieces, one after the other";
    let rule = &rules::WINDOW_BELOW_REQUEST;
    let mut finding = Finding::new(rule, Certainty::Inferred, what).because(why);
    finding.caveat = Some("programs that bypass the page cache (O_DIRECT) are not affected".into());
    let finding = finding.with_number("read", request as f64, Unit::Bytes);
    let finding = finding.with_number("read-ahead", window as f64, Unit::Bytes);
    let kib = request.next_power_of_two().saturating_mul(2) / 1024;
    let action =
        format!("try {kib} KiB, twice the reads, and measure: takeup bench disk --read-ahead-kb");
    finding.with_action(action).with_command(set(acting, kib.max(1)))
}

fn share(acting: &Layer, window: u64) -> Option<Finding> {
    let kind = acting.fact("type").filter(|kind| kind.starts_with("nfs"))?;
    let request: u64 = acting.fact("rsize")?.parse().ok()?;
    if window >= request {
        return None;
    }
    let (own, rsize) = (shown(window), size(request));
    let what = format!("read-ahead ({own}) is smaller than rsize ({rsize})");
    let why = format!("{kind} requests less from the server at once than rsize allows");
    let finding = Finding::new(&rules::SHARE_WINDOW, Certainty::Inferred, what).because(why);
    let finding = finding.with_number("read-ahead", window as f64, Unit::Bytes);
    let finding = finding.with_number("rsize", request as f64, Unit::Bytes);
    let action = "to keep it, set nfsrahead in /etc/nfs.conf";
    let command = set(acting, request.saturating_mul(2) / 1024);
    Some(finding.with_action(format!("{command}; {action}")).with_command(command))
}

fn large(acting: &Layer, window: u64) -> Option<Finding> {
    if window < LARGE_BYTES {
        return None;
    }
    let name = &acting.name;
    let what = format!("read-ahead of {name} is very large ({})", size(window));
    let optimal = acting.number("optimal_io_size").unwrap_or(0);
    let from = if optimal > 0 && optimal.saturating_mul(2) == window {
        format!(
            "it is the kernel's default, twice the optimal request of {} that the storage \
             reports; ",
            size(optimal)
        )
    } else {
        String::new()
    };
    let why = format!(
        "{from}when reads of a database look sequential, the kernel fetches up to that much \
         unneeded data, which costs time and memory"
    );
    let mut finding = told(&rules::LARGE_WINDOW, what, why);
    finding.caveat = Some("it can be right for a few programs that read long files".to_owned());
    let finding = finding.with_number("read-ahead", window as f64, Unit::Bytes);
    Some(
        finding.with_action(
            "measure a smaller one under your load: takeup bench disk --read-ahead-kb",
        ),
    )
}

fn elsewhere(stack: &Stack, acting: &Layer, window: u64) -> Option<Finding> {
    let set = |layer: &&Layer| {
        let setting = layer.settings.get("read_ahead_kb").filter(|setting| !setting.acts);
        let value: Option<u64> = setting.and_then(|setting| setting.value.parse().ok());
        // LVM sets one on each of its volumes.
        value.is_some_and(|value| layer.kind != LayerKind::Lvm && !is_usual(layer, value))
    };
    let layers: Vec<&Layer> = stack.layers.iter().filter(set).collect();
    let first = layers.first()?;
    let named = |layer: &&Layer| {
        format!("{} ({} KiB)", layer.name, layer.setting("read_ahead_kb").unwrap_or_default())
    };
    let names: Vec<String> = layers.iter().map(named).collect();
    let what =
        format!("read-ahead is set where it has no effect on this path: {}", names.join(", "));
    let why = format!("the setting of {} is in effect, {}", acting.name, shown(window));
    let mut finding = told(&rules::READ_AHEAD_ELSEWHERE, what, why);
    finding.caveat =
        Some("it is in effect for files directly on that device or its partitions".to_owned());
    let finding = finding.with_number("read-ahead", window as f64, Unit::Bytes);
    let owner = first.settings["read_ahead_kb"].owners.first();
    Some(match owner.and_then(|owner| owner.place.as_ref()) {
        Some(place) => finding.with_action(format!("edit {place}, which sets it")),
        None => finding,
    })
}

/// Whether it is one of the kernel's own values.
fn is_usual(layer: &Layer, kib: u64) -> bool {
    let twice = |name: &str, unit: u64| layer.number(name).map(|it| it.saturating_mul(2) / unit);
    kib == USUAL_KIB
        || twice("optimal_io_size", 1024) == Some(kib)
        || twice("max_sectors_kb", 1) == Some(kib)
}
