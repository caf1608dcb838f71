//! The program `mcproof`.

fn main() -> std::process::ExitCode {
    mcproof_cli::main()
}
