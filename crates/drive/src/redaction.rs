//! Redaction for test libraries: always in diagnostics, texts and snapshots, and in data from a server unless the session has
//! `show_secrets`. Bytes of a relay are never changed.

use crate::Drive;
use crate::error::DriveError;
use mcproof_client::Tap;
use mcproof_record::drive::Http;
use mcproof_record::{Diagnostic, Json, Place};
use serde_json::Value;

/// How what the server of one session says is passed on. Clones share what is known to be secret.
#[derive(Clone)]
pub(crate) struct Redaction {
    pub(crate) tap: Tap,
    /// As it was sent: `show_secrets` of `open`.
    pub(crate) shows_secrets: bool,
}

impl Redaction {
    pub(crate) fn value(&self, value: Value) -> Value {
        if self.shows_secrets { value } else { self.tap.redacted_value(value) }
    }

    pub(crate) fn json(&self, json: Json) -> Json {
        if self.shows_secrets { json } else { self.tap.redacted_json(json) }
    }

    pub(crate) fn text(&self, text: String) -> String {
        if self.shows_secrets { text } else { self.tap.redacted(text) }
    }

    pub(crate) fn http(&self, head: Http) -> Http {
        let headers = head.headers.into_iter().map(|(name, value)| (name, self.text(value))).collect();
        Http { headers, ..head }
    }
}

impl Drive {
    /// Without the secrets of any session that is or was, and of any server.
    pub(crate) fn redacted_value(&self, value: Value) -> Value {
        self.taps().iter().fold(value, |value, tap| tap.redacted_value(value))
    }

    /// A place in it is in what the driver sent: where that says a secret, its line keeps its columns.
    pub(crate) fn redacted_diagnostic(&self, diagnostic: Diagnostic) -> Diagnostic {
        let taps = self.taps();
        let clean = |text: String| taps.iter().fold(text, |text, tap| tap.redacted(text));
        let starred = |place: Place| match clean(place.text.clone()) == place.text {
            true => place,
            false => Place { text: place.text.replace(char::is_alphanumeric, "*"), ..place },
        };
        let mut diagnostic = diagnostic.map_text(clean);
        diagnostic.place = diagnostic.place.map(starred);
        for difference in &mut diagnostic.differences {
            difference.place = difference.place.take().map(starred);
        }
        diagnostic
    }

    pub(crate) fn redacted_trouble(&self, trouble: DriveError) -> DriveError {
        let taps = self.taps();
        trouble.map_text(|text| taps.iter().fold(text, |text, tap| tap.redacted(text)))
    }

    fn taps(&self) -> Vec<Tap> {
        self.sessions.taps().into_iter().chain(self.servers.taps()).filter(Tap::knows_secrets).collect()
    }
}
