//! The ioctls of `linux/mtio.h` as bytes, on a 64-bit machine.

use device::tape::raw::RawStatus;

/// `MTIOCTOP`: `_IOW('m', 1, struct mtop)`.
pub(super) const MTIOCTOP: u32 = 0x4008_6d01;
/// `MTIOCGET`: `_IOR('m', 2, struct mtget)`.
pub(super) const MTIOCGET: u32 = 0x8030_6d02;
/// `MTIOCPOS`: `_IOR('m', 3, struct mtpos)`.
pub(super) const MTIOCPOS: u32 = 0x8008_6d03;

/// Operation and count of a `struct mtop`.
pub(super) fn decode_operation(bytes: &[u8]) -> Option<(i16, i32)> {
    let operation = bytes.get(..2)?.try_into().ok()?;
    let count = bytes.get(4..8)?.try_into().ok()?;
    Some((i16::from_ne_bytes(operation), i32::from_ne_bytes(count)))
}

/// A `struct mtget`.
pub(super) fn encode_status(status: &RawStatus) -> Vec<u8> {
    let long = [
        status.drive_type,
        status.residual,
        status.density_and_block_size,
        status.general_status,
        status.recovered_errors,
    ];
    let int = [status.file_number, status.block_number];
    let mut bytes: Vec<u8> = long.iter().flat_map(|value| value.to_ne_bytes()).collect();
    bytes.extend(int.iter().flat_map(|value| value.to_ne_bytes()));
    bytes
}

/// A `struct mtpos`.
pub(super) fn encode_position(position: u64) -> Vec<u8> {
    position.to_ne_bytes().to_vec()
}
