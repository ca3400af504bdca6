//! Directories that get their metadata after everything in them has been restored.
//!
//! There may be millions of them, with ACLs, so they are kept as bytes, at most [`KEPT_BYTES`] in
//! memory. The excess is sorted and written to a file without a name, as a *run*. At the end the
//! runs are merged. A directory gets its metadata only if the path still leads to the directory
//! that was made or found there.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use base::interruptible::openat;
use machine::unnamed_file;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, chmodat, fstat};
use rustix::io::Errno;

use crate::attributes::{Handle, proc_path};
use crate::deferred::record::Record;
use crate::destination::Destination;
use crate::folder::Inheritance;
use crate::metadata::{Metadata, MetadataPart, MetadataProblem, Problems};
use crate::resolve::{Beneath, Missing, Refusal, ResolveError};
pub(crate) use made::Made;

mod made;
mod record;

/// Bytes of records that stay in memory.
const KEPT_BYTES: usize = 8 << 20;
/// Bytes of each run that are read at once.
const READ_BYTES: usize = 64 << 10;

/// The directories that wait.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    kept: Vec<u8>,
    /// Where each record in `kept` begins.
    begins: Vec<u32>,
    file: Option<File>,
    /// Where each run ends. Each begins at the end of the previous one.
    runs_end: Vec<u64>,
}

impl Deferred {
    /// Adds the directory at a checked path. If a path is added twice, the last one counts.
    ///
    /// # Errors
    /// When there is no room in memory, and none in the folder for temporary files.
    pub(crate) fn add(&mut self, path: &[u8], metadata: &Metadata, made: Made) -> io::Result<()> {
        if self.kept.len() >= KEPT_BYTES {
            self.spill()?;
        }
        let begin = u32::try_from(self.kept.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        Record::append(&mut self.kept, path, metadata, made);
        self.begins.push(begin);
        Ok(())
    }

    /// Writes the records in memory to the file, as a run.
    fn spill(&mut self) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(unnamed_file()?),
        };
        let mut end = self.runs_end.last().copied().unwrap_or(0);
        let mut buffer = Vec::with_capacity(1 << 20);
        for begin in sorted(&self.kept, &self.begins) {
            buffer
                .extend_from_slice(Record::whole(&self.kept[begin as usize..]).unwrap_or_default());
            if buffer.len() >= 1 << 20 {
                file.write_all_at(&buffer, end)?;
                end += buffer.len() as u64;
                buffer.clear();
            }
        }
        file.write_all_at(&buffer, end)?;
        self.runs_end.push(end + buffer.len() as u64);
        self.kept.clear();
        self.begins.clear();
        Ok(())
    }

    /// Gives all directories their metadata, deepest first, and returns their number.
    pub(crate) fn apply(
        self,
        destination: &Destination,
        report: &mut impl FnMut(MetadataProblem),
    ) -> u64 {
        let mut count = 0;
        let result = self.each(&mut |record| {
            count += 1;
            let path = if record.path.is_empty() { b"." } else { &record.path[..] };
            let mut problems = Problems::of(path);
            apply_one(destination, &record, &mut problems);
            destination.take_problems(problems).into_iter().for_each(&mut *report);
        });
        if let Err(error) = result {
            let mut problems = Problems::of(b".");
            problems.tell(MetadataPart::Directory, error);
            problems.found.into_iter().for_each(report);
        }
        count
    }

    /// Calls `each` with one record for each path. A path sorts after all of its prefixes, so
    /// descending order is deepest first.
    fn each(self, each: &mut dyn FnMut(Record)) -> io::Result<()> {
        let mut runs = Vec::new();
        let mut begin = 0;
        for end in &self.runs_end {
            let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
            runs.push(Run::InFile { file, at: begin, end: *end, read: Vec::new(), used: 0 });
            begin = *end;
        }
        let begins = sorted(&self.kept, &self.begins);
        runs.push(Run::InMemory { kept: &self.kept, begins: begins.into_iter() });
        let mut heads = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            heads.extend(run.next()?.map(|record| Head { record, number }));
        }
        let mut last: Option<Vec<u8>> = None;
        while let Some(Head { record, number }) = heads.pop() {
            heads.extend(runs[number].next()?.map(|record| Head { record, number }));
            if last.as_ref() != Some(&record.path) {
                last = Some(record.path.clone());
                each(record);
            }
        }
        Ok(())
    }
}

/// The next record of a run. Among records of one path the latest sorts highest: it is in the
/// latest run.
struct Head {
    record: Record,
    number: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        (&self.record.path, self.number).cmp(&(&other.record.path, other.number))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}

/// The beginnings of the records: highest path first, and latest first for the same path.
fn sorted(kept: &[u8], begins: &[u32]) -> Vec<u32> {
    let mut begins = begins.to_vec();
    begins
        .sort_unstable_by_key(|&begin| Reverse((Record::path_of(&kept[begin as usize..]), begin)));
    begins
}

/// Records in descending order.
enum Run<'a> {
    InMemory { kept: &'a [u8], begins: std::vec::IntoIter<u32> },
    InFile { file: &'a File, at: u64, end: u64, read: Vec<u8>, used: usize },
}

impl Run<'_> {
    fn next(&mut self) -> io::Result<Option<Record>> {
        match self {
            Run::InMemory { kept, begins } => {
                Ok(begins.next().map(|begin| Record::parse(&kept[begin as usize..])))
            }
            Run::InFile { file, at, end, read, used } => loop {
                let rest = &read[*used..];
                if let Some(record) = Record::whole(rest) {
                    *used += record.len();
                    return Ok(Some(Record::parse(record)));
                }
                let bytes = (*end - *at).min(READ_BYTES as u64);
                if bytes == 0 {
                    return Ok(None);
                }
                read.drain(..std::mem::take(used));
                let from = read.len();
                read.resize(from + bytes as usize, 0);
                file.read_exact_at(&mut read[from..], *at)?;
                *at += bytes;
            },
        }
    }
}

fn apply_one(destination: &Destination, record: &Record, problems: &mut Problems<'_>) {
    match open(&destination.beneath, record) {
        Ok(Some(directory)) => match fstat(&directory) {
            Ok(stat) => {
                let handle = Handle::Open(directory.as_fd());
                let (policy, inheritance) = (destination.policy(), record.made.inheritance);
                policy.apply(handle, &record.metadata, &stat, inheritance, problems);
            }
            Err(error) => problems.note(Err(error), || MetadataPart::Directory),
        },
        Ok(None) => {
            let other = io::Error::other("another directory replaced it");
            problems.tell(MetadataPart::Directory, other);
        }
        Err(error) => problems.note(Err(error), || MetadataPart::Directory),
    }
}

/// Opens a directory so that all metadata can be set on it; `None` if it is not the one that was
/// made.
fn open(beneath: &Beneath, record: &Record) -> Result<Option<OwnedFd>, Errno> {
    let found = beneath.directory(&record.path, Missing::Fail).map_err(|error| match error {
        ResolveError::Io(error) => error,
        ResolveError::Refused(Refusal::SymbolicLink) => Errno::LOOP,
        ResolveError::Refused(_) => Errno::NOTDIR,
    })?;
    if !record.made.is_same(&Made::of(found.as_fd(), Inheritance::Nothing)?) {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(&found, c".", flags, Mode::empty()) {
        // Our own directory without read permission: it existed before, or an earlier run made it
        // so.
        Err(Errno::ACCESS) => {
            chmodat(CWD, &*proc_path(&found), Mode::from_raw_mode(0o700), AtFlags::empty())?;
            openat(&found, c".", flags, Mode::empty())
        }
        result => result,
    }
    .map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{ArchivedOwner, Extra};
    use archive::member::Timestamp;

    fn metadata(number: u32, acl_bytes: usize) -> Metadata {
        let owner =
            ArchivedOwner { uid: (!number.is_multiple_of(3)).then_some(number), gid: Some(7) };
        let modified = Timestamp { seconds: -i64::from(number), nanoseconds: number };
        let extra = (acl_bytes > 0).then(|| {
            Box::new(Extra {
                privileged: vec![
                    (b"trusted.a".to_vec(), vec![1; 3]),
                    (b"trusted.b".into(), vec![]),
                ],
                acl_default: Some(vec![number as u8; acl_bytes]),
                ..Extra::default()
            })
        });
        Metadata { archived_owner: owner, mode: number & 0o7777, lost_bits: false, modified, extra }
    }

    /// Several runs, records longer than one read, paths repeated in a later run: each path comes
    /// once, deepest first, with the last record added.
    #[test]
    fn runs_are_merged() {
        let made =
            |number| Made { device: 1, inode: number, born: 2, inheritance: Inheritance::Acl };
        let mut deferred = Deferred::default();
        let mut expected = std::collections::BTreeMap::new();
        for number in 0..1000_u32 {
            let path = format!("a/{}", number * 7 % 400).into_bytes();
            let metadata = metadata(number, if number % 9 == 0 { 100_000 } else { 0 });
            deferred.add(&path, &metadata, made(u64::from(number))).unwrap();
            expected.insert(path, (metadata, made(u64::from(number))));
            if number % 300 == 299 {
                deferred.spill().unwrap();
                assert!(deferred.kept.is_empty());
            }
        }
        assert_eq!(deferred.runs_end.len(), 3);
        let mut found = Vec::new();
        deferred.each(&mut |record| found.push(record)).unwrap();
        assert_eq!(found.len(), 400);
        for (record, (path, (metadata, made))) in found.iter().zip(expected.iter().rev()) {
            assert_eq!(&record.path, path);
            assert_eq!(record.made, *made);
            assert_eq!(record.metadata, *metadata);
        }
    }

    /// The memory in use does not grow with the number of records.
    #[test]
    fn memory_is_bounded() {
        let made = Made { device: 1, inode: 2, born: 3, inheritance: Inheritance::Nothing };
        let mut deferred = Deferred::default();
        let large = metadata(1, 1 << 20);
        for number in 0..40_u32 {
            deferred.add(number.to_string().as_bytes(), &large, made).unwrap();
            assert!(deferred.kept.len() < KEPT_BYTES + (2 << 20));
        }
        assert_eq!(deferred.runs_end.len(), 4);
    }
}
