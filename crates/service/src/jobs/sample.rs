//! The sample of a job: after each backup a share of all its archives is read back, the parts that
//! were unread the longest first, so that every byte has its turn.

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use archive::label::hex;
use base::format::{counted, size};
use catalogue::FolderSet;
use flow::cancel::Cancel;
use jobs::{Event, RotatedArchive, Share, next_parts};
use runs::verify::{PartOptions, verify_part};

use super::read_back::{ReadPart, VerifiedArchive};
use super::status::Archives;
use crate::failure::Failure;
use crate::journal::note;
use crate::run::{ArchiveSettings, EngineChoice, RunMonitor, RunObserver};
use crate::tape_source::ring_bytes;
use crate::verify::NotVerified;

/// A part of an archive that is to be read.
pub(crate) struct SamplePart {
    set: FolderSet,
    part: Range<u64>,
    /// Bytes of the whole archive, before compression.
    archive_bytes: u64,
}

impl SamplePart {
    /// The name of its archive.
    pub(crate) fn archive(&self) -> String {
        self.set.name()
    }
}

/// What a run reads of the sets of a job; and why some have nothing that can be read by parts.
pub(crate) fn choose(known: &Archives, share: Share) -> (Vec<SamplePart>, Vec<String>) {
    let (mut archives, mut of, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    for set in known.sets() {
        match set.index() {
            Ok(index) => {
                archives.push(RotatedArchive {
                    readings: known.readings(set),
                    archive_bytes: index.trailer.archive_bytes,
                    block_bytes: index.trailer.block_bytes.into(),
                    // A clock that was wrong must not put it off for ever.
                    written_seconds: set.about.begun_seconds.min(now),
                });
                of.push(set);
            }
            Err(error) => failed.push(crate::sets::unreadable(set, &error).message().to_owned()),
        }
    }
    let parts = next_parts(&archives, share.permille()).into_iter().map(|(at, part)| SamplePart {
        set: of[at].clone(),
        part,
        archive_bytes: archives[at].archive_bytes,
    });
    (parts.collect(), failed)
}

/// Reads a part from its medium, and notes what became of it. The failure is that of the note.
///
/// # Errors
/// When the run was stopped. A part that cannot be read is not sound.
pub(crate) fn read(
    sample: &SamplePart,
    engine: EngineChoice,
    observer: &dyn RunObserver,
    cancel: &Cancel,
) -> Result<(VerifiedArchive, Option<Failure>), Failure> {
    let SamplePart { set, part, archive_bytes } = sample;
    let from = set.path.as_path().into();
    let ring_bytes = ring_bytes(&ArchiveSettings::default(), &from);
    let options = PartOptions { from, part: part.clone(), engine: engine.into(), ring_bytes };
    let monitor = RunMonitor::new(observer).watching(Some(&set.path), None);
    let mut unread = false;
    let (sound, text, bytes, seconds) = match verify_part(&options, &monitor, &cancel.part()) {
        Ok(report) => {
            let text = match report.damaged.first() {
                Some(first) => format!("DAMAGED: {first}"),
                None => {
                    let blocks = counted(report.blocks, "block checksum", "block checksums");
                    let (bytes, of) = (size(part.end - part.start), size(*archive_bytes));
                    format!("{bytes} of {of} are sound: checked with {blocks}")
                }
            };
            (report.damaged.is_empty(), text, report.read_bytes, report.seconds)
        }
        Err(error) => {
            let NotVerified { failure, is_of_the_archive } = error.into();
            if cancel.check().is_err() {
                return Err(failure);
            }
            unread = !is_of_the_archive;
            (false, failure.message().to_owned(), 0, 0.0)
        }
    };
    let place = set.path.parent().unwrap_or(std::path::Path::new("."));
    let (of, archive) = (hex(&set.about.set), set.name());
    let event = Event::Sampled {
        set: of.clone(),
        archive: archive.clone(),
        sound,
        from_bytes: part.start,
        to_bytes: part.end,
        archive_bytes: *archive_bytes,
        text: text.clone(),
    };
    let noted = if unread { None } else { note(&set.about.job, place, event).err() };
    let part = ReadPart { from_bytes: part.start, to_bytes: part.end, of_bytes: *archive_bytes };
    let part = Some(part);
    let (set, source) = (of, None);
    let read = VerifiedArchive { set, archive, sound, unread, text, bytes, seconds, part, source };
    Ok((read, noted))
}
