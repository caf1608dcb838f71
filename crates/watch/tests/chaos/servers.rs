//! The servers that are watched. Each place has an address of its own, so that it is a host of its own, and can be made ill in many
//! ways; what was asked of it, it writes down. Knows nothing of monitors.

use super::server::answer;
use super::timeline::Timeline;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Of a slow answer; well below the time that a probe waits.
const SLOWNESS: Duration = Duration::from_millis(400);
/// Nobody waits so long.
const FOR_EVER: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    Slow,
    /// Nobody listens.
    Refuses,
    Resets,
    Hangs,
    HangsUp,
    Fails,
    TalksNonsense,
}

/// The ways not to work.
pub(crate) const SYMPTOMS: [Mood; 6] = [Mood::Refuses, Mood::Resets, Mood::Hangs, Mood::HangsUp, Mood::Fails, Mood::TalksNonsense];

impl Mood {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Slow => "slow",
            Self::Refuses => "refuses",
            Self::Resets => "resets",
            Self::Hangs => "hangs",
            Self::HangsUp => "hangs up",
            Self::Fails => "status 500",
            Self::TalksNonsense => "no JSON",
        }
    }

    pub(crate) fn is_down(self) -> bool {
        SYMPTOMS.contains(&self)
    }
}

/// One address, and what answers there.
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    mood: watch::Sender<Mood>,
    /// Good answers since it is well.
    answers: AtomicU64,
    /// When it last answered, and between which answers it was asked nothing for longest, though it was well.
    asked: Mutex<Asked>,
    timeline: Timeline,
}

#[derive(Default)]
struct Asked {
    last: Option<Duration>,
    /// Begin and end of each time of more than three seconds.
    gaps: Vec<(Duration, Duration)>,
}

impl Place {
    /// Serves for as long as the runtime lives.
    pub(crate) async fn open(ip: Ipv4Addr, timeline: Timeline) -> Arc<Self> {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mood, moods) = watch::channel(Mood::Well);
        let place = Arc::new(Self { address, mood, answers: AtomicU64::new(0), asked: Mutex::default(), timeline });
        tokio::spawn(listen(Arc::clone(&place), listener, moods));
        place
    }

    pub(crate) fn become_one_that(&self, mood: Mood) {
        self.answers.store(0, Ordering::Relaxed);
        self.asked.lock().unwrap().last = None;
        self.mood.send_replace(mood);
    }

    /// Nobody asks it what it was asked before.
    pub(crate) fn has_moved(&self) {
        self.answers.store(0, Ordering::Relaxed);
        self.asked.lock().unwrap().last = None;
    }

    /// Lists that it gave since it is well.
    pub(crate) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    pub(crate) fn gaps(&self) -> Vec<(Duration, Duration)> {
        self.asked.lock().unwrap().gaps.clone()
    }

    fn note_list(&self) {
        let now = self.timeline.now();
        let mut asked = self.asked.lock().unwrap();
        if let Some(last) = asked.last.replace(now).filter(|last| now - *last > Duration::from_secs(3)) {
            asked.gaps.push((last, now));
        }
        drop(asked);
        self.answers.fetch_add(1, Ordering::Relaxed);
    }
}

async fn listen(place: Arc<Place>, listener: TcpListener, mut moods: watch::Receiver<Mood>) {
    let mut listener = Some(listener);
    loop {
        if *moods.borrow_and_update() == Mood::Refuses {
            listener = None;
            moods.changed().await.unwrap();
            continue;
        }
        let Some(open) = &listener else {
            match TcpListener::bind(place.address).await {
                Ok(bound) => listener = Some(bound),
                Err(_) => sleep(Duration::from_millis(5)).await,
            }
            continue;
        };
        tokio::select! {
            Ok((stream, _)) = open.accept() => {
                let _ = stream.set_nodelay(true);
                let place = Arc::clone(&place);
                // Who hangs up in the middle is no concern of ours.
                tokio::spawn(async move { drop(converse(stream, &place).await) });
            }
            _ = moods.changed() => {}
        }
    }
}

async fn converse(stream: TcpStream, place: &Place) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some((_, body)) = read_request(&mut stream).await? {
        let mut moods = place.mood.subscribe();
        let mood = *moods.borrow();
        let text = match mood {
            Mood::Refuses | Mood::Resets => return stream.get_ref().set_zero_linger(),
            Mood::HangsUp => return Ok(()),
            Mood::Hangs => {
                let _ = timeout(FOR_EVER, moods.wait_for(|mood| *mood != Mood::Hangs)).await;
                return Ok(());
            }
            Mood::Fails => "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 4\r\n\r\noops".to_owned(),
            Mood::TalksNonsense => {
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n<html></html>".to_owned()
            }
            Mood::Well | Mood::Slow => {
                if mood == Mood::Slow {
                    sleep(SLOWNESS).await;
                }
                let request = serde_json::from_slice(&body).unwrap_or_default();
                let text = answer(&request).to_string();
                if request["method"] == "tools/list" {
                    place.note_list();
                }
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}", text.len())
            }
        };
        stream.write_all(text.as_bytes()).await?;
    }
    Ok(())
}

/// The head without its first line's end, and the body; nothing when the connection ends.
pub(crate) async fn read_request(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<(Vec<String>, Vec<u8>)>> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let length = head.iter().filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = vec![0; length.map_or(0, |(_, value)| value.trim().parse().unwrap_or(0))];
    stream.read_exact(&mut body).await?;
    Ok(Some((head, body)))
}
