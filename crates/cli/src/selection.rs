//! The flags that select tests, their order and repetition. Shared by `test` and `plan`.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::last_run::Memory;
use crate::numbers::whole;
use crate::settings;
use crate::suites::{Loaded, SuiteArgs};
use mcproof_record::{Diagnostic, Severity};
use mcproof_suite::ONLY;
use mcproof_suite::plan::Suite;
use mcproof_suite::run::{self, Filter, Order, Plan, Selection, Shard};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectionArgs {
    /// Run only tests that match this expression, such as 'tag(smoke) & !name(/slow/)'; if repeated, tests that match any
    #[arg(short = 'E', long = "filter", alias = "filter-expr", alias = "filterset", value_name = "EXPRESSION")]
    filters: Vec<String>,
    /// Run only one of N parts of the tests, such as 2/5; parts differ in size by one test at most
    #[arg(long, value_name = "I/N", value_parser = |text: &str| text.parse::<Shard>())]
    shard: Option<Shard>,
    /// Run only tests that failed, were canceled or never ran when last selected from this directory
    #[arg(long, visible_alias = "last-failed")]
    rerun_failed: bool,
    /// Run the tests in random order
    #[arg(long)]
    shuffle: bool,
    /// Seed of --shuffle, to repeat an order
    #[arg(long, value_name = "NUMBER", value_parser = whole(0..=u32::MAX), hide_short_help = true)]
    seed: Option<u32>,
    /// Run each test N times
    #[arg(long, alias = "repeat-each", value_name = "N", default_value_t = 1, value_parser = whole(1..=100_000_u32), hide_default_value = true)]
    repeat: u32,
    /// Run tests with `only: true` alone although `CI` is set, instead of refusing the suite
    #[arg(long, hide_short_help = true)]
    allow_only: bool,
}

/// What leaves out tests while somebody works on one of them is a mistake where nobody does.
fn refuse_only(suites: &[Arc<Suite>]) -> Result<(), Failure> {
    let mut all = suites.iter().flat_map(|suite| &suite.notices).filter(|notice| notice.code == ONLY);
    let Some(first) = all.next() else { return Ok(()) };
    let others = match all.count() {
        0 => String::new(),
        1 => "; another suite has it as well".to_owned(),
        others => format!("; {others} other suites have it as well"),
    };
    let message = format!("{}, but `CI` is set{others}", first.message);
    let hint = "remove `only`, or run only these tests with --allow-only".to_owned();
    Err(Failure::new(Exit::BadInput, Diagnostic { severity: Severity::Error, message, hint: Some(hint), ..first.clone() }))
}

/// Which of the tests are taken, apart from what was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    AsTyped,
    /// As with `--rerun-failed`.
    Unfinished,
}

impl SelectionArgs {
    /// # Errors
    /// A filter is none, nothing is selected, or `only` was left in a suite that runs in CI.
    pub(crate) fn plan(&self, suites: &SuiteArgs, loaded: Loaded, scope: Scope, memory: &Memory) -> Result<Plan, Failure> {
        if settings::is_ci() && !self.allow_only {
            refuse_only(&loaded.suites)?;
        }
        let filters = self.filters.iter().map(|text| Filter::parse(text)).collect::<Result<_, _>>();
        let rerun = self.rerun_failed || scope == Scope::Unfinished;
        let selection = Selection {
            transports: suites.transport.clone(),
            picks: loaded.picks,
            filters: filters.map_err(|diagnostic| Failure::new(Exit::BadInput, *diagnostic))?,
            unfinished: if rerun { memory.unfinished() } else { None },
            shard: self.shard,
            order: self.order(),
            repeat: self.repeat,
            folder: settings::current_folder(),
        };
        run::plan(&loaded.suites, &selection).map_err(|diagnostic| Failure::new(Exit::NothingSelected, *diagnostic))
    }

    fn order(&self) -> Order {
        match (self.seed, self.shuffle) {
            (Some(seed), _) => Order::Shuffled { seed },
            // Small enough to be typed again.
            (None, true) => Order::Shuffled { seed: u32::try_from(RandomState::new().hash_one(0) % 1_000_000).unwrap_or_default() },
            (None, false) => Order::AsWritten,
        }
    }
}
