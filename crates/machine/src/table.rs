//! Lines of a name, a colon and a value, as most files of `/proc` are written.

/// The value of the first line with this name.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim_end() == name).then_some(value.trim())
    })
}

/// The value in bytes, from a line that ends in `kB`, which here means 1024 bytes.
pub fn bytes(text: &str, name: &str) -> Option<u64> {
    let kib: u64 = field(text, name)?.strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_and_kilobytes_are_binary() {
        let text = "MemTotal:  16 kB\nTotal:\t7\nmodel name\t: A: B\nUmask:\t0022\n";
        assert_eq!((bytes(text, "MemTotal"), bytes(text, "Total")), (Some(16_384), None));
        assert_eq!((field(text, "Total"), field(text, "Mem")), (Some("7"), None));
        assert_eq!(field(text, "model name"), Some("A: B"));
    }
}
