//! Opens the user's browser for consent and waits for the redirect on loopback. Knows no tokens.

use super::callback::{Callback, ReturnTexts};
use crate::{output, settings};
use mcproof_client::Guardian;
use mcproof_client::auth::{AuthorizationPage, FlowControl, UserAgent, Visit};
use mcproof_report::escape;
use mcproof_system::commands;
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;
use url::Url;

/// Whether a user is present to consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserPresence {
    Present,
    /// The user wants it so; this flag says it.
    Unwanted(&'static str),
    Absent(&'static str),
}

impl UserPresence {
    /// Detects it from the environment.
    pub(super) fn found() -> Self {
        match (output::stderr_is_terminal(), settings::is_ci()) {
            (true, false) => Self::Present,
            (_, true) => Self::Absent("CI is set"),
            (false, false) => Self::Absent("stderr is not a terminal"),
        }
    }
}

/// Who consents, where a server requires it.
#[derive(Clone)]
pub(crate) enum Consent {
    /// Whoever sits at the terminal, in a browser that is opened for them.
    AtTerminal,
    /// The user of the inspector's page, who opens the page of consent from there.
    #[cfg(feature = "ui")]
    OnPage(mcproof_ui::SignIn),
    /// Nobody: only tokens that are stored.
    #[cfg(feature = "ui")]
    Nobody,
}

impl Consent {
    /// Who goes through the flow step by step.
    pub(super) fn control(&self) -> Option<Arc<dyn FlowControl>> {
        match self {
            #[cfg(feature = "ui")]
            Self::OnPage(user) => Some(Arc::clone(&user.control)),
            _ => None,
        }
    }

    /// Whether stored tokens are discarded first.
    pub(super) fn is_anew(&self) -> bool {
        match self {
            #[cfg(feature = "ui")]
            Self::OnPage(user) => user.anew,
            _ => false,
        }
    }
}

pub(super) struct Browser {
    person: UserPresence,
    wanted: Url,
    /// Bound when a server first asks for authorization, and kept: it is part of the client's registration.
    callback: OnceLock<Result<Callback, String>>,
    guardian: Guardian,
    opening: Opening,
}

const AT_TERMINAL: ReturnTexts = ReturnTexts {
    accepted: "You are signed in. You can close this window.",
    refused: "Sign-in failed; see the output of mcproof. You can close this window.",
};
const ON_PAGE: ReturnTexts = ReturnTexts {
    accepted: "You are signed in. Close this window, and go on in mcproof.",
    refused: "Sign-in failed. Close this window; mcproof shows why.",
};

/// Who opens the page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// We do, and say so on the terminal.
    Ours,
    /// Whoever goes through the flow is told of it anyway.
    Theirs,
}

impl Browser {
    pub(super) fn new(person: UserPresence, callback: Url, guardian: Guardian, opening: Opening) -> Self {
        Self { person, wanted: callback, callback: OnceLock::new(), guardian, opening }
    }

    fn callback(&self) -> Result<&Callback, String> {
        self.callback.get_or_init(|| Callback::bind(&self.wanted)).as_ref().map_err(Clone::clone)
    }
}

impl UserAgent for Browser {
    fn is_there(&self) -> Result<(), String> {
        match self.person {
            UserPresence::Present => self.callback().map(drop),
            UserPresence::Unwanted(flag) => Err(format!("{flag} prevents a browser login, and no stored token was accepted")),
            UserPresence::Absent(why) => Err(why.to_owned()),
        }
    }

    fn redirect_uri(&self) -> &Url {
        match self.callback.get() {
            Some(Ok(callback)) => &callback.url,
            _ => &self.wanted,
        }
    }

    fn visit<'a>(&'a self, page: AuthorizationPage<'a>) -> Visit<'a> {
        Box::pin(async move {
            let callback = self.callback()?;
            let state = page.url().query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned());
            let state = state.ok_or("the page was asked for without a state")?;
            if self.opening == Opening::Theirs {
                let back = callback.arrival(&state, ON_PAGE).await;
                return back.map_err(|error| format!("the listener at {} failed: {error}", callback.url));
            }
            let commands = settings::browsers();
            let how = if commands.is_empty() { "Open this page" } else { "If no browser opens, open this page" };
            output::talk(&format!(
                "The server requires authorization. {how}:\n\n  {}\n\nWaiting for the redirect to {} (Ctrl-C to cancel)\n",
                escape(page.url().as_str()),
                callback.url
            ));
            let opening = async {
                if !commands.is_empty() && !open(page.url(), commands, &self.guardian).await {
                    output::talk("Cannot start a browser: open the page manually\n");
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                back = callback.arrival(&state, AT_TERMINAL) => {
                    back.map_err(|error| format!("the listener at {} failed: {error}", callback.url))
                }
                () = opening => unreachable!("it waits for ever"),
            }
        })
    }
}

/// Whether some browser takes the page.
pub(crate) async fn open(page: &Url, commands: Vec<Vec<String>>, guardian: &Guardian) -> bool {
    // What a browser leaves running is the user's, and no server's.
    guardian.disown_orphans();
    for command in commands {
        let mut words = command.iter().map(|word| word.replace("%s", page.as_str()));
        let Some(program) = words.next() else { continue };
        let mut started = std::process::Command::new(program);
        // Out of our group, so that Ctrl-C ends us and not the browser.
        commands::own_group(&mut started);
        started.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !command.iter().any(|word| word.contains("%s")) {
            started.arg(page.as_str());
        }
        let Ok(mut child) = Command::from(started).spawn() else { continue };
        // A browser that runs on is one that opened; an opener that fails does so at once.
        match timeout(AT_ONCE, child.wait()).await {
            Ok(Ok(status)) if !status.success() => {}
            _ => return true,
        }
    }
    false
}

const AT_ONCE: Duration = Duration::from_millis(500);
