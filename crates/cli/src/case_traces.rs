//! `mcproof test --trace`: a trace for each test, written while it runs, and as a whole when it ends. Knows the events of a run.

mod live;
mod sources;

use crate::failure::Failure;
use crate::recording;
use crate::shown_contract::ShownContract;
use crate::suggest::did_you_mean;
use live::LiveTraces;
use mcproof_client::redaction::Redactor;
use mcproof_record::{CaseId, CaseOutcome, CasePlan, Event, Frame, SessionTranscript, StepOutcome, Verdict, counted};
use mcproof_suite::run::FrameWatcher;
use mcproof_trace::{Manifest, Mark, MarkBody, SessionInfo, TraceWriter};
use sources::clean_source;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Where traces go if no folder is named.
const FOLDER: &str = "mcproof-traces";

const ON_FAILURE: &str = "on-failure";

/// Characters of a word that may be a misspelled one.
const SHORTEST_SLIP: usize = 6;

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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "off" => Self::Off,
            "on" => Self::OfAll(FOLDER.into()),
            ON_FAILURE => Self::OfFailures(FOLDER.into()),
            // Short names are folders, whatever they are like.
            slip if slip.len() >= SHORTEST_SLIP && did_you_mean(slip, [ON_FAILURE]).is_some() && !Path::new(slip).is_dir() => {
                return Err(format!("did you mean `{ON_FAILURE}`? For a folder, write ./{slip}"));
            }
            folder => Self::OfAll(folder.into()),
        })
    }
}

impl TraceChoice {
    /// In CI, what has failed cannot be repeated as easily.
    pub(crate) fn unless_given(given: Option<&Self>, is_ci: bool) -> Self {
        given.cloned().unwrap_or(if is_ci { Self::OfFailures(FOLDER.into()) } else { Self::Off })
    }

    /// Where they are written.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Off => None,
            Self::OfFailures(folder) | Self::OfAll(folder) => Some(folder),
        }
    }
}

pub(crate) struct CaseTraces {
    choice: TraceChoice,
    manifest: Manifest,
    secrets: Redactor,
    /// Each with the name of its file.
    cases: Vec<(CasePlan, String)>,
    live: Option<LiveTraces>,
    /// The files that are there.
    written: BTreeSet<String>,
    failure: Option<Failure>,
}

impl CaseTraces {
    /// Before a test is run: a folder that cannot be made must not cost a run.
    pub(crate) fn open(choice: TraceChoice, secrets: &[String]) -> Result<Self, Failure> {
        if let TraceChoice::OfAll(folder) = &choice {
            fs::create_dir_all(folder).map_err(|error| Failure::cannot_write(folder, &error))?;
        }
        let secrets = Redactor::new(secrets.to_vec());
        let manifest = recording::manifest(&secrets);
        let live = choice.folder().map(|folder| LiveTraces::new(folder.to_owned()));
        Ok(Self { choice, manifest, secrets, cases: Vec::new(), live, written: BTreeSet::new(), failure: None })
    }

    /// What sees the frames of the tests while they run.
    pub(crate) fn watcher(&self) -> Option<FrameWatcher> {
        let live = self.live.clone()?;
        Some(Arc::new(move |case: CaseId, server: &str, frame: &Frame| live.frame(case, server, frame)))
    }

    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::RunStarted { cases, seed, .. } => {
                self.cases = named(cases);
                self.manifest.seed = seed.map(u64::from);
                if let Some(live) = &self.live {
                    live.plan(&self.manifest, self.cases.iter().map(|(case, name)| (case, name)));
                }
            }
            Event::CaseStarted { id } => {
                if let Some(live) = &self.live {
                    live.start(*id);
                }
            }
            Event::CaseFinished(outcome) => {
                let finished = self.finished(outcome);
                self.failure = self.failure.take().or(finished.err());
            }
            _ => {}
        }
    }

    /// Writes the whole trace of a test, or removes what there is of one that is not wanted.
    fn finished(&mut self, outcome: &CaseOutcome) -> Result<(), Failure> {
        let is_begun = self.live.as_ref().is_some_and(|live| live.end(outcome.id));
        let is_wanted = match &self.choice {
            TraceChoice::Off => false,
            TraceChoice::OfFailures(_) => outcome.verdict == Verdict::Fail,
            TraceChoice::OfAll(_) => true,
        };
        let Some(folder) = self.choice.folder() else { return Ok(()) };
        let Some((case, name)) = self.cases.iter().find(|(case, _)| case.id == outcome.id) else { return Ok(()) };
        let path = folder.join(name);
        if is_wanted && !outcome.transcripts.is_empty() {
            self.write(&path, case, outcome)?;
            self.written.insert(name.clone());
        } else if is_begun {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::cannot_write(&path, &error)),
                _ => Ok(()),
            };
        }
        Ok(())
    }

    /// What a person is told at the end: how many there are, and what to type.
    pub(crate) fn close(mut self) -> Result<Option<String>, Failure> {
        if let Some(live) = &self.live {
            self.written.extend(live.close());
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let (Some(folder), Some(first)) = (self.choice.folder(), self.written.first()) else { return Ok(None) };
        let count = counted(self.written.len(), "trace");
        let first = folder.join(first);
        Ok(Some(format!("{count} in {}; show one with `mcproof trace show {}`\n", folder.display(), first.display())))
    }

    fn write(&self, path: &Path, case: &CasePlan, outcome: &CaseOutcome) -> Result<(), Failure> {
        recording::write_whole(path, self.manifest.clone(), |writer| {
            add_case(writer, case, outcome);
            // What a step says stands there: its marks have the place.
            let files: BTreeSet<&str> = outcome.steps.iter().map(|step| step.place.file.as_str()).chain([case.suite.as_str()]).collect();
            for file in files {
                if let Some(text) = clean_source(file, &self.secrets) {
                    writer.attach(&format!("suites/{file}"), text.as_bytes());
                }
            }
        })
    }
}

fn add_case(writer: &TraceWriter, case: &CasePlan, outcome: &CaseOutcome) {
    let mut shown = ShownContract::default();
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
        let session = recording::add_transcript(writer, &mut shown, session, &held.transcript);
        for step in steps {
            let body =
                MarkBody::Step { title: step.title.clone(), place: step.place.clone(), duration: step.duration, passed: step.passed };
            writer.mark(Mark { session, at: step.at + offset, body });
        }
        let message = outcome.diagnostics.first().map_or_else(String::new, |diagnostic| diagnostic.message.clone());
        let at = held.transcript.frames.last().map_or(Duration::ZERO, |frame| frame.at);
        writer.mark(Mark { session, at, body: MarkBody::Verdict { passed: outcome.verdict.is_success(), message } });
    }
    // Of several servers, it would be nobody's.
    if outcome.transcripts.iter().all(|held| held.server == outcome.transcripts[0].server) {
        shown.attach(writer);
    }
}

/// The tests with the names of their files, which differ.
fn named(cases: &[CasePlan]) -> Vec<(CasePlan, String)> {
    let mut taken = BTreeSet::new();
    let named = cases.iter().map(|case| {
        let name = free_name(case, &taken);
        taken.insert(name.clone());
        (case.clone(), name)
    });
    named.collect()
}

fn free_name(case: &CasePlan, taken: &BTreeSet<String>) -> String {
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
    while taken.contains(&name) {
        name = format!("{stem}-{number}.mcptrace");
        number += 1;
    }
    name
}

/// From the start of a session to the start of its case, as a response tells that both saw.
fn offset(step: &StepOutcome, held: &SessionTranscript) -> Option<Duration> {
    let exchange = step.exchanges.iter().find(|exchange| exchange.frame.is_some())?;
    let frame = held.transcript.frames.iter().find(|frame| Some(frame.id) == exchange.frame)?;
    frame.at.checked_sub(exchange.duration)?.checked_sub(step.at)
}
