//! Subscriptions to the status page, for everybody: asked for in a form, confirmed and ended by links. What is answered to a request does
//! not depend on who has subscribed. A link shows a button first, because mail programs open links by themselves.

use super::pages::{Chrome, Fault, comma_list, html};
use super::{Peer, State};
use crate::store::subscriptions::{Medium, Purpose, SubscriptionRequest};
use crate::subscribers::random_token;
use askama::Template;
use axum::Form;
use axum::extract::{Extension, Path, State as Shared};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use lettre::Address;
use mcproof_client::Destinations;
use serde::Deserialize;
use url::{Host, Url};

/// Of a form.
pub(super) const LARGEST: usize = 16 << 10;
/// Requests in a minute from one network.
const MOST: u32 = 10;
const LONGEST_ADDRESS: usize = 254;
const LONGEST_URL: usize = 1_000;
const MOST_TARGETS: usize = 100;

#[derive(Template)]
#[template(path = "subscribe.html")]
struct Page {
    chrome: Chrome,
    text: &'static str,
    /// What the button of the page does.
    button: Option<Button>,
    /// Shown this once.
    secret: Option<String>,
}

struct Button {
    action: String,
    word: &'static str,
}

#[derive(Debug, Deserialize)]
pub(super) struct Request {
    medium: String,
    address: String,
    /// Names with commas between them.
    #[serde(default)]
    targets: String,
}

pub(super) async fn request(
    Shared(state): Shared<State>,
    peer: Option<Extension<Peer>>,
    Form(form): Form<Request>,
) -> Result<Response, Fault> {
    let now = state.now();
    if state.inner.subscribing.exceeds(peer.map(|Extension(peer)| peer), now, MOST) {
        return Err(Fault::Refused(StatusCode::TOO_MANY_REQUESTS, "too many subscriptions from your network: wait a minute".into()));
    }
    let config = state.config();
    let offered = &config.status.subscriptions;
    let targets = comma_list(&form.targets);
    if targets.len() > MOST_TARGETS {
        return Err(refused("there are too many targets: name up to 100, or none for all"));
    }
    for target in &targets {
        if !state.store.target(target).await?.is_some_and(|target| target.public) {
            return Err(refused(format!("`{target}` is not a target of this page")));
        }
    }
    let (medium, address, secret, sealed) = match (form.medium.as_str(), &offered.mail, &offered.webhook, &config.seal) {
        ("mail", Some(_), _, _) => (Medium::Mail, mail_address(&form.address)?, None, Vec::new()),
        ("webhook", _, Some(destinations), Some(key)) => {
            let (url, secret) = (webhook_url(&form.address, destinations)?, random_token());
            let sealed =
                key.seal(secret.as_bytes()).map_err(|failure| Fault::Refused(StatusCode::INTERNAL_SERVER_ERROR, failure.to_string()))?;
            (Medium::Webhook, url, Some(secret), sealed)
        }
        _ => return Err(Fault::NotFound("kind of subscription")),
    };
    let wanted = SubscriptionRequest { medium, address: &address, targets: &targets, secret: &sealed };
    state.store.request_subscription(&wanted, now).await?;
    let text = match medium {
        Medium::Mail => {
            "A mail with a link is on its way to this address, unless one was sent lately. Open the link to confirm the subscription."
        }
        Medium::Webhook => {
            "A challenge is on its way to this URL, unless one was sent lately. Messages follow if the response contains the challenge. \
             Messages are signed with this secret, which is shown only now. It does not replace the secret of a URL that is subscribed already."
        }
    };
    Ok((StatusCode::ACCEPTED, page(&state, "Subscription requested", text, None, secret)).into_response())
}

pub(super) async fn confirm_page(Shared(state): Shared<State>, Path(token): Path<String>) -> Result<Response, Fault> {
    known(&state, &token, Purpose::Confirm).await?;
    let button = Button { action: format!("/subscribe/{token}"), word: "Subscribe" };
    Ok(page(&state, "Confirm the subscription", "Messages are sent once you confirm.", Some(button), None))
}

pub(super) async fn confirm(Shared(state): Shared<State>, Path(token): Path<String>) -> Result<Response, Fault> {
    if !state.store.confirm_subscription(&token, state.now()).await? {
        return Err(Fault::NotFound(LINK));
    }
    Ok(page(&state, "Subscribed", "Messages are sent from now on. Each has a link to unsubscribe.", None, None))
}

pub(super) async fn leave_page(Shared(state): Shared<State>, Path(token): Path<String>) -> Result<Response, Fault> {
    known(&state, &token, Purpose::Unsubscribe).await?;
    let button = Button { action: format!("/unsubscribe/{token}"), word: "Unsubscribe" };
    Ok(page(&state, "Unsubscribe", "No more messages are sent, and the address is deleted.", Some(button), None))
}

/// Also what a mail program sends by itself (RFC 8058).
pub(super) async fn leave(Shared(state): Shared<State>, Path(token): Path<String>) -> Result<Response, Fault> {
    if !state.store.unsubscribe(&token, state.now()).await? {
        return Err(Fault::NotFound(LINK));
    }
    Ok(page(&state, "Unsubscribed", "No more messages are sent, and the address is deleted.", None, None))
}

const LINK: &str = "link: it was used, or it is too old";

async fn known(state: &State, token: &str, purpose: Purpose) -> Result<(), Fault> {
    if state.store.is_allowed(token, purpose, state.now()).await? { Ok(()) } else { Err(Fault::NotFound(LINK)) }
}

fn page(state: &State, title: &'static str, text: &'static str, button: Option<Button>, secret: Option<String>) -> Response {
    html(&Page { chrome: Chrome::public(state, "", title), text, button, secret })
}

fn refused(why: impl Into<String>) -> Fault {
    Fault::Refused(StatusCode::UNPROCESSABLE_ENTITY, why.into())
}

/// In lower case, so that nobody subscribes twice.
fn mail_address(text: &str) -> Result<String, Fault> {
    let text = text.trim();
    match text.parse::<Address>() {
        Ok(_) if text.len() <= LONGEST_ADDRESS && text.is_ascii() => Ok(text.to_ascii_lowercase()),
        _ => Err(refused("this is not a mail address")),
    }
}

/// A name is looked up when it is called, and the addresses are looked at then.
fn webhook_url(text: &str, destinations: &Destinations) -> Result<String, Fault> {
    let url = Url::parse(text.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https") && text.len() <= LONGEST_URL);
    let url = url.ok_or_else(|| refused("this is not an HTTP URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("this URL contains a user or a password: remove them"));
    }
    let is_allowed = match url.host() {
        Some(Host::Ipv4(address)) => destinations.allow(address.into()),
        Some(Host::Ipv6(address)) => destinations.allow(address.into()),
        Some(Host::Domain(name)) => *destinations == Destinations::Any || !name.eq_ignore_ascii_case("localhost"),
        None => false,
    };
    if is_allowed { Ok(url.into()) } else { Err(refused("this URL has a private address")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_mail_addresses_in_one_spelling() {
        for (text, expected) in [
            (" Ann@Example.com ", Some("ann@example.com")),
            ("ann", None),
            ("ann@example.com, ben@example.com", None),
            ("ann@example.com\r\nBcc: ben@example.com", None),
            ("Ann <ann@example.com>", None),
        ] {
            assert_eq!(mail_address(text).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn webhooks_have_no_private_addresses_unless_that_is_configured() {
        for (text, public, any) in [
            ("https://hooks.example.com/a", true, true),
            ("http://127.0.0.1:9000/", false, true),
            ("http://[::1]/", false, true),
            ("http://[::ffff:10.0.0.1]/", false, true),
            ("http://0x7f.1/", false, true),
            ("http://169.254.169.254/latest/meta-data", false, true),
            ("http://localhost/", false, true),
            ("https://ann:secret@example.com/", false, false),
            ("file:///etc/passwd", false, false),
            ("hooks.example.com", false, false),
        ] {
            assert_eq!(webhook_url(text, &Destinations::Public).is_ok(), public, "{text}");
            assert_eq!(webhook_url(text, &Destinations::Any).is_ok(), any, "{text}");
        }
    }
}
