//! Read-ahead: set where it does nothing, too small for what is read, or very large.

use crate::stack::{Layer, LayerKind, Stack, VxfsReadAhead};
use base::finding::{Certainty, Finding, Unit};
use base::format::binary_size as size;

use super::{rules, told};

/// What the kernel gives every device that says nothing else.
const USUAL_KIB: u64 = 128;
/// From here on a window costs those who do not read all of it.
const LARGE_BYTES: u64 = 16 << 20;
/// Of less one stream notices on an array of disks: 64 KiB gave 72 MB/s in a published account, and
/// 4 MiB 223 MB/s.
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

/// VxFS has its own, and no other acts.
fn vxfs(layer: &Layer, own: VxfsReadAhead, request_bytes: Option<u64>) -> Option<Finding> {
    let wanted = request_bytes.map_or(0, |request| request.saturating_mul(2)).max(VXFS_BYTES);
    let window = own.window_bytes();
    if window >= wanted {
        return None;
    }
    let (place, request) = (&layer.name, size(own.read_pref_io));
    let what = format!(
        "VxFS at {place} has {} under way for a reader: {} of {request} (read_nstream, \
         read_pref_io)",
        size(window),
        own.read_nstream
    );
    let why = "one stream waits for each of them, and an array of disks behind it for the stream; \
               the read-ahead of the devices below does nothing here";
    let finding = Finding::new(&rules::VXFS_WINDOW, Certainty::Inferred, what).because(why);
    let finding = finding.with_number("read-ahead", window as f64, Unit::Bytes);
    let command = own.command(wanted, place);
    let action = format!("measure with `{command}`; a line in /etc/vx/tunefstab keeps it");
    Some(finding.with_action(action).with_command(command))
}

/// A window as it is said.
fn shown(window: u64) -> String {
    if window == 0 { "none".to_owned() } else { size(window) }
}

fn set(layer: &Layer, kib: u64) -> String {
    format!("echo {kib} > {}", layer.settings["read_ahead_kb"].path.display())
}

fn below_request(acting: &Layer, window: u64, request: u64) -> Finding {
    let name = &acting.name;
    let what =
        format!("reads of {}, and a read-ahead of {} at {name}", size(request), shown(window));
    let why = "each is fetched in pieces, and the next one begins when the program asks for it";
    let rule = &rules::WINDOW_BELOW_REQUEST;
    let mut finding = Finding::new(rule, Certainty::Inferred, what).because(why);
    finding.caveat =
        Some("programs that read past the page cache (O_DIRECT) are not concerned".into());
    let finding = finding.with_number("read", request as f64, Unit::Bytes);
    let finding = finding.with_number("read-ahead", window as f64, Unit::Bytes);
    let kib = request.next_power_of_two().saturating_mul(2) / 1024;
    let action =
        format!("try twice the read, {kib} KiB, and measure: takeup bench disk --read-ahead-kb");
    finding.with_action(action).with_command(set(acting, kib.max(1)))
}

fn share(acting: &Layer, window: u64) -> Option<Finding> {
    let kind = acting.fact("type").filter(|kind| kind.starts_with("nfs"))?;
    let request: u64 = acting.fact("rsize")?.parse().ok()?;
    if window >= request {
        return None;
    }
    let what = format!("a read-ahead of {}, and rsize is {}", shown(window), size(request));
    let why = format!("{kind} asks its server for less at once than both have agreed on");
    let finding = Finding::new(&rules::SHARE_WINDOW, Certainty::Inferred, what).because(why);
    let finding = finding.with_number("read-ahead", window as f64, Unit::Bytes);
    let finding = finding.with_number("rsize", request as f64, Unit::Bytes);
    let action = "nfsrahead in /etc/nfs.conf keeps it";
    let command = set(acting, request.saturating_mul(2) / 1024);
    Some(finding.with_action(format!("{command}; {action}")).with_command(command))
}

fn large(acting: &Layer, window: u64) -> Option<Finding> {
    if window < LARGE_BYTES {
        return None;
    }
    let name = &acting.name;
    let what = format!("a read-ahead of {} at {name}", size(window));
    let optimal = acting.number("optimal_io_size").unwrap_or(0);
    let from = if optimal > 0 && optimal.saturating_mul(2) == window {
        format!(
            "nobody chose it: it is twice the optimal request of {} that the storage tells; ",
            size(optimal)
        )
    } else {
        String::new()
    };
    let why = format!(
        "{from}if a database lies here, reads that look sequential to the kernel fetch up to that \
         much that nobody asked for, which takes the time and the memory of others"
    );
    let mut finding = told(&rules::LARGE_WINDOW, what, why);
    finding.caveat = Some("for a few programs that read long files it may be right".to_owned());
    let finding = finding.with_number("read-ahead", window as f64, Unit::Bytes);
    Some(
        finding.with_action(
            "measure a smaller one under that load: takeup bench disk --read-ahead-kb",
        ),
    )
}

fn elsewhere(stack: &Stack, acting: &Layer, window: u64) -> Option<Finding> {
    let set = |layer: &&Layer| {
        let setting = layer.settings.get("read_ahead_kb").filter(|setting| !setting.acts);
        let value: Option<u64> = setting.and_then(|setting| setting.value.parse().ok());
        // LVM gives each of its volumes one.
        value.is_some_and(|value| layer.kind != LayerKind::Lvm && !is_usual(layer, value))
    };
    let layers: Vec<&Layer> = stack.layers.iter().filter(set).collect();
    let first = layers.first()?;
    let named = |layer: &&Layer| {
        format!("{} ({} KiB)", layer.name, layer.setting("read_ahead_kb").unwrap_or_default())
    };
    let names: Vec<String> = layers.iter().map(named).collect();
    let what =
        format!("a read-ahead is set where it does nothing for this path: {}", names.join(", "));
    let why = format!("the one that acts is that of {}, {}", acting.name, shown(window));
    let mut finding = told(&rules::READ_AHEAD_ELSEWHERE, what, why);
    finding.caveat =
        Some("it acts for files that lie on that device itself or on a partition of it".to_owned());
    let finding = finding.with_number("read-ahead", window as f64, Unit::Bytes);
    let owner = first.settings["read_ahead_kb"].owners.first();
    Some(match owner.and_then(|owner| owner.place.as_ref()) {
        Some(place) => finding.with_action(format!("it is set by {place}")),
        None => finding,
    })
}

/// Whether the kernel sets it by itself.
fn is_usual(layer: &Layer, kib: u64) -> bool {
    let twice = |name: &str, unit: u64| layer.number(name).map(|it| it.saturating_mul(2) / unit);
    kib == USUAL_KIB
        || twice("optimal_io_size", 1024) == Some(kib)
        || twice("max_sectors_kb", 1) == Some(kib)
}
