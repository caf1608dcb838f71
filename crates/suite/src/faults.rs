//! Reads `faults:` of a server, a transport or a test, and faults that stand alone: what goes wrong between the client and the
//! server. The one place that knows the words for faults. Knows no wire.

use super::document::{Kind, Node};
use super::format::{Fault as Unreadable, Key, Object, Presence, Shape};
use super::plan::Fault;
use super::reader::Reader;
use super::source::{Source, Span};
use super::{Environment, document, without_credentials};
use mcproof_client::{FaultDirection, FaultRule, InjectedFault, Schedule};
use mcproof_protocol::methods;
use mcproof_record::Diagnostic;
use std::path::Path;
use std::time::Duration;

pub(crate) const FAULTS_DOC: &str = "faults to inject between client and server: a map, or a list of maps";

/// Notifications that come before one message.
const MOST_CHANGES: u32 = 100_000;

/// One fault. Nothing happens to the handshake, unless `method` names it.
pub static FAULT: Object<FaultDraft> = Object {
    name: "a fault",
    keys: &[
        Key {
            name: "latency",
            doc: "delays each message by this time",
            shape: Shape::Duration,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let delay = reader.duration(node)?;
                draft.be(InjectedFault::Latency { delay, jitter: Duration::ZERO }, reader)
            },
        },
        Key {
            name: "throttle",
            doc: "limits the rate to this many bytes per second",
            shape: Shape::Count,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let bytes_per_second = read_count(reader, node)?;
                draft.be(InjectedFault::Throttle { bytes_per_second }, reader)
            },
        },
        Key {
            name: "drip",
            doc: "messages come in small pieces, spread over this time",
            shape: Shape::Duration,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let over = reader.duration(node)?;
                draft.be(InjectedFault::Drip { over }, reader)
            },
        },
        of_kind("drop", "messages are lost", |reader, node, draft| read_injected(reader, node, draft, InjectedFault::Drop)),
        of_kind("duplicate", "messages come twice", |reader, node, draft| read_injected(reader, node, draft, InjectedFault::Duplicate)),
        of_kind("reorder", "messages are swapped with the next one", |reader, node, draft| {
            read_injected(reader, node, draft, InjectedFault::Reorder)
        }),
        of_kind("truncate", "messages are cut in half", |reader, node, draft| read_injected(reader, node, draft, InjectedFault::Truncate)),
        of_kind("reset", "the connection breaks in place of a message; over stdio both pipes close", |reader, node, draft| {
            read_injected(reader, node, draft, InjectedFault::Reset)
        }),
        of_kind("cut", "the connection breaks in the middle of a message", |reader, node, draft| {
            read_injected(reader, node, draft, InjectedFault::Cut)
        }),
        Key {
            name: "list_changes",
            doc: "a message of the server comes after this many `notifications/tools/list_changed`",
            shape: Shape::Count,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let count = reader.count(node)?;
                if count > MOST_CHANGES {
                    reader.error("too-many", format!("at most {MOST_CHANGES} notifications are sent before a message"), node.span);
                    return Err(Unreadable::Reported);
                }
                draft.be(InjectedFault::ListChanges { count }, reader)
            },
        },
        Key {
            name: "buffer",
            doc: "a message and all that follow it are held back until there are this many bytes, or the stream ends",
            shape: Shape::Count,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let bytes = usize::try_from(read_count(reader, node)?).unwrap_or(usize::MAX);
                draft.be(InjectedFault::Buffer { bytes }, reader)
            },
        },
        Key {
            name: "idle_cut",
            doc: "a connection on which nothing passes for this time breaks",
            shape: Shape::Duration,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let after = reader.duration(node)?;
                draft.be(InjectedFault::IdleCut { after }, reader)
            },
        },
        of_kind("end_session", "HTTP requests get status 404, and so does every later request of their session", |reader, node, draft| {
            read_injected(reader, node, draft, InjectedFault::EndSession)
        }),
        of_kind("expire_token", "HTTP requests get status 401, and so does every later request with their token", |reader, node, draft| {
            read_injected(reader, node, draft, InjectedFault::ExpireToken)
        }),
        Key {
            name: "status",
            doc: "HTTP requests get a response with this status, such as 503, and do not reach the server",
            shape: Shape::Number,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let number = reader.number(node)?;
                match u16::try_from(number) {
                    Ok(code @ 400..=599) => draft.be(InjectedFault::Status { code, retry_after: None }, reader),
                    _ => {
                        let diagnostic = Diagnostic::error("bad-status", format!("{number} is not the status of a failure"));
                        reader.report(diagnostic.hint("failures have a status from 400 to 599, such as 503"), node.span);
                        Err(Unreadable::Reported)
                    }
                }
            },
        },
        Key {
            name: "jitter",
            doc: "with `latency`: adds a random delay up to this time",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.jitter = Some((reader.duration(node)?, reader.key));
                Ok(())
            },
        },
        Key {
            name: "retry_after",
            doc: "with `status`: the `Retry-After` header",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.retry_after = Some((reader.duration(node)?, reader.key));
                Ok(())
            },
        },
        Key {
            name: "to",
            doc: "`client` (what the server says; the default) or `server` (what the client says)",
            shape: Shape::Word(&["client", "server"]),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let toward = match reader.text(node)?.as_str() {
                    "client" => FaultDirection::Client,
                    "server" => FaultDirection::Server,
                    _ => return Err(Unreadable::Shape),
                };
                draft.toward = Some((toward, reader.key));
                Ok(())
            },
        },
        Key {
            name: "method",
            doc: "only requests of this method and their responses, or notifications of it",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.method = Some((read_name(reader, node)?, node.span));
                Ok(())
            },
        },
        Key {
            name: "tool",
            doc: "only calls of this tool and their responses",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.tool = Some(read_name(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "first",
            doc: "only the first N messages",
            shape: Shape::Count,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let count = read_count(reader, node)?;
                draft.on("first", Schedule::First(count), reader)
            },
        },
        Key {
            name: "every",
            doc: "only every Nth message",
            shape: Shape::Count,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let count = read_count(reader, node)?;
                draft.on("every", Schedule::Every(count), reader)
            },
        },
        Key {
            name: "probability",
            doc: "each message with this probability, between 0 and 1",
            shape: Shape::Share,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let share = reader.final_value(node).to_value().as_f64().filter(|share| *share > 0.0 && *share <= 1.0);
                let chance = share.ok_or(Unreadable::Shape)?;
                draft.on("probability", Schedule::Probability(chance), reader)
            },
        },
        Key {
            name: "seed",
            doc: "seed of the random numbers for `probability` and `jitter`: the same seed gives the same faults",
            shape: Shape::Number,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.seed = Some((reader.number(node)?, reader.key));
                Ok(())
            },
        },
    ],
    later: &[],
};

type Read = fn(&mut Reader<'_>, &Node, &mut FaultDraft) -> Result<(), Unreadable>;

/// A kind of fault that needs no number.
const fn of_kind(name: &'static str, doc: &'static str, read: Read) -> Key<FaultDraft> {
    Key { name, doc, shape: Shape::Nothing, presence: Presence::OneOf, read }
}

fn read_injected(reader: &mut Reader<'_>, node: &Node, draft: &mut FaultDraft, disturbance: InjectedFault) -> Result<(), Unreadable> {
    reader.nothing_or_true(node)?;
    draft.be(disturbance, reader)
}

#[derive(Default)]
pub struct FaultDraft {
    disturbance: Option<(InjectedFault, Span)>,
    jitter: Option<(Duration, Span)>,
    retry_after: Option<(Duration, Span)>,
    toward: Option<(FaultDirection, Span)>,
    method: Option<(String, Span)>,
    tool: Option<String>,
    schedule: Option<(&'static str, Schedule)>,
    seed: Option<(u64, Span)>,
}

impl FaultDraft {
    fn be(&mut self, disturbance: InjectedFault, reader: &Reader<'_>) -> Result<(), Unreadable> {
        self.disturbance = Some((disturbance, reader.key));
        Ok(())
    }

    fn on(&mut self, name: &'static str, schedule: Schedule, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
        if let Some((first, _)) = self.schedule {
            reader.error("conflicting-keys", format!("a fault has `{first}` or `{name}`, not both"), reader.key);
            return Err(Unreadable::Reported);
        }
        self.schedule = Some((name, schedule));
        Ok(())
    }
}

/// Reads faults that stand alone: a map, a list of maps, or either below `faults:`. `seed` is that of the first
/// one, and they count on from there, where they have none of their own.
///
/// # Errors
/// All mistakes, in the order of their places.
pub fn load(name: &str, text: &str, seed: u64, environment: &Environment) -> Result<Vec<Fault>, Vec<Diagnostic>> {
    let source = Source::new(name, text);
    let (tree, mistakes) = document::parse(&source, 0);
    let mut reader = Reader::new(&source, Path::new("."), environment);
    reader.diagnostics = mistakes;
    for empty in reader.diagnostics.iter_mut().filter(|diagnostic| diagnostic.code == "empty-file") {
        empty.hint = Some("faults are a map or a list of maps, such as `latency: 200ms`".into());
    }
    let faults = tree.as_ref().map(|tree| {
        let node = match &tree.kind {
            Kind::Map(entries) if entries.len() == 1 => tree.get("faults").unwrap_or(tree),
            _ => tree,
        };
        let nodes = match &node.kind {
            Kind::Seq(nodes) => nodes.as_slice(),
            Kind::Map(_) => std::slice::from_ref(node),
            _ => {
                reader.wrong_type("a map, or a list of maps", node);
                return Vec::new();
            }
        };
        if nodes.is_empty() {
            reader.error("no-faults", "there are no faults in this list", node.span);
        }
        // Faults with the same dice would hit the same messages.
        let seeds = (0..).map(|index| seed.wrapping_add(index));
        nodes.iter().zip(seeds).filter_map(|(node, seed)| read_fault(&mut reader, node, seed)).collect::<Vec<_>>()
    });
    match faults {
        Some(faults) if reader.mistakes() == 0 => Ok(faults),
        _ => {
            let mut mistakes = without_credentials(reader.diagnostics, environment);
            mistakes.sort_by_key(|mistake| mistake.place.as_ref().map(|place| (place.line, place.column)));
            Err(mistakes)
        }
    }
}

/// Reads the value of `faults:`.
pub(crate) fn read_faults(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<Fault>, Unreadable> {
    let nodes = match &node.kind {
        Kind::Map(_) => std::slice::from_ref(node),
        Kind::Seq(nodes) => nodes,
        Kind::Broken => return Err(Unreadable::Reported),
        _ => return Err(Unreadable::Shape),
    };
    let faults: Vec<Option<Fault>> = nodes.iter().map(|node| read_fault(reader, node, 1)).collect();
    faults.into_iter().collect::<Option<_>>().ok_or(Unreadable::Reported)
}

fn read_fault(reader: &mut Reader<'_>, node: &Node, seed: u64) -> Option<Fault> {
    let mut draft = FaultDraft::default();
    if !FAULT.read(reader, node, &mut draft) {
        return None;
    }
    let before = reader.mistakes();
    let (disturbance, key) = draft.disturbance?;
    let disturbance = match disturbance {
        InjectedFault::Latency { delay, .. } => {
            let jitter = draft.jitter.take().map_or(Duration::ZERO, |(jitter, _)| jitter);
            InjectedFault::Latency { delay, jitter }
        }
        InjectedFault::Status { code, .. } => {
            let retry_after = draft.retry_after.take().map(|(after, _)| after);
            InjectedFault::Status { code, retry_after }
        }
        other => other,
    };
    let is_of_silence = matches!(disturbance, InjectedFault::IdleCut { .. });
    let mut meaningless = |name: &str, needs: &str, key: Span| {
        reader.error("inapplicable-key", format!("`{name}` means nothing without {needs}"), key);
    };
    if let Some((_, key)) = draft.jitter {
        meaningless("jitter", "`latency`", key);
    }
    if let Some((_, key)) = draft.retry_after {
        meaningless("retry_after", "`status`", key);
    }
    let rolls = matches!(draft.schedule, Some((_, Schedule::Probability(_))))
        || matches!(disturbance, InjectedFault::Latency { jitter, .. } if !jitter.is_zero());
    if let Some((_, key)) = draft.seed.filter(|_| !rolls) {
        meaningless("seed", "`probability` or `jitter`", key);
    }
    if let (true, Some((_, key))) = (is_of_silence || disturbance.only_toward().is_some(), draft.toward) {
        reader.error("inapplicable-key", "`to` has no effect: this fault has one direction only", key);
    }
    if is_of_silence && (draft.method.is_some() || draft.tool.is_some() || draft.schedule.is_some()) {
        let what = "`idle_cut` is about connections: `method`, `tool`, `first`, `every` and `probability` have no effect";
        reader.error("inapplicable-key", what, key);
    }
    if let (Some(_), Some((method, span))) = (&draft.tool, &draft.method)
        && method != methods::TOOLS_CALL
    {
        let diagnostic = Diagnostic::error("inapplicable-key", format!("`tool` chooses among calls, and `{method}` is none"));
        reader.report(diagnostic.hint("leave out `method`, or `tool`"), *span);
    }
    let rule = FaultRule {
        disturbance,
        toward: draft.toward.map_or(FaultDirection::Client, |(toward, _)| toward),
        method: draft.method.map(|(method, _)| method),
        tool: draft.tool,
        schedule: draft.schedule.map_or(Schedule::Always, |(_, schedule)| schedule),
        seed: draft.seed.map_or(seed, |(seed, _)| seed),
    };
    (reader.mistakes() == before).then(|| Fault { rule, place: reader.place(key) })
}

/// Nothing has a name without characters: such a fault would hit nothing.
fn read_name(reader: &mut Reader<'_>, node: &Node) -> Result<String, Unreadable> {
    let name = reader.text(node)?;
    if name.trim().is_empty() {
        let diagnostic = Diagnostic::error("empty-name", "the name is empty, so that the fault selects nothing");
        reader.report(diagnostic.hint("write a name, or leave out the key to select all"), node.span);
        return Err(Unreadable::Reported);
    }
    Ok(name)
}

fn read_count(reader: &mut Reader<'_>, node: &Node) -> Result<u64, Unreadable> {
    match reader.number(node)? {
        0 => Err(Unreadable::Shape),
        count => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let loaded = load("faults.yaml", text, 7, &Environment::default());
        let shown = match &loaded {
            Ok(faults) => Ok(faults
                .iter()
                .map(|Fault { rule, place }| format!("{}: {:?} {:?} {}", place.line, rule.disturbance, rule.schedule, rule.seed))
                .collect::<Vec<_>>()
                .join("; ")),
            Err(mistakes) => Err(mistakes.iter().map(|mistake| mistake.code.to_string()).collect::<Vec<_>>().join("; ")),
        };
        assert_eq!(shown.as_deref().map_err(String::as_str), expected, "{text}");
    }

    #[test]
    fn faults_stand_alone_as_a_map_a_list_or_below_their_key() {
        check("reset:", Ok("1: Reset Always 7"));
        check(
            "- { cut: , first: 2 }\n- { drip: 2s, seed: 3, probability: 0.5 }",
            Ok("1: Cut First(2) 7; 2: Drip { over: 2s } Probability(0.5) 3"),
        );
        check("faults:\n  list_changes: 40", Ok("2: ListChanges { count: 40 } Always 7"));
        check("{ buffer: 4096 }", Ok("1: Buffer { bytes: 4096 } Always 7"));
        check(
            "[{ end_session: }, { expire_token: }, { idle_cut: 60s }]",
            Ok("1: EndSession Always 7; 1: ExpireToken Always 8; 1: IdleCut { after: 60s } Always 9"),
        );
    }

    #[test]
    fn what_cannot_be_meant_is_a_mistake() {
        check("", Err("empty-file"));
        check("[]", Err("no-faults"));
        check("reset", Err("wrong-type"));
        check("{ reset: , tol: search }", Err("unknown-key"));
        check("{ idle_cut: 1s, tool: search }", Err("inapplicable-key"));
        check("{ reset: , tool: \"\" }", Err("empty-name"));
        check("{ reset: , method: \" \", probability: 0.5 }", Err("empty-name"));
        check("{ end_session: , to: client }", Err("inapplicable-key"));
        check("{ list_changes: 4, to: server }", Err("inapplicable-key"));
        check("{ reset: , cut: }", Err("conflicting-keys"));
    }
}
