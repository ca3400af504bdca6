//! The list of changes of a btrfs subvolume, and what each set notes so that the next one can ask.
//!
//! A set notes the generation of the subvolumes of its sources before it looks at anything, so that
//! whatever changes from then on has this generation or a later one. What is mounted over a
//! subvolume does not show in its generations: it is looked at as a whole, and so is what was
//! mounted there in the set before.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use archive::index::{About, AboutSource, AboutSubvolume, SubvolumeLine};
use base::escape::escape_path;
use base::failures::with_causes;
use device::btrfs::{BtrfsError, Changed, Line, State, Subvolume};
use machine::mounts;

use super::{GivenList, NoList, timestamp};
use crate::failure::{Failure, without_error_numbers};

/// Type of ZFS, as `statfs` has it (`ZFS_SUPER_MAGIC`).
const ZFS: u64 = 0x2fc1_2fc1;

/// The subvolume that was named, all of whose changes so far are on the disk.
pub(super) struct Named {
    subvolume: Subvolume,
    /// Without symbolic links.
    root: PathBuf,
    state: State,
    /// Before it was synchronised.
    looked: SystemTime,
}

impl Named {
    pub(super) fn open(path: &Path) -> Result<Named, Failure> {
        let failed = |error: BtrfsError| failure(path, &error);
        let subvolume = Subvolume::at(path).map_err(failed)?;
        let root = path.canonicalize().map_err(|error| failed(BtrfsError::Open(error)))?;
        let looked = SystemTime::now();
        let state = subvolume.synchronised().map_err(failed)?;
        Ok(Named { subvolume, root, state, looked })
    }

    /// What has changed since this generation, or else since the set before began.
    pub(super) fn list(
        &self,
        generation: Option<u64>,
        about: &About,
        before: &About,
    ) -> Result<Result<GivenList, NoList>, Failure> {
        let since = match generation {
            Some(generation) => generation,
            None => match self.noted(before) {
                Ok(generation) => generation,
                Err(why) => return Ok(Err(why)),
            },
        };
        let mut list = GivenList::new(&about.sources, timestamp(self.looked));
        let mut is_too_long = false;
        let searched = self.subvolume.changed_since(since, |changed| {
            let taken = match changed {
                Changed::Itself(path) => list.take(&below(&self.root, path)),
                Changed::Whole(path) => list.take_whole(&below(&self.root, path)),
            };
            is_too_long = taken.is_err();
            if is_too_long { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if is_too_long {
            return Ok(Err(NoList::TooLong));
        }
        match searched {
            Ok(()) => {}
            Err(error @ BtrfsError::NotAllowed) => return Err(failure(&self.root, &error)),
            Err(error) => return Ok(Err(NoList::Unknown(with_causes(&error)))),
        }
        // What has changed in the rest of the subvolume is no mistake of the list.
        list.outside = 0;
        Ok(list.with_mounts(&self.root, &about.sources, before).map(|()| list))
    }

    fn noted(&self, before: &About) -> Result<u64, NoList> {
        let own = noted(self.state);
        let is_same = |noted: &&AboutSubvolume| {
            (noted.line, noted.file_system, noted.subvolume)
                == (own.line, own.file_system, own.subvolume)
        };
        match before.subvolumes.iter().find(is_same) {
            Some(noted) if noted.generation <= own.generation => Ok(noted.generation),
            Some(_) => Err(NoList::Older),
            None => Err(NoList::NotNoted),
        }
    }
}

/// Notes the subvolumes of the sources, and what is mounted there, in the description of a set,
/// before anything is looked at. What cannot be seen is not noted: the next set looks at everything
/// then.
pub(super) fn note(about: &mut About, named: Option<&Named>) {
    let Ok(mounts) = mounts::now() else { return };
    let path = |source: &AboutSource| PathBuf::from(OsStr::from_bytes(&source.path));
    let sources: Vec<PathBuf> = about.sources.iter().map(path).collect();
    let of_source = |path: &PathBuf| Subvolume::of(path).and_then(|it| it.state()).ok().flatten();
    let states = sources.iter().filter_map(of_source).map(|state| match named {
        // Its last transaction takes no more changes, in whatever subvolume.
        Some(named) if is_later_known(&state, named) => {
            State { generation: named.state.generation, ..state }
        }
        _ => state,
    });
    let states = states.chain(named.map(|named| named.state));
    for noted in states.map(noted) {
        let is_same = |other: &AboutSubvolume| {
            (other.line, other.file_system, other.subvolume)
                == (noted.line, noted.file_system, noted.subvolume)
        };
        match about.subvolumes.iter_mut().find(|other| is_same(other)) {
            // The same subvolume at two moments: what changed between them counts as changed.
            Some(other) => other.generation = other.generation.min(noted.generation),
            None => about.subvolumes.push(noted),
        }
    }
    let is_zfs = |source: &AboutSource| source.file_system == ZFS;
    if !about.subvolumes.is_empty() || about.sources.iter().any(is_zfs) {
        let followed = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let sources: Vec<PathBuf> = sources.iter().map(followed).collect();
        let is_at = |point: &Path| {
            sources.iter().any(|source| source.starts_with(point) || point.starts_with(source))
        };
        let points = mounts.into_iter().map(|mount| mount.point).filter(|point| is_at(point));
        about.mounts = points.map(|point| point.into_os_string().into_encoded_bytes()).collect();
    }
}

fn is_later_known(state: &State, named: &Named) -> bool {
    let is_live = state.line == Line::Live && named.state.line == Line::Live;
    is_live && state.file_system == named.state.file_system
}

fn noted(state: State) -> AboutSubvolume {
    let State { line, file_system, subvolume, generation } = state;
    let line = match line {
        Line::Live => SubvolumeLine::Live,
        Line::Snapshots => SubvolumeLine::Snapshots,
    };
    AboutSubvolume { line, file_system, subvolume, generation }
}

fn below(root: &Path, path: &[u8]) -> Vec<u8> {
    root.join(OsStr::from_bytes(path)).into_os_string().into_encoded_bytes()
}

fn failure(path: &Path, error: &BtrfsError) -> Failure {
    let hint = match error {
        BtrfsError::NotBtrfs | BtrfsError::NotASubvolume => {
            Some("name the root of a subvolume; `btrfs subvolume list PATH` shows them")
        }
        BtrfsError::NotAllowed => Some("run it as root, or leave out --changed-from"),
        _ => None,
    };
    let why = without_error_numbers(&with_causes(error));
    let path = escape_path(path);
    Failure::of(format!("cannot read the changes of btrfs subvolume {path}: {why}"), hint)
}
