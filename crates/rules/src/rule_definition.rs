//! What a rule is. Knows no rule.

use super::ConversationView;
use mcproof_protocol::Revision;
use mcproof_record::{FrameId, Severity};
use std::fmt;
use std::ops::RangeInclusive;

/// First and last.
pub type Revisions = RangeInclusive<Revision>;

/// Ranges of revisions that laws hold for.
pub mod revisions {
    use super::{Revision, Revisions};

    pub const ALL: Revisions = Revision::V2024_11_05..=Revision::V2026_07_28;
    /// With an `initialize` handshake.
    pub const LEGACY: Revisions = Revision::V2024_11_05..=Revision::V2025_11_25;
    /// Before Streamable HTTP.
    pub const FIRST: Revisions = Revision::V2024_11_05..=Revision::V2024_11_05;
    pub const SINCE_2025_03: Revisions = Revision::V2025_03_26..=Revision::V2026_07_28;
    pub const SINCE_2025_06: Revisions = Revision::V2025_06_18..=Revision::V2026_07_28;
    pub const SINCE_2025_11: Revisions = Revision::V2025_11_25..=Revision::V2026_07_28;
    pub const BEFORE_2025_11: Revisions = Revision::V2024_11_05..=Revision::V2025_06_18;
    /// With sessions over Streamable HTTP.
    pub const SESSIONS: Revisions = Revision::V2025_03_26..=Revision::V2025_11_25;
    pub const MODERN: Revisions = Revision::V2026_07_28..=Revision::V2026_07_28;
}

/// Who demands it, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequirementLevel {
    /// MUST, MUST NOT, REQUIRED.
    Must,
    /// SHOULD, SHOULD NOT, RECOMMENDED.
    Should,
    /// Not in the specification: attacks that are known.
    Security,
    /// Legal in MCP, and known clients, hosts or tools break on it.
    Portability,
}

impl RequirementLevel {
    pub fn severity(self) -> Severity {
        match self {
            Self::Must | Self::Security => Severity::Error,
            Self::Should => Severity::Warning,
            Self::Portability => Severity::Note,
        }
    }
}

impl fmt::Display for RequirementLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::Security => "security",
            Self::Portability => "portability",
        })
    }
}

/// The part of the specification, or of practice, that a rule belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    Lifecycle,
    JsonRpc,
    Stdio,
    Process,
    Robustness,
    Events,
    Http,
    Sessions,
    Cors,
    Security,
    Schema,
    Capabilities,
    Lists,
    Tools,
    Calls,
    Poisoning,
    Resources,
    Progress,
    Modern,
    /// MCP Apps: tools with a page.
    Apps,
    /// What hosts and the interfaces of models refuse. Judged only when asked for.
    Hosts,
    /// What the tools of the official conformance suite show.
    Fixtures,
}

impl Area {
    pub const EVERY: [Self; 22] = [
        Self::Lifecycle,
        Self::JsonRpc,
        Self::Stdio,
        Self::Process,
        Self::Robustness,
        Self::Events,
        Self::Http,
        Self::Sessions,
        Self::Cors,
        Self::Security,
        Self::Schema,
        Self::Capabilities,
        Self::Lists,
        Self::Tools,
        Self::Calls,
        Self::Poisoning,
        Self::Resources,
        Self::Progress,
        Self::Modern,
        Self::Apps,
        Self::Hosts,
        Self::Fixtures,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Lifecycle => "lifecycle",
            Self::JsonRpc => "jsonrpc",
            Self::Stdio => "stdio",
            Self::Process => "process",
            Self::Robustness => "robustness",
            Self::Events => "events",
            Self::Http => "http",
            Self::Sessions => "sessions",
            Self::Cors => "cors",
            Self::Security => "security",
            Self::Schema => "schema",
            Self::Capabilities => "capabilities",
            Self::Lists => "lists",
            Self::Tools => "tools",
            Self::Calls => "calls",
            Self::Poisoning => "poisoning",
            Self::Resources => "resources",
            Self::Progress => "progress",
            Self::Modern => "modern",
            Self::Apps => "apps",
            Self::Hosts => "hosts",
            Self::Fixtures => "fixtures",
        }
    }
}

/// One sentence of the specification, for the revisions that have it.
#[derive(Clone, Debug)]
pub struct RequirementSource {
    pub revisions: Revisions,
    pub level: RequirementLevel,
    /// Path and anchor below the revision, such as `basic/transports#stdio`; a whole URL for what is not in the
    /// specification; empty for practice without a source.
    pub source: &'static str,
}

/// The sources of a requirement that both sides hold to what was negotiated: SHOULD in the first two revisions, MUST since, with
/// another place in the modern era, which negotiates nothing.
pub(super) const fn negotiated(modern: &'static str) -> [RequirementSource; 3] {
    const OPERATION: &str = "basic/lifecycle#operation";
    [
        RequirementSource { revisions: Revision::V2024_11_05..=Revision::V2025_03_26, level: RequirementLevel::Should, source: OPERATION },
        RequirementSource { revisions: Revision::V2025_06_18..=Revision::V2025_11_25, level: RequirementLevel::Must, source: OPERATION },
        RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: modern },
    ]
}

/// The transports on which a law can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliesTo {
    Any,
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE.
    Sse,
    /// Either of the two that use HTTP.
    Web,
}

impl AppliesTo {
    pub fn includes(self, transport: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Stdio => matches!(transport, "stdio" | "in-memory"),
            Self::Http => transport == "http",
            Self::Sse => transport == "sse",
            Self::Web => matches!(transport, "http" | "sse"),
        }
    }
}

/// A law of one or more revisions, and how to tell whether a server keeps it.
pub struct Rule {
    /// Says what is right, in kebab-case.
    pub id: &'static str,
    pub area: Area,
    /// A lowercase fragment without a final dot.
    pub requirement: &'static str,
    /// Not overlapping. Revisions without one do not have the rule.
    pub sources: &'static [RequirementSource],
    pub on: AppliesTo,
    /// Set where a broken law always counts one step less by default, a MUST as a warning and a SHOULD as a note, because most
    /// servers that work break it: says so.
    pub tolerance: Option<&'static str>,
    pub judge: Judge,
    /// Who breaks on it, and how.
    pub why: &'static str,
    /// What to change, whatever the SDK.
    pub remedy: &'static str,
    /// What to change with one SDK, by its name.
    pub sdks: &'static [(&'static str, &'static str)],
}

impl RequirementSource {
    /// What it counts for, where `tolerance` says why it counts one step less.
    pub fn severity(&self, tolerance: Option<&str>) -> Severity {
        match (tolerance, self.level.severity()) {
            (None, severity) => severity,
            (Some(_), Severity::Error) => Severity::Warning,
            (Some(_), _) => Severity::Note,
        }
    }
}

impl Rule {
    /// Of a rule that holds on every transport, without tolerance and without a word about SDKs. The rest has to be said.
    pub const DEFAULT: Self = Self {
        id: "",
        area: Area::Lifecycle,
        requirement: "",
        sources: &[],
        on: AppliesTo::Any,
        tolerance: None,
        judge: Judge::Each(|_| Judgment::Untestable("this rule has no judge".into())),
        why: "",
        remedy: "",
        sdks: &[],
    };

    /// The requirement in the revision of a session; of one that was never published, in the revision before it. `None` also for
    /// what is later than all published ones.
    pub fn requirement_in(&self, version: &str) -> Option<&'static RequirementSource> {
        let revision = Revision::not_after(version).filter(|_| version <= Revision::MODERN.as_str())?;
        self.sources.iter().find(|source| source.revisions.contains(&revision))
    }
}

/// How a rule looks at what happened.
pub enum Judge {
    /// Each conversation by itself.
    Each(fn(&ConversationView<'_>) -> Judgment),
    /// All conversations of the revisions and transports of the rule together; violations say which of them.
    Together(fn(&[&ConversationView<'_>]) -> Judgment),
}

/// What a judge says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgment {
    Pass,
    Broken(Vec<Violation>),
    /// The law does not concern this server.
    NotApplicable(String),
    /// It does, or may; but nothing that happened tells. Says what is missing.
    Untestable(String),
    /// It was not looked for in this conversation. Says so where no other conversation says more.
    NotTried(String),
}

impl Judgment {
    /// Broken if there is any violation.
    pub fn from_violations(violations: Vec<Violation>) -> Self {
        if violations.is_empty() { Self::Pass } else { Self::Broken(violations) }
    }

    /// Broken if there is any violation, else a pass if anything was looked at.
    pub fn of(violations: Vec<Violation>, seen: usize, missing: &str) -> Self {
        match (violations.is_empty(), seen) {
            (false, _) => Self::Broken(violations),
            (true, 0) => Self::Untestable(missing.to_owned()),
            (true, _) => Self::Pass,
        }
    }
}

/// One spot where a law is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A lowercase fragment without a final dot.
    pub message: String,
    /// The evidence, in order.
    pub frames: Vec<FrameId>,
    /// Position among the conversations that were given, where there were several.
    pub conversation: usize,
    /// What to do in this very case, where the rule's own advice would mislead.
    pub remedy: Option<String>,
    /// Why it counts one step less in this very case, although the rule does not say so in general.
    pub tolerance: Option<&'static str>,
}

impl Violation {
    pub fn new(message: impl Into<String>, frames: impl IntoIterator<Item = FrameId>) -> Self {
        Self { message: message.into(), frames: frames.into_iter().collect(), conversation: 0, remedy: None, tolerance: None }
    }
}

/// Not applicable, if the server is known not to have declared this.
pub(crate) fn unless_declared(conversation: &ConversationView<'_>, path: &str) -> Option<Judgment> {
    conversation.lacks(path).then(|| Judgment::NotApplicable(format!("the server does not declare `{path}`")))
}
