//! What a record of readings lacks, in lines for people.

use std::path::Path;

use base::escape::{escape, escape_path};
use base::format::counted;
use service::watch::RecordDamage;
use watch::record::LeftOut;

/// Maximum number of damaged lines to name.
const LEFT_OUT_TOLD: usize = 5;

/// Impossible readings, and an end in the middle of a line; empty for a whole record.
pub fn damage(damage: &RecordDamage<'_>) -> String {
    let RecordDamage { path, left_out, left_out_count, is_cut } = damage;
    let shown = escape_path(path);
    let mut text = String::new();
    for LeftOut { line, why } in left_out.iter().take(LEFT_OUT_TOLD) {
        let why = escape(why.as_bytes());
        text.push_str(&format!("takeup: {shown}, line {line}: skipped: {why}\n"));
    }
    let more = left_out_count.saturating_sub(LEFT_OUT_TOLD as u64);
    if more > 0 {
        let lines = counted(more, "more line", "more lines");
        text.push_str(&format!("takeup: {shown}: {lines} skipped\n"));
    }
    if *is_cut {
        text.push_str(&cut(path));
    }
    text
}

/// A record that ends in the middle of a line.
pub fn cut(path: &Path) -> String {
    let shown = escape_path(path);
    format!("takeup: {shown}: the last line is incomplete and was skipped\n")
}
