//! The crates whose code is in the program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

/// A crate of the program.
pub struct Part {
    pub name: String,
    pub version: String,
    /// An SPDX expression.
    pub licence: String,
    /// The folder of its source.
    pub folder: PathBuf,
    /// Whether it is of this repository.
    pub is_own: bool,
    /// SHA-256 of its archive in the registry.
    pub checksum: Option<String>,
    /// Names and versions of those that it needs.
    pub needs: Vec<String>,
}

impl Part {
    /// Name and version.
    pub fn key(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

/// The crates that are compiled into the program, by name: without those that only build, test or
/// derive.
///
/// # Errors
/// When `cargo metadata` fails, or a crate does not say its licence.
pub fn of_the_program(root: &Path, platform: &str) -> anyhow::Result<Vec<Part>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments =
        ["metadata", "--locked", "--format-version", "1", "--filter-platform", platform];
    let output =
        Command::new(cargo).args(arguments).current_dir(root).output().context("start cargo")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("read Cargo.lock")?;
    parts(&metadata, &checksums(&lock)?, "takeup")
}

/// The checksums of `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let lock: toml::Value = toml::from_str(lock).context("Cargo.lock")?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let text = |package: &toml::Value, key: &str| {
        package.get(key).and_then(toml::Value::as_str).map(str::to_owned)
    };
    let known = packages.into_iter().flatten().filter_map(|package| {
        let key = format!("{} {}", text(package, "name")?, text(package, "version")?);
        Some((key, text(package, "checksum")?))
    });
    Ok(known.collect())
}

fn parts(
    metadata: &Value,
    checksums: &BTreeMap<String, String>,
    program: &str,
) -> anyhow::Result<Vec<Part>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> = list(&metadata["packages"])
        .into_iter()
        .map(|package| (text(&package["id"]), package))
        .collect();
    let nodes: BTreeMap<String, Value> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .map(|node| (text(&node["id"]), node))
        .collect();
    let derives = |package: &Value| {
        let mut kinds = list(&package["targets"]).into_iter().flat_map(|it| list(&it["kind"]));
        kinds.any(|kind| kind == "proc-macro")
    };
    let first = packages.iter().find(|(_, package)| package["name"] == program);
    let mut waiting = vec![first.context("cargo metadata: the program is missing")?.0.clone()];
    let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
    let mut parts = Vec::new();
    while let Some(id) = waiting.pop() {
        let package = packages.get(&id).with_context(|| format!("cargo metadata: no {id}"))?;
        let mut needs = Vec::new();
        for need in nodes.get(&id).map(|node| list(&node["deps"])).unwrap_or_default() {
            // A kind of null is a dependency of the code itself.
            let is_code = list(&need["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            let other = text(&need["pkg"]);
            let Some(needed) = packages.get(&other).filter(|it| is_code && !derives(it)) else {
                continue;
            };
            needs.push(format!("{} {}", text(&needed["name"]), text(&needed["version"])));
            if seen.insert(other.clone()) {
                waiting.push(other);
            }
        }
        needs.sort();
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let Some(licence) = package["license"].as_str() else {
            bail!("{name} {version} does not say its licence");
        };
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        parts.push(Part {
            checksum: checksums.get(&format!("{name} {version}")).cloned(),
            licence: licence.replace('/', " OR "),
            folder: manifest.parent().unwrap_or(&manifest).to_owned(),
            is_own: package["source"].is_null(),
            name,
            version,
            needs,
        });
    }
    parts.sort_by_key(Part::key);
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_compiled_into_the_program_is_a_part() {
        let package = |name: &str, kind: &str, source: Value| {
            json!({
                "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
                "manifest_path": format!("/src/{name}/Cargo.toml"), "source": source,
                "targets": [{ "kind": [kind] }],
            })
        };
        let need =
            |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [
                package("takeup", "bin", Value::Null),
                package("zstd", "lib", json!("registry")),
                package("cc", "lib", json!("registry")),
                package("derive", "proc-macro", json!("registry")),
                package("tests", "lib", json!("registry")),
            ],
            "resolve": { "nodes": [
                { "id": "takeup", "deps": [
                    need("zstd", Value::Null), need("derive", Value::Null),
                    need("tests", json!("dev")),
                ] },
                { "id": "zstd", "deps": [need("cc", json!("build"))] },
            ] },
        });
        let checksums =
            checksums("[[package]]\nname = \"zstd\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n");
        let parts = parts(&metadata, &checksums.unwrap(), "takeup").unwrap();
        let keys: Vec<String> = parts.iter().map(Part::key).collect();
        assert_eq!(keys, ["takeup 1.0.0", "zstd 1.0.0"]);
        assert_eq!(parts[0].needs, ["zstd 1.0.0"]);
        assert!(parts[0].is_own && !parts[1].is_own);
        assert_eq!(parts[1].licence, "MIT OR Apache-2.0");
        assert_eq!(parts[1].checksum.as_deref(), Some("ab"));
        assert_eq!(parts[1].folder, Path::new("/src/zstd"));
    }
}
