//! Takes secrets out of bytes that somebody else wrote, in whatever form they stand there: as they are, in upper or lower case, with
//! the escapes of URLs, JSON, program text, mail or HTML, as hexadecimal digits, as a list of bytes, or in Base64 wherever it begins. Knows
//! forms, not frames.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Of fewer bytes a secret is none: it would blank out half of a transcript without hiding anything worth hiding.
const SHORTEST: usize = 4;
/// Of fewer bytes a secret is looked for as it is, or with escapes: its other forms would be found by chance.
const SHORTEST_ENCODED: usize = 6;
/// Of fewer bytes a line of a secret is no secret by itself.
const SHORTEST_LINE: usize = 16;
/// Symbols by which a form is known. What follows of it goes with them, but need not be there: the rest may be cut off.
const TELLING: usize = 64;
/// Symbols where a text ends, or was cut, that are the beginning of a secret and not like it by chance.
const TELLING_AT_END: usize = 6;
/// Bytes of a stream in which a secret may have begun that goes on in the next piece.
const LONGEST_TAIL: usize = 16 << 10;
/// What variables hold that are named as secrets and are none.
const NO_SECRETS: [&str; 6] = ["true", "false", "null", "none", "undefined", "unset"];

/// Finds secrets. Its work grows with the bytes that it looks at, whatever they are.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<String>,
    forms: Vec<Form>,
    /// The forms that begin with each symbol of ASCII.
    by_first: Vec<Vec<u32>>,
    /// Those that begin with another one.
    others: Vec<u32>,
    starts: Starts,
}

/// What a stream ended with that may be the beginning of a secret.
#[derive(Clone, Debug, Default)]
pub struct Tail(Vec<u8>);

impl Redactor {
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut redactor = Self::default();
        secrets.into_iter().for_each(|secret| redactor.add(&secret));
        redactor
    }

    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    pub fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// From now on this is looked for as well. What is too short or says nothing is not.
    pub fn add(&mut self, secret: &str) {
        let says_nothing = NO_SECRETS.iter().any(|word| secret.trim().eq_ignore_ascii_case(word));
        if secret.len() < SHORTEST || says_nothing || self.secrets.iter().any(|known| known == secret) {
            return;
        }
        self.secrets.push(secret.to_owned());
        let lines = secret.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE && line.len() < secret.len());
        // The frame around a key is the same for all keys.
        let lines = lines.filter(|line| !line.starts_with("-----"));
        for form in [secret].into_iter().chain(lines).flat_map(forms) {
            if !self.forms.contains(&form) {
                self.index(&form);
                self.forms.push(form);
            }
        }
    }

    fn index(&mut self, form: &Form) {
        let number = u32::try_from(self.forms.len()).expect("there are fewer forms than that");
        self.by_first.resize(128, Vec::new());
        match u8::try_from(form.symbols[0]).ok().filter(u8::is_ascii) {
            Some(first) => self.by_first[usize::from(first)].push(number),
            None => self.others.push(number),
        }
        self.starts.add(form);
    }

    /// A text without any form of a secret.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(clean) => Cow::Owned(String::from_utf8_lossy(&clean).into_owned()),
        }
    }

    /// Bytes without any form of a secret, in whatever encoding they are.
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        replaced(bytes, &self.places(bytes))
    }

    /// The next piece of a stream, in which a secret may go on that began before.
    pub fn piece<'a>(&self, piece: &'a [u8], tail: &mut Tail) -> Cow<'a, [u8]> {
        if self.is_empty() {
            return Cow::Borrowed(piece);
        }
        let before = tail.0.len();
        let joined = if before == 0 { Cow::Borrowed(piece) } else { Cow::Owned([&tail.0, piece].concat()) };
        let across = self.places(&joined).into_iter().filter(|place| place.end > before);
        let places: Vec<_> = across.map(|place| place.start.saturating_sub(before)..place.end - before).collect();
        let begun = self.begun(&joined);
        *tail = Tail(joined[joined.len() - begun..].to_vec());
        replaced(piece, &places)
    }

    /// Where secrets are, in order and apart from each other.
    fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<Range<usize>> = Vec::new();
        // Forms that were found, and where each ended: inside itself a form is not looked for.
        let mut open: Vec<(u32, usize)> = Vec::new();
        for start in self.starts.of(bytes) {
            open.retain(|(_, end)| *end > start);
            for number in self.candidates(bytes, start) {
                if open.iter().all(|(known, _)| *known != number)
                    && let Some(end) = self.forms[number as usize].course(bytes, start).secret_end()
                {
                    open.push((number, end));
                    match found.last_mut().filter(|last| start < last.end) {
                        Some(last) => last.end = last.end.max(end),
                        None => found.push(start..end),
                    }
                }
            }
        }
        found
    }

    /// Bytes at the end with which a form may have begun.
    fn begun(&self, bytes: &[u8]) -> usize {
        let from = bytes.len().saturating_sub(LONGEST_TAIL);
        let is_begun = |start: &usize| {
            is_cut(bytes, from + start)
                || self
                    .candidates(bytes, from + start)
                    .into_iter()
                    .any(|number| self.forms[number as usize].course(bytes, from + start).is_cut)
        };
        self.starts.of(&bytes[from..]).find(is_begun).map_or(0, |start| bytes.len() - from - start)
    }

    /// The forms that may begin there.
    fn candidates(&self, bytes: &[u8], start: usize) -> Vec<u32> {
        let mut found: Vec<u32> = Vec::new();
        symbols_at(bytes, start, &mut |symbol, _| {
            for first in [symbol, folded(symbol), of_standard_alphabet(symbol)] {
                let numbers =
                    u8::try_from(first).ok().filter(u8::is_ascii).map_or(&self.others, |first| &self.by_first[usize::from(first)]);
                for number in numbers {
                    if !found.contains(number) {
                        found.push(*number);
                    }
                }
            }
        });
        found
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Redactor of {} secrets", self.secrets.len())
    }
}

fn replaced<'a>(bytes: &'a [u8], places: &[Range<usize>]) -> Cow<'a, [u8]> {
    if places.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let mut clean = Vec::with_capacity(bytes.len());
    let mut rest = 0;
    for place in places {
        clean.extend_from_slice(&bytes[rest..place.start]);
        clean.extend_from_slice(REDACTED.as_bytes());
        rest = place.end;
    }
    clean.extend_from_slice(&bytes[rest..]);
    Cow::Owned(clean)
}

/// A sequence of symbols that stands for a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Form {
    symbols: Vec<char>,
    manner: Encoding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Exact,
    /// In upper or lower case.
    Folded,
    /// Two digits a byte, with a sign, `0x` or nothing between bytes.
    Hexadecimal,
    /// A list of numbers, as programs write a buffer.
    Decimal,
    /// Of either alphabet, on any number of lines. A symbol that is not the secret's alone may follow.
    Base64 {
        shares_last: bool,
    },
}

fn forms(secret: &str) -> Vec<Form> {
    let form = |text: &str, manner| Form { symbols: text.chars().collect(), manner };
    if secret.len() < SHORTEST_ENCODED {
        return vec![form(secret, Encoding::Exact)];
    }
    // Some characters are several in the other case.
    let cases = [secret.to_owned(), secret.to_uppercase(), secret.to_lowercase()];
    let mut forms: Vec<Form> =
        cases.iter().map(|text| Form { symbols: text.chars().map(folded).collect(), manner: Encoding::Folded }).collect();
    let digits: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    forms.push(form(&digits, Encoding::Hexadecimal));
    let numbers: Vec<String> = secret.bytes().map(|byte| byte.to_string()).collect();
    forms.push(form(&numbers.join(","), Encoding::Decimal));
    // How many bytes stand before the secret decides how its bits are parted. The first symbols belong to those as well.
    for (before, shared) in [(0, 0), (1, 2), (2, 3)] {
        let bits = (before + secret.len()) * 8;
        let encoded = STANDARD_NO_PAD.encode([&vec![0; before], secret.as_bytes()].concat());
        forms.push(form(&encoded[shared..bits / 6], Encoding::Base64 { shares_last: !bits.is_multiple_of(6) }));
    }
    forms
}

/// How far a form goes on in some bytes.
struct FormMatch {
    /// Its symbols that are there.
    symbols: usize,
    end: usize,
    is_whole: bool,
    /// The bytes end before the form does, or were cut.
    is_cut: bool,
}

impl FormMatch {
    fn secret_end(self) -> Option<usize> {
        let least = if self.is_cut { TELLING_AT_END } else { TELLING };
        (self.is_whole || self.symbols >= least).then_some(self.end)
    }
}

impl Form {
    fn course(&self, bytes: &[u8], start: usize) -> FormMatch {
        let mut course = FormMatch { symbols: 0, end: start, is_whole: false, is_cut: false };
        let mut ways = Alternatives::default();
        ways.add(start);
        for (index, wanted) in self.symbols.iter().enumerate() {
            let mut following = Alternatives::default();
            let mut next = 0;
            course.is_cut = false;
            while let Some(place) = ways.get(next) {
                next += 1;
                course.is_cut |= is_cut(bytes, place);
                symbols_at(bytes, place, &mut |symbol, end| {
                    if self.fold(symbol) == *wanted {
                        following.add(end);
                    }
                    if index > 0 && self.skips(symbol, index) {
                        ways.add(end);
                    }
                });
            }
            if following.count == 0 {
                return course;
            }
            ways = following;
            course = FormMatch { symbols: index + 1, end: ways.furthest(), ..course };
        }
        if let Encoding::Base64 { shares_last } = self.manner {
            course.end = end_of_base64(bytes, course.end, shares_last);
        }
        FormMatch { is_whole: true, is_cut: false, ..course }
    }

    fn fold(&self, symbol: char) -> char {
        match self.manner {
            Encoding::Exact | Encoding::Decimal => symbol,
            Encoding::Folded | Encoding::Hexadecimal => folded(symbol),
            Encoding::Base64 { .. } => of_standard_alphabet(symbol),
        }
    }

    /// Whether this may stand before the symbol at `index`.
    fn skips(&self, symbol: char, index: usize) -> bool {
        match self.manner {
            Encoding::Exact | Encoding::Folded => false,
            Encoding::Hexadecimal => {
                index.is_multiple_of(2) && matches!(symbol, ' ' | ':' | '-' | ',' | '0' | 'x' | 'X' | '\t' | '\n' | '\r')
            }
            Encoding::Decimal => self.symbols[index - 1] == ',' && matches!(symbol, ' ' | '\t' | '\n' | '\r'),
            Encoding::Base64 { .. } => matches!(symbol, '\n' | '\r'),
        }
    }
}

/// The last symbol, which tells two or four bits of the secret, and the padding.
fn end_of_base64(bytes: &[u8], end: usize, shares_last: bool) -> usize {
    let following = |end: usize, is_wanted: fn(char) -> bool| {
        let mut found = None;
        symbols_at(bytes, end, &mut |symbol, next| found = found.max(is_wanted(symbol).then_some(next)));
        found.unwrap_or(end)
    };
    if !shares_last {
        return end;
    }
    let end = following(end, |symbol| symbol.is_ascii_alphanumeric() || "+/-_".contains(symbol));
    following(following(end, |symbol| symbol == '='), |symbol| symbol == '=')
}

fn folded(symbol: char) -> char {
    let mut lower = symbol.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => symbol,
    }
}

fn of_standard_alphabet(symbol: char) -> char {
    match symbol {
        '-' => '+',
        '_' => '/',
        other => other,
    }
}

/// Places that are reached on different ways of reading the same bytes.
#[derive(Clone, Copy, Default)]
struct Alternatives {
    places: [usize; MOST_WAYS],
    count: usize,
}

const MOST_WAYS: usize = 8;

impl Alternatives {
    fn add(&mut self, place: usize) {
        if self.count < MOST_WAYS && !self.places[..self.count].contains(&place) {
            self.places[self.count] = place;
            self.count += 1;
        }
    }

    fn get(&self, index: usize) -> Option<usize> {
        self.places[..self.count].get(index).copied()
    }

    fn furthest(&self) -> usize {
        self.places[..self.count].iter().copied().max().unwrap_or_default()
    }
}

/// For each two bytes, whether a form may begin with them.
#[derive(Clone, Default)]
struct Starts(Box<[u64]>);

impl Starts {
    /// Escapes, and all that is not ASCII, are looked at more closely.
    fn is_any(byte: u8) -> bool {
        !byte.is_ascii() || b"%\\&+=".contains(&byte)
    }

    fn add(&mut self, form: &Form) {
        if self.0.is_empty() {
            self.0 = vec![0; 1024].into();
            (0..=u8::MAX).filter(|first| Self::is_any(*first)).for_each(|first| self.mark(first, |_| true));
        }
        for first in (0..128).filter(|first| form.fold(char::from(*first)) == form.symbols[0]) {
            let may_follow = |second: u8| {
                let symbol = char::from(second);
                let fits = form.symbols.get(1).is_none_or(|wanted| form.fold(symbol) == *wanted);
                fits || Self::is_any(second) || form.skips(symbol, 2)
            };
            self.mark(first, may_follow);
        }
    }

    fn mark(&mut self, first: u8, may_follow: impl Fn(u8) -> bool) {
        for second in (0..=u8::MAX).filter(|second| may_follow(*second)) {
            let pair = usize::from(first) << 8 | usize::from(second);
            self.0[pair >> 6] |= 1 << (pair & 63);
        }
    }

    fn of(&self, bytes: &[u8]) -> impl Iterator<Item = usize> {
        let holds = |pair: &[u8]| {
            let pair = usize::from(pair[0]) << 8 | usize::from(pair[1]);
            self.0[pair >> 6] & (1 << (pair & 63)) != 0
        };
        let last = bytes.len().checked_sub(1);
        bytes.windows(2).enumerate().filter(move |(_, pair)| holds(pair)).map(|(start, _)| start).chain(last)
    }
}

/// Whether what would follow is not there: the bytes end, be it in the middle of an escape, or somebody cut them and said so.
fn is_cut(bytes: &[u8], place: usize) -> bool {
    let rest = &bytes[place..];
    rest.is_empty() || rest.starts_with("…".as_bytes()) || is_begun_escape(rest)
}

/// Whether these bytes are an escape, or a character, whose end is not there.
fn is_begun_escape(rest: &[u8]) -> bool {
    if rest.len() > LONGEST_ESCAPE {
        return false;
    }
    match rest {
        [b'%', digits @ ..] => digits.len() < 2 && digits.iter().all(u8::is_ascii_hexdigit) || digits == b"25",
        [b'\\', ..] => {
            let run = rest.iter().take_while(|byte| **byte == b'\\').count();
            match &rest[run..] {
                [] => true,
                [b'u', b'{', digits @ ..] => digits.iter().all(u8::is_ascii_hexdigit),
                [b'u', digits @ ..] => digits.len() < 4 && digits.iter().all(u8::is_ascii_hexdigit),
                [b'U', digits @ ..] => digits.len() < 8 && digits.iter().all(u8::is_ascii_hexdigit),
                [b'x', digits @ ..] => digits.len() < 2 && digits.iter().all(u8::is_ascii_hexdigit),
                digits => digits.len() < 3 && digits.iter().all(|digit| matches!(digit, b'0'..=b'7')),
            }
        }
        [b'&', name @ ..] => name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#'),
        [0xc2..=0xf4, ..] => std::str::from_utf8(rest).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none()),
        _ => false,
    }
}

const LONGEST_ESCAPE: usize = 32;
/// As many as there are before a character that was escaped on five levels.
const MOST_BACKSLASHES: usize = 16;
/// Levels of other escapes.
const MOST_LEVELS: usize = 5;

/// All symbols that the bytes at a place may stand for, each with where the next one begins.
fn symbols_at(bytes: &[u8], place: usize, found: &mut impl FnMut(char, usize)) {
    let Some(first) = bytes.get(place).copied() else { return };
    match first {
        b'%' => percent(bytes, place, found),
        // In mail.
        b'=' => {
            if let Some(byte) = number(bytes, place + 1, 2) {
                octets(bytes, b"=", place + 1, byte, found);
            }
        }
        b'\\' => backslash(bytes, place, found),
        b'&' => entity(bytes, place, found),
        // In forms.
        b'+' => found(' ', place + 1),
        _ => {}
    }
    if first.is_ascii() {
        found(char::from(first), place + 1);
    } else if let Some(symbol) = utf8(&bytes[place..]) {
        found(symbol, place + symbol.len_utf8());
    }
}

fn utf8(bytes: &[u8]) -> Option<char> {
    let most = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(most) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&most[..error.valid_up_to()]).ok()?,
    };
    valid.chars().next()
}

/// `%68`, and `%2568` where that was escaped again.
fn percent(bytes: &[u8], place: usize, found: &mut impl FnMut(char, usize)) {
    let mut at = place + 1;
    for _ in 0..MOST_LEVELS {
        let Some(byte) = number(bytes, at, 2) else { return };
        octets(bytes, &bytes[place..at], at, byte, found);
        at += 2;
        if byte != u32::from(b'%') {
            return;
        }
    }
}

/// A character of which each byte is `mark` and two digits; those of the first one stand at `digits`.
fn octets(bytes: &[u8], mark: &[u8], digits: usize, first: u32, found: &mut impl FnMut(char, usize)) {
    let mut encoded = vec![u8::try_from(first).expect("two digits are a byte")];
    let mut end = digits + 2;
    while encoded.len() < 4 && utf8(&encoded).is_none() {
        let next = bytes[end..].starts_with(mark).then(|| number(bytes, end + mark.len(), 2)).flatten();
        let Some(next) = next else { return };
        encoded.push(u8::try_from(next).expect("two digits are a byte"));
        end += mark.len() + 2;
    }
    if let Some(symbol) = utf8(&encoded) {
        found(symbol, end);
    }
}

/// `\u0068`, `\x68`, `\n`, `\"`: with one backslash, or with those of any number of levels.
fn backslash(bytes: &[u8], place: usize, found: &mut impl FnMut(char, usize)) {
    let run = bytes[place..].iter().take(MOST_BACKSLASHES).take_while(|byte| **byte == b'\\').count();
    for backslashes in [2, 4, 8].into_iter().filter(|backslashes| *backslashes <= run) {
        found('\\', place + backslashes);
    }
    let kind = place + run;
    let mut told = |code: Option<u32>, end: usize| {
        if let Some(symbol) = code.and_then(char::from_u32) {
            found(symbol, end);
        }
    };
    match bytes.get(kind).copied() {
        Some(b'u') if bytes.get(kind + 1) == Some(&b'{') => {
            let length = bytes[kind + 2..].iter().take(8).take_while(|byte| byte.is_ascii_hexdigit()).count();
            let end = kind + 2 + length;
            if bytes.get(end) == Some(&b'}') {
                told(number(bytes, kind + 2, length), end + 1);
            }
        }
        Some(b'u') => match number(bytes, kind + 1, 4) {
            Some(high @ 0xd800..=0xdbff) => {
                let second = kind + 5;
                let mark = &bytes[place..=kind];
                let low = bytes[second.min(bytes.len())..].starts_with(mark).then(|| number(bytes, second + mark.len(), 4)).flatten();
                if let Some(low @ 0xdc00..=0xdfff) = low {
                    told(Some(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)), second + mark.len() + 4);
                }
            }
            code => told(code, kind + 5),
        },
        Some(b'U') => told(number(bytes, kind + 1, 8), kind + 9),
        Some(b'x') => {
            if let Some(code) = number(bytes, kind + 1, 2) {
                told(Some(code), kind + 3);
                if code >= 0x80 {
                    octets(bytes, &bytes[place..=kind], kind + 1, code, found);
                }
            }
        }
        Some(letter) => {
            let octal = bytes.get(kind..kind + 3).filter(|digits| digits.iter().all(|digit| matches!(digit, b'0'..=b'7')));
            if let Some(digits) = octal {
                told(Some(digits.iter().fold(0, |code, digit| code * 8 + u32::from(digit - b'0'))), kind + 3);
            }
            let control = [(b'n', '\n'), (b'r', '\r'), (b't', '\t'), (b'b', '\u{8}'), (b'f', '\u{c}'), (b'v', '\u{b}'), (b'0', '\0')];
            let meant = control.iter().find(|(known, _)| *known == letter).map(|(_, control)| *control);
            if let Some(symbol) = meant.or_else(|| (letter.is_ascii_punctuation() && letter != b'\\').then(|| char::from(letter))) {
                found(symbol, kind + 1);
            }
        }
        None => {}
    }
}

/// `&#104;`, `&#x68;`, `&amp;`, and `&amp;#104;` where that was escaped again.
fn entity(bytes: &[u8], place: usize, found: &mut impl FnMut(char, usize)) {
    const NAMED: [(&str, char); 5] = [("lt;", '<'), ("gt;", '>'), ("quot;", '"'), ("apos;", '\''), ("nbsp;", '\u{a0}')];
    let mut at = place + 1;
    for _ in 0..MOST_LEVELS {
        if bytes[at..].starts_with(b"amp;") {
            at += 4;
            found('&', at);
        }
    }
    let rest = &bytes[at..];
    if let Some((name, symbol)) = NAMED.iter().find(|(name, _)| rest.starts_with(name.as_bytes())) {
        found(*symbol, at + name.len());
    }
    let (digits, radix) = match rest {
        [b'#', b'x' | b'X', ..] => (at + 2, 16),
        [b'#', ..] => (at + 1, 10),
        _ => return,
    };
    let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
    let length = bytes[digits..].iter().take(8).take_while(is_digit).count();
    let text = std::str::from_utf8(&bytes[digits..digits + length]).unwrap_or_default();
    if let (Some(symbol), Some(b';')) = (u32::from_str_radix(text, radix).ok().and_then(char::from_u32), bytes.get(digits + length)) {
        found(symbol, digits + length + 1);
    }
}

/// What so many hexadecimal digits say.
fn number(bytes: &[u8], at: usize, digits: usize) -> Option<u32> {
    let digits = bytes.get(at..at + digits)?;
    let digits = std::str::from_utf8(digits).ok().filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests;
