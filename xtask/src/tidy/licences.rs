//! Licences and origins of the external crates: `deny.toml` must allow each licence and each
//! registry.
//!
//! `cargo deny` checks the same and more, but takes minutes to install; this runs everywhere. It
//! checks the crates that are compiled on this machine: those for other systems need not even be
//! downloaded. A crate with its licence only in a file is a finding, for a person to check.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use super::rules::Finding;

const POLICY: &str = "deny.toml";
/// The fuzz targets have their own workspace.
const MANIFESTS: &[&str] = &["Cargo.toml", "fuzz/Cargo.toml"];
/// Deeper than any licence expression; the parser recurses for each parenthesis.
const EXPRESSION_BYTES_MAX: usize = 500;

/// Checks all crates that the workspaces at `root` compile on this machine.
///
/// # Errors
/// When `deny.toml` cannot be read or `cargo metadata` fails.
pub fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let policy = std::fs::read_to_string(root.join(POLICY)).context("read deny.toml")?;
    let licences = strings_of(&policy, "allow");
    let registries = strings_of(&policy, "allow-registry");
    if licences.is_empty() || registries.is_empty() {
        bail!("{POLICY}: allow and allow-registry must be lists of strings");
    }
    let host = host(root)?;
    let mut findings = Vec::new();
    for manifest in MANIFESTS {
        let metadata = metadata(root, manifest, &host)?;
        let packages = metadata["packages"].as_array().context("cargo metadata: no packages")?;
        for package in packages {
            let finding = |rule, message: String| Finding::new(rule, manifest, 0, &message);
            let name = package["name"].as_str().unwrap_or("a crate without a name");
            // Crates of this repository have no source.
            let Some(source) = package["source"].as_str() else { continue };
            if !registries.iter().any(|allowed| source.strip_prefix("registry+") == Some(allowed)) {
                findings.push(finding("source", format!("{name}: comes from {source}")));
            }
            let licence = package["license"].as_str().unwrap_or("none");
            if !is_allowed(licence, &licences) {
                findings.push(finding("licence", format!("{name}: not in {POLICY}: {licence}")));
            }
        }
    }
    Ok(findings)
}

/// Whether one alternative of the SPDX expression has only allowed licences.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    if expression.len() > EXPRESSION_BYTES_MAX {
        return false;
    }
    // Older crates use a slash for "or".
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, allowed };
    reader.alternatives() == Some(true) && reader.words.is_empty()
}

/// The rest of an expression. Each function consumes a part from the front and returns whether it
/// is allowed, or `None` if it is malformed.
struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a [String],
}

impl Reader<'_> {
    fn alternatives(&mut self) -> Option<bool> {
        let mut result = self.conjunction()?;
        while self.take("OR") {
            result |= self.conjunction()?;
        }
        Some(result)
    }

    fn conjunction(&mut self) -> Option<bool> {
        let mut result = self.licence()?;
        while self.take("AND") {
            result &= self.licence()?;
        }
        Some(result)
    }

    fn licence(&mut self) -> Option<bool> {
        if self.take("(") {
            let result = self.alternatives()?;
            return self.take(")").then_some(result);
        }
        let (name, rest) = self.words.split_first()?;
        if ["OR", "AND", "WITH", ")"].contains(name) {
            return None;
        }
        self.words = rest;
        if !self.take("WITH") {
            return Some(self.allowed.iter().any(|allowed| allowed == name));
        }
        let (exception, rest) = self.words.split_first()?;
        self.words = rest;
        let whole = format!("{name} WITH {exception}");
        Some(self.allowed.contains(&whole))
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }
}

/// The strings of `key = ["...", ...]` in TOML, which may go over several lines.
fn strings_of(toml: &str, key: &str) -> Vec<String> {
    let opening = format!("\n{key} = [");
    let list = toml.split(&opening).nth(1).and_then(|rest| rest.split(']').next());
    let pieces = list.unwrap_or_default().split('"').skip(1).step_by(2);
    pieces.map(str::to_string).collect()
}

/// The triple of the machine that compiles.
fn host(root: &Path) -> anyhow::Result<String> {
    let text = cargo(root, &["-vV"])?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("cargo -vV: no host")?.to_string())
}

fn metadata(root: &Path, manifest: &str, host: &str) -> anyhow::Result<serde_json::Value> {
    let text = cargo(
        root,
        &[
            "metadata",
            "--format-version",
            "1",
            "--filter-platform",
            host,
            "--manifest-path",
            manifest,
        ],
    )?;
    serde_json::from_str(&text).with_context(|| format!("cargo metadata: {manifest}"))
}

fn cargo(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output =
        Command::new(cargo).args(arguments).current_dir(root).output().context("start cargo")?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("cargo {}: {}", arguments.join(" "), why.trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_allowed_when_one_way_through_them_is() {
        let allowed = ["MIT", "Apache-2.0", "Zlib", "GPL-2.0 WITH a-exception"].map(str::to_string);
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("GPL-3.0 AND MIT OR Zlib", true),
            ("GPL-3.0 AND (MIT OR Zlib)", false),
            ("(MIT OR GPL-3.0) AND Zlib", true),
            ("GPL-2.0 WITH a-exception", true),
            ("MIT WITH a-exception", false),
            ("GPL-2.0", false),
            ("none", false),
            ("", false),
            ("MIT OR", false),
            ("MIT)", false),
            ("(MIT", false),
            ("MIT Zlib", false),
            ("MIT OR AND", false),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
        assert!(!is_allowed(&"(".repeat(1 << 20), &allowed));
    }

    #[test]
    fn lists_of_the_policy_are_found() {
        let policy = "\
# allow = [\"GPL-3.0\"]
[licenses]
allow = [
    \"MIT\",
    \"Zlib\",
]
[sources]
allow-registry = [\"https://example.org/index\"]
";
        assert_eq!(strings_of(policy, "allow"), ["MIT", "Zlib"]);
        assert_eq!(strings_of(policy, "allow-registry"), ["https://example.org/index"]);
        assert!(strings_of(policy, "deny").is_empty());
    }
}
