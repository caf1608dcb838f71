//! Whatever a server sends instead of an HTTP response, the request ends: with a response whose parts can be passed on, or with an
//! error message. Over a real connection, because the parser of heads reads only from one.

use mcproof_client::auth::metadata_hint;
use mcproof_client::transport::{HttpCall, Network};
use mcproof_report::escape;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// The longest that anything may take: everything has been sent before that.
const PATIENCE: Duration = Duration::from_secs(5);

struct World {
    runtime: Runtime,
    url: Url,
    replies: SyncSender<Vec<u8>>,
}

/// A server that sends the given bytes on each connection, and closes it.
static WORLD: LazyLock<Mutex<World>> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").expect("this machine has a loopback");
    let port = listener.local_addr().expect("it is bound").port();
    let (replies, waiting) = mpsc::sync_channel::<Vec<u8>>(1);
    std::thread::spawn(move || {
        while let (Ok(reply), Ok((mut stream, _))) = (waiting.recv(), listener.accept()) {
            // Only once the request is there: a response before it is another case, which the first byte chooses.
            let begins_early = reply.first().is_some_and(|byte| *byte == b'!');
            if !begins_early {
                let _ = stream.read(&mut [0; 1024]);
            }
            let _ = stream.write_all(&reply[usize::from(begins_early)..]);
            let _ = stream.shutdown(Shutdown::Write);
            // Until the client has closed it, too, so that no reset takes away what was written.
            let _ = stream.set_read_timeout(Some(PATIENCE));
            while stream.read(&mut [0; 1024]).is_ok_and(|read| read > 0) {}
        }
    });
    let runtime = Builder::new_current_thread().enable_all().build().expect("the system has timers and sockets");
    let url = Url::parse(&format!("http://127.0.0.1:{port}/mcp")).expect("it is a URL");
    Mutex::new(World { runtime, url, replies })
});

/// # Panics
/// If a property does not hold.
pub fn check(bytes: &[u8]) {
    let world = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    world.replies.send(bytes.to_vec()).expect("the server lives");
    let network = Network::default();
    let asks = async {
        let call = HttpCall::connect(&world.url, &network).await?;
        call.send("POST", &[("content-type".to_owned(), "application/json".to_owned())], b"{}".to_vec()).await
    };
    let answered = world.runtime.block_on(async { tokio::time::timeout(PATIENCE, asks).await });
    match answered.expect("a response that has ended, ends") {
        Ok(answer) => {
            assert!((100..1000).contains(&answer.status), "{answer:?}");
            assert!(bytes.windows(5).any(|window| window == b"HTTP/"), "nothing was no response");
            for (name, _) in &answer.headers {
                assert_eq!(name, &name.to_lowercase(), "names of headers are in lower case");
            }
            if let Some(hint) = metadata_hint(&answer.headers) {
                assert!(answer.header("www-authenticate").is_some(), "{hint} stands in no header");
            }
        }
        Err(broken) => {
            let said = broken.to_string();
            let said = escape(&said);
            assert!(!said.is_empty());
            assert_eq!(said.chars().find(|character| character.is_control()), None, "{said:?}");
        }
    }
}
