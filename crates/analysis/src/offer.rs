//! Whether a protocol revision can be requested in an era. Knows names, not the wire.

use crate::diagnosis::Audience;
use crate::did_you_mean;
use mcproof_protocol::{Era, EraChoice, Revision};
use mcproof_record::Diagnostic;

/// The diagnostic of a revision that cannot be requested in an era. With the legacy era chosen explicitly, any text can be sent in
/// the handshake, to test how a server responds to it: an unknown revision alone belongs to no era.
pub fn check_revision(version: &str, era: EraChoice, audience: Audience) -> Option<Diagnostic> {
    match (Era::of(version), era) {
        (Some(of @ Era::Modern), EraChoice::Legacy) | (Some(of @ Era::Legacy), EraChoice::Modern) => {
            let message = format!("`{version}` is a revision of the {of} era, not the {era} one");
            let both = |era: &str, version: &str| format!("remove {era}, or choose another {version}");
            let (keys, flags) = (both("`era`", "`protocol_version`"), both("--era", "--protocol-version"));
            Some(Diagnostic { hint: audience.hint(&keys, &keys, &flags), ..Diagnostic::error("era-mismatch", message) })
        }
        (Some(_), _) | (None, EraChoice::Legacy) => None,
        (None, EraChoice::Auto | EraChoice::Modern) => {
            let known = || Revision::NEWEST_FIRST.iter().map(|revision| revision.as_str());
            let near = match did_you_mean(version, known()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known revisions: {}", known().collect::<Vec<_>>().join(", ")),
            };
            let any = |era: &str| format!("{near} (with {era}, any text is accepted)");
            let hint = audience.hint(&any("`era: legacy`"), &any("`\"era\": \"legacy\"`"), &any("--era legacy"));
            let message = format!("`{version}` is not a known protocol revision");
            Some(Diagnostic { hint, ..Diagnostic::error("unknown-revision", message) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_revision_is_accepted_only_with_the_legacy_era() {
        let check = |version: &str, era: EraChoice, expected: Option<(&str, &str)>| {
            let found = check_revision(version, era, Audience::CommandLine).map(|found| (found.message, found.hint.unwrap_or_default()));
            assert_eq!(found, expected.map(|(message, hint)| (message.to_owned(), hint.to_owned())), "{version} {era}");
        };
        let any = "(with --era legacy, any text is accepted)";
        check("2025-06-18", EraChoice::Auto, None);
        check("2026-07-28", EraChoice::Modern, None);
        check("1900-01-01", EraChoice::Legacy, None);
        check(
            "2025-6-18",
            EraChoice::Auto,
            Some(("`2025-6-18` is not a known protocol revision", &format!("did you mean `2025-06-18`? {any}"))),
        );
        let known = "known revisions: 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05";
        check("latest", EraChoice::Modern, Some(("`latest` is not a known protocol revision", &format!("{known} {any}"))));
        let hint = "remove --era, or choose another --protocol-version";
        check("2026-07-28", EraChoice::Legacy, Some(("`2026-07-28` is a revision of the modern era, not the legacy one", hint)));
        check("2024-11-05", EraChoice::Modern, Some(("`2024-11-05` is a revision of the legacy era, not the modern one", hint)));
    }
}
