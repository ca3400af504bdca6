//! Tape drives and disks that are not there.
//!
//! [`tape`] is a drive with the semantics of the kernel's tape driver, cartridges that can be
//! changed, and faults to order: what tests need that a real drive will not do when asked.
//! [`front`] shows it to other programs as a folder.
//!
//! Not here: the calls of the real driver, which are `device`'s.

pub mod front;
pub mod model;
pub mod plan;
pub mod tape;
