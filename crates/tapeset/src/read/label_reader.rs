//! What a tape file begins with: a Takeup label, something else, or nothing.

use archive::label::{Found, LABEL_BYTES_MAX, Label, LabelError, hex};
use device::tape::{Tape, TapeRead};
use flow::cancel::Cancel;

use super::blocks::{BlockReader, Met};
use super::failure::TapeReadFailure;
use crate::block::{BLOCK_BYTES_MAX, FIRST_BUFFER_BYTES, grow, read_any};
use crate::claims::label_can_be;

/// The first bytes of a tape file.
#[expect(clippy::large_enum_variant, reason = "one at a time, and never kept")]
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// A Takeup label.
    Label(Label),
    /// A block that begins no Takeup label.
    Foreign,
    /// No block, but a filemark; the tape is behind it.
    Filemark,
    EndOfData,
    /// The block is unreadable, or is a damaged label.
    Unreadable {
        why: String,
    },
}

/// Reads blocks until it is known what they begin. The bytes are in `bytes`: whole blocks. Fails on
/// a label of a later version, which anything may follow.
pub(super) fn read_opening(
    blocks: &mut BlockReader,
    bytes: &mut Vec<u8>,
    cancel: &Cancel,
) -> Result<Opening, TapeReadFailure> {
    bytes.clear();
    let mut scratch = vec![0; FIRST_BUFFER_BYTES];
    let mut needed_bytes = 1;
    loop {
        match read_block(blocks, &mut scratch, cancel)? {
            Met::Block(block_bytes) => bytes.extend_from_slice(&scratch[..block_bytes]),
            Met::Filemark if bytes.is_empty() => return Ok(Opening::Filemark),
            Met::EndOfData if bytes.is_empty() => return Ok(Opening::EndOfData),
            Met::Lost { why } => return Ok(Opening::Unreadable { why }),
            // A label of several blocks may be cut off by the end of the volume.
            Met::Filemark | Met::EndOfData | Met::LargerBlock => return Ok(Opening::Foreign),
        }
        if bytes.len() < needed_bytes {
            continue;
        }
        match Label::find(bytes) {
            Ok(Found::Label(label)) if !label_can_be(&label) => {
                let why = "damaged label: it claims more than tapes can hold".to_owned();
                return Ok(Opening::Unreadable { why });
            }
            Ok(Found::Label(label)) => {
                blocks.check_identity(&label)?;
                return Ok(Opening::Label(label));
            }
            Ok(Found::NeedMore { prefix_bytes }) if prefix_bytes <= LABEL_BYTES_MAX => {
                needed_bytes = prefix_bytes;
            }
            Ok(_) => return Ok(Opening::Foreign),
            Err(source @ LabelError::Later { .. }) => {
                let file = blocks.here().map(|spot| format!("file {}", spot.file));
                let place = file.unwrap_or_else(|| "a file".to_owned());
                return Err(TapeReadFailure::Label { device: blocks.device(), place, source });
            }
            Err(error) => return Ok(Opening::Unreadable { why: error.to_string() }),
        }
    }
}

/// Reads a block of any size; the buffer grows as needed.
pub(super) fn read_block(
    blocks: &mut BlockReader,
    buffer: &mut Vec<u8>,
    cancel: &Cancel,
) -> Result<Met, TapeReadFailure> {
    loop {
        let met = blocks.read(buffer, cancel)?;
        if met != Met::LargerBlock {
            return Ok(met);
        }
        if !grow(buffer, BLOCK_BYTES_MAX) {
            let (device, limit_bytes) = (blocks.device(), buffer.len());
            return Err(TapeReadFailure::BlockTooLarge { device, limit_bytes });
        }
    }
}

/// Checks that the label at the tape's position belongs to this medium.
pub(super) fn check_medium(tape: &mut Tape, medium: [u8; 16]) -> Result<(), TapeReadFailure> {
    let device = tape.name().to_owned();
    let mut buffer = vec![0; FIRST_BUFFER_BYTES];
    let found = match read_any(tape, &mut buffer, BLOCK_BYTES_MAX)? {
        TapeRead::Block(bytes) => match Label::find(&buffer[..bytes]) {
            Ok(Found::Label(label)) if label.medium == medium => return Ok(()),
            Ok(Found::Label(label)) => format!("its id is {}", hex(&label.medium)),
            // The label may be longer than a block; its position alone is enough.
            Ok(Found::NeedMore { .. }) => return Ok(()),
            _ => "there is no label where it was".to_owned(),
        },
        _ => "there is no block where the label was".to_owned(),
    };
    Err(TapeReadFailure::Exchanged { device, found })
}
