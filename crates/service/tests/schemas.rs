//! `docs/schema/` holds the schemas of all requests and answers. `TAKEUP_UPDATE=1 cargo test -p
//! service --test schemas` writes them.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The page on the crate has the example as it is.
#[test]
fn the_page_shows_the_example() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = fs::read_to_string(here.join("examples/backup_probe_bench.rs")).unwrap();
    let page = fs::read_to_string(here.join("../../docs/service.md")).unwrap();
    assert!(page.contains(&format!("```rust\n{example}```\n")), "docs/service.md has another text");
}

#[test]
fn the_schemas_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let updates = std::env::var_os("TAKEUP_UPDATE").is_some();
    let mut names = BTreeSet::new();
    for one in service::schema::all() {
        let name = format!("{}.json", one.name);
        let path = folder.join(&name);
        if name.ends_with(".answer.json") {
            let schema = one.schema.as_value();
            for field in ["command", "schema_version"] {
                let is_required = |it: &serde_json::Value| it == field;
                let mut required = schema["required"].as_array().unwrap().iter();
                assert!(required.any(is_required), "{name}: {field} is not required");
                assert!(schema["properties"][field].is_object(), "{name}: {field} has no schema");
            }
        }
        let now = serde_json::to_string_pretty(&one.schema).unwrap() + "\n";
        if updates {
            fs::write(&path, &now).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == now, "docs/schema/{name} is out of date: TAKEUP_UPDATE=1 writes it");
        assert!(names.insert(name.clone()), "{name} twice");
    }
    for entry in fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&name), "docs/schema/{name} is the schema of no request or answer");
    }
}
