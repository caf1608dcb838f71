//! A door in front of real servers, that opens, sticks, slows down or leads to another server as the hour says: faults on real
//! sockets, at times that nobody has to wait for.

use mcproof_demo::{self as demo, DemoName, DemoOptions, DemoTransport};
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;

/// What a connection meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    /// A real server.
    Leads(DemoName),
    /// The same one, this much later.
    Slow(DemoName, Duration),
    /// Nobody listens.
    Refuses,
    /// Takes the connection, and says nothing.
    Hangs,
    /// Answers everything with 500.
    Breaks,
}

/// The time of day, in milliseconds since it began, as all doors see it.
#[derive(Clone, Default)]
pub(crate) struct Hour(Arc<AtomicI64>);

impl Hour {
    pub(crate) fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The real servers behind all doors.
pub(crate) struct Town(Vec<(DemoName, SocketAddr)>);

impl Town {
    pub(crate) async fn build() -> Self {
        let mut servers = Vec::new();
        for name in [DemoName::Shop, DemoName::Tracker] {
            // So that they answer by whatever name they are reached.
            let transport = DemoTransport::Http { host: "0.0.0.0".into(), port: 0 };
            let listening = demo::bind(&DemoOptions { transport, ..DemoOptions::new(name) }).await.unwrap();
            servers.push((name, (Ipv4Addr::LOCALHOST, listening.address().port()).into()));
            tokio::spawn(listening.serve(pending()));
        }
        Self(servers)
    }

    fn address(&self, wanted: DemoName) -> SocketAddr {
        self.0.iter().find(|(name, _)| *name == wanted).expect("the town has all servers that the weather speaks of").1
    }
}

/// Listens while its weather lets it. `tick` is to be called whenever the hour was changed.
pub(crate) struct Door {
    address: SocketAddr,
    /// Bound for as long as the door stands, and never listening: nobody else gets the port while the door is closed.
    _port: TcpSocket,
    weather: Arc<dyn Fn(i64) -> Weather + Send + Sync>,
    hour: Hour,
    town: Arc<Town>,
    tls: Option<Arc<dyn Fn(i64) -> TlsAcceptor + Send + Sync>>,
    listening: Option<tokio::task::JoinHandle<()>>,
}

impl Door {
    pub(crate) fn new(town: &Arc<Town>, hour: &Hour, weather: impl Fn(i64) -> Weather + Send + Sync + 'static) -> Self {
        let port = bound((Ipv4Addr::LOCALHOST, 0).into());
        let address = port.local_addr().unwrap();
        Self { address, _port: port, weather: Arc::new(weather), hour: hour.clone(), town: Arc::clone(town), tls: None, listening: None }
    }

    pub(crate) fn behind_tls(mut self, certificate: impl Fn(i64) -> TlsAcceptor + Send + Sync + 'static) -> Self {
        self.tls = Some(Arc::new(certificate));
        self
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// Nobody listens any more.
    pub(crate) async fn close(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
            // Only the end of the task closes the socket.
            let _ = listening.await;
        }
    }

    /// Opens or closes the door, as the hour says.
    pub(crate) async fn tick(&mut self) {
        if (self.weather)(self.hour.get()) == Weather::Refuses {
            self.close().await;
        } else if self.listening.is_none() {
            let listener = bound(self.address).listen(256).unwrap();
            self.listening = Some(tokio::spawn(self.listen(listener)));
        }
    }

    fn listen(&self, listener: TcpListener) -> impl Future<Output = ()> + use<> {
        let Self { weather, hour, town, tls, .. } = self;
        let (weather, hour, town, tls) = (Arc::clone(weather), hour.clone(), Arc::clone(town), tls.clone());
        async move {
            // What a connection meets is decided when it comes.
            while let Ok((stream, _)) = listener.accept().await {
                let (weather, town, acceptor) = (weather(hour.get()), Arc::clone(&town), tls.as_ref().map(|tls| tls(hour.get())));
                tokio::spawn(async move {
                    match acceptor {
                        None => meet(weather, &town, stream).await,
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                meet(weather, &town, stream).await;
                            }
                        }
                    }
                });
            }
        }
    }
}

/// Several of these may have one address, of which one listens.
fn bound(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket
}

async fn meet(weather: Weather, town: &Town, mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin) {
    match weather {
        Weather::Leads(name) => lead(town.address(name), stream).await,
        Weather::Slow(name, by) => {
            tokio::time::sleep(by).await;
            lead(town.address(name), stream).await;
        }
        Weather::Refuses => {}
        Weather::Hangs => pending().await,
        Weather::Breaks => {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
            let _ = stream.shutdown().await;
        }
    }
}

async fn lead(address: SocketAddr, mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin) {
    if let Ok(mut server) = TcpStream::connect(address).await {
        let _ = copy_bidirectional(&mut stream, &mut server).await;
    }
}
