//! The service and the timer of a job.

use std::fs;
use std::process::Command;

use crate::Place;

/// Where `systemd-analyze` is there, it has nothing to say against the units.
#[test]
fn systemd_takes_the_units() {
    let place = Place::new("schedule = 'Mon..Fri 02:30'\n");
    let arguments = ["units", "homes", "--config", "takeup.toml"];
    let printed = place.json(&arguments, 0);
    assert!(printed["written_to"].is_null());
    let early = place.text(&[&arguments[..], &["--write"]].concat(), 1);
    assert!(early.contains("run the job once: takeup run homes"), "{early}");
    place.job(&[], 0);
    let mut command = place.takeup();
    let written = command.args(arguments).arg("--write").env("TAKEUP_UNITS_DIR", place.path("u"));
    assert!(written.output().unwrap().status.success());
    let service = fs::read_to_string(place.path("u/takeup-homes.service")).unwrap();
    assert_eq!(printed["service"], service.as_str());
    assert!(service.contains("run homes --config"), "{service}");
    assert!(service.contains("RequiresMountsFor="), "{service}");
    let timer = fs::read_to_string(place.path("u/takeup-homes.timer")).unwrap();
    assert!(timer.contains("OnCalendar=Mon..Fri 02:30\nPersistent=yes\n"), "{timer}");
    let verify = Command::new("systemd-analyze")
        .arg("verify")
        .args([place.path("u/takeup-homes.service"), place.path("u/takeup-homes.timer")])
        .output();
    let Ok(verify) = verify else {
        testkit::does_not_apply!("there is no systemd-analyze");
    };
    let said = String::from_utf8(verify.stderr).unwrap();
    assert!(verify.status.success() && !said.contains("takeup-homes"), "{said}");
    let bad = Place::new("schedule = 'whenever'\n");
    let said = bad.text(&["check-config", "--config", "takeup.toml"], 2);
    assert!(said.contains("PROBLEM: the schedule \"whenever\""), "{said}");
}

#[test]
fn a_job_with_commands_is_less_locked_in() {
    let place = Place::new("");
    let unit = |place: &Place| {
        let answer = place.json(&["units", "homes", "--config", "takeup.toml"], 0);
        answer["service"].as_str().unwrap().to_owned()
    };
    let plain = unit(&place);
    place.configure("hooks.before = 'true'\n");
    let hooked = unit(&place);
    assert!(!hooked.contains("ProtectSystem") && hooked.contains("NoNewPrivileges=yes"));
    testkit::require!(Root);
    assert!(plain.contains("ProtectSystem=strict\nReadWritePaths="), "{plain}");
}
