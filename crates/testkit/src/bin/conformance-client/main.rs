//! The client that the official conformance suite tests: `mcproof_client`, behind the interface that the suite requires
//! (scenario, revision and context in the environment, URL as the last argument). Knows the scenarios by name; whatever
//! a scenario needs beyond calls in the right order has to be in `mcproof_client`.
//!
//! Its last line on stdout is the outcome, because the suite stores stdout, but not the exit code.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own, whose output the suite keeps")]
#![expect(clippy::disallowed_methods, reason = "the suite tells the scenario in the environment")]

mod authorization;
mod scenario;

use mcproof_client::{Answers, ClientProfile, ConnectOptions, Elicitation, Endpoint, Sampling, Tap, Target};
use mcproof_client::{Session, open_session};
use mcproof_protocol::Era;
use mcproof_protocol::{EraChoice, Transport};
use serde_json::{Map, Value, json};
use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;
use url::Url;

/// Below thirty seconds, after which the suite kills the client without a report.
const BUDGET: Duration = Duration::from_secs(25);

/// What the suite requests.
struct Task {
    scenario: String,
    era: Era,
    /// Data of some scenarios: calls to make, credentials.
    context: Value,
    url: Url,
}

type Failure = Box<dyn Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let outcome = match task() {
        Ok(task) => match tokio::time::timeout(BUDGET, scenario::run(&task)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("not done after {} s", BUDGET.as_secs()).into()),
        },
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(()) => {
            println!("done");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("failed: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn task() -> Result<Task, Failure> {
    let variable = |name: &str| env::var(name).map_err(|error| format!("{name}: {error}"));
    let version = variable("MCP_CONFORMANCE_PROTOCOL_VERSION")?;
    let context = match env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => Value::Null,
    };
    Ok(Task {
        scenario: variable("MCP_CONFORMANCE_SCENARIO")?,
        era: Era::of(&version).ok_or_else(|| format!("{version} is no revision that this client knows"))?,
        context,
        url: Url::parse(&env::args().next_back().ok_or("the URL is missing")?)?,
    })
}

impl Task {
    /// Declares roots, sampling and elicitation, and accepts forms with their defaults, and with `form` for fields
    /// without one.
    fn options(&self, form: Map<String, Value>) -> ConnectOptions {
        ConnectOptions {
            era: match self.era {
                Era::Legacy => EraChoice::Legacy,
                Era::Modern => EraChoice::Modern,
            },
            client: ClientProfile { name: "mcproof-conformance".into(), ..ClientProfile::default() },
            answers: Answers {
                roots: Some(vec!["file:///work".into()]),
                elicitation: Some(Elicitation::Accept(form)),
                sampling: Some(Sampling::Text("a sample".into())),
                tasks: None,
                ..Answers::default()
            },
            ..ConnectOptions::default()
        }
    }

    async fn open(&self, options: &ConnectOptions, tap: &Tap) -> Result<Session, Failure> {
        let endpoint = Endpoint { url: self.url.clone(), headers: Vec::new() };
        let target = Target::Http { endpoint, kind: Some(Transport::Http), launch: None, locate: None };
        Ok(open_session(&target, options, tap).await?)
    }

    /// Prints the frames, for readers of the suite's `stderr.txt`.
    fn show(&self, tap: &Tap) {
        eprintln!("{}", self.scenario);
        for frame in &tap.transcript().frames {
            eprintln!("{:>7.1} ms {:?} {}", frame.at.as_secs_f64() * 1e3, frame.direction, json!(frame.body));
        }
    }
}
