//! Ratios with their intervals against a band of differences too small to matter: one row each, so
//! that the reader sees what each interval decides.
//!
//! The verdict is in the shape of the mark and in a word, never in colour alone: a filled square
//! where the two differ, a filled circle inside the band, a ring where the interval decides
//! nothing.

use std::fmt::Write;

use super::{STYLE, cut, escaped};

/// What an interval decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It excludes a ratio of 1.
    Differs,
    /// All of it is in the band.
    Same,
    /// Neither.
    Not,
}

/// One ratio.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What is compared.
    pub name: String,
    pub ratio: f64,
    /// Its interval; `None` where it could not be computed.
    pub interval: Option<(f64, f64)>,
    /// What the interval decides.
    pub settled: Settled,
}

/// The words for ratios of rates.
pub const RATES: [&str; 2] = ["slower", "faster"];

/// Rows on one logarithmic axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    pub title: String,
    /// Name of the axis: what the ratio is of.
    pub x_name: String,
    /// Differences below this share are too small to matter.
    pub band: f64,
    /// The words for a ratio below 1 and above 1.
    pub ways: [&'static str; 2],
    pub rows: Vec<Row>,
}

const WIDTH: f64 = 900.0;
const LEFT: f64 = 330.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 34.0;
const ROW: f64 = 26.0;
const BOTTOM: f64 = 44.0;
const LETTER: f64 = 6.0;
/// Intervals that end further out, and twice as far as every ratio, are drawn to the edge: one
/// uncertain ratio must not press all others together.
const INTERVAL_FACTOR_MAX: f64 = 32.0;
/// Ratios further out are drawn at the edge.
const FACTOR_MAX: f64 = 1e9;
/// Labels on one side of 1, beside the powers of ten.
const TICKS: [f64; 8] = [1.02, 1.05, 1.1, 1.25, 2.0, 5.0, 10.0, 30.0];
/// Labels of the axis closer than this would touch.
const APART: f64 = 38.0;

impl Forest {
    /// A part of a page that has [`STYLE`].
    pub fn to_part(&self) -> String {
        self.drawn("", "")
    }

    /// A self-contained SVG file.
    pub fn to_file(&self) -> String {
        let attributes = format!(" xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\"");
        self.drawn(&attributes, &format!("<style>{STYLE}</style>"))
    }

    /// How far the axis goes on both sides of 1.
    fn reach(&self) -> f64 {
        let far = |ratio: f64| {
            let is_drawable = ratio.is_finite() && ratio > 0.0;
            is_drawable.then(|| ratio.ln().abs().min(FACTOR_MAX.ln()))
        };
        let least = 2.5 * self.band.ln_1p();
        let ratios = self.rows.iter().filter_map(|row| far(row.ratio));
        let farthest = ratios.fold(least, f64::max);
        let most = INTERVAL_FACTOR_MAX.ln().max(farthest + 2f64.ln());
        let ends = self.rows.iter().filter_map(|row| row.interval);
        let ends = ends.flat_map(|(low, high)| [far(low), far(high)]).flatten();
        ends.fold(farthest, |reach, end| reach.max(end.min(most))) * 1.06
    }

    fn drawn(&self, attributes: &str, style: &str) -> String {
        let bottom = TOP + ROW * self.rows.len() as f64;
        let height = bottom + BOTTOM;
        let reach = self.reach();
        let place = |ratio: f64| {
            let log = ratio.max(1e-9).ln().clamp(-reach, reach);
            LEFT + (WIDTH - LEFT - RIGHT) * (log / reach + 1.0) / 2.0
        };
        let title = escaped(&self.title);
        let mut text = format!(
            "<svg class=\"fig\"{attributes} viewBox=\"0 0 {WIDTH} {height}\" role=\"group\" \
             aria-label=\"{title}\">{style}<rect class=\"ground\" width=\"{WIDTH}\" \
             height=\"{height}\"/><text class=\"title\" x=\"8\" y=\"20\">{title}</text>\n"
        );
        let (low, high) = (place(1.0 / (1.0 + self.band)), place(1.0 + self.band));
        let _ = writeln!(
            text,
            "<rect class=\"band\" x=\"{low:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>\
             <path class=\"axis\" d=\"M{:.1} {TOP}V{bottom}M{LEFT} {bottom}H{:.1}\"/>",
            high - low,
            bottom - TOP,
            place(1.0),
            WIDTH - RIGHT
        );
        draw_ticks(&mut text, reach, bottom, place);
        for (number, row) in self.rows.iter().enumerate() {
            row.draw(&mut text, TOP + ROW * (number as f64 + 0.5), self, place);
        }
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}; grey: within {:.0} %</text>\
             </svg>",
            place(1.0),
            bottom + 36.0,
            escaped(&self.x_name),
            self.band * 100.0
        );
        text
    }
}

/// Labels of the axis: 1 first, then those that do not touch another.
fn draw_ticks(text: &mut String, reach: f64, bottom: f64, place: impl Fn(f64) -> f64) {
    let mut labelled: Vec<f64> = Vec::new();
    // Over decades powers of ten come first, and what fits between them.
    let decades = if reach >= 100f64.ln() { 9 } else { 0 };
    let powers = (1..=decades).map(|power| 10f64.powi(power));
    let one_side = powers.chain(TICKS).filter(|tick| tick.ln() <= reach);
    let both_sides = one_side.flat_map(|tick| [(tick, tick_text(tick)), below_one(tick)]);
    for (tick, label) in std::iter::once((1.0, "1".to_owned())).chain(both_sides) {
        let x = place(tick);
        if labelled.iter().any(|other| (other - x).abs() < APART) {
            continue;
        }
        labelled.push(x);
        let _ = writeln!(
            text,
            "<path class=\"axis\" d=\"M{x:.1} {bottom}v4\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            bottom + 17.0
        );
    }
}

fn tick_text(tick: f64) -> String {
    if (1e-4..1e6).contains(&tick) { format!("{tick}") } else { format!("{tick:e}") }
}

/// The counterpart of a label on the other side of 1, as a short number: 0.98 for 1.02.
fn below_one(tick: f64) -> (f64, String) {
    let below = if tick < 100.0 { (100.0 / tick).round() / 100.0 } else { 1.0 / tick };
    (below, tick_text(below))
}

impl Row {
    /// The verdict in words.
    fn verdict(&self, forest: &Forest) -> String {
        match self.settled {
            Settled::Differs => {
                format!("differs: {}", forest.ways[usize::from(self.ratio > 1.0)])
            }
            Settled::Same => format!("same within {:.0} %", forest.band * 100.0),
            Settled::Not => "not settled".to_owned(),
        }
    }

    fn draw(&self, text: &mut String, y: f64, forest: &Forest, place: impl Fn(f64) -> f64) {
        let verdict = self.verdict(forest);
        let numbers = match self.interval {
            Some((low, high)) => format!(", {low:.2} to {high:.2}"),
            None => ", no interval".to_owned(),
        };
        let label = escaped(&format!("{}: {:.2} times{numbers}: {verdict}", self.name, self.ratio));
        let _ = write!(
            text,
            "<text x=\"8\" y=\"{:.1}\">{}</text><g class=\"value\" tabindex=\"0\" role=\"img\" \
             aria-label=\"{label}\"><title>{label}</title>",
            y + 4.0,
            escaped(&cut(&self.name, (LEFT - 16.0) / LETTER)),
        );
        if let Some((low, high)) = self.interval {
            let (left, right) = (place(low), place(high));
            let _ = write!(
                text,
                "<path class=\"bar ink\" d=\"M{left:.1} {y:.1}H{right:.1}M{left:.1} {:.1}v8\
                 M{right:.1} {:.1}v8\"/>",
                y - 4.0,
                y - 4.0
            );
        }
        let x = place(self.ratio);
        let (form, class) = match self.settled {
            Settled::Differs => (format!("M{:.1} {:.1}h9v9h-9Z", x - 4.5, y - 4.5), "mark full"),
            Settled::Same => (circle(x, y), "mark full"),
            Settled::Not => (circle(x, y), "mark ring"),
        };
        let _ = writeln!(
            text,
            "<path class=\"{class}\" d=\"{form}\"/></g>\
             <text class=\"word\" x=\"{:.1}\" y=\"{:.1}\">{verdict}</text>",
            WIDTH - RIGHT + 12.0,
            y + 4.0
        );
    }
}

fn circle(x: f64, y: f64) -> String {
    format!("M{:.1} {y:.1}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z", x - 4.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn forest(rows: Vec<Row>) -> Forest {
        let (title, x_name) = ("what <is> settled".to_owned(), "B by A".to_owned());
        Forest { title, x_name, band: 0.02, ways: RATES, rows }
    }

    fn row(ratio: f64, interval: Option<(f64, f64)>, settled: Settled) -> Row {
        Row { name: "block size 1 MiB & more".to_owned(), ratio, interval, settled }
    }

    #[test]
    fn three_verdicts_are_told_by_form_and_word() {
        let text = forest(vec![
            row(1.3, Some((1.2, 1.4)), Settled::Differs),
            row(1.0, Some((0.99, 1.01)), Settled::Same),
            row(0.9, Some((0.7, 1.1)), Settled::Not),
            row(0.8, None, Settled::Not),
        ])
        .to_part();
        for word in ["differs: faster", "same within 2 %", "not settled", "no interval"] {
            assert!(text.contains(word), "{word} in {text}");
        }
        assert_eq!(text.matches("mark full").count(), 2);
        assert_eq!(text.matches("mark ring").count(), 2);
        assert_eq!(text.matches("class=\"band\"").count(), 1);
    }

    /// A result of 360 times used to be drawn where the axis ends, at 32.
    #[test]
    fn the_axis_holds_every_ratio() {
        let place_of = |text: &str, label: &str| -> f64 {
            let before = text.split(&format!(">{label}</text>")).next().unwrap();
            let number = before.rsplit("x=\"").next().unwrap();
            number.split('"').next().unwrap().parse().unwrap()
        };
        let rows = vec![
            row(360.0, Some((300.0, 430.0)), Settled::Differs),
            row(0.001, None, Settled::Differs),
            row(1.5, Some((0.5, f64::INFINITY)), Settled::Not),
        ];
        let text = forest(rows).to_part();
        for label in ["1", "100", "1000", "0.001"] {
            assert!(text.contains(&format!(">{label}</text>")), "{label} in {text}");
        }
        let marks: Vec<f64> = text
            .split("mark full\" d=\"M")
            .skip(1)
            .map(|mark| mark.split(' ').next().unwrap().parse::<f64>().unwrap() + 4.5)
            .collect();
        assert!((place_of(&text, "100")..place_of(&text, "1000")).contains(&marks[0]), "{marks:?}");
        assert!((marks[1] - place_of(&text, "0.001")).abs() < 0.2, "{marks:?}");
        // An interval without an end does not press the ratios together.
        let narrow = forest(vec![row(1.5, Some((0.5, 1e8)), Settled::Not)]).reach();
        assert!(narrow < 40f64.ln(), "{narrow}");
    }

    proptest! {
        #[test]
        fn whatever_is_drawn_stays_in_the_figure(
            rows in prop::collection::vec((any::<f64>(), any::<f64>(), any::<f64>()), 0..8),
        ) {
            let rows = rows.into_iter().map(|(ratio, low, high)| {
                row(ratio, Some((low, high)), Settled::Not)
            });
            let text = forest(rows.collect()).to_file();
            prop_assert!(!text.contains("<is>") && text.ends_with("</svg>\n"));
            for tag in text.split('<').filter(|tag| tag.starts_with("path")) {
                prop_assert!(!tag.contains("NaN") && !tag.contains("inf"), "{}", tag);
            }
        }
    }
}
