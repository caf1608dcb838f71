//! Answers from a recording: the nth time the same request comes, the nth recorded answer. Each client plays one recorded session, the one
//! that has what the client asked for so far; an answer of another one is told.

use super::answers::{Answers, Miss, MissReason, Nearest, Script, ServerFacts, SessionState, subject};
use super::era;
use super::matching::{self, Ignored};
use super::recording::{Outcome, RecordedRequest, RecordedSession, Recording, Step, TimedStep};
use mcproof_protocol::Era;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Answers of a client that are remembered.
const MOST_GIVEN: usize = 10_000;

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

/// Whose answer a client gets.
enum Bound {
    /// That of the session that it plays.
    Own,
    /// That of another one: of this, which has all that the client asked for, or of any.
    Mixed(Option<usize>),
}

pub struct RecordedAnswers {
    recording: Recording,
    eras: Vec<Era>,
    /// The revision of the legacy era that is spoken, whatever the client offers.
    pinned_version: Option<String>,
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
        Self { eras: recording.eras(), pinned_version: None, recording, ignored, repetition, places, plays }
    }

    /// In these eras, whichever were recorded.
    #[must_use]
    pub fn in_eras(self, eras: Vec<Era>) -> Self {
        Self { eras, ..self }
    }

    /// In the legacy era with this revision, whichever a client offers.
    #[must_use]
    pub fn pinned(self, version: Option<String>) -> Self {
        Self { pinned_version: version, ..self }
    }

    fn request(&self, (session, place): (usize, usize)) -> &RecordedRequest {
        &self.recording.sessions[session].requests[place]
    }

    /// Places of the recordings of a request, in all sessions.
    fn candidates(&self, state: &SessionState, era: Era, key: &str, method: &str, params: &Value) -> Vec<(usize, usize)> {
        let mut all = match self.places.get(key) {
            Some(places) => places.clone(),
            None => Vec::new(),
        };
        // What was redacted in the session that is played is nearer than what was not in another one.
        if !all.iter().any(|(session, _)| Some(*session) == state.chosen) {
            let is_anywhere = !all.is_empty();
            let redacted = self.redacted(method, params).into_iter();
            all.extend(redacted.filter(|(session, _)| !is_anywhere || Some(*session) == state.chosen));
        }
        // Another era counts only where this one was not recorded: what is refused in one may be answered in the other.
        let was_recorded = self.recording.sessions.iter().any(|session| session.speaks(era));
        if was_recorded {
            all.retain(|place| matching::is_modern(&self.request(*place).params) == (era == Era::Modern));
        } else if era == Era::Modern && era::is_removed(method) {
            all.clear();
        }
        all
    }

    /// Binds a client to another session if that has all that the client asked for so far, this request included, and the one that it plays
    /// has not. What it was told so far should be what was said in that session; else the answers of two sessions are mixed.
    fn bind(&self, state: &mut SessionState, all: &[(usize, usize)], key: &str) -> Bound {
        let Some(chosen) = state.chosen else { return Bound::Own };
        let times = state.counts.get(key).copied().unwrap_or_default() + 1;
        let here = |session: usize| all.iter().filter(|place| place.0 == session).count();
        if here(chosen) >= times {
            return Bound::Own;
        }
        let best = self.best_fitting(state, |session| here(session) >= times);
        match best {
            Some((false, _, session)) => {
                self.rebind(state, chosen, session);
                Bound::Own
            }
            // It was said once more than recorded: the last answer repeats.
            _ if here(chosen) > 0 => Bound::Own,
            Some((true, _, session)) => Bound::Mixed(Some(session)),
            None => Bound::Mixed(None),
        }
    }

    /// Of the sessions that have all that the client asked for so far, and what it asks for now, the one that was played least: whether the
    /// client was told anything else than in the recording, how often it was played, and its number.
    fn best_fitting(&self, state: &SessionState, has_this: impl Fn(usize) -> bool) -> Option<(bool, usize, usize)> {
        let mut wanted: HashMap<&str, usize> = HashMap::new();
        for (given, time, _) in &state.given {
            let most = wanted.entry(given.as_str()).or_default();
            *most = (*most).max(time + 1);
        }
        let has_all = |session: usize| wanted.iter().all(|(given, times)| self.places_in(session, given).count() >= *times);
        let said_the_same = |session: usize| {
            state.given.iter().all(|(given, time, place)| {
                let other = self.places_in(session, given).nth(*time);
                other.is_some_and(|other| self.request(other).outcome == self.request(*place).outcome)
            })
        };
        let plays = self.plays().clone();
        let fitting = (0..self.recording.sessions.len()).filter(|session| has_this(*session) && has_all(*session));
        fitting.map(|session| (!said_the_same(session), plays[session], session)).min()
    }

    fn rebind(&self, state: &mut SessionState, from: usize, to: usize) {
        let mut plays = self.plays();
        plays[from] = plays[from].saturating_sub(1);
        plays[to] += 1;
        state.chosen = Some(to);
    }

    /// Where a request stands in a session.
    fn places_in(&self, session: usize, key: &str) -> impl Iterator<Item = (usize, usize)> {
        self.places.get(key).into_iter().flatten().copied().filter(move |place| place.0 == session)
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
        for place in self.all_places() {
            let request = self.request(place);
            if request.method != method {
                continue;
            }
            let Some(mismatch) = matching::difference(&request.params, params, &self.ignored) else { continue };
            let is_other = subject(&request.params) != subject(params);
            let found = Nearest {
                number: request.number,
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
        let speaking = self.recording.sessions.iter().enumerate().filter(|(_, session)| self.can_play(session, era));
        let likeness = |session: &RecordedSession| match era {
            Era::Legacy => session.first_result("initialize").map_or((false, false), |(request, _)| {
                let same = |member: &str| request.params.get(member) == client.get(member);
                (same("protocolVersion"), same("capabilities"))
            }),
            Era::Modern => {
                const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
                let declares = |request: &RecordedRequest| request.params.get("_meta").and_then(|meta| meta.get(CAPABILITIES)).cloned();
                let initialized = || session.first_result("initialize")?.0.params.get("capabilities").cloned();
                let declared = session.requests.iter().find_map(declares).or_else(initialized);
                (true, declared.as_ref() == client.get(CAPABILITIES))
            }
        };
        let plays = self.plays();
        // Of equals the first one.
        speaking.rev().max_by_key(|(number, session)| (likeness(session), Reverse(plays[*number]))).map(|(number, _)| number)
    }

    /// Whether a session can be played in an era: where none was recorded in it, what was recorded in the other one is served.
    fn can_play(&self, session: &RecordedSession, era: Era) -> bool {
        session.speaks(era) || !self.recording.sessions.iter().any(|other| other.speaks(era))
    }

    fn plays(&self) -> MutexGuard<'_, Vec<usize>> {
        self.plays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was recorded at one of the places of the session that is played. Where that depends on the client, which of the other sessions may
    /// be its own shows in what it responds.
    fn script(&self, places: &[(usize, usize)], nth: usize, elsewhere: &[(usize, usize)]) -> Script {
        let script = |place: &(usize, usize)| {
            let RecordedRequest { params, steps, outcome, delay, after, overtaken_by, .. } = self.request(*place).clone();
            let era = if matching::is_modern(&params) { Era::Modern } else { Era::Legacy };
            let overtaken_by = overtaken_by.into_iter().map(|later| (place.0, later)).collect();
            Script { steps, outcome, delay, after, alternatives: Vec::new(), era: Some(era), place: Some(*place), overtaken_by }
        };
        let mut chosen = script(&places[nth]);
        if chosen.steps.iter().any(|timed| matches!(timed.step, Step::Ask(_))) {
            let others = places.iter().enumerate().filter(|(place, _)| *place != nth).map(|(_, place)| script(place));
            // A client that never responded shows nothing.
            let is_told = |timed: &TimedStep| match &timed.step {
                Step::Ask(questions) => questions.iter().all(|question| question.response.is_some()),
                Step::Notify { .. } | Step::Announce { .. } => true,
            };
            let of_others = elsewhere.iter().map(script).filter(|other| other.steps.iter().all(is_told));
            chosen.alternatives = others.chain(of_others).collect();
        }
        chosen
    }
}

impl Answers for RecordedAnswers {
    fn eras(&self) -> Vec<Era> {
        self.eras.clone()
    }

    fn about(&self, state: &mut SessionState, era: Era, client: &Value) -> ServerFacts {
        let playing = state.chosen.filter(|chosen| self.recording.sessions.get(*chosen).is_some_and(|session| self.can_play(session, era)));
        let chosen = playing.or_else(|| self.choose(era, client));
        if let Some(number) = chosen.filter(|_| playing.is_none()) {
            self.plays()[number] += 1;
        }
        state.chosen = chosen.or(state.chosen).or(Some(0));
        // Of the server, any handshake in the era tells more than what a session without one has used.
        let sessions = &self.recording.sessions;
        let is_told = |number: &usize| sessions[*number].has_handshake();
        let told = |number: &usize| is_told(number) && sessions[*number].speaks(era);
        let first = chosen.filter(is_told).or_else(|| (0..sessions.len()).find(told)).or(chosen);
        let sessions = first.into_iter().chain(0..sessions.len());
        let facts = sessions.map(|number| facts(&self.recording.sessions[number]));
        let best = facts.reduce(|best, other| if best.is_known() { best } else { other }).unwrap_or_default();
        ServerFacts { pinned_version: self.pinned_version.clone(), ..best }
    }

    fn answer(&self, state: &mut SessionState, era: Era, method: &str, params: &Value) -> Result<Script, Miss> {
        let key = matching::key(method, params, &self.ignored);
        let all = self.candidates(state, era, &key, method, params);
        if all.is_empty() {
            return Err(self.miss(method, params));
        }
        let is_of_session = !matching::is_of_any_session(method);
        if is_of_session && let Bound::Mixed(better) = self.bind(state, &all, &key) {
            let place = all.iter().copied().find(|place| better.is_none_or(|session| place.0 == session)).unwrap_or(all[0]);
            let mixed = Miss::new(method, params, MissReason::OtherSession { request: self.request(place).number });
            if self.repetition == Repetition::Miss {
                return Err(mixed);
            }
            state.notes.push(mixed.to_string());
            if let (Some(from), Some(to)) = (state.chosen, better) {
                self.rebind(state, from, to);
            }
        }
        let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(session, _)| Some(*session) == state.chosen);
        let (places, elsewhere) = if own.is_empty() { (others, Vec::new()) } else { (own, others) };
        // Strictly, nothing comes from another session.
        let elsewhere = if self.repetition == Repetition::Miss { Vec::new() } else { elsewhere };
        let count = state.counts.entry(key.clone()).or_default();
        let nth = *count;
        if nth >= places.len() && self.repetition == Repetition::Miss {
            return Err(Miss::new(method, params, MissReason::Exhausted { recorded: places.len() }));
        }
        *count += 1;
        let chosen = nth.min(places.len() - 1);
        if is_of_session && state.given.len() < MOST_GIVEN {
            state.given.push((key, chosen, places[chosen]));
        }
        Ok(self.script(&places, chosen, &elsewhere))
    }

    fn go_on(&self, state: &mut SessionState, script: &Script) {
        let Some(place) = script.place else { return };
        let request = self.request(place);
        let key = matching::key(&request.method, &request.params, &self.ignored);
        let time = self.places_in(place.0, &key).position(|known| known == place).unwrap_or_default();
        if let Some(given) = state.given.iter_mut().rev().find(|(known, ..)| *known == key) {
            (given.1, given.2) = (time, place);
        }
        if let Some(from) = state.chosen.filter(|from| *from != place.0) {
            self.rebind(state, from, place.0);
        }
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
                let used = |request: &RecordedRequest| request.method.starts_with(feature) && matches!(request.outcome, Outcome::Result(_));
                if session.requests.iter().any(used) {
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
