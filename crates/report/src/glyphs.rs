//! Characters of graphs and trees, and numbers that fit a small width.

/// The characters of this terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyphs {
    /// Blocks and lines of Unicode.
    Unicode,
    /// Characters that every terminal has.
    Ascii,
}

impl Glyphs {
    /// From the locale (locale(7)).
    pub fn of_environment() -> Glyphs {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
        Glyphs::of_locale(locale.as_deref().unwrap_or_default())
    }

    fn of_locale(locale: &str) -> Glyphs {
        let folded = locale.to_ascii_lowercase();
        let is_unicode = folded.contains("utf-8") || folded.contains("utf8");
        if is_unicode { Glyphs::Unicode } else { Glyphs::Ascii }
    }

    /// From nothing to full.
    fn bars(self) -> &'static [char] {
        match self {
            Glyphs::Unicode => &[' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
            Glyphs::Ascii => &[' ', '.', ':', '-', '=', '+', '*', '#', '@'],
        }
    }

    /// Before a child that is not the last one, and before the last one.
    pub(crate) fn branches(self) -> [&'static str; 2] {
        match self {
            Glyphs::Unicode => ["├ ", "└ "],
            Glyphs::Ascii => ["|-", "`-"],
        }
    }

    /// The continuation below these two.
    pub fn trunks(self) -> [&'static str; 2] {
        match self {
            Glyphs::Unicode => ["│ ", "  "],
            Glyphs::Ascii => ["| ", "  "],
        }
    }

    /// A graph of this width, the last value at the right end, with `full` as the full height. Any
    /// value above 0 is visible.
    pub fn graph(self, values: &[f32], full: f32, width: usize) -> String {
        let bars = self.bars();
        let top = bars.len() - 1;
        let bar = |value: &f32| {
            let level = (1..top).filter(|level| *value / full * top as f32 > *level as f32).count();
            if *value > 0.0 && full > 0.0 { bars[level + 1] } else { bars[0] }
        };
        let shown = &values[values.len().saturating_sub(width)..];
        let graph: String = shown.iter().map(bar).collect();
        format!("{graph:>width$}")
    }
}

/// A number in at most this many characters, with up to two decimals; in thousands or millions if
/// it does not fit.
pub fn fitted(value: f64, width: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let plain = [2, 1, 0].map(|decimals| format!("{value:.decimals$}"));
    let short = [(1e3, 'k'), (1e6, 'M'), (1e9, 'G')];
    let short = short.map(|(unit, letter)| format!("{:.0}{letter}", value / unit));
    let mut texts = plain.into_iter().chain(short);
    texts.find(|text| text.len() <= width).unwrap_or_else(|| "#".repeat(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_little_room() {
        for (value, width, expected) in [
            (0.0, 6, "0"),
            (3.276, 6, "3.28"),
            (12345.678, 7, "12345.7"),
            (12345.678, 6, "12346"),
            (2_403_038.76, 7, "2403039"),
            (2_403_038.76, 6, "2403k"),
            (9e12, 5, "9000G"),
            (9e12, 4, "####"),
        ] {
            assert_eq!(fitted(value, width), expected);
        }
    }

    #[test]
    fn graphs_end_at_the_right_and_show_what_is_little() {
        let graph = |values: &[f32]| Glyphs::Unicode.graph(values, 8.0, 5);
        assert_eq!(graph(&[0.001, 8.0]), "   ▁█");
        assert_eq!(graph(&[9.0, 0.0, 1.0, 2.0, 4.0, 8.0]), " ▁▂▄█");
        assert_eq!(Glyphs::Ascii.graph(&[0.0, 1.0, 8.0], 8.0, 3), " .@");
        // All values are 0.
        assert_eq!(Glyphs::Unicode.graph(&[0.0, 0.0], 0.0, 2), "  ");
    }

    #[test]
    fn a_locale_without_unicode_gets_none() {
        for (locale, expected) in [
            ("de_DE.UTF-8", Glyphs::Unicode),
            ("C.utf8", Glyphs::Unicode),
            ("POSIX", Glyphs::Ascii),
            ("", Glyphs::Ascii),
        ] {
            assert_eq!(Glyphs::of_locale(locale), expected, "{locale}");
        }
    }
}
