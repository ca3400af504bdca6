//! The guest's initramfs: busybox, the modules, and the script `init`, as an uncompressed cpio
//! archive. The program cpio makes it: the tests need it anyway.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use super::modules;
use super::packages::Packages;

/// Makes the archive in `folder` and returns its path.
///
/// # Errors
/// When a module is missing or a file cannot be written.
pub fn build(packages: &Packages, folder: &Path) -> anyhow::Result<PathBuf> {
    let tree = folder.join("initramfs");
    fs::create_dir_all(tree.join("bin")).context("create the initramfs")?;
    fs::create_dir_all(tree.join("modules")).context("create the initramfs")?;
    // The kernel opens it for `init` before devtmpfs exists; without it init has no output.
    fs::create_dir_all(tree.join("dev")).context("create the initramfs")?;
    copy(&packages.root.join("usr/bin/busybox"), &tree.join("bin/busybox"))?;
    for (number, path) in modules::in_order(&packages.modules, &modules::WANTED)?.iter().enumerate()
    {
        let stem = path.file_stem().context("a module without a name")?.to_string_lossy();
        copy(path, &tree.join(format!("modules/{number:02}-{stem}.ko")))?;
    }
    let init = tree.join("init");
    fs::write(&init, include_str!("guest/init")).context("write init")?;
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755)).context("write init")?;
    pack(&tree, &folder.join("initramfs.cpio"))
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::copy(from, to).map(drop).with_context(|| format!("copy {}", from.display()))
}

fn pack(tree: &Path, archive: &Path) -> anyhow::Result<PathBuf> {
    let mut names = Vec::new();
    list(tree, Path::new(""), &mut names)?;
    let mut child = Command::new("cpio")
        .args(["--quiet", "--create", "--null", "--format=newc", "--owner=0:0"])
        .current_dir(tree)
        .stdin(Stdio::piped())
        .stdout(File::create(archive).context("create the archive")?)
        .spawn()
        .context("start cpio")?;
    // Shorter than a pipe's buffer, so writing all of it before waiting cannot block.
    let mut input = child.stdin.take().context("no pipe to cpio")?;
    input.write_all(names.join("\0").as_bytes()).context("write to cpio")?;
    drop(input);
    if !child.wait().context("wait for cpio")?.success() {
        bail!("cpio failed");
    }
    Ok(archive.to_path_buf())
}

fn list(tree: &Path, below: &Path, names: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(tree.join(below)).context("list the initramfs")? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        names.push(path.to_string_lossy().into_owned());
        if entry.file_type()?.is_dir() {
            list(tree, &path, names)?;
        }
    }
    Ok(())
}
