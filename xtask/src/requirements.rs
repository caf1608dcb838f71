//! `cargo xtask requirements FOLDER`: compares the table of normative sentences with the specification's sources, which lie in FOLDER.
//! Knows the form of the table, and nothing of the rules that its rows name.

mod source;
mod table;

use source::Found;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use table::Row;

/// Where the rows of a table come from: paths below FOLDER, in which the repositories of the organization lie side by side.
struct Origin {
    /// The name of the table: a revision or an extension.
    name: &'static str,
    sources: &'static [Source],
}

/// Markdown below a folder, each file a page of its own; or the comments of a TypeScript file, which are the page `schema`.
struct Source {
    path: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Pages,
    Schema,
}

const fn pages(path: &'static str) -> Source {
    Source { path, kind: Kind::Pages }
}

const fn schema(path: &'static str) -> Source {
    Source { path, kind: Kind::Schema }
}

const REVISIONS_FOLDER: &str = "modelcontextprotocol/docs/specification";
const TABLES: &str = "crates/rules/requirements";

const ORIGINS: [Origin; 8] = [
    Origin {
        name: "2024-11-05",
        sources: &[pages("modelcontextprotocol/docs/specification/2024-11-05"), schema("modelcontextprotocol/schema/2024-11-05/schema.ts")],
    },
    Origin {
        name: "2025-03-26",
        sources: &[pages("modelcontextprotocol/docs/specification/2025-03-26"), schema("modelcontextprotocol/schema/2025-03-26/schema.ts")],
    },
    Origin {
        name: "2025-06-18",
        sources: &[pages("modelcontextprotocol/docs/specification/2025-06-18"), schema("modelcontextprotocol/schema/2025-06-18/schema.ts")],
    },
    Origin {
        name: "2025-11-25",
        sources: &[pages("modelcontextprotocol/docs/specification/2025-11-25"), schema("modelcontextprotocol/schema/2025-11-25/schema.ts")],
    },
    Origin {
        name: "2026-07-28",
        sources: &[pages("modelcontextprotocol/docs/specification/2026-07-28"), schema("modelcontextprotocol/schema/2026-07-28/schema.ts")],
    },
    Origin { name: "ext-tasks", sources: &[pages("ext-tasks/specification/draft"), schema("ext-tasks/schema/draft/schema.ts")] },
    Origin { name: "ext-auth", sources: &[pages("ext-auth/specification/draft")] },
    Origin { name: "ext-apps", sources: &[pages("ext-apps/specification/2026-01-26")] },
];

/// What was asked for.
pub(crate) struct Plan<'a> {
    folder: &'a Path,
    purpose: Purpose,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Compare,
    /// Write what is new into the tables, without an owner, and take out what is gone.
    Update,
    /// Print each sentence in full with its owner, for whoever reviews the table.
    Show,
}

/// Reads `[--update | --show] FOLDER`.
pub(crate) fn parse<'a>(arguments: &'a [&'a str]) -> Result<Plan<'a>, String> {
    let (purpose, folder) = match arguments {
        ["--update", folder] => (Purpose::Update, folder),
        ["--show", folder] => (Purpose::Show, folder),
        [folder] if !folder.starts_with('-') => (Purpose::Compare, folder),
        _ => {
            return Err("requirements takes the folder of the specification's repositories: requirements [--update | --show] FOLDER".into());
        }
    };
    Ok(Plan { folder: Path::new(folder), purpose })
}

/// An error tells each sentence that is new, gone or changed.
pub(crate) fn compare(root: &Path, plan: &Plan<'_>) -> Result<String, String> {
    let (mut report, mut differences) = (String::new(), String::new());
    for revision in unknown_revisions(plan.folder)? {
        writeln!(differences, "{revision}: a revision without a table: add it to ORIGINS in xtask/src/requirements.rs").expect(TEXT);
    }
    for origin in &ORIGINS {
        let file = root.join(TABLES).join(format!("{}.tsv", origin.name));
        let Some(found) = found(plan.folder, origin)? else {
            writeln!(report, "{:<12} not compared: {} is not in {}", origin.name, origin.sources[0].path, plan.folder.display())
                .expect(TEXT);
            continue;
        };
        let known = table::read(&file)?;
        let difference = differ(&known, &found);
        writeln!(report, "{:<12} {} sentences, {} differences", origin.name, found.len(), difference.count).expect(TEXT);
        if plan.purpose == Purpose::Show {
            for (row, found) in difference.merged.iter().zip(&found) {
                writeln!(report, "{} {} {} [{}]\n    {}", origin.name, row.place, row.hash, row.owner, found.text).expect(TEXT);
            }
        }
        if plan.purpose == Purpose::Update {
            table::write(&file, &difference.merged).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        } else {
            difference.lines.iter().for_each(|line| writeln!(differences, "{}: {line}", origin.name).expect(TEXT));
        }
    }
    if differences.is_empty() { Ok(report) } else { Err(format!("{report}\n{differences}")) }
}

const TEXT: &str = "a String takes all text";

/// Published revisions of which no table is known.
fn unknown_revisions(folder: &Path) -> Result<Vec<String>, String> {
    let folder = folder.join(REVISIONS_FOLDER);
    let entries = fs::read_dir(&folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.retain(|name| name.starts_with(|first: char| first.is_ascii_digit()) && !ORIGINS.iter().any(|origin| origin.name == name));
    names.sort();
    Ok(names)
}

/// All normative sentences of an origin in the order of its pages; none if it is not in the folder.
fn found(folder: &Path, origin: &Origin) -> Result<Option<Vec<Found>>, String> {
    if !folder.join(origin.sources[0].path).exists() {
        return Ok(None);
    }
    let mut sentences = Vec::new();
    for Source { path, kind } in origin.sources {
        let path = folder.join(path);
        let failed = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
        match kind {
            Kind::Schema => sentences.extend(source::in_typescript("schema", &fs::read_to_string(&path).map_err(failed)?)),
            Kind::Pages => {
                for (page, file) in markdown_files(&path, "").map_err(failed)? {
                    sentences.extend(source::in_markdown(&page, &fs::read_to_string(&file).map_err(failed)?));
                }
            }
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    sentences.retain(|found| seen.insert((found.place.clone(), found.hash.clone())));
    Ok(Some(sentences))
}

/// The pages below a folder, sorted, by their paths without ending. `schema.mdx` is made from the TypeScript, whose comments are read instead.
fn markdown_files(folder: &Path, prefix: &str) -> std::io::Result<Vec<(String, std::path::PathBuf)>> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut files = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        match name.rsplit_once('.') {
            _ if entry.file_type()?.is_dir() => files.extend(markdown_files(&entry.path(), &format!("{prefix}{name}/"))?),
            Some((stem, "md" | "mdx")) if stem != "schema" => {
                let page = format!("{prefix}{stem}");
                files.push((page.strip_suffix("/index").unwrap_or(&page).to_owned(), entry.path()));
            }
            _ => {}
        }
    }
    Ok(files)
}

/// How a table differs from the sources.
struct Difference {
    count: usize,
    /// A line for each sentence.
    lines: Vec<String>,
    /// The table as it has to be: what is gone is left out, what is new has no owner.
    merged: Vec<Row>,
}

fn differ(known: &[Row], found: &[Found]) -> Difference {
    let mut rows: BTreeMap<(&str, &str), &Row> = known.iter().map(|row| ((row.place.as_str(), row.hash.as_str()), row)).collect();
    let mut merged: Vec<(Row, bool)> = Vec::new();
    for one in found {
        let row = rows.remove(&(one.place.as_str(), one.hash.as_str()));
        merged.push((row.map_or_else(|| Row::new(one), |row| Row { words: one.words.clone(), ..row.clone() }), row.is_none()));
    }
    let mut gone: Vec<&Row> = rows.into_values().collect();
    let mut lines = Vec::new();
    for (row, _) in merged.iter_mut().filter(|(_, is_new)| *is_new) {
        // A sentence that begins as one that is gone from the same page was reworded; one with its hash has moved.
        let is_old = |old: &&Row| old.hash == row.hash || (old.page() == row.page() && old.words == row.words);
        match gone.iter().position(is_old) {
            Some(at) => {
                let old = gone.remove(at);
                if old.hash == row.hash {
                    (row.owner, row.note) = (old.owner.clone(), old.note.clone());
                    lines.push(format!("moved from {} to {}: {}", old.place, row.place, row.words));
                } else {
                    lines.push(format!("changed at {}: {} (it was: {})", row.place, row.words, old.owner));
                }
            }
            None => lines.push(format!("new at {}: {} {}", row.place, row.keyword, row.words)),
        }
    }
    lines.extend(gone.iter().map(|row| format!("gone from {}: {}", row.place, row.words)));
    Difference { count: lines.len(), lines, merged: merged.into_iter().map(|(row, _)| row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Found> {
        source::in_markdown("basic/ping", text)
    }

    #[test]
    fn what_is_new_gone_moved_or_changed_is_told() {
        let before = rows(
            "# A\n\nServers MUST answer.\n\nServers SHOULD be quick about everything that they were asked for by clients.\n\nClients MUST ask.",
        );
        let known: Vec<Row> = before.iter().map(|found| Row { owner: "some-rule".into(), ..Row::new(found) }).collect();
        assert_eq!(differ(&known, &before).count, 0);
        let after = rows(
            "# A\n\nServers SHOULD be quick about everything that they were asked for.\n\n# B\n\nServers MUST answer.\n\nHosts MUST NOT ask.",
        );
        let difference = differ(&known, &after);
        let expected = [
            "changed at basic/ping#a",
            "moved from basic/ping#a to basic/ping#b",
            "new at basic/ping#b: MUST NOT",
            "gone from basic/ping#a",
        ];
        assert_eq!(difference.lines.len(), expected.len(), "{:?}", difference.lines);
        for (line, part) in difference.lines.iter().zip(expected) {
            assert!(line.starts_with(part), "{line}");
        }
        let owners: Vec<&str> = difference.merged.iter().map(|row| row.owner.as_str()).collect();
        assert_eq!(owners, ["?", "some-rule", "?"]);
    }
}
