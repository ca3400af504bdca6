//! Operations of `MTIOCTOP` by number, `linux/mtio.h`, and how the driver groups them.

pub(super) const MTFSF: i16 = 1;
pub(super) const MTBSF: i16 = 2;
pub(super) const MTFSR: i16 = 3;
pub(super) const MTBSR: i16 = 4;
pub(super) const MTWEOF: i16 = 5;
pub(super) const MTREW: i16 = 6;
pub(super) const MTOFFL: i16 = 7;
pub(super) const MTNOP: i16 = 8;
pub(super) const MTRETEN: i16 = 9;
pub(super) const MTBSFM: i16 = 10;
pub(super) const MTFSFM: i16 = 11;
pub(super) const MTEOM: i16 = 12;
pub(super) const MTERASE: i16 = 13;
pub(super) const MTSETBLK: i16 = 20;
pub(super) const MTSEEK: i16 = 22;
pub(super) const MTSETDRVBUFFER: i16 = 24;
pub(super) const MTLOCK: i16 = 28;
pub(super) const MTUNLOCK: i16 = 29;
pub(super) const MTLOAD: i16 = 30;
pub(super) const MTUNLOAD: i16 = 31;
pub(super) const MTCOMPRESSION: i16 = 32;
pub(super) const MTWEOFI: i16 = 35;

/// After these the driver still knows whether data were written last.
pub(super) const KEEP_ACTIVITY: [i16; 3] = [MTNOP, MTSETBLK, MTSETDRVBUFFER];

/// These keep the position, so that data read ahead need not be returned.
pub(super) const MOVE_AWAY: [i16; 12] = [
    MTREW,
    MTOFFL,
    MTRETEN,
    MTEOM,
    MTLOCK,
    MTLOAD,
    MTFSF,
    MTFSFM,
    MTBSF,
    MTBSFM,
    MTCOMPRESSION,
    MTSEEK,
];

/// After data that were just written, these write a filemark first.
pub(super) const END_THE_FILE: [i16; 5] = [MTREW, MTOFFL, MTSEEK, MTBSF, MTBSFM];

/// Operations that are allowed while the position is unknown.
pub(super) const AFTER_RESET: [i16; 7] = [MTREW, MTOFFL, MTLOAD, MTRETEN, MTERASE, MTSEEK, MTEOM];
