//! The documentation of a rule, as data. Knows nothing about how it is displayed.

use super::judging::link;
use super::{AppliesTo, Examples, Rule};
use mcproof_record::{RulePage, RuleSource};

impl Rule {
    pub fn page(&self) -> RulePage {
        let Examples { breaks, keeps } = self.examples();
        let sources = self.sources.iter().map(|law| RuleSource {
            first: law.revisions.start().as_str().into(),
            last: law.revisions.end().as_str().into(),
            level: law.level.to_string(),
            url: link(law.source, law.revisions.end().as_str()),
        });
        let transports = match self.on {
            AppliesTo::Any => "every transport",
            AppliesTo::Stdio => "stdio, and in memory",
            AppliesTo::Http => "Streamable HTTP",
            AppliesTo::Sse => "HTTP+SSE",
            AppliesTo::Web => "Streamable HTTP and HTTP+SSE",
        };
        RulePage {
            id: self.id.into(),
            area: self.area.name().into(),
            requirement: self.requirement.into(),
            sources: sources.collect(),
            transports: transports.into(),
            tolerance: self.tolerance.map(str::to_owned),
            why: self.why.into(),
            remedy: self.remedy.into(),
            sdks: self.sdks.iter().map(|(sdk, change)| ((*sdk).to_owned(), (*change).to_owned())).collect(),
            bad: breaks.into(),
            good: keeps.into(),
        }
    }
}
