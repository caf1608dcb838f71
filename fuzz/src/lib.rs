//! Properties of the parsers of untrusted input that hold for every input. libFuzzer looks for an input that breaks one
//! (`cargo xtask fuzz`); it begins with the seeds, which include all inputs that once did.

pub mod config;
pub mod contract;
pub mod head;
pub mod jsonrpc;
pub mod lines;
pub mod schema;
pub mod sse;
pub mod suite;
pub mod template;
pub mod trace;

/// The first line, and the rest.
fn lines_of(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}

/// The bytes in pieces whose sizes the first two of them choose, and the whole that the pieces make.
fn pieces(bytes: &[u8]) -> (impl Iterator<Item = &[u8]> + Clone, &[u8]) {
    let (sizes, whole) = bytes.split_at(bytes.len().min(2));
    let size = |index: usize| sizes.get(index).map_or(1, |size| usize::from(size % 16) + 1);
    let (first, second) = (size(0), size(1));
    let mut rest = whole;
    let mut odd = false;
    let pieces = std::iter::from_fn(move || {
        odd = !odd;
        let (piece, left) = rest.split_at(rest.len().min(if odd { first } else { second }));
        rest = left;
        (!piece.is_empty()).then_some(piece)
    });
    (pieces, whole)
}
