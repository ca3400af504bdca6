//! What a thread is doing, from the system call that it waits in.

use machine::threads::Call;

/// What a thread or a stage does at one moment. The order matters: a stage does the first of these
/// that any of its threads does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    /// Runs, or waits for a core.
    Working,
    /// Waits for a file or a device that it reads.
    Reading(String),
    /// Waits for a file or a device that it writes.
    Writing(String),
    /// Waits until a file or a device has everything that it wrote.
    Flushing(String),
    /// Waits for room in a pipe.
    Blocked,
    /// Waits for bytes from a pipe.
    Starved,
    /// Waits for several files at once, as in poll(2); the fill of its pipes shows for which.
    Asking,
    /// Not known: Takeup may not trace it.
    Hidden,
    /// Sleeps until a given time.
    Sleeping,
    /// Sleeps for a fixed time, whatever happened before.
    Slept,
    /// Waits for something else.
    Other(&'static str),
    /// Waits at a pipe within its own stage: the other process there counts.
    Inside,
}

/// The kind of an open file, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// A pipe, with or without a name.
    Pipe,
    /// A pipe with both ends in one stage.
    InnerPipe,
    /// A file, a folder or a device, by its path.
    File(String),
    Else(&'static str),
}

/// What a system call waits for, with the index of the argument that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// The file to read from.
    Reads(usize),
    /// The file to write to.
    Writes(usize),
    /// The file to flush.
    Flushes,
    /// All files of a process, or one whose descriptor is already closed.
    Closes,
    /// Data move from one file to another without passing through the program.
    Moves {
        from: usize,
        to: usize,
    },
    /// A file system; the path is not known.
    Path,
    Asks,
    /// Several files; this argument has their number.
    AsksSeveral(usize),
    /// A given time.
    Clock,
    /// Requests that were submitted before.
    Requests,
    Sleeps(&'static str),
}

/// What a call waits for.
fn waits(number: u64) -> Waits {
    let Ok(number) = libc::c_long::try_from(number) else { return Waits::Sleeps("a call") };
    match number {
        libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_readv
        | libc::SYS_preadv
        | libc::SYS_preadv2
        | libc::SYS_getdents64
        | libc::SYS_ioctl
        | libc::SYS_fstat
        | libc::SYS_readahead => Waits::Reads(0),
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_pwritev2
        | libc::SYS_vmsplice
        | libc::SYS_ftruncate
        | libc::SYS_fallocate => Waits::Writes(0),
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_sync_file_range | libc::SYS_syncfs => {
            Waits::Flushes
        }
        libc::SYS_close | libc::SYS_dup3 | libc::SYS_exit_group | libc::SYS_exit => Waits::Closes,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_dup2 => Waits::Closes,
        libc::SYS_splice | libc::SYS_copy_file_range => Waits::Moves { from: 0, to: 2 },
        libc::SYS_tee => Waits::Moves { from: 0, to: 1 },
        libc::SYS_sendfile => Waits::Moves { from: 1, to: 0 },
        libc::SYS_openat | libc::SYS_statx | libc::SYS_newfstatat | libc::SYS_unlinkat => {
            Waits::Path
        }
        libc::SYS_ppoll => Waits::AsksSeveral(1),
        libc::SYS_pselect6 => Waits::AsksSeveral(0),
        libc::SYS_epoll_pwait => Waits::Asks,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => Waits::AsksSeveral(1),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => Waits::AsksSeveral(0),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => Waits::Asks,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open | libc::SYS_stat | libc::SYS_lstat => Waits::Path,
        libc::SYS_io_uring_enter | libc::SYS_io_getevents | libc::SYS_io_submit => Waits::Requests,
        libc::SYS_futex => Waits::Sleeps("another thread"),
        libc::SYS_wait4 | libc::SYS_waitid => Waits::Sleeps("another process"),
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Waits::Clock,
        _ => Waits::Sleeps("a call"),
    }
}

/// What a thread does; `opened` returns the kind of an open file of its process.
pub fn doing(call: Option<Call>, opened: impl Fn(u64) -> Option<Opened>) -> Doing {
    let (number, arguments) = match call {
        None => return Doing::Hidden,
        Some(Call::Runs) => return Doing::Working,
        // It waits for a page of a mapped file, or of memory that the kernel has to provide.
        Some(Call::Outside) => return Doing::Reading("mapped memory".to_owned()),
        Some(Call::Waits { number, arguments }) => (number, arguments),
    };
    let at = |argument: usize, writes: bool| match opened(arguments[argument]) {
        Some(Opened::InnerPipe) => Doing::Inside,
        Some(Opened::Pipe) if writes => Doing::Blocked,
        Some(Opened::Pipe) => Doing::Starved,
        Some(Opened::File(path)) if writes => Doing::Writing(path),
        Some(Opened::File(path)) => Doing::Reading(path),
        Some(Opened::Else(what)) => Doing::Other(what),
        // The file was closed meanwhile: the thread has gone on.
        None => Doing::Working,
    };
    match waits(number) {
        Waits::Reads(argument) => at(argument, false),
        Waits::Writes(argument) => at(argument, true),
        Waits::Flushes => match opened(arguments[0]) {
            Some(Opened::File(path)) => Doing::Flushing(path),
            _ => Doing::Flushing("a file".to_owned()),
        },
        // The descriptor is already free while the device still writes.
        Waits::Closes => Doing::Flushing("a file that it closes".to_owned()),
        Waits::Moves { from, to } => match (at(from, false), at(to, true)) {
            // The fill of the pipe shows for which of the two it waits.
            (Doing::Inside, Doing::Inside) => Doing::Inside,
            (Doing::Starved | Doing::Inside, _) | (_, Doing::Blocked) => Doing::Asking,
            (from, to) => from.min(to),
        },
        Waits::Path => Doing::Reading("a file that it opens".to_owned()),
        // Without any file it sleeps (select(2)).
        Waits::AsksSeveral(argument) if arguments[argument] == 0 => Doing::Sleeping,
        Waits::Asks | Waits::AsksSeveral(_) => Doing::Asking,
        Waits::Clock => Doing::Sleeping,
        Waits::Requests => Doing::Reading("requests in flight".to_owned()),
        Waits::Sleeps(what) => Doing::Other(what),
    }
}

/// Whether a call moves bytes that the kernel does not count for the process.
pub fn moves_uncounted(call: Option<Call>) -> bool {
    let Some(Call::Waits { number, .. }) = call else { return false };
    let is = |it: libc::c_long| u64::try_from(it) == Ok(number);
    is(libc::SYS_splice) || is(libc::SYS_tee) || is(libc::SYS_vmsplice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits_in(number: libc::c_long, arguments: [u64; 6]) -> Option<Call> {
        Some(Call::Waits { number: number.try_into().unwrap(), arguments })
    }

    fn opened(number: u64) -> Option<Opened> {
        match number {
            0 | 1 => Some(Opened::Pipe),
            3 => Some(Opened::File("/dev/nst0".to_owned())),
            4 => Some(Opened::Else("a socket")),
            5 => Some(Opened::InnerPipe),
            _ => None,
        }
    }

    #[test]
    fn the_call_and_its_file_tell_what_a_thread_waits_for() {
        let tape = || "/dev/nst0".to_owned();
        let check = |number, arguments: [u64; 6], expected: Doing| {
            let found = doing(waits_in(number, arguments), opened);
            assert_eq!(found, expected, "{number} {arguments:?}");
        };
        check(libc::SYS_read, [0; 6], Doing::Starved);
        check(libc::SYS_write, [1, 0, 0, 0, 0, 0], Doing::Blocked);
        check(libc::SYS_write, [3, 0, 0, 0, 0, 0], Doing::Writing(tape()));
        check(libc::SYS_read, [3, 0, 0, 0, 0, 0], Doing::Reading(tape()));
        check(libc::SYS_fsync, [3, 0, 0, 0, 0, 0], Doing::Flushing(tape()));
        // Closing a tape waits for the medium after its descriptor is free.
        let closing = || Doing::Flushing("a file that it closes".to_owned());
        check(libc::SYS_close, [9, 0, 0, 0, 0, 0], closing());
        check(libc::SYS_exit_group, [0; 6], closing());
        check(libc::SYS_read, [4, 0, 0, 0, 0, 0], Doing::Other("a socket"));
        check(libc::SYS_read, [9, 0, 0, 0, 0, 0], Doing::Working);
        check(libc::SYS_splice, [0, 0, 1, 0, 0, 0], Doing::Asking);
        check(libc::SYS_splice, [3, 0, 1, 0, 0, 0], Doing::Asking);
        check(libc::SYS_sendfile, [3, 3, 0, 0, 0, 0], Doing::Reading(tape()));
        check(libc::SYS_futex, [0; 6], Doing::Other("another thread"));
        check(libc::SYS_ppoll, [0x7f00, 2, 0, 0, 0, 0], Doing::Asking);
        check(libc::SYS_ppoll, [0; 6], Doing::Sleeping);
        check(libc::SYS_pselect6, [1, 0, 0, 0, 0, 0], Doing::Asking);
        check(libc::SYS_pselect6, [0; 6], Doing::Sleeping);
        check(libc::SYS_clock_nanosleep, [0; 6], Doing::Sleeping);
        // Within a stage of several programs.
        check(libc::SYS_write, [5, 0, 0, 0, 0, 0], Doing::Inside);
        check(libc::SYS_read, [5, 0, 0, 0, 0, 0], Doing::Inside);
        check(libc::c_long::MAX, [0; 6], Doing::Other("a call"));
        assert_eq!(doing(Some(Call::Runs), opened), Doing::Working);
        assert_eq!(doing(None, opened), Doing::Hidden);
        assert!(matches!(doing(Some(Call::Outside), opened), Doing::Reading(_)));
    }

    #[test]
    fn bytes_of_a_splice_are_counted_nowhere() {
        assert!(moves_uncounted(waits_in(libc::SYS_splice, [0; 6])));
        assert!(!moves_uncounted(waits_in(libc::SYS_write, [0; 6])));
        assert!(!moves_uncounted(Some(Call::Runs)));
    }

    /// A buffer with a thread that reads and one that writes is where it does most.
    #[test]
    fn of_several_threads_the_busiest_counts() {
        let all = [Doing::Other("another thread"), Doing::Starved, Doing::Writing("x".to_owned())];
        assert_eq!(all.iter().min(), Some(&Doing::Writing("x".to_owned())));
        // (head | pv -L): head has filled the pipe between them, pv waits for its time.
        let all = [Doing::Inside, Doing::Sleeping, Doing::Other("another process")];
        assert_eq!(all.iter().min(), Some(&Doing::Sleeping));
        assert!(Doing::Working < Doing::Blocked && Doing::Blocked < Doing::Starved);
    }
}
