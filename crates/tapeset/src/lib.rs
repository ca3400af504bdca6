//! Sets: what one backup writes to tapes. This crate writes and reads them.
//!
//! A set is a stored stream that is cut twice: into *segments*, each a complete archive between two
//! filemarks, where the run chooses ([`Segments`]), and into *parts* where a volume ends. Each part
//! begins with a label (`archive::label`), and an index in a segment of its own comes last.
//! `docs/format.md` ("On tape") draws the bytes.
//!
//! ```text
//! blocks of the stored stream --> TapeSink --> label, blocks, filemark --> the next volume
//! drive --> OpenTape (which set, where its parts are) --> blocks of the stored stream
//! ```
//!
//! [`TapeStream`] writes, and [`OpenTape`] reads, tapes without labels. Both directions ask a
//! [`VolumeChanger`] for other volumes. An index that was read from tape is a
//! [`catalogue::IndexFile`].
//!
//! Not here: what a drive's answers mean (`device::tape`), and what the stream holds (`runs`).
//!
//! # Map
//!
//! - `options`: how a set is laid out, and what follows from the drive.
//! - `segments`: where segments end.
//! - `write`: labels, blocks and filemarks, until a medium is full.
//! - `read`: sets of a volume, and their parts joined to a stream again.
//! - `change`: changes of volume.
//! - `directory`: the sets of a medium as text.
//! - `known`: what is known of media without reading them.
//! - `media`: what becomes of media.
//! - `claims`: upper bounds on what labels and indexes may claim.
//! - `block`: tape blocks whose size is not known in advance.

mod block;
mod change;
mod claims;
mod directory;
mod known;
mod media;
mod options;
mod read;
mod segments;
mod write;

pub use change::{
    CHANGE_ATTEMPTS_MAX, ChangeError, Refused, VolumeChanger, VolumePurpose, VolumeRequest,
};
pub use directory::Directory;
pub use known::{KnownMedia, KnownMedium, Memory};
pub use media::{Media, MediaLog, NamedMedium};
pub use options::{
    BlockLayout, DrivePace, START_FILL_PERCENT, TapeOptions, ring_bytes, segment_bytes,
};
pub use read::{
    HELD_BYTES_MAX, KnownIndex, LabelledFile, Need, OpenTape, SetChoice, SetContents, SetHere,
    SetOnVolume, Spot, TapeEnd, TapeIndex, TapeOrigin, TapeReadFailure, TapeReading, TapeShared,
    TapeStands, Totals, Wanted, WantedBlocks, blocks_read_through, copy_indexes, labelled_sets,
    look_through_sets, reading_order, sets_on_volume, where_it_stands,
};
pub use segments::{Chunks, Segments};
pub use write::{
    Cut, Safe, SetIdentity, SetPlan, TapeDestination, TapeReport, TapeSetError, TapeSink,
    TapeStream,
};
