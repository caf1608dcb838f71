//! Slips: what the server gets wrong inside, where no message or byte could be changed from outside. Each is looked up at
//! the one place where it happens.

/// One thing that the server does not do, or does otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slip {
    /// The server dies when a client goes before it has its answer.
    AbortsKill,
    AnyTokenIsGood,
    /// The responses of a client, which is pinged on each stream, get 200 and an empty object.
    AnswersGet200,
    /// Over HTTP+SSE every response goes to the client that initialized last.
    AnswersGoToTheLast,
    /// Over HTTP+SSE every response goes to all clients.
    AnswersGoToAll,
    Base64Undecoded,
    /// The server speaks 2025-03-26 at most, and takes no batches.
    BatchesRefused,
    /// A call over HTTP ends its connection, and gets no response.
    CallsHangUp,
    CancelledRequestsAnswered,
    /// A connection ends after a response that did not say so.
    ConnectionsCloseUnsaid,
    ContentTypeUnchecked,
    /// Cursors mean something to the process that gave them only.
    CursorsOfOneProcess,
    HostUnchecked,
    ListensEverywhere,
    MethodHeaderUnchecked,
    MethodHeaderUncheckedForCalls,
    /// Without a session id, any session will do.
    MissingSessionsServed,
    NameHeaderUnchecked,
    NullOriginWelcome,
    OriginUnchecked,
    OriginUncheckedForGet,
    /// Whatever begins as an origin of this machine does is one.
    OriginsByTheirBeginning,
    ParameterExpectedForNull,
    ParameterHeadersUnchecked,
    ParameterInAnyLetters,
    ParameterNumbersAreTexts,
    SessionsOutliveTheirEnd,
    /// An event stream goes on after the answer.
    StreamsStayOpen,
    /// A session id that nobody was given is one from now on.
    UnknownSessionsServed,
    UnknownSessionsGet400,
    EndedSessionsGet400,
    VersionHeaderUnchecked,
}
