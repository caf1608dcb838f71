//! What has to hold for every input holds for the seeds, and for what a break or another byte makes of them. libFuzzer looks further
//! (`cargo xtask fuzz`).

use mcproof_fuzz as fuzz;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 10] = [
    ("config", fuzz::config::check),
    ("contract", fuzz::contract::check),
    ("head", fuzz::head::check),
    ("jsonrpc", fuzz::jsonrpc::check),
    ("lines", fuzz::lines::check),
    ("schema", fuzz::schema::check),
    ("sse", fuzz::sse::check),
    ("suite", fuzz::suite::check),
    ("template", fuzz::template::check),
    ("trace", fuzz::trace::check),
];
/// Places in a seed that are tried; the longest have more bytes.
const PLACES: usize = 48;
/// What means something to at least one of the parsers.
const BYTES: [u8; 4] = [b'\n', b'"', b'$', 0];

#[test]
fn what_has_to_hold_holds_for_each_seed_and_its_neighbors() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    assert_eq!(std::fs::read_dir(&seeds).unwrap().count(), TARGETS.len());
    let mut tried = 0;
    for (name, check) in TARGETS {
        for seed in std::fs::read_dir(seeds.join(name)).unwrap() {
            let path = seed.unwrap().path();
            let seed = std::fs::read(&path).unwrap();
            for input in std::iter::once(seed.clone()).chain(neighbors(&seed)) {
                tried += 1;
                if let Err(panic) = panic::catch_unwind(AssertUnwindSafe(|| check(&input))) {
                    eprintln!("`{name}`, from {}: {:?}", path.display(), String::from_utf8_lossy(&input));
                    panic::resume_unwind(panic);
                }
            }
        }
    }
    assert!(tried > 4_000, "{tried} inputs");
}

/// A seed that ends early, and one of its bytes replaced.
fn neighbors(seed: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let step = seed.len().div_ceil(PLACES).max(1);
    (0..seed.len()).step_by(step).flat_map(move |at| {
        let replaced = BYTES.into_iter().map(move |byte| [&seed[..at], &[byte], &seed[at + 1..]].concat());
        std::iter::once(seed[..at].to_vec()).chain(replaced)
    })
}
