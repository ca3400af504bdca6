//! The member that a plain stream is in, for the label of a volume on which it continues.

use archive::decode::{DecodeLimits, Decoder, Event};
use archive::header::{UNIT_BYTES, padding_bytes};
use archive::label::Continuation;
use archive::member::{Member, MemberKind};

/// Follows a stream of whole units from header to header.
pub(super) struct MemberTracker {
    decoder: Decoder,
    /// The member whose content passes.
    member: Option<Box<Member>>,
    /// Bytes of content and padding that still follow.
    rest_bytes: u64,
    padding_bytes: u64,
}

impl MemberTracker {
    /// At the start of an archive.
    pub(super) fn new() -> MemberTracker {
        MemberTracker {
            decoder: Decoder::new(DecodeLimits::default()),
            member: None,
            rest_bytes: 0,
            padding_bytes: 0,
        }
    }

    /// Takes the next bytes, a whole number of units.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        loop {
            let passed = self.rest_bytes.min(bytes.len() as u64);
            self.rest_bytes -= passed;
            bytes = &bytes[passed as usize..];
            let Some((unit, behind)) = bytes.split_first_chunk::<UNIT_BYTES>() else { return };
            bytes = behind;
            // These are Takeup's own headers; if one is refused, no member is known.
            let event = self.decoder.push(unit).unwrap_or(Event::More);
            let (member, stored_bytes) = match event {
                Event::Member { member, stored_bytes, .. } => (Some(member), stored_bytes),
                Event::Skip { stored_bytes, .. } => (None, stored_bytes),
                _ => continue,
            };
            self.padding_bytes = padding_bytes(stored_bytes);
            self.rest_bytes = stored_bytes + self.padding_bytes;
            self.member = member.filter(|member| member.kind == MemberKind::File);
        }
    }

    /// What goes on behind the bytes that were fed.
    pub(super) fn continuation(&self) -> Continuation<'_> {
        match &self.member {
            Some(member) if self.rest_bytes > self.padding_bytes => {
                Continuation::Inside { member, rest_bytes: self.rest_bytes - self.padding_bytes }
            }
            _ => Continuation::Between,
        }
    }
}
