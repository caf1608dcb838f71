//! The report of a check: conversations with a server, and the result of each rule. Plain data; judges fill it.

use crate::{FrameId, Severity, Transcript};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One recorded session of a check, by one kind of client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conversation {
    /// The kind of client: `legacy`, `modern`, `browser`, `abuse`.
    pub name: String,
    /// `stdio`, `http`, `sse` or `in-memory`.
    pub transport: String,
    /// The negotiated revision; if none was negotiated, the one that the client offered.
    pub revision: String,
    /// Whether the handshake succeeded.
    pub opened: Opened,
    pub probes: Vec<Probed>,
    /// How a server process that mcproof started shut down; missing if mcproof did not start it, or if it had exited before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// The SDKs that the server is built with, the most specific first; empty if they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sdks: Vec<Sdk>,
    pub transcript: Transcript,
}

/// A library that servers are built with, in the version that was detected.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sdk {
    /// The usual name, such as `TypeScript SDK`.
    pub name: String,
    /// Ecosystem and package, such as `npm:@modelcontextprotocol/sdk`.
    pub package: String,
    pub version: String,
}

impl fmt::Display for Sdk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.name, self.version)
    }
}

/// A known defect of an SDK version, which causes a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Defect {
    pub sdk: Sdk,
    /// The first version without it; missing if the newest version that was tried still has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
    /// What the author of a server can do: a lowercase fragment without a final dot.
    pub advice: String,
}

/// How a server process that mcproof started shut down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ending {
    /// It kept running after its stdin was closed; over HTTP it may.
    pub ignored_end_of_input: bool,
    pub ignored_terminate: bool,
    /// Child processes that still ran after it had exited. They were killed.
    pub left_behind: Vec<i32>,
}

/// Whether the handshake of a conversation succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Opened {
    Yes,
    /// None was tried: the conversation is about what happens before or without it.
    Bare,
    /// The server does not support this era, and returns the specified error.
    OtherEra,
    No {
        /// A lowercase fragment without a final dot.
        reason: String,
    },
}

/// One thing that a client tried: the frames from `first` up to, not including, `end`. A response may come later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probed {
    /// What was tried, such as `unknown-method`.
    pub probe: String,
    /// The subject of the probe: the name of a tool, a URI, a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub first: FrameId,
    pub end: FrameId,
    pub outcome: ProbeOutcome,
}

impl Probed {
    /// Whether a frame was recorded while this was tried.
    pub fn contains(&self, frame: FrameId) -> bool {
        self.first <= frame && frame < self.end
    }
}

/// What ended the wait for a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProbeOutcome {
    /// A response was received, or none was expected.
    Done,
    /// The deadline passed.
    Silent,
    /// The connection or the process ended, or no response can follow.
    Gone,
}

/// The result of one rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuleResult {
    /// Id of the rule.
    pub rule: String,
    pub area: String,
    /// The requirement in one sentence: a lowercase fragment without a final dot.
    pub requirement: String,
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
    /// Never a pass: `why` states what is missing.
    Untestable {
        why: String,
    },
}

/// One way in which a server breaks a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Error for a MUST, warning for a SHOULD, note for legal behavior that breaks known clients.
    pub severity: Severity,
    /// `MUST`, `SHOULD`, `security` or `portability`.
    pub level: String,
    /// Why the severity is below that of its level, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<String>,
    /// One sentence: a lowercase fragment without a final dot.
    pub message: String,
    /// Position in `conversations` of the report.
    pub conversation: usize,
    pub frames: Vec<FrameId>,
    /// The URL of the requirement.
    pub source: String,
    /// What to change.
    pub remedy: String,
    /// The rule whose finding causes this one: fixing that one fixes both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The defect of the SDK that causes this; the code of the server does not matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defect: Option<Defect>,
    /// It is in the baseline of accepted findings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
}

/// Something that a check needs to observe before it may pass, and did not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    pub kind: GapKind,
    /// What is missing and why: a lowercase fragment without a final dot.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// Position in `conversations` of the report of the one that shows it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<usize>,
}

/// What a gap is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GapKind {
    /// No conversation completed the handshake and the lists.
    NoConversation,
    /// A conversation completed them, but important rules could not be judged.
    NotJudged,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    Passed,
    Failed,
    /// There are no findings, but not enough was observed for a pass.
    Inconclusive,
}

/// Everything that a check found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckReport {
    pub version: u32,
    /// The server, as the user named it.
    pub target: String,
    /// Why the check is inconclusive unless it failed; empty if all important rules were judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// What was checked only in part, which is not a fault of the server: lowercase fragments such as
    /// `500 of 2000 resources were read`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sampled: Vec<String>,
    pub rules: Vec<RuleResult>,
    pub conversations: Vec<Conversation>,
}

impl CheckReport {
    /// The conclusion, if findings for which `counts` is true make the check fail.
    pub fn conclusion(&self, counts: impl Fn(&RuleResult, &Finding) -> bool) -> Conclusion {
        if self.findings().any(|(rule_result, finding)| !finding.accepted && counts(rule_result, finding)) {
            Conclusion::Failed
        } else if self.gaps.is_empty() {
            Conclusion::Passed
        } else {
            Conclusion::Inconclusive
        }
    }

    /// The gaps that no error explains: an error in the same conversation is reported instead of the gap.
    pub fn unexplained_gaps(&self) -> impl Iterator<Item = &Gap> {
        // A defect of every version of an SDK is an error that counts as a warning.
        let was_error =
            |finding: &Finding| finding.defect.is_some() && finding.tolerance.is_some() && finding.severity == Severity::Warning;
        let is_error = move |finding: &Finding| (finding.severity == Severity::Error || was_error(finding)) && !finding.accepted;
        let explains =
            move |gap: &Gap| self.findings().any(|(_, finding)| is_error(finding) && Some(finding.conversation) == gap.conversation);
        self.gaps.iter().filter(move |gap| !explains(gap))
    }

    /// Every finding with the rule result that it belongs to.
    pub fn findings(&self) -> impl Iterator<Item = (&RuleResult, &Finding)> {
        self.rules.iter().flat_map(|rule_result| {
            let findings = match &rule_result.judged {
                Judged::Broken { findings } => findings.as_slice(),
                _ => &[],
            };
            findings.iter().map(move |finding| (rule_result, finding))
        })
    }
}

/// A finding that a team accepts for now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    pub rule: String,
    /// As the finding has it; numbers in it may differ.
    pub message: String,
    /// Why it is accepted, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The file of accepted findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    pub version: u32,
    pub accepted: Vec<Acceptance>,
}

impl Baseline {
    /// Marks accepted findings, and returns the acceptances that match no finding any more.
    pub fn apply(&self, report: &mut CheckReport) -> Vec<Acceptance> {
        let mut stale = self.accepted.clone();
        for rule_result in &mut report.rules {
            let Judged::Broken { findings } = &mut rule_result.judged else { continue };
            for finding in findings {
                let is_same = |known: &Acceptance| {
                    known.rule == rule_result.rule && without_numbers(&known.message) == without_numbers(&finding.message)
                };
                finding.accepted = self.accepted.iter().any(is_same);
                stale.retain(|known| !is_same(known));
            }
        }
        stale
    }

    /// Accepts all findings of a check, with the reasons of this baseline.
    #[must_use]
    pub fn renewed(&self, report: &CheckReport) -> Self {
        let accept = |(rule_result, finding): (&RuleResult, &Finding)| {
            let is_same = |known: &&Acceptance| known.rule == rule_result.rule && known.message == finding.message;
            let is_alike = |known: &&Acceptance| {
                known.rule == rule_result.rule && without_numbers(&known.message) == without_numbers(&finding.message)
            };
            let known = self.accepted.iter().find(is_same).or_else(|| self.accepted.iter().find(is_alike));
            let reason = known.map(|known| known.reason.clone()).unwrap_or_default();
            Acceptance { rule: rule_result.rule.clone(), message: finding.message.clone(), reason }
        };
        Self { version: crate::FORMAT_VERSION, accepted: report.findings().map(accept).collect() }
    }
}

/// A text with its numbers replaced: times, counts and ports differ from run to run.
pub fn without_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut in_number = false;
    for character in text.chars() {
        match (character.is_ascii_digit() || (in_number && character == '.'), in_number) {
            (true, true) => {}
            (true, false) => plain.push('#'),
            (false, _) => plain.push(character),
        }
        in_number = character.is_ascii_digit() || (in_number && character == '.');
    }
    plain
}

/// The documentation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RulePage {
    pub id: String,
    pub area: String,
    pub requirement: String,
    /// In the order of the revisions.
    pub sources: Vec<RuleSource>,
    /// Where it can be broken, in words.
    pub transports: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<String>,
    pub why: String,
    pub remedy: String,
    /// SDK, and what to change there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sdks: Vec<(String, String)>,
    pub bad: String,
    pub good: String,
}

/// The source of a requirement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuleSource {
    /// First and last revision that have it.
    pub first: String,
    pub last: String,
    pub level: String,
    /// Empty where practice alone demands it.
    pub url: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;

    fn report(message: &str) -> CheckReport {
        let finding = Finding {
            severity: Severity::Error,
            level: "MUST".into(),
            tolerance: None,
            message: message.into(),
            conversation: 0,
            frames: Vec::new(),
            source: String::new(),
            remedy: String::new(),
            cause: None,
            defect: None,
            accepted: false,
        };
        let rule_result =
            RuleResult { rule: "r".into(), area: "a".into(), requirement: "l".into(), judged: Judged::Broken { findings: vec![finding] } };
        CheckReport {
            version: 1,
            target: "t".into(),
            gaps: Vec::new(),
            sampled: Vec::new(),
            rules: vec![rule_result],
            conversations: Vec::new(),
        }
    }

    #[test]
    fn a_reason_stays_when_only_numbers_of_the_finding_change() {
        let accepted = vec![Acceptance { rule: "r".into(), message: "3 requests took 2.5 s".into(), reason: "known".into() }];
        let baseline = Baseline { version: crate::FORMAT_VERSION, accepted };
        let reason = |message: &str| baseline.renewed(&report(message)).accepted[0].reason.clone();
        assert_eq!(reason("4 requests took 1.5 s"), "known");
        assert_eq!(reason("4 responses took 1.5 s"), "");
    }

    #[test]
    fn a_baseline_accepts_the_same_finding_with_other_numbers() {
        let mut found = report("took 5.2 s on port 3000");
        let baseline = Baseline { version: 1, accepted: vec![] }.renewed(&found);
        assert_eq!(baseline.apply(&mut found), []);
        assert!(found.findings().all(|(_, finding)| finding.accepted));
        let mut later = report("took 17 s on port 41");
        assert_eq!(baseline.apply(&mut later), []);
        assert!(later.findings().all(|(_, finding)| finding.accepted));
    }

    #[test]
    fn what_is_found_no_more_is_stale() {
        let baseline = Baseline { version: 1, accepted: vec![] }.renewed(&report("old"));
        let mut found = report("new");
        assert_eq!(baseline.apply(&mut found), baseline.accepted);
        assert!(found.findings().all(|(_, finding)| !finding.accepted));
    }

    #[test]
    fn a_report_from_before_sdks_were_known_reads_as_one_without_any() {
        let transcript = serde_json::to_value(Transcript::default()).unwrap();
        let take = serde_json::json!({
            "name": "legacy", "transport": "stdio", "revision": "2025-11-25", "opened": { "state": "yes" }, "probes": [],
            "transcript": transcript,
        });
        assert_eq!(serde_json::from_value::<Conversation>(take.clone()).unwrap().sdks, []);
        // And one without any is written as before.
        assert_eq!(serde_json::to_value(serde_json::from_value::<Conversation>(take.clone()).unwrap()).unwrap(), take);
    }

    #[test]
    fn a_report_reads_back_as_it_was_written() {
        let report = report("m");
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<CheckReport>(&text).unwrap(), report);
    }
}
