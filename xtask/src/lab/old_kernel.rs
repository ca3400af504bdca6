//! Older kernels than this machine's: of another release of Debian, by lists of its own, which
//! leave those of the machine alone; or packages of Ubuntu, by their checksums.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use super::packages::{apt, kernel_package};

/// A kernel that is not this machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OldKernel {
    /// Of Debian 11
    #[value(name = "5.10")]
    Debian11,
    /// Of Ubuntu 18.04 with its later kernel; RHEL 8 has this version
    #[value(name = "4.18")]
    Ubuntu1804,
}

/// The release of Debian that has 5.10.
const DEBIAN: &str = "bullseye";

/// With what Debian signs its lists.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Where Ubuntu's packages of its kernels are.
const UBUNTU: &str = "http://archive.ubuntu.com/ubuntu/pool/main/l/linux-hwe";

/// The packages of 4.18, by the SHA-256 of each.
const UBUNTU_PACKAGES: [(&str, &str); 3] = [
    (
        "linux-image-unsigned-4.18.0-25-generic_4.18.0-25.26~18.04.1_amd64.deb",
        "48255bba33b59127b69a9b8fdca27a25187bffd151ed0762bf7205b23474a08a",
    ),
    (
        "linux-modules-4.18.0-25-generic_4.18.0-25.26~18.04.1_amd64.deb",
        "d21662c73ba590cce15b4360a282120d7f12b0c2febb72dd655ffe2ee92d7eee",
    ),
    // st is among these.
    (
        "linux-modules-extra-4.18.0-25-generic_4.18.0-25.26~18.04.1_amd64.deb",
        "ccc40e395875a40d1c910404e8d38a8286a76e6e86517c8510b08c76103b9b1f",
    ),
];

/// Longest time for one package of Ubuntu, in seconds.
const FETCH_LIMIT_SECONDS: &str = "300";

impl OldKernel {
    /// What stands in the name of a cache.
    pub fn name(self) -> &'static str {
        match self {
            OldKernel::Debian11 => DEBIAN,
            OldKernel::Ubuntu1804 => "4.18.0-25",
        }
    }

    /// Whether QEMU boots it uncompressed, by an entry that kernels have from 5.0 on.
    pub fn boots_uncompressed(self) -> bool {
        self == OldKernel::Debian11
    }

    /// Puts its packages into `work`.
    ///
    /// # Errors
    /// When they cannot be had, or are not the expected ones.
    pub fn fetch(self, work: &Path) -> anyhow::Result<()> {
        match self {
            OldKernel::Debian11 => from_debian(work),
            OldKernel::Ubuntu1804 => from_ubuntu(work),
        }
    }
}

fn from_debian(work: &Path) -> anyhow::Result<()> {
    let own = work.join("release");
    let lists = own.join("lists");
    fs::create_dir_all(lists.join("partial")).context("make a folder for package lists")?;
    let source = own.join("sources.list");
    let has_keys = Path::new(KEYRING).exists();
    let signed = if has_keys { format!("[signed-by={KEYRING}] ") } else { String::new() };
    let line = format!("deb {signed}{} {DEBIAN} main\n", mirror()?);
    fs::write(&source, line).context("write the list of sources")?;
    let options = [
        format!("Dir::Etc::SourceList={}", source.display()),
        "Dir::Etc::SourceParts=/dev/null".to_owned(),
        // A later kernel that is installed here would be preferred.
        "Dir::State::status=/dev/null".to_owned(),
        format!("Dir::State::Lists={}", lists.display()),
        "Dir::Cache::pkgcache=".to_owned(),
        "Dir::Cache::srcpkgcache=".to_owned(),
        // apt's own user may not enter a home folder.
        "APT::Sandbox::User=root".to_owned(),
    ];
    let options: Vec<&str> = options.iter().flat_map(|option| ["-o", option]).collect();
    let with = |words: &[&str]| apt(work, &[&options, words].concat());
    with(&["update"]).with_context(|| format!("get the lists of {DEBIAN}"))?;
    let kernel = kernel_package(&options)?;
    eprintln!("lab: fetching {kernel}");
    with(&["download", &kernel])
}

/// Where this machine has its packages of Debian from.
fn mirror() -> anyhow::Result<String> {
    let mut apt = Command::new("apt-get");
    apt.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
    let output = apt.stdin(Stdio::null()).output().context("start apt-get")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let debian = said.lines().find(|line| line.trim_end_matches('/').ends_with("/debian"));
    debian.map(str::to_owned).context("this machine has no packages of Debian itself")
}

fn from_ubuntu(work: &Path) -> anyhow::Result<()> {
    for (name, sum) in UBUNTU_PACKAGES {
        eprintln!("lab: fetching {name}");
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", "--retry", "3", "--remote-name"]);
        curl.args(["--max-time", FETCH_LIMIT_SECONDS]).arg(format!("{UBUNTU}/{name}"));
        let status = curl.current_dir(work).stdin(Stdio::null()).status().context("start curl")?;
        if !status.success() {
            bail!("cannot fetch {name}");
        }
        let mut check = Command::new("sha256sum");
        check.args(["--check", "--quiet"]).current_dir(work);
        let mut child = check.stdin(Stdio::piped()).spawn().context("start sha256sum")?;
        let mut input = child.stdin.take().context("no pipe to sha256sum")?;
        writeln!(input, "{sum}  {name}").context("write to sha256sum")?;
        drop(input);
        if !child.wait().context("wait for sha256sum")?.success() {
            bail!("{name} is not the expected file");
        }
    }
    Ok(())
}
