//! The additional packages of the long lab: a Ceph cluster of one node, and ZFS, whose module is
//! built from Debian's source package.
//!
//! ZFS is in Debian's section contrib, which the host's package sources may lack. A separate list
//! of sources, made from the host's, requests it, so that nothing on the host changes. The module
//! is built against the headers of the guest's kernel, with that kernel's compiler, in the folder
//! of the unpacked packages. The cache keeps it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, bail};

use super::packages;

/// Ceph: a monitor, a storage daemon, and what `ceph` and `rbd` need. Python is the host's.
pub const PACKAGES: [&str; 23] = [
    "ceph-base",              // classes of objects, among them the one of rbd
    "ceph-common",            // ceph, rbd
    "ceph-mon",               // the monitor
    "ceph-osd",               // the storage daemon
    "librados2",              // for them
    "librbd1",                // for them
    "libradosstriper1",       // for them
    "libcephfs2",             // for them
    "libboost-context1.74.0", // for them
    "libgoogle-perftools4",   // for them
    "libtcmalloc-minimal4",   // for them
    "liblua5.3-0",            // for them
    "liboath0",               // for them
    "librabbitmq4",           // for them
    "libsnappy1v5",           // for them
    "libleveldb1d",           // for them
    "libfuse2",               // for ceph-osd
    "libbabeltrace1",         // for rbd
    "python3-rados",          // for ceph
    "python3-ceph-argparse",  // for ceph
    "python3-ceph-common",    // for ceph
    "python3-prettytable",    // for ceph
    "python3-wcwidth",        // for that
];

/// ZFS, in the section contrib.
const ZFS_PACKAGES: [&str; 6] = [
    "zfs-dkms",        // the module's source
    "zfsutils-linux",  // zpool, zfs
    "libnvpair3linux", // for them
    "libuutil3linux",  // for them
    "libzfs4linux",    // for them
    "libzpool5linux",  // for them
];

/// Longest time for building the module: a quarter of an hour on two idle processors.
const BUILD_LIMIT_SECONDS: &str = "5400";

/// Path of the module below the kernel's folder of modules, for `modprobe`.
const PLACE: &str = "kernel/zfs";

/// Fetches ZFS, builds its module for the kernel with this folder of modules, and copies both into
/// the unpacked packages.
///
/// # Errors
/// When packages cannot be downloaded or the module cannot be built, with the end of the output.
pub fn add_zfs(work: &Path, unpacked: &Path, modules: &Path) -> anyhow::Result<()> {
    let folder = work.join("zfs");
    fs::create_dir_all(&folder).context("create a folder for ZFS")?;
    fetch_from_contrib(&folder)?;
    packages::extract(&folder, &folder.join("root"))?;
    for name in ["lib", "sbin", "bin"] {
        let from = folder.join("root").join(name);
        if from.is_dir() {
            packages::merge(&from, &folder.join("root/usr").join(name))?;
        }
    }
    let kernel = modules.file_name().and_then(|name| name.to_str()).context("a kernel's name")?;
    let headers = fetch_headers(work, kernel)?;
    let source = packages::only_entry_with(&folder.join("root/usr/src"), "zfs-")?;
    build(work, &source, &headers)?;
    let place = modules.join(PLACE);
    fs::create_dir_all(&place).context("create a folder for the module")?;
    collect_modules(&source.join("module"), &place)?;
    fs::remove_dir_all(folder.join("root/usr/src")).context("remove the source of ZFS")?;
    packages::merge(&folder.join("root/usr"), &unpacked.join("usr"))
}

/// Downloads the packages of ZFS from sources like the host's, but of the section contrib.
fn fetch_from_contrib(folder: &Path) -> anyhow::Result<()> {
    let sources = folder.join("contrib.sources");
    fs::write(&sources, contrib_sources()?).context("write the list of sources")?;
    let lists = folder.join("lists");
    fs::create_dir_all(lists.join("partial")).context("create a folder for lists")?;
    let cache = folder.join("cache");
    fs::create_dir_all(cache.join("archives/partial")).context("create a folder for packages")?;
    let option = |name: &str, path: &Path| format!("-oDir::{name}={}", path.display());
    let options = [
        option("Etc::sourcelist", &sources),
        option("Etc::sourceparts", Path::new("-")),
        option("State::lists", &lists),
        option("Cache", &cache),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let with = |words: &[&'static str]| [words, options.as_slice()].concat();
    packages::apt(folder, &with(&["update"])).context("renew the lists of contrib")?;
    let mut words = vec!["download"];
    words.extend(ZFS_PACKAGES);
    packages::apt(folder, &with(&words)).context("fetch ZFS")
}

/// The host's sources of Debian's section main, as a list of the same for contrib
/// (sources.list(5), deb822).
fn contrib_sources() -> anyhow::Result<String> {
    let output = Command::new("apt-get")
        .args(["indextargets", "--format", "$(REPO_URI)\t$(CODENAME)"])
        .args(["Created-By: Packages", "Component: main", "Origin: Debian"])
        .stdin(Stdio::null())
        .output()
        .context("start apt-get")?;
    let sources = contrib_of(&String::from_utf8_lossy(&output.stdout));
    if sources.is_empty() {
        bail!("no source of Debian's packages: are there package lists? (apt-get update)");
    }
    Ok(sources)
}

/// A stanza for each address and code name. apt's trusted keys verify the signatures.
fn contrib_of(targets: &str) -> String {
    let mut stanzas = Vec::new();
    for (address, name) in targets.lines().filter_map(|line| line.split_once('\t')) {
        let stanza = format!("Types: deb\nURIs: {address}\nSuites: {name}\nComponents: contrib\n");
        if !stanzas.contains(&stanza) {
            stanzas.push(stanza);
        }
    }
    stanzas.join("\n")
}

/// The headers of a kernel: the common folder of all its flavours, and that of its own.
struct Headers {
    common: PathBuf,
    own: PathBuf,
}

/// Downloads and unpacks the headers. Their makefile includes another one by an absolute path, that
/// of an installed package.
fn fetch_headers(work: &Path, kernel: &str) -> anyhow::Result<Headers> {
    let folder = work.join("headers");
    fs::create_dir_all(&folder).context("create a folder for the headers")?;
    let own = format!("linux-headers-{kernel}");
    let (version, _) = kernel.rsplit_once('-').context("a kernel's version without a kind")?;
    let common = format!("linux-headers-{version}-common");
    let release = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    let tools = format!("linux-kbuild-{release}");
    packages::apt(&folder, &["download", &own, &common, &tools]).context("fetch the headers")?;
    let root = folder.join("root");
    packages::extract(&folder, &root)?;
    let sources = root.join("usr/src");
    let makefile = sources.join(&own).join("Makefile");
    let text = fs::read_to_string(&makefile).context("read the headers' makefile")?;
    let text = text.replace("/usr/src", &sources.display().to_string());
    fs::write(&makefile, text).context("write the headers' makefile")?;
    Ok(Headers { common: sources.join(common), own: sources.join(own) })
}

fn build(work: &Path, source: &Path, headers: &Headers) -> anyhow::Result<()> {
    eprintln!("lab: building the module of ZFS, which takes a quarter of an hour or more");
    let start = Instant::now();
    let log = work.join("zfs.log");
    let script = format!(
        "exec >{log} 2>&1; chmod +x configure && ./configure --with-config=kernel \
         --with-linux={common} --with-linux-obj={own} && make -j2",
        log = log.display(),
        common = headers.common.display(),
        own = headers.own.display(),
    );
    let status = Command::new("nice")
        .args(["-n", "19", "timeout", BUILD_LIMIT_SECONDS, "sh", "-c", &script])
        .current_dir(source)
        .stdin(Stdio::null())
        .status()
        .context("start nice")?;
    if !status.success() {
        let said = fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<_> = said.lines().collect();
        let end = lines[lines.len().saturating_sub(20)..].join("\n");
        bail!("the module of ZFS cannot be built ({status}):\n{end}");
    }
    eprintln!("lab: built in {} s", start.elapsed().as_secs());
    Ok(())
}

/// Copies every built module. No two of them have the same name.
fn collect_modules(from: &Path, into: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("list {}", from.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect_modules(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "ko") {
            let place = into.join(path.file_name().context("a module without a name")?);
            fs::copy(&path, &place).with_context(|| format!("copy {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrib_is_asked_of_the_sources_of_main() {
        let targets = "http://mirror/debian/\tbookworm\nhttp://mirror/debian/\tbookworm\n\
                       http://mirror/security/\tbookworm-security\n\nodd\n";
        let expected = "Types: deb\nURIs: http://mirror/debian/\nSuites: bookworm\n\
                        Components: contrib\n\n\
                        Types: deb\nURIs: http://mirror/security/\nSuites: bookworm-security\n\
                        Components: contrib\n";
        assert_eq!(contrib_of(targets), expected);
        assert_eq!(contrib_of(""), "");
    }
}
