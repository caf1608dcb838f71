//! A server that requires authorization, in the page: each step with its request and its response, and a click for each.

use crate::browser::Page;
use crate::inspector::{Inspector, click, fill, violations, wait_for};
use mcproof_testkit::oauth::{OauthServers, Wish};
use serde_json::{Value, json};
use std::sync::mpsc;

/// The servers run until the test ends.
fn servers(wish: Wish) -> OauthServers {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            send.send(OauthServers::new(wish).await).unwrap();
            std::future::pending::<()>().await;
        });
    });
    receive.recv().unwrap()
}

fn opened(servers: &OauthServers, more: &[&str]) -> (Inspector, Page) {
    let url = servers.filled("{rs}/mcp");
    let arguments: Vec<&str> = [url.as_str()].into_iter().chain(more.iter().copied()).collect();
    let inspector = Inspector::start(&arguments);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    (inspector, page)
}

fn flow(page: &mut Page, status: &str) {
    wait_for(page, &format!("document.querySelector('[data-testid=authorization]')?.dataset.status === '{status}'"));
}

/// The steps that are shown, each with its state.
fn steps(page: &mut Page) -> Vec<String> {
    let found = page
        .evaluate("[...document.querySelectorAll('[data-testid=auth-step]')].map((step) => step.dataset.kind + ' ' + step.dataset.status)");
    found.as_array().unwrap().iter().map(|step| step.as_str().unwrap().to_owned()).collect()
}

fn open(page: &mut Page) {
    wait_for(page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
}

#[test]
fn a_user_goes_through_an_authorization_step_by_step() {
    let servers = servers(OauthServers::usual());
    let (inspector, mut page) = opened(&servers, &[]);
    for (kind, sent) in [("resource-metadata", 0), ("server-metadata", 1), ("registration", 2)] {
        wait_for(&mut page, &format!("document.querySelector('[data-testid=auth-step][data-kind={kind}]')?.dataset.status === 'waiting'"));
        // Nothing is sent before the click that says so.
        assert_eq!(servers.steps().len(), sent, "{kind}: {:?}", servers.steps());
        assert_eq!(violations(&mut page), json!([]), "{kind}");
        click(&mut page, "auth-next");
    }
    flow(&mut page, "page");
    let address = page.text_of("[data-testid=auth-page]");
    assert!(address.starts_with(&servers.filled("{as}/authorize?response_type=code")), "{address}");
    assert_eq!(page.evaluate("document.querySelector('[data-testid=auth-open]').href"), Value::String(address));
    assert_eq!(page.evaluate("document.querySelector('[data-testid=auth-open]').rel"), "noopener noreferrer nofollow");
    assert_eq!(servers.count("GET as/authorize"), 0, "only a click leads there");
    assert_eq!(violations(&mut page), json!([]));
    // In another tab, which the authorization server sends back to us at once.
    click(&mut page, "auth-open");
    wait_for(&mut page, "document.querySelector('[data-testid=auth-step][data-kind=token]')?.dataset.status === 'waiting'");
    assert_eq!(servers.count("POST as/token"), 0);
    let callback = page.text_of("[data-kind=callback]");
    assert!(callback.contains("code[redacted]") && callback.contains("state"), "{callback}");
    click(&mut page, "auth-next");
    flow(&mut page, "authorized");
    open(&mut page);
    assert_eq!(
        steps(&mut page),
        [
            "refused done",
            "resource-metadata done",
            "server-metadata done",
            "registration done",
            "consent done",
            "callback done",
            "token done"
        ]
    );
    // Each has its request and its response, without the secrets.
    page.evaluate("document.querySelectorAll('[data-testid=auth-exchange]').forEach((button) => button.click())");
    wait_for(&mut page, "document.querySelectorAll('.flow-exchange').length === 5");
    let shown = page.text_of("[data-testid=authorization]");
    for part in [
        "www-authenticate",
        "authorization_servers",
        "code_challenge_methods_supported",
        "registered-at-as",
        "grant_type=authorization_code",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!servers.secrets().is_empty());
    let everything = page.evaluate("document.body.innerText").as_str().unwrap().to_owned();
    for secret in servers.secrets() {
        assert!(!OauthServers::tells(&everything, &secret), "{secret} is shown");
    }
    assert_eq!(violations(&mut page), json!([]));
    // The token is kept: nobody is asked again, unless they want to be.
    let before = servers.steps().len();
    click(&mut page, "reconnect");
    wait_for(
        &mut page,
        "!document.querySelector('[data-testid=authorization]') && document.querySelector('[data-testid=overview]').dataset.status === 'open'",
    );
    assert_eq!(servers.steps().len(), before);
    click(&mut page, "sign-in-again");
    wait_for(&mut page, "document.querySelector('[data-testid=auth-step][data-kind=resource-metadata]')?.dataset.status === 'waiting'");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
    drop(inspector);
}

#[test]
fn one_click_leads_to_the_page_and_a_metadata_document_needs_no_registration() {
    let mut wish = OauthServers::usual();
    wish.documents[1].1["client_id_metadata_document_supported"] = json!(true);
    let servers = servers(wish);
    let (_inspector, mut page) = opened(&servers, &["--client-metadata-url", "https://client.example/mcproof.json"]);
    flow(&mut page, "waiting");
    click(&mut page, "auth-all");
    flow(&mut page, "page");
    assert_eq!(
        steps(&mut page),
        ["refused done", "resource-metadata done", "server-metadata done", "registration unneeded", "consent running"]
    );
    assert!(page.text_of("[data-kind=registration]").contains("https://client.example/mcproof.json"));
    click(&mut page, "auth-open");
    wait_for(&mut page, "document.querySelector('[data-testid=auth-step][data-kind=token]')?.dataset.status === 'waiting'");
    click(&mut page, "auth-all");
    open(&mut page);
    assert_eq!(servers.client_authentication(), "none https://client.example/mcproof.json");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn the_step_that_fails_is_named_and_a_user_may_stop() {
    let mut wish = OauthServers::usual();
    wish.token = (400, json!({ "error": "invalid_grant", "error_description": "the code is stale" }));
    let servers = servers(wish);
    let (_inspector, mut page) = opened(&servers, &[]);
    flow(&mut page, "waiting");
    click(&mut page, "auth-all");
    flow(&mut page, "page");
    click(&mut page, "auth-open");
    wait_for(&mut page, "document.querySelector('[data-testid=auth-step][data-kind=token]')?.dataset.status === 'waiting'");
    click(&mut page, "auth-next");
    flow(&mut page, "failed");
    assert_eq!(steps(&mut page).last().unwrap(), "token failed");
    assert!(page.text_of("[data-testid=auth-failure]").contains("the code is stale"));
    wait_for(&mut page, "document.querySelector('[data-testid=overview]').dataset.status === 'failed'");
    // Once more, and stopped before anything is sent.
    click(&mut page, "reconnect");
    flow(&mut page, "waiting");
    let before = servers.steps().len();
    click(&mut page, "auth-stop");
    flow(&mut page, "failed");
    assert!(page.text_of("[data-testid=auth-failure]").contains("stopped"));
    assert_eq!(servers.steps().len(), before);
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn a_client_that_was_registered_by_hand_is_put_in_on_the_page() {
    let mut wish = OauthServers::usual();
    wish.documents[1].1.as_object_mut().unwrap().remove("registration_endpoint");
    let servers = servers(wish);
    let (_inspector, mut page) = opened(&servers, &[]);
    page.look(360, 740, "dark");
    flow(&mut page, "waiting");
    assert_eq!(page.evaluate("document.querySelector('[data-testid=auth-stop]').getBoundingClientRect().right <= innerWidth"), true);
    click(&mut page, "auth-all");
    flow(&mut page, "failed");
    assert!(page.text_of("[data-testid=auth-failure]").contains("no client id is configured"));
    assert_eq!(violations(&mut page), json!([]));
    fill(&mut page, "[data-testid=auth-clientId]", "by-hand");
    fill(&mut page, "[data-testid=auth-clientSecret]", "a-secret-of-the-client");
    click(&mut page, "auth-use-client");
    flow(&mut page, "waiting");
    click(&mut page, "auth-all");
    flow(&mut page, "page");
    assert!(page.text_of("[data-kind=registration]").contains("by-hand"));
    assert!(page.text_of("[data-testid=auth-page]").contains("client_id=by-hand"));
    assert_eq!(page.evaluate("document.body.innerHTML.includes('a-secret-of-the-client')"), false);
    // While the user is elsewhere, the flow can be stopped as well.
    click(&mut page, "auth-stop");
    flow(&mut page, "failed");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}
