//! Seals what is to lie in the store and must not be read there: definitions of targets with their secrets. The key comes
//! from outside and never lies beside the data. ChaCha20-Poly1305 with a random nonce; the version stands in front, so that
//! another cipher can follow.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, MAX_TAG_LEN, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use std::fmt;

/// What each sealed value begins with; it is authenticated, too.
const VERSION: &[u8] = b"mcproof-seal-1:";
const KEY_LENGTH: usize = 32;

/// 32 bytes that nobody else knows.
#[derive(Clone, PartialEq, Eq)]
pub struct SealKey([u8; KEY_LENGTH]);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealFailure {
    #[error("the key must be 32 bytes, as 64 hexadecimal digits or as Base64")]
    Key,
    #[error("the system has no random numbers")]
    Random,
    #[error("this was not encrypted by this program, or by a newer version of it")]
    Version,
    #[error("this was encrypted with another key, or was changed")]
    Opened,
}

impl SealKey {
    /// # Errors
    /// It is not 32 bytes in hexadecimal or base64.
    pub fn parse(text: &str) -> Result<Self, SealFailure> {
        let text = text.trim();
        let bytes = match text.len() {
            64 => (0..text.len()).step_by(2).map(|at| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok())).collect(),
            _ => STANDARD.decode(text).ok(),
        };
        let bytes: Vec<u8> = bytes.ok_or(SealFailure::Key)?;
        bytes.try_into().map(Self).map_err(|_| SealFailure::Key)
    }

    /// # Errors
    /// There are no random numbers.
    pub fn seal(&self, plain: &[u8]) -> Result<Vec<u8>, SealFailure> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| SealFailure::Random)?;
        let mut body = Vec::with_capacity(plain.len() + MAX_TAG_LEN);
        body.extend_from_slice(plain);
        let sealed = self.cipher().seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(VERSION), &mut body);
        sealed.map_err(|_| SealFailure::Random)?;
        Ok([VERSION, &nonce, &body].concat())
    }

    /// # Errors
    /// It was sealed with another key or by another version, or was changed since.
    pub fn open(&self, sealed: &[u8]) -> Result<Vec<u8>, SealFailure> {
        let rest = sealed.strip_prefix(VERSION).ok_or(SealFailure::Version)?;
        let (nonce, body) = rest.split_first_chunk::<NONCE_LEN>().ok_or(SealFailure::Opened)?;
        let mut body = body.to_vec();
        let plain = self.cipher().open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(VERSION), &mut body);
        plain.map(|plain| plain.to_vec()).map_err(|_| SealFailure::Opened)
    }

    fn cipher(&self) -> LessSafeKey {
        LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &self.0).expect("the key has the length of the cipher"))
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[test]
    fn a_key_is_hexadecimal_or_base64_and_has_32_bytes() {
        let check = |text: &str, good: bool| assert_eq!(SealKey::parse(text).is_ok(), good, "{text}");
        check(HEX, true);
        check(&format!(" {HEX}\n"), true);
        check("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", true);
        assert_eq!(SealKey::parse(HEX), SealKey::parse("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="));
        check("AAEC", false);
        check("", false);
        check(&HEX.replace('0', "g"), false);
        check(&HEX.replace("00", "é"), false);
        assert_eq!(format!("{:?}", SealKey::parse(HEX)), "Ok([redacted])");
    }

    #[test]
    fn what_was_sealed_is_opened_with_the_same_key_and_unchanged_only() {
        let key = SealKey::parse(HEX).unwrap();
        let sealed = key.seal(b"a token").unwrap();
        assert_eq!(key.open(&sealed).unwrap(), b"a token");
        assert_ne!(key.seal(b"a token").unwrap(), sealed);
        assert!(!sealed.windows(7).any(|part| part == b"a token"));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(key.open(&changed).is_err(), "byte {at}");
        }
        assert_eq!(key.open(&sealed[..20]), Err(SealFailure::Opened));
        assert_eq!(key.open(b"plain text"), Err(SealFailure::Version));
        let other = SealKey::parse(&HEX.replace("1f", "ff")).unwrap();
        assert_eq!(other.open(&sealed), Err(SealFailure::Opened));
    }
}
