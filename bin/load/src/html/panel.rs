//! The frame of a chart: axes, grid, marks, and shapes in the coordinates of its scales.

use std::fmt::Write as _;

use crate::html::scale::Scale;
use crate::html::text::{escape, shorten};
use crate::html::view::Mark;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 26.0;
const TOP: f64 = 8.0;
/// The height of a row of marks.
const MARK_ROW: f64 = 15.0;
const MARK_ROW_COUNT: usize = 3;
/// The text of a mark is shortened to this.
const MARK_CHARACTERS: usize = 26;
/// The width of a character of a mark, about.
const CHARACTER: f64 = 7.0;

/// A chart that is being drawn.
pub(super) struct Panel {
    x: Scale,
    y: Scale,
    top: f64,
    height: f64,
    label: String,
    body: String,
}

impl Panel {
    /// An empty chart of this height. `label` says what it shows to who cannot see it.
    pub(super) fn new(label: &str, (x, y): (Scale, Scale), height: f64) -> Self {
        let mut panel = Self {
            x,
            y,
            top: TOP,
            height,
            label: label.to_owned(),
            body: String::new(),
        };
        panel.height += TOP + BOTTOM;
        panel
    }

    /// The same, with space for marks above it.
    pub(super) fn with_marks(mut self, marks: &[Mark]) -> Self {
        let rows = rows_of(marks, |mark| self.x_of(mark.at_ms / 1e3));
        let used = rows.iter().flatten().map(|place| place.row + 1).max();
        let used = used.unwrap_or(0);
        let space = used as f64 * MARK_ROW;
        self.top += space;
        self.height += space;
        for (mark, place) in marks.iter().zip(rows) {
            let x = self.x_of(mark.at_ms / 1e3);
            let text = escape(&mark.text);
            let at = mark.at_ms / 1e3;
            let y = place.map_or(self.top, |place| TOP + (place.row as f64 + 0.6) * MARK_ROW);
            let bottom = self.bottom();
            self.add(format_args!(
                "<g class=\"mark\"><title>{at:.2} s: {text}</title>\
                 <line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y:.1}\" y2=\"{bottom:.1}\"/>"
            ));
            if let Some(place) = place {
                let text = escape(&shorten(&mark.text, MARK_CHARACTERS));
                let (class, x) = match place.is_left {
                    true => ("left", x - 4.0),
                    false => ("right", x + 4.0),
                };
                self.add(format_args!(
                    "<text class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>",
                    y + 4.0
                ));
            }
            self.add(format_args!("</g>"));
        }
        self
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(text);
    }

    fn bottom(&self) -> f64 {
        self.height - BOTTOM
    }

    /// The horizontal place of a value.
    fn x_of(&self, value: f64) -> f64 {
        LEFT + self.x.at(value) * (WIDTH - LEFT - RIGHT)
    }

    /// The vertical place of a value.
    fn y_of(&self, value: f64) -> f64 {
        let bottom = self.bottom();
        bottom - self.y.at(value) * (bottom - self.top)
    }

    /// A line through the points.
    pub(super) fn line(&mut self, class: &str, points: &[(f64, f64)]) {
        let path = self.path(points.iter().copied());
        self.add(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    /// What lies between two lines: points of x, lower and upper y.
    pub(super) fn band(&mut self, class: &str, points: &[(f64, f64, f64)]) {
        let upper = points.iter().map(|(x, _, high)| (*x, *high));
        let lower = points.iter().rev().map(|(x, low, _)| (*x, *low));
        let path = self.path(upper.chain(lower));
        self.add(format_args!("<path class=\"{class}\" d=\"{path}Z\"/>"));
    }

    /// A bar from `x` to `x + width`, from `low` to `high`.
    pub(super) fn bar(&mut self, class: &str, (x, width): (f64, f64), (low, high): (f64, f64)) {
        let (left, right) = (self.x_of(x), self.x_of(x + width));
        let (top, bottom) = (self.y_of(high), self.y_of(low));
        // A single failure among thousands must be seen.
        let height = (bottom - top).max(1.5);
        let width = (right - left - 0.4).max(1.2);
        let top = bottom - height;
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        ));
    }

    /// A column that says a text to who points at it.
    pub(super) fn tip(&mut self, (x, width): (f64, f64), text: &str) {
        let (left, right) = (self.x_of(x), self.x_of(x + width));
        let (top, height) = (self.top, self.bottom() - self.top);
        let width = (right - left).max(0.5);
        let text = escape(text);
        self.add(format_args!(
            "<rect class=\"tip\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{text}</title></rect>"
        ));
    }

    fn path(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let mut path = String::new();
        for (index, (x, y)) in points.enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            // Writing to a String cannot fail.
            let _ = write!(path, "{command}{:.1} {:.1}", self.x_of(x), self.y_of(y));
        }
        path
    }

    /// The chart as SVG.
    pub(super) fn finish(self) -> String {
        let (right, bottom) = (WIDTH - RIGHT, self.bottom());
        let mut axes = String::new();
        for tick in self.y.ticks() {
            let y = bottom - tick.at * (bottom - self.top);
            // Writing to a String cannot fail.
            let _ = write!(
                axes,
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"y\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                tick.label
            );
        }
        for tick in self.x.ticks() {
            let x = LEFT + tick.at * (right - LEFT);
            let _ = write!(
                axes,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom:.1}\" y2=\"{:.1}\"/>\
                 <text class=\"{}\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                bottom + 4.0,
                // The last label would leave the picture.
                if tick.at > 0.97 { "x last" } else { "x" },
                bottom + 17.0,
                tick.label
            );
        }
        format!(
            "<div class=\"chart\"><svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{}\">\
             <g class=\"axes\">{axes}</g>{}</svg></div>\n",
            self.height,
            escape(&self.label),
            self.body
        )
    }
}

/// Where the text of a mark stands, above the chart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct MarkPlace {
    row: usize,
    /// Left of its line: on the right it would leave the picture.
    is_left: bool,
}

/// The place of each mark's text; none where there is no space.
fn rows_of(marks: &[Mark], x_of: impl Fn(&Mark) -> f64) -> Vec<Option<MarkPlace>> {
    let mut ends = [f64::MIN; MARK_ROW_COUNT];
    let rows = marks.iter().map(|mark| {
        let length = shorten(&mark.text, MARK_CHARACTERS).chars().count();
        let (x, length) = (x_of(mark), 10.0 + length as f64 * CHARACTER);
        let is_left = x + length >= WIDTH;
        let (from, to) = match is_left {
            true => (x - length, x),
            false => (x, x + length),
        };
        let row = (0..MARK_ROW_COUNT).find(|row| ends[*row] < from)?;
        ends[row] = to;
        Some(MarkPlace { row, is_left })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(at_ms: f64) -> Mark {
        Mark {
            at_ms,
            text: "reload".to_owned(),
        }
    }

    #[test]
    fn marks_that_are_close_stand_in_rows() {
        let marks = [0.0, 1.0, 2.0, 3.0, 500.0, 959.0].map(mark);
        let places = rows_of(&marks, |mark| mark.at_ms);
        let rows: Vec<_> = places
            .iter()
            .map(|place| place.map(|one| one.row))
            .collect();
        assert_eq!(rows, [Some(0), Some(1), Some(2), None, Some(0), Some(0)]);
        let left: Vec<_> = places.iter().flatten().map(|one| one.is_left).collect();
        assert_eq!(left, [false, false, false, false, true]);
    }

    #[test]
    fn texts_of_others_cannot_become_markup() {
        let scales = (Scale::Time { max: 10.0 }, Scale::count(10.0));
        let mut panel = Panel::new("<label>", scales, 100.0).with_marks(&[Mark {
            at_ms: 1.0,
            text: "<script>".to_owned(),
        }]);
        panel.tip((0.0, 1.0), "<tip>");
        let svg = panel.finish();
        for text in ["<script>", "<tip>", "<label>"] {
            assert!(!svg.contains(text), "{svg}");
        }
    }
}
