//! Two services that are paged, a webhook and one shaped like PagerDuty, and the dead man's switch. They refuse, fail, hang, and lose
//! their replies when they are told to, and write down what they took.

use super::judge::{Page, open_alerts};
use super::servers::read_request;
use super::timeline::Timeline;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Manner {
    #[default]
    Takes,
    Resets,
    Fails,
    /// With a wish to be left alone for some seconds.
    IsBusy,
    /// For good: the next channel is told.
    Forbids,
    Hangs,
    /// It takes the message, and nobody learns of it.
    LosesReplies,
}

pub(crate) const BAD_MANNERS: [Manner; 6] =
    [Manner::Resets, Manner::Fails, Manner::IsBusy, Manner::Forbids, Manner::Hangs, Manner::LosesReplies];

/// Longer than anybody waits.
const FOR_EVER: Duration = Duration::from_secs(60);

pub(crate) struct Pager {
    pub(crate) address: SocketAddr,
    timeline: Timeline,
    manners: Mutex<[Manner; 2]>,
    pages: Mutex<Vec<Page>>,
    beats: Mutex<Vec<Duration>>,
}

pub(crate) const CHANNELS: [&str; 2] = ["hook", "duty"];

impl Pager {
    /// Takes pages for as long as the runtime lives.
    pub(crate) async fn open(timeline: Timeline) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pager = Arc::new(Self { address, timeline, manners: Mutex::default(), pages: Mutex::default(), beats: Mutex::default() });
        let of_task = Arc::clone(&pager);
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let pager = Arc::clone(&of_task);
                tokio::spawn(async move { drop(pager.hear(stream).await) });
            }
        });
        pager
    }

    pub(crate) fn behave(&self, channel: usize, manner: Manner) {
        self.manners.lock().unwrap()[channel] = manner;
    }

    pub(crate) fn pages(&self) -> Vec<Page> {
        self.pages.lock().unwrap().clone()
    }

    pub(crate) fn beats(&self) -> Vec<Duration> {
        self.beats.lock().unwrap().clone()
    }

    /// Incidents that somebody was told the begin of, and not the end, or of which a service keeps an alert open: each with its class and
    /// target.
    pub(crate) fn open_incidents(&self) -> Vec<(String, String, String)> {
        let pages = self.pages.lock().unwrap();
        let is_over = |incident: &str| pages.iter().any(|page| page.incident == incident && page.kind == "resolve");
        let mut open: Vec<_> = pages
            .iter()
            .filter(|page| page.kind == "trigger" && !is_over(&page.incident))
            .chain(open_alerts(&pages).into_values())
            .map(|page| (page.incident.clone(), page.class.clone(), page.target.clone()))
            .collect();
        open.sort();
        open.dedup();
        open
    }

    async fn hear(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        while let Some((head, body)) = read_request(&mut stream).await? {
            let path = head[0].split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
            let Some(channel) = CHANNELS.iter().position(|channel| *channel == path) else {
                self.beats.lock().unwrap().push(self.timeline.now());
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
                continue;
            };
            let manner = self.manners.lock().unwrap()[channel];
            if matches!(manner, Manner::Takes | Manner::LosesReplies) {
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let page = if channel == 0 { of_hook(&body) } else { of_duty(&body) };
                self.pages.lock().unwrap().push(Page { at: self.timeline.now(), channel: CHANNELS[channel].to_owned(), ..page });
            }
            let reply: &[u8] = match manner {
                Manner::Takes => b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\nok",
                Manner::Fails => b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n",
                Manner::IsBusy => b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n",
                Manner::Forbids => b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n",
                Manner::LosesReplies => return Ok(()),
                Manner::Resets => return stream.get_ref().set_zero_linger(),
                Manner::Hangs => {
                    sleep(FOR_EVER).await;
                    return Ok(());
                }
            };
            stream.write_all(reply).await?;
        }
        Ok(())
    }
}

fn text(body: &Value, pointer: &str) -> String {
    body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn of_hook(body: &Value) -> Page {
    Page {
        message: text(body, "/id"),
        kind: text(body, "/kind"),
        incident: text(body, "/incident"),
        class: text(body, "/class"),
        target: text(body, "/target"),
        targets: body["targets"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        ..Page::default()
    }
}

/// The incident of the key of an alert. Behind a dot, how often it became more severe.
pub(crate) fn incident_of(alert: &str) -> String {
    alert.split('.').next().unwrap_or_default().to_owned()
}

/// What is told anew of an incident is a trigger, too; the service knows it by its key.
fn of_duty(body: &Value) -> Page {
    let alert = text(body, "/dedup_key");
    Page {
        kind: text(body, "/event_action"),
        incident: incident_of(&alert),
        alert,
        class: text(body, "/payload/class"),
        target: text(body, "/payload/source"),
        ..Page::default()
    }
}
