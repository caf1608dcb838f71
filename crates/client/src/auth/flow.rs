//! An authorization as somebody sees it who goes through it step by step: each request waits for their word, and what becomes of it is
//! told. Knows no OAuth, and decides nothing but whether to go on.

use super::AuthorizationFailure;
use mcproof_record::ExchangeId;
use std::future::Future;
use std::pin::Pin;
use url::Url;

/// What a part of a flow is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowStep {
    /// Protected-resource metadata, of the MCP server.
    ResourceMetadata,
    /// Authorization-server metadata.
    ServerMetadata,
    /// How the client gets its id.
    Registration,
    /// The page on which a user consents.
    Consent,
    /// What an identity provider says of its user.
    Assertion,
    /// The token endpoint.
    Token,
    /// The token endpoint, for a token in place of one that is over. Nobody has to be asked for that again.
    Renewal,
}

/// A request that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct FlowRequest<'a> {
    pub step: FlowStep,
    pub method: &'a str,
    pub url: &'a Url,
}

/// What happens in a flow. The bytes of each exchange are in the transcript.
#[derive(Clone, Copy, Debug)]
pub enum FlowEvent<'a> {
    /// It begins: the MCP server has refused this exchange.
    Refused { exchange: ExchangeId, operation: &'a str },
    /// The request that was approved last is sent in this exchange.
    Sent { exchange: ExchangeId },
    /// Its response is here. It may well say that there is nothing at this place.
    Answered { status: u16 },
    /// There was no response to it.
    Unanswered { reason: &'a str },
    /// This part of the flow takes no request.
    Unneeded { step: FlowStep, reason: &'a str },
    /// The user is to go to this page.
    Page { url: &'a Url },
    /// The user has come back, to this URL; without the code.
    Returned { url: &'a str },
    /// It has ended, with a token or without one.
    Ended { failure: Option<&'a AuthorizationFailure> },
}

/// Whether a request may be sent; an error ends the flow, and says why as a fragment.
pub type Approval<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// Goes through a flow step by step.
pub trait FlowControl: Send + Sync {
    /// Asked before each request. The deadline of the authorization goes on meanwhile.
    fn approve<'a>(&'a self, request: FlowRequest<'a>) -> Approval<'a>;

    /// Told of everything in the order in which it happens.
    fn tell(&self, event: FlowEvent<'_>);
}
