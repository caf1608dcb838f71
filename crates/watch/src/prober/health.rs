//! What another monitor says of itself with status 200. Its words are those of many programs: what nobody would write who is well counts, and
//! a page for people is no answer at all.

use mcproof_analysis::wording::shortened;
use serde_json::Value;

/// Why a monitor is not well, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HealthProblem {
    pub(super) message: String,
    pub(super) hint: &'static str,
}

/// What programs call themselves that are well.
const WELL: [&str; 26] = [
    "ok",
    "okay",
    "healthy",
    "health_ok",
    "green",
    "up",
    "pass",
    "passed",
    "passing",
    "success",
    "successful",
    "ready",
    "alive",
    "live",
    "running",
    "operational",
    "available",
    "active",
    "normal",
    "good",
    "online",
    "serving",
    "started",
    "true",
    "yes",
    "warn",
];
/// What a text begins with that is no word of somebody who is well.
const UNWELL: [&str; 15] = [
    "down",
    "unhealthy",
    "fail",
    "failed",
    "failing",
    "failure",
    "error",
    "critical",
    "unavailable",
    "degraded",
    "outage",
    "red",
    "not ok",
    "not ready",
    "not healthy",
];
/// Members of a JSON object that say how it is.
const STATES: [&str; 4] = ["status", "state", "health", "result"];
/// Members that are `true` if all is well.
const FLAGS: [&str; 6] = ["ok", "healthy", "up", "alive", "ready", "success"];

const ADDRESS: &str = "check the URL: it is that of the health endpoint, such as `https://HOST/healthz`";
const THERE: &str = "look at that monitor: it responds, and says that it is not well";

/// Why the body of a response says that its sender is not well, if it does. `/healthz` of a monitor of ours says `ok`; others say nothing, or
/// that in JSON.
pub(super) fn problem(body: &[u8]) -> Option<HealthProblem> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    if is_page(text) {
        return Some(HealthProblem { message: "the response is an HTML page, not the state of a monitor".to_owned(), hint: ADDRESS });
    }
    let told = |what: String| Some(HealthProblem { message: shortened(&what, 200), hint: THERE });
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(members)) => {
            for key in STATES {
                match members.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value) {
                    Some(Value::String(word)) if !is_well(word) => return told(format!("the response says `{key}`: {word}")),
                    Some(Value::Bool(false)) => return told(format!("the response says `{key}`: false")),
                    _ => {}
                }
            }
            let denied = FLAGS.into_iter().find(|flag| members.get(*flag) == Some(&Value::Bool(false)));
            denied.and_then(|flag| told(format!("the response says `{flag}`: false")))
        }
        Ok(Value::String(word)) if !is_well(&word) => told(format!("the response says {word}")),
        Ok(Value::Bool(false)) => told("the response says false".to_owned()),
        Ok(_) => None,
        Err(_) => {
            let line = text.lines().next().unwrap_or_default();
            is_unwell(line).then(|| told(format!("the response says {line}"))).flatten()
        }
    }
}

fn is_page(text: &str) -> bool {
    let begin: String = text.chars().take(200).collect::<String>().to_ascii_lowercase();
    // Comments and the declaration of XML may stand before it.
    ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| begin.starts_with(tag) || begin.starts_with('<') && begin.contains(tag))
}

fn is_well(word: &str) -> bool {
    let word = word.trim().to_ascii_lowercase();
    word.is_empty() || WELL.contains(&word.as_str()) || word == "warning" || word == "200"
}

/// Whether a line begins with such a word.
fn is_unwell(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    UNWELL
        .iter()
        .any(|word| line.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '-')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_monitor_is_well_if_it_says_so_or_nothing() {
        for (body, expected) in [
            ("ok\n", None),
            ("", None),
            ("OK", None),
            ("Prometheus Server is Healthy.\n", None),
            ("errors: 0", None),
            (r#"{"status":"UP"}"#, None),
            (r#"{"status":"ok","version":"1.2"}"#, None),
            (r#"{"Status":"Healthy"}"#, None),
            (r#"{"database":"ok","version":"11.0"}"#, None),
            (r#"{"status":200}"#, None),
            (r#"{"status":"warn"}"#, None),
            (r#"{"ok":true}"#, None),
            (r#"{"health":"true","reason":""}"#, None),
            (r#"{"status":"SERVING"}"#, None),
            ("[]", None),
            (r#"{"status":"down"}"#, Some("the response says `status`: down")),
            (r#"{"status":"DEGRADED"}"#, Some("the response says `status`: DEGRADED")),
            (r#"{"state":"fail"}"#, Some("the response says `state`: fail")),
            (r#"{"healthy":false}"#, Some("the response says `healthy`: false")),
            (r#"{"status":false}"#, Some("the response says `status`: false")),
            (r#""unhealthy""#, Some("the response says unhealthy")),
            ("DOWN: the database does not respond\n", Some("the response says DOWN: the database does not respond")),
            ("<html><body>This domain is for sale</body></html>", Some("the response is an HTML page, not the state of a monitor")),
            ("\u{feff} <!DOCTYPE html>\n<title>Sign in</title>", Some("the response is an HTML page, not the state of a monitor")),
            ("<!-- a page --><html lang=en>", Some("the response is an HTML page, not the state of a monitor")),
        ] {
            assert_eq!(problem(body.as_bytes()).map(|problem| problem.message).as_deref(), expected, "{body}");
        }
    }
}
