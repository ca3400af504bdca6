//! What `docs/promises.md` promises: keys of documents, rules, commands, options and numbers for
//! Prometheus of every version are still there. `promises/VERSION.txt` has them, a line each; that
//! of the version in the making is written by `TAKEUP_UPDATE=1`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{document, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command_line/promises")
}

/// Keys of a schema and of the types that it defines.
fn keys(name: &str, schema: &Value, into: &mut BTreeSet<String>) {
    let mut of = |place: &str, object: &Value| {
        let shapes = object["oneOf"].as_array().into_iter().chain(object["anyOf"].as_array());
        let shapes = shapes.flatten().chain(std::iter::once(object));
        for properties in shapes.filter_map(|shape| shape["properties"].as_object()) {
            into.extend(properties.keys().map(|key| format!("json {place} {key}")));
        }
    };
    of(name, schema);
    for (defined, object) in schema["$defs"].as_object().into_iter().flatten() {
        of(&format!("{name} {defined}"), object);
    }
}

/// Options of the commands, from the help pages.
fn options(help: &str, into: &mut BTreeSet<String>) {
    let mut command = "";
    for line in help.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            command = title;
            into.insert(format!("command {command}"));
        }
        let begin = line.trim_start();
        let indent = line.len() - begin.len();
        let long = match begin.strip_prefix('-') {
            Some(rest) if rest.starts_with('-') => Some(begin),
            Some(rest) => rest.split_once(", ").map(|(_, long)| long),
            None => None,
        };
        if let Some(long) = long.filter(|long| long.starts_with("--") && (2..=8).contains(&indent))
        {
            let name = |letter: &char| letter.is_ascii_lowercase() || *letter == '-';
            let name: String = long.chars().take_while(name).collect();
            into.insert(format!("option {command} {name}"));
        }
    }
}

/// All that is promised, of the version that is tested.
fn promised() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(root().join("docs/schema")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        keys(&name, &serde_json::from_slice(&fs::read(&path).unwrap()).unwrap(), &mut all);
    }
    let rules = document(Path::new("/"), &["rules", "--json"]);
    for room in rules["rooms"].as_array().unwrap() {
        for rule in room["rules"].as_array().unwrap() {
            all.insert(format!("rule {}", rule["id"].as_str().unwrap()));
        }
    }
    options(&fs::read_to_string(root().join("docs/command-line.md")).unwrap(), &mut all);
    all.extend(service::telling::NUMBERS.iter().map(|(name, _)| format!("metric {name}")));
    all
}

#[test]
fn what_a_version_had_is_still_there() {
    let now = promised();
    let kinds = [
        "json probe.answer",
        "rule drive.",
        "command takeup backup",
        "option takeup run ",
        "metric takeup_job_",
    ];
    for kind in kinds {
        assert!(now.iter().any(|line| line.starts_with(kind)), "{kind} is not found");
    }
    let version = run(Path::new("/"), &["--version"]);
    let version = String::from_utf8(version.stdout).unwrap();
    let version = version.trim().strip_prefix("takeup ").unwrap();
    let own = kept().join(format!("{version}.txt"));
    if std::env::var_os("TAKEUP_UPDATE").is_some() {
        // What a released version had, it had: nothing is taken from its list any more.
        let changes = fs::read_to_string(root().join("docs/changes.md")).unwrap();
        let is_released = changes.lines().any(|line| line == format!("## {version}"));
        let then = fs::read_to_string(&own).unwrap_or_default();
        let mut lines = now.clone();
        lines.extend(then.lines().filter(|_| is_released).map(str::to_owned));
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&own, lines).unwrap();
    }
    assert!(own.exists(), "{} is missing: TAKEUP_UPDATE=1 writes it", own.display());
    for entry in fs::read_dir(kept()).unwrap() {
        let path = entry.unwrap().path();
        let then = fs::read_to_string(&path).unwrap();
        let gone: Vec<&str> = then.lines().filter(|line| !now.contains(*line)).collect();
        assert!(gone.is_empty(), "{} has what is gone: {gone:#?}", path.display());
        assert!(then.lines().count() > 100, "{} is cut", path.display());
        if path == own {
            let new = now.iter().filter(|line| !then.lines().any(|known| known == *line));
            let new: Vec<&String> = new.collect();
            assert!(new.is_empty(), "TAKEUP_UPDATE=1 adds them to {}: {new:#?}", path.display());
        }
    }
}

#[test]
fn the_page_names_every_number() {
    let page = fs::read_to_string(root().join("docs/monitoring.md")).unwrap();
    let names = service::telling::NUMBERS.iter().map(|(name, _)| *name);
    let missing: Vec<&str> = names.filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/monitoring.md lacks {missing:#?}");
}

#[test]
fn keys_and_options_are_found() {
    let schema = serde_json::json!({
        "properties": { "a": {} },
        "$defs": { "B": { "oneOf": [{ "properties": { "c": {} } }], "properties": { "d": {} } } },
    });
    let mut found = BTreeSet::new();
    keys("x.answer", &schema, &mut found);
    options("## takeup x\n\n  -h, --help  y\n      --two-words <Z>\n  text --no\n", &mut found);
    let expected = [
        "command takeup x",
        "json x.answer B c",
        "json x.answer B d",
        "json x.answer a",
        "option takeup x --help",
        "option takeup x --two-words",
    ];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
}
