//! Records of `takeup watch --record`, as input of `report` and `compare`.

use std::path::Path;

use service::watch::RecordDamage;
use watch::history::History;

use crate::standard_error::to_standard_error;

/// Reports what was skipped in a record.
pub fn say_damage(path: &Path, history: &History) {
    let (left_out, left_out_count) = (&*history.left_out.0, history.left_out.1);
    let damage = RecordDamage { path, left_out, left_out_count, is_cut: history.is_cut };
    to_standard_error(&report::watch::damage(&damage));
}
