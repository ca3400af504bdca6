//! SCSI disks: the transport follows from the parent folders in sysfs
//! (drivers/scsi/scsi_transport_*.c).

use std::path::{Path, PathBuf};

use super::{Layer, LayerKind};
use crate::layers::file_name;
use machine::Machine;

pub(super) fn look(machine: &Machine, layer: &mut Layer, folder: &Path) {
    layer.kind = LayerKind::Scsi;
    if let Some(serial) = machine.bytes(&folder.join("device/vpd_pg80")).and_then(|it| serial(&it))
    {
        layer.facts.insert("serial".into(), serial);
    }
    let Ok(device) = std::fs::canonicalize(folder.join("device")) else { return };
    layer.facts.insert("address".into(), file_name(&device));
    let above: Vec<PathBuf> = device.ancestors().skip(1).map(Path::to_owned).collect();
    let found = |prefix: &str| {
        let is_it = |folder: &&PathBuf| {
            let rest = file_name(folder).strip_prefix(prefix).map(str::to_owned);
            rest.is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()))
        };
        above.iter().find(is_it).cloned()
    };
    if let Some(host) = found("host")
        && let Some(driver) =
            machine.word(&host.join("scsi_host").join(file_name(&host)).join("proc_name"))
    {
        layer.facts.insert("adapter".into(), driver);
    }
    if let Some(session) = found("session") {
        iscsi(machine, layer, &session);
    } else if let Some(port) = found("rport-") {
        let host = found("host").unwrap_or_default();
        fibre_channel(machine, layer, &port, &host);
    } else if let Some(end) = found("end_device-") {
        layer.kind = LayerKind::Sas;
        let own = end.join("sas_device").join(file_name(&end));
        if let Some(address) = machine.word(&own.join("sas_address")) {
            layer.names.insert("sas_address".into(), address);
        }
    } else if found("ata").is_some() {
        layer.kind = LayerKind::Ata;
    } else if found("usb").is_some() {
        layer.kind = LayerKind::Usb;
    } else if found("virtio").is_some() {
        layer.kind = LayerKind::Virtio;
    }
}

/// `session1/iscsi_session/session1`, and below it the connections.
fn iscsi(machine: &Machine, layer: &mut Layer, session: &Path) {
    layer.kind = LayerKind::Iscsi;
    let own = session.join("iscsi_session").join(file_name(session));
    for (fact, file) in [("target", "targetname"), ("session", "state")] {
        if let Some(text) = machine.word(&own.join(file)) {
            layer.facts.insert(fact.into(), text);
        }
    }
    let is_connection = |folder: &PathBuf| file_name(folder).starts_with("connection");
    for connection in machine.entries(session).into_iter().filter(is_connection) {
        let own = connection.join("iscsi_connection").join(file_name(&connection));
        let word = |persistent: &str, now: &str| {
            machine.word(&own.join(persistent)).or_else(|| machine.word(&own.join(now)))
        };
        let address = word("persistent_address", "address");
        let port = word("persistent_port", "port");
        if let (Some(address), Some(port)) = (address, port) {
            let address = if address.contains(':') { format!("[{address}]") } else { address };
            layer.facts.insert("portal".into(), format!("{address}:{port}"));
        }
    }
}

/// `rport-0:0-1/fc_remote_ports/rport-0:0-1`, and the port of the host.
fn fibre_channel(machine: &Machine, layer: &mut Layer, port: &Path, host: &Path) {
    layer.kind = LayerKind::FibreChannel;
    let far = port.join("fc_remote_ports").join(file_name(port));
    let near = host.join("fc_host").join(file_name(host));
    let facts = [
        ("target_port", far.join("port_name")),
        ("port_state", far.join("port_state")),
        ("own_port", near.join("port_name")),
        ("speed", near.join("speed")),
    ];
    for (fact, place) in facts {
        if let Some(text) = machine.word(&place) {
            layer.facts.insert(fact.into(), text);
        }
    }
}

/// The serial number in page 80h of the vital product data. Its header has four bytes; the last two
/// are the length (SPC).
fn serial(page: &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let bytes = page.get(4..)?;
    let bytes = bytes.get(..length.min(bytes.len()))?;
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_matches(|it: char| it.is_whitespace() || it == '\0');
    (!text.is_empty() && page.get(1) == Some(&0x80)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn serial_numbers() {
        assert_eq!(serial(b"\0\x80\0\x06  S3Z8").as_deref(), Some("S3Z8"));
        assert_eq!(serial(b"\0\x83\0\x04ABCD"), None);
        assert_eq!(serial(b"\0\x80\0\x20AB").as_deref(), Some("AB"));
        assert_eq!(serial(b"\0\x80\0\x02  "), None);
    }

    proptest! {
        #[test]
        fn no_page_panics(page in proptest::collection::vec(any::<u8>(), 0..80)) {
            serial(&page);
        }
    }
}
