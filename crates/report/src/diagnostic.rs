//! One diagnosis as text.

use crate::Style;
use mcproof_record::Diagnostic;

/// The diagnosis as lines, each ending with a line feed.
pub fn render(diagnostic: &Diagnostic, style: &Style) -> String {
    format!("error: {}\n", style.text(&diagnostic.message))
}
