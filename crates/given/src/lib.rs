//! What other programs printed, in a text with anything around it: a mail, a forum's post, a
//! terminal that was copied. What is recognised becomes numbers with their lines; what they mean
//! together is said by rules. Nothing of the text is run.
//!
//! A line that begins like something known and is not whole is refused, and never read in part: a
//! number that is taken for another one is worse than none. Every other line is passed over.
//!
//! # Map
//!
//! - [`read`]: the text, line by line, as what was recognised.
//! - [`piece`]: what can be recognised.
//! - [`conclude`]: what the pieces mean together.
//! - [`rules`]: the rules by which that is said.
//!
//! Not here: anything of this machine.

pub mod conclude;
pub mod piece;
pub mod read;
pub mod rules;
