//! A pager that drops requests and loses replies, and remembers all that it took.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// One message, as it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) incident: String,
    pub(crate) kind: String,
}

/// Clones share what was taken, in its order.
#[derive(Clone, Default)]
pub(crate) struct Pager(Arc<Mutex<Vec<Page>>>);

impl Pager {
    /// Takes pages as long as this process lives, and says where.
    pub(crate) fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/pages", listener.local_addr().unwrap());
        let pages = self.clone();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                // Of ten requests two are dropped, and of two the reply is lost.
                let (takes, replies) = (!matches!(number % 10, 1 | 6), !matches!(number % 10, 3 | 8));
                // Who hangs up in the middle has told nothing.
                let _ = pages.hear(&stream, takes, replies);
            }
        });
        url
    }

    pub(crate) fn pages(&self) -> Vec<Page> {
        self.0.lock().unwrap().clone()
    }

    fn hear(&self, stream: &TcpStream, takes: bool, replies: bool) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some((_, value)) = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        if !takes {
            return Ok(());
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let Ok(body) = serde_json::from_slice::<Value>(&body) else { return Ok(()) };
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        self.0.lock().unwrap().push(Page { incident: text("incident"), kind: text("kind") });
        if replies {
            let mut stream = stream;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")?;
        }
        Ok(())
    }
}
