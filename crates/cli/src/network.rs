//! The flags for TLS, proxies and limits. Reads the files that they name; knows no requests.

use crate::failure::Failure;
use crate::{output, settings};
use mcproof_client::{JsonLimits, Network, Proxies, Proxy, ProxyVariables, Tls, TlsFailure, Verification};
use mcproof_suite::plan::LimitChoices;
use mcproof_suite::{parse_head_size, parse_size};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The network flags of every command that connects to a server.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkArgs {
    /// Trust the certificates in this PEM file, in addition to those of the system
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    cacert: Option<PathBuf>,
    /// Client certificate, as a PEM file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    cert: Option<PathBuf>,
    /// Private key of --cert, as a PEM file, if it is not in the same file
    #[arg(long, value_name = "FILE", requires = "cert", hide_short_help = true)]
    key: Option<PathBuf>,
    /// Accept any TLS certificate; the server may be an impostor
    #[arg(long)]
    insecure: bool,
    /// Use this HTTP proxy for all URLs [default: from HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY; loopback is never proxied]
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// Use no proxy, and ignore the proxy variables of the environment
    #[arg(long, conflicts_with = "proxy", hide_short_help = true)]
    no_proxy: bool,
    /// Limit for a line from a stdio server [default: 16MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    max_line: Option<usize>,
    /// Limit for an HTTP body, before and after decompression [default: 16MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    max_body: Option<usize>,
    /// Limit for a server-sent event [default: 16MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    max_event: Option<usize>,
    /// Limit for the head of an HTTP response [default: 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_head_size, hide_short_help = true)]
    max_head: Option<usize>,
    /// Limit for the nesting of JSON in a message, at most 127 [default: 127]
    #[arg(long, value_name = "LEVELS", value_parser = parse_depth, hide_short_help = true)]
    max_depth: Option<usize>,
    /// Limit for the number of JSON values in a message [default: 250000]
    #[arg(long, value_name = "COUNT", value_parser = parse_count, hide_short_help = true)]
    max_values: Option<usize>,
    /// Limit for the recorded traffic of a session; older traffic is dropped and counted [default: 16MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    max_transcript: Option<usize>,
}

impl NetworkArgs {
    /// Those that were given.
    pub(crate) fn limits(&self) -> LimitChoices {
        LimitChoices {
            line: self.max_line,
            body: self.max_body,
            event: self.max_event,
            head: self.max_head,
            depth: self.max_depth,
            values: self.max_values,
            transcript: self.max_transcript,
        }
    }

    /// Reads the certificates. What is unsafe is said aloud.
    pub(crate) fn network(&self) -> Result<Network, Failure> {
        let mut tls = Tls::default();
        if let Some(path) = &self.cacert {
            tls.trust(&read("--cacert", path)?).map_err(|failure| unusable("--cacert", path, &failure))?;
        }
        if let Some(path) = &self.cert {
            let chain = read("--cert", path)?;
            let (flag, key_path) = self.key.as_ref().map_or(("--cert", path), |path| ("--key", path));
            let key = read(flag, key_path)?;
            tls.identify(&chain, &key).map_err(|failure| match failure {
                TlsFailure::NoKey if self.key.is_none() => unusable("--cert", path, &failure).hint("pass the private key with --key FILE"),
                TlsFailure::NoKey | TlsFailure::BadKey(_) | TlsFailure::OtherKey => unusable(flag, key_path, &failure),
                TlsFailure::NoCertificate | TlsFailure::BadCertificate(_) => unusable("--cert", path, &failure),
            })?;
        }
        if self.insecure {
            output::talk("warning: --insecure: certificates are not verified, so the server may be an impostor\n");
            tls.set_verification(Verification::Off);
        }
        Ok(Network { proxies: self.proxies()?, tls, ..Network::default() })
    }

    fn proxies(&self) -> Result<Proxies, Failure> {
        match &self.proxy {
            Some(text) => {
                let proxy = Proxy::parse(text).map_err(|failure| Failure::bad_input("bad-flag", format!("--proxy: {failure}")))?;
                Ok(Proxies::Always(proxy))
            }
            None if self.no_proxy => Ok(Proxies::None),
            None => Ok(of_environment()),
        }
    }
}

/// The proxies that the environment names.
pub(crate) fn of_environment() -> Proxies {
    Proxies::Variables(proxy_variables())
}

/// The variables of the environment that name proxies.
pub(crate) fn proxy_variables() -> ProxyVariables {
    variables(settings::variable)
}

/// Where to listen: a port alone is one of this machine.
///
/// # Errors
/// The text has no IP address and port.
pub(crate) fn parse_listen_address(text: &str) -> Result<SocketAddr, String> {
    let whole = match text.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}")),
    };
    whole.parse().map_err(|_| "expected IP:PORT, such as 127.0.0.1:7130".to_owned())
}

fn parse_count(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "expected a whole number of at least 1".into())
}

fn parse_depth(text: &str) -> Result<usize, String> {
    let most = JsonLimits::DEEPEST;
    parse_count(text).ok().filter(|depth| *depth <= most).ok_or_else(|| format!("expected a whole number from 1 to {most}"))
}

/// The small spelling comes first, as in curl.
fn variables(variable: impl Fn(&str) -> Option<String>) -> ProxyVariables {
    let either = |name: &str| {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        set(name).or_else(|| set(&name.to_ascii_uppercase()))
    };
    ProxyVariables { http: either("http_proxy"), https: either("https_proxy"), all: either("all_proxy"), no: either("no_proxy") }
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    mcproof_suite::bounds::read_input(path)
        .map_err(|error| Failure::bad_input("cannot-read", format!("{flag}: cannot read {}: {error}", path.display())))
}

fn unusable(flag: &str, path: &Path, failure: &TlsFailure) -> Failure {
    Failure::bad_input("bad-certificate", format!("{flag}: cannot use {}: {failure}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser};
    use mcproof_client::{Limits, TapBounds};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        network: NetworkArgs,
    }

    #[test]
    fn the_defaults_in_the_help_are_those_of_the_library() {
        let help = Line::command().render_long_help().to_string();
        let said = |flag: &str| {
            let (_, after) = help.split_once(&format!("--{flag} ")).unwrap();
            after.split_once("[default: ").unwrap().1.split_once(']').unwrap().0.to_owned()
        };
        let Limits { line, body, event, head, json } = Limits::default();
        let sizes = ["max-line", "max-body", "max-event", "max-head"].map(|flag| parse_size(&said(flag)).unwrap());
        assert_eq!(sizes, [line, body, event, head]);
        assert_eq!(parse_size(&said("max-transcript")), Ok(TapBounds::default().bytes));
        assert_eq!((said("max-depth"), said("max-values")), (json.depth.to_string(), json.values.to_string()));
        assert_eq!(Line::parse_from(["mcproof"]).network.limits().limits(), Limits::default());
    }

    #[test]
    fn small_and_large_spellings_are_known_and_empty_ones_are_not_set() {
        let set = [("http_proxy", " "), ("HTTP_PROXY", "http://large:1"), ("all_proxy", "http://small:2"), ("ALL_PROXY", "x")];
        let found = variables(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()));
        assert_eq!(found.http.as_deref(), Some("http://large:1"));
        assert_eq!(found.all.as_deref(), Some("http://small:2"));
        assert_eq!((found.https, found.no), (None, None));
    }
}
