//! Recommended access order, as full-height drives have it from LTO-9 on (SSC-5; IBM's LTO SCSI
//! reference): a list of segments goes in, and comes out in the order that winds the tape least.
//!
//! This is the drive's side and knows nothing of the host's: it sorts by its own motions, the
//! nearest segment first, then improved by moving single ones. The process without sorting, the
//! geometry of segments and the binding points are not included.

use device::tape::played::DATA_BYTES_MAX;
use device::tape::raw::QuestionError;

use super::check::NOT_READY;
use super::drive::{Check, Drive, ILLEGAL_REQUEST};
use super::faults::{AccessOrders, Answers};

const MAINTENANCE_IN: u8 = 0xa3;
const MAINTENANCE_OUT: u8 = 0xa4;
const SERVICE_ACTION: u8 = 0x1d;
const REORDER: u8 = 2;
const HEADER_BYTES: usize = 8;
const SEGMENT_BYTES: usize = 32;
/// Real drives take 2,730. More than these do not fit into a request of a mounted drive.
const SEGMENTS_MAX: usize = (DATA_BYTES_MAX - HEADER_BYTES) / SEGMENT_BYTES;
/// Most segments whose order is improved.
const IMPROVED_MAX: usize = 60;
/// Most times that all of it is gone through.
const PASSES_MAX: usize = 20;

/// A segment by bytes from the beginning of the medium, and as it was sent.
struct Listed {
    from: u64,
    to: u64,
    descriptor: [u8; SEGMENT_BYTES],
}

pub(super) fn is_receive(command: &[u8; 16]) -> bool {
    command[0] == MAINTENANCE_IN && command[1] & 0x1f == SERVICE_ACTION
}

pub(super) fn is_generate(command: &[u8; 16]) -> bool {
    command[0] == MAINTENANCE_OUT && command[1] & 0x1f == SERVICE_ACTION
}

impl Drive {
    /// Executes `command`, which has data for the drive.
    pub(super) fn obey(&mut self, command: &[u8], data: &[u8]) -> Result<(), QuestionError> {
        match self.settings.answers {
            Answers::Proper => {}
            Answers::Refused => return Err(QuestionError::Refused(unknown_command().sense)),
            Answers::Unreachable => return Err(QuestionError::NoGenericDevice),
            Answers::Empty | Answers::Garbage => return Ok(()),
        }
        let mut padded = [0; 16];
        let length = command.len().min(padded.len());
        padded[..length].copy_from_slice(&command[..length]);
        let done = self.command_at_any_time(|drive| {
            drive.notice()?;
            if is_generate(&padded) { drive.sort(&padded, data) } else { Err(unknown_command()) }
        });
        done.map_err(|check| QuestionError::Refused(check.sense))
    }

    /// GENERATE RECOMMENDED ACCESS ORDER.
    pub(super) fn sort(&mut self, command: &[u8; 16], data: &[u8]) -> Result<(), Check> {
        self.offers_order()?;
        // Without geometry, which would make longer descriptors.
        if command[2] & 0x07 != REORDER || command[3] & 0x07 != 0 {
            return Err(invalid_field());
        }
        let listed = self.listed(data)?;
        let here = self.bytes_before(self.position());
        let order = self.sorted(here, &listed);
        let mut list = vec![REORDER, 1, 0, 0];
        list.extend(((listed.len() * SEGMENT_BYTES) as u32).to_be_bytes());
        order.iter().for_each(|number| list.extend(listed[*number].descriptor));
        self.recommended = list;
        Ok(())
    }

    /// RECEIVE RECOMMENDED ACCESS ORDER: the answer, and how much of it is wanted.
    pub(super) fn recommended(&self, command: &[u8; 16]) -> Result<(Vec<u8>, usize), Check> {
        self.offers_order()?;
        let number = |at: usize| {
            u32::from_be_bytes([command[at], command[at + 1], command[at + 2], command[at + 3]])
        };
        let allocated = number(6) as usize;
        if command[1] & 0x80 != 0 {
            let [high, low] = (SEGMENTS_MAX as u16).to_be_bytes();
            return Ok((vec![high, low, 0, SEGMENT_BYTES as u8], allocated));
        }
        if number(2) != 0 {
            return Err(invalid_field());
        }
        let nothing = || vec![0; HEADER_BYTES];
        let list = if self.recommended.is_empty() { nothing() } else { self.recommended.clone() };
        Ok((list, allocated))
    }

    fn offers_order(&self) -> Result<(), Check> {
        match self.settings.access_orders {
            AccessOrders::Unknown => Err(unknown_command()),
            AccessOrders::Offered if self.is_loaded() => Ok(()),
            AccessOrders::Offered => Err(Check::of(NOT_READY, 0x3a, 0x00)),
        }
    }

    fn bytes_before(&self, object: u64) -> u64 {
        self.cartridge().map_or(0, |cartridge| cartridge.lock().bytes_before(object))
    }

    /// The segments of a list.
    fn listed(&self, data: &[u8]) -> Result<Vec<Listed>, Check> {
        let invalid = || Check::of(ILLEGAL_REQUEST, 0x26, 0x00);
        let header = data.first_chunk::<HEADER_BYTES>().ok_or_else(invalid)?;
        let length = u32::from_be_bytes([header[4], header[5], header[6], header[7]]) as usize;
        let list = data.get(HEADER_BYTES..).and_then(|rest| rest.get(..length));
        let (descriptors, rest) = list.ok_or_else(invalid)?.as_chunks::<SEGMENT_BYTES>();
        if !rest.is_empty() || descriptors.len() > SEGMENTS_MAX {
            return Err(invalid());
        }
        let objects = self.cartridge().map_or(0, |cartridge| cartridge.lock().len());
        let of = |descriptor: &[u8; SEGMENT_BYTES]| {
            let object = |at: usize| {
                descriptor[at..at + 8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
            };
            let (first, last) = (object(16), object(24));
            // A single object at the beginning or end of a list would be a binding point.
            if descriptor[..2] != [0, 30] || descriptor[15] != 0 || first >= last {
                return Err(invalid());
            }
            if last >= objects {
                return Err(Check::of(ILLEGAL_REQUEST, 0x21, 0x00));
            }
            let (from, to) = (self.bytes_before(first), self.bytes_before(last));
            Ok(Listed { from, to, descriptor: *descriptor })
        };
        descriptors.iter().map(of).collect()
    }

    fn sorted(&self, here: u64, listed: &[Listed]) -> Vec<usize> {
        let reaching_ns = |from: u64, to: u64| match &self.pace {
            Some(pace) => pace.reaching_ns(from, to),
            None => from.abs_diff(to),
        };
        // From each segment to each; the last row is from where the tape stands.
        let from = listed.iter().map(|segment| segment.to).chain([here]);
        let hops: Vec<Vec<u64>> =
            from.map(|from| listed.iter().map(|to| reaching_ns(from, to.from)).collect()).collect();
        let mut order = nearest_first(&hops);
        if order.len() <= IMPROVED_MAX {
            for _ in 0..PASSES_MAX {
                let was = length(&hops, &order);
                (0..order.len()).for_each(|from| move_one(&hops, &mut order, from));
                if length(&hops, &order) >= was {
                    break;
                }
            }
        }
        order
    }
}

fn nearest_first(hops: &[Vec<u64>]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..hops.len() - 1).collect();
    let (mut order, mut here) = (Vec::with_capacity(left.len()), hops.len() - 1);
    while let Some(place) = (0..left.len()).min_by_key(|place| hops[here][left[*place]]) {
        here = left.remove(place);
        order.push(here);
    }
    order
}

fn length(hops: &[Vec<u64>], order: &[usize]) -> u64 {
    let mut here = hops.len() - 1;
    order.iter().map(|next| hops[std::mem::replace(&mut here, *next)][*next]).sum()
}

/// Moves the segment at a place of the order to where the way is shortest.
fn move_one(hops: &[Vec<u64>], order: &mut Vec<usize>, from: usize) {
    let moved = order.remove(from);
    let with = |place: &usize| {
        let mut order = order.clone();
        order.insert(*place, moved);
        length(hops, &order)
    };
    let best = (0..=order.len()).min_by_key(with).unwrap_or(from);
    order.insert(best, moved);
}

fn unknown_command() -> Check {
    Check::of(ILLEGAL_REQUEST, 0x20, 0x00)
}

fn invalid_field() -> Check {
    Check::of(ILLEGAL_REQUEST, 0x24, 0x00)
}
