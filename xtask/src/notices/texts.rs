//! The texts of licences, each once, with the crates that it is of.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::parts::Part;

/// How files with a licence begin.
const BEGINNINGS: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];
/// Folders below a crate that are looked into: the C library that it brings.
const DEPTH: usize = 2;
/// What is in the binary beside the crates.
const BESIDE: &str = "\
The Rust standard library (MIT OR Apache-2.0), by the authors of Rust.

The GNU C library (LGPL-2.1-or-later), which the binary contains. Whoever wants to use another
version of it builds Takeup anew: its source and what builds it (`make package`) are free for
everybody, under the licences above.
";
/// Its licence, and the notices of its parts.
const LGPL: [&str; 2] = ["/usr/share/common-licenses/LGPL-2.1", "/usr/share/doc/libc6/copyright"];
const LINE: &str = "\n----------------------------------------------------------------------\n";

/// One text with all of them.
///
/// # Errors
/// When a crate has neither a file with its licence nor one that is known by name.
pub fn all(root: &Path, parts: &[Part]) -> anyhow::Result<String> {
    let own = ["LICENSE-MIT", "LICENSE-APACHE"].map(|name| root.join(name));
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in parts.iter().filter(|part| !part.is_own) {
        let mut files = files(&part.folder, DEPTH)?;
        if files.is_empty() {
            // Some archives have none: the text of their licence is that of ours, but for its
            // authors.
            files = match part.licence.as_str() {
                licence if licence.contains("Apache-2.0") => vec![own[1].clone()],
                licence if licence.contains("MIT") => vec![own[0].clone()],
                other => bail!("{}: no file with its licence, {other}", part.key()),
            };
        }
        for file in files {
            let text = fs::read(&file).with_context(|| format!("read {}", file.display()))?;
            let mut text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
            if own.contains(&file) {
                text = of_others(&text, &part.name);
            }
            let of = texts.entry(text.trim().to_owned()).or_default();
            let name = format!("{} ({})", part.key(), part.licence);
            if !of.contains(&name) {
                of.push(name);
            }
        }
    }
    let mut whole = String::from(
        "Takeup may be used under the MIT or the Apache-2.0 licence, as you choose. It contains \
         the parts below,\nunder their own licences.\n",
    );
    for path in own {
        whole += LINE;
        whole += &format!("Takeup, {}\n\n", path.file_name().unwrap_or_default().display());
        whole += fs::read_to_string(&path).context("read our own licence")?.trim();
        whole += "\n";
    }
    whole += LINE;
    whole += BESIDE;
    for path in LGPL {
        // Debian, on which packages are made, has both.
        let text = fs::read_to_string(path).with_context(|| format!("read {path}"))?;
        whole += LINE;
        whole += &format!("{path}\n\n{}\n", text.trim());
    }
    let mut sorted: Vec<(&Vec<String>, &String)> = texts.iter().map(|(it, of)| (of, it)).collect();
    sorted.sort();
    for (of, text) in sorted {
        whole += LINE;
        whole += &format!("{}\n\n{text}\n", of.join("\n"));
    }
    Ok(whole)
}

/// Our licence with the authors of another crate.
fn of_others(text: &str, name: &str) -> String {
    let line = |line: &str| {
        let is_ours = line.starts_with("Copyright (c)");
        if is_ours { format!("Copyright (c) the authors of {name}") } else { line.to_owned() }
    };
    text.lines().map(line).collect::<Vec<String>>().join("\n")
}

/// Files with a licence in a folder, and in those below it.
fn files(folder: &Path, depth: usize) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut below = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let begins = BEGINNINGS.iter().any(|it| name.starts_with(it));
        let is_text = !name.ends_with(".rs") && !name.ends_with(".c") && !name.ends_with(".h");
        match entry.file_type()? {
            kind if kind.is_file() && begins && is_text => found.push(entry.path()),
            // A folder of licences, too.
            kind if kind.is_dir() && depth > 0 => below.push(entry.path()),
            _ => {}
        }
    }
    for folder in below {
        found.extend(files(&folder, depth - 1)?);
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, licence: &str, folder: PathBuf) -> Part {
        Part {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.to_owned(),
            folder,
            is_own: false,
            checksum: None,
            needs: Vec::new(),
        }
    }

    #[test]
    fn each_text_is_there_once_with_all_its_crates() {
        let folder = tempfile::tempdir().unwrap();
        for (name, file, text) in [
            ("a", "LICENSE", "the text\r\nof one"),
            ("b", "COPYING", "the text\nof one\n"),
            ("b", "library/LICENSE.txt", "of the library"),
            ("c", "src/license.rs", "no licence"),
        ] {
            let path = folder.path().join(name).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(folder.path().join("LICENSE-MIT"), "our MIT\nCopyright (c) us").unwrap();
        fs::write(folder.path().join("LICENSE-APACHE"), "our Apache").unwrap();
        let of = |name: &str, licence: &str| part(name, licence, folder.path().join(name));
        let parts = [of("a", "Zlib"), of("b", "Zlib"), of("c", "MIT")];
        let text = all(folder.path(), &parts).unwrap();
        assert_eq!(text.matches("the text\nof one").count(), 1);
        assert!(text.contains("a 1.0.0 (Zlib)\nb 1.0.0 (Zlib)\n\nthe text"), "{text}");
        assert!(text.contains("of the library") && !text.contains("no licence"), "{text}");
        let others = "c 1.0.0 (MIT)\n\nour MIT\nCopyright (c) the authors of c\n";
        assert!(text.contains(others), "{text}");
        let error = all(folder.path(), &[of("c", "Zlib")]).unwrap_err();
        assert!(error.to_string().contains("c 1.0.0: no file with its licence"), "{error}");
    }
}
