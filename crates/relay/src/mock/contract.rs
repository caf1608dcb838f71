//! Answers made from the lock of a contract: the lists as they were locked, and results that fit the output schemas. Knows
//! contracts, no recordings.

use super::answers::{Answers, Miss, MissReason, Script, ServerFacts, SessionState};
use super::recording::TimedStep;
use mcproof_analysis::arguments::minimal;
use mcproof_analysis::did_you_mean;
use mcproof_analysis::differences::schema_differences;
use mcproof_analysis::json_schema::Schema;
use mcproof_protocol::{Era, Revision};
use mcproof_record::{Contract, ContractLock};
use serde_json::{Map, Value, json};

/// What a server offers, and nothing of what it does.
pub struct ContractAnswers {
    legacy: Option<Contract>,
    modern: Option<Contract>,
}

const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A list of a contract: its method, its key in the result, and what one of its items is called.
const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

impl ContractAnswers {
    /// Of each era the contract that most was offered in: with all that a client can declare, if it was locked.
    pub fn new(lock: &ContractLock) -> Self {
        let of = |era: Era| {
            let keys = ["full", "own", "minimal"].map(|kind| format!("{era}/{kind}"));
            let named = keys.iter().find_map(|key| lock.contracts.get(key));
            let any = || lock.contracts.iter().find(|(key, _)| key.starts_with(era.as_str())).map(|(_, contract)| contract);
            named.or_else(any).cloned()
        };
        Self { legacy: of(Era::Legacy), modern: of(Era::Modern) }
    }

    /// Whether the server was locked with tasks, which a mock of it does not have: a lock does not tell how a task goes on.
    pub fn leaves_out_tasks(&self) -> bool {
        let declares = |contract: &Contract| {
            let extensions = contract.capabilities.get("extensions");
            let has_extension = extensions.is_some_and(|extensions| extensions.get(TASKS_EXTENSION).is_some());
            contract.capabilities.contains_key("tasks") || has_extension
        };
        let is_run_as_task = |tool: &Value| matches!(tool["execution"]["taskSupport"].as_str(), Some("required" | "optional"));
        let contracts = || self.legacy.iter().chain(&self.modern);
        contracts().any(declares) || contracts().filter_map(|contract| contract.tools.as_ref()).flatten().any(is_run_as_task)
    }

    /// The tools of whose output schemas no value is found: a call of one is a miss.
    pub fn unmade(&self) -> Vec<&str> {
        let has_none = |tool: &&Value| tool.get("outputSchema").is_some_and(|schema| minimal(schema).is_none());
        self.items("tools").iter().filter(has_none).filter_map(|tool| tool["name"].as_str()).collect()
    }

    fn contract(&self) -> Option<&Contract> {
        self.modern.as_ref().or(self.legacy.as_ref())
    }

    fn items(&self, key: &str) -> &[Value] {
        let Some(contract) = self.contract() else { return &[] };
        let list = match key {
            "tools" => &contract.tools,
            "prompts" => &contract.prompts,
            "resources" => &contract.resources,
            _ => &contract.resource_templates,
        };
        list.as_deref().unwrap_or_default()
    }

    fn named(&self, key: &str, member: &str, method: &str, params: &Value) -> Result<&Value, Miss> {
        let wanted = params.get(member).and_then(Value::as_str).unwrap_or_default();
        let names = || self.items(key).iter().filter_map(|item| item.get(member)?.as_str());
        self.items(key).iter().find(|item| item[member] == wanted).ok_or_else(|| {
            let near = did_you_mean(wanted, names()).map(str::to_owned);
            Miss::new(method, params, MissReason::UnknownName { near })
        })
    }

    fn call(&self, method: &str, params: &Value) -> Result<Script, Miss> {
        let tool = self.named("tools", "name", method, params)?;
        let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let refused = Schema::of(&tool["inputSchema"]).is_ok_and(|schema| schema.is_valid(&arguments) == Ok(false));
        if refused {
            let differences = schema_differences(&tool["inputSchema"], &arguments, "arguments").unwrap_or_default();
            let told =
                differences.first().map_or_else(String::new, |difference| format!(": {} is not {}", difference.path, difference.expected));
            return Ok(Script::result(json!({ "content": [said(&format!("invalid arguments{told}"))], "isError": true })));
        }
        let Some(schema) = tool.get("outputSchema") else {
            let name = tool["name"].as_str().unwrap_or_default();
            return Ok(Script::result(json!({ "content": [said(&format!("a result of `{name}`"))] })));
        };
        match minimal(schema) {
            Some(value) => Ok(Script::result(json!({ "content": [said(&value.to_string())], "structuredContent": value }))),
            None => Err(Miss::new(method, params, MissReason::NoValue)),
        }
    }

    fn read(&self, method: &str, params: &Value) -> Result<Script, Miss> {
        let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default();
        let templates = self.items("resourceTemplates").iter();
        let of_template = || templates.into_iter().find(|template| fits(template["uriTemplate"].as_str().unwrap_or_default(), uri));
        let resource = match self.named("resources", "uri", method, params) {
            Ok(resource) => resource,
            Err(miss) => of_template().ok_or(miss)?,
        };
        let kind = resource.get("mimeType").and_then(Value::as_str);
        let mut content = json!({ "uri": uri });
        if let Some(kind) = kind {
            content["mimeType"] = json!(kind);
        }
        match kind {
            Some(kind) if kind.ends_with("json") => content["text"] = json!("{}"),
            Some(kind) if !kind.starts_with("text/") && !kind.ends_with("xml") => content["blob"] = json!(""),
            _ => content["text"] = json!(format!("the content of {uri}")),
        }
        Ok(Script::result(json!({ "contents": [content] })))
    }

    fn prompt(&self, method: &str, params: &Value) -> Result<Script, Miss> {
        let prompt = self.named("prompts", "name", method, params)?;
        let given = |name: &Value| name.as_str().is_some_and(|name| params["arguments"].get(name).is_some());
        let declared = prompt["arguments"].as_array().into_iter().flatten();
        let missing = declared.filter(|argument| argument["required"] == true).find(|argument| !given(&argument["name"]));
        if let Some(missing) = missing {
            return Ok(Script::error(-32602, format!("argument {} is required", missing["name"])));
        }
        let name = prompt["name"].as_str().unwrap_or_default();
        Ok(Script::result(json!({ "messages": [{ "role": "user", "content": said(&format!("the prompt `{name}`")) }] })))
    }
}

impl Answers for ContractAnswers {
    fn eras(&self) -> Vec<Era> {
        let locked = [(Era::Legacy, &self.legacy), (Era::Modern, &self.modern)];
        locked.into_iter().filter(|(_, contract)| contract.is_some()).map(|(era, _)| era).collect()
    }

    fn about(&self, _: &mut SessionState, era: Era, _: &Value) -> ServerFacts {
        let own = if era == Era::Modern { &self.modern } else { &self.legacy };
        let Some(contract) = own.as_ref().or_else(|| self.contract()) else { return ServerFacts::default() };
        let mut capabilities = contract.capabilities.clone();
        // A lock does not tell how a task goes on.
        capabilities.shift_remove("tasks");
        if let Some(Value::Object(extensions)) = capabilities.get_mut("extensions") {
            extensions.shift_remove(TASKS_EXTENSION);
        }
        let version = contract.protocol_versions.iter().find(|version| Revision::at(version).era() == Era::Legacy);
        ServerFacts {
            server: contract.server.clone().unwrap_or_default(),
            capabilities,
            instructions: contract.instructions.clone(),
            legacy_version: version.cloned(),
            pinned_version: None,
            more: Map::new(),
        }
    }

    fn answer(&self, _: &mut SessionState, _: Era, method: &str, params: &Value) -> Result<Script, Miss> {
        if let Some((_, key)) = LISTS.iter().find(|(known, _)| *known == method) {
            if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
                return Ok(Script::error(-32602, "unknown cursor: the list is one page"));
            }
            let mut items = self.items(key).to_vec();
            for item in items.iter_mut().filter_map(Value::as_object_mut) {
                item.shift_remove("execution");
            }
            return Ok(Script::result(json!({ *key: items })));
        }
        match method {
            "tools/call" => self.call(method, params),
            "resources/read" => self.read(method, params),
            "prompts/get" => self.prompt(method, params),
            "completion/complete" => Ok(Script::result(json!({ "completion": { "values": [], "hasMore": false } }))),
            _ => Err(Miss::new(method, params, MissReason::UnknownMethod { known: Vec::new() })),
        }
    }

    fn noted(&self, _: &mut SessionState, _: &str) -> Vec<TimedStep> {
        Vec::new()
    }

    fn tool(&self, name: &str) -> Option<Value> {
        self.items("tools").iter().find(|tool| tool["name"] == name).cloned()
    }
}

fn said(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Whether a URI may come from a template (RFC 6570): its fixed parts stand in it, in order.
fn fits(template: &str, uri: &str) -> bool {
    let mut parts = template.split('{');
    let Some(mut rest) = parts.next().and_then(|first| uri.strip_prefix(first)) else { return false };
    for part in parts {
        let Some((_, fixed)) = part.split_once('}') else { return false };
        let Some((_, after)) = (if fixed.is_empty() { Some(("", rest)) } else { rest.split_once(fixed) }) else { return false };
        rest = after;
        if fixed.is_empty() {
            // The variable takes the rest, or what the next fixed part leaves of it.
            continue;
        }
    }
    rest.is_empty() || template.ends_with('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lock_says_of_tasks_is_known_to_be_left_out() {
        let check = |capabilities: Value, tool: Value, expected: bool| {
            let capabilities = capabilities.as_object().cloned().unwrap_or_default();
            let contract = Contract { capabilities, tools: Some(vec![tool]), ..Contract::default() };
            let answers = ContractAnswers::new(&ContractLock::new(None, [("legacy/full".to_owned(), contract)].into()));
            assert_eq!(answers.leaves_out_tasks(), expected);
        };
        let tool = || json!({ "name": "a" });
        check(json!({ "tools": {} }), tool(), false);
        check(json!({ "tools": {}, "tasks": {} }), tool(), true);
        check(json!({ "extensions": { TASKS_EXTENSION: {} } }), tool(), true);
        check(json!({}), json!({ "name": "a", "execution": { "taskSupport": "required" } }), true);
    }

    #[test]
    fn a_tool_of_whose_results_none_can_be_made_is_named_and_a_call_of_it_is_a_miss() {
        let tool = |name: &str, schema: Value| json!({ "name": name, "inputSchema": { "type": "object" }, "outputSchema": schema });
        let looks_around = json!({ "type": "object", "properties": { "a": { "pattern": "^(?=.*x)[a-z]+$" } }, "required": ["a"] });
        let tools = vec![tool("good", json!({ "type": "object" })), tool("bad", looks_around)];
        let contract = Contract { tools: Some(tools), ..Contract::default() };
        let answers = ContractAnswers::new(&ContractLock::new(None, [("legacy/full".to_owned(), contract)].into()));
        assert_eq!(answers.unmade(), ["bad"]);
        let call = |name: &str| answers.call("tools/call", &json!({ "name": name }));
        assert!(call("good").is_ok());
        assert_eq!(call("bad").map_err(|miss| miss.reason), Err(MissReason::NoValue));
    }

    #[test]
    fn a_template_fits_its_uris() {
        let check = |template, uri, expected| assert_eq!(fits(template, uri), expected, "{template} {uri}");
        check("demo://text/{id}", "demo://text/7", true);
        check("demo://text/{id}", "demo://blob/7", false);
        check("demo://{kind}/{id}.txt", "demo://a/b.txt", true);
        check("demo://{kind}/{id}.txt", "demo://a/b.png", false);
        check("demo://fixed", "demo://fixed", true);
        check("demo://fixed", "demo://fixed/more", false);
    }
}
