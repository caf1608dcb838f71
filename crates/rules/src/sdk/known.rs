//! KnownDefect defects of SDKs: what a check finds on the smallest correct server that is made with a version. The table is data, verified by
//! `cargo xtask sdks`; the findings that it explains are marked in the results. Pure.

use super::version::Version;
use crate::Strictness;
use mcproof_record::{Conversation, Defect, Judged, RuleResult, Sdk, Severity};
use std::sync::LazyLock;

/// One defect in all versions since `first`.
struct KnownDefect {
    package: &'static str,
    /// The first version that has it.
    first: Version,
    /// The newest tested version that has it.
    last: &'static str,
    fixed: Option<(&'static str, Version)>,
    rule: &'static str,
    /// Part of the finding's message.
    message_part: &'static str,
    /// A workaround besides an update.
    advice: Option<&'static str>,
}

static TABLE: LazyLock<Vec<KnownDefect>> = LazyLock::new(|| {
    let lines = include_str!("known.tsv").lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| row(line).unwrap_or_else(|| unreachable!("a test reads every row: {line}"))).collect()
});

fn row(line: &'static str) -> Option<KnownDefect> {
    let optional = |word: &'static str| (word != "-").then_some(word);
    let [package, first, last, fixed, rule, message_part, advice] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let fixed = match optional(fixed) {
        Some(fixed) => Some((fixed, Version::parse(fixed)?)),
        None => None,
    };
    Some(KnownDefect { package, first: Version::parse(first)?, last, fixed, rule, message_part, advice: optional(advice) })
}

/// Marks the findings that an SDK causes. A finding that the server's author cannot fix is one severity lower, unless `strictness` is strict.
pub(crate) fn explain(results: &mut [RuleResult], recorded: &[Conversation], strictness: Strictness) {
    for result in results {
        let Judged::Broken { findings } = &mut result.judged else { continue };
        for finding in findings.iter_mut().filter(|finding| finding.cause.is_none()) {
            let found = recorded[finding.conversation].sdks.iter().find_map(|sdk| {
                let version = Version::parse(&sdk.version)?;
                Some((sdk, known(sdk, &version, &result.rule, &finding.message)?, version))
            });
            let Some((sdk, known, version)) = found else { continue };
            if known.is_unfixable(&version)
                && strictness == Strictness::Tolerant
                && finding.tolerance.is_none()
                && finding.severity > Severity::Note
            {
                finding.severity = if finding.severity == Severity::Error { Severity::Warning } else { Severity::Note };
                let why = if known.fixed.is_none() {
                    "every version of the SDK has it"
                } else {
                    "only a new major version of the SDK is without it"
                };
                finding.tolerance = Some(why.into());
            }
            let fixed = known.fixed.as_ref().map(|(fixed, _)| (*fixed).to_owned());
            finding.defect = Some(Defect { sdk: sdk.clone(), fixed, advice: known.advice(&version) });
        }
    }
}

/// Whether some version of some SDK causes such a finding, and a server that stays with it can do nothing about it.
pub fn may_be_of_an_sdk(rule: &str, message: &str) -> bool {
    TABLE.iter().any(|known| known.rule == rule && known.advice.is_none() && message.contains(known.message_part))
}

fn known(sdk: &Sdk, version: &Version, rule: &str, message: &str) -> Option<&'static KnownDefect> {
    let is_it = |known: &&KnownDefect| {
        let has_it = known.first <= *version && known.fixed.as_ref().is_none_or(|(_, fixed)| version < fixed);
        known.package == sdk.package && known.rule == rule && has_it && message.contains(known.message_part)
    };
    TABLE.iter().find(is_it)
}

impl KnownDefect {
    /// Whether there is neither a workaround nor a fix in a version that takes the place of this one.
    fn is_unfixable(&self, version: &Version) -> bool {
        self.fixed.as_ref().is_none_or(|(_, fixed)| !fixed.is_compatible_with(version)) && self.advice.is_none()
    }

    fn advice(&self, version: &Version) -> String {
        let (_, package) = self.package.split_once(':').unwrap_or_default();
        match (&self.fixed, self.advice) {
            (Some((fixed, new)), None) if !new.is_compatible_with(version) => {
                format!("fixed in {fixed}, a new major version of `{package}`, which may need changes to the server")
            }
            (Some((fixed, _)), Some(advice)) => format!("fixed in {fixed}: update `{package}`, or {advice}"),
            (Some((fixed, _)), None) => format!("fixed in {fixed}: update `{package}`"),
            (None, Some(advice)) => format!("not fixed in {}: {advice}", self.last),
            (None, None) => format!("not fixed in {}, the newest tested version", self.last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;
    use mcproof_analysis::example;
    use mcproof_record::Finding;

    #[test]
    fn every_row_is_one_that_can_match() {
        let text = include_str!("known.tsv");
        let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        let order = |line: &str| {
            line.split('\t').enumerate().filter(|(index, _)| [0, 4].contains(index)).map(|(_, word)| word.to_owned()).collect()
        };
        assert!(rows.is_sorted_by_key(|line| -> Vec<String> { order(line) }), "the rows are ordered by package and rule");
        for line in rows {
            let known = row(line).unwrap_or_else(|| panic!("{line}"));
            assert!(find(known.rule).is_some(), "there is no rule {}", known.rule);
            assert!(["npm", "PyPI", "Go", "crates.io"].contains(&known.package.split_once(':').unwrap().0), "{line}");
            let last = Version::parse(known.last).unwrap();
            assert!(known.first <= last && known.fixed.is_none_or(|(_, fixed)| last < fixed), "{line}");
            assert!(!known.message_part.is_empty(), "{line}");
        }
    }

    /// What becomes of a finding of a server that is made with an SDK: its severity, and what is advised if the SDK explains it.
    fn check((package, version): (&str, &str), (rule, message): (&str, &str), strictness: Strictness, expected: (Severity, Option<&str>)) {
        let sdk = Sdk { name: "SDK".into(), package: package.into(), version: version.into() };
        let take = Conversation { sdks: vec![sdk.clone()], ..example::read("", "http", "2025-11-25") };
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
        let judged = Judged::Broken { findings: vec![finding] };
        let mut results = [RuleResult { rule: rule.into(), area: "a".into(), requirement: "l".into(), judged }];
        explain(&mut results, &[take], strictness);
        let Judged::Broken { findings } = &results[0].judged else { unreachable!() };
        let advice = findings[0].defect.as_ref().map(|defect| defect.advice.as_str());
        assert_eq!((findings[0].severity, advice), expected, "{package} {version} {rule}");
        assert!(findings[0].defect.as_ref().is_none_or(|defect| defect.sdk == sdk));
    }

    #[test]
    fn a_version_before_the_fix_explains_its_own_message_and_no_other() {
        const SERVER: &str = "npm:@modelcontextprotocol/server";
        let told =
            ("header-version-is-checked", "`tools/list` without `MCP-Protocol-Version` got a result with status 200, not error -32020");
        let advice = Some("fixed in 2.1.0: update `@modelcontextprotocol/server`");
        check((SERVER, "2.0.0"), told, Strictness::Tolerant, (Severity::Error, advice));
        check((SERVER, "2.1.0"), told, Strictness::Tolerant, (Severity::Error, None));
        check((SERVER, "2.0.0-beta.5"), told, Strictness::Tolerant, (Severity::Error, None));
        check((SERVER, "x"), told, Strictness::Tolerant, (Severity::Error, None));
        check(("PyPI:mcp", "2.0.0"), told, Strictness::Tolerant, (Severity::Error, None));
        check((SERVER, "2.0.0"), (told.0, "`tools/list` got status 500"), Strictness::Tolerant, (Severity::Error, None));
        check((SERVER, "2.0.0"), ("header-name-is-checked", told.1), Strictness::Tolerant, (Severity::Error, None));
    }

    #[test]
    fn a_defect_without_fix_or_workaround_is_one_severity_lower_unless_strict() {
        const SERVER: (&str, &str) = ("npm:@modelcontextprotocol/server", "2.0.0");
        let told = ("unsupported-version-error-names-versions", "a request in an unknown version got a result, not error -32022");
        let advice = Some("not fixed in 2.4.0, the newest tested version");
        check(SERVER, told, Strictness::Tolerant, (Severity::Warning, advice));
        check(SERVER, told, Strictness::Strict, (Severity::Error, advice));
        // A new major version is no update.
        let (migration, told_earlier) = (("PyPI:mcp", "1.30.0"), ("notifications-are-declared", "`notifications/message` was sent"));
        let advice_of_major = Some("fixed in 2.0.0, a new major version of `mcp`, which may need changes to the server");
        check(migration, told_earlier, Strictness::Tolerant, (Severity::Warning, advice_of_major));
        check(migration, told_earlier, Strictness::Strict, (Severity::Error, advice_of_major));
        let (told_by_rust, ended) = ("malformed-json-is-survived", "after a message that is not valid JSON the process ended with code 0");
        let advice_of_rust = Some("fixed in 1.7.0, a new major version of `rmcp`, which may need changes to the server");
        check(("crates.io:rmcp", "0.17.0"), (told_by_rust, ended), Strictness::Tolerant, (Severity::Warning, advice_of_rust));
        let update = Some("fixed in 1.7.0: update `rmcp`");
        check(("crates.io:rmcp", "1.6.0"), (told_by_rust, ended), Strictness::Tolerant, (Severity::Error, update));
        check(("crates.io:rmcp", "1.7.0"), (told_by_rust, ended), Strictness::Tolerant, (Severity::Error, None));
        // Behind a zero, a new minor version is one of them.
        let (of_sessions, status) = ("session-unknown-gets-404", "a request with a session that does not exist got status 401");
        let advice_of_zero = Some("fixed in 0.17.0, a new major version of `rmcp`, which may need changes to the server");
        check(("crates.io:rmcp", "0.16.0"), (of_sessions, status), Strictness::Tolerant, (Severity::Warning, advice_of_zero));
        // No newer version was tested, but the message is the same.
        check((SERVER.0, "2.99.0"), told, Strictness::Tolerant, (Severity::Warning, advice));
    }

    #[test]
    fn a_defect_with_a_workaround_keeps_its_severity_and_fails_tests() {
        let told = ("sse-event-ids-are-unique", "two events of a session have the id `0` (and 36 more)");
        let advice = Some("not fixed in 3.11.0: set `sse_retry` of `StreamableHttpServerConfig` to `None`");
        check(("crates.io:rmcp", "3.11.0"), told, Strictness::Tolerant, (Severity::Error, advice));
        let told = ("mime-type-is-valid", "`mimeType` is `text`");
        let advice = Some("fixed in 2.2.0: update `rmcp`, or set the `mime_type` of what `ResourceContents::text` makes");
        check(("crates.io:rmcp", "2.1.0"), told, Strictness::Tolerant, (Severity::Error, advice));
        assert!(!may_be_of_an_sdk(told.0, told.1));
        assert!(may_be_of_an_sdk("list-unknown-cursor-is-refused", "an unknown cursor got a page of `tools/list`"));
    }
}
