//! Tape drives and disks that are not there.
//!
//! [`tape`] is a drive with the semantics of the kernel's tape driver, cartridges that can be
//! changed, and faults to order: what tests need that a real drive will not do when asked.
//! [`mount`] shows it to other programs as a folder, and a disk beside it.
//!
//! Not here: the time that drive and disk take, which is `model`'s, and the calls of the real
//! driver, which are `device`'s.
//!
//! # Map
//!
//! - [`tape`]: a drive in this process: cartridges, SCSI commands, the driver above them, faults
//!   to order.
//! - [`mount`]: drives and disks as folders of FUSE, and a loop device over a disk.
//! - [`speed_up`]: time that passes faster.

pub mod mount;
pub mod speed_up;
pub mod tape;
