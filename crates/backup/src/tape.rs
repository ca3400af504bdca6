//! Sets on tape, the writing side: labels, blocks, filemarks, and what happens at the end of a
//! volume.
//!
//! `docs/format.md` ("On tape") says what lies on the medium. Reading it back is
//! `crate::read::tape`; what the drive means by its answers is `device::tape`.

mod change;

pub use change::{
    CHANGE_ATTEMPTS_MAX, ChangeError, Refused, VolumeChanger, VolumePurpose, VolumeRequest,
};
