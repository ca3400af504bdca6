//! The published numbers, from the tables that the judgement is tested with.

use anyhow::Context as _;
use toml::{Table, Value};

/// One account as data.
pub struct Published(Table);

impl Published {
    /// Loads it by the name of its table.
    ///
    /// # Errors
    /// When the table is not in the repository.
    pub fn open(name: &str) -> anyhow::Result<Published> {
        let folder = crate::folders::repository().join("crates/experiment/tests/published");
        let path = folder.join(format!("{name}.toml"));
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        Ok(Published(text.parse().with_context(|| format!("{}", path.display()))?))
    }

    /// A number by its path: names of tables and indices of lists, separated by dots.
    ///
    /// # Errors
    /// When there is no such number.
    pub fn number(&self, place: &str) -> anyhow::Result<f64> {
        let value = self.find(place).with_context(|| format!("the account has no {place}"))?;
        let whole = value.as_integer().map(|number| number as f64);
        value.as_float().or(whole).with_context(|| format!("{place} is no number"))
    }

    /// Length of a list.
    pub fn count(&self, place: &str) -> usize {
        self.find(place).and_then(Value::as_array).map_or(0, Vec::len)
    }

    fn find(&self, place: &str) -> Option<&Value> {
        let mut parts = place.split('.');
        let first = self.0.get(parts.next()?)?;
        parts.try_fold(first, |value, part| match part.parse::<usize>() {
            Ok(index) => value.as_array()?.get(index),
            Err(_) => value.get(part),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_place() {
        let table = Published::open("tape-block-size").unwrap();
        assert_eq!(table.number("series.2.rows.0.seconds").unwrap(), 1138.36);
        assert_eq!(table.number("conclusions.incompressible_knee_bytes").unwrap(), 65536.0);
        assert_eq!(table.count("series.3.rows"), 7);
        assert!(table.number("series.9.rows").is_err());
        assert!(table.number("title").is_err());
        assert!(Published::open("nothing").is_err());
    }
}
