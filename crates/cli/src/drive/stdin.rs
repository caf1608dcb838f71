//! The lines of the driver. Knows line feeds, not what stands between them.

use crate::failure::Failure;
use std::io::BufRead as _;
use tokio::sync::mpsc;

/// Lines that wait for being looked at; a driver that writes faster has to wait.
const MOST_WAITING: usize = 1024;

/// The lines of stdin without their line feeds, until its end. A thread reads them: no other way leaves the terminal of a
/// person as it was.
pub(super) fn lines() -> Result<mpsc::Receiver<Vec<u8>>, Failure> {
    let (sender, lines) = mpsc::channel(MOST_WAITING);
    let reads = move || {
        let mut stdin = std::io::BufReader::with_capacity(256 << 10, std::io::stdin().lock());
        loop {
            let mut line = Vec::new();
            match stdin.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let end = line.trim_ascii_end().len();
            line.truncate(end);
            // An empty line is nothing, as on a terminal.
            if !line.is_empty() && sender.blocking_send(line).is_err() {
                return;
            }
        }
    };
    let started = std::thread::Builder::new().name("stdin".into()).spawn(reads);
    started.map_err(|error| Failure::bad_input("no-thread", format!("the system gives no thread: {error}")))?;
    Ok(lines)
}
