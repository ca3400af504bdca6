//! `takeup probe` on a drive.

use crate::{device, fresh, run, shell};
use std::path::Path;

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn probe_names_the_limits() {
    fresh("probed", 16);
    let said = run(&["probe", &device(), "--json"]).with_code(0);
    let document = said.json().to_string();
    let limit = if device().ends_with("nst0") { "1048576" } else { "8388608" };
    assert!(document.contains(limit), "{document}");
    let product = if device().ends_with("nst0") { "VIRTUAL-TAPE" } else { "VIRTUAL-TD7" };
    assert!(document.contains(product), "{document}");
    run(&["probe", &device()]).with_code(0);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn probe_moves_no_tape() {
    fresh("still", 16);
    let write = "dd if=/dev/zero of=$TAPE bs=64k count=5 status=none; mt rewind; mt fsr 3";
    shell(Path::new("/"), write).with_code(0);
    run(&["probe", &device()]).with_code(0);
    let status = shell(Path::new("/"), "mt status").with_code(0).output;
    assert!(status.contains("File number=0, block number=3"), "{status}");
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn probe_without_a_medium() {
    fresh("absent", 16);
    crate::cartridge(&["eject"]);
    let said = run(&["probe", &device()]).with_code(0);
    assert!(said.output.contains("medium"), "{}", said.output);
    crate::cartridge(&["load", "absent"]);
}
