//! Charts as SVG without a style of their own: classes give the colours. All that goes in is numbers and words of ours.

use super::shown::{Html, clock, date, micros, up};
use crate::moment::{Moment, millis};
use crate::store::read::Bucket;
use std::fmt::Write as _;
use std::time::Duration;

/// A stretch of time in pieces of the same width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) from: Moment,
    pub(super) width: Duration,
    pub(super) count: usize,
}

impl Axis {
    /// So that `now` is in the last piece.
    pub(super) fn until(now: Moment, width: Duration, count: usize) -> Self {
        let step = millis(width);
        let end = now.0.div_euclid(step) * step + step;
        Self { from: Moment(end - step * i64::try_from(count).unwrap_or(0)), width, count }
    }

    pub(super) fn end(&self) -> Moment {
        self.start(self.count)
    }

    fn start(&self, piece: usize) -> Moment {
        Moment(self.from.0 + millis(self.width) * i64::try_from(piece).unwrap_or(0))
    }

    /// What happened in each piece.
    pub(super) fn sort(&self, known: &[Bucket]) -> Vec<Bucket> {
        let mut pieces: Vec<Bucket> = (0..self.count).map(|piece| Bucket { start: self.start(piece), ..Bucket::default() }).collect();
        for bucket in known {
            let piece = (bucket.start.0 - self.from.0).div_euclid(millis(self.width));
            if let Some(piece) = usize::try_from(piece).ok().and_then(|piece| pieces.get_mut(piece)) {
                piece.add(bucket);
            }
        }
        pieces
    }

    fn named(&self, at: Moment) -> String {
        if self.width >= Duration::from_secs(86_400) { date(at) } else { clock(at).chars().take(16).collect() }
    }
}

/// What a piece of time was, as a class and a word.
fn state(bucket: &Bucket) -> (&'static str, String) {
    let unknown = bucket.inconclusive + bucket.missed;
    let part = || up(bucket).unwrap_or_default();
    match bucket.share() {
        None if unknown > 0 => ("gap", "no result".to_owned()),
        None => ("none", "not watched".to_owned()),
        Some(share) if share >= 1.0 => ("good", "up".to_owned()),
        Some(share) if share >= 0.95 => ("part", part()),
        Some(share) if share > 0.0 => ("most", part()),
        Some(_) => ("bad", "down".to_owned()),
    }
}

/// A bar for each piece. The worse, the more of it is filled from the top in another colour, so that it shows without colours.
pub(super) fn bars(axis: &Axis, pieces: &[Bucket], height: u32) -> Html {
    const WIDE: usize = 10;
    let width = pieces.len() * WIDE;
    let mut svg = format!(
        "<svg class=\"bars\" viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
        told(pieces)
    );
    for (index, piece) in pieces.iter().enumerate() {
        let (class, word) = state(piece);
        let x = index * WIDE;
        let _ = write!(
            svg,
            "<g><title>{}: {word}</title><rect class=\"{class}\" x=\"{x}\" y=\"0\" width=\"8\" height=\"{height}\"/>",
            axis.named(piece.start)
        );
        let hole = match class {
            "part" => height / 4,
            "most" => height / 2,
            _ => 0,
        };
        if hole > 0 {
            let _ = write!(svg, "<rect class=\"bad\" x=\"{x}\" y=\"0\" width=\"8\" height=\"{hole}\"/>");
        }
        svg.push_str("</g>");
    }
    svg.push_str("</svg>");
    Html(svg)
}

/// The same in little, as one path for each state: a list has a thousand of them.
pub(super) fn strip(pieces: &[Bucket]) -> Html {
    let mut svg = format!("<svg class=\"strip\" viewBox=\"0 0 {} 18\" role=\"img\" aria-label=\"{}\">", pieces.len() * 5, told(pieces));
    for class in ["good", "part", "most", "bad", "gap", "none"] {
        let mut path = String::new();
        for (index, piece) in pieces.iter().enumerate().filter(|(_, piece)| state(piece).0 == class) {
            let _ = piece;
            // What is worse is taller.
            let top = match class {
                "bad" | "most" => 0,
                "none" | "gap" => 8,
                _ => 4,
            };
            let _ = write!(path, "M{} {top}h4V18h-4z", index * 5);
        }
        if !path.is_empty() {
            let _ = write!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }
    svg.push_str("</svg>");
    Html(svg)
}

fn told(pieces: &[Bucket]) -> String {
    let mut sum = Bucket::default();
    pieces.iter().for_each(|piece| sum.add(piece));
    up(&sum).unwrap_or_else(|| "no results".to_owned())
}

/// The quantiles that are drawn.
const LINES: [(&str, f64); 3] = [("p50", 0.50), ("p95", 0.95), ("p99", 0.99)];

/// Latencies as lines over time. None if there are no good probes at all.
pub(super) fn latencies(axis: &Axis, pieces: &[Bucket]) -> Option<Html> {
    const WIDTH: f64 = 900.0;
    const HEIGHT: f64 = 180.0;
    let values: Vec<[Option<u64>; 3]> = pieces.iter().map(|piece| LINES.map(|(_, share)| piece.latency.quantile(share))).collect();
    let highest = values.iter().flatten().flatten().copied().max()?;
    let top = ceiling(highest);
    let place =
        |index: usize, value: u64| (WIDTH * (index as f64 + 0.5) / pieces.len().max(1) as f64, HEIGHT - HEIGHT * value as f64 / top as f64);
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"latency percentiles from {} to {}\">",
        axis.named(axis.from),
        axis.named(axis.end())
    );
    for quarter in 1..4 {
        let y = HEIGHT * f64::from(quarter) / 4.0;
        let _ = write!(svg, "<line class=\"grid\" x1=\"0\" y1=\"{y:.0}\" x2=\"{WIDTH:.0}\" y2=\"{y:.0}\"/>");
    }
    for (line, (name, _)) in LINES.iter().enumerate().rev() {
        let mut path = String::new();
        let mut pen_is_down = false;
        for (index, value) in values.iter().enumerate() {
            match value[line] {
                Some(value) => {
                    let (x, y) = place(index, value);
                    // A point alone is a short line.
                    let _ = write!(path, "{}{x:.1} {y:.1}", if pen_is_down { "L" } else { "M" });
                    if !pen_is_down {
                        path.push_str("h.1");
                    }
                    pen_is_down = true;
                }
                None => pen_is_down = false,
            }
        }
        let _ = write!(svg, "<path class=\"line {name}\" d=\"{path}\"/>");
    }
    let wide = WIDTH / pieces.len().max(1) as f64;
    for (index, value) in values.iter().enumerate() {
        if let [Some(p50), Some(p95), Some(p99)] = value {
            let x = index as f64 * wide;
            let _ = write!(
                svg,
                "<rect class=\"touch\" x=\"{x:.1}\" y=\"0\" width=\"{wide:.1}\" height=\"{HEIGHT:.0}\"><title>{}: p50 {}, p95 {}, p99 {}</title></rect>",
                axis.named(pieces[index].start),
                micros(*p50),
                micros(*p95),
                micros(*p99)
            );
        }
    }
    svg.push_str("</svg>");
    let scale = [4, 3, 2, 1, 0].map(|quarter| format!("<span>{}</span>", micros(top * quarter / 4))).concat();
    Some(Html(format!(
        "<div class=\"plot\"><div class=\"scale\" aria-hidden=\"true\">{scale}</div>{svg}</div><div class=\"dates dim\"><span>{}</span><span>{}</span></div>",
        axis.named(axis.from),
        axis.named(axis.end())
    )))
}

/// The next number that reads well, as its quarters do: 1, 2 or 4 with zeros.
fn ceiling(value: u64) -> u64 {
    let mut unit: u64 = 1;
    loop {
        for step in [1, 2, 4] {
            if unit.saturating_mul(step) >= value {
                return unit.saturating_mul(step).max(4);
            }
        }
        unit = unit.saturating_mul(10);
        if unit == u64::MAX {
            return unit;
        }
    }
}

/// The phases of a probe beside each other, with a legend.
pub(super) fn phases(phases: &[(String, i64)]) -> Option<Html> {
    const WIDTH: i64 = 1_000;
    let total: i64 = phases.iter().map(|(_, micros)| (*micros).max(0)).sum();
    if total == 0 {
        return None;
    }
    let mut svg = format!("<svg class=\"phases\" viewBox=\"0 0 {WIDTH} 14\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    let mut legend = String::new();
    let mut x = 0;
    for (index, (phase, duration)) in phases.iter().enumerate() {
        let wide = (duration.saturating_mul(WIDTH) / total).max(2);
        let tone = index % 6;
        let _ = write!(svg, "<rect class=\"tone{tone}\" x=\"{x}\" y=\"0\" width=\"{wide}\" height=\"14\"/>");
        let name: String =
            phase.chars().filter(|character| character.is_ascii_alphanumeric() || "- ".contains(*character)).take(24).collect();
        let _ = write!(
            legend,
            "<li><svg class=\"dot\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"tone{tone}\" width=\"10\" height=\"10\"/></svg> {} <b>{}</b></li>",
            name.replace('-', " "),
            micros(u64::try_from(*duration).unwrap_or(0))
        );
        x += wide;
    }
    Some(Html(format!("{svg}</svg><ul class=\"legend\">{legend}</ul>")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_with_now_and_take_what_is_in_them() {
        let axis = Axis::until(Moment(10_500), Duration::from_secs(1), 3);
        assert_eq!((axis.from, axis.end()), (Moment(8_000), Moment(11_000)));
        let known =
            [(7_999, 1), (8_000, 2), (10_999, 3), (11_000, 4)].map(|(at, good)| Bucket { start: Moment(at), good, ..Bucket::default() });
        assert_eq!(axis.sort(&known).iter().map(|piece| piece.good).collect::<Vec<_>>(), [2, 0, 3]);
    }

    #[test]
    fn the_top_of_a_chart_reads_well() {
        for (value, expected) in [(1, 4), (5, 10), (11, 20), (39, 40), (41, 100), (1_234, 2_000)] {
            assert_eq!(ceiling(value), expected);
        }
    }
}
