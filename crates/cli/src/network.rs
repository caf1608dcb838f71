//! The flags that say how a server is reached over the network and how much it may send. Reads the files that they
//! name; knows nothing of what is asked.

use crate::failure::Failure;
use crate::{output, settings, size};
use mcproof_client::{Limits, Network, Proxies, Proxy, ProxyVariables, Tls, TlsFailure, Verification};
use std::fs;
use std::path::{Path, PathBuf};

/// Shared by every command that talks to a server.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkArgs {
    /// Trust the certificates in this PEM file, in addition to the machine's authorities
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Show this PEM certificate (and what follows it in the file) to a server that asks for one
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// The PEM private key of --cert, if it is not in the same file
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Do not check certificates: anybody may pass for the server
    #[arg(long)]
    insecure: bool,
    /// Reach every URL through this HTTP proxy (default: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY; never for loopback)
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// Use no proxy, whatever the environment says
    #[arg(long, conflicts_with = "proxy")]
    no_proxy: bool,
    /// Longest line that a stdio server may write
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = size::parse)]
    max_line: usize,
    /// Largest HTTP body, also after it is decompressed
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = size::parse)]
    max_body: usize,
    /// Largest server-sent event
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = size::parse)]
    max_event: usize,
    /// Largest head of an HTTP response
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = size::parse_head)]
    max_head: usize,
}

impl NetworkArgs {
    pub(crate) fn limits(&self) -> Limits {
        Limits { line: self.max_line, body: self.max_body, event: self.max_event, head: self.max_head }
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
                TlsFailure::NoKey if self.key.is_none() => {
                    unusable("--cert", path, &failure).hint("name the file that holds the private key: --key FILE")
                }
                TlsFailure::NoKey | TlsFailure::BadKey(_) | TlsFailure::OtherKey => unusable(flag, key_path, &failure),
                TlsFailure::NoCertificate | TlsFailure::BadCertificate(_) => unusable("--cert", path, &failure),
            })?;
        }
        if self.insecure {
            output::talk("warning: --insecure: certificates are not checked, so that anybody may pass for the server\n");
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
            None => Ok(Proxies::Variables(variables(settings::variable))),
        }
    }
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
    fs::read(path).map_err(|error| Failure::bad_input("cannot-read", format!("{flag}: {} cannot be read: {error}", path.display())))
}

fn unusable(flag: &str, path: &Path, failure: &TlsFailure) -> Failure {
    Failure::bad_input("bad-certificate", format!("{flag}: {} cannot be used: {failure}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        network: NetworkArgs,
    }

    #[test]
    fn the_defaults_are_those_of_the_library() {
        let found = Line::parse_from(["mcproof"]).network.limits();
        assert_eq!(format!("{found:?}"), format!("{:?}", Limits::default()));
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
