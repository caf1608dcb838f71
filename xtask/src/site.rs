//! `cargo xtask site`: builds the documentation site, and finds links that lead nowhere. Knows the generator's command line and Markdown links.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pulldown_cmark::{Event, Options, Parser, Tag};

use crate::peers;

const CONFIGURATION: &str = "zensical.toml";

/// Folders whose pages all have a place in the navigation.
const LISTED: [&str; 4] = ["tutorial", "guide", "reference", "explanation"];

/// Pages outside of the site, which the generator does not read.
const OUTSIDE: [&str; 7] = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "examples/README.md",
    "bindings/python/README.md",
];

/// Builds the site into `target/site`.
///
/// # Errors
/// Names every link, anchor and page that is wrong.
pub(crate) fn site(root: &Path) -> Result<(), String> {
    let mut wrong = unlisted(root)?;
    for page in OUTSIDE {
        wrong.extend(broken_links(&root.join(page))?.into_iter().map(|link| format!("{page}: `{link}` does not exist")));
    }
    let generator = peers::install(root, &["site"])?.remove(0).folder.join("bin/zensical");
    let output = Command::new(&generator)
        .args(["build", "--clean", "--strict"])
        .current_dir(root)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start {}: {error}", generator.display()))?;
    if !output.status.success() {
        // A traceback of the generator follows its findings.
        let findings = String::from_utf8_lossy(&output.stderr).into_owned();
        wrong.push(findings.split("Traceback").next().unwrap_or_default().trim().to_owned());
    }
    if !root.join("target/site/index.html").is_file() {
        wrong.push("target/site/index.html was not written".to_owned());
    }
    if wrong.is_empty() {
        println!("site: target/site/index.html");
        return Ok(());
    }
    Err(wrong.join("\n"))
}

/// Pages that nobody finds, because the navigation leaves them out.
fn unlisted(root: &Path) -> Result<Vec<String>, String> {
    let navigation = read(&root.join(CONFIGURATION))?;
    let home = read(&root.join("docs/index.md"))?;
    let mut wrong = Vec::new();
    for folder in LISTED {
        let path = root.join("docs").join(folder);
        for entry in fs::read_dir(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))? {
            let name = entry.map_err(|error| error.to_string())?.file_name().to_string_lossy().into_owned();
            let page = format!("{folder}/{name}");
            if name.ends_with(".md") && !navigation.contains(&format!("\"{page}\"")) {
                wrong.push(format!("docs/{page} is not in the navigation of {CONFIGURATION}"));
            }
            if name.ends_with(".md") && !home.contains(&format!("({page})")) {
                wrong.push(format!("docs/{page} is not on docs/index.md"));
            }
        }
    }
    Ok(wrong)
}

/// The relative links of a page whose file does not exist.
fn broken_links(page: &Path) -> Result<Vec<String>, String> {
    let text = read(page)?;
    let folder = page.parent().map(PathBuf::from).unwrap_or_default();
    let links = Parser::new_ext(&text, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url.into_string()),
        _ => None,
    });
    let is_broken = |link: &String| {
        let path = link.split('#').next().unwrap_or_default();
        !link.contains("://") && !link.starts_with("mailto:") && !path.is_empty() && !folder.join(path).exists()
    };
    Ok(links.filter(is_broken).collect())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_missing_file_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("page.md");
        fs::write(folder.path().join("there.md"), "").unwrap();
        fs::write(&page, "[a](there.md#part) [b](missing.md) [c](https://a.example) [d](#part) ![e](no.svg)").unwrap();
        assert_eq!(broken_links(&page).unwrap(), ["missing.md", "no.svg"]);
    }
}
