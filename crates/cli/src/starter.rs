//! A first suite, from a live server: what it offers is listed, what may be called is called twice, and what came back both
//! times becomes what is expected. Knows sessions and the format of suites; no files, and no command line.

mod cases;
mod expectation;
mod exploration;
mod fleeting;
mod now;
pub(crate) mod recorded;
mod saved;
mod server_section;
mod yaml;

pub(crate) use exploration::{Exploration, Explored, Stage, interview, interview_again};
pub(crate) use server_section::{ServerSection, Started, reach};

use cases::Case;
use mcproof_client::redaction::Redactor;
use mcproof_report::escape;
use mcproof_suite::{Environment, load};
use now::Now;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

/// What of this machine and this moment must not stand in a suite that others run.
pub(crate) struct BaseEnvironment {
    pub now: SystemTime,
    /// Secrets, and folders of this machine: an answer that holds one of them is matched by its type.
    pub private: Vec<String>,
    /// What no answer may hold in any form.
    pub secrets: Redactor,
    /// The environment, which is another one elsewhere: no value of it is expected.
    pub environment: BTreeMap<String, String>,
}

impl BaseEnvironment {
    fn holds_secret(&self, text: &str) -> bool {
        matches!(self.secrets.text(text), Cow::Owned(_))
    }
}

/// Characters of a fault that are shown in a comment.
const LONGEST_FAULT: usize = 160;

/// A suite as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StarterSuite {
    pub text: String,
    pub tests: usize,
    /// Tests that a person should look at.
    pub to_review: usize,
    /// Tools that were called.
    pub called: usize,
    /// Tools that are only held against the list.
    pub listed: usize,
    /// Whether a list broke its own rules, so that no test holds it.
    pub has_bad_lists: bool,
    /// Listed prompts and resources that no test gets, each with the reason.
    pub refused: Vec<String>,
}

/// Writes the suite. `schema` is the file of the JSON Schema, beside it.
pub(crate) fn write(interviewed: &Explored, reaching: &ServerSection, surroundings: &BaseEnvironment, schema: &str) -> StarterSuite {
    let now = Now::of(surroundings.now);
    let drafted = cases::draft(interviewed, &now, surroundings);
    let all: Vec<Case> =
        drafted.into_iter().filter(|case| is_flawless(&render(schema, reaching, std::slice::from_ref(case)), reaching)).collect();
    let count = |wanted: fn(&Case) -> bool| all.iter().filter(|case| wanted(case)).count();
    StarterSuite {
        text: render(schema, reaching, &all),
        tests: all.len(),
        to_review: count(|case| case.is_to_review),
        called: count(|case| case.kind == cases::Kind::Called),
        listed: count(|case| case.kind == cases::Kind::Listed),
        has_bad_lists: interviewed.has_bad_lists(),
        refused: interviewed.refused(),
    }
}

/// Whether it can be read, and nothing in it is odd. Whatever a server says, what is written for it is a suite.
fn is_flawless(text: &str, reaching: &ServerSection) -> bool {
    // A variable may be the address of the server.
    let value = "http://localhost/".to_owned();
    let variables: BTreeMap<String, String> = reaching.variables.iter().map(|name| (name.clone(), value.clone())).collect();
    let environment = Environment { variables, ..Environment::default() };
    load("starter", text, Path::new("."), &environment).is_ok_and(|suite| suite.notices.is_empty())
}

fn render(schema: &str, reaching: &ServerSection, cases: &[Case]) -> String {
    let mut text = format!("# yaml-language-server: $schema={schema}\n");
    text +=
        "# Written by `mcproof init` from a running server. Arguments marked `review` are placeholders: replace them, and expect what\n";
    text += "# matters in the response.\n";
    text += "server:\n";
    reaching.server.iter().for_each(|(key, value)| yaml::entry(&mut text, 2, key, value, None));
    if let Some(answers) = &reaching.answers {
        yaml::entry(&mut text, 0, "answers", answers, None);
    }
    text += "# One server for all tests; `test` starts a fresh one for each.\n";
    text += "isolation: file\n";
    text += "\ntests:\n";
    let tests: Vec<String> = cases.iter().map(Case::render).collect();
    text + &tests.join("\n")
}

/// The suite with the key that accepts these faults of the server, and a comment that names them; as it is, if there are none.
pub(crate) fn accepting(text: &str, faults: &[String]) -> String {
    if faults.is_empty() {
        return text.to_owned();
    }
    let mut key =
        String::from("# review: each test would fail because of these faults of the server. Remove `allow_faults` when they are fixed:\n");
    for fault in faults {
        let told: String = escape(fault).chars().take(LONGEST_FAULT).collect();
        key += &format!("#   {told}\n");
    }
    text.replacen("\ntests:\n", &format!("{key}allow_faults: true\n\ntests:\n"), 1)
}

#[cfg(test)]
mod tests;
