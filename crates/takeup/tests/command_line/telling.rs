//! `--metrics` and `--ping`: what a monitoring system hears of a run.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::thread::JoinHandle;

use crate::run;

/// A service that answers `count` requests, and gives back what was asked for.
fn service(count: usize) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/uuid", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let mut paths = Vec::new();
        for _ in 0..count {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            paths.push(first.split(' ').nth(1).unwrap().to_owned());
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
        // Which of the two comes first is the network's.
        paths.sort();
        paths
    });
    (url, asked)
}

fn tree(folder: &Path) {
    fs::create_dir(folder.join("tree")).unwrap();
    fs::write(folder.join("tree/file"), testkit::samples::noise(1, 100_000)).unwrap();
}

#[test]
fn a_service_hears_of_the_start_and_of_the_end() {
    testkit::require!(Curl);
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path());
    let (url, asked) = service(2);
    let output = run(folder.path(), &["backup", "tree", "--to", "x.tar", "--ping", &url]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(asked.join().unwrap(), ["/uuid", "/uuid/start"]);
    let (url, asked) = service(2);
    let output = run(folder.path(), &["backup", "nothing", "--to", "y.tar", "--ping", &url]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(asked.join().unwrap(), ["/uuid/fail", "/uuid/start"]);
    // Uptime Kuma has no start.
    let (url, asked) = service(1);
    let url = url.replace("/uuid", "/api/push/abc?status=up&msg=OK&ping=");
    let output = run(folder.path(), &["verify", "x.tar", "--ping", &url]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(asked.join().unwrap(), ["/api/push/abc?status=up&msg=OK&ping="]);
}

#[test]
fn a_service_that_is_not_there_changes_nothing() {
    testkit::require!(Curl);
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path());
    let arguments =
        ["backup", "tree", "--to", "x.tar", "--ping", "http://127.0.0.1:1/secret", "--json"];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["verdict"], "done");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the end of the run was not told to --ping"), "{said}");
    assert!(!said.contains("secret"), "{said}");
    // What is no address is said before anything runs.
    let output = run(folder.path(), &["backup", "tree", "--to", "y.tar", "--ping", "secret"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("has to begin with http:// or https://"), "{said}");
    assert!(!folder.path().join("y.tar").exists());
    let arguments = ["backup", "tree", "--to", "y.tar", "--metrics", "no/such/y.prom"];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("takeup: --metrics: cannot open no/such/y.prom"), "{said}");
}

#[test]
fn a_job_tells_whom_its_file_names() {
    testkit::require!(Curl);
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path());
    fs::create_dir(folder.path().join("sets")).unwrap();
    let (url, asked) = service(2);
    let root = folder.path().display();
    let config = format!(
        "[jobs.homes]\nsources = [\"{root}/tree\"]\nto = \"{root}/sets/\"\n\
         [jobs.homes.verify]\nafter = \"checksums\"\n\
         [jobs.homes.tell]\nmetrics = \"{root}/homes.prom\"\nping = \"{url}\"\n"
    );
    fs::write(folder.path().join("takeup.toml"), config).unwrap();
    let output = run(folder.path(), &["run", "homes", "--config", "takeup.toml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(asked.join().unwrap(), ["/uuid", "/uuid/start"]);
    let text = fs::read_to_string(folder.path().join("homes.prom")).unwrap();
    let labels = "{command=\"run\",takeup_job=\"homes\"}";
    for line in [
        format!("takeup_run_files{labels} 1"),
        format!("takeup_run_source_bytes{labels} 100000"),
        format!("takeup_run_exit_code{labels} 0"),
        format!("takeup_run_damaged_archives{labels} 0"),
    ] {
        assert!(text.lines().any(|it| it == line), "{line} in {text}");
    }
    assert!(text.contains(&format!("takeup_last_verified_timestamp_seconds{labels} ")), "{text}");
    let arguments = ["status", "--config", "takeup.toml", "--metrics", "status.prom"];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = fs::read_to_string(folder.path().join("status.prom")).unwrap();
    let own = "{takeup_job=\"homes\"}";
    assert!(text.contains(&format!("takeup_job_sets{own} 1\n")), "{text}");
    assert!(text.contains(&format!("takeup_job_last_verified_timestamp_seconds{own} ")), "{text}");
    // An archive that is damaged is not a verified one, and the old time stays.
    let sets = fs::read_dir(folder.path().join("sets")).unwrap();
    let archive =
        sets.map(|it| it.unwrap().path()).find(|it| it.to_string_lossy().contains(".tar")).unwrap();
    let mut bytes = fs::read(&archive).unwrap();
    bytes[70_000] ^= 1;
    fs::write(&archive, bytes).unwrap();
    let output = run(folder.path(), &["verify", "sets/", "--metrics", "verify.prom"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = fs::read_to_string(folder.path().join("verify.prom")).unwrap();
    assert!(!text.contains("takeup_last_verified") && text.contains("exit_code"), "{text}");
}

#[test]
fn a_jobs_address_has_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path());
    let root = folder.path().display();
    let config = format!(
        "[jobs.homes]\nsources = [\"{root}/tree\"]\nto = \"{root}/sets/\"\n\
         [jobs.homes.tell]\nping = \"ftp://secret\"\n"
    );
    fs::write(folder.path().join("takeup.toml"), config).unwrap();
    let output = run(folder.path(), &["check-config", "--config", "takeup.toml"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("has to begin with http:// or https://"), "{said}");
}
