//! What is shown of a flag that cannot be read: never the value, which may be a secret that is in the wrong form.

/// How `text` should have been written, with `separator` between name and value.
pub(crate) fn remedy(text: &str, separator: &str) -> String {
    format!("expected '{}{separator}VALUE'", name(text).unwrap_or("NAME"))
}

/// What may be shown of a name and a value that are not joined as they should be.
pub(crate) fn shown(text: &str) -> String {
    name(text).map_or_else(|| "…".to_owned(), |name| format!("{}…", &text[..=name.len()]))
}

/// The name before the first `=`, `:` or blank. The padding of a token separates nothing.
fn name(text: &str) -> Option<&str> {
    let end = text.find(['=', ':', ' ', '\t']).filter(|end| !text[*end..].trim_matches(['=', ':', ' ', '\t']).is_empty())?;
    let is_plain = |name: &&str| !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    Some(&text[..end]).filter(is_plain)
}

/// A URL that names a user mostly names the password as well.
pub(crate) fn without_password(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://[redacted]{}", &rest[at..]),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_is_shown() {
        let check = |text: &str, expected: &str, remedied: &str| {
            assert_eq!((shown(text).as_str(), remedy(text, ": ").as_str()), (expected, remedied), "{text}");
        };
        check("Authorization=Bearer s3cret", "Authorization=…", "expected 'Authorization: VALUE'");
        check("X-Api-Key s3cret", "X-Api-Key …", "expected 'X-Api-Key: VALUE'");
        check("API_KEY:s3cret", "API_KEY:…", "expected 'API_KEY: VALUE'");
        check("s3cret", "…", "expected 'NAME: VALUE'");
        check("s3cret==", "…", "expected 'NAME: VALUE'");
        check("=s3cret", "…", "expected 'NAME: VALUE'");
        check("", "…", "expected 'NAME: VALUE'");
        check("s3c/ret+x=1", "…", "expected 'NAME: VALUE'");
        assert_eq!(without_password("htp://ann:pw@h/x"), "htp://[redacted]@h/x");
    }
}
