//! The Debian packages of the guest: fetched and unpacked into the cache, never installed.
//!
//! An installation would start daemons on the host and build an initramfs for a kernel that it does
//! not boot. Further dependencies (libaio, librdmacm) come with QEMU, which is installed. The long
//! lab has more packages (`long.rs`), in a separate folder. The cache is outside the checkout, in
//! `$XDG_CACHE_HOME/takeup/lab`; remove it to get newer packages.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use super::old_kernel::OldKernel;
use super::{long, modules};

/// Which packages the guest has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// What every lab needs.
    Usual,
    /// Ceph and ZFS, too.
    Long,
}

impl Selection {
    fn names(self) -> Vec<&'static str> {
        let more: &[&str] = match self {
            Selection::Usual => &[],
            Selection::Long => &long::PACKAGES,
        };
        PACKAGES.iter().chain(more).copied().collect()
    }
}

/// The package whose dependency is the kernel itself.
const KERNEL: &str = "linux-image-amd64";

/// Everything else, in the order in which it is unpacked.
const PACKAGES: [&str; 22] = [
    "busybox-static",           // all of the initramfs
    "tgt",                      // the virtual drive
    "open-iscsi",               // iscsistart
    "libopeniscsiusr",          // for it
    "libisns0",                 // for it
    "mt-st",                    // the tape operator's tool
    "mtx",                      // that of an autoloader
    "sg3-utils",                // SCSI commands by hand
    "libsgutils2-1.46-2",       // for it
    "dmsetup",                  // cartridges with unreadable places, stacks of block devices
    "lvm2",                     // logical volumes
    "libdevmapper-event1.02.1", // for it
    "libedit2",                 // for it
    "libbsd0",                  // for that
    "libmd0",                   // for that
    "mdadm",                    // arrays
    "nfs-kernel-server",        // exportfs, rpc.mountd, rpc.nfsd
    "nfs-common",               // mount.nfs
    "libnfsidmap1",             // for them
    "libevent-core-2.1-7",      // for them
    "libtirpc3",                // for them
    "libwrap0",                 // for them
];

/// Path of the uncompressed kernel.
const KERNEL_IMAGE: &str = "boot/vmlinux";

/// Raised when the same packages are unpacked differently.
const LAYOUT: &str = "3";

/// Longest time for one call of apt-get: the kernel has 70 MB.
const FETCH_LIMIT_SECONDS: &str = "600";

/// Packages unpacked in the cache.
pub struct Packages {
    /// Folder laid over the host's root in the guest.
    pub root: PathBuf,
    /// The kernel's image.
    pub kernel: PathBuf,
    /// Folder of the kernel's modules, named after its version.
    pub modules: PathBuf,
}

impl Packages {
    /// Gets the packages from the cache; fills an empty cache first. An older kernel replaces this
    /// machine's where one is named.
    ///
    /// # Errors
    /// When packages cannot be fetched or unpacked, with the output of apt-get.
    pub fn provide(selection: Selection, kernel: Option<OldKernel>) -> anyhow::Result<Packages> {
        let cache = cache_folder()?;
        let root = cache.join(format!("root-{}", list_name(selection, kernel)));
        if !root.exists() {
            fs::create_dir_all(&cache).with_context(|| format!("create {}", cache.display()))?;
            fill(selection, kernel, &cache, &root)?;
        }
        Packages::find(root)
    }

    fn find(root: PathBuf) -> anyhow::Result<Packages> {
        let versions = root.join("usr/lib/modules");
        let modules = only_entry(&versions)?;
        let kernel = root.join(KERNEL_IMAGE);
        if !kernel.exists() {
            bail!("no kernel at {}; remove {} to fetch it anew", kernel.display(), root.display());
        }
        Ok(Packages { root, kernel, modules })
    }
}

fn cache_folder() -> anyhow::Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(base.join("takeup/lab"))
}

/// A name that changes with the list of packages, so that a longer list refills the cache.
fn list_name(selection: Selection, kernel: Option<OldKernel>) -> String {
    // FNV-1a: enough for a name.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let names = selection.names();
    let more = [KERNEL, LAYOUT].into_iter().chain(kernel.map(OldKernel::name));
    for byte in names.into_iter().chain(more).flat_map(|name| name.bytes().chain([b'\n'])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// Fetches and unpacks in a temporary folder, which gets its name at the end: several processes may
/// do so at once, and the first one wins.
fn fill(
    selection: Selection,
    kernel: Option<OldKernel>,
    cache: &Path,
    root: &Path,
) -> anyhow::Result<()> {
    let work = cache.join(format!("filling-{}", std::process::id()));
    fs::create_dir_all(&work).with_context(|| format!("create {}", work.display()))?;
    let unpacked = fetch(selection, kernel, &work).and_then(|()| unpack(selection, kernel, &work));
    let result = unpacked.and_then(|unpacked| match fs::rename(&unpacked, root) {
        Err(error)
            if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty) =>
        {
            Ok(())
        }
        other => other.with_context(|| format!("rename to {}", root.display())),
    });
    let _ = fs::remove_dir_all(&work);
    result
}

fn fetch(selection: Selection, kernel: Option<OldKernel>, work: &Path) -> anyhow::Result<()> {
    let names = selection.names();
    eprintln!("lab: fetching {} packages and a kernel", names.len());
    let download = || -> anyhow::Result<()> {
        let own = kernel.is_none().then(|| kernel_package(&[])).transpose()?;
        let all = names.iter().copied().chain(own.as_deref());
        apt(work, &["download"].into_iter().chain(all).collect::<Vec<&str>>())
    };
    if let Err(error) = download() {
        // Package lists may be missing or outdated; only root can update them.
        if !rustix::process::geteuid().is_root() {
            return Err(error.context("fetch packages (sudo apt-get update renews the lists)"));
        }
        apt(work, &["update"]).context("renew the package lists")?;
        download()?;
    }
    kernel.map_or(Ok(()), |kernel| kernel.fetch(work))
}

/// The newest kernel package, which `linux-image-amd64` depends on.
pub fn kernel_package(options: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("apt-cache")
        .args(options)
        .args(["depends", KERNEL])
        .stdin(Stdio::null())
        .output()
        .context("start apt-cache (the lab needs Debian or a relative)")?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.trim().strip_prefix("Depends: "))
        .map(str::to_owned)
        .with_context(|| format!("no package {KERNEL}: are there package lists?"))
}

/// Runs apt-get with lists and cache in `work`.
///
/// # Errors
/// When it cannot be started or fails.
pub fn apt(work: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("timeout")
        .args([FETCH_LIMIT_SECONDS, "apt-get", "-q", "-o", "Acquire::Retries=3"])
        .args(arguments)
        .current_dir(work)
        .stdin(Stdio::null())
        .output()
        .context("start apt-get")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!("apt-get {} failed: {}", arguments.join(" "), said.trim());
}

fn unpack(selection: Selection, kernel: Option<OldKernel>, work: &Path) -> anyhow::Result<PathBuf> {
    let unpacked = work.join("root");
    extract(work, &unpacked)?;
    // Debian's root has links to usr/ in these places; folders of an upper layer would hide them.
    for name in ["bin", "sbin", "lib", "lib64"] {
        let folder = unpacked.join(name);
        if folder.is_dir() {
            merge(&folder, &unpacked.join("usr").join(name))?;
            fs::remove_dir_all(&folder)?;
        }
    }
    decompress_kernel(&unpacked, kernel)?;
    let folder = only_entry(&unpacked.join("usr/lib/modules"))?;
    if selection == Selection::Long {
        long::add_zfs(work, &unpacked, &folder)?;
    }
    fs::write(folder.join("modules.dep"), modules::list(&folder)?)
        .context("write the list of modules")?;
    Ok(unpacked)
}

/// Unpacks all packages of a folder.
pub fn extract(packages: &Path, into: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(packages).context("list the packages")? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "deb") {
            continue;
        }
        let status = Command::new("dpkg-deb").arg("-x").arg(&path).arg(into).status();
        if !status.context("start dpkg-deb")?.success() {
            bail!("dpkg-deb cannot unpack {}", path.display());
        }
    }
    Ok(())
}

/// An emulated processor takes seconds to decompress the kernel at every start. QEMU also boots an
/// uncompressed kernel, by its PVH entry, which those before 5.0 lack: they stay as they are.
fn decompress_kernel(unpacked: &Path, kernel: Option<OldKernel>) -> anyhow::Result<()> {
    let compressed = only_entry_with(&unpacked.join("boot"), "vmlinuz-")?;
    let image = fs::read(&compressed).with_context(|| format!("read {}", compressed.display()))?;
    if kernel.is_some_and(|kernel| !kernel.boots_uncompressed()) {
        return fs::write(unpacked.join(KERNEL_IMAGE), &image).context("write the kernel");
    }
    let payload = payload(&image)
        .with_context(|| format!("{} has no payload compressed by xz", compressed.display()))?;
    let packed = unpacked.join("boot/payload.xz");
    fs::write(&packed, payload).context("write the kernel's payload")?;
    let kernel = unpacked.join(KERNEL_IMAGE);
    // The payload ends with four extra bytes after the stream.
    let status = Command::new("xz")
        .args(["--decompress", "--single-stream", "--stdout"])
        .arg(&packed)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&kernel).context("create the kernel")?)
        .status()
        .context("start xz")?;
    if !status.success() {
        bail!("xz cannot decompress {}", packed.display());
    }
    fs::remove_file(&packed).context("remove the payload")
}

/// The compressed kernel in a boot image (Documentation/x86/boot.rst, `setup_sects`,
/// `payload_offset`, `payload_length`), if it is an xz stream.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let sectors = match image.get(0x1f1)? {
        0 => 4,
        sectors => usize::from(*sectors),
    };
    let start = ((sectors + 1) * 512).checked_add(word(0x248)?)?;
    let payload = image.get(start..start.checked_add(word(0x24c)?)?)?;
    payload.starts_with(b"\xfd7zXZ\0").then_some(payload)
}

/// Moves what is in `from` into `into`, which may exist.
pub fn merge(from: &Path, into: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(into).with_context(|| format!("create {}", into.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("list {}", from.display()))? {
        let entry = entry?;
        let place = into.join(entry.file_name());
        if entry.file_type()?.is_dir() && place.is_dir() {
            merge(&entry.path(), &place)?;
        } else if place.symlink_metadata().is_err() {
            let from = entry.path();
            fs::rename(&from, &place).with_context(|| format!("move {}", from.display()))?;
        }
    }
    Ok(())
}

fn only_entry(folder: &Path) -> anyhow::Result<PathBuf> {
    only_entry_with(folder, "")
}

/// The only entry whose name starts with this.
pub fn only_entry_with(folder: &Path, beginning: &str) -> anyhow::Result<PathBuf> {
    let mut found = None;
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(beginning)
            && found.replace(entry.path()).is_some()
        {
            bail!("more than one {beginning}* in {}", folder.display());
        }
    }
    found.with_context(|| format!("no {beginning}* in {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_found_by_the_boot_header() {
        let mut image = vec![0; 4096];
        image[0x1f1] = 1;
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&8_u32.to_le_bytes());
        image[1040..1048].copy_from_slice(b"\xfd7zXZ\0..");
        assert_eq!(payload(&image), Some(&b"\xfd7zXZ\0.."[..]));
        image[1040] = 0;
        assert_eq!(payload(&image), None);
        assert_eq!(payload(&image[..1000]), None);
    }
}
