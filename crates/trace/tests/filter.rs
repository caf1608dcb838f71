//! The table of cases that every implementation of the filter language passes.

use mcproof_trace::SessionInfo;
use mcproof_trace::calls::Call;
use mcproof_trace::filter::{FILTER_CASES, Filter, FilterError};
use serde::Deserialize;
use std::panic::catch_unwind;

#[derive(Deserialize)]
struct Table {
    sessions: Vec<SessionInfo>,
    calls: Vec<Call>,
    matches: Vec<Match>,
    errors: Vec<Mistake>,
}

#[derive(Deserialize)]
struct Match {
    filter: String,
    calls: Vec<u64>,
}

#[derive(Deserialize)]
struct Mistake {
    filter: String,
    message: String,
    column: usize,
    length: usize,
    hint: Option<String>,
}

#[test]
fn the_table_holds() {
    let table: Table = serde_json::from_str(FILTER_CASES).unwrap();
    assert!(table.matches.len() > 50 && table.errors.len() > 20);
    let session = |call: &Call| table.sessions.iter().find(|session| session.key == call.session);
    for Match { filter, calls } in &table.matches {
        let parsed = Filter::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
        let found: Vec<_> = table.calls.iter().filter(|call| parsed.matches(call, session(call))).map(|call| call.key.0).collect();
        assert_eq!(&found, calls, "{filter}");
    }
    for Mistake { filter, message, column, length, hint } in table.errors {
        let error = Filter::parse(&filter).unwrap_err();
        assert_eq!(error, FilterError { message, column, length, hint }, "{filter}");
    }
}

#[test]
fn no_text_makes_the_parser_panic() {
    let parts = ["(", ")", "-", "\"", "\\", "OR", " ", "a", "tool:", ":", ">", "duration:>", "é", "*", "status:"];
    let mut random = 12345_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..random % 12 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text += parts[(random >> 33) as usize % parts.len()];
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let outcome =
            catch_unwind(|| Filter::parse(&text).map_err(|error| error.column + error.length)).unwrap_or_else(|_| panic!("{text}"));
        assert!(outcome.err().is_none_or(|end| end <= text.chars().count().max(1)), "{text}");
    }
    assert!(Filter::parse(&"(".repeat(100_000)).is_err() && Filter::parse(&"-".repeat(100_000)).is_err());
}
