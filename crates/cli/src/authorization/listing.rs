//! `--list-stored-auth`: the stored authorizations and their expiry, without tokens.

use super::stored::StoredTokens;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printing::Form;
use crate::{output, settings};
use mcproof_client::auth::Kept;
use mcproof_report::escape;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) fn list(form: Form) -> Result<Exit, Failure> {
    let stored = StoredTokens::of_user()?;
    let (tokens, path) = (stored.all()?, stored.path().display().to_string());
    let now = settings::now();
    match form {
        Form::Readable => output::show(&readable(&tokens, &path, now))?,
        Form::Json => output::data(format!("{:#}\n", document(&tokens, &path, now)).as_bytes())?,
        Form::Envelope => output::data(format!("{}\n", json!({ "result": document(&tokens, &path, now) })).as_bytes())?,
    }
    Ok(Exit::Passed)
}

/// The first two members are those of MCP Inspector.
fn document(tokens: &[Kept], path: &str, now: SystemTime) -> Value {
    let servers: BTreeSet<&str> = tokens.iter().map(|kept| kept.server.as_str()).collect();
    let token = |kept: &Kept| {
        json!({
            "server": kept.server.as_str(),
            "issuer": kept.issuer,
            "clientId": kept.client,
            "scopes": kept.scopes,
            "expiresAt": kept.expires.map(|expires| expires.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()),
            "expired": kept.expires.is_some_and(|expires| expires <= now),
            "renewable": kept.refresh.is_some(),
        })
    };
    json!({ "oauthStatePath": path, "storedServerUrls": servers, "tokens": tokens.iter().map(token).collect::<Vec<_>>() })
}

fn readable(tokens: &[Kept], path: &str, now: SystemTime) -> String {
    if tokens.is_empty() {
        return format!("no stored tokens in {}\n", escape(path));
    }
    let mut text = format!("{}\n", escape(path));
    for kept in tokens {
        let scopes =
            if kept.scopes.is_empty() { "no scopes".to_owned() } else { kept.scopes.iter().cloned().collect::<Vec<_>>().join(" ") };
        let lines = [escape(kept.server.as_str()), escape(&kept.issuer), escape(&kept.client), escape(&scopes)];
        let [server, issuer, client, scopes] = lines;
        write!(text, "\n{server}\n  {}\n  client {client} at {issuer}\n  {scopes}\n", validity(kept, now))
            .expect("a String takes all text");
    }
    text
}

fn validity(kept: &Kept, now: SystemTime) -> String {
    let renewable = if kept.refresh.is_some() { "can be renewed" } else { "cannot be renewed" };
    match kept.expires.map(|expires| expires.duration_since(now)) {
        None => format!("no known expiry, {renewable}"),
        Some(Ok(left)) if !left.is_zero() => format!("valid for {}, {renewable}", roughly(left)),
        Some(_) => format!("expired, {renewable}"),
    }
}

fn roughly(left: Duration) -> String {
    let seconds = left.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_client::auth::{ClientMethod, Secret};
    use url::Url;

    fn kept(expires: Option<u64>, refresh: Option<&str>) -> Kept {
        Kept {
            server: Url::parse("https://s.example/mcp").unwrap(),
            resource: "r".into(),
            issuer: "https://as.example".into(),
            token_endpoint: None,
            client: "me\u{1b}[31m".into(),
            method: ClientMethod::None,
            client_secret: Some(Secret::new("s3cret")),
            access: Secret::new("s3cret"),
            refresh: refresh.map(Secret::new),
            expires: expires.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds)),
            scopes: BTreeSet::new(),
        }
    }

    #[test]
    fn a_listing_says_how_long_and_never_what() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let check = |expires, refresh, expected: &str| {
            let tokens = [kept(expires, refresh)];
            let (text, json) = (readable(&tokens, "/p", now), document(&tokens, "/p", now).to_string());
            assert!(text.contains(expected), "{text}");
            assert!(!text.contains("s3cret") && !json.contains("s3cret") && !text.contains('\u{1b}'), "{text}{json}");
        };
        check(None, None, "no known expiry, cannot be renewed");
        check(Some(1_000_090), Some("s3cret"), "valid for 90 s, can be renewed");
        check(Some(1_003_600), None, "valid for 60 min, cannot be renewed");
        check(Some(1_000_000), None, "expired, cannot be renewed");
        check(Some(1_400_000), None, "valid for 4 days");
    }
}
