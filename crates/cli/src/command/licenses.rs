//! `mcproof licenses`: the license of mcproof, and the notices of the JavaScript in its pages. Those of crates are a file in each package.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Print the licenses of mcproof and of the JavaScript libraries in it
///
/// The licenses of the Rust crates are in the file THIRD-PARTY.txt of each package.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> Result<Exit, Failure> {
    let own = concat!("mcproof ", env!("CARGO_PKG_VERSION"), ": ", env!("CARGO_PKG_LICENSE"), ", at your option.\n");
    let crates = "The licenses of the Rust crates in it are in the file THIRD-PARTY.txt of each package.\n";
    let mut text = format!("{own}{crates}");
    #[cfg(feature = "ui")]
    {
        text.push('\n');
        text += mcproof_ui::NOTICE;
    }
    output::show(&text)?;
    Ok(Exit::Passed)
}
