//! The user's part of an authorization: somebody, or something, that opens a page and comes back by a redirect.

use super::web::Web;
use std::future::Future;
use std::pin::Pin;
use url::Url;

/// What a user agent returns: the URL to which the authorization server redirected, or why there is none.
pub type Visit<'a> = Pin<Box<dyn Future<Output = Result<Url, String>> + Send + 'a>>;

/// Takes a user to an authorization page and brings back the redirect. A browser with a listener on loopback is one.
pub trait UserAgent: Send + Sync {
    /// Says why there is no user who could consent, where that is so. Asked before anything is done in their name.
    ///
    /// # Errors
    /// A reason for users, as a fragment.
    fn is_there(&self) -> Result<(), String> {
        Ok(())
    }

    /// Where the authorization server is to redirect to. Called before [`UserAgent::visit`], and more than once.
    fn redirect_uri(&self) -> &Url;

    /// Opens the page and waits for the redirect, for at most as long as the authorization as a whole may take.
    fn visit<'a>(&'a self, page: AuthorizationPage<'a>) -> Visit<'a>;
}

/// The page on which a user consents.
#[derive(Clone, Copy)]
pub struct AuthorizationPage<'a> {
    pub(super) url: &'a Url,
    pub(super) web: &'a Web,
}

impl AuthorizationPage<'_> {
    pub fn url(&self) -> &Url {
        self.url
    }

    /// Requests the page without any user, and gives the URL to which it redirects.
    ///
    /// # Errors
    /// It cannot be reached, or is a page for users.
    pub async fn redirected(&self) -> Result<Url, String> {
        let answer = self.web.page(self.url).await.map_err(|failure| failure.to_string())?;
        match answer.head.header("location") {
            Some(location) if (300..400).contains(&answer.status()) => {
                self.url.join(location).map_err(|error| format!("the redirect location is not a valid URL: {error}"))
            }
            _ => Err(format!("HTTP {} instead of a redirect: the page needs a person", answer.status())),
        }
    }
}

/// No user at all: the authorization server has to redirect at once, as those made for tests do.
#[derive(Clone, Debug)]
pub struct Headless {
    redirect_uri: Url,
}

impl Headless {
    /// Nothing listens at `redirect_uri`; it only has to be one that the authorization server accepts.
    pub fn new(redirect_uri: Url) -> Self {
        Self { redirect_uri }
    }
}

impl UserAgent for Headless {
    fn redirect_uri(&self) -> &Url {
        &self.redirect_uri
    }

    fn visit<'a>(&'a self, page: AuthorizationPage<'a>) -> Visit<'a> {
        Box::pin(async move { page.redirected().await })
    }
}
