//! What a check of blocks adds to a report.

use crate::verify::VerifyReport;
use crate::warnings::Warnings;

pub(super) fn report_blocks(
    block_bytes: u32,
    differing: &[u64],
    differing_count: u64,
    report: &mut VerifyReport,
    warnings: &Warnings<'_>,
) {
    report.hit.blocks(differing, block_bytes.into());
    for block in differing {
        let at = block * u64::from(block_bytes);
        let what = format!("the checksum of the {block_bytes} bytes at byte {at} does not hold");
        report.problem(b"", what, warnings);
    }
    report.damaged.total += differing_count.saturating_sub(differing.len() as u64);
}
