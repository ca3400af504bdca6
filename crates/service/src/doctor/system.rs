//! The machine and its limits.

use machine::Machine;

use super::{Names, SystemAnswer};

pub(super) fn system(machine: &Machine, names: Names) -> SystemAnswer {
    let processors = machine.text(&machine.at("/proc/cpuinfo")).unwrap_or_default();
    let memory = machine.text(&machine.at("/proc/meminfo")).unwrap_or_default();
    let marks = ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"];
    SystemAnswer {
        distribution: machine
            .text(&machine.at("/etc/os-release"))
            .as_deref()
            .and_then(distribution),
        kernel: release(&rustix::system::uname().release().to_string_lossy(), names),
        page_bytes: rustix::param::page_size() as u64,
        processor: processor(&processors),
        cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64),
        memory_bytes: machine::table::bytes(&memory, "MemTotal"),
        memory_left_bytes: machine::control_groups::memory_left_bytes(),
        open_files_max: machine::open_files::limit() as u64,
        root: rustix::process::geteuid().is_root(),
        container: marks.iter().any(|mark| machine.at(mark).exists()),
        virtual_machine: flags(&processors).any(|flag| flag == "hypervisor"),
    }
}

/// Behind the numbers stands what its maker called it, which can be the name of a machine.
fn release(release: &str, names: Names) -> String {
    let is_number = |letter: char| letter.is_ascii_digit() || ".-".contains(letter);
    let numbers = release.find(|letter| !is_number(letter)).unwrap_or(release.len());
    match names {
        Names::Shown => release.to_owned(),
        Names::LeftOut => release[..numbers].trim_end_matches(['-', '.']).to_owned(),
    }
}

/// `PRETTY_NAME` of os-release(5).
fn distribution(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?.trim();
    let quotes = ['"', '\''];
    Some(value.trim_matches(quotes).to_owned()).filter(|name| !name.is_empty())
}

fn processor(text: &str) -> Option<String> {
    let names = ["model name", "Model", "cpu model"];
    let named = |name: &str| text.lines().find_map(|line| value_of(line, name));
    names.into_iter().find_map(named).map(str::to_owned)
}

fn flags(text: &str) -> impl Iterator<Item = &str> {
    text.lines().find_map(|line| value_of(line, "flags")).unwrap_or_default().split_whitespace()
}

fn value_of<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (key, value) = line.split_once(':')?;
    (key.trim() == name).then(|| value.trim()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_machine() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
        write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast 3\nflags\t\t: fpu hypervisor\n");
        write("proc/meminfo", "MemTotal:       1024 kB\nMemFree: 1 kB\n");
        write(".dockerenv", "");
        let found = system(&Machine::recorded(folder.path()).unwrap(), Names::LeftOut);
        assert_eq!(found.distribution.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(found.processor.as_deref(), Some("Fast 3"));
        assert_eq!(found.memory_bytes, Some(1 << 20));
        assert!(found.container && found.virtual_machine);
    }

    #[test]
    fn the_release_by_its_numbers() {
        assert_eq!(release("6.1.0-28-amd64", Names::LeftOut), "6.1.0-28");
        assert_eq!(release("6.1.0-annas-pc", Names::LeftOut), "6.1.0");
        assert_eq!(release("6.1.0-annas-pc", Names::Shown), "6.1.0-annas-pc");
    }

    #[test]
    fn what_is_not_there_is_not_known() {
        let folder = tempfile::tempdir().unwrap();
        let found = system(&Machine::recorded(folder.path()).unwrap(), Names::LeftOut);
        assert_eq!((found.distribution, found.processor, found.memory_bytes), (None, None, None));
        assert!(!found.container && !found.virtual_machine);
        assert!(found.cores > 0 && found.page_bytes >= 4096 && found.open_files_max > 0);
    }
}
