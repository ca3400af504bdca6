//! All needs: their names, how to get them, and how to check them.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::fs::{StatVfsMountFlags, XattrFlags};

use super::control_group::ControlGroup;

/// A need of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// To be root.
    Root,
    /// The right to mount file systems; `tmpfs` stands for all of them.
    Mounts,
    /// The file system in user space.
    Fuse,
    /// Loop devices, with the right to attach them.
    LoopDevices,
    /// Loop devices on which requests can be merged.
    MqDeadline,
    /// The right to change settings below `/sys` and `/proc/sys`.
    KernelSettings,
    /// FUSE requests of more than 1 MiB.
    LargeFuseRequests,
    /// io_uring, if it can be set up.
    IoUring,
    /// Extended attributes (`user.*`) in the folder for temporary files.
    Attributes,
    /// POSIX access control lists in the folder for temporary files.
    AccessRules,
    /// The ext4 file system and `mkfs.ext4`.
    Ext4,
    /// The XFS file system and `mkfs.xfs`.
    Xfs,
    /// The Btrfs file system and `mkfs.btrfs`.
    Btrfs,
    /// The browser.
    Chromium,
    /// The benchmark program.
    Fio,
    /// Python 3.
    Python3,
    GnuTar,
    /// libarchive's tar.
    Bsdtar,
    /// A terminal for programs.
    Tmux,
    /// The tracer of system calls, with the right to trace.
    Strace,
    /// `mt` of mt-st.
    MtSt,
    /// The buffer for tapes.
    Mbuffer,
    /// The client of addresses.
    Curl,
    /// The starter of MPI's ranks.
    Mpirun,
    /// A pipe that can hold a rate.
    Pv,
    /// Bacula's tester of drives.
    Btape,
    /// The reader of disk counters.
    Iostat,
    /// The kernel's tracepoints, with the right to use them.
    Tracefs,
    /// PostgreSQL, server and clients, where Debian has them.
    Postgresql,
    /// MariaDB, server and clients.
    Mariadb,
    /// The right to make control groups with limited processor time.
    ProcessorQuota,
    /// The right to make control groups with limited memory.
    MemoryLimit,
}

impl Need {
    /// All needs.
    pub const ALL: [Need; 32] = [
        Need::Root,
        Need::Mounts,
        Need::Fuse,
        Need::LoopDevices,
        Need::MqDeadline,
        Need::KernelSettings,
        Need::LargeFuseRequests,
        Need::IoUring,
        Need::Attributes,
        Need::AccessRules,
        Need::Ext4,
        Need::Xfs,
        Need::Btrfs,
        Need::Chromium,
        Need::Fio,
        Need::Python3,
        Need::GnuTar,
        Need::Bsdtar,
        Need::Tmux,
        Need::Strace,
        Need::MtSt,
        Need::Mbuffer,
        Need::Curl,
        Need::Mpirun,
        Need::Pv,
        Need::Btape,
        Need::Iostat,
        Need::Tracefs,
        Need::Postgresql,
        Need::Mariadb,
        Need::ProcessorQuota,
        Need::MemoryLimit,
    ];

    /// Its name in `TAKEUP_TESTS_WITHOUT`, and how to get it.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Need::Root => ("root", "run the tests as root"),
            Need::Mounts => ("mounts", "run the tests as root with CAP_SYS_ADMIN"),
            Need::Fuse => {
                ("fuse", "modprobe fuse; root with CAP_SYS_ADMIN, or fusermount3 (package fuse3)")
            }
            Need::LoopDevices => ("loop-devices", "modprobe loop; run the tests as root"),
            Need::MqDeadline => ("mq-deadline", "modprobe mq-deadline; loop devices, root"),
            Need::KernelSettings => {
                ("kernel-settings", "run the tests as root, with /sys mounted for writing")
            }
            Need::LargeFuseRequests => {
                ("large-fuse-requests", "Linux 6.13 or newer; run the tests as root")
            }
            Need::IoUring => {
                ("io-uring", "sysctl kernel.io_uring_disabled=0, and no seccomp filter against it")
            }
            Need::Attributes => ("attributes", "TMPDIR on a file system with extended attributes"),
            Need::AccessRules => ("access-rules", "TMPDIR on a file system with POSIX ACLs"),
            Need::Ext4 => ("ext4", "package e2fsprogs; modprobe ext4; loop devices, root"),
            Need::Xfs => ("xfs", "package xfsprogs; modprobe xfs; loop devices, root"),
            Need::Btrfs => ("btrfs", "package btrfs-progs; modprobe btrfs; loop devices, root"),
            Need::Chromium => ("chromium", "package chromium"),
            Need::Fio => ("fio", "package fio"),
            Need::Python3 => ("python3", "package python3"),
            Need::GnuTar => ("gnu-tar", "package tar"),
            Need::Bsdtar => ("bsdtar", "package libarchive-tools"),
            Need::Tmux => ("tmux", "package tmux"),
            Need::Strace => ("strace", "package strace; the right to trace (CAP_SYS_PTRACE)"),
            Need::MtSt => ("mt-st", "package mt-st"),
            Need::Mbuffer => ("mbuffer", "package mbuffer"),
            Need::Curl => ("curl", "package curl"),
            Need::Mpirun => ("mpirun", "package openmpi-bin"),
            Need::Pv => ("pv", "package pv"),
            Need::Btape => ("btape", "package bacula-sd; /usr/sbin in PATH"),
            Need::Iostat => ("iostat", "package sysstat"),
            Need::Tracefs => (
                "tracefs",
                "a kernel with CONFIG_FTRACE_SYSCALLS; run the tests as root, in no container",
            ),
            Need::Postgresql => ("postgresql", "package postgresql"),
            Need::Mariadb => {
                ("mariadb", "packages mariadb-server-core, mariadb-client; /usr/sbin in PATH")
            }
            Need::ProcessorQuota => (
                "processor-quota",
                "run the tests as root; /sys/fs/cgroup with the cpu controller, for writing",
            ),
            Need::MemoryLimit => (
                "memory-limit",
                "run the tests as root; /sys/fs/cgroup with the memory controller, for writing",
            ),
        }
    }

    /// Its name, as in `TAKEUP_TESTS_WITHOUT`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// How to get it.
    #[must_use]
    pub const fn how(self) -> &'static str {
        self.words().1
    }

    /// Checks the need.
    ///
    /// # Errors
    /// Why the machine does not meet it.
    pub fn find(self) -> Result<(), String> {
        match self {
            Need::Root if rustix::process::geteuid().is_root() => Ok(()),
            Need::Root => Err("the tests are run by an ordinary user".to_owned()),
            Need::Mounts => mounts(),
            Need::Fuse => fuse(),
            Need::LoopDevices => on_loop_device(1 << 20, |_| Ok(())),
            Need::MqDeadline => on_loop_device(1 << 20, mq_deadline),
            Need::KernelSettings => kernel_settings(),
            Need::LargeFuseRequests => opens_for_writing("/proc/sys/fs/fuse/max_pages_limit"),
            Need::IoUring => io_uring::IoUring::new(2).map(|_| ()).map_err(|it| it.to_string()),
            Need::Attributes => attribute("user.takeup-test", b"x"),
            Need::AccessRules => attribute("system.posix_acl_access", &LEAST_RULES),
            Need::Ext4 => file_system("ext4", &["mkfs.ext4", "-q", "-F"]),
            Need::Xfs => file_system("xfs", &["mkfs.xfs", "-q", "-f"]),
            Need::Btrfs => file_system("btrfs", &["mkfs.btrfs", "-q", "-f"]),
            Need::Chromium => says("chromium", &["--version"], "Chrom"),
            Need::Fio => says("fio", &["--version"], "fio"),
            Need::Python3 => says("python3", &["--version"], "Python 3"),
            Need::GnuTar => says("tar", &["--version"], "GNU tar"),
            Need::Bsdtar => says("bsdtar", &["--version"], "libarchive"),
            Need::Tmux => says("tmux", &["-V"], "tmux"),
            Need::Strace => says("strace", &["-o", "/dev/null", "echo", "traced"], "traced"),
            Need::MtSt => says("mt-st", &["--version"], "mt-st"),
            Need::Mbuffer => says("mbuffer", &["--version"], "mbuffer"),
            Need::Curl => says("curl", &["--version"], "curl"),
            Need::Mpirun => says("mpirun", &["--version"], "Open MPI"),
            Need::Pv => says("pv", &["--version"], "pv"),
            Need::Btape => says("btape", &["-?"], "Version"),
            Need::Iostat => says("iostat", &["-V"], "sysstat"),
            Need::Tracefs => tracefs(),
            Need::Postgresql => postgresql_folder().and_then(|folder| {
                ["initdb", "postgres", "psql", "pgbench", "pg_dump"].iter().try_for_each(|it| {
                    says(&folder.join(it).to_string_lossy(), &["--version"], "PostgreSQL")
                })
            }),
            Need::ProcessorQuota => ControlGroup::with_a_fifth_of_a_core().map(drop),
            Need::MemoryLimit => ControlGroup::with_memory(1 << 30).map(drop),
            Need::Mariadb => ["mariadbd", "mariadb", "mariadb-dump"]
                .iter()
                .try_for_each(|program| says(program, &["--no-defaults", "--version"], "MariaDB")),
        }
    }
}

/// The folder of Debian's PostgreSQL programs, including servers; the newest of several versions.
/// It is not in the search path.
///
/// # Errors
/// Why there is none.
pub fn postgresql_folder() -> Result<PathBuf, String> {
    let all = Path::new("/usr/lib/postgresql");
    let versions = std::fs::read_dir(all).map_err(|error| format!("{}: {error}", all.display()))?;
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.flatten().map(|it| it.path()).max_by_key(|path| version(path));
    let folder = newest.map(|path| path.join("bin")).filter(|folder| folder.is_dir());
    folder.ok_or_else(|| format!("no programs below {}", all.display()))
}

/// An ACL with a named user, which the mode alone cannot express: <linux/posix_acl_xattr.h>.
const LEAST_RULES: [u8; 44] = [
    2, 0, 0, 0, // version
    1, 0, 6, 0, 255, 255, 255, 255, // the owner
    2, 0, 4, 0, 210, 4, 0, 0, // user 1234
    4, 0, 4, 0, 255, 255, 255, 255, // the group
    16, 0, 4, 0, 255, 255, 255, 255, // the mask
    32, 0, 0, 0, 255, 255, 255, 255, // others
];

fn run(program: &str, arguments: &[&str], last: Option<&Path>) -> Result<Output, String> {
    let mut command = Command::new(program);
    command.args(arguments).args(last).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{program}: {} {}", output.status, errors.trim()))
}

fn says(program: &str, arguments: &[&str], expected: &str) -> Result<(), String> {
    let output = run(program, arguments, None)?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    if text.contains(expected) {
        Ok(())
    } else {
        Err(format!("{program} says {:?}", text.lines().next().unwrap_or_default()))
    }
}

fn opens_for_writing(path: &str) -> Result<(), String> {
    let opened = OpenOptions::new().write(true).open(path);
    opened.map(|_| ()).map_err(|error| format!("{path}: {error}"))
}

fn temporary() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))
}

fn mounts() -> Result<(), String> {
    let folder = temporary()?;
    run("mount", &["-t", "tmpfs", "-o", "size=64k", "tmpfs"], Some(folder.path()))?;
    run("umount", &[], Some(folder.path())).map(|_| ())
}

/// Mounted for a moment, to check it.
fn tracefs() -> Result<(), String> {
    let folder = temporary()?;
    run("mount", &["-t", "tracefs", "tracefs"], Some(folder.path()))?;
    let found = folder.path().join("events/syscalls/sys_enter_read/format").exists();
    run("umount", &[], Some(folder.path()))?;
    if found { Ok(()) } else { Err("the kernel does not record system calls".to_owned()) }
}

fn fuse() -> Result<(), String> {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    opened.map_err(|error| format!("/dev/fuse: {error}"))?;
    if rustix::process::geteuid().is_root() {
        mounts()
    } else {
        run("fusermount3", &["--version"], None).map(|_| ())
    }
}

fn kernel_settings() -> Result<(), String> {
    Need::Root.find()?;
    let flags = rustix::fs::statvfs("/sys").map_err(|error| format!("/sys: {error}"))?.f_flag;
    if flags.contains(StatVfsMountFlags::RDONLY) {
        Err("/sys is mounted read-only".to_owned())
    } else {
        Ok(())
    }
}

/// Tries something on a loop device of this size.
fn on_loop_device(
    bytes: u64,
    attempt: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let folder = temporary()?;
    let file = folder.path().join("disk");
    let made = File::create(&file).and_then(|file| file.set_len(bytes));
    made.map_err(|error| format!("a file of {bytes} bytes: {error}"))?;
    let output = run("losetup", &["--find", "--show"], Some(&file))?;
    let device = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let tried = attempt(&device);
    run("losetup", &["--detach"], Some(&device))?;
    tried
}

fn mq_deadline(device: &Path) -> Result<(), String> {
    let name = device.file_name().unwrap_or_default();
    let path = Path::new("/sys/block").join(name).join("queue/scheduler");
    let set = std::fs::write(&path, "mq-deadline");
    set.map_err(|error| format!("{}: {error}", path.display()))
}

/// XFS and Btrfs need some hundred megabytes; the file is sparse.
const FILE_SYSTEM_BYTES: u64 = 512 << 20;

fn file_system(kind: &str, make: &[&str]) -> Result<(), String> {
    on_loop_device(FILE_SYSTEM_BYTES, |device| {
        run(make[0], &make[1..], Some(device))?;
        let folder = temporary()?;
        let device = device.to_string_lossy();
        run("mount", &["-t", kind, &device], Some(folder.path()))?;
        run("umount", &[], Some(folder.path())).map(|_| ())
    })
}

fn attribute(name: &str, value: &[u8]) -> Result<(), String> {
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let set = rustix::fs::setxattr(file.path(), name, value, XattrFlags::empty());
    set.map_err(|error| format!("{name} in {}: {error}", std::env::temp_dir().display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_need_is_listed_once() {
        let mut names: Vec<&str> = Need::ALL.iter().map(|need| need.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Need::ALL.len());
        assert!(Need::ALL.iter().enumerate().all(|(at, need)| *need as usize == at));
        assert_eq!(Need::MemoryLimit as usize + 1, Need::ALL.len());
    }

    #[test]
    fn what_is_not_there_has_a_reason() {
        let error = says("takeup-no-such-program", &[], "").unwrap_err();
        assert!(error.starts_with("takeup-no-such-program: No such file"), "{error}");
        let error = says("echo", &["hello"], "GNU tar").unwrap_err();
        assert_eq!(error, "echo says \"hello\"");
        let error = says("sh", &["-c", "echo bad >&2; exit 3"], "").unwrap_err();
        assert_eq!(error, "sh: exit status: 3 bad");
    }
}
