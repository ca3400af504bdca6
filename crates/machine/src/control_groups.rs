//! Control groups (cgroups(7)) of a process: what a quota took, and what memory a limit leaves. Of
//! both versions, at the usual mount points.

use std::fs;
use std::path::{Path, PathBuf};

/// Most levels that are gone up.
const LEVELS_MAX: usize = 32;

/// A part of the kernel that shares something out among groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    Processor,
    Memory,
}

/// For how long quotas have kept the processes of a process's group, and of the groups above it,
/// from a core, summed over cores: the largest value of any of these groups. `None` if none has a
/// quota.
pub fn throttled_seconds(process: u32) -> Option<f64> {
    let groups = folders(process, Controller::Processor).into_iter();
    let told = groups.filter_map(|it| fs::read_to_string(it.join("cpu.stat")).ok());
    told.filter_map(|text| parse_throttled(&text)).reduce(f64::max)
}

/// Memory that this process's group, and the groups above it, can still get, in bytes: below the
/// limit, or held by files that nobody used lately. `None` if no group has a limit.
pub fn memory_left_bytes() -> Option<u64> {
    let groups = folders(std::process::id(), Controller::Memory);
    groups.iter().filter_map(|group| memory_left(group)).min()
}

fn memory_left(group: &Path) -> Option<u64> {
    let text = |name: &str| fs::read_to_string(group.join(name)).ok();
    let limit = text("memory.max").or_else(|| text("memory.limit_in_bytes"))?;
    let used = text("memory.current").or_else(|| text("memory.usage_in_bytes"))?;
    parse_memory_left(&limit, &used, &text("memory.stat").unwrap_or_default())
}

/// From the texts of the limit, of what is in use, and of `memory.stat`.
fn parse_memory_left(limit: &str, used: &str, stat: &str) -> Option<u64> {
    // `max`, or in the first version the largest number of pages, is no limit.
    let limit_bytes = limit.trim().parse().ok().filter(|bytes| *bytes < u64::MAX / 4)?;
    let used_bytes: u64 = used.trim().parse().ok()?;
    let value = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    // The first version has sums with the groups below under a name of their own.
    let unused_bytes = value("total_inactive_file ").or_else(|| value("inactive_file "));
    let needed_bytes = used_bytes.saturating_sub(unused_bytes.unwrap_or(0));
    Some(u64::saturating_sub(limit_bytes, needed_bytes))
}

/// The folders of the groups of a process, from its own upwards.
fn folders(process: u32, controller: Controller) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    text.lines().flat_map(|line| folders_of(line, controller)).collect()
}

/// The folders of a line of `/proc/PID/cgroup`.
fn folders_of(line: &str, controller: Controller) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':');
    let (Some(number), Some(names), Some(path)) = (fields.next(), fields.next(), fields.next())
    else {
        return Vec::new();
    };
    let (name, usual): (&str, &[&str]) = match controller {
        Controller::Processor => ("cpu", &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]),
        Controller::Memory => ("memory", &["/sys/fs/cgroup/memory"]),
    };
    let tops: &[&str] = match (number, names) {
        ("0", "") => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
        _ if names.split(',').any(|it| it == name) => usual,
        _ => &[],
    };
    let below = |top: &&str| {
        let top = PathBuf::from(top);
        let whole = top.join(path.trim_start_matches('/'));
        let up = whole.ancestors().take_while(|it| it.starts_with(&top)).take(LEVELS_MAX);
        up.map(PathBuf::from).collect::<Vec<PathBuf>>()
    };
    tops.iter().flat_map(below).collect()
}

/// From the text of `cpu.stat`, of either version. A group without a quota has no throttling
/// periods.
fn parse_throttled(text: &str) -> Option<f64> {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<f64>().ok()
    };
    value("nr_periods ").filter(|periods| *periods > 0.0)?;
    let of_version_2 = value("throttled_usec ").map(|microseconds| microseconds / 1e6);
    of_version_2.or_else(|| value("throttled_time ").map(|nanoseconds| nanoseconds / 1e9))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn groups_are_gone_up_from_the_process_to_the_top() {
        let found = folders_of("0::/a/b", Controller::Processor);
        let expected = ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"];
        assert_eq!(found[..3], expected.map(PathBuf::from));
        for controller in [Controller::Processor, Controller::Memory] {
            assert!(folders_of("3:cpuset:/a", controller).is_empty());
            assert!(folders_of("x", controller).is_empty());
        }
        let found = folders_of("4:cpu,cpuacct:/", Controller::Processor);
        assert_eq!(found[0], Path::new("/sys/fs/cgroup/cpu/"));
        let found = folders_of("4:memory:/a", Controller::Memory);
        assert_eq!(found, ["/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory"].map(PathBuf::from));
    }

    #[test]
    fn both_versions_tell_what_a_quota_took() {
        let second = "usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 2500000\n";
        assert_eq!(parse_throttled(second), Some(2.5));
        let first = "nr_periods 10\nnr_throttled 4\nthrottled_time 1500000000\n";
        assert_eq!(parse_throttled(first), Some(1.5));
        assert_eq!(parse_throttled("nr_periods 0\nthrottled_time 0\n"), None);
        assert_eq!(parse_throttled("usage_usec 9\n"), None);
    }

    #[test]
    fn both_versions_tell_what_memory_a_limit_leaves() {
        let second = "anon 100\ninactive_file 300\nactive_file 50\n";
        assert_eq!(parse_memory_left("1000\n", "600\n", second), Some(700));
        assert_eq!(parse_memory_left("max\n", "600\n", second), None);
        let first = "inactive_file 1\ntotal_inactive_file 300\n";
        assert_eq!(parse_memory_left("1000\n", "1100\n", first), Some(200));
        assert_eq!(parse_memory_left("9223372036854771712\n", "600\n", first), None);
        assert_eq!(parse_memory_left("1000\n", "1100\n", ""), Some(0));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,80}") {
            let _ = (parse_throttled(&text), parse_memory_left(&text, &text, &text));
            let _ = folders_of(&text, Controller::Memory);
        }
    }
}
