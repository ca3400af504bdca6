//! Properties of a drive: names, limits, and defects.

use std::collections::BTreeSet;

use super::super::faults::{
    AccessOrders, Answers, CartridgeMemories, CompressionSwitch, Ends, Positioning,
};

/// Properties of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveSettings {
    /// Vendor identification, 8 characters at most.
    pub vendor: String,
    /// Product identification, 16 characters at most.
    pub product: String,
    /// Firmware, 4 characters at most.
    pub revision: String,
    pub serial: String,
    /// Smallest block, as READ BLOCK LIMITS answers.
    pub block_bytes_min: u16,
    /// Largest block, 24 bits.
    pub block_bytes_max: u32,
    /// Most bytes of one transfer to the drive, if known.
    pub transfer_bytes_max: Option<u64>,
    /// What it does when compression is switched.
    pub compression_switch: CompressionSwitch,
    /// How it answers commands that ask for data.
    pub answers: Answers,
    /// Whether it reads the memory chip of a cartridge.
    pub cartridge_memory: CartridgeMemories,
    /// Whether it recommends an order of places.
    pub access_orders: AccessOrders,
    /// Whether it knows block numbers.
    pub positioning: Positioning,
    /// How it reports where it stopped.
    pub ends: Ends,
    /// TapeAlert flags that are set until they are read, 1 to 64. With flag 20 or 21 it also
    /// requests cleaning.
    pub alerts: BTreeSet<u8>,
}

impl DriveSettings {
    /// A drive with only the abilities of the lab's `tgtd`.
    pub fn like_tgtd() -> DriveSettings {
        DriveSettings {
            block_bytes_min: 4,
            block_bytes_max: 1 << 20,
            cartridge_memory: CartridgeMemories::Unread,
            positioning: Positioning::Unsupported,
            ends: Ends::Vague,
            ..DriveSettings::default()
        }
    }
}

impl Default for DriveSettings {
    fn default() -> DriveSettings {
        DriveSettings {
            vendor: "TAKEUP".into(),
            product: "VIRTUAL-TD7".into(),
            revision: "0001".into(),
            serial: "TKUP000001".into(),
            block_bytes_min: 1,
            block_bytes_max: 8 << 20,
            transfer_bytes_max: None,
            compression_switch: CompressionSwitch::Obeyed,
            answers: Answers::Proper,
            cartridge_memory: CartridgeMemories::Read,
            access_orders: AccessOrders::Unknown,
            positioning: Positioning::Numbered,
            ends: Ends::Proper,
            alerts: BTreeSet::new(),
        }
    }
}
