//! Programs that Takeup starts for some of its work, and their versions.

use machine::Machine;

use super::HelperAnswer;

/// Name, the option that prints the version, what it is used for.
const HELPERS: [(&str, &str, &str); 7] = [
    ("fio", "--version", "takeup bench disk, takeup tune queue"),
    ("smartctl", "--version", "the health of disks in takeup probe"),
    ("fusermount3", "--version", "takeup sim, of users other than root"),
    ("losetup", "--version", "takeup sim disk --loop"),
    ("udevadm", "--version", "takeup tune persist"),
    ("systemctl", "--version", "jobs by timers (takeup units)"),
    ("curl", "--version", "--ping"),
];

/// Longer first lines are cut.
const VERSION_CHARS_MAX: usize = 60;

pub(super) fn programs(machine: &Machine) -> Vec<HelperAnswer> {
    let helper = |(name, option, used_for): (&str, &str, &str)| {
        let told = machine.answer(name, &[option]);
        HelperAnswer {
            name: name.to_owned(),
            version: told.as_deref().and_then(first_line),
            used_for: used_for.to_owned(),
        }
    };
    HELPERS.into_iter().map(helper).collect()
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    // What follows in brackets is how it was built, or on which machine.
    let line = line.split(['(', '[']).next().unwrap_or(line).trim();
    Some(line.chars().take(VERSION_CHARS_MAX).collect::<String>().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_without_how_it_was_built() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(first_line(text).as_deref(), expected, "{text}");
        };
        check("fio-3.33\n", Some("fio-3.33"));
        check("curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/7.88.1", Some("curl 7.88.1"));
        check(
            "\nsmartctl 7.3 2022-02-28 r5338 [x86_64-linux-6.1.0]",
            Some("smartctl 7.3 2022-02-28 r5338"),
        );
        check("", None);
        check("\n \n", None);
    }

    #[test]
    fn a_recorded_machine_answers() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("answers")).unwrap();
        std::fs::write(folder.path().join("answers/fio --version"), "fio-3.33\n").unwrap();
        let found = programs(&Machine::recorded(folder.path()).unwrap());
        assert_eq!(found[0].version.as_deref(), Some("fio-3.33"));
        assert!(found[1..].iter().all(|helper| helper.version.is_none()));
    }
}
