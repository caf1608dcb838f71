//! Undoes the `content-encoding` of a body, within a bound: what a server compressed may be a bomb. Knows no HTTP but
//! that header.

use super::HttpHead;
use brotli_decompressor::{BrotliDecoderParameter, DecompressorWriter};
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::borrow::Cow;
use std::io::{self, Write};
use std::slice::Chunks;

/// How the bytes of a body stand for its content.
pub(super) enum Coding {
    Plain,
    Compressed(Box<Decoder>),
    Unknown(String),
}

const CONTENT_ENCODING: &str = "content-encoding";
/// Begins the reason of a body that broke off for a coding that is not decoded.
pub const UNSUPPORTED_CODING: &str = "unsupported content-encoding";
/// The same of one that is not in the coding that its head names.
pub const INVALID_CODING: &str = "the body is not valid";
/// Compressed bytes that are decoded at once: they may become a thousand times as many.
pub(super) const DECODED_AT_ONCE: usize = 1 << 10;

/// Reads the content of a body that somebody else takes as it is, however it was compressed for the way.
pub struct ContentReader {
    coding: Coding,
    /// Anything was read: a response to HEAD has the headers of a body, and none.
    has_begun: bool,
}

impl ContentReader {
    /// `headers`: those of the message that the body belongs to.
    pub fn new(headers: &[(String, String)]) -> Self {
        let encodings = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(CONTENT_ENCODING)).map(|(_, value)| value.as_str());
        let encodings: Vec<&str> = encodings.collect();
        let coding = Coding::named((!encodings.is_empty()).then(|| encodings.join(", ")).as_deref());
        Self { coding, has_begun: false }
    }

    /// Bytes to be read one after the other: their content has a bound, too.
    pub fn pieces<'b>(&self, bytes: &'b [u8]) -> Chunks<'b, u8> {
        bytes.chunks(if matches!(self.coding, Coding::Plain) { bytes.len().max(1) } else { DECODED_AT_ONCE })
    }

    /// The content of a piece: all of it if it is not compressed, and otherwise at most `room` bytes. An error says why nothing more can
    /// be read; it is told once.
    pub fn read<'b>(&mut self, piece: &'b [u8], room: usize) -> Result<Cow<'b, [u8]>, String> {
        self.has_begun |= !piece.is_empty();
        let problem = match &mut self.coding {
            Coding::Plain => return Ok(piece.into()),
            Coding::Unknown(reason) => std::mem::take(reason),
            Coding::Compressed(decoder) => match decoder.feed(piece, room) {
                Ok(content) => return Ok(content.into()),
                Err(DecodeFailure::TooLarge) => "decompressed, it exceeds --max-body or --max-event".into(),
                Err(failure) => failure.to_string(),
            },
        };
        self.coding = Coding::Unknown(String::new());
        if problem.is_empty() { Ok(Cow::default()) } else { Err(problem) }
    }

    /// What is left at the end of the body.
    pub fn rest(&mut self, room: usize) -> Result<Vec<u8>, String> {
        match &mut self.coding {
            Coding::Compressed(decoder) if self.has_begun => decoder.finish(room).map_err(|failure| failure.to_string()),
            _ => Ok(Vec::new()),
        }
    }
}

/// Decodes one body, piece by piece.
pub(super) struct Decoder {
    name: &'static str,
    inner: Inner,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DecodeFailure {
    /// More than the given room came out; nothing of the surplus was kept.
    #[error("more than there is room for")]
    TooLarge,
    #[error("{} {}", INVALID_CODING, .0)]
    Invalid(&'static str),
    #[error("the body ends in the middle of its {0}")]
    CutOff(&'static str),
}

enum Inner {
    Gzip(MultiGzDecoder<Bounded>),
    Zlib(ZlibDecoder<Bounded>),
    Deflate(DeflateDecoder<Bounded>),
    /// `deflate` before its first byte: by the standard it is zlib (RFC 9110, 8.4.1.2), but some servers send it bare.
    Undecided,
    Brotli(Box<DecompressorWriter<Bounded>>),
}

impl Coding {
    pub(super) fn of(head: &HttpHead) -> Self {
        Self::named(head.header(CONTENT_ENCODING))
    }

    /// `encoding`: the value of the header.
    fn named(encoding: Option<&str>) -> Self {
        let Some(value) = encoding else { return Self::Plain };
        let name = value.trim().to_ascii_lowercase();
        let (name, inner) = match name.as_str() {
            "" | "identity" => return Self::Plain,
            "gzip" | "x-gzip" => ("gzip", Inner::Gzip(MultiGzDecoder::new(Bounded::default()))),
            "deflate" => ("deflate", Inner::Undecided),
            "br" => ("brotli", Inner::Brotli(Box::new(brotli()))),
            _ => return Self::Unknown(format!("{UNSUPPORTED_CODING} `{name}` (supported: gzip, deflate, br)")),
        };
        Self::Compressed(Box::new(Decoder { name, inner }))
    }
}

fn brotli() -> DecompressorWriter<Bounded> {
    let mut decoder = DecompressorWriter::new(Bounded::default(), 4096);
    // Windows beyond the 16 MiB of RFC 7932 are no part of HTTP's `br`, and would let a server reserve our memory.
    decoder.set_parameter(BrotliDecoderParameter::BROTLI_DECODER_PARAM_LARGE_WINDOW, 0);
    decoder
}

impl Decoder {
    /// As people call it.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// What the next bytes decode to, at most `room` bytes.
    pub(super) fn feed(&mut self, bytes: &[u8], room: usize) -> Result<Vec<u8>, DecodeFailure> {
        if let (Inner::Undecided, Some(first)) = (&self.inner, bytes.first()) {
            // The low half of a zlib header's first byte names the method, 8.
            self.inner = match first & 0x0f {
                8 => Inner::Zlib(ZlibDecoder::new(Bounded::default())),
                _ => Inner::Deflate(DeflateDecoder::new(Bounded::default())),
            };
        }
        self.outlet(room);
        let outcome = match &mut self.inner {
            Inner::Gzip(decoder) => write_through(decoder, bytes),
            Inner::Zlib(decoder) => write_through(decoder, bytes),
            Inner::Deflate(decoder) => write_through(decoder, bytes),
            Inner::Brotli(decoder) => write_through(decoder, bytes),
            Inner::Undecided => Ok(()),
        };
        self.taken(outcome, DecodeFailure::Invalid(self.name))
    }

    /// What is left at the end of the body.
    pub(super) fn finish(&mut self, room: usize) -> Result<Vec<u8>, DecodeFailure> {
        self.outlet(room);
        let outcome = match &mut self.inner {
            Inner::Gzip(decoder) => decoder.try_finish(),
            Inner::Zlib(decoder) => decoder.try_finish(),
            Inner::Deflate(decoder) => decoder.try_finish(),
            Inner::Brotli(decoder) => decoder.close(),
            Inner::Undecided => Ok(()),
        };
        self.taken(outcome, DecodeFailure::CutOff(self.name))
    }

    fn outlet(&mut self, room: usize) {
        if let Some(outlet) = self.inner.outlet() {
            *outlet = Bounded { room, ..Bounded::default() };
        }
    }

    fn taken(&mut self, outcome: io::Result<()>, failure: DecodeFailure) -> Result<Vec<u8>, DecodeFailure> {
        let outlet = self.inner.outlet().map(std::mem::take).unwrap_or_default();
        match outcome {
            _ if outlet.overflowed => Err(DecodeFailure::TooLarge),
            Err(_) => Err(failure),
            Ok(()) => Ok(outlet.bytes),
        }
    }
}

impl Inner {
    fn outlet(&mut self) -> Option<&mut Bounded> {
        match self {
            Self::Gzip(decoder) => Some(decoder.get_mut()),
            Self::Zlib(decoder) => Some(decoder.get_mut()),
            Self::Deflate(decoder) => Some(decoder.get_mut()),
            Self::Brotli(decoder) => Some(decoder.get_mut()),
            Self::Undecided => None,
        }
    }
}

/// Writes and flushes, so that a server-sent event does not wait inside the decoder for the next one.
fn write_through(decoder: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    decoder.write_all(bytes)?;
    decoder.flush()
}

/// Takes what a decoder gives, until there is no room left.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    room: usize,
    overflowed: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.room {
            self.overflowed = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= bytes.len();
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use mcproof_record::{ExchangeId, FrameId};

    fn decoder(coding: &str) -> Box<Decoder> {
        let headers = vec![("content-encoding".to_owned(), coding.to_owned())];
        match Coding::of(&HttpHead { exchange: ExchangeId(0), frame: FrameId(0), status: 200, headers, is_http_1_0: false }) {
            Coding::Compressed(decoder) => decoder,
            _ => panic!("`{coding}` is known"),
        }
    }

    fn decode(coding: &str, body: &[u8], piece: usize, limit: usize) -> Result<Vec<u8>, DecodeFailure> {
        let mut decoder = decoder(coding);
        let mut decoded = Vec::new();
        for piece in body.chunks(piece) {
            decoded.extend(decoder.feed(piece, limit - decoded.len())?);
        }
        decoded.extend(decoder.finish(limit - decoded.len())?);
        Ok(decoded)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn deflate(text: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// One uncompressed meta-block (RFC 7932, 9.2): this half of the library cannot encode.
    fn brotli(text: &[u8]) -> Vec<u8> {
        let length = u32::try_from(text.len()).unwrap() - 1;
        // Window of 16 bits, not last, four nibbles of length, uncompressed.
        let header = length << 4 | 1 << 20;
        let mut body = header.to_le_bytes()[..3].to_vec();
        body.extend_from_slice(text);
        body.push(3);
        body
    }

    #[test]
    fn a_body_is_the_same_wherever_it_is_cut() {
        let text = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#.repeat(20);
        let bodies = [("gzip", gzip(&text)), ("x-gzip", gzip(&text)), ("deflate", zlib(&text)), ("deflate", deflate(&text))];
        for (coding, body) in bodies.into_iter().chain([("BR", brotli(&text))]) {
            for piece in 1..=body.len() {
                assert_eq!(decode(coding, &body, piece, text.len()), Ok(text.clone()), "{coding} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn what_is_too_large_invalid_or_cut_off_is_told_apart() {
        let check = |coding: &str, body: &[u8], expected: DecodeFailure| assert_eq!(decode(coding, body, 64, 100_000), Err(expected));
        let bomb = vec![0; 10_000_000];
        check("gzip", &gzip(&bomb), DecodeFailure::TooLarge);
        check("deflate", &zlib(&bomb), DecodeFailure::TooLarge);
        check("gzip", b"plain text", DecodeFailure::Invalid("gzip"));
        check("deflate", b"\xff\xff\xff", DecodeFailure::Invalid("deflate"));
        check("br", b"\xff\xff\xff\xff\xff\xff\xff", DecodeFailure::Invalid("brotli"));
        check("gzip", &gzip(b"some text")[..15], DecodeFailure::CutOff("gzip"));
        check("br", &brotli(b"some text")[..7], DecodeFailure::CutOff("brotli"));
    }

    #[test]
    fn an_event_does_not_wait_inside_the_decoder() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let mut decoder = decoder("gzip");
        for event in ["data: 1\n\n", "data: 2\n\n"] {
            encoder.write_all(event.as_bytes()).unwrap();
            encoder.flush().unwrap();
            let sent = std::mem::take(encoder.get_mut());
            assert_eq!(decoder.feed(&sent, 1000), Ok(event.as_bytes().to_vec()));
        }
    }
}
