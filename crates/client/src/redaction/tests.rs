use super::*;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use std::time::Instant;

fn check(secrets: &[&str], text: &str, expected: &str) {
    let redactor = Redactor::new(secrets.iter().map(|secret| (*secret).to_owned()));
    assert_eq!(redactor.text(text), expected, "{secrets:?} in {text}");
}

/// As other programs write them: none of this is the code that is tested.
fn percent_encoded(text: &str, all: bool, upper: bool) -> String {
    let digits = |byte| if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
    text.bytes().map(|byte| if !all && byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { digits(byte) }).collect()
}

fn escaped(text: &str, all: bool, upper: bool) -> String {
    let unit = |unit: u16| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
    let one = |symbol: char| match symbol {
        '"' | '\\' if !all => format!("\\{symbol}"),
        ' '..='~' if !all => symbol.to_string(),
        _ => symbol.encode_utf16(&mut [0; 2]).iter().map(|code| unit(*code)).collect(),
    };
    text.chars().map(one).collect()
}

fn entities(text: &str, form: usize) -> String {
    let one = |symbol: char| match (form, symbol) {
        (0, _) => format!("&#{};", u32::from(symbol)),
        (1, _) => format!("&#x{:x};", u32::from(symbol)),
        (2, _) => format!("&#X{:04X};", u32::from(symbol)),
        (_, '&') => "&amp;".to_owned(),
        (_, '<') => "&lt;".to_owned(),
        (_, '>') => "&gt;".to_owned(),
        (_, '"') => "&quot;".to_owned(),
        (_, '\'') => "&#39;".to_owned(),
        (_, other) => other.to_string(),
    };
    text.chars().map(one).collect()
}

fn hexadecimal(text: &str, upper: bool, between: &str) -> String {
    let digits = |byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
    text.bytes().map(digits).collect::<Vec<_>>().join(between)
}

/// All of these of one secret. Base64 has other bytes before and after the secret, of every number modulo three.
fn encodings(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_owned(), secret.to_uppercase(), secret.to_lowercase()];
    for upper in [false, true] {
        for whole in [false, true] {
            all.push(percent_encoded(secret, whole, upper));
            all.push(escaped(secret, whole, upper));
        }
        all.extend(["", " ", ":", ", ", " 0x", ", 0x"].map(|between| hexadecimal(secret, upper, between)));
    }
    all.extend([",", ", ", ",\n  "].map(|between| secret.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(between)));
    all.push(secret.bytes().map(|byte| format!("={byte:02X}")).collect());
    if secret.is_ascii() {
        all.push(secret.bytes().map(|byte| format!("\\{byte:03o}")).collect());
    }
    all.extend((0..4).map(|form| entities(secret, form)));
    // Twice, as JSON in JSON or a URL in a URL.
    all.push(escaped(&escaped(secret, false, false), false, false));
    all.push(percent_encoded(&percent_encoded(secret, true, true), false, true));
    all.push(serde_like(secret));
    all
}

/// JSON as programs write it, which leave what is not ASCII as it is.
fn serde_like(text: &str) -> String {
    let one = |symbol: char| match symbol {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        other if other < ' ' => format!("\\u{:04x}", u32::from(other)),
        other => other.to_string(),
    };
    text.chars().map(one).collect()
}

/// Base64 of bytes around a secret, and the part of it that tells the secret alone.
fn base64_of(before: &[u8], secret: &str, after: &[u8], form: usize) -> (String, String) {
    let whole = [before, secret.as_bytes(), after].concat();
    let text = match form {
        0 => STANDARD.encode(&whole),
        1 => STANDARD_NO_PAD.encode(&whole),
        2 => URL_SAFE.encode(&whole),
        _ => URL_SAFE_NO_PAD.encode(&whole),
    };
    let telling = (before.len() * 8).div_ceil(6)..(before.len() + secret.len()) * 8 / 6;
    let telling = text[telling].to_owned();
    (text, telling)
}

#[test]
fn secrets_go_in_every_form() {
    let secret = "hunter2-p/ss+\"w\\rd é😀";
    for form in encodings(secret) {
        check(&[secret], &format!("before {form} after"), "before [redacted] after");
    }
    for (form, before) in (0..4).flat_map(|form| (0..6).map(move |before| (form, before))) {
        let (text, telling) = base64_of(&vec![b'x'; before], secret, b"yz", form);
        let redactor = Redactor::new([secret.to_owned()]);
        let clean = redactor.text(&text).into_owned();
        assert!(clean.contains(REDACTED) && !clean.contains(&telling), "{text}: {clean}");
    }
    check(&["hunter2"], "Basic dXNlcjpodW50ZXIy!", "Basic dXNlcjp[redacted]!");
    check(&["hunter2"], "aHVudGVyMg==", "[redacted]");
    check(&["hunter2"], "aHVudGVyMg%3D%3D&", "[redacted]&");
    check(&["a long secret that is wrapped"], "YSBsb25nIHNlY3JldCB0aGF0\r\nIGlzIHdyYXBwZWQ=", "[redacted]");
    check(&["a long secret that is wrapped"], r"YSBsb25nIHNlY3JldCB0aGF0\nIGlzIHdyYXBwZWQ=", "[redacted]");
    check(&["hunter2"], "<Buffer 68 75 6e 74 65 72 32>", "<Buffer [redacted]>");
    check(&["hunter2"], r#"{"type":"Buffer","data":[104,117,110,116,101,114,50]}"#, r#"{"type":"Buffer","data":[[redacted]]}"#);
    check(&["hunter2"], "0x68, 0x75, 0x6e, 0x74, 0x65, 0x72, 0x32", "0x[redacted]");
    check(&["hunter2"], r"\150unter2 =68unter2", "[redacted] [redacted]");
    check(&["two words"], "q=two+words&TWO%20words", "q=[redacted]&[redacted]");
}

#[test]
fn what_is_short_or_says_nothing_stays() {
    check(&["abc", "true", "None"], "abc true none", "abc true none");
    // In its own form only.
    check(&["test"], "test Test te%73t dGVzdA== 74657374", "[redacted] Test [redacted] dGVzdA== 74657374");
    check(&["hunter2"], "hunter hunt", "hunter hunt");
}

#[test]
fn secrets_that_overlap_go_together() {
    check(&["hunter", "hunter2secret"], "hunter2secret hunter", "[redacted] [redacted]");
    check(&["abcdefgh", "efghijkl"], "abcdefghijkl", "[redacted]");
}

#[test]
fn a_secret_that_was_cut_goes_as_well() {
    check(&["0123456789abcdef"], "it said 0123456789…", "it said [redacted]…");
    check(&["0123456789abcdef"], "it said 01234567", "it said [redacted]");
    check(&["0123456789abcdef"], "it said 012", "it said 012");
    check(&["0123456789abcdef"], "0123456789 and more", "0123456789 and more");
    let long = "Xy7".repeat(400);
    check(&[&long], &format!("{}. and more", &long[..900]), "[redacted]. and more");
}

#[test]
fn each_line_of_a_key_is_secret() {
    let key =
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----\n";
    check(&[key], "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj", "[redacted]");
    check(&[key], "-----BEGIN PRIVATE KEY----- follows", "-----BEGIN PRIVATE KEY----- follows");
}

#[test]
fn a_secret_that_goes_on_in_the_next_piece_goes_on_being_hidden() {
    let redactor = Redactor::new(["correct horse battery".to_owned()]);
    for form in [
        "correct horse battery",
        "Y29ycmVjdCBob3JzZSBiYXR0ZXJ5",
        "%63orrect%20hors%65+battery",
        "636f727265637420686f727365206261747465727a79",
    ] {
        for size in 1..form.len() {
            let (mut tail, mut shown) = (Tail::default(), Vec::new());
            let text = format!("before {form} after");
            for piece in text.as_bytes().chunks(size) {
                shown.extend(redactor.piece(piece, &mut tail).into_owned());
            }
            let shown = String::from_utf8(shown).unwrap();
            if !form.starts_with("636") {
                assert!(shown.starts_with("before ") && shown.ends_with(" after"), "{size}: {shown}");
                assert!(!shown.contains(&form[..8]) && !shown.contains(&form[form.len() - 8..]), "{size}: {shown}");
            }
        }
    }
}

/// Ten times the bytes take about ten times as long, on whatever machine; a hundred times is what looking at each for each is.
#[test]
fn the_work_grows_with_the_bytes() {
    for unit in ["a", "%", "\\", "&amp;", "%25", "ab", "YWFh", "61", "97,", "=61", "\\141", "00", "\\u0061"] {
        let almost = format!("{}b", unit.repeat(2000 / unit.len()));
        let redactor = Redactor::new([almost]);
        let fastest = |bytes: usize| {
            let text = unit.repeat(bytes / unit.len());
            let time = |_| {
                let began = Instant::now();
                redactor.text(&text);
                began.elapsed()
            };
            (0..5).map(time).min().unwrap()
        };
        let (few, many) = (fastest(20_000), fastest(200_000));
        assert!(many < few * 60, "{unit}: {few:?} and {many:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever the secret is, in whatever form and wherever it stands, nothing that was said holds a form of it.
    #[test]
    fn no_form_of_a_secret_is_left(
        secret in "[^\\[]{6,40}",
        before in "(\\PC|[%&\\\\+\n\"]|\\\\u00|%4|&#1){0,12}",
        after in "(\\PC|[%&\\\\+;=\"]|25){0,12}",
        around in (0_usize..4, 0_usize..4),
    ) {
        prop_assume!(secret.trim().len() >= 6 && !REDACTED.contains(&secret.to_lowercase()));
        let redactor = Redactor::new([secret.clone()]);
        let all = encodings(&secret);
        for form in &all {
            let text = format!("{before}{form}{after}");
            let clean = redactor.text(&text);
            for known in &all {
                prop_assert!(!clean.contains(known.as_str()), "{text:?} became {clean:?}, which holds {known:?}");
            }
        }
        for form in 0..4 {
            let (text, telling) = base64_of(&before.as_bytes()[..around.0.min(before.len())], &secret, &after.as_bytes()[..around.1.min(after.len())], form);
            let text = format!("{before}{text}{after}");
            let clean = redactor.text(&text);
            prop_assert!(!clean.contains(&telling), "{text:?} became {clean:?}, which holds {telling:?}");
        }
    }

    /// In pieces of any size no more of it is shown than its first few symbols.
    #[test]
    fn no_form_of_a_secret_is_left_in_pieces(secret in "[a-zA-Z0-9+/=_ -]{12,60}", size in 1_usize..30, form in 0_usize..20) {
        prop_assume!(secret.trim().len() >= 12);
        let redactor = Redactor::new([secret.clone()]);
        let all = encodings(&secret);
        let form = &all[form % all.len()];
        let (mut tail, mut shown) = (Tail::default(), String::new());
        for piece in format!("<{form}>").as_bytes().chunks(size) {
            shown += std::str::from_utf8(&redactor.piece(piece, &mut tail)).unwrap();
        }
        prop_assert!(shown.len() < form.len() || shown.contains(REDACTED));
        prop_assert!(!shown.contains(form.as_str()), "{form:?} in pieces of {size} became {shown:?}");
    }
}
