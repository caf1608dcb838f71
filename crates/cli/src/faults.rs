//! `--faults`, `--fault` and `--seed`: what goes wrong on the way, in the words of suites.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::{output, settings};
use mcproof_client::{FaultCount, FaultInjector, Schedule};
use mcproof_record::Diagnostic;
use mcproof_report::{diagnostic, escape_line};
use mcproof_suite::plan::Fault;
use mcproof_suite::{Environment, faults};
use std::fs;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Faults")]
pub(crate) struct FaultArgs {
    /// Inject the faults in this YAML file, in the format of `faults:` in a suite
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,
    /// Inject this fault, such as 'reset tool=search probability=0.1'; may be repeated
    #[arg(long, value_name = "FAULT")]
    fault: Vec<String>,
    /// Seed of the random numbers for `probability` and `jitter`: the same seed and traffic give the same faults
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// The faults of a run.
pub(crate) struct Faults {
    pub(crate) injector: FaultInjector,
    known: Vec<Fault>,
}

/// Bytes of a file with faults.
const MOST_BYTES: u64 = 1 << 20;

impl FaultArgs {
    /// The flags that say the same again; none without faults.
    pub(crate) fn words(&self) -> Vec<String> {
        let file = self.faults.iter().flat_map(|file| ["--faults".to_owned(), file.display().to_string()]);
        let mut words: Vec<String> = file.chain(self.fault.iter().flat_map(|fault| ["--fault".to_owned(), fault.clone()])).collect();
        if !words.is_empty() {
            words.splice(0..0, ["--seed".to_owned(), self.seed.to_string()]);
        }
        words
    }

    /// What everything random is made from, where there are faults.
    pub(crate) fn seed(&self) -> Option<u64> {
        (self.faults.is_some() || !self.fault.is_empty()).then_some(self.seed)
    }

    /// The file of `--faults`, which [`FaultArgs::read`] can read.
    pub(crate) fn file(&self) -> Option<String> {
        mcproof_suite::bounds::read_text(self.faults.as_ref()?).ok()
    }

    /// Reads all faults; `None` if there are none. With `over_stdio`, those that only HTTP has are a mistake.
    pub(crate) fn read(&self, transport: FaultTransport) -> Result<Option<Faults>, Failure> {
        let environment = Environment { variables: settings::variables(), ..Environment::default() };
        let mut known = Vec::new();
        let mut read = |name: &str, text: &str| {
            let seed = self.seed.wrapping_add(known.len() as u64);
            known.extend(faults::load(name, text, seed, &environment).map_err(told)?);
            Ok::<_, Failure>(())
        };
        if let Some(path) = &self.faults {
            let name = path.display().to_string();
            let cannot = |reason: String| {
                Failure::bad_input("cannot-read", format!("cannot read {name}: {reason}"))
                    .hint("name a file, or give a fault directly: --fault 'latency=200ms'")
            };
            let about = fs::metadata(path).map_err(|error| cannot(error.to_string()))?;
            if about.len() > MOST_BYTES {
                return Err(cannot(format!("it is larger than {MOST_BYTES} bytes")));
            }
            let text = mcproof_suite::bounds::read_text(path).map_err(|error| cannot(error.to_string()))?;
            read(&name, &text)?;
        }
        for fault in &self.fault {
            read(&format!("--fault '{}'", escape_line(fault, 200)), &yaml_of(fault)?)?;
        }
        if let (FaultTransport::Stdio, Some(fault)) = (transport, known.iter().find(|fault| fault.rule.disturbance.refuses_requests())) {
            let message = "`status`, `end_session` and `expire_token` mean nothing over stdio";
            return Err(Failure::new(Exit::BadInput, Diagnostic::error("inapplicable-key", message).at(fault.place.clone())));
        }
        if known.is_empty() {
            return Ok(None);
        }
        let injector = FaultInjector::new(known.iter().map(|fault| fault.rule.clone()).collect());
        Ok(Some(Faults { injector, known }))
    }
}

/// How the faulty traffic passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultTransport {
    Stdio,
    Http,
}

impl Faults {
    /// Says on stderr how often each fault came about.
    pub(crate) fn tell(&self) {
        for (fault, FaultCount { selected, hit }) in self.known.iter().zip(self.injector.counts()) {
            let is_spared = matches!(fault.rule.schedule, Schedule::Probability(_)) && selected > 0;
            let name = match fault.place.file.starts_with("--fault") {
                true => fault.place.file.clone(),
                false => format!("{}:{}", fault.place.file, fault.place.line),
            };
            let times = if hit == 1 { "once".to_owned() } else { format!("{hit} times") };
            if hit == 0 && !is_spared {
                let warning = Diagnostic::warning("fault-not-injected", format!("the fault `{name}` hit nothing"));
                let warning = warning.hint("check `method`, `tool` and `to`; the handshake is spared unless `method` names it");
                output::talk(&diagnostic::render(&warning, &settings::style()));
            } else if hit == 0 {
                let messages = if selected == 1 { "message" } else { "messages" };
                output::talk(&format!("fault injected 0 times, by chance, of {selected} {messages}: {name}\n"));
            } else {
                output::talk(&format!("fault injected {times}: {name}\n"));
            }
        }
    }
}

/// The YAML of a fault in one line: `status=503 retry_after=2s tool=search`.
fn yaml_of(fault: &str) -> Result<String, Failure> {
    let bad = |reason: String| {
        Failure::bad_input("bad-fault", format!("`--fault {}`: {reason}", escape_line(fault, 200)))
            .hint("write a kind and its conditions, such as 'reset tool=search probability=0.1'")
    };
    let words = shlex::split(fault).ok_or_else(|| bad("a quotation mark is missing".into()))?;
    if words.is_empty() {
        return Err(bad("the fault is empty".into()));
    }
    let mut pairs = Vec::new();
    for word in &words {
        let (key, value) = word.split_once('=').map_or((word.as_str(), None), |(key, value)| (key, Some(value)));
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(bad(format!("`{}` is not KEY or KEY=VALUE", escape_line(word, 80))));
        }
        let is_plain = |value: &str| value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
        let value = match value {
            None => String::new(),
            Some(value) if is_plain(value) && !matches!(key, "tool" | "method") => value.to_owned(),
            Some(value) => serde_json::Value::from(value).to_string(),
        };
        pairs.push(format!("{key}: {value}"));
    }
    Ok(format!("{{ {} }}\n", pairs.join(", ")))
}

/// All mistakes but the last are told, which becomes the failure.
pub(crate) fn told(mut mistakes: Vec<Diagnostic>) -> Failure {
    let last = mistakes.pop().unwrap_or_else(|| Diagnostic::error("bad-faults", "the faults cannot be read"));
    for mistake in mistakes {
        output::talk(&diagnostic::render(&mistake, &settings::style()));
    }
    Failure::new(Exit::BadInput, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fault: &str, expected: Option<&str>) {
        assert_eq!(yaml_of(fault).ok().as_deref().map(str::trim_end), expected, "{fault}");
    }

    #[test]
    fn flags_say_the_same_again() {
        let arguments = |fault: &[&str]| FaultArgs { faults: None, fault: fault.iter().map(ToString::to_string).collect(), seed: 7 };
        assert_eq!((arguments(&[]).words(), arguments(&[]).seed()), (Vec::new(), None));
        let given = arguments(&["reset tool=a"]);
        assert_eq!((given.words().join(" "), given.seed()), ("--seed 7 --fault reset tool=a".to_owned(), Some(7)));
        let file = FaultArgs { faults: Some("a.yaml".into()), ..arguments(&[]) };
        assert_eq!(file.words().join(" "), "--seed 7 --faults a.yaml");
    }

    #[test]
    fn a_fault_in_one_line_is_the_same_as_in_yaml() {
        check("reset", Some("{ reset:  }"));
        check("reset tool=search probability=0.1", Some("{ reset: , tool: \"search\", probability: 0.1 }"));
        check("latency=200ms jitter=1.5s 'tool=a b: {}'", Some("{ latency: 200ms, jitter: 1.5s, tool: \"a b: {}\" }"));
        check("drop method=tools/call", Some("{ drop: , method: \"tools/call\" }"));
        check("", None);
        check("'reset", None);
        check("re:set", None);
        check("=1", None);
    }
}
