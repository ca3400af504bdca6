//! Files that were met: what `/proc` tells of a descriptor, and the number that a recording knows
//! the file by.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use rustix::fs::OFlags;

use crate::operation::{FileKind, FileNumber, Known, OpenedFile, Recording, Unknown};

/// More files are all one, whose name is not known.
const FILES_MAX: usize = 1 << 16;

/// A descriptor as `/proc` showed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Looked {
    pub(crate) file: OpenedFile,
    /// Of the file system and the file there; of a block device its own number.
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) position: Known<u64>,
    /// What it was opened for.
    pub(crate) access: Known<Access>,
    /// What becomes of this descriptor in the next program.
    pub(crate) on_exec: OnExec,
    /// When it was looked at.
    pub(crate) at_ns: u64,
}

/// What a file was opened for (`O_ACCMODE`, open(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

impl Access {
    fn of(flags: OFlags) -> Access {
        let way = flags & OFlags::ACCMODE;
        Access { reads: way != OFlags::WRONLY, writes: way != OFlags::RDONLY }
    }
}

/// What becomes of a descriptor in the next program that its process runs (`FD_CLOEXEC`, fcntl(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnExec {
    /// It is closed; or what becomes of it is not known, and it is looked at again.
    Closes,
    Stays,
}

impl OnExec {
    /// By whether it has that flag.
    pub(super) fn of(flags: OFlags) -> OnExec {
        if flags.contains(OFlags::CLOEXEC) { OnExec::Closes } else { OnExec::Stays }
    }
}

impl Looked {
    /// Looks at a descriptor.
    pub(crate) fn at(process: u32, descriptor: u32) -> Known<Looked> {
        let at_ns = crate::trace::now_ns();
        let path = format!("/proc/{process}/fd/{descriptor}");
        let link = fs::read_link(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => Unknown::NotAllowed,
            _ => Unknown::Closed,
        })?;
        let data = fs::metadata(&path).map_err(|_| Unknown::Closed)?;
        let info = format!("/proc/{process}/fdinfo/{descriptor}");
        let info = fs::read_to_string(info).unwrap_or_default();
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
        let position = field("pos:").and_then(|text| text.trim().parse().ok());
        let flags = field("flags:").and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
        let text = link.to_string_lossy().into_owned();
        let (text, deleted) = match text.strip_suffix(" (deleted)") {
            Some(before) => (before.to_owned(), true),
            None => (text, false),
        };
        let kind = kind(data.file_type());
        let is_sized = kind == FileKind::Regular;
        let flags = flags.map(OFlags::from_bits_retain);
        let mut file = opened(flags);
        file.path = Ok(text);
        file.kind = kind;
        file.deleted = deleted;
        file.size_bytes = if is_sized { Ok(data.len()) } else { Err(Unknown::NotRecorded) };
        let device = if kind == FileKind::BlockDevice { data.rdev() } else { data.dev() };
        let position = position.ok_or(Unknown::NotRecorded);
        let access = flags.map(Access::of).ok_or(Unknown::NotRecorded);
        // Of the descriptor and not of the open file, but fdinfo has it among those (proc(5)).
        let on_exec = flags.map_or(OnExec::Closes, OnExec::of);
        let inode = data.ino();
        Ok(Looked { file, device, inode, position, access, on_exec, at_ns })
    }
}

impl Looked {
    /// Looks at what a process has mapped at an address (proc_pid_maps(5)).
    pub(super) fn mapped(process: u32, address: u64) -> Known<Looked> {
        let text = maps(process)?;
        let path = text.lines().find_map(|line| mapped_path(line, address));
        Looked::mapped_from(path.ok_or(Unknown::NotRecorded)?)
    }

    /// Looks at the file that a mapping is of.
    pub(super) fn mapped_from(path: &str) -> Known<Looked> {
        let at_ns = crate::trace::now_ns();
        let data = fs::metadata(path).map_err(|_| Unknown::Closed)?;
        let mut file = opened(Some(OFlags::empty()));
        file.path = Ok(path.to_owned());
        file.kind = kind(data.file_type());
        file.size_bytes = Ok(data.len());
        let (device, inode) = (data.dev(), data.ino());
        let (position, access) = (Err(Unknown::NotRecorded), Err(Unknown::NotRecorded));
        let on_exec = OnExec::Closes;
        Ok(Looked { file, device, inode, position, access, on_exec, at_ns })
    }
}

/// What a process has mapped (proc_pid_maps(5)).
pub(super) fn maps(process: u32) -> Known<String> {
    let text = fs::read(format!("/proc/{process}/maps")).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => Unknown::NotAllowed,
        _ => Unknown::NotRecorded,
    })?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The path of a line of `maps` that has the address in it.
fn mapped_path(line: &str, address: u64) -> Option<&str> {
    let (range, _) = line.split_once(' ')?;
    let (first, behind) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let is_in_it = (number(first)?..number(behind)?).contains(&address);
    is_in_it.then(|| line.find('/').map(|at| &line[at..])).flatten()
}

fn kind(of: fs::FileType) -> FileKind {
    if of.is_file() {
        FileKind::Regular
    } else if of.is_block_device() {
        FileKind::BlockDevice
    } else if of.is_char_device() {
        FileKind::CharacterDevice
    } else if of.is_fifo() {
        FileKind::Pipe
    } else if of.is_socket() {
        FileKind::Socket
    } else {
        FileKind::Other
    }
}

/// A file of which nothing is known but how it was opened, at most.
pub(super) fn opened(flags: Option<OFlags>) -> OpenedFile {
    let has = |flag: OFlags| flags.map(|it| it.contains(flag)).ok_or(Unknown::NotRecorded);
    OpenedFile {
        path: Err(Unknown::Closed),
        kind: FileKind::Other,
        deleted: false,
        direct: has(OFlags::DIRECT),
        // O_SYNC has the bit of O_DSYNC and one more (open(2)).
        synchronous: has(OFlags::DSYNC),
        append: has(OFlags::APPEND),
        size_bytes: Err(Unknown::NotRecorded),
    }
}

/// What makes two descriptors the same file here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    path: Known<String>,
    device: u64,
    inode: u64,
    flags: [Known<bool>; 3],
}

/// All files of a recording.
#[derive(Debug, Default)]
pub(super) struct Files {
    numbers: HashMap<Identity, FileNumber>,
    /// By number: the file, its device and what it is there.
    all: Vec<(OpenedFile, u64, u64)>,
}

impl Files {
    /// The number of a file that was looked at.
    pub(super) fn number(&mut self, looked: &Looked, to: &mut dyn Recording) -> FileNumber {
        self.of(looked.file.clone(), looked.device, looked.inode, to)
    }

    /// The number of all files of which no more is known than this.
    pub(super) fn unnamed(&mut self, file: OpenedFile, to: &mut dyn Recording) -> FileNumber {
        self.of(file, 0, 0, to)
    }

    fn of(
        &mut self,
        file: OpenedFile,
        device: u64,
        inode: u64,
        to: &mut dyn Recording,
    ) -> FileNumber {
        let file = match self.all.len() {
            FILES_MAX.. => OpenedFile { path: Err(Unknown::NotRecorded), ..opened(None) },
            _ => file,
        };
        let flags = [file.direct, file.synchronous, file.append];
        let identity = Identity { path: file.path.clone(), device, inode, flags };
        if let Some(number) = self.numbers.get(&identity) {
            return *number;
        }
        let number = FileNumber::try_from(self.all.len()).unwrap_or(FileNumber::MAX);
        to.file(number, &file);
        self.all.push((file, device, inode));
        self.numbers.insert(identity, number);
        number
    }

    /// The number of a file that is used in another way from now on.
    pub(super) fn changed(
        &mut self,
        number: FileNumber,
        flags: OFlags,
        to: &mut dyn Recording,
    ) -> FileNumber {
        let Some((mut file, device, inode)) = self.all.get(number as usize).cloned() else {
            return number;
        };
        file.direct = Ok(flags.contains(OFlags::DIRECT));
        file.append = Ok(flags.contains(OFlags::APPEND));
        self.of(file, device, inode, to)
    }

    /// A file by its number.
    pub(super) fn get(&self, number: FileNumber) -> Option<&OpenedFile> {
        Some(&self.all.get(number as usize)?.0)
    }

    /// Its device.
    pub(super) fn device(&self, number: FileNumber) -> Option<u64> {
        Some(self.all.get(number as usize)?.1)
    }
}
