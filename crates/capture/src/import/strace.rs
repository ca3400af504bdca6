//! Files that `strace -f -ttt -T -yy -o FILE` wrote.
//!
//! Where `read` and `write` begin is followed from each open, through lseek, dup, fork and clone;
//! of a descriptor that was open before, it is not known until a seek says it. What a trace does
//! not have is told as such: requests of a ring, pages of a mapping, when a request of libaio
//! ended.

mod calls;
mod line;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::io::BufRead;
use std::rc::Rc;

use self::line::{Descriptor, Line};
use super::super::operation::{
    FileKind, FileNumber, FileOperation, Known, OpenedFile, Recording, Unknown,
};
use super::{Imported, KEPT_MAX, Lines, RecordingError, nanoseconds};

/// Bytes of arguments of one call that has not ended; what is behind them is not looked at.
const PENDING_BYTES_MAX: usize = 1 << 16;

/// Hands all operations of `input` to `recording`.
pub fn import(
    input: impl BufRead,
    recording: &mut dyn Recording,
) -> Result<Imported, RecordingError> {
    let mut lines = Lines::of(input);
    let mut trace = Trace::new(recording);
    while let Some(text) = lines.next()? {
        if !text.trim().is_empty() {
            trace.line(&text).map_err(|what| lines.error(what))?;
        }
    }
    trace.finish();
    let (operations, unseen) = (trace.operations, trace.unseen);
    if operations == 0 {
        let hint = "make one with `strace -f -ttt -T -yy -o FILE COMMAND`";
        return Err(RecordingError::Nothing { lines: lines.number, hint });
    }
    Ok(Imported { lines: lines.number, operations, unseen })
}

/// A file as it was opened once: what descriptors that were copied from one another share.
#[derive(Debug)]
struct Description {
    file: FileNumber,
    path: Option<String>,
    position: Known<u64>,
    /// Writes go to the end of the file, wherever that is.
    append: bool,
}

/// The descriptors of a process, or of several that share them.
type Descriptors = Rc<RefCell<HashMap<i32, Rc<RefCell<Description>>>>>;

/// A thread.
#[derive(Debug)]
struct Thread {
    process: u32,
    descriptors: Descriptors,
    pending: Option<Pending>,
}

/// A call that has not ended.
#[derive(Debug)]
struct Pending {
    name: String,
    arguments: String,
    start_ns: u64,
    /// The file that it is on, and how many calls were on it with this one.
    in_flight: Option<(FileNumber, u32)>,
}

/// One call, whole.
struct Call<'a> {
    name: &'a str,
    arguments: Vec<&'a str>,
    returned: line::Returned<'a>,
    thread: u32,
    start_ns: u64,
    /// Calls on its file when it began, itself included, where it was counted then.
    in_flight: Option<u32>,
}

struct Trace<'a> {
    recording: &'a mut dyn Recording,
    threads: HashMap<u32, Thread>,
    /// Threads within a call that makes a thread or a process.
    making: BTreeSet<u32>,
    /// Openings that are handed on: path and flags.
    files: HashMap<(Option<String>, [Option<bool>; 3]), FileNumber>,
    in_flight: HashMap<FileNumber, u32>,
    /// Requests of each context of libaio, and whether all were of one file.
    contexts: HashMap<String, (u32, Option<FileNumber>)>,
    operations: u64,
    unseen: Vec<String>,
}

impl<'a> Trace<'a> {
    fn new(recording: &'a mut dyn Recording) -> Trace<'a> {
        Trace {
            recording,
            threads: HashMap::new(),
            making: BTreeSet::new(),
            files: HashMap::new(),
            in_flight: HashMap::new(),
            contexts: HashMap::new(),
            operations: 0,
            unseen: Vec::new(),
        }
    }

    fn line(&mut self, text: &str) -> Result<(), String> {
        let (thread, start_ns, text) = stamped(text)?;
        let line = line::line(text).ok_or("not a line of strace")?;
        match line {
            Line::Other => Ok(()),
            Line::Exited => {
                self.making.remove(&thread);
                if let Some(pending) = self.threads.remove(&thread).and_then(|it| it.pending) {
                    self.landed(&pending);
                }
                Ok(())
            }
            Line::Unfinished(name, arguments) => self.unfinished(thread, start_ns, name, arguments),
            Line::Call(name, rest) => self.call(thread, start_ns, name, rest, None),
            Line::Resumed(name, rest) => {
                let pending = self.threads.get_mut(&thread).and_then(|it| it.pending.take());
                self.making.remove(&thread);
                // Where the recording began in the midst of a call, its beginning is missing.
                let Some(pending) = pending.filter(|it| it.name == name) else { return Ok(()) };
                self.landed(&pending);
                let in_flight = pending.in_flight.map(|(_, count)| count);
                let whole = format!("{}{rest}", pending.arguments);
                self.call(thread, pending.start_ns, name, &whole, in_flight)
            }
        }
    }

    fn unfinished(
        &mut self,
        thread: u32,
        start_ns: u64,
        name: &str,
        arguments: &str,
    ) -> Result<(), String> {
        self.thread(thread)?;
        let in_flight = if calls::is_of_file(name) {
            let (parts, _) = line::parts_so_far(arguments);
            let descriptor = parts.first().and_then(|it| line::descriptor(it));
            let file = descriptor.map(|it| self.description(thread, &it)).transpose()?;
            file.map(|it| {
                let number = it.borrow().file;
                let count = self.in_flight.entry(number).or_default();
                *count += 1;
                (number, *count)
            })
        } else {
            None
        };
        let mut kept = arguments.to_owned();
        let mut end = kept.len().min(PENDING_BYTES_MAX);
        while !kept.is_char_boundary(end) {
            end -= 1;
        }
        kept.truncate(end);
        let pending = Pending { name: name.to_owned(), arguments: kept, start_ns, in_flight };
        if calls::makes_a_process(name) {
            self.making.insert(thread);
        } else {
            self.making.remove(&thread);
        }
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.pending = Some(pending);
        }
        Ok(())
    }

    /// A call is not in flight any more.
    fn landed(&mut self, pending: &Pending) {
        if let Some((file, _)) = pending.in_flight
            && let Some(count) = self.in_flight.get_mut(&file)
        {
            *count = count.saturating_sub(1);
        }
    }

    fn call(
        &mut self,
        thread: u32,
        start_ns: u64,
        name: &str,
        rest: &str,
        in_flight: Option<u32>,
    ) -> Result<(), String> {
        self.thread(thread)?;
        let Some((arguments, rest)) = line::arguments(rest) else {
            return Err(format!("the call of {name} has no closing bracket"));
        };
        let returned = line::returned(rest)
            .ok_or_else(|| format!("the call of {name} has no return value"))?;
        self.done(&Call { name, arguments, returned, thread, start_ns, in_flight })
    }

    /// The thread of a number. One that is new belongs to the process that is just making one.
    fn thread(&mut self, number: u32) -> Result<(), String> {
        if self.threads.contains_key(&number) {
            return Ok(());
        }
        let only = self.making.first().filter(|_| self.making.len() == 1);
        let child = match only.and_then(|maker| self.threads.get(maker)) {
            Some(maker) => {
                let flags = maker.pending.as_ref().map_or("", |it| it.arguments.as_str());
                maker.child(number, flags)
            }
            _ => Thread { process: number, descriptors: Rc::default(), pending: None },
        };
        self.keep(number, child)
    }

    fn keep(&mut self, number: u32, thread: Thread) -> Result<(), String> {
        if self.threads.len() >= KEPT_MAX {
            return Err(format!("more than {KEPT_MAX} threads at once"));
        }
        // Each child has a copy of what is open.
        let open = thread.descriptors.borrow().len();
        if open.saturating_mul(self.threads.len()) > 16 * KEPT_MAX {
            let threads = self.threads.len();
            return Err(format!("too many descriptors: {open} in each of {threads} threads"));
        }
        self.threads.insert(number, thread);
        Ok(())
    }

    /// What a descriptor stands for in a thread's process; one that was open before the recording
    /// began is made now.
    fn description(
        &mut self,
        thread: u32,
        descriptor: &Descriptor,
    ) -> Result<Rc<RefCell<Description>>, String> {
        let descriptors = self.threads.get(&thread).map(|it| Rc::clone(&it.descriptors));
        let Some(descriptors) = descriptors else { return Err("an unknown thread".to_owned()) };
        let known = descriptors.borrow().get(&descriptor.number).cloned();
        // Under another name it is another file: a program that is started closes some.
        let is_same = |it: &Description| descriptor.path.is_none() || it.path == descriptor.path;
        if let Some(known) = known.filter(|it| is_same(&it.borrow())) {
            return Ok(known);
        }
        let description = self.opened(descriptor, [None; 3], Err(Unknown::Position))?;
        put(&descriptors, descriptor.number, &description)?;
        Ok(description)
    }

    /// A file that was opened; `flags` are direct, synchronous and append.
    fn opened(
        &mut self,
        descriptor: &Descriptor,
        flags: [Option<bool>; 3],
        position: Known<u64>,
    ) -> Result<Rc<RefCell<Description>>, String> {
        let key = (descriptor.path.clone(), flags);
        let count = self.files.len();
        let file = match self.files.get(&key) {
            // Without names each may be another one.
            Some(number) if key.0.is_some() => *number,
            _ if count >= KEPT_MAX => return Err(format!("it opens more than {KEPT_MAX} files")),
            _ => {
                let number = FileNumber::try_from(count).unwrap_or(FileNumber::MAX);
                let [direct, synchronous, append] = flags.map(|it| it.ok_or(Unknown::NotRecorded));
                let file = OpenedFile {
                    path: descriptor.path.clone().ok_or(Unknown::NotRecorded),
                    kind: descriptor.kind,
                    deleted: descriptor.deleted,
                    direct,
                    synchronous,
                    append,
                    size_bytes: Err(Unknown::NotRecorded),
                };
                self.recording.file(number, &file);
                self.files.insert(key, number);
                number
            }
        };
        let append = flags[2] == Some(true);
        let path = descriptor.path.clone();
        let has_position =
            matches!(descriptor.kind, FileKind::Regular | FileKind::BlockDevice | FileKind::Other);
        let position = if has_position { position } else { Err(Unknown::NotRecorded) };
        Ok(Rc::new(RefCell::new(Description { file, path, position, append })))
    }

    fn cannot_see(&mut self, what: &str) {
        if !self.unseen.iter().any(|it| it == what) {
            self.unseen.push(what.to_owned());
        }
    }

    fn operation(&mut self, operation: &FileOperation) {
        self.operations += 1;
        self.recording.operation(operation);
    }

    /// What has not ended by the end of the recording.
    fn finish(&mut self) {
        let mut pending: Vec<(u32, Pending)> = Vec::new();
        for (number, thread) in &mut self.threads {
            pending.extend(thread.pending.take().map(|it| (*number, it)));
        }
        pending.sort_by_key(|(number, it)| (it.start_ns, *number));
        for (thread, pending) in &pending {
            self.not_ended(*thread, pending);
        }
    }
}

impl Thread {
    /// Its child, made with `flags`.
    fn child(&self, number: u32, flags: &str) -> Thread {
        let descriptors = if flags.contains("CLONE_FILES") {
            Rc::clone(&self.descriptors)
        } else {
            // Each has a table of its own, and both the same positions in it.
            Rc::new(RefCell::new(self.descriptors.borrow().clone()))
        };
        let process = if flags.contains("CLONE_THREAD") { self.process } else { number };
        Thread { process, descriptors, pending: None }
    }
}

fn put(
    descriptors: &Descriptors,
    number: i32,
    description: &Rc<RefCell<Description>>,
) -> Result<(), String> {
    let mut descriptors = descriptors.borrow_mut();
    if descriptors.len() >= KEPT_MAX {
        return Err(format!("more than {KEPT_MAX} descriptors at once"));
    }
    descriptors.insert(number, Rc::clone(description));
    Ok(())
}

/// Process, time in ns, and the rest: `[pid 7] 1.5 ...`, `7 1.5 ...` or `1.5 ...`.
fn stamped(text: &str) -> Result<(u32, u64, &str), String> {
    let text = text.trim_start();
    let no_time = || "no time at its start; use `strace -f -ttt -T -yy -o FILE`".to_owned();
    let word = |text: &str| text.split_ascii_whitespace().next().unwrap_or("").to_owned();
    let (thread, rest) = if let Some(rest) = text.strip_prefix("[pid ") {
        let (number, rest) = rest.split_once(']').ok_or_else(no_time)?;
        (number.trim().parse().map_err(|_| no_time())?, rest.trim_start())
    } else {
        let first = word(text);
        match first.parse() {
            Ok(number) => (number, text[first.len()..].trim_start()),
            Err(_) => (0, text),
        }
    };
    if rest.starts_with("strace: ") {
        return Ok((thread, 0, rest));
    }
    let time = word(rest);
    let start_ns = nanoseconds(&time).filter(|_| time.contains('.')).ok_or_else(no_time)?;
    Ok((thread, start_ns, rest[time.len()..].trim_start()))
}
