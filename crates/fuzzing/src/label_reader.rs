//! Any bytes as the start of a part on tape, and as the fields of a label whose header and checksum
//! hold. A label that can be read has to be the same after it was written again.

use archive::encode::encode_global_header;
use archive::label::{Continuation, Found, Label};
use twox_hash::XxHash3_64;

/// Larger blocks are the same to the reader and cost only time.
const BLOCK_BYTES_MAX: u32 = 64 << 10;

/// Checks one input.
pub fn check(input: &[u8]) {
    let _ = Label::find(input);
    let mut text = [b"takeup 1 ", input, b" "].concat();
    let check = XxHash3_64::oneshot(&text);
    text.extend_from_slice(format!("check={check:016x}  ").as_bytes());
    let mut part = Vec::new();
    if encode_global_header("GlobalHead", &[(b"comment", &text)], &mut part).is_err() {
        return;
    }
    if let Ok(Found::Label(label)) = Label::find(&part)
        && label.block_bytes <= BLOCK_BYTES_MAX
    {
        let mut again = label;
        // Fields that no writer would put together: a plain stream that is not whole units.
        if label.coding().is_none() && label.stream_bytes % 512 != 0 {
            return;
        }
        let bytes = again.encode(Continuation::None).expect("what was read can be written");
        assert_eq!(bytes.len(), again.length_bytes as usize);
        let expected = Label { length_bytes: again.length_bytes, ..label };
        assert!(matches!(Label::find(&bytes), Ok(Found::Label(found)) if found == expected));
    }
}
