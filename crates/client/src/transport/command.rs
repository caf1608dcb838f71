//! A command that is no server: run to its end, its output kept by the tap. Knows nothing of messages.

use super::process::{Process, Stream, copy_output, exited};
use super::{Exit, Guardian, Launch, StartFailure};
use crate::Tap;
use std::time::Duration;
use tokio::time::timeout;

/// Runs a command with an empty stdin. Its output is in the tap, line by line. `None` when it had not ended within
/// `limit`; then its whole process group was killed.
///
/// # Errors
/// The command could not be started.
pub async fn run_command(launch: &Launch, guardian: &Guardian, tap: &Tap, limit: Duration) -> Result<Option<Exit>, StartFailure> {
    let (process, stdin, stdout) = Process::start(launch, guardian, tap, None).await?;
    drop(stdin);
    let copy = copy_output(stdout, tap.clone(), Stream::Stdout, None);
    let mut exit = process.watch_exit();
    let end = async {
        // A grandchild may hold stdout open for longer than the command lives.
        let ((), ended) = tokio::join!(async { _ = timeout(limit, copy).await }, exited(&mut exit));
        ended
    };
    let ended = timeout(limit, end).await.ok().flatten();
    process.settle().await;
    Ok(ended)
}
