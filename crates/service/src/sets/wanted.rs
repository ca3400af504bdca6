//! The sets that a restore reads: the wanted one of a folder, and its chain.

use std::path::{Path, PathBuf};

use archive::label::hex;
use base::calendar::time_text;
use base::escape::escape_path;
use catalogue::{FolderSet, IndexFile, SetsFolder, WantedSet};
use device::source::Source;
use flow::monitor::Monitor;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use super::{SetSelection, failure, read, tell, tell_unusable};
use crate::failure::Failure;
use crate::tape_source::SetWanted;

/// The sets that a restore reads.
pub(crate) struct WantedChain {
    /// From the full set to the wanted one.
    pub(crate) sets: Vec<FolderSet>,
    /// Archives that are named like sets and cannot be read as such: one may have been wanted.
    unusable: Vec<(PathBuf, String)>,
    /// Where the wanted set was chosen by its time: sets whose times go back, and what that means.
    set_back: Vec<(PathBuf, String)>,
}

impl WantedChain {
    /// Names the archives that may have been wanted.
    pub(crate) fn tell_doubts(&self, monitor: &dyn Monitor) {
        tell_unusable(monitor, &self.unusable);
        for (path, text) in &self.set_back {
            tell(monitor, path, text.clone());
        }
    }
}

/// Sets of a job that were made after sets whose times are later: one of the clocks was wrong.
fn set_back(known: &SetsFolder, job: &str) -> Vec<(PathBuf, String)> {
    let of_job: Vec<_> = known.sets.iter().filter(|set| set.about.job == job).collect();
    let pairs = of_job.iter().zip(of_job.iter().skip(1));
    let is_back = |(before, after): &(&&FolderSet, &&FolderSet)| {
        after.about.begun_seconds < before.about.begun_seconds
    };
    let text = |(before, after): (&&FolderSet, &&FolderSet)| {
        let text = format!(
            "set {} was made after set {}, and its clock says before: {}, {} UTC. --at goes by the \
             clock, --set N does not",
            after.about.number,
            before.about.number,
            time_text(after.about.begun_seconds as i64),
            time_text(before.about.begun_seconds as i64),
        );
        (after.path.clone(), text)
    };
    pairs.filter(is_back).map(text).collect()
}

/// What becomes of a wanted set that needs one which is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gaps {
    /// It is refused.
    Refuse,
    /// The chain has what is known of it.
    Accept,
}

/// The chain of the wanted set.
///
/// # Errors
/// When the wanted set, or one that it needs, is not in the folder.
pub(crate) fn chain(
    folder: &Path,
    wanted: Option<&SetWanted>,
    selection: &SetSelection,
) -> Result<WantedChain, Failure> {
    chain_in(read(folder)?, folder, wanted, selection, Gaps::Refuse)
}

/// The chain of the wanted set among those that are known.
///
/// # Errors
/// When the wanted set, or one that it needs, is not among them.
pub(crate) fn chain_in(
    known: SetsFolder,
    folder: &Path,
    wanted: Option<&SetWanted>,
    selection: &SetSelection,
    gaps: Gaps,
) -> Result<WantedChain, Failure> {
    let day = selection.at.as_deref().map(end_of_day).transpose()?;
    let wanted = match (wanted, &day) {
        (Some(SetWanted::Number(number)), _) => WantedSet::Number((*number).into()),
        (Some(SetWanted::Id(id)), _) => WantedSet::Named(id),
        (None, Some((seconds, words))) => WantedSet::Before { seconds: *seconds, words },
        (None, None) => WantedSet::Newest,
    };
    let set = known.choose(selection.job.as_deref(), &wanted);
    let set = set.map_err(|error| failure(&error, folder, &known))?;
    let sets = match gaps {
        Gaps::Refuse => {
            let chain = known.chain_of(set).map_err(|error| failure(&error, folder, &known))?;
            chain.into_iter().cloned().collect()
        }
        Gaps::Accept => {
            let links = set.about.chain.iter();
            links.filter_map(|link| known.of(link.set)).cloned().collect()
        }
    };
    let is_by_time = matches!(wanted, WantedSet::Before { .. });
    let set_back = if is_by_time { set_back(&known, &set.about.job) } else { Vec::new() };
    Ok(WantedChain { sets, unusable: known.unusable, set_back })
}

/// What to know before a single archive is restored that is no full set.
pub(crate) fn part_of_chain(archive: &Path) -> Option<String> {
    // Looking into anything else, as a pipe, would take data from it.
    let is_file = archive.metadata().is_ok_and(|status| status.is_file());
    let source = is_file.then(|| Source::open(archive.as_os_str()).ok()).flatten()?;
    let about = IndexFile::find(&source)?.about().ok()??;
    let folder = archive.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    (about.chain.len() > 1).then(|| {
        format!(
            "holds only what changed since {}: `takeup restore {}/ --set {} --into DIR` restores \
             all of that day",
            about.parent().map(|parent| &*parent.name).unwrap_or_default(),
            escape_path(folder),
            &hex(&about.set)[..8],
        )
    })
}

/// The end of a day, local time, or a point in it, in seconds since 1970; with its words.
///
/// # Errors
/// When the text is no day.
pub(crate) fn end_of_day(text: &str) -> Result<(u64, String), Failure> {
    let zone = TimeZone::system();
    let end = if text.contains(['T', ' ']) {
        // The second itself belongs to it.
        let point = text.parse::<DateTime>().ok();
        point.and_then(|point| point.checked_add(jiff::Span::new().seconds(1)).ok())
    } else {
        let day = text.parse::<Date>().ok();
        day.and_then(|day| day.tomorrow().ok()).map(|next| next.at(0, 0, 0, 0))
    };
    let zoned = end.and_then(|end| end.to_zoned(zone).ok());
    let seconds = zoned.and_then(|zoned| u64::try_from(zoned.timestamp().as_second()).ok());
    let seconds = seconds.ok_or_else(|| {
        let hint = "write it as 2026-11-27 or 2026-11-27T14:30";
        Failure::of(format!("{text:?} is no day"), Some(hint))
    })?;
    Ok((seconds, text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_with_the_next_one() {
        let (day, _) = end_of_day("2026-11-27").unwrap();
        let (next, _) = end_of_day("2026-11-28").unwrap();
        assert_eq!(next - day, 86_400);
        let (noon, words) = end_of_day("2026-11-27T12:00").unwrap();
        assert!(noon < day && words == "2026-11-27T12:00");
        assert!(end_of_day("yesterday").is_err() && end_of_day("2026-02-30").is_err());
    }
}
