//! `mcproof.node`: the engine inside a Node.js process, so that a call to a server object there crosses no pipe. Carries lines;
//! knows nothing of what they say.

mod lines;

use lines::Lines;
use mcproof_client::{Limits, TapBounds, inherited_secrets};
use mcproof_drive::{Embedded, Settings};
use mimalloc::MiMalloc;
use napi::Env;
use napi::bindgen_prelude::{Error, Function, FunctionCallContext, Result};
use napi_derive::napi;
use std::collections::BTreeMap;
use std::env;
use std::io::Write as _;

/// Only the engine's: Node.js has its own for everything else.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Makes an engine: a function that takes lines of `mcproof drive`'s protocol, does all that can be done without waiting, and gives
/// back the lines that there are to read.
///
/// # Errors
/// The system has no room for it.
#[napi(ts_return_type = "(lines: string) => string")]
pub fn engine(env: &Env) -> Result<Function<'_, Lines, Lines>> {
    let engine = Embedded::new(settings()).map_err(Error::from_reason)?;
    // Not a class: its instance would be looked up in each call.
    env.create_function_from_closure("turn", move |call: FunctionCallContext<'_>| {
        let lines: Lines = call.get(0)?;
        Ok(Lines(engine.turn(&lines.0)))
    })
}

#[expect(clippy::disallowed_methods, reason = "no command line stands above this")]
fn settings() -> Settings {
    let variables: BTreeMap<String, String> =
        env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
    Settings { limits: Limits::default(), tap: TapBounds::default(), secrets: inherited_secrets(&variables), talk }
}

/// Prints a message to stderr. Does nothing if stderr is closed.
fn talk(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
