//! Marks that an exploration leaves in its conversations, and that rules look for. Names and bounds only.

use serde_json::{Value, json};

/// Pages of one list that are asked for at most, and the time that they may take.
pub const MOST_PAGES: usize = 1000;

/// So many pages in a row that bring nothing new are no list any more.
pub const MOST_IDLE_PAGES: usize = 10;
/// From here on nothing was tried for want of time: a mark for the judges, with the reason.
pub const LEFT_OUT: &str = "left-out";
/// What the reason says where it was the deadline of the check, or a conversation's part of it.
pub const DEADLINE: &str = "the check's deadline of";
/// Begins the ids of requests that are posted as they stand: only their HTTP response is waited for.
pub const POSTED: &str = "http ";
/// Starts the progress token of requests that go out a few at a time, and are given up after a while of our choosing.
const PARALLEL_TOKEN: &str = "mcproof-parallel-";
/// Ends it, with what a server that knows only small letters, or only ASCII, does not give back as it came.
const PARALLEL_TOKEN_END: &str = "-Größe";
/// The first of these tokens that are numbers. All are below 2^31, and nothing else has them.
const PARALLEL_TOKENS_FROM: u64 = 1_460_000_000;
const MOST_PARALLEL_TOKENS: u64 = 100_000_000;
/// Starts the text that each of several calls at once has for itself.
pub const AT_ONCE: &str = "mcproof-at-once-";
/// The numbers of the same purpose: no two are neighbors, so that a server that counts on from one does not name another.
pub const AT_ONCE_NUMBERS: [u64; 5] = [731_001, 736_207, 742_513, 749_821, 757_033];
/// A request that has the id of another client's: its subject is what that one asks meanwhile, as JSON.
pub const SAME_ID: &str = "same-id";
/// What the processes of a server hold after a round of calls.
pub const HOLDING: &str = "holding";
/// The same after rounds that only tell a leak of memory from what is reclaimed in time.
pub const HOLDING_MEMORY: &str = "holding-memory";
/// Of the last count, after a rest.
pub const AT_REST: &str = "at-rest";
/// Calls between two counts.
pub const GROWTH_CALLS: usize = 8;
/// Counts after the first one, which comes when the server is warm.
pub const GROWTH_ROUNDS: usize = 3;
/// Counts after the first one of what grows in all rounds until then: a pool that fills up at its first uses is no leak.
pub const GROWTH_MOST_ROUNDS: usize = 12;
/// What growth of memory is a leak: 160 KiB with each call, 512 MiB in all.
pub const GROWTH_MEMORY: MemoryGrowth = MemoryGrowth { each_call: 160, leak: 512 << 10 };
/// What was looked at only in part: a mark for the report, with a sentence.
pub const EXPLORED_IN_PART: &str = "sampled";
/// A tool that was to be called and that no list has: a mark for the report, with its name.
pub const UNKNOWN_CALL: &str = "call-unlisted";
/// A start of the server as a desktop host does it: a mark whose subject tells why that failed.
pub const HOST_START: &str = "host-start";
/// A request in a form that not every client sends: a mark for the judges, with the form.
pub const LEGAL_FORM: &str = "legal-form";
/// What `tasks/get` was asked with another task in `_meta`.
pub const MISLED: &str = "with another task in `_meta`";
/// In `_meta`, which task a message belongs to.
pub const RELATED: &str = "io.modelcontextprotocol/related-task";
/// A request in one of two sessions, the DELETE of the other one, and a request like the first.
pub const BEFORE_OTHER_ENDS: &str = "before-other-session-ends";
pub const OTHER_ENDS: &str = "other-session-ends";
pub const AFTER_OTHER_ENDED: &str = "after-other-session-ended";
/// A request whose `Accept` lists both media types in another form: its subject is the value.
pub const ACCEPT_FORM: &str = "accept-form";
/// The name of a tool that no server has, in characters of several bytes.
pub const WIDE_NAME: &str = "mcproof-道具";
/// A request with that name, and one whose bytes arrive in two pieces, cut within the name.
pub const IN_ONE_PIECE: &str = "in-one-piece";
pub const IN_PIECES: &str = "in-pieces";
/// A POST whose body is in the chunked transfer coding.
pub const CHUNKED_BODY: &str = "chunked-body";
/// Two notifications on one connection.
pub const KEPT_CONNECTION: &str = "kept-connection";
/// A notification while another connection is open on which the same had its response. That it gets its own only when the first connection
/// was closed is silence.
pub const BESIDE: &str = "beside-open-connection";
/// The same while an event stream is open.
pub const BESIDE_STREAM: &str = "beside-open-stream";
/// Why nothing more was tried on a server for which an event stream is in the way of everything else.
pub const ONE_CONNECTION: &str = "the server serves one connection at a time, so that nothing can be tried beside an event stream";
/// A GET and a DELETE with a protocol version that does not exist.
pub const BAD_VERSION_GET: &str = "bad-version-get";
pub const BAD_VERSION_DELETE: &str = "bad-version-delete";
/// A request in a session of its own, before and after connections of that session were closed early.
pub const BEFORE_ABORT_IN_SESSION: &str = "before-abort-in-session";
pub const AFTER_ABORT_IN_SESSION: &str = "after-abort-in-session";
/// Of a message to an endpoint that no stream has.
pub const UNKNOWN_STREAM: &str = "unknown-stream";
/// A call with the input that the result before required, as a user who declines gives it.
pub const CALL_WITH_INPUT: &str = "call-with-input";
/// The same as a user who closes each form gives it.
pub const CALL_WITH_CANCEL: &str = "call-with-canceled-input";
/// How often a call that requires input gets it.
pub const INPUT_ROUNDS: usize = 4;
/// A call of a host that can be asked, for what its user and its model say.
pub const CALL_AS_HOST: &str = "call-as-host";
/// The same of one whose user closes each form.
pub const CALL_AS_CANCELING_HOST: &str = "call-as-canceling-host";
/// The same of one that declares only a part of what the server asked for.
pub const CALL_AS_LIMITED_HOST: &str = "call-as-limited-host";
/// So often a call that does not end asks for the same, and gets a response, until it is endless.
pub const SAME_QUESTIONS: usize = 4;
/// What a host is asked without end gets a response so often.
pub const MOST_QUESTIONS: usize = 100;
/// A tool that never answered: a mark for the judges, with its name.
pub const UNANSWERED_CALL: &str = "call-unanswered";
/// A tool that answers what is usual, and not what is unusual: a mark for the judges, with its name and what is unusual.
pub const UNUSUAL_UNANSWERED: &str = "call-unusual-unanswered";
/// A tool that answers, unless another call is canceled meanwhile: a mark for the judges, with its name.
pub const SILENT_BESIDE_CANCELED: &str = "call-silent-beside-canceled";
/// The name of the conversations in which tools are called.
pub const CALLER: &str = "caller";
/// A tool that mostly answers at once, and at times late: a mark for the judges, with its name.
pub const SLOW_AT_TIMES: &str = "call-slow-at-times";
/// A tool that answered at once, and never again: a mark for the judges, with its name.
pub const SILENT_AGAIN: &str = "call-silent-again";
/// A request that got no response, not even when it was sent again by itself: a mark for the judges on the last attempt, with the tool or what else
/// was asked for.
pub const LOST_REQUEST: &str = "request-lost";
/// The same of a call with wrong arguments, which does no work.
pub const LOST_REFUSAL: &str = "refusal-lost";
/// The same of one that gets its response by itself, and not if several like it are under way.
pub const LOST_AT_ONCE: &str = "request-lost-at-once";

/// What the fixtures of the conformance suite are filled in with.
pub mod fixtures {
    /// What the model says when it is asked; no server says that by itself.
    pub const SAMPLED: &str = "mcproof-sampled-text";
    /// What the user enters.
    pub const ENTERED: &str = "mcproof-entered-text";
    /// What a form is filled in with that a result shows: what stands for any text.
    pub const ENTERED_IN_FORM: &str = crate::arguments::WORD;
    /// The arguments of the prompt that has two.
    pub const PROMPTED: [&str; 2] = ["mcproof-first-argument", "mcproof-second-argument"];
    /// The resource that a prompt is to embed.
    pub const EMBEDDED: &str = "test://mcproof-embedded";
    /// A resource of the template.
    pub const OF_TEMPLATE: &str = "test://template/123/data";
    pub const TEMPLATE: &str = "test://template/{id}/data";
}

/// The completion of an argument whose value a user has begun to type.
pub const COMPLETE_TYPED: &str = "complete-typed";
/// A subscription to a resource that is subscribed to.
pub const SUBSCRIBE_AGAIN: &str = "subscribe-again";
/// A subscription to changes that the server does not declare.
pub const LISTEN_TO_UNDECLARED: &str = "listen-to-undeclared";
/// Of a page that a tool names: its subject is the URI.
pub const READ_APP: &str = "read-app";
pub const APP_SCHEME: &str = "ui://";
/// An ordinary request before anything else: what a server does after abuse tells nothing if it was not well before.
pub const CONTROL: &str = "control";

/// The JSON types that a progress token may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenType {
    Number,
    Text,
}

impl TokenType {
    /// The one of the two that this is not.
    pub const fn other(self) -> Self {
        match self {
            Self::Number => Self::Text,
            Self::Text => Self::Number,
        }
    }
}

/// The progress token of a request that goes out with a few others, by its number among all of them.
pub fn parallel_token(number: usize, token_type: TokenType) -> Value {
    match token_type {
        TokenType::Number => json!(PARALLEL_TOKENS_FROM + number as u64),
        TokenType::Text => json!(format!("{PARALLEL_TOKEN}{number}{PARALLEL_TOKEN_END}")),
    }
}

/// The number of the request that such a token belongs to. Recordings of earlier versions have texts without an end.
pub fn parallel_number(token: &Value) -> Option<usize> {
    if let Some(number) = token.as_u64() {
        let number = number.checked_sub(PARALLEL_TOKENS_FROM).filter(|number| *number < MOST_PARALLEL_TOKENS)?;
        return usize::try_from(number).ok();
    }
    let number = token.as_str()?.strip_prefix(PARALLEL_TOKEN)?;
    let number = number.strip_suffix(PARALLEL_TOKEN_END).unwrap_or(number);
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
}

/// Whether a token is one of these as it was sent, to the last letter.
pub fn is_parallel_token(token: &Value) -> bool {
    let token_type = if token.is_string() { TokenType::Text } else { TokenType::Number };
    parallel_number(token).is_some_and(|number| parallel_token(number, token_type) == *token)
}

/// The page that a tool names, in the form of today or in the deprecated one.
pub fn page_of(tool: &Value) -> Option<&Value> {
    let meta = tool.get("_meta")?;
    meta.pointer("/ui/resourceUri").or_else(|| meta.get("ui/resourceUri"))
}

/// Where in an endpoint its session is named: the part in which it differs from another one, as far as a name reaches.
pub fn session_in(endpoint: &str, other: &str) -> Option<std::ops::Range<usize>> {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let (bytes, others) = (endpoint.as_bytes(), other.as_bytes());
    let start = bytes.iter().zip(others).position(|(one, other)| one != other)?;
    let room = bytes.len().min(others.len()) - start;
    let same = bytes.iter().rev().zip(others.iter().rev()).take(room).take_while(|(one, other)| one == other).count();
    let (mut start, mut end) = (start, bytes.len() - same);
    while start > 0 && is_of_name(bytes[start - 1]) {
        start -= 1;
    }
    while end < bytes.len() && is_of_name(bytes[end]) {
        end += 1;
    }
    (start < end && endpoint.is_char_boundary(start) && endpoint.is_char_boundary(end)).then_some(start..end)
}

/// When memory that grows with each call is not reclaimed any more. All in KiB.
#[derive(Clone, Copy, Debug)]
pub struct MemoryGrowth {
    /// Less with each call may be what a runtime sets aside when it is new.
    pub each_call: u64,
    /// More in all than a runtime lets garbage grow.
    pub leak: u64,
}

impl MemoryGrowth {
    /// The least growth in a round of calls that counts.
    pub const fn each_round(self) -> u64 {
        self.each_call * GROWTH_CALLS as u64
    }

    /// Whether memory grew by so much that it is a leak. `memory` is what was held after each round.
    pub fn is_leak(self, memory: &[u64]) -> bool {
        memory.len() > GROWTH_ROUNDS && memory.first().zip(memory.last()).is_some_and(|(first, last)| *last >= first + self.leak)
    }

    /// Whether it is not known yet: it grows still. Rounds that together add less than a part of them should are its end. A runtime takes
    /// memory in pieces, so that no single round tells.
    pub fn is_open(self, memory: &[u64]) -> bool {
        /// Rounds that should add something: what an allocator has freed it gives out again for a while.
        const LEVEL: usize = 16;
        let rounds = memory.len().saturating_sub(1);
        let first = rounds.min(GROWTH_ROUNDS);
        let begins = || memory[first].saturating_sub(memory[0]) >= self.each_round() * first as u64;
        // What was given back in one of them may come again.
        let least = self.each_round() * LEVEL as u64 / 4;
        let ends = || rounds > LEVEL && memory[rounds].abs_diff(memory[rounds - LEVEL]) < least;
        rounds > 0 && begins() && !ends() && !self.is_leak(memory)
    }

    /// Whether the later half of the rounds added next to nothing, where there was no time for more of them.
    pub fn is_level_at_last(self, memory: &[u64]) -> bool {
        const LEAST: usize = 4;
        let half = memory.len() / 2;
        let added = memory.last().zip(memory.get(half)).map(|(last, middle)| last.abs_diff(*middle));
        half >= LEAST && added.is_some_and(|added| added < self.each_round() * (memory.len() - half) as u64 / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parallel_token_is_known_in_both_types_and_only_as_it_was_sent() {
        for number in [0, 7, 4_711] {
            for token_type in [TokenType::Number, TokenType::Text] {
                let token = parallel_token(number, token_type);
                assert_eq!((parallel_number(&token), is_parallel_token(&token)), (Some(number), true), "{token}");
            }
        }
        let check = |token: Value, number: Option<usize>| {
            assert_eq!((parallel_number(&token), is_parallel_token(&token)), (number, false), "{token}");
        };
        check(json!("mcproof-parallel-7"), Some(7));
        check(json!("mcproof-parallel-07-Größe"), Some(7));
        for other in
            ["mcproof-parallel-7-größe", "mcproof-parallel-7-Gr??e", "mcproof-parallel-", "mcproof-parallel-+7", "mine", "1460000007"]
        {
            check(json!(other), None);
        }
        for other in [json!(0), json!(7), json!(-7), json!(1_459_999_999), json!(1_560_000_000), json!(1.5), Value::Null] {
            check(other, None);
        }
    }

    #[test]
    fn memory_that_grows_without_end_is_a_leak_and_what_is_reclaimed_is_none() {
        let check = |memory: &[u64], is_leak: bool, is_open: bool| {
            assert_eq!((GROWTH_MEMORY.is_leak(memory), GROWTH_MEMORY.is_open(memory)), (is_leak, is_open), "{memory:?}");
        };
        let growing = |step: u64, rounds: u64| (0..rounds).map(|round| 80_000 + step * round).collect::<Vec<_>>();
        check(&[], false, false);
        check(&growing(1_270, 4), false, false);
        check(&growing(1_280, 1), false, false);
        check(&growing(1_280, 2), false, true);
        check(&growing(1_280, 4), false, true);
        check(&growing(1_280, 411), true, false);
        check(&growing(400_000, 4), true, false);
        check(&growing(600_000, 2), false, true);
        // A runtime that has enough from then on.
        check(&[growing(20_000, 6), vec![180_000, 180_200]].concat(), false, true);
        check(&[growing(20_000, 6), vec![180_000; 10], vec![180_300; 8]].concat(), false, false);
        // What it gives out again for a while.
        check(&[growing(2_000, 6), vec![90_000; 8], vec![92_000, 94_000]].concat(), false, true);
        // What a runtime takes in pieces.
        check(&[80_000, 80_100, 82_500, 84_000, 84_000, 86_000], false, true);
        assert!(GROWTH_MEMORY.is_level_at_last(&[growing(5_000, 4), vec![95_500; 6]].concat()));
        assert!(!GROWTH_MEMORY.is_level_at_last(&growing(2_000, 12)) && !GROWTH_MEMORY.is_level_at_last(&growing(0, 6)));
        // One round in which it collects is not the end.
        check(&[growing(20_000, 6), vec![110_000]].concat(), false, true);
        check(&[growing(20_000, 6), vec![110_000, 130_000, 150_000]].concat(), false, true);
    }
}
