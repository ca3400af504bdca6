//! Open files of processes, kept true by what is seen of them: several descriptors may stand for
//! one open file, which has the position (open(2), "open file descriptions").

use std::collections::{BTreeMap, HashMap};

use super::files::{Files, Looked, OnExec};
use crate::operation::{FileNumber, Known, Recording, Unknown};

/// More descriptors of one process are looked at again each time.
const DESCRIPTORS_MAX: usize = 1 << 16;
/// How often a position is asked for that moves whenever it is looked at.
const LOOKS_MAX: u32 = 16;

/// An open file, by its number here.
pub(super) type OpenNumber = usize;

/// An open file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) file: FileNumber,
    position: Known<u64>,
    /// What ended before was in the position when it was looked at.
    since_ns: u64,
    looks: u32,
    references: usize,
}

/// A descriptor of a process.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    open: OpenNumber,
    on_exec: OnExec,
}

/// All open files.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    processes: HashMap<u32, BTreeMap<u32, Descriptor>>,
    open: Vec<Open>,
    free: Vec<OpenNumber>,
}

impl Descriptors {
    /// What a descriptor stands for; looked up where it was not met before. `None` where it can
    /// not be looked up.
    pub(super) fn get(
        &mut self,
        process: u32,
        descriptor: u32,
        files: &mut Files,
        to: &mut dyn Recording,
    ) -> Known<OpenNumber> {
        if let Some(number) = self.known(process, descriptor) {
            return Ok(number);
        }
        let looked = Looked::at(process, descriptor)?;
        let file = files.number(&looked, to);
        let open = self.open(file, looked.position, looked.at_ns);
        self.set(process, descriptor, Descriptor { open, on_exec: looked.on_exec });
        Ok(open)
    }

    /// What a descriptor stands for, if it was met.
    pub(super) fn known(&self, process: u32, descriptor: u32) -> Option<OpenNumber> {
        Some(self.processes.get(&process)?.get(&descriptor)?.open)
    }

    /// A descriptor stands for an open file of its own from now on, which was opened then.
    pub(super) fn put(
        &mut self,
        (process, descriptor): (u32, u32),
        file: FileNumber,
        on_exec: OnExec,
        opened_ns: u64,
    ) {
        let open = self.open(file, Ok(0), opened_ns);
        self.set(process, descriptor, Descriptor { open, on_exec });
    }

    fn open(&mut self, file: FileNumber, position: Known<u64>, since_ns: u64) -> OpenNumber {
        let open = Open { file, position, since_ns, looks: 1, references: 0 };
        match self.free.pop() {
            Some(number) => {
                self.open[number] = open;
                number
            }
            None => {
                self.open.push(open);
                self.open.len() - 1
            }
        }
    }

    fn set(&mut self, process: u32, number: u32, descriptor: Descriptor) {
        self.open[descriptor.open].references += 1;
        let table = self.processes.entry(process).or_default();
        let before = table.insert(number, descriptor);
        let is_full = table.len() > DESCRIPTORS_MAX;
        if let Some(before) = before {
            self.release(before.open);
        }
        if is_full {
            self.close(process, number);
        }
    }

    fn release(&mut self, number: OpenNumber) {
        let open = &mut self.open[number];
        open.references = open.references.saturating_sub(1);
        if open.references == 0 {
            self.free.push(number);
        }
    }

    /// A descriptor is closed.
    pub(super) fn close(&mut self, process: u32, descriptor: u32) {
        let table = self.processes.get_mut(&process);
        if let Some(gone) = table.and_then(|table| table.remove(&descriptor)) {
            self.release(gone.open);
        }
    }

    /// All from one to another are closed.
    pub(super) fn close_range(&mut self, process: u32, first: u32, last: u32) {
        let Some(table) = self.processes.get(&process) else { return };
        let found: Vec<u32> = table.range(first..=last.max(first)).map(|it| *it.0).collect();
        for descriptor in found {
            self.close(process, descriptor);
        }
    }

    /// Another descriptor stands for the same open file.
    pub(super) fn duplicate(&mut self, process: u32, from: u32, to: u32, on_exec: OnExec) {
        match self.known(process, from) {
            Some(open) if from != to => self.set(process, to, Descriptor { open, on_exec }),
            Some(_) => {}
            // What it stood for before, it does no more.
            None => self.close(process, to),
        }
    }

    /// A process has all that another one has.
    pub(super) fn fork(&mut self, from: u32, to: u32) {
        let Some(table) = self.processes.get(&from).cloned() else { return };
        for (number, descriptor) in table {
            self.set(to, number, descriptor);
        }
    }

    /// A process has ended.
    pub(super) fn forget(&mut self, process: u32) {
        for gone in self.processes.remove(&process).unwrap_or_default().into_values() {
            self.release(gone.open);
        }
    }

    /// These descriptors are closed in the next program, or are not.
    pub(super) fn set_on_exec(&mut self, process: u32, first: u32, last: u32, on_exec: OnExec) {
        let Some(table) = self.processes.get_mut(&process) else { return };
        for (_, descriptor) in table.range_mut(first..=last.max(first)) {
            descriptor.on_exec = on_exec;
        }
    }

    /// A process runs another program. What `/proc` shows of it may be later by a while, when that
    /// program has closed what it had written to, or has ended.
    pub(super) fn exec(&mut self, process: u32) {
        let Some(table) = self.processes.get(&process) else { return };
        let closed = table.iter().filter(|(_, it)| it.on_exec == OnExec::Closes);
        let gone: Vec<u32> = closed.map(|(number, _)| *number).collect();
        for descriptor in gone {
            self.close(process, descriptor);
        }
    }

    /// It is another file now: opened in another way.
    pub(super) fn set_file(&mut self, number: OpenNumber, file: FileNumber) {
        self.open[number].file = file;
    }

    /// The file of an open file.
    pub(super) fn file(&self, number: OpenNumber) -> FileNumber {
        self.open[number].file
    }

    /// The files that a process has open.
    pub(super) fn files_of(&self, process: u32) -> impl Iterator<Item = FileNumber> + '_ {
        let table = self.processes.get(&process).into_iter().flatten();
        table.map(|(_, descriptor)| self.open[descriptor.open].file)
    }

    /// A call that began and ended at these times moved the position on; where it began.
    pub(super) fn advance(
        &mut self,
        number: OpenNumber,
        start_ns: u64,
        end_ns: u64,
        bytes: u64,
    ) -> Known<u64> {
        let open = &mut self.open[number];
        if end_ns < open.since_ns {
            return Err(Unknown::Position);
        }
        if start_ns < open.since_ns {
            // It was looked at within the call, before or behind the moment that moved it.
            open.position = Err(Unknown::Position);
        }
        let before = open.position?;
        open.position = Ok(before.saturating_add(bytes));
        Ok(before)
    }

    /// Asks for a position that is not known, if it was not asked for too often.
    pub(super) fn look_again(&mut self, number: OpenNumber, process: u32, descriptor: u32) {
        let open = &mut self.open[number];
        if open.position.is_ok() || open.looks >= LOOKS_MAX {
            return;
        }
        open.looks += 1;
        if let Ok(looked) = Looked::at(process, descriptor) {
            open.position = looked.position;
            open.since_ns = looked.at_ns;
        }
    }

    /// The position is told.
    pub(super) fn seek(&mut self, number: OpenNumber, end_ns: u64, position: u64) {
        let open = &mut self.open[number];
        if end_ns >= open.since_ns {
            open.position = Ok(position);
        }
    }

    /// Nothing is known of positions any more: events were lost. Nor is what was closed or is to
    /// be: in the next program each is looked at anew.
    pub(super) fn lose(&mut self) {
        let all = self.processes.values_mut().flat_map(BTreeMap::values_mut);
        all.for_each(|descriptor| descriptor.on_exec = OnExec::Closes);
        for open in &mut self.open {
            open.position = Err(Unknown::Position);
            open.looks = 0;
        }
    }
}
