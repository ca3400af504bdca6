//! Virtual tape drives and disks.
//!
//! [`tape`] is a drive with the semantics of the kernel's tape driver, cartridges that can be
//! changed, and faults on demand: tests need them, and a real drive does not produce them.
//! [`mount`] shows it to other programs as a folder, and also has a disk.
//!
//! Not here: the timing of drive and disk (`model`), and the calls of the real driver (`device`).
//!
//! # Map
//!
//! - [`tape`]: a drive in this process: cartridges, SCSI commands, the driver above them, faults on
//!   demand.
//! - [`mount`]: drives and disks as folders of FUSE, and a loop device over a disk.
//! - [`speed_up`]: time that runs faster.

pub mod mount;
pub mod speed_up;
pub mod tape;
