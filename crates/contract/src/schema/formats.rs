//! Which formats of strings there are, and which of them say more than others.

/// Each with the formats that accept all that it accepts.
const FORMATS: [(&str, &[&str]); 19] = [
    ("date-time", &[]),
    ("date", &[]),
    ("time", &[]),
    ("duration", &[]),
    ("email", &["idn-email"]),
    ("idn-email", &[]),
    ("hostname", &["idn-hostname"]),
    ("idn-hostname", &[]),
    ("ipv4", &[]),
    ("ipv6", &[]),
    ("uri", &["iri", "uri-reference", "iri-reference"]),
    ("uri-reference", &["iri-reference"]),
    ("iri", &["iri-reference"]),
    ("iri-reference", &[]),
    ("uri-template", &[]),
    ("uuid", &[]),
    ("json-pointer", &[]),
    ("relative-json-pointer", &[]),
    ("regex", &[]),
];

/// Whether JSON Schema defines it. All others say nothing that a validator holds anybody to.
pub(super) fn is_known(format: &str) -> bool {
    FORMATS.iter().any(|(name, _)| *name == format)
}

/// Whether a text of one format is of the other as well.
pub(super) fn implies(one: &str, other: &str) -> bool {
    one == other || FORMATS.iter().any(|(name, wider)| *name == one && wider.contains(&other))
}
