//! The facts about the machine that explain a measurement later, without its name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use machine::counters::memory::Memory;
use machine::mounts;
use storage::layers::Storage;

/// Describes the machine: the facts that `experiment` keeps, the file system of `folder`, which
/// holds the data, and the versions of all programs; `takeup` is the product's binary.
///
/// # Errors
/// When /proc cannot be read.
pub fn describe(folder: &Path, takeup: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut found = experiment::environment::of(folder, &Storage::of(folder)?);
    // These records are published: no paths of the machine, and no host name.
    for name in ["path", "host"] {
        found.remove(name);
    }
    let information = fs::read_to_string("/proc/cpuinfo").context("read /proc/cpuinfo")?;
    let processor = field(&information, "model name").unwrap_or("unknown");
    let mut put = |name: &str, value: String| found.insert(name.to_owned(), value);
    put("processor", processor.to_owned());
    put("memory_bytes", Memory::now()?.total_bytes.to_string());
    put("file system", file_system(folder).unwrap_or_else(|| "unknown".to_owned()));
    put("commit", commit().unwrap_or_else(|| "unknown".to_owned()));
    for (program, version) in versions(takeup) {
        put(&format!("version {program}"), version);
    }
    Ok(found)
}

/// Folder name for the results of such machines.
pub fn host_class(environment: &BTreeMap<String, String>) -> String {
    let of = |name: &str| environment.get(name).map_or("unknown", String::as_str);
    format!(
        "{}-{}cpu-{}gib-{}",
        of("machine"),
        of("cores"),
        memory_gib(environment),
        of("file system")
    )
}

/// Memory of a machine, from its description.
pub fn memory_gib(environment: &BTreeMap<String, String>) -> u64 {
    let bytes = environment.get("memory_bytes").and_then(|bytes| bytes.parse::<u64>().ok());
    // Firmware reserves some memory, so a 16 GiB machine shows a little less.
    bytes.unwrap_or(0).div_ceil(1 << 30)
}

/// Whether a program of this name is found and executable.
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

/// Memory available without swapping, in bytes.
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
        // mbuffer prints its version on standard error.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_described() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let environment = describe(here, Path::new("takeup")).unwrap();
        assert!(memory_gib(&environment) > 0 && environment["cores"] != "0");
        assert_ne!(environment["file system"], "unknown");
        assert!(!environment.values().any(|value| value.starts_with('/')), "{environment:?}");
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
