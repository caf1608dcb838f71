//! Forms that a client may give to an ordinary request, of which most clients use one only.
//! Source: RFC 9110.

use super::http::{evidence, is_served, is_success, told};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, ConversationView};
use mcproof_analysis::probes::ACCEPT_FORM;
use mcproof_analysis::wording::excerpt;
use mcproof_client::is_gateway;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "http-accept-is-a-list",
    area: Area::Http,
    requirement: "an `Accept` that lists both media types is accepted in any order, with weights, and without blanks",
    sources: &[RequirementSource {
        revisions: revisions::ALL,
        level: RequirementLevel::Should,
        source: "https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1",
    }],
    on: AppliesTo::Http,
    judge: Judge::Each(accept_is_a_list),
    why: "HTTP libraries and proxies join and order the values in their own way, so such a client can send nothing",
    remedy: "split `Accept` at its commas, cut each range at its first semicolon, and look for both media types",
    ..Rule::DEFAULT
}];

/// Why a refused weight counts one step less.
const WEIGHTS: &str = "few clients send weights, and some SDKs compare media types together with them";

/// Whether a status refuses the request itself, for a reason that another form of it would not have.
fn is_refusal(status: u16) -> bool {
    status >= 400 && !is_gateway(status) && ![401, 403, 404, 408, 429].contains(&status)
}

/// The first form has all at once; the others are tried where that is refused.
fn accept_is_a_list(conversation: &ConversationView<'_>) -> Judgment {
    let tried: Vec<Attempt<'_, '_>> = conversation.probes(ACCEPT_FORM).collect();
    let Some(all) = tried.first() else { return Judgment::NotTried("it was not tried".into()) };
    if !is_served(conversation) {
        return Judgment::Untestable("even a plain request was refused, so refusals are not conclusive".into());
    }
    match all.status() {
        Some(status) if is_success(status) => return Judgment::Pass,
        Some(status) if is_refusal(status) => {}
        _ => return Judgment::Untestable(format!("a request with another `Accept` got {}", told(all))),
    }
    let is_refused = |attempt: &&Attempt<'_, '_>| attempt.status().is_some_and(is_refusal);
    let mut refused: Vec<&Attempt<'_, '_>> = tried.iter().skip(1).filter(is_refused).collect();
    if refused.is_empty() {
        refused.push(all);
    }
    let accept = |attempt: &Attempt<'_, '_>| attempt.http.and_then(|http| http.request_header("accept")).unwrap_or_default().to_owned();
    let sentences = refused.iter().map(|attempt| format!("`Accept: {}` got {}", excerpt(&accept(attempt)), told(attempt)));
    let message = sentences.collect::<Vec<_>>().join(", and ");
    let has_weights = refused.iter().all(|attempt| accept(attempt).contains(";q="));
    let violation = Violation::new(message, refused.iter().flat_map(|attempt| evidence(attempt)));
    Judgment::Broken(vec![Violation { tolerance: has_weights.then_some(WEIGHTS), ..violation }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    #[test]
    fn only_the_refused_forms_of_accept_are_told() {
        let check = |statuses: &[(&str, u16)], expected: &[&str], is_tolerated: bool| {
            let forms = statuses.iter().map(|(accept, status)| format!("@ accept-form\n> POST /mcp accept: {accept}\n< {status}\n"));
            let text = format!("@ plain\n> POST /mcp\n< 200\n{}", forms.collect::<String>());
            match accept_is_a_list(&ConversationView::new(&example::read(&text, "http", "2025-11-25"))) {
                Judgment::Broken(violations) => {
                    let message = &violations[0].message;
                    assert_eq!(
                        (message.matches(" got status ").count(), violations[0].tolerance.is_some()),
                        (expected.len(), is_tolerated)
                    );
                    assert!(expected.iter().all(|accept| message.contains(&format!("`Accept: {accept}` got"))), "{message}");
                }
                judged => assert_eq!(matches!(judged, Judgment::Pass), statuses[0].1 < 400, "{judged:?}"),
            }
        };
        let (all, order, weight, blank) = ("b;q=0.9,a", "b, a", "a, b;q=0.9", "a,b");
        check(&[(all, 200)], &[], false);
        check(&[(all, 429)], &[], false);
        check(&[(all, 404)], &[], false);
        check(&[(all, 406), (order, 406), (weight, 200), (blank, 200)], &[order], false);
        check(&[(all, 400), (order, 200), (weight, 400), (blank, 200)], &[weight], true);
        check(&[(all, 406), (order, 406), (weight, 406), (blank, 406)], &[order, weight, blank], false);
        check(&[(all, 500), (order, 200), (weight, 200), (blank, 200)], &[all], true);
    }
}
