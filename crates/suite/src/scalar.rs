//! Plain YAML scalars by the core schema of YAML 1.2, where `yes`, `no` and `on` are words. Knows no positions.

use super::document::Kind;
use serde_json::Number;

/// What a scalar without quotes means. `Err` holds a number that cannot be kept as it is.
pub(crate) fn read_plain(text: &str) -> Result<Kind, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Kind::Null),
        "true" | "True" | "TRUE" => return Ok(Kind::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Kind::Bool(false)),
        _ => {}
    }
    if matches!(text.trim_start_matches(['+', '-']), ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(text.to_owned());
    }
    match read_number(text) {
        Some(number) => number.map(Kind::Number).ok_or_else(|| text.to_owned()),
        None => Ok(Kind::Text(text.to_owned())),
    }
}

/// Whether this stands for itself without quotes.
pub fn plain_scalar_is_text(text: &str) -> bool {
    matches!(read_plain(text), Ok(Kind::Text(_)))
}

/// `None` if it is no number, `Some(None)` if it is one that cannot be kept as it is.
fn read_number(text: &str) -> Option<Option<Number>> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let all = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
            return all.then(|| u64::from_str_radix(digits, radix).ok().map(Number::from));
        }
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let has_digits = !whole.is_empty() || fraction.is_some_and(|fraction| !fraction.is_empty());
    if !has_digits
        || !digits(whole)
        || !fraction.is_none_or(digits)
        || !exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
    {
        return None;
    }
    if fraction.is_none() && exponent.is_none() {
        if let Ok(number) = text.parse::<i64>() {
            return Some(Some(number.into()));
        }
        // One that fits neither would be rounded.
        return Some(text.parse::<u64>().ok().map(Number::from));
    }
    Some(text.parse::<f64>().ok().and_then(Number::from_f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        let text = |text: &str| json!(text);
        for (plain, expected) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("null", json!(null)),
            ("NULL", json!(null)),
            ("nULL", text("nULL")),
            ("true", json!(true)),
            ("True", json!(true)),
            ("false", json!(false)),
            ("tRUE", text("tRUE")),
            ("yes", text("yes")),
            ("no", text("no")),
            ("on", text("on")),
            ("off", text("off")),
            ("y", text("y")),
            ("0", json!(0)),
            ("-0", json!(0)),
            ("12", json!(12)),
            ("-12", json!(-12)),
            ("+12", json!(12)),
            ("007", json!(7)),
            ("0x1F", json!(31)),
            ("0o17", json!(15)),
            ("0xZZ", text("0xZZ")),
            ("0x", text("0x")),
            ("0b1", text("0b1")),
            ("9007199254740993", json!(9_007_199_254_740_993_u64)),
            ("18446744073709551615", json!(u64::MAX)),
            ("1.5", json!(1.5)),
            ("1.", json!(1.0)),
            (".5", json!(0.5)),
            ("-.5", json!(-0.5)),
            ("1e3", json!(1000.0)),
            ("1E-2", json!(0.01)),
            (".", text(".")),
            ("-", text("-")),
            ("e3", text("e3")),
            ("1e", text("1e")),
            ("1_000", text("1_000")),
            ("1.2.3", text("1.2.3")),
            ("2025-11-25", text("2025-11-25")),
            ("5s", text("5s")),
            ("12:30", text("12:30")),
            ("+", text("+")),
            ("--1", text("--1")),
        ] {
            let kind = read_plain(plain).unwrap();
            assert_eq!(kind.to_value(), expected, "{plain}");
        }
        for plain in [".inf", "-.inf", "+.INF", ".nan", "1e999", "0xFFFFFFFFFFFFFFFFFF", "18446744073709551616", "-9223372036854775809"] {
            assert_eq!(read_plain(plain).unwrap_err(), plain);
        }
    }
}
