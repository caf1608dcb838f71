//! Whether a revision of the protocol can be asked for in an era. Knows names, not the wire.

use crate::diagnosis::Asker;
use crate::did_you_mean;
use mcproof_client::revision::{LEGACY, MODERN};
use mcproof_client::{Era, EraChoice};
use mcproof_record::Diagnostic;

/// What is wrong with asking for a revision. Any text can be offered in the handshake of the legacy era, to see what a server
/// makes of it, if that era is asked for as well: an unknown revision has none by itself.
pub fn flaw_of_offer(version: &str, era: EraChoice, asker: Asker) -> Option<Diagnostic> {
    match (Era::of(version), era) {
        (Some(Era::Modern), EraChoice::Legacy) | (Some(Era::Legacy), EraChoice::Modern) => {
            let of = if version == MODERN { Era::Modern } else { Era::Legacy };
            let message = format!("`{version}` is a revision of the {of} era, not the {era} one");
            let both = |era: &str, version: &str| format!("leave {era} out, or choose another {version}");
            let (keys, flags) = (both("`era`", "`protocol_version`"), both("--era", "--protocol-version"));
            Some(Diagnostic { hint: asker.says(&keys, &keys, &flags), ..Diagnostic::error("era-mismatch", message) })
        }
        (Some(_), _) | (None, EraChoice::Legacy) => None,
        (None, EraChoice::Auto | EraChoice::Modern) => {
            let known = || std::iter::once(MODERN).chain(LEGACY);
            let near = match did_you_mean(version, known()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are {}", known().collect::<Vec<_>>().join(", ")),
            };
            let any = |era: &str| format!("{near} ({era} offers any text)");
            let hint = asker.says(&any("`era: legacy`"), &any("`\"era\": \"legacy\"`"), &any("--era legacy"));
            let message = format!("`{version}` is no known revision of the protocol");
            Some(Diagnostic { hint, ..Diagnostic::error("unknown-revision", message) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_knows_is_offered_only_in_a_chosen_era() {
        let check = |version: &str, era: EraChoice, expected: Option<(&str, &str)>| {
            let found = flaw_of_offer(version, era, Asker::CommandLine).map(|found| (found.message, found.hint.unwrap_or_default()));
            assert_eq!(found, expected.map(|(message, hint)| (message.to_owned(), hint.to_owned())), "{version} {era}");
        };
        let any = "(--era legacy offers any text)";
        check("2025-06-18", EraChoice::Auto, None);
        check("2026-07-28", EraChoice::Modern, None);
        check("1900-01-01", EraChoice::Legacy, None);
        check(
            "2025-6-18",
            EraChoice::Auto,
            Some(("`2025-6-18` is no known revision of the protocol", &format!("did you mean `2025-06-18`? {any}"))),
        );
        let known = "known are 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05";
        check("latest", EraChoice::Modern, Some(("`latest` is no known revision of the protocol", &format!("{known} {any}"))));
        let hint = "leave --era out, or choose another --protocol-version";
        check("2026-07-28", EraChoice::Legacy, Some(("`2026-07-28` is a revision of the modern era, not the legacy one", hint)));
        check("2024-11-05", EraChoice::Modern, Some(("`2024-11-05` is a revision of the legacy era, not the modern one", hint)));
    }
}
