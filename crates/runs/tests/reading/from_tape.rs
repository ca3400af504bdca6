//! Sets on tape read back, from a drive in this process: what the writing side wrote, on one volume
//! and on several, whole and damaged, and the tapes of other tools.

mod beginnings;
mod damage;
mod foreign;
pub mod harness;
mod hostile;
mod mishaps;
mod motions;
mod sets;
mod volumes;
