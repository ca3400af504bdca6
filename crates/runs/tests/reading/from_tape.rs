//! Sets on tape read from a drive in this process: as the writing side wrote them, on one volume
//! and on several, intact and damaged, and the tapes of other tools.

mod beginnings;
mod damage;
mod foreign;
pub mod harness;
mod hostile;
mod known_media;
mod mishaps;
mod motions;
mod sets;
mod volumes;
