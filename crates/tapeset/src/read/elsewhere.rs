//! Opens a set that need not be on the volume in the drive.
//!
//! With its index at hand, the tape is not looked at but for which medium it is: the index has the
//! medium of every part. Without, a volume of the set is asked for if the drive has none.

use archive::label::{Label, LabelKind};

use super::beginning::{Beginning, Search};
use super::drive::{Brought, LoadedDrive, WantedVolume, Which};
use super::failure::TapeReadFailure;
use super::index_segment::TapeIndex;
use super::set::{Need, OpenSet, open_found};
use super::walk::SetHere;
use device::tape::drive::OpenError;

/// Opens a set by its index.
pub(super) fn open_known(
    mut drive: LoadedDrive,
    index: TapeIndex,
) -> Result<OpenSet, TapeReadFailure> {
    look_into(&mut drive)?;
    let trailer = &index.index.trailer;
    let nowhere = TapeReadFailure::NoData { device: drive.device() };
    let first = index.extents.first().ok_or(nowhere)?;
    let label = Label {
        set: first.set,
        kind: LabelKind::Data,
        segment: first.segment,
        part: first.part,
        volume: first.volume,
        medium: first.medium,
        stream_bytes: first.stream_offset_bytes,
        block_bytes: trailer.block_bytes,
        length_bytes: first.label_bytes,
        compression: trailer.compression,
        previous: None,
        time_seconds: 0,
        host: None,
        medium_name: None,
        chain: None,
    };
    Ok(OpenSet { drive, id: first.set, label, here: None, index: Some(index) })
}

/// Opens a set, on whatever volume it is.
pub(super) fn open_anywhere(
    mut drive: LoadedDrive,
    set: [u8; 16],
    need: Need,
) -> Result<OpenSet, TapeReadFailure> {
    let mut here = match look_into(&mut drive)? {
        InDrive::Ours => drive.find_set(set)?,
        InDrive::Other => None,
    };
    if here.is_none() {
        let (volume, medium, which) = (1, None, Which::OrLater);
        if drive.bring(WantedVolume { set, volume, medium, which })? == Brought::Here {
            here = drive.find_set(set)?;
        }
    }
    let lost = || TapeReadFailure::NoData { device: drive.device() };
    let here: SetHere = here.ok_or_else(lost)?;
    open_found(drive, here.last, Some(here), need)
}

/// What the drive holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InDrive {
    Ours,
    /// Nothing, or what is not ours.
    Other,
}

/// Finds out which medium is in the drive. An empty drive is no failure: the medium is asked for.
fn look_into(drive: &mut LoadedDrive) -> Result<InDrive, TapeReadFailure> {
    let found = drive.recognise().and_then(|is_known| {
        if is_known { Ok(None) } else { drive.beginning(Search::Nowhere).map(Some) }
    });
    match found {
        Ok(None | Some(Beginning::Ours { .. })) => Ok(InDrive::Ours),
        Ok(Some(Beginning::Blank | Beginning::Foreign { .. }))
        | Err(
            TapeReadFailure::Open(OpenError::NoMedium { .. } | OpenError::NotReady { .. })
            | TapeReadFailure::Label { .. },
        ) => Ok(InDrive::Other),
        Err(error) => Err(error),
    }
}
