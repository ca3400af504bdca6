//! A trial restore: some files of the newest set, chosen at random, come back into a folder that
//! goes afterwards, and are compared with the hashes of their contents.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use archive::index::{ContentHasher, FileLayout, ObjectKind, RecordKind};
use archive::label::hex;
use base::escape::escape;
use base::failures::with_causes;
use base::format::{counted, size};
use catalogue::{FolderSet, SetsFolder};
use flow::cancel::Cancel;
use jobs::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::random::Random;

use crate::Answer;
use crate::change::SharedChanger;
use crate::failure::{Failure, without_error_numbers};
use crate::journal::note;
use crate::outcome::Outcome;
use crate::restore::{
    RestoreModes, RestoreOverwrite, RestoreOwners, RestorePrivileges, RestoreRequest, restore,
};
use crate::run::{ArchiveSettings, EngineChoice, RunObserver};
use crate::scratch::Scratch;
use crate::sets::{self, SetSelection};
use crate::tape_source::TapeSourceSettings;

/// Files that are chosen.
const FILES: usize = 16;
/// Files that are looked at: some have holes, and so no hash of their whole content.
const CANDIDATES: usize = 256;
/// A larger file is not chosen: a trial is small.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Bytes of all files that are chosen, at most.
const BYTES_MAX: u64 = 1 << 30;
/// Bytes that are hashed at once.
const PART_BYTES: usize = 1 << 20;

/// Which job is tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRequest {
    pub job: String,
    /// The file with the jobs; the user's own where none is named.
    #[serde(default)]
    pub config: Option<PathBuf>,
    /// How files are read and written.
    #[serde(default)]
    pub engine: EngineChoice,
}

/// The end of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialDone {
    pub job: String,
    /// The archive of the set.
    pub archive: String,
    /// Files that came back as they were.
    pub files: u64,
    pub bytes: u64,
    /// What did not, a sentence each.
    pub wrong: Vec<String>,
    /// What is to be known besides.
    pub warnings: Vec<String>,
}

impl Answer for TrialDone {
    const COMMAND: &'static str = "run trial";

    fn command(&self) -> &str {
        "run"
    }
}

impl TrialDone {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        match (self.wrong.is_empty(), self.warnings.is_empty()) {
            (false, _) => Outcome::Bad,
            (true, false) => Outcome::Warned,
            (true, true) => Outcome::Done,
        }
    }
}

/// Tries whether the newest set of a job comes back.
///
/// # Errors
/// When the file with the jobs cannot be used, there is no set that can be restored, or the restore
/// fails as a whole. Files that differ are in the result.
pub fn try_job(
    request: &TrialRequest,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<TrialDone, Failure> {
    let (config, path) = super::read_config(request.config.as_deref())?;
    let (name, job) = config.job(&request.job, &path).map_err(|error| super::failure(&error))?;
    let to = job.to.as_path();
    let known = sets::read(to)?;
    let newest = newest(&known, name.as_str()).ok_or_else(|| {
        let message = format!("{} has no set of {name} that can be restored", to.display());
        Failure::of(message, Some("`takeup list FOLDER/` says what is there"))
    })?;
    let mut done = TrialDone {
        job: name.to_string(),
        archive: newest.name(),
        files: 0,
        bytes: 0,
        wrong: Vec::new(),
        warnings: Vec::new(),
    };
    let mut chosen = with_hashes(&known, newest, choose(newest)?)?;
    chosen.truncate(FILES);
    if chosen.is_empty() {
        done.warnings.push("the set has no file that could be tried".to_owned());
        return Ok(done);
    }
    let scratch = Scratch::make("trial")?;
    let restored = RestoreRequest {
        partial: false,
        from: to.to_owned(),
        set: SetSelection { at: None, job: Some(name.to_string()) },
        into: scratch.0.clone(),
        paths: chosen.iter().map(|file| path_of(&file.path)).collect(),
        strip_components: 0,
        overwrite: RestoreOverwrite::No,
        owners: Some(RestoreOwners::Ignore),
        modes: Some(RestoreModes::Umask),
        privileges: Some(RestorePrivileges::Drop),
        no_xattrs: true,
        no_sync: true,
        archive: ArchiveSettings::default(),
        tape: TapeSourceSettings {
            set: Some(crate::tape_source::SetWanted::Id(hex(&newest.about.set))),
            change_command: job.change_command.as_ref().map(|it| it.as_str().to_owned()),
            ..TapeSourceSettings::default()
        },
        engine: request.engine,
        record: None,
    };
    let result = restore(&restored, observer, cancel, changer)?;
    for file in &chosen {
        match compared(&scratch.0, file) {
            Ok(()) => {
                done.files += 1;
                done.bytes += file.bytes;
            }
            Err(why) => done.wrong.push(format!("{}: {why}", escape(&file.path))),
        }
    }
    if result.outcome() == Outcome::Bad && done.wrong.is_empty() {
        done.wrong.push(result.summary.verdict.text.clone());
    }
    done.note(name.as_str(), to, newest);
    Ok(done)
}

impl TrialDone {
    /// Notes in the journal what became of it.
    fn note(&mut self, job: &str, to: &Path, set: &FolderSet) {
        let sound = self.wrong.is_empty();
        let files = counted(self.files, "file", "files");
        let text = match self.wrong.first() {
            None => format!("{files}, {}, came back as they were", size(self.bytes)),
            Some(first) => first.clone(),
        };
        let event = Event::Tried { set: hex(&set.about.set), files: self.files, sound, text };
        let noted = note(job, to, event).err();
        self.warnings.extend(noted.map(|failure| failure.message().to_owned()));
    }
}

fn newest<'a>(known: &'a SetsFolder, job: &str) -> Option<&'a FolderSet> {
    let mut of_job = known.sets.iter().filter(|set| set.about.job == job);
    of_job.rfind(|set| known.chain_of(set).is_ok())
}

/// A file that is tried.
struct TrialFile {
    path: Vec<u8>,
    bytes: u64,
    /// The position in the chain of the set that has it.
    place: u32,
    hash: [u8; 32],
}

/// Some files of a set, each as likely as any other. The hash is still missing.
fn choose(set: &FolderSet) -> Result<Vec<TrialFile>, Failure> {
    let seed = base::random::id().map_err(|error| Failure::new(&error, None))?;
    let mut random = Random::new(u64::from_le_bytes(seed[..8].try_into().unwrap_or_default()));
    let (mut chosen, mut seen): (Vec<TrialFile>, usize) = (Vec::new(), 0);
    for entry in sets::entries(set)? {
        let entry = entry?;
        // Of further names of a file the archive has no hash.
        let is_one = entry.kind == ObjectKind::File && entry.links <= 1;
        if !is_one || entry.size_bytes > FILE_BYTES_MAX {
            continue;
        }
        seen += 1;
        let (path, bytes, place) = (entry.path, entry.size_bytes, entry.place);
        let file = TrialFile { path, bytes, place, hash: [0; 32] };
        // Vitter's algorithm R.
        if chosen.len() < CANDIDATES {
            chosen.push(file);
        } else if let Some(kept) = chosen.get_mut(random.below(seen)) {
            *kept = file;
        }
    }
    let mut bytes = 0;
    chosen.retain(|file| {
        bytes += file.bytes;
        bytes <= BYTES_MAX
    });
    Ok(chosen)
}

/// Those whose archive has a hash of their whole content: not those with holes, and not further
/// names of a file.
fn with_hashes(
    known: &SetsFolder,
    newest: &FolderSet,
    chosen: Vec<TrialFile>,
) -> Result<Vec<TrialFile>, Failure> {
    let mut hashed = Vec::new();
    let mut waiting: HashMap<(u32, Vec<u8>), TrialFile> =
        chosen.into_iter().map(|file| ((file.place, file.path.clone()), file)).collect();
    for (place, link) in (0..).zip(&newest.about.chain) {
        let Some(set) = known.of(link.set).filter(|_| waiting.keys().any(|key| key.0 == place))
        else {
            continue;
        };
        let index = set.index().map_err(|error| sets::unreadable(set, &error))?;
        for record in index.files().map_err(|error| sets::unreadable(set, &error))? {
            let record = record.map_err(|error| sets::unreadable(set, &error))?;
            let RecordKind::File { layout: FileLayout::Whole, content_hash: Some(hash), .. } =
                record.kind
            else {
                continue;
            };
            if let Some(file) = waiting.remove(&(place, record.path)) {
                hashed.push(TrialFile { hash, ..file });
            }
        }
    }
    Ok(hashed)
}

fn path_of(bytes: &[u8]) -> PathBuf {
    Path::new(std::ffi::OsStr::from_bytes(bytes)).to_owned()
}

/// Compares what came back with its hash.
fn compared(into: &Path, file: &TrialFile) -> Result<(), String> {
    let failed = |error: std::io::Error| without_error_numbers(&with_causes(&error)).to_string();
    let mut restored = File::open(into.join(path_of(&file.path))).map_err(failed)?;
    let (mut hasher, mut part) = (ContentHasher::whole(), vec![0; PART_BYTES]);
    loop {
        let read = restored.read(&mut part).map_err(failed)?;
        if read == 0 {
            break;
        }
        hasher.update(&part[..read]);
    }
    if hasher.finish() == file.hash {
        return Ok(());
    }
    Err("its content is another than that which was backed up".to_owned())
}
