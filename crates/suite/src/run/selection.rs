//! Which cases of the suites a run takes, how often, and in which order. Knows plans, not the wire.

use super::expand::{SetAside, Work, expand, expand_left_out, repeat};
use super::filter::Filter;
use super::shard::{Shard, case_key, shuffled};
use crate::plan::{Action, Case, LeftOutBy, ProfileTags, Step, Suite};
use mcproof_analysis::{did_you_mean, listed};
use mcproof_protocol::Transport;
use mcproof_record::{
    CaseKey, CaseOutcome, CasePlan, Diagnostic, FORMAT_VERSION, Place, PlannedCase, PlannedRun, PlannedStep, Severity, counted,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

/// What a user asked for. All parts have to agree.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only these; all that the suites declare if empty.
    pub transports: Vec<Transport>,
    /// Suite files of which only some tests are meant, by their names as in the plan.
    pub picks: BTreeMap<String, Vec<Pick>>,
    /// At least one has to match, if there are any.
    pub filters: Vec<Filter>,
    /// Only these.
    pub unfinished: Option<BTreeSet<CaseKey>>,
    pub shard: Option<Shard>,
    pub order: Order,
    /// How often each case is run; 0 and 1 are the same.
    pub repeat: u32,
    /// Where the run was started: what names of suites are relative to.
    pub folder: PathBuf,
}

/// A test of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// By its exact name.
    Name(String),
    /// The test in which this line is, counted from 1.
    Line(u32),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    AsWritten,
    Shuffled {
        seed: u32,
    },
}

/// The cases of a run; empty only for a part of a run that has fewer cases than parts.
#[derive(Clone)]
pub struct Plan {
    /// In the order of the suites: an id is a position in here.
    pub(super) cases: Vec<Work>,
    pub(super) left_out: u32,
    /// What is odd about the suites without being wrong.
    pub(super) notices: Vec<Diagnostic>,
    pub(super) order: Order,
    folder: PathBuf,
}

/// Expands and narrows the suites.
///
/// # Errors
/// Says why no case is left.
pub fn plan(suites: &[Arc<Suite>], selection: &Selection) -> Result<Plan, Box<Diagnostic>> {
    let all = expand(suites);
    let mut set_aside = expand_left_out(suites);
    let total = all.len() + set_aside.len();
    if all.is_empty() {
        return Err(nothing_in_profile(suites, &set_aside));
    }
    let mut left = all;
    if !selection.transports.is_empty() {
        left.retain(|work| selection.transports.contains(&work.transport));
        set_aside.retain(|case| selection.transports.contains(&case.transport));
        if left.is_empty() {
            return Err(nothing("no test uses a transport that was asked for", "leave out --transport"));
        }
    }
    left = picked(left, &selection.picks, &set_aside)?;
    let mut idle: Vec<Diagnostic> = suites.iter().filter_map(idle_profile).collect();
    if !selection.filters.is_empty() {
        let before = plans(&left);
        left.retain(|work| selection.filters.iter().any(|filter| filter.matches(&work.plan)));
        if left.is_empty() {
            return Err(nothing_matches(&selection.filters, &before, &set_aside));
        }
        // The others hide it.
        for filter in selection.filters.iter().filter(|filter| !before.iter().any(|case| filter.matches(case))) {
            let unmet = nothing_matches(std::slice::from_ref(filter), &before, &set_aside);
            idle.push(Diagnostic { message: "one of the filters matches no test".to_owned(), severity: Severity::Warning, ..*unmet });
        }
    }
    let key = |work: &Work| case_key(&work.plan, &selection.folder);
    let mut selected = left.len();
    // Before what depends on the last run, which each machine knows for its own part only.
    if let Some(shard) = selection.shard {
        let mut held = shard.holds(&left.iter().map(key).collect::<Vec<_>>()).into_iter();
        left.retain(|_| held.next().is_some_and(|is_held| is_held));
        if left.is_empty() {
            let verb = if selected == 1 { "is" } else { "are" };
            let message = format!("shard {shard} has no tests: only {} {verb} selected", tests(selected));
            idle.push(
                Diagnostic::warning("empty-shard", message).hint("the other shards run all of them; split the run into fewer shards"),
            );
        }
        selected = left.len();
    }
    if let (Some(unfinished), false) = (&selection.unfinished, left.is_empty()) {
        left.retain(|work| unfinished.contains(&key(work)));
        if left.is_empty() {
            let message = format!("none of {} failed or was left unfinished in the last run in this directory", tests(selected));
            return Err(nothing(message, "run all tests without --rerun-failed"));
        }
    }
    let left_out = u32::try_from(total - left.len()).unwrap_or(u32::MAX);
    let cases = repeat(left, selection.repeat);
    let notices = suites.iter().flat_map(|suite| suite.notices.iter().cloned()).chain(idle).collect();
    Ok(Plan { cases, left_out, notices, order: selection.order, folder: selection.folder.clone() })
}

impl Plan {
    /// Whether this is a part of a run that has fewer cases than parts.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// Whether a case failed in a step that runs a command: it did what no server has a part in.
    pub fn failed_in_command(&self, outcome: &CaseOutcome) -> bool {
        let Some(work) = self.cases.iter().find(|work| work.plan.id == outcome.id) else { return false };
        let (case, shared) = (work.case(), &work.suite.shared);
        let steps = [&shared.setup, &case.hooks.setup, &case.steps, &case.hooks.teardown, &shared.teardown].into_iter().flatten();
        let commands = steps.flat_map(Step::leaves).filter(|step| matches!(step.action, Action::Run(_)));
        let commands: Vec<&Place> = commands.map(|step| &step.place).collect();
        let steps = outcome.steps.iter().filter(|step| !step.passed).map(|step| &step.place);
        // A test that took too long ended within a step that has no outcome.
        let errors = outcome.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        steps.chain(errors.filter_map(|error| error.place.as_ref())).any(|place| commands.contains(&place))
    }

    /// The suites of its cases, each once.
    pub(super) fn suites(&self) -> impl Iterator<Item = &Suite> {
        let mut last = std::ptr::null();
        let is_next = move |suite: &&Suite| !std::ptr::eq(std::mem::replace(&mut last, std::ptr::from_ref::<Suite>(suite)), *suite);
        self.cases.iter().map(|work| &*work.suite).filter(is_next)
    }

    /// For reading: what would run.
    pub fn describe(&self) -> PlannedRun {
        let describe = |work: Work| {
            let Case { hooks, steps, .. } = work.case();
            let steps = hooks.setup.iter().chain(steps).chain(&hooks.teardown);
            let steps = steps.map(|step| PlannedStep {
                title: step.action.title(),
                server: step.server.clone().unwrap_or_default(),
                line: step.place.line,
            });
            PlannedCase { steps: steps.collect(), case: work.plan }
        };
        let cases = self.in_order().into_iter().map(describe).collect();
        PlannedRun { version: FORMAT_VERSION, cases, left_out: self.left_out, seed: self.seed() }
    }

    /// In the order in which they start.
    pub(super) fn in_order(&self) -> Vec<Work> {
        let mut cases = self.cases.clone();
        if let Order::Shuffled { seed } = self.order {
            cases.sort_by_cached_key(|work| shuffled(&work.plan, &self.folder, seed));
        }
        cases
    }

    pub(super) fn seed(&self) -> Option<u32> {
        match self.order {
            Order::AsWritten => None,
            Order::Shuffled { seed } => Some(seed),
        }
    }
}

fn picked(cases: Vec<Work>, picks: &BTreeMap<String, Vec<Pick>>, set_aside: &[SetAside]) -> Result<Vec<Work>, Box<Diagnostic>> {
    let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, picks) in picks {
        let of_file: Vec<&Work> = cases.iter().filter(|work| work.plan.suite == *file).collect();
        for pick in picks {
            let is_meant = |work: &&&Work| match pick {
                Pick::Name(name) => work.plan.name == *name,
                Pick::Line(line) => lines_of(work).contains(line),
            };
            let found: Vec<&str> = of_file.iter().filter(is_meant).map(|work| work.plan.name.as_str()).collect();
            if found.is_empty() {
                let left_out = set_aside.iter().find(|case| case.plan.suite == *file && case.is_meant_by(pick));
                return Err(match left_out.map(SetAside::reason) {
                    Some((message, hint)) => nothing(message, hint),
                    None => not_there(file, pick, &of_file),
                });
            }
            wanted.entry(file).or_default().extend(found);
        }
    }
    let is_wanted = |work: &&Work| wanted.get(work.plan.suite.as_str()).is_none_or(|names| names.contains(work.plan.name.as_str()));
    Ok(cases.iter().filter(is_wanted).cloned().collect())
}

impl SetAside {
    fn is_meant_by(&self, pick: &Pick) -> bool {
        match pick {
            Pick::Name(name) => self.plan.name == *name,
            Pick::Line(line) => (self.plan.line..=self.last_line).contains(line),
        }
    }

    /// Why it cannot be selected, and what to do.
    fn reason(&self) -> (String, &'static str) {
        let (why, hint) = match self.by {
            LeftOutBy::Only => ("because another test has `only: true`", "take `only` out"),
            LeftOutBy::Profile => ("because it has no tag of the profile", "leave out --profile, or give the test a tag of the profile"),
        };
        (format!("`{}` of {} is left out, {why}", self.plan.name, self.plan.suite), hint)
    }
}

fn lines_of(work: &Work) -> RangeInclusive<u32> {
    work.plan.line..=work.case().last_line
}

fn not_there(file: &str, pick: &Pick, cases: &[&Work]) -> Box<Diagnostic> {
    match pick {
        Pick::Line(line) => {
            let distance = |work: &&&Work| line.abs_diff(*line.clamp(lines_of(work).start(), lines_of(work).end()));
            let near = cases.iter().min_by_key(distance).map(|work| match lines_of(work).into_inner() {
                (first, last) if first == last => format!("; the nearest one is `{}` in line {first}", work.plan.name),
                (first, last) => format!("; the nearest one is `{}` in lines {first} to {last}", work.plan.name),
            });
            let hint = format!("give a line of a test, or of one of its steps{}", near.unwrap_or_default());
            nothing(format!("no test at {file}:{line}"), hint)
        }
        Pick::Name(name) => {
            let message = format!("{file} has no test called `{name}`");
            match did_you_mean(name, cases.iter().map(|work| work.plan.name.as_str())) {
                Some(near) => nothing(message, format!("did you mean `{near}`?")),
                None => nothing(message, format!("`mcproof plan {file}` lists its tests; --filter 'name(…)' takes a part of a name")),
            }
        }
    }
}

fn nothing_matches(filters: &[Filter], cases: &[CasePlan], set_aside: &[SetAside]) -> Box<Diagnostic> {
    let left_out = set_aside.iter().find(|case| filters.iter().any(|filter| filter.matches(&case.plan)));
    let unmet: Vec<String> = filters.iter().flat_map(|filter| filter.unmet(cases)).collect();
    let hint = match left_out.map(SetAside::reason) {
        Some((why, hint)) => format!("{why}: {hint}"),
        None if unmet.is_empty() => {
            "every condition is met by some test, but all together by none; `mcproof plan` lists the tests".to_owned()
        }
        None => unmet.join("; "),
    };
    nothing(format!("none of {} matches the filter", tests(cases.len())), hint)
}

/// Why the suites have no test at all: every other way is a mistake in a suite.
fn nothing_in_profile(suites: &[Arc<Suite>], set_aside: &[SetAside]) -> Box<Diagnostic> {
    let set_aside: Vec<&SetAside> = set_aside.iter().filter(|case| case.by == LeftOutBy::Profile).collect();
    let profiles: Vec<&ProfileTags> = suites.iter().filter_map(|suite| suite.profile_tags.as_ref()).collect();
    let wanted: BTreeSet<&str> = profiles.iter().flat_map(|profile| &profile.tags).map(String::as_str).collect();
    let had: BTreeSet<&str> = set_aside.iter().flat_map(|case| &case.plan.tags).map(String::as_str).collect();
    let profile = profiles.first().map(|tags| tags.profile.as_str()).unwrap_or_default();
    let message =
        format!("the profile `{profile}` selects none of {}: none has {}", tests(set_aside.len()), one_of(wanted.iter().copied()));
    match wanted.iter().find_map(|tag| did_you_mean(tag, had.iter().copied())) {
        Some(near) => nothing(message, format!("did you mean `{near}`?")),
        None if had.is_empty() => nothing(message, "none has any tag: add `tags:` to the tests that may run there"),
        None => nothing(message, format!("tags are {}", listed(had))),
    }
}

/// What of the suites is hidden by others from which a profile selects something.
fn idle_profile(suite: &Arc<Suite>) -> Option<Diagnostic> {
    let ProfileTags { profile, tags } = suite.profile_tags.as_ref().filter(|_| suite.cases.is_empty())?;
    let message =
        format!("the profile `{profile}` selects no test of {}: none has {}", suite.file, one_of(tags.iter().map(String::as_str)));
    Some(Diagnostic::warning("nothing-selected", message))
}

fn one_of<'a>(tags: impl Iterator<Item = &'a str>) -> String {
    let tags: Vec<&str> = tags.collect();
    let noun = if tags.len() == 1 { "the tag" } else { "one of the tags" };
    format!("{noun} {}", listed(tags))
}

fn plans(cases: &[Work]) -> Vec<CasePlan> {
    cases.iter().map(|work| work.plan.clone()).collect()
}

fn tests(count: usize) -> String {
    counted(count, "test")
}

fn nothing(message: impl Into<String>, hint: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("nothing-selected", message).hint(hint))
}
