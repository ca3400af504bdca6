//! Why a backup is slow, from its source to its target, and which change brings most.
//!
//! A backup is a [chain](chain::Chain) of stations: large files, small files, the programs with
//! their pipes, the target. [`source`] and [`program`] find what each can give by short trials that
//! only read; [`line`](mod@line) reads a line as it is typed into programs. [`forecast`] plays the
//! chain with the models of [`model::pipeline`] and [`model::tape`], as it is and with each
//! [`change`]. [`rank`] orders the changes by what they bring, and names the limit.
//!
//! Nothing is set and nothing is written here.
//!
//! # Map
//!
//! - [`amount`]: a rate with its range, and how it is known.
//! - [`chain`]: the stations.
//! - [`change`]: what can be changed, and the chain with that change.
//! - [`forecast`]: how long a chain takes.
//! - [`line`](mod@line): a line as it is typed, as programs with their block sizes.
//! - [`program`]: what a compressor does in a second, on data of the source.
//! - [`rank`]: the limit, and the changes by their gain.
//! - [`rules`]: the rules of the findings.
//! - [`source`]: what is there to read, and how fast it can be read.
//! - [`station`]: what each part of the chain gives by itself.
//! - [`words`](mod@words): the findings.

pub mod amount;
pub mod chain;
pub mod change;
pub mod forecast;
pub mod line;
pub mod program;
pub mod rank;
pub mod rules;
pub mod source;
pub mod station;
pub mod words;
