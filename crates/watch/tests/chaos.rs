//! Random faults for the real binary, and a model that knows what it should have told: `cargo xtask chaos`. Run without arguments it
//! only tests the model.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "a chore talks to the person who started it")]

mod postgres;

#[path = "chaos/disturbances.rs"]
mod disturbances;
#[path = "chaos/judge.rs"]
mod judge;
#[path = "chaos/model.rs"]
mod model;
#[path = "chaos/monitors.rs"]
mod monitors;
#[path = "chaos/observer.rs"]
mod observer;
#[path = "chaos/outages.rs"]
mod outages;
#[path = "chaos/page.rs"]
mod page;
#[path = "chaos/pager.rs"]
mod pager;
#[path = "chaos/run.rs"]
mod run;
#[path = "chaos/scene.rs"]
mod scene;
#[path = "store/server.rs"]
mod server;
#[path = "chaos/servers.rs"]
mod servers;
#[path = "chaos/timeline.rs"]
mod timeline;

use libtest_mimic::Arguments;
use page::Figures;
use run::Plan;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["--chaos", program, words @ ..] = words.as_slice() else {
        return libtest_mimic::run(&Arguments::from_args(), model::trials()).exit_code();
    };
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned();
    let logs = root.join("target/chaos");
    std::fs::create_dir_all(&logs).unwrap();
    let mut plan = Plan { program: PathBuf::from(program), logs: logs.clone(), minutes: 10, seed: 1 };
    let mut is_again = false;
    let mut databases = vec!["sqlite", "postgres"];
    for pair in words.chunks(2) {
        match pair {
            ["--minutes", minutes] => plan.minutes = minutes.parse().unwrap(),
            ["--seed", seed] => plan.seed = seed.parse().unwrap(),
            // The records of the last runs, by another judge.
            ["--again", "record"] => is_again = true,
            ["--database", database] => databases.retain(|known| known == database),
            _ => panic!("not an argument: {pair:?}"),
        }
    }
    let mut is_flawless = true;
    for database in databases {
        let figures = if is_again { run::judge_again(&plan, database) } else { run::run(&plan, database) };
        is_flawless &= figures.is_flawless();
        std::fs::write(logs.join(format!("{database}.json")), serde_json::to_string_pretty(&figures).unwrap()).unwrap();
        println!("{}", page::page(&[figures]));
    }
    let known = ["sqlite", "postgres"].map(|database| std::fs::read(logs.join(format!("{database}.json"))));
    let known: Vec<Figures> = known.into_iter().flatten().filter_map(|text| serde_json::from_slice(&text).ok()).collect();
    std::fs::write(root.join("docs/chaos.md"), page::page(&known)).unwrap();
    if is_flawless { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
