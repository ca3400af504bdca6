//! Jobs of several ranks in one process: measured together, and backed up with ranks lost at any
//! step.

mod sets;
mod together;
