//! What the file says, and that nothing is lost over failures.

use super::*;

fn told(path: &Path, ended: &Ended<'_>) -> String {
    let request = TellingRequest { metrics: Some(path.to_owned()), ping: None };
    let telling = Telling::begin(&request, "backup", "/mnt/a \"b\"\\\n.tar");
    assert_eq!(telling.end(ended), Vec::<String>::new());
    std::fs::read_to_string(path).unwrap()
}

fn value(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn a_failure_keeps_when_the_last_run_succeeded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("takeup.prom");
    let success = Ended { is_verified: true, seconds: 1.5, ..Ended::default() };
    let text = told(&path, &success);
    let at = value(&text, "takeup_last_success_timestamp_seconds").unwrap();
    assert!(at > 1.7e9, "{text}");
    assert_eq!(value(&text, "takeup_last_verified_timestamp_seconds"), Some(at));
    assert_eq!(value(&text, "takeup_run_exit_code"), Some(0.0));
    let labels = r#"{command="backup",endpoint="/mnt/a \"b\"\\\n.tar"}"#;
    assert!(text.contains(&format!("takeup_run_seconds{labels} 1.5\n")), "{text}");
    // An older time, so that it is known where it comes from.
    std::fs::write(&path, text.replace(&format!("{at}"), "1234567890")).unwrap();
    let text = told(&path, &Ended { exit_code: 1, ..Ended::default() });
    assert_eq!(value(&text, "takeup_last_success_timestamp_seconds"), Some(1_234_567_890.0));
    assert_eq!(value(&text, "takeup_last_verified_timestamp_seconds"), Some(1_234_567_890.0));
    assert_eq!(value(&text, "takeup_run_exit_code"), Some(1.0));
    // The next success is a new one; that it was verified stays.
    let text = told(&path, &Ended::default());
    assert!(value(&text, "takeup_last_success_timestamp_seconds").unwrap() > 1.7e9);
    assert_eq!(value(&text, "takeup_last_verified_timestamp_seconds"), Some(1_234_567_890.0));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn every_family_has_its_help_and_each_sample_a_number() {
    let folder = tempfile::tempdir().unwrap();
    let text = told(&folder.path().join("takeup.prom"), &Ended::default());
    let mut family = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            family = rest.split(' ').next().unwrap();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert_eq!(rest, format!("{family} gauge"));
        } else {
            assert!(line.starts_with(family), "{line}");
            assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
        }
    }
}

#[test]
fn what_cannot_be_told_is_said_and_no_more() {
    let request = TellingRequest {
        metrics: Some("/no/such/folder/takeup.prom".into()),
        ping: Some("http://127.0.0.1:1/never".to_owned()),
    };
    let untold = Telling::begin(&request, "run", "homes").end(&Ended::default());
    assert_eq!(untold.len(), 2, "{untold:?}");
    assert!(untold[0].contains("takeup.prom") && untold[1].contains("--ping"), "{untold:?}");
    assert!(!untold[1].contains("never"), "the address is a secret: {untold:?}");
}
