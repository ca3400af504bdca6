//! Numbers and byte strings inside a group.
//!
//! Unsigned numbers are little-endian base 128, seven bits a byte, the high bit set on all but the
//! last; signed ones are zigzagged first. A number has exactly one encoding: a reader refuses
//! padded ones, so that equal records are equal bytes.

/// Why a body cannot be decoded.
pub type Reason = &'static str;

pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, (number << 1 ^ number >> 63) as u64);
}

pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes `bytes` as the length that it shares with the start of `previous`, and the rest.
pub(crate) fn put_suffix(out: &mut Vec<u8>, previous: &[u8], bytes: &[u8]) {
    let shared = previous.iter().zip(bytes).take_while(|(a, b)| a == b).count();
    put(out, shared as u64);
    put_bytes(out, &bytes[shared..]);
}

/// Takes values from the front of a body.
pub struct Body<'a> {
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Body<'a> {
        Body { rest }
    }

    pub(crate) fn rest_bytes(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn take<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], Reason> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or("record is cut off")?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Reason> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take()?;
            if shift == 63 && byte > 1 {
                return Err("number is larger than 64 bits");
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let padded = byte == 0 && shift > 0;
                return if padded { Err("number is padded") } else { Ok(number) };
            }
        }
        Err("number is longer than ten bytes")
    }

    pub(crate) fn number_u32(&mut self) -> Result<u32, Reason> {
        u32::try_from(self.number()?).map_err(|_| "number is larger than 32 bits")
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Reason> {
        self.number().map(unzigzag)
    }

    pub(crate) fn bytes(&mut self, length_bytes_max: usize) -> Result<&'a [u8], Reason> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if length > length_bytes_max {
            return Err("string is longer than allowed");
        }
        let (taken, rest) = self.rest.split_at_checked(length).ok_or("string is cut off")?;
        self.rest = rest;
        Ok(taken)
    }

    /// The bytes that `put_suffix` wrote with the same `previous`.
    pub(crate) fn suffix(
        &mut self,
        previous: &[u8],
        length_bytes_max: usize,
    ) -> Result<Vec<u8>, Reason> {
        let shared = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        let prefix = previous.get(..shared).ok_or("shared part is longer than the path before")?;
        let suffix = self.bytes(length_bytes_max.saturating_sub(shared))?;
        if !suffix.is_empty() && suffix.first() == previous.get(shared) {
            return Err("shared part is shorter than it could be");
        }
        Ok([prefix, suffix].concat())
    }
}
