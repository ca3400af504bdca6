//! The copy of the tree that is mutated, so that the checkout stays as it is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

/// Exists beside the copy while the copy has a mutant.
pub const UNFINISHED: &str = "unfinished";

/// A copy of the tree with its own target directory.
pub struct Copy {
    /// The copy.
    pub tree: PathBuf,
    /// Its build folder.
    pub build: PathBuf,
    /// Whether the copy has changed, so that earlier measurements are outdated.
    pub is_new: bool,
}

impl Copy {
    /// Updates the copy in `folder` to the state of the checkout. Equal files are not written, so
    /// that cargo builds only what has changed.
    ///
    /// # Errors
    /// When git cannot list the files, or one cannot be copied.
    pub fn make(root: &Path, folder: &Path) -> anyhow::Result<Copy> {
        let (tree, build) = (folder.join("tree"), folder.join("build"));
        // A compiler that was ended in the middle can leave a cache that contains the mutant,
        // whatever the source is now.
        if folder.join(UNFINISHED).exists() {
            let cache = build.join("debug/incremental");
            match std::fs::remove_dir_all(&cache) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("remove {}", cache.display()));
                }
                _ => {}
            }
            std::fs::remove_file(folder.join(UNFINISHED)).context("remove a mark")?;
        }
        let files = files(root)?;
        let mut is_new = false;
        for file in &files {
            is_new |= bring(&root.join(file), &tree.join(file))?;
        }
        for file in below(&tree)? {
            let name = file.strip_prefix(&tree).unwrap_or(&file);
            if !files.contains(name) {
                std::fs::remove_file(&file)
                    .with_context(|| format!("remove {}", file.display()))?;
                is_new = true;
            }
        }
        Ok(Copy { tree, build, is_new })
    }
}

/// The files that git tracks or would add, below the root.
fn files(root: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("start git")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = String::from_utf8(output.stdout).context("a file whose name is not UTF-8")?;
    let names = names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    Ok(names.filter(|name| root.join(name).is_file()).collect())
}

/// All files below a folder; none if it does not exist.
fn below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

/// Copies a file if it differs; returns whether it did.
fn bring(from: &Path, to: &Path) -> anyhow::Result<bool> {
    let content = std::fs::read(from).with_context(|| format!("read {}", from.display()))?;
    if std::fs::read(to).is_ok_and(|old| old == content) {
        return Ok(false);
    }
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    // Permissions are copied; the time is now, so that cargo sees the change.
    std::fs::copy(from, to).with_context(|| format!("copy {}", from.display()))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(folder: &Path, arguments: &[&str]) {
        let status = Command::new("git").args(arguments).current_dir(folder).status().unwrap();
        assert!(status.success());
    }

    #[test]
    fn a_copy_follows_the_checkout_and_writes_only_what_differs() {
        let folder = tempfile::tempdir().unwrap();
        let (root, copies) = (folder.path().join("root"), folder.path().join("copies"));
        std::fs::create_dir_all(root.join("src")).unwrap();
        git(&root, &["init", "--quiet"]);
        std::fs::write(root.join(".gitignore"), "/target\n").unwrap();
        std::fs::write(root.join("src/a.rs"), "a").unwrap();
        std::fs::write(root.join("src/b.rs"), "b").unwrap();
        std::fs::create_dir(root.join("target")).unwrap();
        std::fs::write(root.join("target/big"), "big").unwrap();

        let copy = Copy::make(&root, &copies).unwrap();
        assert!(copy.is_new);
        assert!(!copy.tree.join("target").exists());
        let written = std::fs::metadata(copy.tree.join("src/a.rs")).unwrap().modified().unwrap();
        assert!(!Copy::make(&root, &copies).unwrap().is_new);

        // Results of a compilation that was stopped are not trusted.
        let cache = copies.join("build/debug/incremental/a");
        std::fs::create_dir_all(&cache).unwrap();
        Copy::make(&root, &copies).unwrap();
        assert!(cache.exists());
        std::fs::write(copies.join(UNFINISHED), "").unwrap();
        Copy::make(&root, &copies).unwrap();
        assert!(!cache.exists() && !copies.join(UNFINISHED).exists());

        // A mutant left by a stopped campaign, and a file that no longer exists.
        std::fs::write(copy.tree.join("src/b.rs"), "mutant").unwrap();
        std::fs::write(copy.tree.join("src/old.rs"), "old").unwrap();
        let copy = Copy::make(&root, &copies).unwrap();
        assert!(copy.is_new);
        assert_eq!(std::fs::read(copy.tree.join("src/b.rs")).unwrap(), b"b");
        assert!(!copy.tree.join("src/old.rs").exists());
        let now = std::fs::metadata(copy.tree.join("src/a.rs")).unwrap().modified().unwrap();
        assert_eq!(now, written);
    }
}
