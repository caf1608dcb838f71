//! The table of normative sentences as a file: a row a line, its cells separated by tabs. Does not know what owners mean.

use super::source::Found;
use std::fs;
use std::path::Path;

const HEAD: &str = "# place\thash\tkeyword\towner\tfirst words\tnote";
/// What a sentence has that nobody has looked at.
const NOBODY: &str = "?";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Page and anchor.
    pub(super) place: String,
    pub(super) hash: String,
    pub(super) keyword: String,
    pub(super) owner: String,
    pub(super) words: String,
    pub(super) note: String,
}

impl Row {
    pub(super) fn new(found: &Found) -> Self {
        let Found { place, hash, keyword, words, .. } = found.clone();
        Self { place, hash, keyword: keyword.into(), owner: NOBODY.into(), words, note: String::new() }
    }

    pub(super) fn page(&self) -> &str {
        self.place.split('#').next().unwrap_or_default()
    }
}

/// Without a file there are no rows.
pub(super) fn read(file: &Path) -> Result<Vec<Row>, String> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| row(line).ok_or_else(|| format!("{}:{}: a row has six cells: {HEAD}", file.display(), number + 1))).collect()
}

fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.split('\t').collect();
    let [place, hash, keyword, owner, words, note] = cells.try_into().ok()?;
    let [place, hash, keyword, owner, words, note] = [place, hash, keyword, owner, words, note].map(str::to_owned);
    Some(Row { place, hash, keyword, owner, words, note })
}

pub(super) fn write(file: &Path, rows: &[Row]) -> std::io::Result<()> {
    let lines = rows
        .iter()
        .map(|Row { place, hash, keyword, owner, words, note }| format!("{place}\t{hash}\t{keyword}\t{owner}\t{words}\t{note}\n"));
    fs::write(file, format!("{HEAD}\n{}", lines.collect::<String>()))
}
