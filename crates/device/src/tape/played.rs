//! A command to a drive that is played in user space, as bytes.
//!
//! Such a drive has no generic device, and `SG_IO` is full of pointers, which FUSE does not follow.
//! So the command goes to the tape file itself, in an ioctl of one fixed length, and the answer
//! comes back in the same bytes. The program that plays the drive answers it (`sim::mount::drive`);
//! the kernel's own tape driver never gets it.
//!
//! Layout, in the byte order of the machine: 16 bytes of command, 4 bytes of length: of the data
//! wanted or, with the highest bit set, of the data for the drive, which follow. In the answer:
//! outcome, sense key, code, qualifier, deferred flag, 11 unused bytes, 4 bytes of data length, the
//! data.

use super::raw::QuestionError;
use super::sense::Sense;

/// Bytes of request and answer.
pub const PLAYED_BYTES: usize = HEAD_BYTES + DATA_BYTES_MAX;
/// The ioctl: `_IOWR('m', 0x54, char[PLAYED_BYTES])`.
pub const PLAYED_REQUEST: u32 = 0xc000_6d54 | ((PLAYED_BYTES as u32) << 16);

/// Bytes before the data.
const HEAD_BYTES: usize = 20;
/// The longest answer is a log page. What a drive is sent has the same room.
pub const DATA_BYTES_MAX: usize = super::scsi::log::LOG_BYTES_MAX;
const COMMAND_BYTES: usize = 16;
/// The length is that of data for the drive.
const WITH_DATA: u32 = 1 << 31;

const DONE: u8 = 0;
const REFUSED: u8 = 1;
const UNREACHABLE: u8 = 2;

/// What comes with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// So many bytes are wanted at most.
    For(usize),
    /// Data for the drive.
    With(&'a [u8]),
}

/// A command as bytes. It has at most 16, and is padded with zeros. `None` if there is no room for
/// the data.
pub fn encode_request(command: &[u8], asked: Asked<'_>) -> Option<[u8; PLAYED_BYTES]> {
    let mut bytes = [0; PLAYED_BYTES];
    let length = command.len().min(COMMAND_BYTES);
    bytes[..length].copy_from_slice(&command[..length]);
    let length = match asked {
        Asked::For(wanted) => wanted.min(DATA_BYTES_MAX) as u32,
        Asked::With(data) => {
            bytes.get_mut(HEAD_BYTES..HEAD_BYTES + data.len())?.copy_from_slice(data);
            data.len() as u32 | WITH_DATA
        }
    };
    bytes[COMMAND_BYTES..HEAD_BYTES].copy_from_slice(&length.to_ne_bytes());
    Some(bytes)
}

/// The command and what comes with it; `None` if the request is too short.
pub fn decode_request(bytes: &[u8]) -> Option<([u8; COMMAND_BYTES], Asked<'_>)> {
    let command = bytes.get(..COMMAND_BYTES)?.try_into().ok()?;
    let length = u32::from_ne_bytes(bytes.get(COMMAND_BYTES..HEAD_BYTES)?.try_into().ok()?);
    if length & WITH_DATA == 0 {
        return Some((command, Asked::For((length as usize).min(DATA_BYTES_MAX))));
    }
    let length = (length & !WITH_DATA) as usize;
    Some((command, Asked::With(bytes.get(HEAD_BYTES..)?.get(..length)?)))
}

/// Encodes the outcome of a command.
pub fn encode_answer(answer: &Result<usize, QuestionError>, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; PLAYED_BYTES];
    match answer {
        Ok(length) => {
            let length = (*length).min(data.len()).min(DATA_BYTES_MAX);
            bytes[0] = DONE;
            bytes[COMMAND_BYTES..HEAD_BYTES].copy_from_slice(&(length as u32).to_ne_bytes());
            bytes[HEAD_BYTES..HEAD_BYTES + length].copy_from_slice(&data[..length]);
        }
        Err(QuestionError::Refused(sense)) => {
            let Sense { key, code, qualifier, deferred } = *sense;
            bytes[..5].copy_from_slice(&[REFUSED, key, code, qualifier, deferred.into()]);
        }
        Err(_) => bytes[0] = UNREACHABLE,
    }
    bytes
}

/// Decodes the answer: the data go to the front of `data`; returns their length.
///
/// # Errors
/// When the drive refused the command, or cannot be sent one.
pub fn decode_answer(bytes: &[u8; PLAYED_BYTES], data: &mut [u8]) -> Result<usize, QuestionError> {
    let [outcome, key, code, qualifier, deferred, ..] = *bytes;
    match outcome {
        DONE => {
            let mut length = [0; 4];
            length.copy_from_slice(&bytes[COMMAND_BYTES..HEAD_BYTES]);
            let told = (u32::from_ne_bytes(length) as usize).min(DATA_BYTES_MAX).min(data.len());
            data[..told].copy_from_slice(&bytes[HEAD_BYTES..HEAD_BYTES + told]);
            Ok(told)
        }
        REFUSED => {
            let sense = Sense { key, code, qualifier, deferred: deferred != 0 };
            Err(QuestionError::Refused(sense))
        }
        _ => Err(QuestionError::NoGenericDevice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(answer: Result<usize, QuestionError>, data: &[u8]) -> (String, Vec<u8>) {
        let bytes: [u8; PLAYED_BYTES] = encode_answer(&answer, data).try_into().unwrap();
        let mut got = vec![0; 300];
        let result = decode_answer(&bytes, &mut got);
        got.truncate(*result.as_ref().unwrap_or(&0));
        (format!("{result:?}"), got)
    }

    #[test]
    fn commands_and_answers_come_back_as_they_went() {
        let request = encode_request(&[0x12, 1, 0x80, 0, 0xff, 0], Asked::For(255)).unwrap();
        let (command, asked) = decode_request(&request).unwrap();
        assert_eq!((&command[..6], asked), (&[0x12, 1, 0x80, 0, 0xff, 0][..], Asked::For(255)));
        for data in [&b"list"[..], &[], &[7; DATA_BYTES_MAX]] {
            let request = encode_request(&[0xa4], Asked::With(data)).unwrap();
            assert_eq!(decode_request(&request).unwrap().1, Asked::With(data));
        }
        assert_eq!(encode_request(&[0xa4], Asked::With(&[7; DATA_BYTES_MAX + 1])), None);
        assert_eq!(decode_request(&request[..19]), None);
        assert_eq!(there_and_back(Ok(3), b"abcd"), ("Ok(3)".into(), b"abc".to_vec()));
        let sense = Sense { key: 6, code: 0x28, qualifier: 1, deferred: true };
        let (refused, _) = there_and_back(Err(QuestionError::Refused(sense)), &[]);
        assert_eq!(refused, format!("Err({:?})", QuestionError::Refused(sense)));
        let (unreachable, _) = there_and_back(Err(QuestionError::NoGenericDevice), &[]);
        assert_eq!(unreachable, "Err(NoGenericDevice)");
    }

    #[test]
    fn lengths_that_are_told_are_not_believed() {
        let mut bytes = [0xff; PLAYED_BYTES];
        bytes[0] = DONE;
        assert_eq!(decode_answer(&bytes, &mut [0; 7]).unwrap(), 7);
        assert_eq!(decode_request(&bytes), None, "more data than there are");
        bytes[COMMAND_BYTES..HEAD_BYTES].copy_from_slice(&(WITH_DATA - 1).to_ne_bytes());
        assert_eq!(decode_request(&bytes).unwrap().1, Asked::For(DATA_BYTES_MAX));
    }
}
