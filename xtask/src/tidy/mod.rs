//! `cargo xtask tidy`: the rules of style that a machine can check, over the whole repository.
//!
//! This module reads files and runs `cargo metadata`. `rules.rs`, `links.rs` and `licences.rs`
//! define the findings; exceptions are in `xtask/tidy-allow.txt`, with a reason.

mod allowed;
mod arrows;
mod binary;
mod circles;
mod documented;
mod licences;
mod links;
mod map;
mod prose;
mod rules;
mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use serde_json::Value;

use self::allowed::Allowed;
use self::arrows::Use;
use self::rules::Finding;

const ALLOW_LIST: &str = "xtask/tidy-allow.txt";
const DEPENDENCIES: &str = "docs/dependencies.md";
const CHANGELOG: &str = "CHANGELOG.md";
/// More files than this repository will have; a loop of links would exceed it.
const FILES_MAX: usize = 100_000;

/// Arguments of `cargo xtask tidy`.
#[derive(clap::Args)]
pub struct TidyArguments {
    /// Only report findings in files whose path starts with one of these
    paths: Vec<String>,
}

/// Checks the repository and prints the findings.
///
/// # Errors
/// When a file cannot be read or `cargo metadata` fails.
pub fn run(arguments: &TidyArguments) -> anyhow::Result<ExitCode> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.parent().unwrap_or(own);
    let mut findings = check_files(root)?;
    findings.extend(check_changelog(root));
    findings.extend(check_contents(root)?);
    findings.extend(check_dependencies(root)?);
    findings.extend(licences::check(root)?);
    let list = fs::read_to_string(root.join(ALLOW_LIST)).unwrap_or_default();
    let mut findings = Allowed::parse(ALLOW_LIST, &list).apply(findings);
    if !arguments.paths.is_empty() {
        findings
            .retain(|finding| arguments.paths.iter().any(|path| finding.path.starts_with(path)));
    }
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    for Finding { rule, path, line, message, .. } in &findings {
        println!("{path}:{line}: {message} [{rule}]");
    }
    if findings.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("tidy: {} findings; exceptions go to {ALLOW_LIST} with a reason", findings.len());
    Ok(ExitCode::FAILURE)
}

fn check_files(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut sources = Vec::new();
    for path in files(root)? {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let is_script = ending == "sh" || (ending.is_empty() && starts_like_script(&path));
        if !is_script && !["rs", "md", "ndjson"].contains(&ending.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("read {name}"))?;
        match ending.as_str() {
            "rs" => {
                findings.extend(rules::check_rust(&name, &text));
                findings.extend(map::check(&name, &text));
                findings.extend(documented::check(&name, &text));
                sources.push((name, text));
            }
            "md" => {
                findings.extend(rules::check_markdown(&name, &text));
                findings.extend(prose::check(&name, &text));
                findings.extend(links::broken_links(&path, &text).iter().map(|broken| {
                    let message = format!("leads nowhere: {}", broken.target);
                    Finding::new("link", &name, broken.line, &message)
                }));
            }
            "ndjson" => findings.extend(rules::check_records(&name, &text)),
            _ => findings.extend(rules::check_script(&name, &text)),
        }
    }
    findings.extend(circles::check(&sources));
    findings.extend(binary::check(&sources));
    Ok(findings)
}

/// Every file of the repository, without build output and the version history.
fn files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let kind = entry.file_type()?;
            // Cargo marks its own folder; a module may have the same name.
            let is_output = name == "target" && entry.path().join("CACHEDIR.TAG").exists();
            let is_skipped = is_output || [".git", "corpus"].iter().any(|skip| name == *skip);
            if kind.is_dir() && !is_skipped {
                folders.push(entry.path());
            }
            if kind.is_file() {
                files.push(entry.path());
            }
        }
        if files.len() > FILES_MAX {
            bail!("{}: more than {FILES_MAX} files", root.display());
        }
    }
    files.sort();
    Ok(files)
}

fn starts_like_script(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"#!") && bytes.len() < 1 << 20)
}

/// Pages of `docs/` that the contents of the site do not have.
fn check_contents(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let known = crate::site::pages(&fs::read_to_string(root.join(crate::site::SUMMARY))?);
    let mut findings = Vec::new();
    for path in files(&root.join("docs"))? {
        let Ok(name) = path.strip_prefix(root) else { continue };
        let is_page = name.extension().is_some_and(|ending| ending == "md");
        if is_page && name != Path::new(crate::site::SUMMARY) && !known.contains(name) {
            let message = format!("{} does not have it", crate::site::SUMMARY);
            findings.push(Finding::new("contents", &name.to_string_lossy(), 1, &message));
        }
    }
    Ok(findings)
}

fn check_changelog(root: &Path) -> Option<Finding> {
    let text = fs::read_to_string(root.join(CHANGELOG)).unwrap_or_default();
    let message = "missing, or without a section";
    (!text.contains("\n## ")).then(|| Finding::new("changelog", CHANGELOG, 0, message))
}

fn check_dependencies(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let packages = packages(root)?;
    let names = dependencies(&packages);
    let document = fs::read_to_string(root.join(DEPENDENCIES)).unwrap_or_default();
    let mut findings: Vec<Finding> = rules::unnamed_dependencies(&names, &document)
        .iter()
        .map(|name| {
            let message = format!("{name}: what for, what else was weighed, what it costs");
            Finding::new("dependency", DEPENDENCIES, 0, &message)
        })
        .collect();
    let manifest = fs::read_to_string(root.join("Cargo.toml")).context("read Cargo.toml")?;
    for key in rules::workspace_dependencies(&manifest) {
        if !names.contains(&key) && !root.join("crates").join(&key).exists() {
            let message = format!("{key}: no crate uses it");
            findings.push(Finding::new("dependency", "Cargo.toml", 0, &message));
        }
    }
    for package in &packages {
        findings.extend(check_unused(root, package)?);
        findings.extend(check_arrows(root, package));
    }
    Ok(findings)
}

/// Dependencies of a crate that its sources do not mention: those of the product in `src`, those of
/// its tests anywhere.
fn check_unused(root: &Path, package: &Value) -> anyhow::Result<Vec<Finding>> {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let folder = manifest.parent().context("cargo metadata: a manifest without a folder")?;
    let mut findings = Vec::new();
    for (kind, place) in [(Value::Null, "src"), ("dev".into(), "")] {
        let names: Vec<String> = package["dependencies"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|dependency| dependency["kind"] == kind)
            .filter_map(|dependency| dependency["name"].as_str())
            .map(str::to_string)
            .collect();
        let mut sources = String::new();
        for file in files(&folder.join(place))? {
            if file.extension().is_some_and(|extension| extension == "rs") {
                sources += &fs::read_to_string(&file)
                    .with_context(|| format!("read {}", file.display()))?;
            }
        }
        for name in rules::unused_dependencies(&names, &sources) {
            let shown = manifest.strip_prefix(root).unwrap_or(manifest).display().to_string();
            let message = format!("{name}: the crate does not use it");
            findings.push(Finding::new("dependency", &shown, 0, &message));
        }
    }
    Ok(findings)
}

/// Dependencies between the repository's crates that do not go down.
fn check_arrows(root: &Path, package: &Value) -> Vec<Finding> {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let shown = manifest.strip_prefix(root).unwrap_or(manifest).display().to_string();
    let from = package["name"].as_str().unwrap_or_default();
    let refusal = |dependency: &Value| {
        let to = dependency["name"].as_str()?;
        let by = if dependency["kind"] == "dev" { Use::Tests } else { Use::Product };
        arrows::refusal(from, to, by)
    };
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies
        .filter(|dependency| !dependency["path"].is_null())
        .filter_map(refusal)
        .map(|message| Finding::new("arrow", &shown, 0, &message))
        .collect()
}

/// Metadata of the repository's crates from cargo.
fn packages(root: &Path) -> anyhow::Result<Vec<Value>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output()
        .context("start cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    metadata["packages"].as_array().cloned().context("cargo metadata: no packages")
}

/// Names of the external crates in the repository's manifests, sorted.
fn dependencies(packages: &[Value]) -> Vec<String> {
    let names: BTreeSet<String> = packages
        .iter()
        .filter_map(|package| package["dependencies"].as_array())
        .flatten()
        .filter(|dependency| dependency["path"].is_null())
        .filter_map(|dependency| dependency["name"].as_str())
        .map(str::to_string)
        .collect();
    names.into_iter().collect()
}
