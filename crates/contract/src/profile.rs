//! The client profiles for which a server may have different contracts. Knows capabilities, no server.

use mcproof_client::{Answers, ConnectOptions, Elicitation, HostedTasks, Sampling};
use mcproof_protocol::{Era, EraChoice};
use serde_json::json;
use std::fmt;
use std::str::FromStr;

/// The extension by which a modern client declares tasks.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// What a client can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// Everything: roots, sampling, elicitation by form and by URL, tasks.
    Full,
    /// Nothing.
    Minimal,
    Roots,
    Sampling,
    Elicitation,
    /// What the user declared.
    Own,
}

/// A kind of client: an era, and what it can do in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Visitor {
    pub era: Era,
    pub profile: Profile,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown client kind `{found}`; use legacy, modern, full, minimal, roots, sampling or elicitation, or two of them such as modern/minimal"
)]
pub struct ParseProfileError {
    found: String,
}

const PROFILES: [(Profile, &str); 6] = [
    (Profile::Full, "full"),
    (Profile::Minimal, "minimal"),
    (Profile::Roots, "roots"),
    (Profile::Sampling, "sampling"),
    (Profile::Elicitation, "elicitation"),
    (Profile::Own, "own"),
];

impl Profile {
    /// The fullest client of each era.
    pub fn default_visitors() -> Vec<Visitor> {
        [Era::Modern, Era::Legacy].map(|era| Visitor { era, profile: Self::Full }).to_vec()
    }

    /// The kinds of clients that a word names: an era (its fullest client), a profile (in each era), or both with a slash.
    ///
    /// # Errors
    /// The word names none.
    pub fn visitors(word: &str) -> Result<Vec<Visitor>, ParseProfileError> {
        let wrong = || ParseProfileError { found: word.to_owned() };
        if let Ok(era) = word.parse::<Era>() {
            return Ok(vec![Visitor { era, profile: Self::Full }]);
        }
        if let Ok(visitor) = word.parse::<Visitor>() {
            return Ok(vec![visitor]);
        }
        let profile = Self::named(word).ok_or_else(wrong)?;
        Ok([Era::Modern, Era::Legacy].map(|era| Visitor { era, profile }).to_vec())
    }

    fn named(name: &str) -> Option<Self> {
        PROFILES.iter().find(|(_, known)| *known == name).map(|(profile, _)| *profile)
    }
}

impl Visitor {
    /// The key of the contract with such a client.
    pub fn key(&self, identity: Option<&str>) -> String {
        match identity {
            Some(identity) => format!("{self}/{identity}"),
            None => self.to_string(),
        }
    }

    /// Reads a key, with the identity in it.
    ///
    /// # Errors
    /// It is the key of no kind of client that is known.
    pub fn of_key(key: &str) -> Result<(Self, Option<&str>), ParseProfileError> {
        let end = key.match_indices('/').nth(1).map(|(end, _)| end);
        let (visitor, identity) = end.map_or((key, None), |end| (&key[..end], Some(&key[end + 1..])));
        visitor.parse().map(|visitor| (visitor, identity)).map_err(|_| ParseProfileError { found: key.to_owned() })
    }

    /// How such a client connects. It refuses whatever a server may ask: a list does not depend on answers.
    pub fn options(&self, options: &ConnectOptions) -> ConnectOptions {
        let mut options = options.clone();
        options.era = match self.era {
            Era::Legacy => EraChoice::Legacy,
            Era::Modern => EraChoice::Modern,
        };
        if self.profile == Profile::Own {
            return options;
        }
        let has = |profile| self.profile == Profile::Full || self.profile == profile;
        let roots = options.answers.roots.take().unwrap_or_default();
        options.client.capabilities.clear();
        options.answers = Answers {
            roots: has(Profile::Roots).then_some(roots),
            elicitation: has(Profile::Elicitation).then_some(Elicitation::Decline),
            sampling: has(Profile::Sampling).then_some(Sampling::Reject),
            tasks: has(Profile::Full).then(HostedTasks::default),
            ..Answers::default()
        };
        if self.profile == Profile::Full && self.era == Era::Modern {
            options.client.capabilities.insert("extensions".into(), json!({ TASKS: {} }));
        }
        options
    }
}

impl fmt::Display for Visitor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = PROFILES.iter().find(|(profile, _)| *profile == self.profile).map_or("own", |(_, name)| name);
        write!(formatter, "{}/{name}", self.era)
    }
}

impl FromStr for Visitor {
    type Err = ParseProfileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseProfileError { found: text.to_owned() };
        let (era, profile) = text.split_once('/').ok_or_else(wrong)?;
        Ok(Self { era: era.parse().map_err(|_| wrong())?, profile: Profile::named(profile).ok_or_else(wrong)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_kinds_of_clients() {
        let check = |word: &str, expected: &[&str]| {
            let found: Vec<String> = Profile::visitors(word).unwrap_or_default().iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{word}");
        };
        check("legacy", &["legacy/full"]);
        check("minimal", &["modern/minimal", "legacy/minimal"]);
        check("modern/roots", &["modern/roots"]);
        check("fullest", &[]);
        check("legacy/", &[]);
    }

    #[test]
    fn keys_read_back_with_their_identity() {
        let visitor = Visitor { era: Era::Legacy, profile: Profile::Minimal };
        assert_eq!(Visitor::of_key(&visitor.key(None)), Ok((visitor, None)));
        assert_eq!(Visitor::of_key(&visitor.key(Some("alice/admin"))), Ok((visitor, Some("alice/admin"))));
        assert!(Visitor::of_key("alice").is_err());
    }

    #[test]
    fn the_fullest_client_declares_everything_that_it_is_asked_about() {
        let of = |profile, era| Visitor { era, profile }.options(&ConnectOptions::default());
        let full = of(Profile::Full, Era::Modern);
        assert!(full.answers.roots.is_some() && full.answers.sampling.is_some() && full.answers.elicitation.is_some());
        assert_eq!(full.client.capabilities["extensions"], json!({ TASKS: {} }));
        assert_eq!(of(Profile::Minimal, Era::Legacy).answers, Answers::default());
        assert!(of(Profile::Sampling, Era::Legacy).answers.roots.is_none());
    }
}
