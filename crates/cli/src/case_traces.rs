//! `mcproof test --trace`: a trace for each test, written when it ends. Knows the events of a run.

use crate::failure::Failure;
use crate::recording;
use mcproof_client::redaction::Redactor;
use mcproof_record::{CaseOutcome, CasePlan, Event, SessionTranscript, StepOutcome, Verdict};
use mcproof_trace::{Manifest, Mark, MarkBody, SessionInfo};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Where traces go if no folder is named.
const FOLDER: &str = "mcproof-traces";

/// Characters of a test's name in the name of its file.
const LONGEST_NAME: usize = 80;

/// Which tests have a trace, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TraceChoice {
    Off,
    OfFailures(PathBuf),
    OfAll(PathBuf),
}

impl FromStr for TraceChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "off" => Self::Off,
            "on" => Self::OfAll(FOLDER.into()),
            "on-failure" => Self::OfFailures(FOLDER.into()),
            folder => Self::OfAll(folder.into()),
        })
    }
}

impl TraceChoice {
    /// In CI, what has failed cannot be repeated as easily.
    pub(crate) fn unless_given(given: Option<&Self>, is_ci: bool) -> Self {
        given.cloned().unwrap_or(if is_ci { Self::OfFailures(FOLDER.into()) } else { Self::Off })
    }
}

pub(crate) struct CaseTraces {
    choice: TraceChoice,
    manifest: Manifest,
    cases: Vec<CasePlan>,
    names: BTreeSet<String>,
    failure: Option<Failure>,
}

impl CaseTraces {
    /// Before a test is run: a folder that cannot be made must not cost a run.
    pub(crate) fn open(choice: TraceChoice, secrets: &[String]) -> Result<Self, Failure> {
        if let TraceChoice::OfAll(folder) = &choice {
            std::fs::create_dir_all(folder).map_err(|error| Failure::cannot_write(folder, &error))?;
        }
        let manifest = recording::manifest(&Redactor::new(secrets.to_vec()));
        Ok(Self { choice, manifest, cases: Vec::new(), names: BTreeSet::new(), failure: None })
    }

    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::RunStarted { cases, seed, .. } => {
                self.cases.clone_from(cases);
                self.manifest.seed = seed.map(u64::from);
            }
            Event::CaseFinished(outcome) => {
                let folder = match &self.choice {
                    TraceChoice::OfFailures(folder) if outcome.verdict == Verdict::Fail => folder.clone(),
                    TraceChoice::OfAll(folder) => folder.clone(),
                    _ => return,
                };
                if let (false, Some(case)) = (outcome.transcripts.is_empty(), self.cases.iter().find(|case| case.id == outcome.id).cloned())
                {
                    let written = self.write(&folder, &case, outcome);
                    self.failure = self.failure.take().or(written.err());
                }
            }
            _ => {}
        }
    }

    /// What a person is told at the end: how many there are, and what to type.
    pub(crate) fn close(self) -> Result<Option<String>, Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let (TraceChoice::OfAll(folder) | TraceChoice::OfFailures(folder)) = &self.choice else { return Ok(None) };
        let Some(first) = self.names.first() else { return Ok(None) };
        let count = if self.names.len() == 1 { "1 trace".to_owned() } else { format!("{} traces", self.names.len()) };
        let first = folder.join(first);
        Ok(Some(format!("{count} in {}; show one with `mcproof trace show {}`\n", folder.display(), first.display())))
    }

    fn write(&mut self, folder: &Path, case: &CasePlan, outcome: &CaseOutcome) -> Result<(), Failure> {
        std::fs::create_dir_all(folder).map_err(|error| Failure::cannot_write(folder, &error))?;
        let name = self.name_of(case);
        let path = folder.join(&name);
        let writer = recording::create(&path, self.manifest.clone())?;
        self.names.insert(name);
        for held in &outcome.transcripts {
            let steps: Vec<&StepOutcome> = outcome.steps.iter().filter(|step| step.server == held.server).collect();
            let offset = steps.iter().find_map(|step| offset(step, held)).unwrap_or_default();
            let proof = outcome.proof.iter().find(|proof| proof.server == held.server);
            let session = SessionInfo {
                server: held.server.clone(),
                transport: case.transport.clone(),
                era: proof.map(|proof| proof.era.clone()),
                revision: proof.map(|proof| proof.protocol_version.clone()),
                client: Some("mcproof".into()),
                test: Some(case.name.clone()),
                ..SessionInfo::default()
            };
            let session = recording::add_transcript(&writer, session, &held.transcript);
            for step in steps {
                let body =
                    MarkBody::Step { title: step.title.clone(), place: step.place.clone(), duration: step.duration, passed: step.passed };
                writer.mark(Mark { session, at: step.at + offset, body });
            }
            let message = outcome.diagnostics.first().map_or_else(String::new, |diagnostic| diagnostic.message.clone());
            let at = held.transcript.frames.last().map_or(Duration::ZERO, |frame| frame.at);
            writer.mark(Mark { session, at, body: MarkBody::Verdict { passed: outcome.verdict.is_success(), message } });
        }
        recording::finish(writer, &path)
    }

    fn name_of(&self, case: &CasePlan) -> String {
        let slug = |text: &str| {
            let words = text.split(|symbol: char| !symbol.is_alphanumeric()).filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join("-").chars().take(LONGEST_NAME).collect::<String>()
        };
        let suite = Path::new(&case.suite).file_name().unwrap_or_default().to_string_lossy();
        let suite = suite.split('.').next().unwrap_or_default().to_owned();
        let repetition = if case.repetition > 0 { format!("-{}", case.repetition) } else { String::new() };
        let stem = format!("{}-{}-{}{repetition}", slug(&suite), slug(&case.name), slug(&case.transport));
        let mut name = format!("{stem}.mcptrace");
        let mut number = 2;
        while self.names.contains(&name) {
            name = format!("{stem}-{number}.mcptrace");
            number += 1;
        }
        name
    }
}

/// From the start of a session to the start of its case, as a response tells that both saw.
fn offset(step: &StepOutcome, held: &SessionTranscript) -> Option<Duration> {
    let exchange = step.exchanges.iter().find(|exchange| exchange.frame.is_some())?;
    let frame = held.transcript.frames.iter().find(|frame| Some(frame.id) == exchange.frame)?;
    frame.at.checked_sub(exchange.duration)?.checked_sub(step.at)
}
