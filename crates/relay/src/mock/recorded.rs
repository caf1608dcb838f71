//! Answers from a recording: the nth time the same request comes, the nth recorded answer.

use super::answers::{Answers, Miss, MissReason, Nearest, Script, ServerFacts, SessionState, subject};
use super::era;
use super::matching::{self, Ignored};
use super::recording::{Outcome, RecordedRequest, RecordedSession, Recording, TimedStep};
use mcproof_protocol::Era;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// What becomes of a request that comes more often than it was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repetition {
    /// It gets the last answer again.
    #[default]
    LastAnswer,
    /// It is a miss.
    Miss,
}

pub struct RecordedAnswers {
    recording: Recording,
    ignored: Ignored,
    repetition: Repetition,
    /// By key: the session and the place in it, in the order of the recording.
    places: HashMap<String, Vec<(usize, usize)>>,
    /// How many clients have played each session.
    plays: Mutex<Vec<usize>>,
}

impl RecordedAnswers {
    pub fn new(recording: Recording, ignored: Ignored, repetition: Repetition) -> Self {
        let mut places: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
        for (number, session) in recording.sessions.iter().enumerate() {
            for (place, request) in session.requests.iter().enumerate() {
                places.entry(matching::key(&request.method, &request.params, &ignored)).or_default().push((number, place));
            }
        }
        let plays = Mutex::new(vec![0; recording.sessions.len()]);
        Self { recording, ignored, repetition, places, plays }
    }

    fn request(&self, (session, place): (usize, usize)) -> &RecordedRequest {
        &self.recording.sessions[session].requests[place]
    }

    /// Places of the recordings of a request: those of the session that is played, or else those of all others.
    fn candidates(&self, state: &SessionState, era: Era, key: &str, method: &str, params: &Value) -> Vec<(usize, usize)> {
        let mut all = match self.places.get(key) {
            Some(places) => places.clone(),
            None => self.redacted(method, params),
        };
        // Another era counts only where this one was not recorded: what is refused in one may be answered in the other.
        let was_recorded = self.recording.sessions.iter().any(|session| session.speaks(era));
        if was_recorded {
            all.retain(|place| matching::is_modern(&self.request(*place).params) == (era == Era::Modern));
        } else if era == Era::Modern && era::is_removed(method) {
            all.clear();
        }
        let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(session, _)| Some(*session) == state.chosen);
        if own.is_empty() { others } else { own }
    }

    fn redacted(&self, method: &str, params: &Value) -> Vec<(usize, usize)> {
        let fits = |place: &(usize, usize)| {
            let request = self.request(*place);
            request.method == method && matching::fits_redacted(&request.params, params, &self.ignored)
        };
        self.all_places().filter(fits).collect()
    }

    fn all_places(&self) -> impl Iterator<Item = (usize, usize)> {
        let sessions = self.recording.sessions.iter().enumerate();
        sessions.flat_map(|(number, session)| (0..session.requests.len()).map(move |place| (number, place)))
    }

    fn miss(&self, method: &str, params: &Value) -> Miss {
        let mut nearest: Option<(usize, bool, Nearest)> = None;
        for (number, place) in self.all_places().enumerate() {
            let request = self.request(place);
            if request.method != method {
                continue;
            }
            let Some(mismatch) = matching::difference(&request.params, params, &self.ignored) else { continue };
            let is_other = subject(&request.params) != subject(params);
            let found = Nearest {
                number: number + 1,
                subject: subject(&request.params),
                pointer: mismatch.pointer,
                recorded: mismatch.recorded,
                received: mismatch.received,
                more: mismatch.places - 1,
            };
            // The same tool with other arguments is nearer than another tool.
            if nearest.as_ref().is_none_or(|(places, other, _)| (is_other, mismatch.places) < (*other, *places)) {
                nearest = Some((mismatch.places, is_other, found));
            }
        }
        let reason = match nearest {
            Some((_, _, nearest)) => MissReason::Different(Box::new(nearest)),
            None => {
                let known: BTreeSet<&str> = self.all_places().map(|place| self.request(place).method.as_str()).collect();
                MissReason::UnknownMethod { known: known.into_iter().map(str::to_owned).collect() }
            }
        };
        Miss::new(method, params, reason)
    }

    /// The session whose client is most like this one: the revision first, then what it declares. Of equals the one that was played least, so
    /// that clients that come one after the other are told what those of the recording were told.
    fn choose(&self, era: Era, client: &Value) -> Option<usize> {
        let speaking = self.recording.sessions.iter().enumerate().filter(|(_, session)| session.speaks(era));
        let likeness = |session: &RecordedSession| match era {
            Era::Legacy => session.first_result("initialize").map_or((false, false), |(request, _)| {
                let same = |member: &str| request.params.get(member) == client.get(member);
                (same("protocolVersion"), same("capabilities"))
            }),
            Era::Modern => {
                const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
                let declares = |request: &RecordedRequest| request.params.get("_meta").and_then(|meta| meta.get(CAPABILITIES)).cloned();
                let declared = session.requests.iter().find_map(declares);
                (true, declared.as_ref() == client.get(CAPABILITIES))
            }
        };
        let plays = self.plays();
        // Of equals the first one.
        speaking.rev().max_by_key(|(number, session)| (likeness(session), Reverse(plays[*number]))).map(|(number, _)| number)
    }

    fn plays(&self) -> MutexGuard<'_, Vec<usize>> {
        self.plays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn script(&self, places: &[(usize, usize)], nth: usize) -> Script {
        let script = |place: &(usize, usize)| {
            let RecordedRequest { params, steps, outcome, delay, after, .. } = self.request(*place).clone();
            let era = if matching::is_modern(&params) { Era::Modern } else { Era::Legacy };
            Script { steps, outcome, delay, after, alternatives: Vec::new(), era: Some(era) }
        };
        let mut chosen = script(&places[nth]);
        let others = places.iter().enumerate().filter(|(place, _)| *place != nth);
        chosen.alternatives = others.map(|(_, place)| script(place)).filter(|other| !other.steps.is_empty()).collect();
        chosen
    }
}

impl Answers for RecordedAnswers {
    fn eras(&self) -> Vec<Era> {
        self.recording.eras()
    }

    fn about(&self, state: &mut SessionState, era: Era, client: &Value) -> ServerFacts {
        let playing = state.chosen.filter(|chosen| self.recording.sessions.get(*chosen).is_some_and(|session| session.speaks(era)));
        let chosen = playing.or_else(|| self.choose(era, client));
        if let Some(number) = chosen.filter(|_| playing.is_none()) {
            self.plays()[number] += 1;
        }
        state.chosen = chosen.or(state.chosen).or(Some(0));
        let sessions = chosen.into_iter().chain(0..self.recording.sessions.len());
        let facts = sessions.map(|number| facts(&self.recording.sessions[number]));
        facts.reduce(|best, other| if best.is_known() { best } else { other }).unwrap_or_default()
    }

    fn answer(&self, state: &mut SessionState, era: Era, method: &str, params: &Value) -> Result<Script, Miss> {
        let key = matching::key(method, params, &self.ignored);
        let places = self.candidates(state, era, &key, method, params);
        if places.is_empty() {
            return Err(self.miss(method, params));
        }
        let count = state.counts.entry(key).or_default();
        let nth = *count;
        if nth >= places.len() && self.repetition == Repetition::Miss {
            return Err(Miss::new(method, params, MissReason::Exhausted { recorded: places.len() }));
        }
        *count += 1;
        Ok(self.script(&places, nth.min(places.len() - 1)))
    }

    fn noted(&self, state: &mut SessionState, method: &str) -> Vec<TimedStep> {
        let Some(session) = state.chosen.and_then(|chosen| self.recording.sessions.get(chosen)) else { return Vec::new() };
        let count = state.counts.entry(method.to_owned()).or_default();
        let recorded = session.notifications.iter().filter(|notification| notification.method == method).nth(*count);
        *count += 1;
        recorded.map(|notification| notification.after.clone()).unwrap_or_default()
    }

    fn tool(&self, name: &str) -> Option<Value> {
        let lists = self.all_places().map(|place| self.request(place)).filter(|request| request.method == "tools/list");
        let mut tools = lists.filter_map(|request| match &request.outcome {
            Outcome::Result(result) => result.get("tools")?.as_array(),
            _ => None,
        });
        tools.find_map(|tools| tools.iter().find(|tool| tool["name"] == name)).cloned()
    }
}

/// What the server said about itself in a session.
fn facts(session: &RecordedSession) -> ServerFacts {
    let mut facts = ServerFacts::default();
    let result = match (session.first_result("initialize"), session.first_result("server/discover")) {
        (Some((_, result)), _) => {
            facts.server = result.get("serverInfo").cloned().unwrap_or_default();
            facts.legacy_version = result.get("protocolVersion").and_then(Value::as_str).map(str::to_owned);
            result
        }
        (None, Some((_, result))) => {
            facts.server = server_in_meta(result);
            result
        }
        (None, None) => {
            // A modern client need not ask: then the results tell, and what was used must have been declared.
            let of = |request: &RecordedRequest| match &request.outcome {
                Outcome::Result(result) => Some(server_in_meta(result)).filter(|server| !server.is_null()),
                _ => None,
            };
            facts.server = session.requests.iter().find_map(of).unwrap_or_default();
            for feature in ["tools", "prompts", "resources"] {
                if session.requests.iter().any(|request| request.method.starts_with(feature)) {
                    facts.capabilities.insert(feature.to_owned(), json!({}));
                }
            }
            return facts;
        }
    };
    facts.capabilities = result.get("capabilities").and_then(Value::as_object).cloned().unwrap_or_default();
    facts.instructions = result.get("instructions").and_then(Value::as_str).map(str::to_owned);
    const KNOWN: [&str; 9] = [
        "protocolVersion",
        "supportedVersions",
        "capabilities",
        "serverInfo",
        "instructions",
        "resultType",
        "ttlMs",
        "cacheScope",
        "_meta",
    ];
    facts.more = result.as_object().cloned().unwrap_or_else(Map::new);
    facts.more.retain(|name, _| !KNOWN.contains(&name.as_str()));
    facts
}

fn server_in_meta(result: &Value) -> Value {
    result.get("_meta").and_then(|meta| meta.get(SERVER)).cloned().unwrap_or_default()
}

impl ServerFacts {
    fn is_known(&self) -> bool {
        !self.capabilities.is_empty() || !self.server.is_null()
    }
}
