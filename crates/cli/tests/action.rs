//! `action.yml`: its steps, run as the runner of GitHub Actions runs them, on servers that pass and on servers that fail.
//! Knows the few forms of expressions that stand in it; the step that uploads is another action's.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a test adds to the PATH that it was given")]

mod peers;

use peers::root;
use saphyr::{LoadableYamlNode as _, Yaml};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

/// What became of the action.
struct Ran {
    passed: bool,
    log: String,
    summary: String,
    exit_code: String,
}

/// Runs all steps that are scripts, with these inputs in place of the defaults.
fn run(folder: &Path, inputs: &[(&str, &str)], path: Option<&Path>) -> Ran {
    let text = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let action = &Yaml::load_from_str(&text).unwrap()[0];
    let mut values = BTreeMap::new();
    for (name, input) in action["inputs"].as_mapping().unwrap() {
        values.insert(format!("inputs.{}", name.as_str().unwrap()), input["default"].as_str().unwrap().to_owned());
    }
    for (name, value) in inputs {
        assert!(values.insert(format!("inputs.{name}"), (*value).to_owned()).is_some(), "the action has no input `{name}`");
    }
    values.insert("github.action_path".into(), root().to_str().unwrap().to_owned());
    // Where the releases of the action are.
    values.insert("github.server_url".into(), format!("file://{}", folder.display()));
    values.insert("github.action_repository".into(), "own/mcproof".into());
    let runner = tempfile::tempdir().unwrap();
    let summary = runner.path().join("summary");
    let mut ran = Ran { passed: true, log: String::new(), summary: String::new(), exit_code: String::new() };
    for step in action["runs"]["steps"].as_sequence().unwrap() {
        let Some(script) = step.as_mapping_get("run").and_then(|script| script.as_str()) else { continue };
        assert_eq!(step["shell"].as_str(), Some("bash"));
        let id = step["id"].as_str().unwrap();
        let (file, output) = (runner.path().join(format!("{id}.sh")), runner.path().join(format!("{id}.out")));
        std::fs::write(&file, script).unwrap();
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail"]).arg(&file).current_dir(folder);
        if let Some(inner) = step.as_mapping_get("working-directory").and_then(|inner| inner.as_str()) {
            command.current_dir(folder.join(filled(inner, &values)));
        }
        for (name, value) in step["env"].as_mapping().unwrap() {
            command.env(name.as_str().unwrap(), filled(value.as_str().unwrap(), &values));
        }
        command.envs([("GITHUB_ACTIONS", "true"), ("CI", "true")]);
        command.env("GITHUB_OUTPUT", &output).env("GITHUB_STEP_SUMMARY", &summary).env("GITHUB_WORKSPACE", folder);
        command.env("RUNNER_TEMP", runner.path());
        command.envs(path.map(|path| ("PATH", format!("{}:{}", path.display(), std::env::var("PATH").unwrap()))));
        let done = command.output().unwrap();
        ran.log += &String::from_utf8_lossy(&[done.stdout, done.stderr].concat());
        for line in std::fs::read_to_string(&output).unwrap_or_default().lines() {
            let (name, value) = line.split_once('=').unwrap();
            values.insert(format!("steps.{id}.outputs.{name}"), value.to_owned());
        }
        if !done.status.success() {
            ran.passed = false;
            break;
        }
    }
    ran.summary = std::fs::read_to_string(&summary).unwrap_or_default();
    let told = action["outputs"]["exit-code"]["value"].as_str().unwrap();
    ran.exit_code = filled(told, &values);
    ran
}

/// Fills in `${{ name }}`; what no step has told is empty, as on GitHub.
fn filled(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{") {
        let (name, behind) = after.split_once("}}").unwrap();
        let name = name.trim();
        assert!(values.contains_key(name) || name.starts_with("steps."), "`{name}` is nothing that this runner knows");
        filled += before;
        filled += values.get(name).map_or("", String::as_str);
        rest = behind;
    }
    filled + rest
}

fn suite(folder: &Path, server: &str) {
    let text = format!(
        "server: {{ stdio: {server} }}\ntests:\n  - name: an order reduces the stock\n    steps:\n      \
         - {{ call: create_order, with: {{ product_id: PROD-123, quantity: 2 }} }}\n      \
         - call: check_inventory\n        with: {{ product_id: PROD-123 }}\n        expect: {{ available: 8 }}\n"
    );
    std::fs::write(folder.join("shop.mcproof.yaml"), text).unwrap();
}

#[track_caller]
fn check(ran: &Ran, passed: bool, exit_code: &str, log: &[&str], summary: &[&str]) {
    assert_eq!((ran.passed, ran.exit_code.as_str()), (passed, exit_code), "{}", ran.log);
    for part in log {
        assert!(ran.log.contains(part), "{part:?} is not in the log\n{}", ran.log);
    }
    for part in summary {
        assert!(ran.summary.contains(part), "{part:?} is not in the summary\n{}", ran.summary);
    }
}

#[test]
fn a_suite_that_passes_passes_the_step() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("below")).unwrap();
    suite(&folder.path().join("below"), "mcproof demo shop");
    let inputs = [("mcproof", MCPROOF), ("working-directory", "below"), ("args", "shop.mcproof.yaml --transport 'stdio'")];
    let ran = run(folder.path(), &inputs, None);
    check(&ran, true, "0", &["1 passed"], &["## mcproof: 1 passed"]);
    assert!(!ran.log.contains("::error"), "{}", ran.log);
    for report in ["junit.xml", "report.html"] {
        assert!(folder.path().join("below/mcproof-report").join(report).is_file(), "{report}");
    }
}

/// A folder in place of the releases, with the archive of this platform: its program is the one under test.
fn release(folder: &Path) {
    let version = env!("CARGO_PKG_VERSION");
    let name = "mcproof-x86_64-unknown-linux-gnu";
    let releases = folder.join(format!("own/mcproof/releases/download/v{version}"));
    let packed = folder.join(name);
    std::fs::create_dir_all(&releases).unwrap();
    std::fs::create_dir_all(&packed).unwrap();
    std::os::unix::fs::symlink(MCPROOF, packed.join("mcproof")).unwrap();
    let archive = releases.join(format!("{name}.tar.gz"));
    let shell = |script: &str| {
        let output = Command::new("sh").args(["-ec", script, "sh"]).arg(&archive).arg(folder).arg(name).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    shell("tar -chzf \"$1\" -C \"$2\" \"$3\"");
    let sum = shell("sha256sum \"$1\" | cut -d ' ' -f 1");
    let template = std::fs::read_to_string(root().join("packages/installer/install.sh")).unwrap();
    let filled = template.replace("'@TARGET@') echo '@SHA256@' ;;", &format!("x86_64-unknown-linux-gnu) echo {} ;;", sum.trim()));
    std::fs::write(releases.join("mcproof-installer.sh"), filled.replace("@VERSION@", version)).unwrap();
}

#[test]
fn a_released_version_is_downloaded_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    release(folder.path());
    suite(folder.path(), "mcproof demo shop");
    let inputs = [("version", env!("CARGO_PKG_VERSION")), ("args", "shop.mcproof.yaml")];
    check(&run(folder.path(), &inputs, None), true, "0", &["installed ", "1 passed"], &["## mcproof: 1 passed"]);
    let missing = run(folder.path(), &[("version", "9.9.9")], None);
    check(&missing, false, "", &["::error title=mcproof::there is no release 9.9.9: correct the input `version`"], &[]);
}

#[test]
fn a_suite_that_fails_is_annotated_and_summed_up() {
    let folder = tempfile::tempdir().unwrap();
    suite(folder.path(), "mcproof demo shop --miscount");
    let ran = run(folder.path(), &[("mcproof", MCPROOF), ("report-directory", "reports of mine")], None);
    let annotation = "::error file=shop.mcproof.yaml,line=8,col=30,endColumn=31,title=an order reduces the stock [stdio]::";
    check(&ran, false, "1", &["1 failed", annotation], &["## mcproof: ", "❌ failed: ./shop.mcproof.yaml › an order reduces the stock"]);
    assert!(folder.path().join("reports of mine/junit.xml").is_file());
}

#[test]
fn a_server_is_checked_and_its_command_may_have_quotes() {
    let folder = tempfile::tempdir().unwrap();
    let run = |server: &str, arguments: &str| {
        let inputs = [("mcproof", MCPROOF), ("command", "check"), ("args", arguments), ("server", server)];
        run(folder.path(), &inputs, None)
    };
    let ran = run(&format!("'{MCPROOF}' demo shop"), "--only tools --timeout 5s");
    check(&ran, true, "0", &["rules passed"], &["## mcproof: "]);
    let ran = run("sh -c 'echo \"no database\" >&2; exit 1'", "--only server-starts");
    check(&ran, false, "1", &["::error ", "no database"], &["❌ failed: lifecycle › server-starts"]);
    for report in ["junit.xml", "mcproof.sarif", "check.json"] {
        assert!(folder.path().join("mcproof-report").join(report).is_file(), "{report}");
    }
    check(&run("sh -c 'exit 1", ""), false, "", &["::error title=mcproof::input `server` is not valid"], &[]);
}

#[test]
fn a_server_may_stand_in_the_arguments_behind_dashes() {
    let folder = tempfile::tempdir().unwrap();
    suite(folder.path(), "mcproof demo tracker");
    // Keeps its arguments, which are those that were typed, and nothing of the reporters.
    let server = format!("#!/bin/sh\nprintf '%s,' \"$@\" > arguments.txt\nexec '{MCPROOF}' demo shop\n");
    std::fs::write(folder.path().join("server.sh"), server).unwrap();
    let told = || std::fs::read_to_string(folder.path().join("arguments.txt")).unwrap();
    for (command, arguments, reports) in [
        ("test", "shop.mcproof.yaml -- sh server.sh --json -- 'a b'", &["junit.xml", "report.html"][..]),
        ("check", "--only server-starts -- sh server.sh --json -- 'a b'", &["junit.xml", "mcproof.sarif", "check.json"]),
        ("lock", "-- sh server.sh --json -- 'a b'", &[]),
        ("probe", "-- sh server.sh --json -- 'a b'", &["trace.json"]),
    ] {
        let reports_in = format!("reports-{command}");
        let inputs = [("mcproof", MCPROOF), ("command", command), ("args", arguments), ("report-directory", reports_in.as_str())];
        let ran = run(folder.path(), &inputs, None);
        check(&ran, true, "0", &[], &[]);
        assert_eq!(told(), "--json,--,a b,", "{command}");
        for report in reports {
            assert!(folder.path().join(&reports_in).join(report).is_file(), "{command}: {report}");
        }
    }
    let traced = [("mcproof", MCPROOF), ("command", "probe"), ("args", "--trace own.json -- sh server.sh")];
    check(&run(folder.path(), &traced, None), true, "0", &[], &[]);
    assert!(folder.path().join("own.json").is_file());
    let both = [("mcproof", MCPROOF), ("args", "shop.mcproof.yaml -- sh server.sh"), ("server", "sh server.sh")];
    check(
        &run(folder.path(), &both, None),
        false,
        "",
        &["::error title=mcproof::both inputs `args` (after `--`) and `server` name a server"],
        &[],
    );
}

#[test]
fn a_deployed_server_is_probed() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = |server: &'static str| [("mcproof", MCPROOF), ("command", "probe"), ("server", server)];
    let ran = run(folder.path(), &[("mcproof", MCPROOF), ("command", "probe"), ("server", &format!("{MCPROOF} demo shop"))], None);
    check(&ran, true, "0", &["healthy: "], &["healthy: "]);
    let ran = run(folder.path(), &inputs("sleep-no-more"), None);
    check(&ran, false, "3", &["`sleep-no-more` was not found"], &["unreachable: "]);
}

#[test]
fn a_contract_that_is_broken_is_told_in_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    let run = |server: &str, arguments: &str| {
        let server = format!("'{MCPROOF}' demo {server}");
        run(folder.path(), &[("mcproof", MCPROOF), ("command", "lock"), ("args", arguments), ("server", &server)], None)
    };
    check(&run("shop", ""), true, "0", &["wrote mcproof.lock"], &[]);
    check(&run("shop", "--verify --deny breaking"), true, "0", &["no changes"], &["### MCP contract: no changes"]);
    let ran = run("tracker", "--verify --deny breaking");
    check(&ran, false, "1", &["tool `create_order`"], &["### MCP contract: ", "| **breaking** | tool `create_order` |"]);
    check(&run("shop", "--verify --json"), true, "0", &["\"changes\": []"], &[]);
}

#[test]
fn without_a_binary_one_is_built_from_the_sources_of_the_action() {
    let folder = tempfile::tempdir().unwrap();
    suite(folder.path(), "mcproof demo shop");
    let tools = tempfile::tempdir().unwrap();
    // Stands for the real one, which would take minutes: it looks at what it is asked to build, and "installs" it.
    let cargo = format!(
        "#!/bin/sh\n[ \"$1 $2 $3\" = 'install --locked --path' ] && grep -q '^name = \"mcproof\"' \"$4/Cargo.toml\" && \
         [ \"$5\" = --root ] && mkdir -p \"$6/bin\" && ln -s '{MCPROOF}' \"$6/bin/mcproof\"\n"
    );
    std::fs::write(tools.path().join("cargo"), cargo).unwrap();
    std::fs::set_permissions(tools.path().join("cargo"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = run(folder.path(), &[], Some(tools.path()));
    check(&ran, true, "0", &["mcproof ", "1 passed"], &[]);
    let ran = run(folder.path(), &[("mcproof", "no-such-mcproof")], None);
    check(&ran, false, "", &["::error title=mcproof::no-such-mcproof is not found"], &[]);
}

#[test]
fn reports_are_kept_also_when_the_run_failed() {
    let text = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let action = &Yaml::load_from_str(&text).unwrap()[0];
    let steps = action["runs"]["steps"].as_sequence().unwrap();
    let uploads: Vec<_> = steps.iter().filter(|step| step.as_mapping_get("uses").is_some()).collect();
    assert_eq!(uploads.len(), 1);
    assert!(uploads[0]["uses"].as_str().unwrap().starts_with("actions/upload-artifact@"));
    assert!(uploads[0]["if"].as_str().unwrap().contains("!cancelled()"));
    assert_eq!(uploads[0]["with"]["path"].as_str(), Some("${{ inputs.working-directory }}/${{ inputs.report-directory }}"));
}
