//! A mock over stdin and stdout: one message a line. Knows lines, no answers.

use super::player::{Started, play_after};
use super::server::{Call, MessageKind, Mock, error_message, kind, readable_id};
use super::session::{Outgoing, Outlet, Session};
use mcproof_protocol::error_code::{INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR};
use mcproof_record::read_message;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Bytes of a line.
const LONGEST: u64 = 16 << 20;
/// Requests of one client that are played at the same time.
const MOST_RUNNING: usize = 1000;
/// How long requests may take that are still open when the client has closed stdin.
const LINGER: Duration = Duration::from_secs(2);

/// Serves one client until it closes its stream, or until the recording breaks it off.
///
/// # Errors
/// A stream cannot be read or written.
pub async fn serve_stdio(
    mock: &Arc<Mock>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    let (outlet, outgoing) = Outlet::new();
    let session = Session::new(String::new());
    session.attach(outlet.clone()).await;
    let mut tasks = JoinSet::new();
    let mut reader = BufReader::new(input);
    let mut writer = tokio::spawn(write(outgoing, output));
    let mut line = Vec::new();
    loop {
        let read = tokio::select! {
            read = next_line(&mut reader, &mut line) => read?,
            // The client reads no more, or the recording ends here.
            written = &mut writer => {
                session.end();
                return written.unwrap_or(Ok(()));
            }
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
        };
        match read {
            Read::End => break,
            Read::TooLong => {
                outlet.message(error_message(&Value::Null, INVALID_REQUEST, "the line is too long")).await;
            }
            Read::Line if line.trim_ascii().is_empty() => {}
            Read::Line => receive(mock, &session, &line, &outlet, &mut tasks).await,
        }
        line.clear();
        while tasks.len() >= MOST_RUNNING && tasks.join_next().await.is_some() {}
    }
    // Whoever closes stdin still reads the answers to what it has sent.
    let all = async { while tasks.join_next().await.is_some() {} };
    let _ = timeout(LINGER, all).await;
    session.end();
    tasks.shutdown().await;
    drop((session, outlet));
    match timeout(LINGER, &mut writer).await {
        Ok(written) => written.unwrap_or(Ok(())),
        Err(_) => {
            writer.abort();
            Ok(())
        }
    }
}

enum Read {
    Line,
    TooLong,
    End,
}

/// Reads on in `line`, which survives a canceled wait.
async fn next_line(reader: &mut BufReader<impl AsyncRead + Unpin>, line: &mut Vec<u8>) -> io::Result<Read> {
    let room = (LONGEST + 1).saturating_sub(line.len() as u64);
    reader.take(room).read_until(b'\n', line).await?;
    if line.ends_with(b"\n") {
        line.pop();
        return Ok(Read::Line);
    }
    if line.len() as u64 > LONGEST {
        // The rest of the line is skipped, a piece at a time.
        loop {
            line.clear();
            let skipped = reader.take(LONGEST).read_until(b'\n', line).await?;
            if skipped == 0 || line.ends_with(b"\n") {
                return Ok(Read::TooLong);
            }
        }
    }
    Ok(if line.is_empty() { Read::End } else { Read::Line })
}

async fn receive(mock: &Arc<Mock>, session: &Arc<Session>, line: &[u8], outlet: &Outlet, tasks: &mut JoinSet<()>) {
    match read_message(line) {
        Err(error) => drop(outlet.message(error_message(&Value::Null, PARSE_ERROR, &format!("Parse error: {error}"))).await),
        Ok(Value::Array(batch)) => receive_batch(mock, session, batch, outlet, tasks).await,
        Ok(message) => receive_message(mock, session, message, outlet, tasks).await,
    }
}

pub(super) async fn receive_message(mock: &Arc<Mock>, session: &Arc<Session>, message: Value, outlet: &Outlet, tasks: &mut JoinSet<()>) {
    match kind(&message) {
        Err(reason) => drop(outlet.message(error_message(&readable_id(&message), INVALID_REQUEST, &reason)).await),
        Ok(MessageKind::Response) => session.respond(message),
        Ok(MessageKind::Notification) => {
            let after = mock.noted(session, &message);
            if !after.is_empty() {
                let (mock, session) = (Arc::clone(mock), Arc::clone(session));
                tasks.spawn(async move { play_after(&mock, &session, after).await });
            }
        }
        Ok(MessageKind::Request) => {
            let started = Started::of(mock, call(mock, session, message));
            let (mock, outlet) = (Arc::clone(mock), outlet.clone());
            tasks.spawn(async move { started.play(&mock, outlet).await });
        }
    }
}

/// A request of a session, in the era that it is in.
pub(super) fn call(mock: &Mock, session: &Arc<Session>, mut message: Value) -> Call {
    let era = mock.era_of(session, &message);
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let params = message.get_mut("params").map_or_else(|| json!({}), Value::take);
    Call { session: Arc::clone(session), era, id: message["id"].take(), method, params }
}

/// Batches, which only 2025-03-26 has (basic#batching): the responses come as a batch, too.
async fn receive_batch(mock: &Arc<Mock>, session: &Arc<Session>, batch: Vec<Value>, outlet: &Outlet, tasks: &mut JoinSet<()>) {
    if let Some(refused) = batch_error(session, &batch) {
        outlet.message(refused).await;
        return;
    }
    let (mock, session, outlet) = (Arc::clone(mock), Arc::clone(session), outlet.clone());
    tasks.spawn(async move {
        let responses = play_batch(&mock, &session, batch, &outlet).await;
        if !responses.is_empty() {
            outlet.message(Value::Array(responses)).await;
        }
    });
}

/// Why a batch is none.
pub(super) fn batch_error(session: &Session, batch: &[Value]) -> Option<Value> {
    let refuse = |why: &str| Some(error_message(&Value::Null, INVALID_REQUEST, &format!("Invalid request: {why}")));
    if session.version().as_deref() != Some("2025-03-26") {
        return refuse("there are no batches in this revision");
    }
    if batch.is_empty() || batch.iter().any(|message| kind(message).is_err()) {
        return refuse("the batch holds something else than messages");
    }
    None
}

/// Plays all requests of a batch one after the other; gives the responses. All else goes to the outlet.
pub(super) async fn play_batch(mock: &Arc<Mock>, session: &Arc<Session>, batch: Vec<Value>, outlet: &Outlet) -> Vec<Value> {
    let mut responses = Vec::new();
    for message in batch {
        match kind(&message) {
            Ok(MessageKind::Response) => session.respond(message),
            Ok(MessageKind::Notification) => {
                let after = mock.noted(session, &message);
                play_after(mock, session, after).await;
            }
            Ok(MessageKind::Request) => {
                let started = Started::of(mock, call(mock, session, message));
                let (inner, mut outgoing) = Outlet::new();
                let forward = async {
                    while let Some(sent) = outgoing.recv().await {
                        match sent {
                            Outgoing::Message { message, .. } if message.get("method").is_none() => responses.push(message),
                            other => drop(outlet.send(other).await),
                        }
                    }
                };
                tokio::join!(started.play(mock, inner), forward);
            }
            Err(_) => {}
        }
    }
    responses
}

async fn write(mut outgoing: mpsc::Receiver<Outgoing>, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
    while let Some(sent) = outgoing.recv().await {
        let message = match sent {
            Outgoing::Message { message, .. } => message,
            Outgoing::Http { id, status, .. } => {
                error_message(&id, INTERNAL_ERROR, &format!("the recorded server responded with HTTP {status}"))
            }
            Outgoing::Break => return Ok(()),
        };
        let mut line = serde_json::to_vec(&message).map_err(io::Error::from)?;
        line.push(b'\n');
        output.write_all(&line).await?;
        output.flush().await?;
    }
    output.shutdown().await
}
