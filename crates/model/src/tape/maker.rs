//! Makers of drives: the mechanisms of one generation stream at different speeds.
//!
//! Two makers are known to have built LTO drives with speeds of their own, IBM and HP. The seller
//! shows nothing: Dell, Quantum, Tandberg and others sell both. The product name in INQUIRY does,
//! since sellers leave it as the maker chose it.

use std::fmt;

/// A maker of drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// IBM: `ULTRIUM-TD3`, `ULT3580-HH7`. All drives from LTO-8 on have its speeds, by the manuals
    /// of IBM and Quantum.
    Ibm,
    /// Hewlett-Packard and HPE: `Ultrium 3-SCSI`.
    Hp,
}

impl Maker {
    /// By the product name of INQUIRY; `None` if it could be of either maker.
    pub fn of_product(product: &str) -> Option<Maker> {
        let product = product.to_ascii_uppercase();
        let is_ibm = ["ULTRIUM-TD", "ULTRIUM-HH", "ULT3580-"];
        match () {
            () if is_ibm.iter().any(|mark| product.contains(mark)) => Some(Maker::Ibm),
            () if product.contains("ULTRIUM ") && product.contains("-SCSI") => Some(Maker::Hp),
            () => None,
        }
    }
}

impl fmt::Display for Maker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Maker::Ibm => "IBM",
            Maker::Hp => "HP",
        })
    }
}
