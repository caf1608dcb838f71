//! Runs one hostile server: `hostile NAME --stdio | --http PORT | --sse PORT`, to try a client on it by hand.

use mcproof_testkit::hostile;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (peer, transport) = hostile::parse(&arguments)?;
    Ok(hostile::run(peer, transport)?)
}
