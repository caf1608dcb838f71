//! A server of the zoo, started by hand: `cargo run -p mcproof-testkit --bin zoo -- none --http 3000`.

use mcproof_testkit::zoo;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match zoo::parse(&words) {
        Ok(invocation) => zoo::run(&invocation).map_err(|error| error.to_string()),
        Err(usage) => Err(usage.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            // Without stderr the error cannot be shown.
            let _ = writeln!(std::io::stderr(), "{reason}");
            ExitCode::FAILURE
        }
    }
}
