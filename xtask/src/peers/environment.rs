//! What must be known about the machine to read a measurement later, and nothing that names it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use host::counters::memory::Memory;
use host::layers::Storage;
use host::mounts;
use host::settings::chosen;

use super::record::Environment;

/// Looks at the machine. `folder` holds the data; `takeup` is the product's binary.
///
/// # Errors
/// When /proc cannot be read.
pub fn describe(folder: &Path, takeup: &Path, size: &str) -> anyhow::Result<Environment> {
    let uname = rustix::system::uname();
    let information = fs::read_to_string("/proc/cpuinfo").context("read /proc/cpuinfo")?;
    let storage = Storage::of(folder)?;
    let setting = |name: &str| storage.queue_setting(name);
    Ok(Environment {
        campaign: timestamp(),
        size: size.to_string(),
        kernel: uname.release().to_string_lossy().into_owned(),
        architecture: uname.machine().to_string_lossy().into_owned(),
        processor: field(&information, "model name").unwrap_or("unknown").to_string(),
        processors: std::thread::available_parallelism().map_or(1, usize::from) as u64,
        memory_bytes: Memory::now()?.total_bytes,
        file_system: file_system(folder).unwrap_or_else(|| "unknown".to_string()),
        read_ahead_bytes: storage.read_ahead_bytes()?,
        scheduler: setting("scheduler").map(|text| chosen(&text).to_string()),
        rotational: setting("rotational").map(|text| text == "1"),
        commit: commit(),
        versions: versions(takeup),
    })
}

/// Folder name for results of machines like this one.
pub fn host_class(environment: &Environment) -> String {
    // Firmware keeps some memory for itself, so a 16 GiB machine shows a little less.
    let gibibytes = environment.memory_bytes.div_ceil(1 << 30);
    format!(
        "{}-{}cpu-{}gib-{}",
        environment.architecture, environment.processors, gibibytes, environment.file_system
    )
}

/// Whether a program of this name would be found and may be run.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let runs = |path: &Path| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| runs(path));
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| runs(path))
}

/// Memory that can be had without swapping, in bytes.
pub fn available_memory_bytes() -> u64 {
    Memory::now().map_or(0, |memory| memory.available_bytes)
}

fn versions(takeup: &Path) -> BTreeMap<String, String> {
    let programs =
        ["tar", "bsdtar", "zstd", "pigz", "mbuffer", "pv", "dd", "cat", "fio"].map(Path::new);
    let mut versions = BTreeMap::new();
    for program in programs.into_iter().chain([takeup]) {
        let output =
            Command::new(program).arg("--version").stdin(Stdio::null()).env("LC_ALL", "C").output();
        // mbuffer says its version on standard error.
        let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(line) = line {
            versions.insert(name, line.trim_matches(['*', ' ']).to_string());
        }
    }
    versions
}

fn commit() -> Option<String> {
    let arguments = ["describe", "--always", "--dirty", "--exclude=*"];
    let output = Command::new("git")
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
}

/// Type of the file system that holds `folder`.
fn file_system(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    Some(mounts::above(&mounts::now().ok()?, &folder)?.kind.clone())
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

fn timestamp() -> String {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
    let (days, second) = (now.div_euclid(86_400), now.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Date of a day since 1970-01-01: eras of 400 years counted from 1 March 0000, so that the leap
/// day is the last of a year (H. Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        // Walk the calendar day by day against the rule of leap years.
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..60_000 {
            assert_eq!(civil(days), (year, month, day));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }

    #[test]
    fn this_machine_can_be_described() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let environment = describe(here, Path::new("takeup"), "quick").unwrap();
        assert!(environment.memory_bytes > 0 && environment.processors > 0);
        assert_ne!(environment.file_system, "unknown");
        let name = uname_node();
        let line = serde_json::to_string(&environment).unwrap();
        assert!(!line.contains(&name), "the host's name is in {line}");
    }

    fn uname_node() -> String {
        let uname = rustix::system::uname();
        // A name as short as "a" would be found in any text.
        format!("\"{}\"", uname.nodename().to_string_lossy())
    }
}
