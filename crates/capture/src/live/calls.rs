//! The events that are asked for: system calls by name, and what of their arguments is needed.

use crate::trace::WantedEvent;

use crate::operation::SyncCall;

/// What a system call does, as far as it matters here. The numbers of its arguments are those of
/// its row in [`CALLS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// fd, count.
    Read,
    Write,
    /// fd, count, pos.
    Pread,
    Pwrite,
    /// fd.
    Readv,
    Writev,
    /// fd, pos_l, pos_h.
    Preadv,
    Pwritev,
    /// fd, pos_l, pos_h, flags.
    Preadv2,
    Pwritev2,
    /// fd, and whatever else.
    Sync(SyncCall),
    /// Of a whole file system, named by no file.
    SyncAll,
    /// start.
    SyncMapped,
    /// fd, mode, offset, len.
    Allocate,
    /// ctx_id.
    Submit,
    Reap,
    Destroy,
    /// The process ends by itself.
    Exit,
    /// fd is what it returns; flags.
    Open,
    Create,
    /// fd is what it returns, and its flags are behind a pointer.
    OpenBySettings,
    /// fd.
    Close,
    /// fd, max_fd, flags.
    CloseRange,
    /// fd; the other is what it returns.
    Duplicate,
    /// oldfd, newfd, and flags of one of them.
    DuplicateTo,
    /// fd, cmd, arg.
    Control,
    /// fd; the place is what it returns.
    Seek,
    /// From, to, len; one of both is a pipe.
    Splice,
    /// From, to, len; the first one is a file.
    Send,
    /// From, to, len; both are files.
    Copy,
}

impl Call {
    /// Whether its first argument is a descriptor that has to be known.
    pub(super) fn is_of_file(self) -> bool {
        self.is_operation() || matches!(self, Call::Seek | Call::Control | Call::Duplicate)
    }

    /// Whether it is an operation of the file of its first argument.
    pub(super) fn is_operation(self) -> bool {
        use Call::*;
        matches!(
            self,
            Read | Write | Pread | Pwrite | Readv | Writev | Preadv | Pwritev | Preadv2 | Pwritev2
        ) || matches!(self, Sync(_) | Allocate)
    }

    /// Whether another file may be behind a descriptor afterwards. What is there has to be looked
    /// at soon, however many other events were recorded before.
    const fn changes_descriptors(self) -> bool {
        use Call::*;
        matches!(
            self,
            Open | Create | OpenBySettings | Close | CloseRange | Duplicate | DuplicateTo
        )
    }

    /// Whether what it returns is a new descriptor of a file.
    pub(super) fn opens(self) -> bool {
        matches!(self, Call::Open | Call::Create | Call::OpenBySettings)
    }
}

/// A system call and the arguments of it that are read.
pub(super) struct Row {
    pub(super) call: Call,
    enter: WantedEvent,
    exit: WantedEvent,
}

macro_rules! row {
    ($call:expr, $name:literal, $($field:literal),*) => {
        Row {
            call: $call,
            enter: WantedEvent {
                system: "syscalls",
                name: concat!("sys_enter_", $name),
                fields: &[$($field),*],
                is_urgent: $call.changes_descriptors(),
            },
            exit: WantedEvent {
                system: "syscalls",
                name: concat!("sys_exit_", $name),
                fields: &["ret"],
                is_urgent: $call.changes_descriptors(),
            },
        }
    };
}

/// All of them. Architectures lack some, as arm64 does `open`.
pub(super) const CALLS: &[Row] = &[
    row!(Call::Read, "read", "fd", "count"),
    row!(Call::Write, "write", "fd", "count"),
    row!(Call::Pread, "pread64", "fd", "count", "pos"),
    row!(Call::Pwrite, "pwrite64", "fd", "count", "pos"),
    row!(Call::Readv, "readv", "fd"),
    row!(Call::Writev, "writev", "fd"),
    row!(Call::Preadv, "preadv", "fd", "pos_l", "pos_h"),
    row!(Call::Pwritev, "pwritev", "fd", "pos_l", "pos_h"),
    row!(Call::Preadv2, "preadv2", "fd", "pos_l", "pos_h", "flags"),
    row!(Call::Pwritev2, "pwritev2", "fd", "pos_l", "pos_h", "flags"),
    row!(Call::Sync(SyncCall::Fsync), "fsync", "fd"),
    row!(Call::Sync(SyncCall::Fdatasync), "fdatasync", "fd"),
    row!(Call::Sync(SyncCall::SyncFileRange), "sync_file_range", "fd", "nbytes", "offset"),
    row!(Call::Sync(SyncCall::Sync), "syncfs", "fd"),
    row!(Call::SyncAll, "sync",),
    row!(Call::SyncMapped, "msync", "start"),
    row!(Call::Allocate, "fallocate", "fd", "mode", "offset", "len"),
    row!(Call::Submit, "io_submit", "ctx_id"),
    row!(Call::Reap, "io_getevents", "ctx_id"),
    row!(Call::Reap, "io_pgetevents", "ctx_id"),
    row!(Call::Destroy, "io_destroy", "ctx"),
    row!(Call::Exit, "exit_group",),
    row!(Call::Open, "open", "flags"),
    row!(Call::Open, "openat", "flags"),
    row!(Call::OpenBySettings, "openat2",),
    row!(Call::Create, "creat",),
    row!(Call::Close, "close", "fd"),
    row!(Call::CloseRange, "close_range", "fd", "max_fd", "flags"),
    row!(Call::Duplicate, "dup", "fildes"),
    row!(Call::DuplicateTo, "dup2", "oldfd", "newfd"),
    row!(Call::DuplicateTo, "dup3", "oldfd", "newfd", "flags"),
    row!(Call::Control, "fcntl", "fd", "cmd", "arg"),
    row!(Call::Seek, "lseek", "fd"),
    row!(Call::Splice, "splice", "fd_in", "fd_out", "len", "off_in", "off_out"),
    row!(Call::Send, "sendfile64", "in_fd", "out_fd", "count", "offset"),
    row!(Call::Copy, "copy_file_range", "fd_in", "fd_out", "len", "off_in", "off_out"),
];

/// What else is recorded of the threads.
const OTHERS: &[WantedEvent] = &[
    WantedEvent::new("task", "task_newtask", &["pid", "clone_flags"]).urgent(),
    WantedEvent::new("sched", "sched_process_exit", &["pid", "group_dead"]),
    WantedEvent::new("sched", "sched_process_exec", &["pid", "old_pid"]),
    WantedEvent::new("block", "block_bio_queue", &["dev", "nr_sector", "rwbs", "sector"]),
    WantedEvent::new("filemap", "mm_filemap_fault", &["s_dev", "i_ino", "index"]),
];

/// What is recorded whoever it is of: what a ring's own threads do is told by the ring only.
const RINGS: &[WantedEvent] = &[
    WantedEvent::new("io_uring", "io_uring_submit_req", &["ctx", "req", "opcode", "flags"]),
    // As it was called before Linux 6.3.
    WantedEvent::new("io_uring", "io_uring_submit_sqe", &["ctx", "req", "opcode", "flags"]),
    WantedEvent::new("io_uring", "io_uring_file_get", &["ctx", "req", "fd"]),
    WantedEvent::new("io_uring", "io_uring_queue_async_work", &["ctx", "req"]),
    WantedEvent::new("io_uring", "io_uring_complete", &["ctx", "req", "res"]),
];

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// A call begins, or ends: its row.
    Enter(usize),
    Exit(usize),
    /// A thread or process was started; pid, clone_flags.
    New,
    /// A thread has ended; pid, group_dead.
    Ended,
    /// A process runs another program; pid, old_pid.
    Exec,
    /// A request goes to a block device; dev, nr_sector, rwbs, sector.
    Block,
    /// A page of a mapped file is fetched; s_dev, i_ino, index.
    Fault,
    /// A ring's request is submitted: ctx, req, opcode, flags.
    Submitted,
    /// Its file is looked up by its descriptor: ctx, req, fd.
    FileOf,
    /// It is done by another thread: ctx, req.
    Handed,
    /// It is done: ctx, req, res.
    Completed,
    /// None of these.
    Unknown,
}

impl EventKind {
    /// Of an event's number.
    pub(super) fn of(number: u16) -> EventKind {
        let number = usize::from(number);
        let (row, rest) = (number / 2, number % 2);
        if row < CALLS.len() {
            return if rest == 0 { EventKind::Enter(row) } else { EventKind::Exit(row) };
        }
        match number - CALLS.len() * 2 {
            0 => EventKind::New,
            1 => EventKind::Ended,
            2 => EventKind::Exec,
            3 => EventKind::Block,
            4 => EventKind::Fault,
            5 | 6 => EventKind::Submitted,
            7 => EventKind::FileOf,
            8 => EventKind::Handed,
            9 => EventKind::Completed,
            _ => EventKind::Unknown,
        }
    }
}

/// The events of the threads that are recorded.
pub fn events() -> Vec<WantedEvent> {
    let calls = CALLS.iter().flat_map(|row| [row.enter, row.exit]);
    calls.chain(OTHERS.iter().copied()).collect()
}

/// The events that are recorded of everybody.
pub fn events_everywhere() -> &'static [WantedEvent] {
    RINGS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_known_by_its_number() {
        let mut all = events();
        all.extend_from_slice(events_everywhere());
        let kind = |name: &str| {
            let at = all.iter().position(|wanted| wanted.name == name).unwrap();
            EventKind::of(u16::try_from(at).unwrap())
        };
        assert_eq!(kind("sys_enter_read"), EventKind::Enter(0));
        assert_eq!(kind("sys_exit_write"), EventKind::Exit(1));
        assert_eq!(kind("task_newtask"), EventKind::New);
        assert_eq!(kind("sched_process_exit"), EventKind::Ended);
        assert_eq!(kind("sched_process_exec"), EventKind::Exec);
        assert_eq!(kind("block_bio_queue"), EventKind::Block);
        assert_eq!(kind("mm_filemap_fault"), EventKind::Fault);
        assert_eq!(kind("io_uring_submit_req"), EventKind::Submitted);
        assert_eq!(kind("io_uring_submit_sqe"), EventKind::Submitted);
        assert_eq!(kind("io_uring_file_get"), EventKind::FileOf);
        assert_eq!(kind("io_uring_queue_async_work"), EventKind::Handed);
        assert_eq!(kind("io_uring_complete"), EventKind::Completed);
        assert_eq!(EventKind::of(u16::try_from(all.len()).unwrap()), EventKind::Unknown);
        assert!(all.iter().all(|wanted| wanted.fields.len() <= crate::trace::FIELDS_MAX));
    }
}
