//! Secrets on a command line: `env:NAME`, `file:PATH`, or the secret itself, which other users can read.

use crate::failure::Failure;
use crate::{output, settings};
use mcproof_client::auth::Secret;
use std::path::Path;

/// Where a secret is.
#[derive(Clone)]
pub(crate) enum SecretSource {
    Variable(String),
    File(String),
    Literal(Secret),
    /// Of a field of the page, which nobody else reads.
    #[cfg(feature = "ui")]
    Typed(Secret),
}

impl std::fmt::Debug for SecretSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Variable(name) => write!(formatter, "env:{name}"),
            Self::File(path) => write!(formatter, "file:{path}"),
            Self::Literal(secret) => secret.fmt(formatter),
            #[cfg(feature = "ui")]
            Self::Typed(secret) => secret.fmt(formatter),
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the form that clap asks for")]
pub(crate) fn parse(text: &str) -> Result<SecretSource, String> {
    Ok(match text.split_once(':') {
        Some(("env", name)) => SecretSource::Variable(name.to_owned()),
        Some(("file", path)) => SecretSource::File(path.to_owned()),
        _ => SecretSource::Literal(Secret::new(text)),
    })
}

impl SecretSource {
    /// What was typed into the page: a secret, or where it is.
    #[cfg(feature = "ui")]
    pub(crate) fn typed(text: String) -> Self {
        match text.split_once(':') {
            Some(("env", name)) => Self::Variable(name.to_owned()),
            Some(("file", path)) => Self::File(path.to_owned()),
            _ => Self::Typed(Secret::new(text)),
        }
    }

    /// Reads the secret; warns of one that stands on the command line.
    pub(crate) fn read(&self, flag: &str) -> Result<Secret, Failure> {
        let secret = match self {
            Self::Variable(name) | Self::File(name) if name.is_empty() => {
                let hint = "write env:NAME with the name of an environment variable, or file:PATH";
                return Err(Failure::bad_input("bad-flag", format!("{flag}: nothing follows the colon")).hint(hint));
            }
            Self::Variable(name) => settings::variable(name).map(Secret::new).ok_or_else(|| {
                let message = format!("{flag}: environment variable `{name}` is not set or not valid UTF-8");
                Failure::bad_input("missing-environment-variable", message)
            })?,
            Self::File(path) => {
                let text = mcproof_suite::bounds::read_text(Path::new(path))
                    .map_err(|error| Failure::bad_input("cannot-read", format!("{flag}: cannot read {path}: {error}")))?;
                // The line feed with which editors end a file.
                Secret::new(text.trim_end_matches(['\n', '\r']))
            }
            Self::Literal(secret) => {
                output::talk(&format!(
                    "warning: {flag}: other users of this machine can read a secret on the command line; use env:NAME or file:PATH\n"
                ));
                secret.clone()
            }
            #[cfg(feature = "ui")]
            Self::Typed(secret) => secret.clone(),
        };
        if secret.expose().is_empty() {
            return Err(Failure::bad_input("bad-flag", format!("{flag}: secret is empty")));
        }
        Ok(secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let check = |text: &str, expected: &str| assert_eq!(format!("{:?}", parse(text).unwrap()), expected);
        check("env:TOKEN", "env:TOKEN");
        check("file:/run/secrets/a:b", "file:/run/secrets/a:b");
        check("hunter2", "[redacted]");
        check("environment:x", "[redacted]");
    }
}
