//! Resynchronises after damage: finds the next header by the index, or by its appearance.

use archive::header::{self, UNIT_BYTES};
use archive::stream::{Archive, ArchiveOffset};
use flow::account::Account;
use flow::cancel::Stopped;

use super::{InMember, LEADING_GARBAGE_BYTES_MAX, MemberStream, Place};
use crate::read::damage::DamageKind;
use flow::gaps::Gap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    Header,
    EndMark,
    Nothing,
}

impl MemberStream<'_> {
    /// Looks for the next header from the position on; `start_bytes` is the start of the garbage.
    pub(super) fn resynchronise(
        &mut self,
        start_bytes: ArchiveOffset,
        why: &str,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        self.decoder = (self.make_decoder)();
        self.in_order = false;
        let found =
            if self.go_to_landmark(account)? { Search::Header } else { self.find_header(account)? };
        let length_bytes = self.cursor.position_bytes() - start_bytes;
        let leading = self.place == Place::Start;
        if found == Search::Nothing && leading {
            self.place = Place::Done;
            return Ok(());
        }
        if length_bytes > 0 {
            let kind = if leading && start_bytes == ArchiveOffset::START {
                DamageKind::LeadingGarbage
            } else {
                DamageKind::Garbage { why: why.to_owned() }
            };
            self.report(start_bytes, length_bytes, kind, InMember::No);
        }
        self.place = Place::Inside;
        match found {
            Search::Header => {}
            Search::EndMark => {
                self.saw_end = true;
                self.place = Place::Done;
            }
            Search::Nothing => self.end_of_stream(0),
        }
        Ok(())
    }

    /// Advances to the next plausible header, or to the end.
    fn find_header(&mut self, account: &mut Account) -> Result<Search, Stopped> {
        let mut tail: Vec<u8> = Vec::with_capacity(2 * UNIT_BYTES);
        let mut zeros_at_end = 0;
        loop {
            let too_far = self.cursor.position_bytes().bytes() > LEADING_GARBAGE_BYTES_MAX;
            if self.place == Place::Start && too_far {
                return Ok(Search::Nothing);
            }
            let mut here = self.cursor.rest(account)?.len();
            let position_bytes = self.cursor.position_bytes();
            let gap = self.cursor.gap_within(here as u64).cloned();
            if let Some(gap) = &gap
                && gap.start_bytes > position_bytes
            {
                here = (gap.start_bytes - position_bytes) as usize;
            } else if let Some(gap) = gap {
                self.pass_over_gap(&gap, account)?;
                tail.clear();
                continue;
            }
            if here == 0 {
                // The end mark of an archive whose last header is lost looks like garbage, too.
                let ended = zeros_at_end >= 2 * UNIT_BYTES;
                return Ok(if ended { Search::EndMark } else { Search::Nothing });
            }
            let rest = &self.cursor.rest(account)?[..here];
            let join_bytes = rest.len().min(UNIT_BYTES - 1);
            let before_bytes = tail.len();
            tail.extend_from_slice(&rest[..join_bytes]);
            if let Some(offset) = header::find_header(&tail)
                && offset < before_bytes
            {
                self.cursor.unread(tail[offset..before_bytes].to_vec());
                return Ok(Search::Header);
            }
            if let Some(offset) = header::find_header(rest) {
                self.cursor.advance(offset);
                return Ok(Search::Header);
            }
            let zeros = rest.iter().rev().take_while(|byte| **byte == 0).count();
            zeros_at_end = if zeros == rest.len() { zeros_at_end + zeros } else { zeros };
            if rest.len() >= UNIT_BYTES {
                tail.clear();
                tail.extend_from_slice(&rest[rest.len() - (UNIT_BYTES - 1)..]);
            } else {
                let surplus = tail.len().saturating_sub(UNIT_BYTES - 1);
                tail.drain(..surplus);
            }
            self.cursor.advance(here);
        }
    }

    fn pass_over_gap(&mut self, gap: &Gap<Archive>, account: &mut Account) -> Result<(), Stopped> {
        if gap.length_bytes == 0 {
            self.landmarks = None;
        }
        let kind = DamageKind::Lost { why: gap.why.clone() };
        self.report(gap.start_bytes, gap.length_bytes, kind, InMember::No);
        let left_bytes = gap.end_bytes().saturating_since(self.cursor.position_bytes());
        self.cursor.pass_over(left_bytes, account)?;
        self.cursor.leave_gap();
        Ok(())
    }

    /// Whether the index has a member at or after this offset.
    pub(super) fn is_member_expected(&mut self, offset_bytes: ArchiveOffset) -> bool {
        let landmarks = self.landmarks.as_mut();
        landmarks.is_some_and(|landmarks| landmarks.has_header_from(offset_bytes))
    }

    /// Goes to the next header of the index; false if there is none.
    fn go_to_landmark(&mut self, account: &mut Account) -> Result<bool, Stopped> {
        if !self.saw_header {
            return Ok(false);
        }
        loop {
            let position_bytes = self.cursor.position_bytes();
            let Some(landmarks) = &mut self.landmarks else { return Ok(false) };
            let Some(target_bytes) = landmarks.next_from(position_bytes) else {
                return Ok(false);
            };
            let left_bytes = target_bytes - position_bytes;
            if left_bytes == 0 {
                return Ok(true);
            }
            // Blocks at hand know only their own gaps; more must be taken to know later ones.
            let here = (self.cursor.rest(account)?.len() as u64).min(left_bytes);
            if let Some(gap) = self.cursor.gap_within(here.max(1)).cloned() {
                self.pass_over_gap(&gap, account)?;
            } else if here == 0 {
                return Ok(true);
            } else if self.cursor.position_bytes() == position_bytes {
                self.cursor.advance(here as usize);
            } else {
                // A jump leads to a header.
                return Ok(true);
            }
        }
    }
}
