//! Figures of an experiment: points with error bars and curves, on linear, logarithmic or word
//! axes. The same data give the same bytes: positions are rounded to a tenth, and numbers are
//! printed the same on every machine.
//!
//! A figure has two forms: a self-contained file, and a part of a page, which brings the colours.
//! Each point has its numbers as text, for pointer, keyboard and screen readers. Lines also differ
//! in marks and dashes, so colour alone carries no information.

use std::fmt::Write;

use scale::{Scale, VALUES_MAX, number_text};

pub mod forest;
mod scale;
pub mod spans;
mod time;

/// What the horizontal axis is.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// Numbers from zero.
    Linear,
    /// Powers of two, labelled as numbers.
    Log2,
    /// Powers of two, labelled as sizes.
    Bytes,
    /// Times in nanoseconds on a logarithmic axis, labelled at powers of ten.
    Nanoseconds,
    /// Seconds after a time of day (seconds since 1970), labelled as times in UTC.
    Time(i64),
    /// Words; the x of a point is the index of its word.
    Words(Vec<String>),
}

/// A measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Position on the horizontal axis.
    pub x: f64,
    /// Height.
    pub y: f64,
    /// Ends of its error bar.
    pub range: Option<(f64, f64)>,
    /// Its numbers in words.
    pub label: String,
}

/// A series of values.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureGroup {
    /// Name in the legend.
    pub name: String,
    /// The values, in the order of x. The line has a gap where a value is not a number.
    pub values: Vec<Value>,
    /// A curve in the same colour. Without one, lines join the values, except over words, between
    /// which there are no values.
    pub curve: Vec<(f64, f64)>,
    /// Whether each value is marked, or only the line through them is drawn.
    pub marks: Marks,
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// A mark each, reachable by pointer and keyboard.
    Each,
    /// The line alone, for series of hundreds of values.
    None,
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub title: String,
    /// Name of the horizontal axis.
    pub x_name: String,
    /// Name of the vertical axis, which begins at zero.
    pub y_name: String,
    /// The horizontal axis.
    pub axis: Axis,
    /// Least upper end of the vertical axis: figures side by side share one.
    pub y_least: f64,
    /// Named positions on the horizontal axis, from the bottom to the top.
    pub places: Vec<AxisPlace>,
    /// At most [`GROUPS_MAX`] look different.
    pub groups: Vec<FigureGroup>,
}

/// A named position on the horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisPlace {
    /// The name beside it.
    pub name: String,
    /// The position.
    pub x: f64,
}

/// Groups that differ in colour, mark and dash.
pub const GROUPS_MAX: usize = 6;

const WIDTH: f64 = 560.0;
const PLOT_HEIGHT: f64 = 220.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 46.0;
const LEGEND_LINE: f64 = 18.0;
const LETTER: f64 = 6.3;
/// Width of a letter in titles.
const TITLE_LETTER: f64 = 8.0;
/// Offset between two groups at one position, where there are error bars.
const ASIDE: f64 = 5.0;
/// An error bar is cut if it ends above this multiple of the highest value.
const BAR_SHARE_MAX: f64 = 1.3;

/// Colours, for a page or a self-contained file. The light ones have a contrast of at least 4.5 to
/// white, the dark ones to the dark background.
pub const STYLE: &str = include_str!("figure/figure.css");

/// A self-contained file with figures, one above the other.
pub fn document(figures: &[Figure]) -> String {
    let height: f64 = figures.iter().map(Figure::height).sum();
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\"><style>{STYLE}</style>\n"
    );
    let mut down = 0.0;
    for figure in figures {
        let place = format!(" y=\"{down}\" width=\"{WIDTH}\" height=\"{}\"", figure.height());
        text.push_str(&figure.drawn(&place, ""));
        down += figure.height();
    }
    text.push_str("</svg>\n");
    text
}

impl Figure {
    /// A self-contained file.
    pub fn to_file(&self) -> String {
        self.drawn(&format!(" xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\""), STYLE)
    }

    /// The upper end of the vertical axis: the highest value or point of a curve, and the ends of
    /// error bars unless they are far above. One uncertain value must not flatten all others.
    pub fn y_highest(&self) -> f64 {
        let values = || self.groups.iter().flat_map(|group| &group.values);
        let curves = self.groups.iter().flat_map(|group| &group.curve).map(|(_, y)| *y);
        let all = values().map(|value| value.y).chain(curves);
        let highest = all.filter(|y| y.is_finite()).fold(0.0, f64::max);
        let ends = values().filter_map(|value| value.range).map(|(_, high)| high);
        ends.filter(|high| *high <= highest * BAR_SHARE_MAX).fold(highest, f64::max)
    }

    /// Whether there is nothing to draw: neither a value nor a curve.
    pub fn is_empty(&self) -> bool {
        let is_drawable = |x: f64, y: f64| x.is_finite() && y.is_finite() && y >= 0.0;
        !self.groups.iter().any(|group| {
            group.values.iter().any(|value| is_drawable(value.x, value.y))
                || group.curve.iter().any(|(x, y)| is_drawable(*x, *y))
        })
    }

    fn has_bars(&self) -> bool {
        self.groups.iter().flat_map(|group| &group.values).any(|value| value.range.is_some())
    }

    fn height(&self) -> f64 {
        let legend = self.legend_places();
        let lines = legend.iter().map(|(_, line)| line + 1).max().unwrap_or(0);
        TOP + PLOT_HEIGHT + BOTTOM + LEGEND_LINE * lines as f64
    }

    /// A part of a page that has [`STYLE`].
    pub fn to_part(&self) -> String {
        self.drawn("", "")
    }

    fn drawn(&self, attributes: &str, style: &str) -> String {
        let legend = self.legend_places();
        let height = self.height();
        let mut text = format!(
            "<svg class=\"fig\"{attributes} viewBox=\"0 0 {WIDTH} {height}\" role=\"group\" \
             aria-label=\"{}\">",
            escaped(&self.title)
        );
        if !style.is_empty() {
            let _ = write!(text, "<style>{style}</style>");
        }
        let _ = writeln!(
            text,
            "<rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\
             <text class=\"title\" x=\"8\" y=\"18\">{}</text>",
            escaped(&cut(&self.title, (WIDTH - 16.0) / TITLE_LETTER))
        );
        let scale = Scale::of(self);
        self.draw_axes(&mut text, &scale);
        self.draw_places(&mut text, &scale);
        for (number, group) in self.groups.iter().enumerate() {
            let aside = (number as f64 - (self.groups.len() as f64 - 1.0) / 2.0) * ASIDE;
            let aside = if self.has_bars() { aside.clamp(-12.0, 12.0) } else { 0.0 };
            let joins = !matches!(self.axis, Axis::Words(_)) || !group.curve.is_empty();
            if joins {
                group.draw_line(&mut text, &scale, number % GROUPS_MAX, aside);
            }
            group.draw_values(&mut text, &scale, number % GROUPS_MAX, aside);
        }
        self.draw_legend(&mut text, &legend);
        text.push_str("</svg>\n");
        text
    }

    fn draw_axes(&self, text: &mut String, scale: &Scale) {
        let (left, right, bottom) = (LEFT, WIDTH - RIGHT, TOP + PLOT_HEIGHT);
        for number in 0..=(scale.y_most / scale.y_step).round() as u32 {
            let value = f64::from(number) * scale.y_step;
            let y = scale.y(value);
            let class = if number == 0 { "axis" } else { "grid" };
            let _ = writeln!(
                text,
                "<path class=\"{class}\" d=\"M{left} {y:.1}H{right}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 6.0,
                y + 4.0,
                number_text(value, scale.y_step)
            );
        }
        for (value, label) in self.ticks(scale) {
            let x = scale.x(value);
            let _ = writeln!(
                text,
                "<path class=\"axis\" d=\"M{x:.1} {bottom}v4\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                escaped(&label)
            );
        }
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text x=\"8\" y=\"{:.1}\">{}</text>",
            f64::midpoint(left, right),
            bottom + 36.0,
            escaped(&self.x_name),
            TOP - 10.0,
            escaped(&self.y_name)
        );
    }

    fn draw_places(&self, text: &mut String, scale: &Scale) {
        let bottom = TOP + PLOT_HEIGHT;
        let drawable = |place: &&AxisPlace| place.x.is_finite() && place.x.abs() <= VALUES_MAX;
        for (number, place) in self.places.iter().filter(drawable).enumerate() {
            let x = scale.x(place.x);
            // On the side with more room, each on a line of its own.
            let (anchor, beside) =
                if x > WIDTH / 2.0 { ("end", x - 5.0) } else { ("start", x + 5.0) };
            let y = TOP + 12.0 + 15.0 * number as f64;
            let _ = writeln!(
                text,
                "<path class=\"place\" d=\"M{x:.1} {TOP}V{bottom}\"/>\
                 <text x=\"{beside:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
                escaped(&place.name)
            );
        }
    }

    fn ticks(&self, scale: &Scale) -> Vec<(f64, String)> {
        match &self.axis {
            Axis::Words(words) => {
                // A word has the room between two positions.
                let room = (WIDTH - LEFT - RIGHT) / words.len().max(1) as f64 / LETTER;
                let place = |(index, word): (usize, &String)| (index as f64, cut(word, room));
                words.iter().enumerate().map(place).collect()
            }
            Axis::Linear => {
                let step = scale.x_step;
                let count = (scale.x_high / step).round() as u32;
                (0..=count)
                    .map(|number| f64::from(number) * step)
                    .map(|value| (value, number_text(value, step)))
                    .collect()
            }
            Axis::Time(began) => time::marks(*began, scale.x_high),
            Axis::Nanoseconds => {
                let decades = (0..=12).map(|power| 10f64.powi(power));
                decades
                    .filter(|value| (scale.x_low..=scale.x_high).contains(value))
                    .map(|value| (value, self.axis.power_text(value)))
                    .collect()
            }
            axis => {
                scale.powers().into_iter().map(|power| (power, axis.power_text(power))).collect()
            }
        }
    }

    /// Left edge and line of each entry.
    fn legend_places(&self) -> Vec<(f64, usize)> {
        let (mut x, mut line) = (LEFT, 0);
        let mut places = Vec::new();
        for group in self.groups.iter().filter(|_| self.groups.len() > 1) {
            let width = 34.0 + group.name.chars().count() as f64 * LETTER + 16.0;
            if x > LEFT && x + width > WIDTH - RIGHT {
                (x, line) = (LEFT, line + 1);
            }
            places.push((x, line));
            x += width;
        }
        places
    }

    fn draw_legend(&self, text: &mut String, places: &[(f64, usize)]) {
        for (number, (group, (x, line))) in self.groups.iter().zip(places).enumerate() {
            let y = TOP + PLOT_HEIGHT + BOTTOM + LEGEND_LINE * *line as f64 + 6.0;
            let class = number % GROUPS_MAX;
            if !matches!(self.axis, Axis::Words(_)) {
                let _ = write!(text, "<path class=\"line s{class}\" d=\"M{x:.1} {y:.1}h26\"/>");
            }
            let _ = write!(
                text,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + 34.0,
                y + 4.0,
                escaped(&group.name)
            );
            if group.marks == Marks::Each {
                draw_mark(text, x + 13.0, y, class);
            }
            text.push('\n');
        }
    }
}

impl Axis {
    fn is_logarithmic(&self) -> bool {
        matches!(self, Axis::Log2 | Axis::Bytes | Axis::Nanoseconds)
    }

    fn power_text(&self, value: f64) -> String {
        match self {
            Axis::Bytes => bytes_text(value),
            Axis::Nanoseconds if value < 1e3 => format!("{value:.0} ns"),
            Axis::Nanoseconds if value < 1e6 => format!("{:.0} us", value / 1e3),
            Axis::Nanoseconds if value < 1e9 => format!("{:.0} ms", value / 1e6),
            Axis::Nanoseconds => format!("{:.0} s", value / 1e9),
            _ => format!("{value:.0}"),
        }
    }
}

fn bytes_text(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (value, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    format!("{value:.0} {}", UNITS[unit])
}

impl FigureGroup {
    /// `aside` shifts values to the right, so that groups do not hide each other.
    fn draw_line(&self, text: &mut String, scale: &Scale, class: usize, aside: f64) {
        let drawable = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite() && *y >= 0.0;
        let is_joined = self.curve.is_empty();
        let through: Vec<(f64, f64)> = if is_joined {
            self.values.iter().map(|value| (value.x, value.y)).collect()
        } else {
            self.curve.iter().copied().filter(drawable).collect()
        };
        let moved = if is_joined { aside } else { 0.0 };
        let place = |(x, y): &(f64, f64)| format!("{:.1} {:.1}", scale.x(*x) + moved, scale.y(*y));
        for part in through.split(|point| !drawable(point)) {
            let places: Vec<String> = part.iter().map(place).collect();
            match places.as_slice() {
                [] => {}
                // A dot, because a line without length would be invisible.
                [one] if self.marks == Marks::None => {
                    let _ = writeln!(text, "<path class=\"line s{class} dot\" d=\"M{one}h.1\"/>");
                }
                [_] => {}
                _ => {
                    let joined = places.join("L");
                    let _ = writeln!(text, "<path class=\"line s{class}\" d=\"M{joined}\"/>");
                }
            }
        }
    }

    fn draw_values(&self, text: &mut String, scale: &Scale, class: usize, aside: f64) {
        let drawable = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite() && *y >= 0.0;
        if self.marks == Marks::None {
            return;
        }
        for value in self.values.iter().filter(|value| drawable(&(value.x, value.y))) {
            let (x, y) = (scale.x(value.x) + aside, scale.y(value.y));
            let label = escaped(&value.label);
            let _ = write!(
                text,
                "<g class=\"value\" tabindex=\"0\" role=\"img\" aria-label=\"{label}\">\
                 <title>{label}</title>"
            );
            if let Some(range) = value.range {
                draw_bar(text, scale, x, range, class);
            }
            draw_mark(text, x, y, class);
            text.push_str("</g>\n");
        }
    }
}

/// An error bar; one that is cut has no end mark.
fn draw_bar(text: &mut String, scale: &Scale, x: f64, range: (f64, f64), class: usize) {
    let (low, high) = (scale.y(range.0.max(0.0)), scale.y(range.1));
    let left = x - 4.0;
    let _ = write!(
        text,
        "<path class=\"bar s{class}\" d=\"M{x:.1} {low:.1}V{high:.1}M{left:.1} {low:.1}h8"
    );
    if range.1 <= scale.y_most {
        let _ = write!(text, "M{left:.1} {high:.1}h8");
    }
    text.push_str("\"/>");
}

/// A shape for each group, so that the colours are not needed.
fn draw_mark(text: &mut String, x: f64, y: f64, class: usize) {
    let form = match class {
        0 => format!("M{:.1} {y:.1}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z", x - 4.5),
        1 => format!("M{:.1} {:.1}h8v8h-8Z", x - 4.0, y - 4.0),
        2 => format!("M{x:.1} {:.1}l5 9h-10Z", y - 5.5),
        3 => format!("M{x:.1} {:.1}l5.5 5.5l-5.5 5.5l-5.5-5.5Z", y - 5.5),
        4 => format!("M{x:.1} {:.1}l5-9h-10Z", y + 5.5),
        _ => format!("M{:.1} {:.1}h3v-3h3v3h3v3h-3v3h-3v-3h-3Z", x - 4.5, y - 1.5),
    };
    let _ = write!(text, "<path class=\"mark f{class}\" d=\"{form}\"/>");
}

/// Text cut to the room, in letters of average width.
fn cut(text: &str, letters: f64) -> String {
    if text.chars().count() as f64 > letters {
        text.chars().take((letters - 1.0).max(1.0) as usize).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}

/// Text escaped for XML.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // XML 1.0 cannot express other control characters.
            control if control.is_control() => safe.push(' '),
            plain => safe.push(plain),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(x: f64, y: f64) -> Value {
        let range = Some((y * 0.9, y * 1.1));
        Value { x, y, range, label: format!("{x} <{y}>") }
    }

    fn figure(axis: Axis, values: Vec<Value>) -> Figure {
        let curve = vec![(4096.0, 10.0), (65536.0, 80.0)];
        let group = |name: &str, values, curve| FigureGroup {
            name: name.into(),
            values,
            curve,
            marks: Marks::Each,
        };
        Figure {
            title: "rate & block size".into(),
            x_name: "block size".into(),
            y_name: "MB/s".into(),
            axis,
            y_least: 0.0,
            places: Vec::new(),
            groups: vec![group("a", values.clone(), Vec::new()), group("b", values, curve)],
        }
    }

    #[test]
    fn the_same_data_are_the_same_bytes() {
        let values = vec![value(4096.0, 20.0), value(16384.0, 60.0), value(65536.0, 75.0)];
        insta::assert_snapshot!(figure(Axis::Bytes, values).to_file());
    }

    #[test]
    fn axes_carry_what_they_are_of() {
        let check = |axis: Axis, values: &[f64], expected: &[&str]| {
            let values = values.iter().map(|&x| value(x, 5.0)).collect();
            let text = figure(axis, values).to_part();
            for label in expected {
                assert!(text.contains(&format!(">{label}</text>")), "{label} in {text}");
            }
        };
        check(Axis::Bytes, &[512.0, 1048576.0], &["512 B", "512 KiB"]);
        check(Axis::Nanoseconds, &[900.0, 4.2e6], &["1 us", "100 us", "1 ms"]);
        check(Axis::Log2, &[1.0, 64.0], &["1", "64"]);
        check(Axis::Words(vec!["sync".into(), "io_uring".into()]), &[0.0], &["sync", "io_uring"]);
        check(Axis::Linear, &[3.0], &["0"]);
    }

    #[test]
    fn a_value_that_is_no_number_is_a_gap() {
        let at = |x: f64, y: f64| Value { x, y, range: None, label: String::new() };
        let values = vec![at(0.0, 1.0), at(1.0, 2.0), at(2.0, f64::NAN), at(3.0, 1.0)];
        let mut figure = figure(Axis::Time(1_795_163_581), values);
        figure.groups.truncate(1);
        figure.groups[0].marks = Marks::None;
        let text = figure.to_part();
        assert_eq!(text.matches("class=\"line").count(), 2, "{text}");
        assert!(text.contains("class=\"line s0 dot\"") && text.contains(">08:33:02</text>"));
    }

    #[test]
    fn words_are_not_joined() {
        let lines = |axis| {
            let values = vec![value(0.0, 20.0), value(1.0, 60.0)];
            let mut figure = figure(axis, values);
            figure.groups.iter_mut().for_each(|group| group.curve.clear());
            figure.to_part().matches("class=\"line").count()
        };
        assert_eq!(lines(Axis::Words(vec!["sync".into(), "io_uring".into()])), 0);
        // Each of two groups, and its entry in the legend.
        assert_eq!(lines(Axis::Linear), 4);
    }

    proptest! {
        #[test]
        fn whatever_is_drawn_stays_in_the_figure(
            points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..12),
            which in 0usize..6,
        ) {
            let axis = match which {
                0 => Axis::Linear,
                1 => Axis::Log2,
                2 => Axis::Bytes,
                3 => Axis::Nanoseconds,
                4 => Axis::Time(1_795_163_581),
                _ => Axis::Words(vec!["a".into(), "b".into()]),
            };
            let first = points.first().map_or(0.0, |at| at.0);
            let place = AxisPlace { name: "a<b\u{1}".into(), x: first };
            let values = points.into_iter().map(|(x, y)| value(x, y)).collect();
            let mut figure = figure(axis, values);
            figure.places.push(place);
            let text = document(&[figure.clone(), figure]);
            let is_clean = !text.contains("a<b") && !text.contains('\u{1}');
            prop_assert!(is_clean);
            prop_assert_eq!(text.matches("</svg>").count(), 3);
            let tags = text.split('<').filter(|tag| tag.starts_with("path"));
            for tag in tags {
                prop_assert!(!tag.contains("NaN") && !tag.contains("inf"), "{}", tag);
            }
            let lines = text.split("class=\"line").skip(1);
            for place in lines.filter_map(|tag| tag.split("d=\"M").nth(1)) {
                let places = place.split('"').next().unwrap().split('L');
                for pair in places.filter(|pair| !pair.contains('h')) {
                    let (x, y) = pair.split_once(' ').unwrap();
                    let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                    prop_assert!((0.0..=WIDTH).contains(&x) && (0.0..=600.0).contains(&y));
                }
            }
        }
    }
}
