//! A server of the zoo, started by hand: `cargo run -p mcproof-testkit --bin zoo -- none --http 3000`.

use mcproof_testkit::zoo;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let told = match zoo::parse(&words) {
        Ok(invocation) => zoo::run(&invocation).map_err(|error| error.to_string()),
        Err(usage) => Err(usage.to_string()),
    };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            // Without a stderr there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "{reason}");
            ExitCode::FAILURE
        }
    }
}
