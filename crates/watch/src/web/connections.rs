//! Takes connections, and ends those that are only held: bounds how many there are, in all and of each client_network, and how long
//! an answer may wait until it is read. Knows no page.

mod pace;

use super::Peer;
use axum::Router;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pace::Paced;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// What peers may take of us.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Connections at a time; others wait.
    pub(super) all: usize,
    /// The same of one client_network; others are closed at once.
    pub(super) of_one: usize,
    /// For the head of a request to come; without one for so long, a connection ends.
    pub(super) head: Duration,
    /// For a peer to take anything of what is written. An answer that says nothing for a while is not late.
    pub(super) write: Duration,
    /// What is taken has to be taken this fast in the long run, in bytes per second: who takes a little now and then is as good as
    /// one who takes nothing.
    pub(super) pace: u32,
}

/// Half of the connections are enough for a proxy that the configuration does not know, and leave the rest to others.
pub(super) const USUAL: Limits =
    Limits { all: 512, of_one: 256, head: Duration::from_secs(15), write: Duration::from_secs(30), pace: 1_024 };

/// Answers for as long as it is polled; the connections live on in `connections`, until `closing` asks them to end. Those of a
/// proxy are many people's, and only bounded by all there are.
pub(super) async fn answer(
    listener: &TcpListener,
    router: &Router,
    limits: Limits,
    is_proxy: impl Fn(IpAddr) -> bool,
    closing: &watch::Receiver<bool>,
    connections: &mut JoinSet<()>,
) {
    let room = Arc::new(Semaphore::new(limits.all));
    let counts = ConnectionCounts::default();
    loop {
        let permit = room.clone().acquire_owned().await.expect("the semaphore is never closed");
        while connections.try_join_next().is_some() {}
        let (stream, peer) = match listener.accept().await {
            Ok((stream, address)) => (stream, Peer(address)),
            Err(_) => {
                // Out of file descriptors, or gone before we came to it: the next one may do better.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let most = if is_proxy(peer.address()) { limits.all } else { limits.of_one };
        let Some(seat) = counts.admit(peer.client_network(), most) else { continue };
        let connection = serve(stream, peer, router.clone(), limits, closing.clone());
        connections.spawn(async move {
            connection.await;
            drop((seat, permit));
        });
    }
}

async fn serve(stream: TcpStream, peer: Peer, router: Router, limits: Limits, mut closing: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let stream = Paced::new(stream, limits.write, limits.pace);
    let inner = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer);
        inner.call(request)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => {}
        () = super::closed(&mut closing) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// How many connections each client_network has.
#[derive(Clone, Default)]
struct ConnectionCounts(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// Held by a connection for as long as it lives.
struct ConnectionPermit {
    counts: ConnectionCounts,
    client_network: IpAddr,
}

impl ConnectionCounts {
    /// None if `most` are here already.
    fn admit(&self, client_network: IpAddr, most: usize) -> Option<ConnectionPermit> {
        let mut all = self.0.lock().expect("no thread panics while it holds the lock");
        let here = all.entry(client_network).or_default();
        if *here >= most {
            return None;
        }
        *here += 1;
        Some(ConnectionPermit { counts: self.clone(), client_network })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut all = self.counts.0.lock().expect("no thread panics while it holds the lock");
        if let Some(here) = all.get_mut(&self.client_network) {
            *here -= 1;
            if *here == 0 {
                all.remove(&self.client_network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body, Bytes};
    use axum::routing::get;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::oneshot;

    const SHORT: Duration = Duration::from_millis(100);
    /// More than the buffers of two sockets take.
    const LARGE: usize = 64 << 20;

    /// A small answer, one that is too large to be sent unread, and one that pauses.
    fn router() -> Router {
        let large = Bytes::from(vec![b'x'; LARGE]);
        let pauses = || async {
            let parts = futures_util::stream::unfold(0_usize, |step| async move {
                if step == 1 {
                    tokio::time::sleep(4 * SHORT).await;
                }
                let part = ["first ", "last"].get(step).copied()?;
                Some((Ok::<_, std::io::Error>(part), step + 1))
            });
            Body::from_stream(parts)
        };
        Router::new()
            .route("/", get(|| async { "here" }))
            .route("/large", get(move || std::future::ready(large.clone())))
            .route("/pauses", get(pauses))
    }

    struct Server {
        address: SocketAddr,
        _closing: watch::Sender<bool>,
        _end: oneshot::Sender<()>,
    }

    async fn start(limits: Limits, is_proxy: bool) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (closing, closed) = watch::channel(false);
        let (end, ended) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let (router, mut connections) = (router(), JoinSet::new());
            tokio::select! {
                () = answer(&listener, &router, limits, |_| is_proxy, &closed, &mut connections) => {}
                _ = ended => {}
            }
        });
        Server { address, _closing: closing, _end: end }
    }

    impl Server {
        async fn ask(&self, path: &str, more: &str) -> TcpStream {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{more}\r\n", self.address);
            // Whom the server does not want may learn it here already.
            let _ = stream.write_all(request.as_bytes()).await;
            stream
        }

        /// Everything up to the end of the connection.
        async fn whole(&self, path: &str) -> String {
            let mut stream = self.ask(path, "Connection: close\r\n").await;
            let mut text = String::new();
            let reading = tokio::time::timeout(Duration::from_secs(60), stream.read_to_string(&mut text));
            let _ = reading.await.expect("the server answers, or ends the connection");
            text
        }
    }

    #[tokio::test]
    async fn who_reads_nothing_keeps_nobody_out() {
        let server = start(Limits { all: 2, write: SHORT, ..USUAL }, false).await;
        let _silent = (server.ask("/large", "").await, server.ask("/large", "").await);
        assert!(server.whole("/").await.ends_with("here"));
    }

    #[tokio::test]
    async fn who_reads_a_little_now_and_then_keeps_no_connection() {
        let server = start(Limits { write: SHORT, pace: u32::MAX, ..USUAL }, false).await;
        let mut slow = server.ask("/large", "").await;
        let (mut some, mut taken) = (vec![0; 64 << 10], 0);
        while let Ok(count @ 1..) = slow.read(&mut some).await {
            taken += count;
            tokio::time::sleep(SHORT / 4).await;
        }
        assert!(taken < LARGE, "all of it was sent");
    }

    #[tokio::test]
    async fn an_answer_that_pauses_goes_on() {
        let server = start(Limits { write: SHORT, ..USUAL }, false).await;
        let text = server.whole("/pauses").await;
        assert!(text.contains("first ") && text.contains("last"), "{text}");
    }

    #[tokio::test]
    async fn one_household_does_not_take_all_connections() {
        for (is_proxy, answered) in [(false, false), (true, true)] {
            let server = start(Limits { all: 4, of_one: 1, ..USUAL }, is_proxy).await;
            let mut first = server.ask("/", "").await;
            assert!(first.read(&mut [0; 1024]).await.unwrap() > 0);
            assert_eq!(server.whole("/").await.ends_with("here"), answered, "a proxy: {is_proxy}");
            // The seat is free again when the server has seen the end.
            drop(first);
            while !server.whole("/").await.ends_with("here") {}
        }
    }
}
