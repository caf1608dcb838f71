//! What a server offers, next to what the cases of a run used of it. Knows lists and exchanges, not how a run goes.

use super::case::{RunContext, visit};
use super::expand::Work;
use super::sessions::Sessions;
use mcproof_analysis::diagnosis;
use mcproof_client::{ListFailure, Session};
use mcproof_protocol::methods;
use mcproof_record::{AnswerKind, CaseId, CaseOutcome, Coverage, CoveredItem, Diagnostic, Event, Exchange, ItemKind, StepOutcome};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// Whether a run reports what of its servers no case used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoverageMode {
    Off,
    /// At the end of the run each server is asked for its lists, in a session of its own.
    Servers,
}

/// Collects what the cases used.
#[derive(Default)]
pub(super) struct Collector {
    /// A case for each server of a suite, through which it can be reached: the first, or one that did reach it.
    usages: BTreeMap<ServerKey, ServerUsage>,
    cases: BTreeMap<CaseId, Work>,
}

/// Suite file and name of the server in it.
type ServerKey = (String, String);

struct ServerUsage {
    work: Work,
    is_reached: bool,
    uses: Uses,
}

impl Collector {
    pub(super) fn of(works: impl IntoIterator<Item = Work>) -> Self {
        let mut collector = Self::default();
        for work in works {
            for server in &work.plan.servers {
                let key = (work.plan.suite.clone(), server.clone());
                let usage = || ServerUsage { work: work.clone(), is_reached: false, uses: Uses::default() };
                collector.usages.entry(key).or_insert_with(usage);
            }
            collector.cases.insert(work.plan.id, work);
        }
        collector
    }

    pub(super) fn take(&mut self, outcome: &CaseOutcome) {
        let Some(work) = self.cases.get(&outcome.id) else { return };
        for proof in &outcome.proof {
            let key = (work.plan.suite.clone(), proof.server.clone());
            if let Some(usage) = self.usages.get_mut(&key).filter(|usage| !usage.is_reached) {
                usage.work = work.clone();
                usage.is_reached = true;
            }
        }
        for StepOutcome { server, exchanges, .. } in &outcome.steps {
            if let Some(usage) = self.usages.get_mut(&(work.plan.suite.clone(), server.clone())) {
                exchanges.iter().for_each(|exchange| usage.uses.take(exchange));
            }
        }
    }

    /// Asks each server, one after the other, for what it offers. A server that no case reached is not tried again: its failures
    /// are reported already.
    pub(super) async fn events(self, world: &RunContext) -> Vec<Event> {
        let mut events = Vec::new();
        for ((suite, server), usage) in self.usages {
            let place = usage.work.suite.servers.get(&server).map(|server| server.place.clone());
            let offered = if usage.is_reached { offer(&usage.work, &server, world).await } else { Err(unreached(&server)) };
            events.push(match offered {
                Ok(offer) => Event::Covered(Coverage { suite, server, items: offer.items(&usage.uses) }),
                Err(diagnostic) => Event::Notice { diagnostic: Diagnostic { place, ..diagnostic } },
            });
        }
        events
    }
}

fn unreached(server: &str) -> Diagnostic {
    let message = format!("the coverage of `{server}` is unknown, because no test reached it");
    Diagnostic::warning("coverage-unknown", message).hint("make one test of it pass first")
}

/// The lists of a server, in a session that is opened as a case opens one.
async fn offer(work: &Work, server: &str, world: &RunContext) -> Result<Offer, Diagnostic> {
    let deadline = world.options.request_timeout.unwrap_or(work.suite.timeouts.request);
    let unknown = |why: &str| {
        Diagnostic::warning("coverage-unknown", format!("the coverage of `{server}` is unknown: {why}"))
            .hint("run with --transport to ask it over another transport")
    };
    // What the cases used is named without secrets, too.
    let clean = |found: Result<Offer, Diagnostic>, sessions: &Sessions<'_>| match found {
        Ok(offer) => Ok(offer.map(|listed| sessions.without_secrets_in(listed))),
        Err(diagnostic) => Err(sessions.without_secrets(diagnostic)),
    };
    let asked = visit(
        work,
        world,
        server,
        async |open| {
            let offer = Offer::of(&open.session, deadline).await;
            offer.map_err(|failure| unknown(&failure.to_string()).evidence(diagnosis::evidence(&open.tap.transcript(), None)))
        },
        clean,
    );
    asked.await.unwrap_or_else(|diagnostic| Err(unknown(&diagnostic.message)))
}

/// What a server lists.
#[derive(Default)]
struct Offer {
    tools: Vec<Value>,
    prompts: Vec<Value>,
    resources: Vec<Value>,
    templates: Vec<Value>,
}

impl Offer {
    async fn of(session: &Session, deadline: Duration) -> Result<Self, ListFailure> {
        let has = |capability: &str| session.handshake().capabilities.get(capability).is_some();
        let list = async |capability: &str, method: &str, key: &str| {
            if !has(capability) {
                return Ok(Vec::new());
            }
            session.list(method, key, deadline).await.map(|listed| listed.items)
        };
        let templates = match list("resources", methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates").await {
            // Having resources does not mean having templates.
            Err(ListFailure::Rpc { .. }) => Vec::new(),
            other => other?,
        };
        Ok(Self {
            tools: list("tools", methods::TOOLS_LIST, "tools").await?,
            prompts: list("prompts", methods::PROMPTS_LIST, "prompts").await?,
            resources: list("resources", methods::RESOURCES_LIST, "resources").await?,
            templates,
        })
    }

    fn map(self, map: impl Fn(Value) -> Value) -> Self {
        let each = |listed: Vec<Value>| -> Vec<Value> { listed.into_iter().map(&map).collect() };
        let Self { tools, prompts, resources, templates } = self;
        Self { tools: each(tools), prompts: each(prompts), resources: each(resources), templates: each(templates) }
    }

    fn items(&self, uses: &Uses) -> Vec<CoveredItem> {
        let mut items = Vec::new();
        let mut add = |kind, name: &str, argument: Option<&str>, uses| {
            items.push(CoveredItem { kind, name: name.to_owned(), argument: argument.map(str::to_owned), uses });
        };
        let none = NamedUses::default();
        for tool in &self.tools {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let used = uses.tools.get(name).unwrap_or(&none);
            add(ItemKind::Tool, name, None, used.calls);
            add(ItemKind::ToolError, name, None, used.errors);
            let arguments = tool.pointer("/inputSchema/properties").and_then(Value::as_object);
            for argument in arguments.into_iter().flat_map(Map::keys) {
                add(ItemKind::ToolArgument, name, Some(argument), used.of(argument));
            }
        }
        for prompt in &self.prompts {
            let Some(name) = prompt.get("name").and_then(Value::as_str) else { continue };
            let used = uses.prompts.get(name).unwrap_or(&none);
            add(ItemKind::Prompt, name, None, used.calls);
            let arguments = prompt.get("arguments").and_then(Value::as_array);
            for argument in arguments.into_iter().flatten().filter_map(|argument| argument.get("name")?.as_str()) {
                add(ItemKind::PromptArgument, name, Some(argument), used.of(argument));
            }
        }
        for uri in self.resources.iter().filter_map(|resource| resource.get("uri")?.as_str()) {
            add(ItemKind::Resource, uri, None, uses.reads.get(uri).copied().unwrap_or_default());
        }
        for template in self.templates.iter().filter_map(|template| template.get("uriTemplate")?.as_str()) {
            let pattern = template_pattern(template);
            let fits = |uri: &str| pattern.as_ref().is_some_and(|pattern| pattern.is_match(uri));
            let used = uses.reads.iter().filter(|(uri, _)| fits(uri)).map(|(_, uses)| uses).sum();
            add(ItemKind::ResourceTemplate, template, None, used);
        }
        items
    }
}

/// What was used of one server.
#[derive(Default)]
struct Uses {
    tools: BTreeMap<String, NamedUses>,
    prompts: BTreeMap<String, NamedUses>,
    reads: BTreeMap<String, u32>,
}

/// Of one tool or prompt.
#[derive(Default)]
struct NamedUses {
    calls: u32,
    errors: u32,
    arguments: BTreeMap<String, u32>,
}

impl NamedUses {
    fn of(&self, argument: &str) -> u32 {
        self.arguments.get(argument).copied().unwrap_or_default()
    }

    fn take(&mut self, exchange: &Exchange) {
        self.calls += 1;
        self.errors += u32::from(matches!(exchange.answer, AnswerKind::ToolError | AnswerKind::RpcError));
        for argument in exchange.arguments.keys() {
            *self.arguments.entry(argument.clone()).or_default() += 1;
        }
    }
}

impl Uses {
    fn take(&mut self, exchange: &Exchange) {
        let Some(target) = &exchange.target else { return };
        match exchange.method.as_str() {
            methods::TOOLS_CALL => self.tools.entry(target.clone()).or_default().take(exchange),
            methods::PROMPTS_GET => self.prompts.entry(target.clone()).or_default().take(exchange),
            methods::RESOURCES_READ => *self.reads.entry(target.clone()).or_default() += 1,
            _ => {}
        }
    }
}

/// What URIs of a template (RFC 6570) look like. None where it is not a usable template.
fn template_pattern(template: &str) -> Option<regex::Regex> {
    let mut pattern = String::from("^");
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        let (expression, after) = after.split_once('}')?;
        pattern.push_str(&regex::escape(literal));
        pattern.push_str(match expression.chars().next()? {
            '+' | '#' => ".*",
            '/' => "(/[^/?#]*)*",
            '.' => r"(\.[^/?#]*)*",
            ';' => "(;[^/?#]*)*",
            '?' => r"(\?.*)?",
            '&' => "(&.*)?",
            _ => "[^/?#]*",
        });
        rest = after;
    }
    pattern.push_str(&regex::escape(rest));
    pattern.push('$');
    regex::Regex::new(&pattern).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn exchange(method: &str, target: &str, arguments: Value, answer: AnswerKind) -> Exchange {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let (method, target) = (method.to_owned(), Some(target.to_owned()));
        Exchange { method, target, arguments, answer, retried: false, duration: Duration::ZERO, frame: None }
    }

    fn check(offer: &Offer, exchanges: &[Exchange], expected: &[&str]) {
        let mut uses = Uses::default();
        exchanges.iter().for_each(|exchange| uses.take(exchange));
        let items = offer.items(&uses);
        let told = items.iter().map(|item| {
            let argument = item.argument.as_ref().map(|argument| format!(".{argument}")).unwrap_or_default();
            format!("{:?} {}{argument} {}", item.kind, item.name, item.uses)
        });
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn tools_are_used_by_calls_their_arguments_and_their_failures() {
        let tool = json!({ "name": "t", "inputSchema": { "properties": { "a": {}, "b": {} } } });
        let offer = Offer { tools: vec![tool, json!({ "name": "u" }), json!(7)], ..Offer::default() };
        check(&offer, &[], &["Tool t 0", "ToolError t 0", "ToolArgument t.a 0", "ToolArgument t.b 0", "Tool u 0", "ToolError u 0"]);
        let exchanges = [
            exchange("tools/call", "t", json!({ "a": 1 }), AnswerKind::Result),
            exchange("tools/call", "t", json!({ "a": 1, "c": 2 }), AnswerKind::ToolError),
            exchange("tools/call", "u", json!({}), AnswerKind::Nothing),
            exchange("tools/call", "unknown", json!({}), AnswerKind::RpcError),
            exchange("prompts/get", "u", json!({}), AnswerKind::Result),
        ];
        check(&offer, &exchanges, &["Tool t 2", "ToolError t 1", "ToolArgument t.a 2", "ToolArgument t.b 0", "Tool u 1", "ToolError u 0"]);
    }

    #[test]
    fn prompts_resources_and_templates_are_used_by_getting_and_reading() {
        let offer = Offer {
            prompts: vec![json!({ "name": "p", "arguments": [{ "name": "x" }, { "name": "y" }] })],
            resources: vec![json!({ "uri": "file:///a" }), json!({ "uri": "file:///b" })],
            templates: vec![json!({ "uriTemplate": "file:///{name}" }), json!({ "uriTemplate": "db://{table}/{id}" })],
            ..Offer::default()
        };
        let exchanges = [
            exchange("prompts/get", "p", json!({ "y": "1" }), AnswerKind::Result),
            exchange("resources/read", "file:///a", json!({}), AnswerKind::Result),
            exchange("completion/complete", "p", json!({ "x": "1" }), AnswerKind::Result),
        ];
        let expected = [
            "Prompt p 1",
            "PromptArgument p.x 0",
            "PromptArgument p.y 1",
            "Resource file:///a 1",
            "Resource file:///b 0",
            "ResourceTemplate file:///{name} 1",
            "ResourceTemplate db://{table}/{id} 0",
        ];
        check(&offer, &exchanges, &expected);
    }

    #[test]
    fn a_template_knows_its_uris() {
        let check = |template: &str, uri: &str, fits: bool| {
            let found = template_pattern(template).is_some_and(|pattern| pattern.is_match(uri));
            assert_eq!(found, fits, "{template} for {uri}");
        };
        check("a://{x}", "a://b", true);
        check("a://{x}", "a://b/c", false);
        check("a://{+x}", "a://b/c?d", true);
        check("a://{x}/y", "a://b/y", true);
        check("a://{x}/y", "a://b/z", false);
        check("a://x{/path*}", "a://x/b/c", true);
        check("a://x{?q,r}", "a://x?q=1&r=2", true);
        check("a://x{?q}", "a://x", true);
        check("a.b://x", "aXb://x", false);
        check("a://{x", "a://b", false);
        check("a://{}", "a://", false);
    }
}
