//! Sets on tape read back, from a drive in this process: what the writing side wrote, on one volume
//! and on several, whole and damaged, and the tapes of other tools.

mod beginnings;
mod damage;
mod foreign;
mod hostile;
mod mishaps;
mod sets;
pub mod studio;
mod volumes;
