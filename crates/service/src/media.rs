//! The media that hold sets, and which may be written over.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use archive::label::hex;
use flow::cancel::Cancel;
use jobs::{Config, Fate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Answer;
use crate::failure::Failure;
use crate::retention::fates_at;
use crate::tape_sets::{TapeSets, Whose};
use crate::tape_source::no_tape;

/// Which media.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MediaRequest {
    /// The file with the jobs, whose rules say what is kept; the user's own where none is named.
    #[serde(default)]
    pub config: Option<PathBuf>,
    /// A tape drive: the sets of this machine on the tape in it become known first.
    #[serde(default)]
    pub read: Option<PathBuf>,
}

/// The media that hold sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MediaAnswer {
    /// In the order in which they were first written to.
    pub media: Vec<MediumAnswer>,
    /// What is to be known besides.
    pub warnings: Vec<String>,
}

/// A medium that holds sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MediumAnswer {
    /// Its id, as in its labels.
    pub medium: String,
    /// What it is called: its bar code, or as `--volume-name` said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it was last written to, in UTC.
    pub last_used: String,
    /// Names of the sets with a part on it; the id of a set of which no more is known.
    pub sets: Vec<String>,
    /// Sets by job.
    pub jobs: BTreeMap<String, u64>,
    /// Whether a run of a job may write over it.
    pub free: bool,
    /// Why it is kept; empty: it is free.
    pub kept: Vec<String>,
}

impl Answer for MediaAnswer {
    const COMMAND: &'static str = "catalog media";
}

/// What is known of media, and what the rules of the jobs make of them.
///
/// # Errors
/// When what is known cannot be read, the named file with the jobs cannot be used, or the tape that
/// is to be read cannot.
pub fn media(request: &MediaRequest, cancel: &Cancel) -> Result<MediaAnswer, Failure> {
    let tape_sets = TapeSets::of_this_user()?;
    if let Some(path) = &request.read {
        let drive = device::tape::find(path).ok_or_else(|| {
            let hint = "name a tape drive: /dev/nst0 is the first";
            no_tape("--read", path, hint)
        })?;
        let known = tape_sets.read()?;
        tape_sets.adopt_unknown(Arc::new(drive), &known, Whose::Ours, cancel)?;
    }
    let known = tape_sets.restorable()?;
    let account = tape_sets.account()?;
    let mut warnings = Vec::new();
    for (path, why) in &known.unusable {
        let path = base::escape::escape_path(path);
        warnings.push(format!("{path} cannot be read as a set: nothing is written over: {why}"));
    }
    let config = match (&request.config, crate::state::jobs()) {
        (None, Some(path)) if !path.exists() => Config::default(),
        (named, _) => crate::jobs::read_config(named.as_deref())?.0,
    };
    let mut going: HashSet<String> = HashSet::new();
    for (name, job) in config.jobs.iter().filter(|(_, job)| job.to.is_tape()) {
        let Some(keep) = job.keep.filter(|_| known.unusable.is_empty()) else { continue };
        let fates = fates_at(&known, name.as_str(), job.to.as_path(), &keep)?;
        let goes = known.sets.iter().zip(&fates).filter(|(_, fate)| **fate == Fate::Goes);
        going.extend(goes.map(|(set, _)| hex(&set.about.set)));
    }
    let all = tape_sets.read()?;
    let by_id: HashMap<String, _> = all.sets.iter().map(|set| (hex(&set.about.set), set)).collect();
    let free = tape_sets.freed(|set| going.contains(set))?;
    let free: HashSet<String> = free.iter().map(hex).collect();
    let left: HashSet<String> = known.sets.iter().map(|set| hex(&set.about.set)).collect();
    let media = account.media().iter().map(|medium| {
        let is_free = free.contains(&medium.medium);
        let mut jobs: BTreeMap<String, u64> = BTreeMap::new();
        let (mut sets, mut kept) = (Vec::new(), Vec::new());
        for id in &medium.sets {
            let name = match by_id.get(id) {
                Some(set) => {
                    *jobs.entry(set.about.job.clone()).or_default() += 1;
                    set.name()
                }
                None => id.clone(),
            };
            let is_lost = by_id.contains_key(id) && !left.contains(id);
            if !is_free && !going.contains(id) && !account.is_abandoned(id) && !is_lost {
                kept.push(if by_id.contains_key(id) {
                    format!("for {name}")
                } else {
                    format!("since of the set {} nothing is known here", id.get(..8).unwrap_or(id))
                });
            }
            sets.push(name);
        }
        MediumAnswer {
            medium: medium.medium.clone(),
            name: medium.name.clone(),
            last_used: base::calendar::time_text(medium.last_used.as_second()),
            sets,
            jobs,
            free: is_free,
            kept,
        }
    });
    Ok(MediaAnswer { media: media.collect(), warnings })
}
