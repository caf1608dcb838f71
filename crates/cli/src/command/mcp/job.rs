//! Runs one mcproof command in a separate process until it is done, times out, or is canceled; then kills it with all processes that it
//! started. Knows the output of the process, not its meaning.

use super::journal::StoredLines;
use mcproof_client::{Guardian, Launch, Tap, TapBounds, run_command};
use mcproof_record::{CaseId, CasePlan, CheckReport, Event, FrameBody, Judged, Transcript};
use mcproof_report::{Style, frame_line, is_frame_line};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Job {
    /// As the agent calls it.
    pub(super) tool: String,
    /// The command line, without the program.
    pub(super) words: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) folder: Option<PathBuf>,
    pub(super) wire: Wire,
    pub(super) deadline: Duration,
}

/// Where the process leaves what was on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// On stderr, as it happens, between its talk.
    Stderr,
    /// In a file, as a report of a check.
    Check,
    /// In a file, as the events of a run: the wire of the tests that failed.
    Test,
}

/// What a process left.
pub(super) struct JobResult {
    pub(super) end: JobEnd,
    /// What it said on stdout.
    pub(super) report: Vec<String>,
    /// What it said on stderr.
    pub(super) talk: Vec<String>,
    pub(super) wire: StoredLines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobEnd {
    Code(i32),
    Signal,
    /// It had not ended in time.
    Late,
}

/// What is kept of the output while the process runs: the first lines, up to a quarter of the bytes, and the newest.
const OUTPUT: TapBounds = TapBounds { first: 8192, bytes: 4 << 20 };

impl Job {
    /// Cancel safe in the sense that matters: dropping it kills what runs.
    ///
    /// # Errors
    /// The process could not be started.
    pub(super) async fn run(&self, binary: &Path, guardian: &Guardian) -> Result<JobResult, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("cannot create a directory for the traffic: {error}"))?;
        let file = folder.path().join("wire.json");
        let mut command = vec![binary.display().to_string()];
        command.extend(self.flags(&file));
        let launch = Launch { command, env: self.env.clone(), folder: self.folder.clone(), ..Launch::default() };
        let tap = Tap::with(OUTPUT, Vec::new(), None);
        let ended = run_command(&launch, guardian, &tap, self.deadline).await.map_err(|failure| failure.to_string())?;
        let end = match ended {
            None => JobEnd::Late,
            Some(exit) => exit.code.map_or(JobEnd::Signal, JobEnd::Code),
        };
        let mut ran = JobResult { end, report: Vec::new(), talk: Vec::new(), wire: StoredLines::default() };
        ran.take_output(&tap.transcript());
        match self.wire {
            Wire::Stderr => {}
            Wire::Check => read_check(&file, &mut ran.wire),
            Wire::Test => read_events(&file, &mut ran.wire),
        }
        Ok(ran)
    }

    /// The words, with those flags that say where the wire goes, before any `--`.
    fn flags(&self, file: &Path) -> Vec<String> {
        let mut words = self.words.clone();
        let flag = match self.wire {
            Wire::Stderr => None,
            Wire::Check => Some(format!("--trace={}", file.display())),
            Wire::Test => Some(format!("--reporter=json={}", file.display())),
        };
        words.splice(1..1, ["--color=never".to_owned()].into_iter().chain(flag));
        words
    }
}

impl JobResult {
    fn take_output(&mut self, output: &Transcript) {
        for frame in &output.frames {
            match &frame.body {
                FrameBody::Stdout { bytes } => self.report.push(bytes.to_text().into_owned()),
                FrameBody::Stderr { bytes } => {
                    let text = bytes.to_text();
                    if is_frame_line(&text) {
                        self.wire.push(&text);
                    } else {
                        self.talk.push(text.into_owned());
                    }
                }
                // It stands where lines were not kept.
                FrameBody::Note { text } => self.report.push(text.clone()),
                _ => {}
            }
        }
    }
}

/// The conversations of a check, those with findings first. Nothing where the check did not get to its end.
fn read_check(file: &Path, wire: &mut StoredLines) {
    let report = File::open(file).ok().and_then(|file| serde_json::from_reader(BufReader::new(file)).ok());
    let Some(CheckReport { rules, conversations, .. }) = report else { return };
    let findings = rules.iter().filter_map(|ruling| match &ruling.judged {
        Judged::Broken { findings } => Some(findings),
        _ => None,
    });
    let cited: BTreeSet<usize> = findings.flatten().map(|finding| finding.conversation).collect();
    let mut conversations: Vec<_> = conversations.iter().enumerate().collect();
    conversations.sort_by_key(|(index, _)| !cited.contains(index));
    for (_, take) in conversations {
        wire.push(&format!("== {} ({} {})", take.name, take.transport, take.revision));
        show(&take.transcript, wire);
    }
}

/// The conversations of the tests that failed, as far as a run got.
fn read_events(file: &Path, wire: &mut StoredLines) {
    let Ok(file) = File::open(file) else { return };
    let mut planned: BTreeMap<CaseId, CasePlan> = BTreeMap::new();
    for event in BufReader::new(file).lines().map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()) {
        match event {
            Event::RunStarted { cases, .. } => planned = cases.into_iter().map(|case| (case.id, case)).collect(),
            Event::CaseFinished(outcome) => {
                for session in &outcome.transcripts {
                    let case = planned.get(&outcome.id).map(|case| format!("{} > {} [{}], ", case.suite, case.name, case.transport));
                    wire.push(&format!("== {}{}", case.unwrap_or_default(), session.server));
                    show(&session.transcript, wire);
                }
            }
            _ => {}
        }
    }
}

fn show(transcript: &Transcript, wire: &mut StoredLines) {
    let style = Style::default();
    transcript.frames.iter().for_each(|frame| wire.push(frame_line(frame, &style).trim_end()));
}
