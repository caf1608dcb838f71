//! Internal deviations: wrong behavior that cannot be caused by changing a message or its bytes. Each is looked up at
//! the one place where it happens.

/// One thing that the server does not do, or does differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InternalDeviation {
    /// The server exits when a client disconnects before it has its response.
    AbortsKill,
    /// A client that disconnects before it has its response loses its session.
    AbortsEndSessions,
    AnyTokenIsGood,
    /// The server pings the client on each stream, and returns 200 and an empty object for its responses.
    AnswersGet200,
    /// Over HTTP+SSE every response goes to the client that initialized last.
    AnswersGoToTheLast,
    /// Over HTTP+SSE every response goes to all clients.
    AnswersGoToAll,
    Base64Undecoded,
    /// A body over HTTP ends where nothing comes for a moment, whatever its length.
    BodiesEndAtPauses,
    /// The newest revision of the server is 2025-03-26, and it rejects batches.
    BatchesRefused,
    /// A call over HTTP ends its connection, and gets no response.
    CallsHangUp,
    /// A call of `echo` gets no response while others are under way.
    CallsLostBesideOthers,
    /// A call of `echo` asks the user for a name, and does not end if the user closes the form.
    CanceledFormsHang,
    /// The same, and the server exits.
    CanceledFormsKill,
    CancelledRequestsAnswered,
    /// A client whose roots have changed gets an error for the list of tools.
    ChangedRootsBreakLists,
    /// A connection closes after a response without `Connection: close`.
    ConnectionsCloseUnsaid,
    ContentTypeUnchecked,
    /// Cursors are valid only in the process that issued them.
    CursorsOfOneProcess,
    /// Each read of stdin is decoded by itself.
    DecodesEachRead,
    /// A call of `echo` asks the user for a name, and breaks if the user declines.
    DeclinesBreak,
    /// A DELETE ends the sessions of all clients.
    EndsAllSessions,
    /// A call of `echo` asks the user for a name until there is one.
    FormsWithoutEnd,
    HostUnchecked,
    /// Only the beginning of a host is compared with the local ones.
    HostsByTheirBeginning,
    /// Only the port of a host is compared with that of the server.
    HostsByTheirPort,
    ListensEverywhere,
    MethodHeaderUnchecked,
    MethodHeaderUncheckedForCalls,
    MethodHeaderUncheckedForSubscriptions,
    /// A request without a session id gets any session.
    MissingSessionsServed,
    NameHeaderInAnyCase,
    NameHeaderUnchecked,
    NewSessionsEndOthers,
    /// A notification over HTTP ends its connection, and gets no response.
    NotificationsHangUp,
    NullOriginWelcome,
    OriginUnchecked,
    OriginUncheckedForDelete,
    OriginUncheckedForGet,
    /// Only the beginning of an origin is compared with the local ones.
    OriginsByTheirBeginning,
    /// A call of `echo` sends the user to a page if the client declares elicitation, in whatever mode.
    PagesForAnyElicitation,
    ParameterExpectedForNull,
    ParameterHeadersUnchecked,
    ParameterInAnyLetters,
    ParameterNumbersAreTexts,
    /// A stream that is resumed brings the messages of all streams. Only such a server gives its events ids.
    ResumesAllStreams,
    SessionsOutliveTheirEnd,
    /// A GET opens an event stream also in a session that has ended.
    StreamsInEndedSessions,
    /// The event stream of a call stays open after the response.
    StreamsOfCallsStayOpen,
    /// An event stream stays open after the response.
    StreamsStayOpen,
    /// A call of `echo` asks the model, with tools, if the client declares sampling, be it without tools.
    ToolsForAnySampling,
    /// An unknown session id creates a session.
    UnknownSessionsServed,
    UnknownSessionsGet400,
    EndedSessionsGet400,
    /// A request of the modern era in an unsupported version ends its connection, and gets no response.
    UnknownVersionsHangUp,
    VersionHeaderUnchecked,
    VersionHeaderUncheckedForDelete,
    VersionHeaderUncheckedForGet,
}
