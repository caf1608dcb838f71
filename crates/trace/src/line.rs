//! The lines of a trace. In a file they are compressed, in a pipe they are plain; they are the same lines.

use crate::manifest::{Manifest, SessionInfo, SessionKey};
use mcproof_record::{Direction, Frame, FrameBody, FrameId, Place, Raw, Severity};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One line: an object with one member, which names its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TraceLine {
    /// Comes first, and once.
    Trace(Manifest),
    /// A session begins, or is described anew: the last line with its key holds.
    Session(SessionInfo),
    Frame(TracedFrame),
    Mark(Mark),
    Attachment(Attachment),
    Omitted(Omitted),
    /// Comes last. A trace without it was cut off: whoever wrote it was killed.
    End(End),
}

/// A frame and the session that it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracedFrame {
    pub session: SessionKey,
    pub id: FrameId,
    /// Time since the session began.
    #[serde(with = "micros", rename = "at_us")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub at: Duration,
    pub direction: Direction,
    pub body: FrameBody,
}

impl TracedFrame {
    pub fn new(session: SessionKey, Frame { id, at, direction, body }: Frame) -> Self {
        Self { session, id, at, direction, body }
    }

    /// The frame alone.
    pub fn into_frame(self) -> Frame {
        Frame { id: self.id, at: self.at, direction: self.direction, body: self.body }
    }
}

/// Something that is known about a session and was not on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mark {
    pub session: SessionKey,
    /// Time since the session began.
    #[serde(with = "micros", rename = "at_us")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub at: Duration,
    pub body: MarkBody,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum MarkBody {
    /// A step of a suite; it began at the time of the mark.
    Step {
        title: String,
        place: Place,
        #[serde(with = "micros", rename = "duration_us")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        duration: Duration,
        passed: bool,
    },
    /// What a rule reports.
    Finding {
        rule: String,
        severity: Severity,
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame: Option<FrameId>,
    },
    /// The verdict of the test that held the session.
    Verdict {
        passed: bool,
        message: String,
    },
    Note {
        text: String,
    },
}

/// The name of the attachment that is the contract of the server as a lock, as far as the traffic shows it.
pub const CONTRACT: &str = "mcproof.lock";

/// The name of the attachment that is the report of the probe, in the trace of one.
pub const PROBE: &str = "probe.json";

/// A file inside the trace: the contract (`mcproof.lock`), a suite, a screenshot. What is not known is left alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attachment {
    /// A relative path with `/`, without `..`.
    pub name: String,
    pub bytes: Raw,
}

/// Frames that were seen and are not in the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Omitted {
    pub session: SessionKey,
    pub frames: u64,
    /// A lowercase fragment without a final dot.
    pub reason: String,
}

/// The totals of a trace that was written to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct End {
    pub sessions: u32,
    /// Frames in the trace.
    pub frames: u64,
    /// Frames that were left out.
    pub omitted: u64,
}

pub(crate) mod micros {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(value.as_micros()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}
