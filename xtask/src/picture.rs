//! `cargo xtask picture`: what a terminal shows of a failing test, as a picture for the README. Knows one command line of mcproof.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const PICTURE: &str = "docs/pictures/failure.svg";

/// What a reader could type, apart from the path of the program.
const TYPED: [&str; 9] =
    ["test", "shop.mcproof.yaml::an order reduces the stock", "--transport", "stdio", "--", "mcproof", "demo", "shop", "--miscount"];

/// Runs the demo shop with its bug, and draws the output.
///
/// # Errors
/// Says why there is no picture.
pub(crate) fn picture(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let program = match arguments {
        [] => root.join("target/debug/mcproof"),
        ["--program", program] => root.join(program),
        _ => return Err("usage: cargo xtask picture [--program PATH]".to_owned()),
    };
    let output = Command::new(&program)
        .args(["--color", "always"])
        .args(TYPED)
        .current_dir(root.join("examples/quickstart"))
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start {}: {error}; build it with `cargo build -p mcproof`", program.display()))?;
    if output.status.code() != Some(1) {
        return Err(format!("the test did not fail: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let shown =
        format!("$ mcproof test '{}' -- mcproof demo shop --miscount\n{}", TYPED[1], String::from_utf8_lossy(&output.stdout).trim_end());
    let picture = anstyle_svg::Term::new().render_svg(&shown);
    let path = root.join(PICTURE);
    fs::create_dir_all(path.parent().expect("it lies in a folder"))
        .and_then(|()| fs::write(&path, picture))
        .map_err(|error| format!("cannot write {PICTURE}: {error}"))?;
    println!("{PICTURE}");
    Ok(())
}
