//! The words of other tools and configurations that people write into a suite out of habit, and what they are called here.

/// The words that people write into this object, and the hint that they get.
pub fn habits_of(object: &str) -> impl Iterator<Item = (&'static [&'static str], &'static str)> {
    HABITS.iter().filter(move |(of, ..)| *of == object).map(|(_, words, hint)| (*words, *hint))
}

/// The hint for a key that is none of this object, but is known from elsewhere.
pub(super) fn meant(object: &str, typed: &str) -> Option<&'static str> {
    let known = HABITS.iter().find(|(of, words, _)| *of == object && words.contains(&typed));
    known.map(|(_, _, hint)| *hint)
}

const HABITS: &[(&str, &[&str], &str)] = &[
    ("a step", &["tool", "tool_call", "call_tool", "invoke"], "did you mean `call`?"),
    ("a step", &["args", "arguments", "input", "inputs", "params", "parameters"], "did you mean `with`?"),
    ("a step", &["assert", "asserts", "assertions", "should", "response", "output"], "did you mean `expect`?"),
    ("a step", &["capture", "captures", "extract", "set", "store", "variables"], "did you mean `save`?"),
    ("a step", &["count", "loop", "repeat"], "did you mean `times`?"),
    (
        "a step",
        &["error", "is_error", "isError", "throws"],
        "an error is expected with `tool_error`, `rpc_error` or, if it may be either, `fails`",
    ),
    ("a test", &["description", "id", "test", "title"], "did you mean `name`?"),
    (
        "a test",
        &["call", "expect", "fails", "tool", "tool_error", "tools", "with"],
        "put it into a step: `steps: [{ call: …, expect: … }]`",
    ),
    ("a test", &["after", "cleanup"], "did you mean `teardown`?"),
    ("a test", &["before"], "did you mean `setup`?"),
    ("a transport", &["args", "arguments"], "put them into `command`, as in `command: [node, server.js, --verbose]`"),
    ("a transport", &["dir", "directory", "folder", "workdir", "working_directory"], "did you mean `cwd`?"),
    ("a transport", &["environment", "variables"], "did you mean `env`?"),
    ("a transport", &["port"], "put `${port}` into `command` and `url`, and mcproof chooses a free one"),
    ("a server", &["args", "cmd", "command", "cwd", "env"], "say for which transport, as in `stdio: { command: … }`"),
    ("a server", &["headers", "url"], "say for which transport, as in `http: { url: … }`"),
    ("a suite", &["args", "command", "http", "sse", "stdio", "url"], "put it under `server:`"),
    ("a suite", &["mcpServers"], "did you mean `servers`?"),
    ("a suite", &["cases", "scenarios", "steps"], "did you mean `tests`?"),
    ("`timeouts`", &["case"], "did you mean `test`?"),
    ("a suite", &["env", "variables"], "variables of tests are `vars`, those of the server `env` of its transport"),
    ("a target", &["address", "endpoint", "url"], "say for which transport, as in `http: https://mcp.example.com/mcp`"),
    ("a target", &["args", "command", "cwd", "env"], "say for which transport, as in `stdio: { command: … }`"),
    ("a target", &["headers"], "put them beside the URL, as in `http: { url: …, headers: … }`"),
    ("a target", &["frequency", "interval", "period", "schedule"], "did you mean `every`?"),
    ("a target", &["alerts", "channels", "notify", "routes"], "`routes` of the file say which channels are notified of which targets"),
    ("a configuration", &["checks", "mcpServers", "monitors", "servers"], "did you mean `targets`?"),
    ("a configuration", &["alerts", "contacts", "notifications"], "did you mean `channels`?"),
];

#[cfg(test)]
mod tests {
    use super::super::format::Key;
    use super::super::parse::{SUITE, TIMEOUTS};
    use super::super::server::{BINDING, SERVER};
    use super::super::step::STEP;
    use super::super::test::TEST;
    use super::HABITS;

    fn keys_of<T>(keys: &[Key<T>]) -> Vec<&'static str> {
        keys.iter().map(|key| key.name).collect()
    }

    #[test]
    fn no_habit_is_a_key_and_each_is_of_an_object_that_exists() {
        let objects = [
            (SUITE.name, keys_of(SUITE.keys)),
            (TEST.name, keys_of(TEST.keys)),
            (STEP.name, keys_of(STEP.keys)),
            (SERVER.name, keys_of(SERVER.keys)),
            (BINDING.name, keys_of(BINDING.keys)),
            (TIMEOUTS.name, keys_of(TIMEOUTS.keys)),
        ];
        for (object, words, hint) in HABITS {
            // The configuration of the monitor has a test of its own.
            if ["a target", "a configuration"].contains(object) {
                continue;
            }
            let (_, keys) = objects.iter().find(|(name, _)| name == object).unwrap();
            assert!(words.iter().all(|word| !keys.contains(word)), "{object}: {words:?}");
            if let Some(suggested) = hint.strip_prefix("did you mean `").and_then(|rest| rest.strip_suffix("`?")) {
                assert!(keys.contains(&suggested), "{object}: {hint}");
            }
        }
    }
}
