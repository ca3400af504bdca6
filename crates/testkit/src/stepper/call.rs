//! One system call of the program under test, from the registers at its entry.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use nix::libc;
use nix::unistd::Pid;

/// What to do with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallVerdict {
    /// The kernel makes it.
    Pass,
    /// It is not made, and returns this error number.
    Fail(i32),
    /// It is made, but returns this error number, as close(2) on a network file system can.
    FailAfter(i32),
    /// Its length is limited to this many bytes. Only for calls that [`Call::length_bytes`] knows.
    Shorten(u64),
}

/// A system call that is about to be made.
#[derive(Clone, Debug)]
pub struct Call {
    /// The thread that makes it.
    pub thread: i32,
    /// Its number, `SYS_*`.
    pub number: i64,
    /// Its arguments as the registers hold them.
    pub arguments: [u64; 6],
}

/// Longest path argument, with its end mark.
const PATH_BYTES_MAX: usize = 4096;

impl Call {
    pub(crate) fn at_entry(thread: Pid, registers: &libc::user_regs_struct) -> Call {
        let r = registers;
        let arguments = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
        Call { thread: thread.as_raw(), number: r.orig_rax.cast_signed(), arguments }
    }

    /// Its name, if tests here use it.
    pub fn name(&self) -> Option<&'static str> {
        NAMES.iter().find(|(number, ..)| *number == self.number).map(|(_, name, ..)| *name)
    }

    /// Number of the call with this name.
    pub fn number_of(name: &str) -> Option<i64> {
        NAMES.iter().find(|(_, known, ..)| *known == name).map(|(number, ..)| *number)
    }

    /// The number of requested bytes, if the call may move fewer.
    pub fn length_bytes(&self) -> Option<u64> {
        match self.number {
            libc::SYS_read | libc::SYS_write | libc::SYS_pread64 | libc::SYS_pwrite64 => {
                Some(self.arguments[2])
            }
            libc::SYS_pwritev2 if self.arguments[2] == 1 => {
                let mut vector = [0; 16];
                self.memory()?.read_exact_at(&mut vector, self.arguments[1]).ok()?;
                let (_, length) = vector.split_at(8);
                Some(u64::from_ne_bytes(length.try_into().ok()?))
            }
            _ => None,
        }
    }

    /// The file of its descriptor, if its first argument is one.
    pub fn file(&self) -> Option<PathBuf> {
        let (.., first) = NAMES.iter().find(|(number, ..)| *number == self.number)?;
        match (first, self.arguments[0] as i32) {
            (First::Path | First::Other, _) => None,
            (_, libc::AT_FDCWD) => std::fs::read_link(format!("/proc/{}/cwd", self.thread)).ok(),
            (_, descriptor) => {
                std::fs::read_link(format!("/proc/{}/fd/{descriptor}", self.thread)).ok()
            }
        }
    }

    /// The path that it names, joined to the directory that it is relative to.
    pub fn path(&self) -> Option<PathBuf> {
        let (.., first) = NAMES.iter().find(|(number, ..)| *number == self.number)?;
        match first {
            First::Path => self.text(0).map(PathBuf::from),
            First::Directory => {
                let name = self.text(1)?;
                Some(self.file().map_or_else(|| PathBuf::from(&name), |folder| folder.join(&name)))
            }
            First::File => self.file(),
            First::Other => None,
        }
    }

    /// The text at argument number `at`.
    pub fn text(&self, at: usize) -> Option<String> {
        let memory = self.memory()?;
        let mut bytes = vec![0; PATH_BYTES_MAX];
        let mut filled = 0;
        // Up to the end of a page at a time: the next page may not be mapped.
        while filled < bytes.len() && !bytes[..filled].contains(&0) {
            let from = self.arguments[at] + filled as u64;
            let most = (4096 - from as usize % 4096).min(bytes.len() - filled);
            filled += memory.read_at(&mut bytes[filled..filled + most], from).ok()?;
        }
        let end = bytes.iter().position(|&byte| byte == 0)?;
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    pub(crate) fn memory(&self) -> Option<File> {
        let path = format!("/proc/{}/mem", self.thread);
        File::options().read(true).write(true).open(path).ok()
    }
}

/// The kind of a call's first argument.
#[derive(Clone, Copy)]
enum First {
    /// The descriptor of the file itself.
    File,
    /// The descriptor of the directory to which the second argument, a path, is relative.
    Directory,
    Path,
    Other,
}

/// The calls about files, and those that make threads and wait for pipes.
const NAMES: &[(i64, &str, First)] = &[
    (libc::SYS_read, "read", First::File),
    (libc::SYS_pread64, "pread64", First::File),
    (libc::SYS_preadv, "preadv", First::File),
    (libc::SYS_preadv2, "preadv2", First::File),
    (libc::SYS_readv, "readv", First::File),
    (libc::SYS_write, "write", First::File),
    (libc::SYS_pwrite64, "pwrite64", First::File),
    (libc::SYS_writev, "writev", First::File),
    (libc::SYS_pwritev, "pwritev", First::File),
    (libc::SYS_pwritev2, "pwritev2", First::File),
    (libc::SYS_lseek, "lseek", First::File),
    (libc::SYS_getdents64, "getdents64", First::File),
    (libc::SYS_fstat, "fstat", First::File),
    (libc::SYS_fstatfs, "fstatfs", First::File),
    (libc::SYS_fsync, "fsync", First::File),
    (libc::SYS_fdatasync, "fdatasync", First::File),
    (libc::SYS_syncfs, "syncfs", First::File),
    (libc::SYS_sync_file_range, "sync_file_range", First::File),
    (libc::SYS_ftruncate, "ftruncate", First::File),
    (libc::SYS_fallocate, "fallocate", First::File),
    (libc::SYS_flock, "flock", First::File),
    (libc::SYS_fcntl, "fcntl", First::File),
    (libc::SYS_ioctl, "ioctl", First::File),
    (libc::SYS_fchmod, "fchmod", First::File),
    (libc::SYS_fchown, "fchown", First::File),
    (libc::SYS_fsetxattr, "fsetxattr", First::File),
    (libc::SYS_fgetxattr, "fgetxattr", First::File),
    (libc::SYS_flistxattr, "flistxattr", First::File),
    (libc::SYS_fremovexattr, "fremovexattr", First::File),
    (libc::SYS_copy_file_range, "copy_file_range", First::File),
    (libc::SYS_fadvise64, "fadvise64", First::File),
    (libc::SYS_readahead, "readahead", First::File),
    (libc::SYS_close, "close", First::File),
    (libc::SYS_openat, "openat", First::Directory),
    (libc::SYS_openat2, "openat2", First::Directory),
    (libc::SYS_newfstatat, "newfstatat", First::Directory),
    (libc::SYS_statx, "statx", First::Directory),
    (libc::SYS_readlinkat, "readlinkat", First::Directory),
    (libc::SYS_faccessat, "faccessat", First::Directory),
    (libc::SYS_mkdirat, "mkdirat", First::Directory),
    (libc::SYS_mknodat, "mknodat", First::Directory),
    (libc::SYS_linkat, "linkat", First::Directory),
    // Its first path is the content of the link; the path of the link follows.
    (libc::SYS_symlinkat, "symlinkat", First::Path),
    (libc::SYS_renameat, "renameat", First::Directory),
    (libc::SYS_renameat2, "renameat2", First::Directory),
    (libc::SYS_unlinkat, "unlinkat", First::Directory),
    (libc::SYS_fchmodat, "fchmodat", First::Directory),
    (libc::SYS_fchmodat2, "fchmodat2", First::Directory),
    (libc::SYS_fchownat, "fchownat", First::Directory),
    (libc::SYS_utimensat, "utimensat", First::Directory),
    (libc::SYS_open, "open", First::Path),
    (libc::SYS_stat, "stat", First::Path),
    (libc::SYS_lstat, "lstat", First::Path),
    (libc::SYS_statfs, "statfs", First::Path),
    (libc::SYS_readlink, "readlink", First::Path),
    (libc::SYS_mkdir, "mkdir", First::Path),
    (libc::SYS_rename, "rename", First::Path),
    (libc::SYS_link, "link", First::Path),
    (libc::SYS_unlink, "unlink", First::Path),
    (libc::SYS_rmdir, "rmdir", First::Path),
    (libc::SYS_chmod, "chmod", First::Path),
    (libc::SYS_chown, "chown", First::Path),
    (libc::SYS_lchown, "lchown", First::Path),
    (libc::SYS_setxattr, "setxattr", First::Path),
    (libc::SYS_lsetxattr, "lsetxattr", First::Path),
    (libc::SYS_getxattr, "getxattr", First::Path),
    (libc::SYS_lgetxattr, "lgetxattr", First::Path),
    (libc::SYS_listxattr, "listxattr", First::Path),
    (libc::SYS_llistxattr, "llistxattr", First::Path),
    (libc::SYS_clone3, "clone3", First::Other),
    (libc::SYS_poll, "poll", First::Other),
];
