//! Time spans: a lane for each finding, with a bar for each time in which it held, on the same time
//! axis as the figures beside it.

use std::fmt::Write;

use super::scale::VALUES_MAX;
use super::{LEFT, LETTER, RIGHT, STYLE, TITLE_LETTER, WIDTH, cut, escaped, time};

/// A time span.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Start, in seconds after the start of the axis.
    pub from: f64,
    /// End, in the same seconds.
    pub until: f64,
    /// The span in words.
    pub label: String,
}

/// All spans of one finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// The finding.
    pub name: String,
    /// Whether the finding needs an action.
    pub is_warning: bool,
    pub spans: Vec<Span>,
}

/// Lanes, one above the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spans {
    pub title: String,
    /// The name of the axis.
    pub x_name: String,
    /// Start of the axis, in seconds since 1970.
    pub began: i64,
    /// Length of the axis in seconds.
    pub seconds: f64,
    pub lanes: Vec<Lane>,
}

const TOP: f64 = 34.0;
const LANE: f64 = 32.0;
const BOTTOM: f64 = 46.0;
const BAR: f64 = 10.0;
/// Shorter spans are drawn this wide, so that they are visible.
const WIDTH_MIN: f64 = 3.0;

impl Spans {
    /// A part of a page that has [`STYLE`].
    pub fn to_part(&self) -> String {
        self.drawn("", "")
    }

    /// A self-contained SVG file.
    pub fn to_file(&self) -> String {
        let attributes = format!(" xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\"");
        self.drawn(&attributes, &format!("<style>{STYLE}</style>"))
    }

    fn drawn(&self, attributes: &str, style: &str) -> String {
        let bottom = TOP + LANE * self.lanes.len() as f64;
        let height = bottom + BOTTOM;
        let title = escaped(&self.title);
        let mut text = format!(
            "<svg class=\"fig\"{attributes} viewBox=\"0 0 {WIDTH} {height}\" role=\"group\" \
             aria-label=\"{title}\">{style}<rect class=\"ground\" width=\"{WIDTH}\" \
             height=\"{height}\"/><text class=\"title\" x=\"8\" y=\"18\">{}</text>\n",
            escaped(&cut(&self.title, (WIDTH - 16.0) / TITLE_LETTER))
        );
        self.draw_axis(&mut text, bottom);
        for (number, lane) in self.lanes.iter().enumerate() {
            self.draw_lane(&mut text, lane, TOP + LANE * number as f64);
        }
        text.push_str("</svg>\n");
        text
    }

    fn x(&self, seconds: f64) -> f64 {
        let share = (seconds / self.seconds.clamp(1.0, VALUES_MAX)).clamp(0.0, 1.0);
        LEFT + (WIDTH - LEFT - RIGHT) * if share.is_nan() { 0.0 } else { share }
    }

    fn draw_axis(&self, text: &mut String, bottom: f64) {
        let (left, right) = (LEFT, WIDTH - RIGHT);
        let _ = writeln!(text, "<path class=\"axis\" d=\"M{left} {bottom}H{right}\"/>");
        for (at, label) in time::marks(self.began, self.seconds.clamp(1.0, VALUES_MAX)) {
            let x = self.x(at);
            let _ = writeln!(
                text,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                escaped(&label)
            );
        }
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(left, right),
            bottom + 36.0,
            escaped(&self.x_name)
        );
    }

    fn draw_lane(&self, text: &mut String, lane: &Lane, top: f64) {
        let name = escaped(&cut(&lane.name, (WIDTH - LEFT - RIGHT) / LETTER));
        let _ = writeln!(
            text,
            "<text class=\"word\" x=\"{LEFT}\" y=\"{:.1}\">{name}</text>",
            top + 12.0
        );
        let class = if lane.is_warning { "span warn" } else { "span" };
        for span in &lane.spans {
            let (from, until) = (self.x(span.from), self.x(span.until));
            let width = (until - from).max(WIDTH_MIN);
            let left = from.min(WIDTH - RIGHT - width);
            let label = escaped(&span.label);
            let _ = writeln!(
                text,
                "<g class=\"value\" tabindex=\"0\" role=\"img\" aria-label=\"{label}\">\
                 <title>{label}</title><rect class=\"{class}\" x=\"{left:.1}\" y=\"{:.1}\" \
                 width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\"/></g>",
                top + 17.0
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(spans: Vec<(f64, f64)>) -> String {
        let span = |(from, until)| Span { from, until, label: "so & \"so\"".to_owned() };
        let spans = spans.into_iter().map(span).collect();
        let lane = Lane { name: "a<b".to_owned(), is_warning: true, spans };
        let (began, seconds) = (1_795_163_581, 100.0);
        let figure = Spans { began, seconds, lanes: vec![lane], ..Spans::default() };
        figure.to_file()
    }

    #[test]
    fn bars_lie_where_their_times_are() {
        let text = drawn(vec![(0.0, 50.0), (99.999, 100.0)]);
        // From the left edge to the middle, and at the right edge, wide enough to be seen.
        assert!(text.contains("x=\"62.0\" y=\"51.0\" width=\"241.0\""), "{text}");
        assert!(text.contains("x=\"541.0\" y=\"51.0\" width=\"3.0\""), "{text}");
        assert_eq!(text.matches("class=\"value\"").count(), 2);
        assert!(text.contains("a&lt;b") && text.contains("so &amp; &quot;so&quot;"));
    }

    #[test]
    fn whatever_is_claimed_stays_in_the_figure() {
        for (from, until) in [(f64::NAN, 1.0), (-5.0, 1e300), (f64::INFINITY, f64::NEG_INFINITY)] {
            let text = drawn(vec![(from, until)]);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}
