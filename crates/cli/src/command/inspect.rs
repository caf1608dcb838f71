//! `mcproof inspect TARGET --method M …`: sends any request, with the flags of the MCP Inspector CLI.

mod rewrite;

pub(crate) use rewrite::rewrite;

use super::SharedArgs;
use crate::arguments;
use crate::conversation::Watching;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::one_shot;
use crate::request::Request;
use crate::suggest;
use crate::target::Words;
use clap::builder::PossibleValuesParser;
use mcproof_protocol::{EraChoice, methods};
use serde_json::{Map, Value, json};

/// The levels of RFC 5424, which `logging/setLevel` takes.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The methods that the flags below are made for, for "did you mean".
const METHODS: [&str; 14] = [
    methods::INITIALIZE,
    methods::SERVER_DISCOVER,
    methods::PING,
    methods::TOOLS_LIST,
    methods::TOOLS_CALL,
    methods::RESOURCES_LIST,
    methods::RESOURCES_TEMPLATES_LIST,
    methods::RESOURCES_READ,
    methods::RESOURCES_SUBSCRIBE,
    methods::RESOURCES_UNSUBSCRIBE,
    methods::PROMPTS_LIST,
    methods::PROMPTS_GET,
    methods::COMPLETION_COMPLETE,
    methods::LOGGING_SET_LEVEL,
];

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "mcproof inspect TARGET --method METHOD [OPTIONS]\n       mcproof inspect COMMAND [ARGUMENT]... --method METHOD [OPTIONS]\n       mcproof inspect [URL] --method METHOD [OPTIONS] -- COMMAND [ARGUMENT]...",
    after_help = "Examples:
  mcproof inspect http://127.0.0.1:3000/mcp --method tools/list
  mcproof inspect python server.py --method tools/call --tool-name echo --tool-arg message=hello
  mcproof inspect --method completion/complete --ref prompt:greet --argument name=A -- node a.js
  mcproof inspect tracker --method prompts/list | jq '.prompts[].name'

Unlike the MCP Inspector CLI:
- it exits with 3 if the server is unreachable, and with 1 if a tool fails (4 and 5 there);
- it detects the era unless --era is given;
- every wait has a limit: --connect-timeout 0, which is no timeout there, is 24h."
)]
pub(crate) struct Arguments {
    /// URL, name of a server in .mcp.json, or command with its arguments
    ///
    /// With a URL, a command after `--` starts the server at the URL, and `${port}` in both is a free port.
    #[arg(value_name = "TARGET")]
    words: Vec<String>,
    /// Method to request, such as tools/list, tools/call or resources/read
    #[arg(long, value_name = "METHOD", help_heading = "Request", required_unless_present = "list_stored_auth")]
    method: Option<String>,
    /// Tool for tools/call
    #[arg(long, value_name = "NAME", help_heading = "Request")]
    tool_name: Option<String>,
    /// Tool argument: key=value takes its type from the tool's schema, key:=JSON is JSON; may be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Request", conflicts_with = "tool_args_json")]
    tool_arg: Vec<String>,
    /// Tool arguments as one JSON object
    #[arg(long, value_name = "JSON", help_heading = "Request")]
    tool_args_json: Option<String>,
    /// Resource for resources/read, resources/subscribe and resources/unsubscribe
    #[arg(long, value_name = "URI", help_heading = "Request")]
    uri: Option<String>,
    /// Request only the page of a list at this cursor [default: all pages, as one list]
    #[arg(long, value_name = "CURSOR", help_heading = "Request", hide_short_help = true)]
    cursor: Option<String>,
    /// Prompt for prompts/get
    #[arg(long, value_name = "NAME", help_heading = "Request")]
    prompt_name: Option<String>,
    /// Prompt argument; may be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Request")]
    prompt_args: Vec<String>,
    /// Level for logging/setLevel
    #[arg(long, value_name = "LEVEL", help_heading = "Request", value_parser = PossibleValuesParser::new(LEVELS), hide_short_help = true)]
    log_level: Option<String>,
    /// Reference for completion/complete: prompt:NAME or resource:URI
    #[arg(long = "ref", value_name = "REFERENCE", help_heading = "Request", hide_short_help = true)]
    reference: Option<String>,
    /// Argument for completion/complete, with the value typed so far
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Request", hide_short_help = true)]
    argument: Option<String>,
    /// Entry of `_meta` in every request; may be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Request", hide_short_help = true)]
    metadata: Vec<String>,
    /// Entry of `_meta` in tools/call only; may be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Request", hide_short_help = true)]
    tool_metadata: Vec<String>,
    /// Parameters of any method as one JSON object; other flags are merged into it
    #[arg(long, value_name = "JSON", help_heading = "Request")]
    params: Option<String>,
    #[command(flatten)]
    shared: SharedArgs,
}

pub(crate) fn run(arguments: &Arguments, watching: Watching) -> Result<Exit, Failure> {
    let printer = arguments.shared.output.printer();
    printer.settle((|| {
        let request = arguments.request()?;
        if let [first, second, ..] = arguments.words.as_slice()
            && first.contains("://")
        {
            return Err(Failure::bad_input("bad-arguments", format!("unexpected `{second}` after a URL"))
                .hint("put `--` before the command that starts the server at that URL"));
        }
        let mut resolved = arguments.shared.target.resolve(&arguments.words, Words::NameOrCommand)?;
        // A request for `initialize` implies the legacy era.
        if request.method == methods::INITIALIZE && resolved.options.era == EraChoice::Auto {
            resolved.options.era = EraChoice::Legacy;
        }
        one_shot::run(&resolved, &request, &printer, watching)
    })())
}

impl Arguments {
    pub(super) fn shared(&self) -> &SharedArgs {
        &self.shared
    }

    fn method(&self) -> &str {
        self.method.as_deref().unwrap_or_default()
    }

    fn request(&self) -> Result<Request, Failure> {
        let method = self.method();
        let mut request = Request::new(method);
        if let Some(params) = &self.params {
            request.params = arguments::parse_object("--params", params)?;
        }
        self.add_metadata(&mut request)?;
        match method {
            methods::TOOLS_CALL => {
                request = self.with(request, "name", "--tool-name", self.tool_name.as_deref())?;
                if let Some(json) = &self.tool_args_json {
                    request = request.with("arguments", arguments::parse_object("--tool-args-json", json)?);
                }
                request.arguments = arguments::parse(&self.tool_arg)?;
                request.params.entry("arguments").or_insert_with(|| json!({}));
            }
            methods::RESOURCES_READ | methods::RESOURCES_SUBSCRIBE | methods::RESOURCES_UNSUBSCRIBE => {
                request = self.with(request, "uri", "--uri", self.uri.as_deref())?;
            }
            methods::PROMPTS_GET => {
                request = self.with(request, "name", "--prompt-name", self.prompt_name.as_deref())?;
                let given = arguments::to_strings(&arguments::parse(&self.prompt_args)?);
                if !given.is_empty() {
                    request = request.with("arguments", given);
                }
            }
            methods::LOGGING_SET_LEVEL => request = self.with(request, "level", "--log-level", self.log_level.as_deref())?,
            methods::COMPLETION_COMPLETE => request = self.completion(request)?,
            _ if method.starts_with("notifications/") => {
                return Err(Failure::unsupported(format!("`{method}` is a notification; sending notifications is not supported")));
            }
            _ if method.starts_with("servers/") => {
                return Err(Failure::unsupported("server catalogs are not supported").hint("add the servers to .mcp.json"));
            }
            _ if self.params.is_none() && !METHODS.contains(&method) => {
                // Any method may be sent; but a slip of the fingers would only earn "method not found".
                if let Some(near) = suggest::did_you_mean(method, METHODS) {
                    return Err(Failure::bad_input("unknown-method", format!("unknown method `{method}`"))
                        .hint(format!("did you mean `{near}`? To send it anyway, add --params '{{}}'")));
                }
            }
            _ => {}
        }
        if let Some(cursor) = &self.cursor {
            request = request.with("cursor", cursor.as_str());
        }
        Ok(request)
    }

    /// Adds a parameter that the method cannot do without.
    fn with(&self, request: Request, key: &str, flag: &str, value: Option<&str>) -> Result<Request, Failure> {
        match value {
            Some(value) => Ok(request.with(key, value)),
            // Whoever writes the parameters by hand may want to send wrong ones.
            None if self.params.is_some() => Ok(request),
            None => Err(Failure::bad_input("bad-arguments", format!("{} requires {flag}", self.method()))),
        }
    }

    fn completion(&self, request: Request) -> Result<Request, Failure> {
        let wrong = |message: &str| Failure::bad_input("bad-arguments", message).hint("use --ref prompt:NAME --argument KEY=VALUE");
        if self.params.is_some() && self.reference.is_none() && self.argument.is_none() {
            return Ok(request);
        }
        let reference = self.reference.as_deref().ok_or_else(|| wrong("completion/complete requires --ref"))?;
        let reference = match reference.split_once(':') {
            Some(("prompt", name)) => json!({ "type": "ref/prompt", "name": name }),
            Some(("resource", uri)) => json!({ "type": "ref/resource", "uri": uri }),
            _ => return Err(wrong("--ref must be prompt:NAME or resource:URI")),
        };
        let argument = self.argument.as_deref().ok_or_else(|| wrong("completion/complete requires --argument"))?;
        let (name, value) = argument.split_once('=').ok_or_else(|| wrong("--argument must be KEY=VALUE"))?;
        Ok(request.with("ref", reference).with("argument", json!({ "name": name, "value": value })))
    }

    fn add_metadata(&self, request: &mut Request) -> Result<(), Failure> {
        let mut entries: Map<String, Value> = arguments::to_json(&arguments::parse(&self.metadata)?, None);
        if self.method() == methods::TOOLS_CALL {
            entries.extend(arguments::to_json(&arguments::parse(&self.tool_metadata)?, None));
        }
        if entries.is_empty() {
            return Ok(());
        }
        match request.params.entry("_meta").or_insert_with(|| json!({})) {
            Value::Object(meta) => meta.extend(entries),
            _ => return Err(Failure::bad_input("bad-arguments", "`_meta` in --params is not an object")),
        }
        Ok(())
    }
}
