//! Line charts as SVG: axes, lines, marks, a legend; the same bytes for the same data.
//!
//! A file stands for itself: no script, no font but those that every system has, and colours for
//! light and dark surroundings by `prefers-color-scheme`. Lines differ in their dashes too, so that
//! they can be told apart without colour. Coordinates are rounded to a tenth, and no number is
//! printed in a way that depends on the machine.
//!
//! Not here: what is drawn, and files.

use std::fmt::Write;

/// A line through points, in the order given.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// For the legend.
    pub name: String,
    /// Pairs of x and y; those that are negative, over [`VALUES_MAX`] or no numbers are left out.
    pub points: Vec<(f64, f64)>,
}

/// A mark at one x, from the bottom to the top.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Beside it.
    pub name: String,
    /// Where.
    pub x: f64,
}

/// A chart with linear axes that begin at zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Below the horizontal axis, with the unit.
    pub x_name: String,
    /// Above the vertical axis, with the unit.
    pub y_name: String,
    /// At most [`LINES_MAX`] of them are told apart.
    pub lines: Vec<Line>,
    /// Marks.
    pub marks: Vec<Mark>,
}

/// Lines that differ in colour and dash.
pub const LINES_MAX: usize = 4;

/// Larger values are not drawn.
pub const VALUES_MAX: f64 = 1e15;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 48.0;
/// Steps of an axis, about.
const TICKS: f64 = 6.0;
/// Width of a letter of 12 pixels, about: enough to place a legend.
const LETTER: f64 = 6.6;

const STYLE: &str = "\
<style>
text { font: 12px system-ui, sans-serif; fill: #333 }
.title { font-size: 14px; font-weight: 600 }
.page { fill: #fff }
.grid { stroke: #ddd; stroke-width: 1 }
.axis { stroke: #555; stroke-width: 1 }
.mark { stroke: #888; stroke-width: 1; stroke-dasharray: 3 3 }
.line { fill: none; stroke-width: 2; stroke-linejoin: round }
.line0 { stroke: #1f6fb4 }
.line1 { stroke: #c4511b; stroke-dasharray: 8 4 }
.line2 { stroke: #2d7f3e; stroke-dasharray: 2 3 }
.line3 { stroke: #7a4aa0; stroke-dasharray: 10 3 2 3 }
@media (prefers-color-scheme: dark) {
text { fill: #ddd }
.page { fill: #16181c }
.grid { stroke: #333 }
.axis { stroke: #aaa }
.mark { stroke: #777 }
.line0 { stroke: #6db3f2 }
.line1 { stroke: #f29a6b }
.line2 { stroke: #7fd08f }
.line3 { stroke: #c39be6 }
}
</style>
";

/// One document with the charts below each other.
pub fn document(charts: &[Chart]) -> String {
    let height = HEIGHT * charts.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n{STYLE}\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n"
    );
    for (number, chart) in charts.iter().enumerate() {
        let down = HEIGHT * number as f64;
        let _ = writeln!(text, "<g transform=\"translate(0 {down})\">");
        text.push_str(&chart.drawn());
        text.push_str("</g>\n");
    }
    text.push_str("</svg>\n");
    text
}

/// From data to the place on the page.
struct Scale {
    x_most: f64,
    y_most: f64,
    x_step: f64,
    y_step: f64,
}

impl Scale {
    fn of(chart: &Chart) -> Scale {
        let points = || chart.lines.iter().flat_map(Line::finite);
        let marks =
            chart.marks.iter().map(|mark| mark.x).filter(|x| (0.0..=VALUES_MAX).contains(x));
        let x_most = points().map(|(x, _)| x).chain(marks).fold(0.0, f64::max);
        let y_most = points().map(|(_, y)| y).fold(0.0, f64::max);
        let (x_step, y_step) = (tick_step(x_most), tick_step(y_most));
        let up = |most: f64, step: f64| (most / step - 1e-9).ceil().max(1.0) * step;
        Scale { x_most: up(x_most, x_step), y_most: up(y_most, y_step), x_step, y_step }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * value / self.x_most
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.y_most
    }
}

impl Line {
    fn finite(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let drawable = |value: &f64| (0.0..=VALUES_MAX).contains(value);
        self.points.iter().copied().filter(move |(x, y)| drawable(x) && drawable(y))
    }
}

impl Chart {
    fn drawn(&self) -> String {
        let scale = Scale::of(self);
        let mut text = String::new();
        let _ = writeln!(
            text,
            "<text class=\"title\" x=\"{LEFT}\" y=\"20\">{}</text>",
            escaped(&self.title)
        );
        self.draw_axes(&mut text, &scale);
        self.draw_marks(&mut text, &scale);
        for (number, line) in self.lines.iter().enumerate() {
            let points: Vec<String> = line
                .finite()
                .map(|(x, y)| format!("{:.1},{:.1}", scale.x(x), scale.y(y)))
                .collect();
            let class = number % LINES_MAX;
            let points = points.join(" ");
            let _ = writeln!(text, "<polyline class=\"line line{class}\" points=\"{points}\"/>");
        }
        self.draw_legend(&mut text);
        text
    }

    fn draw_axes(&self, text: &mut String, scale: &Scale) {
        let (left, right) = (LEFT, WIDTH - RIGHT);
        let (top, bottom) = (TOP, HEIGHT - BOTTOM);
        for number in 0..=(scale.y_most / scale.y_step).round() as u32 {
            let value = f64::from(number) * scale.y_step;
            let y = scale.y(value);
            let class = if number == 0 { "axis" } else { "grid" };
            let _ = writeln!(
                text,
                "<line class=\"{class}\" x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 8.0,
                y + 4.0,
                number_text(value, scale.y_step)
            );
        }
        for number in 0..=(scale.x_most / scale.x_step).round() as u32 {
            let value = f64::from(number) * scale.x_step;
            let x = scale.x(value);
            let _ = writeln!(
                text,
                "<line class=\"axis\" x1=\"{x:.1}\" y1=\"{bottom}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 4.0,
                bottom + 18.0,
                number_text(value, scale.x_step)
            );
        }
        let _ = writeln!(
            text,
            "<line class=\"axis\" x1=\"{left}\" y1=\"{top}\" x2=\"{left}\" y2=\"{bottom}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            f64::midpoint(left, right),
            bottom + 38.0,
            escaped(&self.x_name),
            10.0,
            top - 10.0,
            escaped(&self.y_name)
        );
    }

    fn draw_marks(&self, text: &mut String, scale: &Scale) {
        let (top, bottom) = (TOP, HEIGHT - BOTTOM);
        for (number, mark) in
            self.marks.iter().filter(|mark| (0.0..=VALUES_MAX).contains(&mark.x)).enumerate()
        {
            let x = scale.x(mark.x);
            // On the side with more room, and each on a line of its own.
            let (anchor, beside) = match x > WIDTH / 2.0 {
                true => ("end", x - 5.0),
                false => ("start", x + 5.0),
            };
            let y = top + 12.0 + 15.0 * number as f64;
            let _ = writeln!(
                text,
                "<line class=\"mark\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
                 <text x=\"{beside:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
                escaped(&mark.name)
            );
        }
    }

    /// At the right, in the line of the vertical axis' name.
    fn draw_legend(&self, text: &mut String) {
        let mut right = WIDTH - RIGHT;
        for (number, line) in self.lines.iter().enumerate().rev() {
            let width = line.name.chars().count() as f64 * LETTER;
            let start = right - width;
            let y = TOP - 10.0;
            let class = number % LINES_MAX;
            let _ = writeln!(
                text,
                "<line class=\"line line{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" \
                 y2=\"{:.1}\"/><text x=\"{start:.1}\" y=\"{y:.1}\">{}</text>",
                start - 34.0,
                y - 4.0,
                start - 6.0,
                y - 4.0,
                escaped(&line.name)
            );
            right = start - 52.0;
        }
    }
}

/// 1, 2 or 5 times a power of ten, so that there are about [`TICKS`] steps.
pub(crate) fn tick_step(most: f64) -> f64 {
    if most.is_nan() || most < 1e-6 {
        return 1.0;
    }
    let rough = most / TICKS;
    let power = 10f64.powf(rough.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let fitting = factors.iter().find(|factor| **factor * power >= rough * (1.0 - 1e-9));
    fitting.copied().unwrap_or(10.0) * power
}

pub(crate) fn number_text(value: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$}")
}

pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // XML 1.0 has no way to write other control characters.
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

    fn chart(points: Vec<(f64, f64)>, name: &str) -> Chart {
        Chart {
            title: format!("throughput of {name}"),
            x_name: "source rate, MB/s".to_owned(),
            y_name: "MB/s".to_owned(),
            lines: vec![
                Line { name: name.to_owned(), points },
                Line { name: "other".to_owned(), points: vec![(0.0, 0.0), (10.0, 3.0)] },
            ],
            marks: vec![Mark { name: "asked".to_owned(), x: 7.0 }],
        }
    }

    #[test]
    fn the_same_data_are_the_same_bytes() {
        let one = chart(vec![(0.0, 0.0), (5.0, 5.0), (10.0, 5.5)], "lto7 <on>");
        let text = document(&[one.clone(), one]);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn steps_of_axes_are_round() {
        let steps = [0.0, 0.7, 1.0, 6.0, 7.0, 29.0, 31.0, 480.0, f64::NAN].map(tick_step);
        assert_eq!(steps, [1.0, 0.2, 0.2, 1.0, 2.0, 5.0, 10.0, 100.0, 1.0]);
        assert_eq!(number_text(0.6, 0.2), "0.6");
        assert_eq!(number_text(300.0, 100.0), "300");
    }

    proptest! {
        #[test]
        fn whatever_is_drawn_stays_on_the_page(
            points in proptest::collection::vec((any::<f64>(), any::<f64>()), 0..20),
            name in "[a-z<>& \u{1}]{0,20}",
        ) {
            let positive = points.into_iter().map(|(x, y)| (x.abs(), y.abs())).collect();
            let text = document(&[chart(positive, &name)]);
            prop_assert!(!text.contains("NaN") && !text.contains("inf"));
            prop_assert_eq!(text.matches("<polyline").count(), 2);
            for place in text.split("points=\"").skip(1) {
                let places = place.split('"').next().unwrap();
                for pair in places.split(' ').filter(|one| !one.is_empty()) {
                    let (x, y) = pair.split_once(',').unwrap();
                    let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                    prop_assert!((0.0..=WIDTH).contains(&x) && (0.0..=HEIGHT).contains(&y));
                }
            }
        }
    }
}
