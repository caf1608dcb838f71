//! What must hold for every input of the parsers that read what others wrote. libFuzzer looks for an input that breaks one
//! of these properties (`cargo xtask fuzz`); the seeds, and whatever once broke one, are ordinary tests.

pub mod jsonrpc;
pub mod lines;
pub mod sse;
pub mod suite;

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

#[cfg(test)]
mod tests {
    use std::path::Path;

    fn check_seeds(target: &str, check: impl Fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
        let mut seeds = 0;
        for seed in std::fs::read_dir(folder).unwrap() {
            check(&std::fs::read(seed.unwrap().path()).unwrap());
            seeds += 1;
        }
        assert!(seeds > 0, "`{target}` has no seeds");
    }

    #[test]
    fn the_properties_hold_for_every_seed() {
        check_seeds("lines", super::lines::check);
        check_seeds("sse", super::sse::check);
        check_seeds("jsonrpc", super::jsonrpc::check);
        check_seeds("suite", super::suite::check);
    }
}
