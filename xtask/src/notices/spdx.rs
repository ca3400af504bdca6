//! The list of parts as an SPDX 2.3 document (<https://spdx.github.io/spdx-spec/v2.3/>).

use anyhow::Context as _;
use serde_json::{Value, json};

use super::parts::Part;

/// The document. Its namespace is unique for a version and its dependencies.
///
/// # Errors
/// When the program is not among the parts, or the time cannot be written.
pub fn document(parts: &[Part], lock: &[u8], epoch: i64) -> anyhow::Result<String> {
    let program = parts.iter().find(|it| it.name == "takeup").context("the program is missing")?;
    let digest = blake3::hash(lock).to_hex();
    let created = jiff::Timestamp::from_second(epoch).context("the time of the source")?;
    let created = created.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let beside = BESIDE.map(|(name, licence)| beside(name, licence));
    let packages: Vec<Value> = parts.iter().map(package).chain(beside).collect();
    let describes = json!({
        "spdxElementId": "SPDXRef-DOCUMENT",
        "relationshipType": "DESCRIBES",
        "relatedSpdxElement": id(&program.key()),
    });
    let needs = parts.iter().flat_map(|part| {
        part.needs.iter().map(|need| {
            json!({
                "spdxElementId": id(&part.key()),
                "relationshipType": "DEPENDS_ON",
                "relatedSpdxElement": id(need),
            })
        })
    });
    let linked = BESIDE.map(|(name, _)| {
        json!({
            "spdxElementId": id(&program.key()),
            "relationshipType": "STATIC_LINK",
            "relatedSpdxElement": id(name),
        })
    });
    let relationships: Vec<Value> = std::iter::once(describes).chain(linked).chain(needs).collect();
    let name = format!("takeup-{}", program.version);
    let document = json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": format!("https://spdx.org/spdxdocs/{name}-{digest}"),
        "creationInfo": { "created": created, "creators": ["Tool: cargo xtask notices"] },
        "packages": packages,
        "relationships": relationships,
    });
    Ok(format!("{document:#}\n"))
}

/// What is in the binary beside the crates; which version depends on where it is built.
const BESIDE: [(&str, &str); 2] =
    [("rust-std", "MIT OR Apache-2.0"), ("glibc", "LGPL-2.1-or-later")];

fn beside(name: &str, licence: &str) -> Value {
    json!({
        "SPDXID": id(name),
        "name": name,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        "filesAnalyzed": false,
        "downloadLocation": "NOASSERTION",
    })
}

fn package(part: &Part) -> Value {
    let Part { name, version, licence, .. } = part;
    let mut package = json!({
        "SPDXID": id(&part.key()),
        "name": name,
        "versionInfo": version,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        "filesAnalyzed": false,
        "downloadLocation": "NOASSERTION",
    });
    if !part.is_own {
        package["downloadLocation"] = format!("https://crates.io/crates/{name}/{version}").into();
        package["externalRefs"] = json!([{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": format!("pkg:cargo/{name}@{version}"),
        }]);
    }
    if let Some(checksum) = &part.checksum {
        package["checksums"] = json!([{ "algorithm": "SHA256", "checksumValue": checksum }]);
    }
    package
}

/// An identifier has letters, digits, dots and hyphens.
fn id(key: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' }
    };
    format!("SPDXRef-{}", key.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_relationship_is_between_parts_that_are_there() {
        let part = |name: &str, needs: &[&str]| Part {
            name: name.to_owned(),
            version: "1.0.0+c_1".to_owned(),
            licence: "MIT".to_owned(),
            folder: "/".into(),
            is_own: name == "takeup",
            checksum: (name != "takeup").then(|| "ab".repeat(32)),
            needs: needs.iter().map(|it| (*it).to_owned()).collect(),
        };
        let parts = [part("takeup", &["zstd-sys 1.0.0+c_1"]), part("zstd-sys", &[])];
        let text = document(&parts, b"lock", 1_700_000_000).unwrap();
        assert_eq!(text, document(&parts, b"lock", 1_700_000_000).unwrap());
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["creationInfo"]["created"], "2023-11-14T22:13:20Z");
        let packages = document["packages"].as_array().unwrap();
        let ids: BTreeSet<&str> =
            packages.iter().map(|it| it["SPDXID"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 4);
        let relationships = document["relationships"].as_array().unwrap();
        assert_eq!(relationships.len(), 4);
        for one in relationships {
            assert!(ids.contains(one["relatedSpdxElement"].as_str().unwrap()), "{one}");
        }
        assert_eq!(packages[1]["checksums"][0]["algorithm"], "SHA256");
        assert!(packages[0]["checksums"].is_null());
    }
}
