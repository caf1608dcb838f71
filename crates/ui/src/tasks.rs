//! Calls that run as tasks: followed to their end, looked at, canceled. What a task is like is in the frames, where the page finds it; here
//! is only who follows it, and what stopped that.

use crate::connection::{self, Live};
use crate::hub::{Hub, HubFailure};
use crate::requests::Outcome;
use mcproof_analysis::diagnosis::{Audience, Scene, of_task_failure};
use mcproof_client::{Session, Task, TaskEnd, TaskFailure};
use mcproof_protocol::methods;
use mcproof_record::Diagnostic;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A task of a server that somebody has followed, or does.
pub(crate) struct Followed {
    session: u64,
    id: String,
    state: FollowState,
}

enum FollowState {
    /// Until this is dropped.
    Following(#[expect(dead_code, reason = "held to be dropped")] oneshot::Sender<()>),
    Over,
    /// Before the task had ended.
    Failed(Box<Diagnostic>),
}

/// The longest that a task is followed; then it is canceled.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// For one request about a task.
const REQUEST: Duration = Duration::from_secs(60);
/// Tasks of a connection that are remembered.
const MAX_FOLLOWED: usize = 200;

impl Followed {
    pub(crate) fn shown(&self) -> Value {
        let problem = match &self.state {
            FollowState::Failed(why) => Some(why),
            _ => None,
        };
        json!({ "session": self.session, "task": self.id, "following": self.is_following(), "problem": problem })
    }

    fn is_following(&self) -> bool {
        matches!(self.state, FollowState::Following(_))
    }

    /// Nobody follows it any more.
    pub(crate) fn stop(&mut self) {
        if self.is_following() {
            self.state = FollowState::Over;
        }
    }
}

/// Polls a task until it has ended, and gives the input that it requests, which the user is asked for.
pub(crate) fn follow(hub: &Arc<Hub>, connection: u64, live: &Live, mut task: Task) {
    let (stop, stopped) = oneshot::channel();
    let (recorded, id) = (live.recorded, task.id().to_owned());
    hub.change(|state| {
        let followed = &mut state.connection(connection)?.followed;
        followed.retain(|known| known.session != recorded || known.id != id);
        if followed.len() >= MAX_FOLLOWED {
            let oldest = followed.iter().position(|known| !known.is_following()).unwrap_or_default();
            followed.remove(oldest);
        }
        followed.push(Followed { session: recorded, id: id.clone(), state: FollowState::Following(stop) });
        Some(())
    });
    let (hub, slot) = (Arc::downgrade(hub), Arc::clone(&live.session));
    tokio::spawn(async move {
        let failure = {
            let held = slot.read().await;
            let Some(session) = held.as_ref() else { return };
            let ended = tokio::select! {
                ended = task.finish(session, LONGEST) => ended,
                _ = stopped => return,
            };
            match ended {
                Ok(TaskEnd { .. }) => None,
                Err(failure) => Some(diagnosed(session, &failure).await),
            }
        };
        let Some(hub) = hub.upgrade() else { return };
        hub.change(|state| {
            let followed = &mut state.connection(connection)?.followed;
            let known = followed.iter_mut().find(|known| known.session == recorded && known.id == id)?;
            known.state = failure.map_or(FollowState::Over, |failure| FollowState::Failed(Box::new(failure)));
            Some(())
        });
    });
}

pub(crate) async fn diagnosed(session: &Session, failure: &TaskFailure) -> Diagnostic {
    let tap = session.tap();
    let scene = Scene::of(session, tap, Audience::CommandLine).await;
    of_task_failure(failure, methods::TOOLS_CALL, &scene).map_text(|text| tap.redacted(text))
}

/// What the user wants of a task.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct TaskRequest {
    task: String,
    wish: Wish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Wish {
    /// Its state, once.
    State,
    /// To be followed, which gives its result as well.
    Follow,
    Cancel,
}

pub(crate) async fn request(hub: &Arc<Hub>, connection: u64, request: TaskRequest) -> Result<Outcome, HubFailure> {
    let TaskRequest { task: id, wish } = request;
    let live = connection::live(hub, connection)?;
    let held = Arc::clone(&live.session).read_owned().await;
    let session = held.as_ref().ok_or(HubFailure::NotOpen)?;
    if wish == Wish::Cancel {
        // The questions of the task go away with whoever follows it.
        hub.change(|state| {
            let known = state.connection(connection)?.followed.iter_mut().find(|known| known.session == live.recorded && known.id == id)?;
            known.stop();
            Some(())
        });
    }
    let done = async {
        let mut task = session.task(&id, REQUEST).await?;
        if wish == Wish::Cancel {
            task.cancel(session, REQUEST).await?;
        }
        Ok(task)
    };
    let mut outcome = Outcome::of(live.recorded);
    match done.await {
        Ok(task) => {
            outcome.result = Some(session.tap().redacted_value(task.state().value.clone()));
            if wish == Wish::Follow || (wish == Wish::Cancel && !task.state().status.is_terminal()) {
                follow(hub, connection, &live, task);
            }
        }
        Err(failure) => outcome.failure = Some(diagnosed(session, &failure).await),
    }
    Ok(outcome)
}
