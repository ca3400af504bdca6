//! The Debian packages of the guest: fetched and unpacked into the cache, never installed.
//!
//! Installing them would start daemons on the host and build an initramfs for a kernel that it
//! does not boot. What they need beyond themselves (libaio, librdmacm) comes with QEMU, which is
//! installed. The cache lies outside the checkout, `$XDG_CACHE_HOME/takeup/lab`; removing it is
//! how newer packages are had.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// The package whose dependency is the kernel itself.
const KERNEL: &str = "linux-image-amd64";

/// Everything else, in the order in which it is unpacked.
const PACKAGES: [&str; 9] = [
    "busybox-static",     // all of the initramfs
    "tgt",                // the virtual drive
    "open-iscsi",         // iscsistart
    "libopeniscsiusr",    // for it
    "libisns0",           // for it
    "mt-st",              // the tape operator's tool
    "sg3-utils",          // SCSI commands by hand
    "libsgutils2-1.46-2", // for it
    "dmsetup",            // cartridges with unreadable places
];

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
    /// Takes the packages from the cache, which is filled first when it is empty.
    ///
    /// # Errors
    /// When packages cannot be fetched or unpacked, naming what apt-get said.
    pub fn provide() -> anyhow::Result<Packages> {
        let cache = cache_folder()?;
        let root = cache.join(format!("root-{}", list_name()));
        if !root.exists() {
            fs::create_dir_all(&cache).with_context(|| format!("create {}", cache.display()))?;
            fill(&cache, &root)?;
        }
        Packages::find(root)
    }

    fn find(root: PathBuf) -> anyhow::Result<Packages> {
        let versions = root.join("usr/lib/modules");
        let modules = only_entry(&versions)?;
        let version = modules.file_name().context("modules without a name")?;
        let mut name = std::ffi::OsString::from("vmlinuz-");
        name.push(version);
        let kernel = root.join("boot").join(name);
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

/// A name that changes with the list of packages, so that a longer list fills the cache anew.
fn list_name() -> String {
    // FNV-1a; nothing here needs more than a name.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in PACKAGES.iter().chain(&[KERNEL]).flat_map(|name| name.bytes().chain([b'\n'])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// Fetches and unpacks in a folder of its own, which gets its name at the end: several may do so
/// at once, and the first one wins.
fn fill(cache: &Path, root: &Path) -> anyhow::Result<()> {
    let work = cache.join(format!("filling-{}", std::process::id()));
    fs::create_dir_all(&work).with_context(|| format!("create {}", work.display()))?;
    let result = fetch(&work).and_then(|()| unpack(&work)).and_then(|unpacked| {
        match fs::rename(&unpacked, root) {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty
                ) =>
            {
                Ok(())
            }
            other => other.with_context(|| format!("rename to {}", root.display())),
        }
    });
    let _ = fs::remove_dir_all(&work);
    result
}

fn fetch(work: &Path) -> anyhow::Result<()> {
    eprintln!("lab: fetching {} packages and a kernel", PACKAGES.len());
    let first = kernel_package().and_then(|kernel| download(work, &kernel));
    let Err(error) = first else { return Ok(()) };
    // Lists may be missing or older than what the mirror has; only root can renew them.
    if !rustix::process::geteuid().is_root() {
        return Err(error.context("fetch packages (sudo apt-get update renews the lists)"));
    }
    apt(work, &["update"]).context("renew the package lists")?;
    let kernel = kernel_package()?;
    download(work, &kernel)
}

/// The newest kernel package, which `linux-image-amd64` depends on.
fn kernel_package() -> anyhow::Result<String> {
    let output = Command::new("apt-cache")
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

fn download(work: &Path, kernel: &str) -> anyhow::Result<()> {
    let mut arguments = vec!["download", kernel];
    arguments.extend(PACKAGES);
    apt(work, &arguments)
}

fn apt(work: &Path, arguments: &[&str]) -> anyhow::Result<()> {
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
    bail!("apt-get {} failed: {}", arguments[0], said.trim());
}

fn unpack(work: &Path) -> anyhow::Result<PathBuf> {
    let unpacked = work.join("root");
    for entry in fs::read_dir(work).context("list the packages")? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "deb") {
            continue;
        }
        let status = Command::new("dpkg-deb").arg("-x").arg(&path).arg(&unpacked).status();
        if !status.context("start dpkg-deb")?.success() {
            bail!("dpkg-deb cannot unpack {}", path.display());
        }
    }
    // Debian's root has links to usr/ in these places, which folders of a layer above would hide.
    for name in ["bin", "sbin", "lib", "lib64"] {
        let folder = unpacked.join(name);
        if folder.is_dir() {
            merge(&folder, &unpacked.join("usr").join(name))?;
            fs::remove_dir_all(&folder)?;
        }
    }
    Ok(unpacked)
}

/// Moves what is in `from` into `into`, which may exist.
fn merge(from: &Path, into: &Path) -> anyhow::Result<()> {
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
    let mut entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let first = entries.next().with_context(|| format!("nothing in {}", folder.display()))??;
    if entries.next().is_some() {
        bail!("more than one kernel in {}", folder.display());
    }
    Ok(first.path())
}
