//! The normative sentences of the specification, and the rules that judge each of them. Plain data; the table itself is in `rules`.

/// A sentence with a level of RFC 2119. Not its text: page, anchor and first words locate it in the specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The revision or the extension that has it.
    pub table: &'static str,
    /// Page and anchor below the revision.
    pub place: &'static str,
    pub level: &'static str,
    pub words: &'static str,
    pub owner: RequirementOwner,
    /// An addition to the reason.
    pub note: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequirementOwner {
    /// It binds a server, and these rules judge it.
    Rules(Vec<&'static str>),
    /// As `Rules`, but only on servers that have the tools of the official conformance suite.
    Fixtures(Vec<&'static str>),
    /// It binds a server, but cannot be observed from outside.
    Unseen(Unseen),
    /// It does not bind servers: it binds the client, the authorization server or an intermediary, or only refers to other sentences.
    Other(&'static str),
}

/// Why compliance with a sentence cannot be observed from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unseen {
    Inside,
    Meaning,
    Situation,
    Identity,
    Time,
    Latitude,
    OtherTransport,
}

impl Unseen {
    pub const EVERY: [Self; 7] =
        [Self::Inside, Self::Meaning, Self::Situation, Self::Identity, Self::Time, Self::Latitude, Self::OtherTransport];

    /// As the table writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Meaning => "meaning",
            Self::Situation => "situation",
            Self::Identity => "identity",
            Self::Time => "time",
            Self::Latitude => "latitude",
            Self::OtherTransport => "other-transport",
        }
    }

    pub fn explanation(self) -> &'static str {
        match self {
            Self::Inside => "it is about code, storage, logs or documentation of the server, and nothing of that reaches the wire",
            Self::Meaning => "it depends on what a text means, or on a measure that is not given, so that only a person can tell",
            Self::Situation => {
                "it is about a situation that a client cannot bring about, such as a server that fails or shuts down by itself"
            }
            Self::Identity => "it needs credentials or a second identity, which only the user has",
            Self::Time => "it needs more waiting than a check may take",
            Self::Latitude => "whoever keeps it and whoever does not may look the same",
            Self::OtherTransport => "it is about transports that are not in the specification",
        }
    }
}
