//! Behaves like every kind of client towards one server, and keeps what happened: the conversations that the rules judge.
//! Knows what to try, not what is right.

mod abuse;
pub(crate) mod arguments;
mod calls;
mod features;
mod http;
mod legacy;
mod modern;
mod modern_headers;
mod permission;
mod process;
mod replicas;
mod state;
mod texts;
mod tour;
mod visit;

pub use permission::Permission;

use calls::{Depth, Tools};
use mcproof_client::{ConnectFailure, ConnectOptions, EraChoice, TapBounds, Target, TransportKind};
use mcproof_record::{FrameId, Opened, ProbeOutcome, Probed, Take};
use std::time::Duration;
use url::Url;

/// What to check, and what is allowed.
pub struct Inquiry {
    pub target: Target,
    pub options: ConnectOptions,
    /// Never to be recorded.
    pub secrets: Vec<String>,
    pub tap: TapBounds,
    /// For each request.
    pub timeout: Duration,
    /// Which tools may be called.
    pub calls: Permission,
    /// Whether to be a browser even if the server shows no sign of wanting one.
    pub as_browser: bool,
    /// Other instances of the same server.
    pub replicas: Vec<Url>,
}

/// What came of it.
pub struct Explored {
    pub takes: Vec<Take>,
    /// Set if no conversation came about at all.
    pub unreachable: Option<ConnectFailure>,
}

/// The eras and the transport that a server turned out to have.
#[derive(Clone, Copy, Debug)]
struct Found {
    kind: TransportKind,
    /// The legacy revision that it speaks.
    is_legacy: bool,
    is_modern: bool,
}

/// Talks to the server until everything has been tried that may be. Each kind of client has a process of its own over stdio,
/// because some servers cannot be talked to in both eras, and some do not survive.
pub async fn explore(inquiry: &Inquiry) -> Explored {
    match &inquiry.target {
        // The calls take their time, and need not wait for anything.
        Target::Stdio(_) => {
            let (mut explored, called) = tokio::join!(explore_all_but_calls(inquiry), calls::talk(inquiry, EraChoice::Legacy, Depth::Full));
            explored.takes.extend(called.unwrap_or_default());
            explored
        }
        Target::Http { .. } => explore_all_but_calls(inquiry).await,
    }
}

/// Over HTTP, where one thing comes after the other, the calls as well.
async fn explore_all_but_calls(inquiry: &Inquiry) -> Explored {
    let mut takes = Vec::new();
    let (legacy, mut modern) = match &inquiry.target {
        Target::Stdio(_) => tokio::join!(legacy::talk(inquiry), modern::talk(inquiry)),
        Target::Http { .. } => (legacy::talk(inquiry).await, modern::talk(inquiry).await),
    };
    let unreachable = match (&legacy.failure, &modern.failure) {
        (Some(failure), Some(_)) if is_unreachable(failure) => legacy.failure.clone(),
        _ => None,
    };
    let kind = legacy.kind.or(modern.kind);
    let (is_legacy, is_modern) = (legacy.failure.is_none(), modern.failure.is_none());
    // One that is discovered, names its legacy versions only, and speaks them, does not claim to be modern.
    let is_legacy_only = is_legacy && matches!(modern.failure, Some(ConnectFailure::NoCommonVersion { .. }));
    if is_legacy_only {
        modern.takes.iter_mut().for_each(|take| take.opened = Opened::OtherEra);
    }
    takes.extend(legacy.takes);
    takes.extend(modern.takes.into_iter().map(|take| if is_legacy { of_both_eras(take) } else { take }));
    if unreachable.is_none() && !is_legacy && !is_modern {
        takes.extend(http::talk_outside(inquiry).await);
    }
    if let (Some(kind), true) = (kind, is_legacy || is_modern) {
        let found = Found { kind, is_legacy, is_modern };
        match kind {
            TransportKind::Stdio | TransportKind::InMemory => {
                let tools = Tools::in_takes(&takes, &inquiry.calls);
                let called = async {
                    match (is_modern, is_legacy) {
                        (true, true) => calls::talk(inquiry, EraChoice::Modern, Depth::Calls).await,
                        (true, false) => calls::talk(inquiry, EraChoice::Modern, Depth::Full).await,
                        (false, _) => None,
                    }
                };
                let (abused, ended, called, observed) =
                    tokio::join!(abuse::talk(inquiry, found), process::talk(inquiry, found), called, state::talk(inquiry, found, &tools));
                takes.extend([abused, ended, called.unwrap_or_default(), observed].into_iter().flatten());
            }
            TransportKind::Http | TransportKind::Sse => {
                let tools = Tools::in_takes(&takes, &inquiry.calls);
                takes.extend(http::talk(inquiry, found).await);
                takes.extend(replicas::talk(inquiry, found).await);
                takes.extend(state::talk(inquiry, found, &tools).await);
                if is_modern {
                    let depth = if is_legacy { Depth::Calls } else { Depth::Full };
                    takes.extend(calls::talk(inquiry, EraChoice::Modern, depth).await.unwrap_or_default());
                }
                if is_legacy {
                    takes.extend(calls::talk(inquiry, EraChoice::Legacy, Depth::Full).await.unwrap_or_default());
                }
                takes.extend(abuse::talk(inquiry, found).await);
            }
        }
    }
    Explored { takes, unreachable }
}

/// Notes that the server speaks earlier revisions as well, which allows it to take what lacks modern metadata for theirs.
fn of_both_eras(mut take: Take) -> Take {
    let nothing = FrameId(0);
    let probe = "speaks-legacy".to_owned();
    take.probes.push(Probed { probe, subject: None, first: nothing, end: nothing, outcome: ProbeOutcome::Done });
    take
}

/// Whether a failure says nothing about a server, because there is none.
fn is_unreachable(failure: &ConnectFailure) -> bool {
    use mcproof_client::{CallFailure, Unanswered};
    match failure {
        ConnectFailure::Start(_) | ConnectFailure::AddressTaken { .. } => true,
        ConnectFailure::Unanswered { failure: CallFailure::Unanswered(Unanswered::Unreachable(_)), .. } => true,
        ConnectFailure::Unauthorized { .. } => false,
        _ => false,
    }
}

/// What one era's main conversation brought.
struct Talked {
    takes: Vec<Take>,
    kind: Option<TransportKind>,
    failure: Option<ConnectFailure>,
}
