//! The kernel modules of the guest and their dependencies: those of every start in the order of
//! loading, and a list of all for `modprobe`, with which a test loads the others.
//!
//! Debian's packages have no `modules.dep`, which an installation makes. Every module has the names
//! of its dependencies in its section `.modinfo`, as `depends=a,b` between zero bytes. This module
//! searches the bytes of the file for them, without an ELF reader. It cannot read compressed
//! modules (Debian 13).

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// The modules that the guest needs, without their dependencies.
pub const WANTED: [&str; 18] = [
    "virtio_pci",
    "virtio_console",
    "9pnet_virtio",
    "9p",
    "overlay",
    "crc32c_generic",
    "libcrc32c",
    "iscsi_tcp",
    "st",
    "sg",
    "fuse",
    "loop",
    "dm_mod",
    "dm_multipath",
    "dm_round_robin",
    "raid1",
    "virtio_rng",
    "mq_deadline",
];

/// Finds the wanted modules and all that they depend on below `folder`, dependencies first.
///
/// # Errors
/// When a module is missing or depends on itself.
pub fn in_order(folder: &Path, wanted: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    let mut order = Order::of(folder)?;
    for name in wanted {
        order.place(name)?;
    }
    Ok(order.placed.into_iter().map(|(_, path)| path).collect())
}

/// The text of `modules.dep` for all modules below `folder`: a line for each, with its path and
/// those of all its dependencies, of which the last is loaded first (modules.dep(5)).
///
/// # Errors
/// When a module is missing or depends on itself.
pub fn list(folder: &Path) -> anyhow::Result<String> {
    let mut order = Order::of(folder)?;
    let mut names: Vec<String> = order.files.keys().cloned().collect();
    names.sort_unstable();
    let mut own = HashMap::new();
    for name in &names {
        order.place(name)?;
    }
    for (name, path) in &order.placed {
        own.insert(name.clone(), depends(&read(path)?));
    }
    let mut text = String::new();
    for (place, (name, path)) in order.placed.iter().enumerate() {
        let mut needed = BTreeSet::new();
        needs(name, &own, &mut needed);
        // All of its dependencies come before it in the order of loading.
        let before = order.placed[..place].iter().rev().filter(|(name, _)| needed.contains(name));
        let relative = |path: &Path| -> anyhow::Result<String> {
            Ok(path.strip_prefix(folder)?.to_string_lossy().into_owned())
        };
        text.push_str(&relative(path)?);
        text.push(':');
        for (_, path) in before {
            text.push(' ');
            text.push_str(&relative(path)?);
        }
        text.push('\n');
    }
    Ok(text)
}

fn needs(name: &str, own: &HashMap<String, Vec<String>>, needed: &mut BTreeSet<String>) {
    for dependency in own.get(name).into_iter().flatten() {
        if needed.insert(dependency.clone()) {
            needs(dependency, own, needed);
        }
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("read {}", path.display()))
}

struct Order {
    files: HashMap<String, PathBuf>,
    /// Parts of the kernel itself, which other kernels have as modules.
    built_in: BTreeSet<String>,
    placed: Vec<(String, PathBuf)>,
    under_way: Vec<String>,
}

impl Order {
    fn of(folder: &Path) -> anyhow::Result<Order> {
        let mut files = HashMap::new();
        collect(&folder.join("kernel"), &mut files)?;
        let built_in = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        let built_in = built_in.lines().filter_map(|line| named(Path::new(line))).collect();
        Ok(Order { files, built_in, placed: Vec::new(), under_way: Vec::new() })
    }

    fn place(&mut self, name: &str) -> anyhow::Result<()> {
        if self.built_in.contains(name) || self.placed.iter().any(|(placed, _)| placed == name) {
            return Ok(());
        }
        if self.under_way.iter().any(|other| other == name) {
            bail!("module {name} depends on itself");
        }
        let path = self.files.get(name).with_context(|| format!("no module {name}"))?.clone();
        self.under_way.push(name.to_owned());
        for dependency in depends(&read(&path)?) {
            self.place(&dependency)?;
        }
        self.under_way.pop();
        self.placed.push((name.to_owned(), path));
        Ok(())
    }
}

/// All modules by name; a name has `_` where a file may have `-`.
fn collect(folder: &Path, files: &mut HashMap<String, PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "ko") {
            files.insert(named(&path).context("a module's name is no text")?, path);
        }
    }
    Ok(())
}

/// The name of a module, by its file.
fn named(path: &Path) -> Option<String> {
    Some(path.file_stem()?.to_str()?.replace('-', "_"))
}

fn depends(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(start) = module.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let value = &module[start + KEY.len()..];
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    let text = String::from_utf8_lossy(&value[..end]);
    text.split(',').filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(folder: &Path, name: &str, dependencies: &str) {
        let bytes = format!("\x7fELF..license=GPL\0depends={dependencies}\0name={name}\0...");
        fs::write(folder.join(format!("{name}.ko")), bytes).unwrap();
    }

    fn tree(modules: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("kernel/drivers");
        fs::create_dir_all(&kernel).unwrap();
        for (name, dependencies) in modules {
            module(&kernel, name, dependencies);
        }
        folder
    }

    fn names(paths: &[PathBuf]) -> Vec<&str> {
        paths.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect()
    }

    #[test]
    fn dependencies_come_first_and_once() {
        let folder = tree(&[
            ("st", "scsi-mod,common"),
            ("sg", "scsi_mod"),
            ("scsi-mod", "common"),
            ("common", ""),
        ]);
        let order = in_order(folder.path(), &["st", "sg"]).unwrap();
        assert_eq!(names(&order), ["common", "scsi-mod", "st", "sg"]);
    }

    #[test]
    fn what_the_kernel_has_built_in_needs_no_file() {
        let folder = tree(&[("st", "scsi-mod")]);
        assert!(in_order(folder.path(), &["st"]).is_err());
        let built_in = "kernel/drivers/scsi/scsi-mod.ko\n";
        fs::write(folder.path().join("modules.builtin"), built_in).unwrap();
        assert_eq!(names(&in_order(folder.path(), &["st", "scsi_mod"]).unwrap()), ["st"]);
    }

    #[test]
    fn a_module_is_listed_with_all_that_it_needs() {
        let folder = tree(&[
            ("st", "scsi-mod,common"),
            ("sg", "scsi_mod"),
            ("scsi-mod", "common"),
            ("common", ""),
            ("other", ""),
        ]);
        let text = list(folder.path()).unwrap();
        let mut lines: Vec<String> =
            text.lines().map(|line| line.replace("kernel/drivers/", "")).collect();
        lines.sort_unstable();
        let expected = [
            "common.ko:",
            "other.ko:",
            "scsi-mod.ko: common.ko",
            "sg.ko: scsi-mod.ko common.ko",
            "st.ko: scsi-mod.ko common.ko",
        ];
        assert_eq!(lines, expected);
        assert!(list(tree(&[("a", "nowhere")]).path()).is_err());
    }

    #[test]
    fn a_missing_module_and_a_circle_are_errors() {
        let folder = tree(&[("a", "b"), ("b", "a"), ("c", "nowhere")]);
        let error = |name: &str| in_order(folder.path(), &[name]).unwrap_err().to_string();
        assert_eq!(error("a"), "module a depends on itself");
        assert_eq!(error("c"), "no module nowhere");
    }
}
