//! What each call means: an operation, or another descriptor, position or process.

use std::cell::RefCell;
use std::rc::Rc;

use super::super::super::operation::{Asked, Engine, FileOperation, Known, SyncCall, Unknown};
use super::super::{KEPT_MAX, nanoseconds};
use super::line;
use super::{Call, Description, Pending, Trace, put};

const RINGS: &str = "strace does not show requests of io_uring";
const MAPPINGS: &str = "strace does not show reads and writes through mapped files";
const AIO: &str = "strace shows requests of io_submit, not when each of them ended";

/// How a call asks: by which engine, for what, and where it says where.
fn data(name: &str) -> Option<(Engine, Asked, Place)> {
    Some(match name {
        "read" => (Engine::Sync, Asked::Read, Place::Position),
        "write" => (Engine::Sync, Asked::Write, Place::Position),
        "readv" => (Engine::Vsync, Asked::Read, Place::Position),
        "writev" => (Engine::Vsync, Asked::Write, Place::Position),
        "pread64" | "pread" => (Engine::Psync, Asked::Read, Place::Argument),
        "pwrite64" | "pwrite" => (Engine::Psync, Asked::Write, Place::Argument),
        "preadv" => (Engine::Pvsync, Asked::Read, Place::Argument),
        "pwritev" => (Engine::Pvsync, Asked::Write, Place::Argument),
        "preadv2" => (Engine::Pvsync2, Asked::Read, Place::Argument),
        "pwritev2" => (Engine::Pvsync2, Asked::Write, Place::Argument),
        _ => return None,
    })
}

fn sync(name: &str) -> Option<SyncCall> {
    Some(match name {
        "fsync" => SyncCall::Fsync,
        "fdatasync" => SyncCall::Fdatasync,
        "sync_file_range" => SyncCall::SyncFileRange,
        "syncfs" => SyncCall::Sync,
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Position,
    Argument,
}

/// Whether its first argument is the file that it is on.
pub fn is_of_file(name: &str) -> bool {
    data(name).is_some() || sync(name).is_some() || name == "fallocate"
}

/// Whether it makes a process or a thread.
pub fn makes_a_process(name: &str) -> bool {
    matches!(name, "clone" | "clone3" | "fork" | "vfork")
}

fn number(text: Option<&&str>) -> Known<u64> {
    text.and_then(|it| it.parse().ok()).ok_or(Unknown::NotRecorded)
}

/// Bytes of an array of `{iov_base=..., iov_len=...}`; not known where strace left some out.
fn bytes_of_vector(text: Option<&&str>) -> Known<u64> {
    let text = text.ok_or(Unknown::NotRecorded)?;
    let mut sum = 0_u64;
    for vector in line::elements(text) {
        let fields = line::elements(vector);
        let length = fields.iter().find_map(|it| it.strip_prefix("iov_len="));
        sum = sum.saturating_add(number(length.as_ref())?);
    }
    Ok(sum)
}

impl Trace<'_> {
    pub(super) fn done(&mut self, call: &Call<'_>) -> Result<(), String> {
        match call.name {
            "open" | "openat" | "openat2" | "creat" => self.open(call),
            "close" => {
                let closed = call.arguments.first().and_then(|it| line::descriptor(it));
                if let (Some(closed), Some(thread)) = (closed, self.threads.get(&call.thread)) {
                    thread.descriptors.borrow_mut().remove(&closed.number);
                }
                Ok(())
            }
            "dup" | "dup2" | "dup3" => self.copied(call),
            "fcntl" if call.arguments.get(1).is_some_and(|it| it.starts_with("F_DUPFD")) => {
                self.copied(call)
            }
            "lseek" | "_llseek" => self.seek(call),
            "sendfile" | "sendfile64" => self.spliced(call, [1, 0], [Some(2), None], 3),
            "splice" | "copy_file_range" => self.spliced(call, [0, 2], [Some(1), Some(3)], 4),
            "io_submit" => self.submitted(call),
            "io_getevents" | "io_pgetevents" => {
                let ended = call.returned.value.and_then(|it| u32::try_from(it).ok());
                if let (Some(ended), Some(context)) = (ended, call.arguments.first())
                    && let Some((count, _)) = self.contexts.get_mut(*context)
                {
                    *count = count.saturating_sub(ended);
                }
                Ok(())
            }
            "io_uring_setup" if call.returned.error.is_none() => {
                self.cannot_see(RINGS);
                Ok(())
            }
            "mmap" | "mmap2" => {
                let is_shared = call.arguments.get(3).is_some_and(|it| it.contains("MAP_SHARED"));
                let is_file = call.arguments.get(4).is_some_and(|it| it.contains("</"));
                if is_shared && is_file {
                    self.cannot_see(MAPPINGS);
                }
                Ok(())
            }
            name if makes_a_process(name) => self.forked(call),
            name if is_of_file(name) => self.of_file(call),
            _ => Ok(()),
        }
    }

    fn open(&mut self, call: &Call<'_>) -> Result<(), String> {
        let Some(descriptor) = line::descriptor(call.returned.text) else { return Ok(()) };
        let at = if matches!(call.name, "open" | "creat") { 1 } else { 2 };
        let text = call.arguments.get(at).copied().unwrap_or("");
        let has = |flag: &str| {
            text.split(|it: char| !it.is_alphanumeric() && it != '_').any(|it| it == flag)
        };
        let flags = [has("O_DIRECT"), has("O_SYNC") || has("O_DSYNC"), has("O_APPEND")];
        // What is opened to be appended to begins wherever it ends.
        let is_empty = has("O_TRUNC") || call.name == "creat";
        let begin = if flags[2] && !is_empty { Err(Unknown::Position) } else { Ok(0) };
        let description = self.opened(&descriptor, flags.map(Some), begin)?;
        self.put(call.thread, descriptor.number, &description)
    }

    fn put(
        &mut self,
        thread: u32,
        number: i32,
        description: &Rc<RefCell<Description>>,
    ) -> Result<(), String> {
        match self.threads.get(&thread) {
            Some(thread) => put(&thread.descriptors, number, description),
            None => Ok(()),
        }
    }

    fn copied(&mut self, call: &Call<'_>) -> Result<(), String> {
        let from = call.arguments.first().and_then(|it| line::descriptor(it));
        let to = line::descriptor(call.returned.text);
        let (Some(from), Some(to)) = (from, to) else { return Ok(()) };
        let description = self.description(call.thread, &from)?;
        self.put(call.thread, to.number, &description)
    }

    fn seek(&mut self, call: &Call<'_>) -> Result<(), String> {
        let descriptor = call.arguments.first().and_then(|it| line::descriptor(it));
        // _llseek returns where it is through its third argument.
        let result = match call.name {
            "lseek" => call.returned.value.and_then(|it| u64::try_from(it).ok()),
            _ => call.arguments.get(2).and_then(|it| it.trim_matches(['[', ']']).parse().ok()),
        };
        if let (Some(descriptor), Some(position)) = (descriptor, result) {
            let description = self.description(call.thread, &descriptor)?;
            let mut description = description.borrow_mut();
            // What is appended goes to the end, wherever a seek went.
            let is_end = call.arguments.last() == Some(&"SEEK_END");
            let is_told = !description.append || is_end;
            description.position = if is_told { Ok(position) } else { Err(Unknown::Position) };
        }
        Ok(())
    }

    fn forked(&mut self, call: &Call<'_>) -> Result<(), String> {
        let child = call.returned.value.and_then(|it| u32::try_from(it).ok());
        let Some(child) = child.filter(|it| *it > 0) else { return Ok(()) };
        // Its lines may have come before the call returned.
        if self.threads.contains_key(&child) {
            return Ok(());
        }
        let flags = call.arguments.join(",");
        let made = self.threads.get(&call.thread).map(|it| it.child(child, &flags));
        made.map_or(Ok(()), |made| self.keep(child, made))
    }

    fn of_file(&mut self, call: &Call<'_>) -> Result<(), String> {
        let Some(descriptor) = call.arguments.first().and_then(|it| line::descriptor(it)) else {
            return Ok(());
        };
        let description = self.description(call.thread, &descriptor)?;
        let mut operation = self.begun(call, description.borrow().file);
        if let Some(call_name) = sync(call.name) {
            operation.asked = Asked::Sync(call_name);
            operation.asked_bytes = Ok(0);
            operation.done_bytes = operation.done_bytes.map(|_| 0);
        } else if call.name == "fallocate" {
            let punches = call.arguments.get(1).is_some_and(|it| it.contains("PUNCH_HOLE"));
            operation.asked = if punches { Asked::Discard } else { Asked::Allocate };
            operation.offset_bytes = number(call.arguments.get(2));
            operation.asked_bytes = number(call.arguments.get(3));
            operation.done_bytes = operation.asked_bytes;
        } else if let Some((engine, asked, place)) = data(call.name) {
            (operation.engine, operation.asked) = (engine, asked);
            let is_vector = matches!(engine, Engine::Vsync | Engine::Pvsync | Engine::Pvsync2);
            operation.asked_bytes = if is_vector {
                bytes_of_vector(call.arguments.get(1))
            } else {
                number(call.arguments.get(2))
            };
            let flags = call.arguments.get(4).copied().unwrap_or("");
            operation.synchronous = flags.contains("SYNC");
            operation.offset_bytes = match place {
                Place::Argument if call.arguments.get(3) != Some(&"-1") => {
                    number(call.arguments.get(3))
                }
                _ => moved(&description, operation.done_bytes),
            };
        }
        self.operation(&operation);
        Ok(())
    }

    /// What all operations of calls have in common; the bytes are what the call returned.
    fn begun(&mut self, call: &Call<'_>, file: u32) -> FileOperation {
        let process = self.threads.get(&call.thread).map_or(call.thread, |it| it.process);
        let around = self.in_flight.get(&file).copied().unwrap_or(0);
        let done = match call.returned.value {
            Some(value) => u64::try_from(value).or(Ok(0)),
            None => Err(Unknown::NotEnded),
        };
        FileOperation {
            start_ns: call.start_ns,
            duration_ns: call.returned.duration.and_then(nanoseconds).ok_or(Unknown::NotRecorded),
            process,
            thread: call.thread,
            file,
            engine: Engine::Sync,
            asked: Asked::Read,
            offset_bytes: Ok(0),
            asked_bytes: Ok(0),
            done_bytes: done,
            synchronous: false,
            in_flight: Ok(call.in_flight.unwrap_or(around + 1)),
            error: call.returned.error.map_or(0, errno),
        }
    }

    /// Bytes from one file into another: a read and a write. Which arguments are the files, and
    /// where they begin.
    fn spliced(
        &mut self,
        call: &Call<'_>,
        files: [usize; 2],
        places: [Option<usize>; 2],
        length: usize,
    ) -> Result<(), String> {
        for (side, asked) in [Asked::Read, Asked::Write].into_iter().enumerate() {
            let descriptor = call.arguments.get(files[side]).and_then(|it| line::descriptor(it));
            let Some(descriptor) = descriptor else { continue };
            let description = self.description(call.thread, &descriptor)?;
            let begun = self.begun(call, description.borrow().file);
            let place = places[side].and_then(|at| call.arguments.get(at)).copied();
            let offset_bytes = match place {
                None | Some("NULL") => moved(&description, begun.done_bytes),
                // Where it began, and where it ended.
                Some(text) => {
                    let first = text.split(" => ").next().unwrap_or("");
                    number(Some(&first.trim_matches(['[', ']'])))
                }
            };
            let asked_bytes = number(call.arguments.get(length));
            let engine = Engine::Splice;
            self.operation(&FileOperation { engine, asked, offset_bytes, asked_bytes, ..begun });
        }
        Ok(())
    }

    fn submitted(&mut self, call: &Call<'_>) -> Result<(), String> {
        let taken = call.returned.value.and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
        let (Some(context), Some(requests)) = (call.arguments.first(), call.arguments.get(2))
        else {
            return Ok(());
        };
        self.cannot_see(AIO);
        for request in line::elements(requests).into_iter().take(taken) {
            let fields = line::elements(request);
            let field = |name: &str| {
                let named = fields.iter().find_map(|it| it.strip_prefix(name));
                named.and_then(|it| it.strip_prefix('='))
            };
            let asked = match field("aio_lio_opcode") {
                Some("IOCB_CMD_PREAD" | "IOCB_CMD_PREADV") => Asked::Read,
                Some("IOCB_CMD_PWRITE" | "IOCB_CMD_PWRITEV") => Asked::Write,
                Some("IOCB_CMD_FSYNC") => Asked::Sync(SyncCall::Fsync),
                Some("IOCB_CMD_FDSYNC") => Asked::Sync(SyncCall::Fdatasync),
                _ => continue,
            };
            let Some(descriptor) = field("aio_fildes").and_then(line::descriptor) else { continue };
            let description = self.description(call.thread, &descriptor)?;
            let file = description.borrow().file;
            let in_flight = self.requested(context, file)?;
            let begun = self.begun(call, file);
            let is_sync = matches!(asked, Asked::Sync(_));
            self.operation(&FileOperation {
                engine: Engine::Libaio,
                asked,
                duration_ns: Err(Unknown::NotRecorded),
                offset_bytes: number(field("aio_offset").as_ref()),
                asked_bytes: number(field("aio_nbytes").as_ref()),
                done_bytes: if is_sync { Ok(0) } else { Err(Unknown::NotRecorded) },
                in_flight,
                ..begun
            });
        }
        Ok(())
    }

    /// Requests in flight in a context with one more. They are those of a file if all are.
    fn requested(&mut self, context: &str, file: u32) -> Result<Known<u32>, String> {
        if self.contexts.len() >= KEPT_MAX {
            return Err(format!("more than {KEPT_MAX} contexts of io_submit"));
        }
        let (count, of) = self.contexts.entry(context.to_owned()).or_insert((0, Some(file)));
        *count = count.saturating_add(1);
        *of = of.filter(|it| *it == file);
        Ok(if of.is_some() { Ok(*count) } else { Err(Unknown::NotRecorded) })
    }

    pub(super) fn not_ended(&mut self, thread: u32, pending: &Pending) {
        let Some((file, in_flight)) = pending.in_flight else { return };
        let (engine, asked) = match (data(&pending.name), sync(&pending.name)) {
            (Some((engine, asked, _)), _) => (engine, asked),
            (_, Some(call)) => (Engine::Sync, Asked::Sync(call)),
            _ => return,
        };
        self.operation(&FileOperation {
            start_ns: pending.start_ns,
            duration_ns: Err(Unknown::NotEnded),
            process: self.threads.get(&thread).map_or(thread, |it| it.process),
            thread,
            file,
            engine,
            asked,
            offset_bytes: Err(Unknown::NotEnded),
            asked_bytes: Err(Unknown::NotEnded),
            done_bytes: Err(Unknown::NotEnded),
            synchronous: false,
            in_flight: Ok(in_flight),
            error: 0,
        });
    }
}

/// Where a call began that goes by the position, which it moves.
fn moved(description: &RefCell<Description>, done: Known<u64>) -> Known<u64> {
    let mut description = description.borrow_mut();
    let begin = description.position;
    description.position = begin.and_then(|begin| Ok(begin.saturating_add(done?)));
    begin
}

/// Of an error's name; -1 for one that is not among those that reads, writes and syncs end with.
fn errno(name: &str) -> i32 {
    match name {
        "EPERM" => libc::EPERM,
        "EINTR" | "ERESTARTSYS" => libc::EINTR,
        "EIO" => libc::EIO,
        "ENXIO" => libc::ENXIO,
        "EBADF" => libc::EBADF,
        "EAGAIN" => libc::EAGAIN,
        "ENOMEM" => libc::ENOMEM,
        "EFAULT" => libc::EFAULT,
        "EISDIR" => libc::EISDIR,
        "EINVAL" => libc::EINVAL,
        "EFBIG" => libc::EFBIG,
        "ENOSPC" => libc::ENOSPC,
        "EROFS" => libc::EROFS,
        "EPIPE" => libc::EPIPE,
        "EDQUOT" => libc::EDQUOT,
        "ECONNRESET" => libc::ECONNRESET,
        "EOPNOTSUPP" => libc::EOPNOTSUPP,
        _ => -1,
    }
}
