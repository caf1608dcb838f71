//! What a check found: conversations with a server, and for each rule what they say about it. Plain data; judges fill it.

use crate::{FrameId, Severity, Transcript};
use serde::{Deserialize, Serialize};

/// One conversation that a check held, by one kind of client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Take {
    /// What the client was like: `legacy`, `modern`, `browser`, `abuse`.
    pub name: String,
    /// `stdio`, `http`, `sse` or `in-memory`.
    pub transport: String,
    /// The revision that was negotiated; if none was, the one that was offered.
    pub revision: String,
    /// How far the conversation came.
    pub opened: Opened,
    pub probes: Vec<Probed>,
    /// How the server that we started was ended; nothing if it was not ours, or had ended before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    pub transcript: Transcript,
}

/// How the end of a server that we started went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ending {
    /// It lived on after its stdin had been closed; over HTTP that is not asked of it.
    pub ignored_end_of_input: bool,
    pub ignored_terminate: bool,
    /// Processes of its tree that lived on after it had ended. They have been killed.
    pub left_behind: Vec<i32>,
}

/// Whether the handshake of a conversation succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Opened {
    Yes,
    /// None was made: the conversation is about what comes before or beside it.
    Bare,
    /// The server does not live in this era, and says so as it should.
    OtherEra,
    No {
        /// A lowercase fragment without a final dot.
        reason: String,
    },
}

/// One thing that a client tried: the frames from `first` up to, not including, `end`. An answer may come later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probed {
    /// What was tried, such as `unknown-method`.
    pub probe: String,
    /// What it was tried on: the name of a tool, a URI, a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub first: FrameId,
    pub end: FrameId,
    pub outcome: ProbeOutcome,
}

/// What ended the wait for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProbeOutcome {
    /// An answer came, or none was waited for.
    Done,
    /// The deadline passed.
    Silent,
    /// The connection or the process ended, or no answer can come any more.
    Gone,
}

/// What a check says about one rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ruling {
    /// Id of the rule.
    pub rule: String,
    pub area: String,
    /// The law in one sentence: a lowercase fragment without a final dot.
    pub law: String,
    pub judged: Judged,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Judged {
    Pass,
    /// At least one finding.
    Broken {
        findings: Vec<Finding>,
    },
    NotApplicable {
        why: String,
    },
    /// Never green: says what is missing.
    Untestable {
        why: String,
    },
}

/// One way in which a server breaks a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Error where a law says MUST, warning where it says SHOULD, note for what is legal and breaks known clients.
    pub severity: Severity,
    /// `MUST`, `SHOULD`, `security` or `portability`.
    pub keyword: String,
    /// Why it counts for less than its keyword says, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lenience: Option<String>,
    /// One sentence: a lowercase fragment without a final dot.
    pub message: String,
    /// Position in the report's takes.
    pub take: usize,
    pub frames: Vec<FrameId>,
    /// Where the law stands.
    pub source: String,
    /// What to change.
    pub remedy: String,
    /// It is in the baseline of accepted findings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
}

/// Everything that a check found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckReport {
    pub version: u32,
    /// The server, as the user named it.
    pub target: String,
    pub rulings: Vec<Ruling>,
    pub takes: Vec<Take>,
}

impl CheckReport {
    /// Every finding with the ruling that it belongs to.
    pub fn findings(&self) -> impl Iterator<Item = (&Ruling, &Finding)> {
        self.rulings.iter().flat_map(|ruling| {
            let findings = match &ruling.judged {
                Judged::Broken { findings } => findings.as_slice(),
                _ => &[],
            };
            findings.iter().map(move |finding| (ruling, finding))
        })
    }
}
