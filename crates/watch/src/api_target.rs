//! Targets that were added through the API: what may be asked for, what is kept of it, and what it means. A server that is reached
//! over the network only: a command would run on our machine.

use crate::config::{Config, Dependencies, NAMES, TargetKind, TargetSpec, is_name};
use crate::state::Thresholds;
use mcproof_analysis::oddities::Oddities;
use mcproof_client::Destinations;
use mcproof_protocol::{EraChoice, Transport};
use mcproof_record::Place;
use mcproof_suite::plan::{Binding, Reach, Server};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use url::{Host, Url};

/// Probes are not closer together, and not further apart.
const SHORTEST: u64 = 10;
const LONGEST: u64 = 86_400;

/// The body of `POST` and `PUT /api/targets/NAME`; kept sealed, because headers hold secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    pub url: String,
    /// `http` or `sse`.
    #[serde(default = "http")]
    pub transport: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Seconds between two probes.
    #[serde(default = "minute")]
    pub every: u64,
    /// Seconds.
    #[serde(default = "ten_seconds")]
    pub timeout: u64,
    #[serde(default)]
    pub regions: Vec<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    /// In percent.
    #[serde(default)]
    pub objective: Option<f64>,
    #[serde(default)]
    pub public: bool,
}

fn http() -> String {
    "http".to_owned()
}

fn minute() -> u64 {
    60
}

fn ten_seconds() -> u64 {
    10
}

/// Why a definition is refused, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct InvalidDefinition {
    pub problem: String,
    pub remedy: &'static str,
}

fn refuse(problem: impl Into<String>, remedy: &'static str) -> InvalidDefinition {
    InvalidDefinition { problem: problem.into(), remedy }
}

const INSIDE: &str = "use a public address, or set `allow_private: true` in the configuration";

impl Definition {
    /// What is to be watched, if the definition makes sense. Where its name leads to is not looked up here.
    ///
    /// # Errors
    /// Something in it is not allowed.
    pub fn spec(&self, name: &str, destinations: Destinations) -> Result<TargetSpec, InvalidDefinition> {
        if !is_name(name) {
            return Err(refuse("this is not a valid target name", NAMES));
        }
        let url = self.address()?;
        if let Some(address) = literal(&url)
            && !destinations.allow(address)
        {
            return Err(refuse(format!("{address} is not a public address"), INSIDE));
        }
        if !(SHORTEST..=LONGEST).contains(&self.every) {
            return Err(refuse(format!("`every` is out of range: {} seconds", self.every), "use 10 to 86400 seconds"));
        }
        if self.timeout == 0 || self.timeout > 120 {
            return Err(refuse(format!("`timeout` is out of range: {} seconds", self.timeout), "use 1 to 120 seconds"));
        }
        if self.timeout > self.every {
            return Err(refuse("a probe can take longer than the interval between probes", "decrease `timeout`, or increase `every`"));
        }
        if self.objective.is_some_and(|objective| objective <= 0.0 || objective >= 100.0) {
            return Err(refuse("`objective` is not a percentage between 0 and 100", "use a number such as 99.9"));
        }
        let transport = match self.transport.as_str() {
            "http" => Transport::Http,
            "sse" => Transport::Sse,
            _ => {
                return Err(refuse(
                    "`transport` is not `http` or `sse`",
                    "use `http` or `sse`; servers that are started by a command require the configuration file",
                ));
            }
        };
        let is_token =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        let is_value = |text: &str| text.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f));
        if let Some((header, _)) = self.headers.iter().find(|(name, value)| !is_token(name) || !is_value(value)) {
            return Err(refuse(
                format!("header `{}` cannot be sent", mcproof_report::escape_line(header, 80)),
                "use a valid HTTP header name and value",
            ));
        }
        let place = Place { file: "the API".to_owned(), line: 1, column: 1, length: 1, text: String::new() };
        let binding = Binding {
            transport,
            place: place.clone(),
            launch: None,
            url: Some(url.to_string()),
            headers: self.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            port_from: None,
            reach: Reach { destinations, ..Reach::default() },
        };
        let server = Server { name: name.to_owned(), place, bindings: vec![binding], era: EraChoice::Auto, protocol_version: None };
        Ok(TargetSpec {
            name: name.to_owned(),
            kind: TargetKind::Server(Box::new(server)),
            every: Duration::from_secs(self.every),
            timeout: Duration::from_secs(self.timeout),
            regions: self.regions.clone(),
            tags: self.tags.clone(),
            lock: None,
            suite: None,
            objective: self.objective,
            keep: false,
            oddities: Oddities::Warn,
            public: self.public,
            thresholds: Thresholds::default(),
            depends_on: Dependencies::default(),
        })
    }

    fn address(&self) -> Result<Url, InvalidDefinition> {
        let url = Url::parse(&self.url)
            .map_err(|error| refuse(format!("`url` is not a valid URL: {error}"), "use a URL such as https://mcp.example/mcp"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(refuse("`url` is not an http or https URL", "use a URL such as https://mcp.example/mcp"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("`url` contains a user name or a password", "send them as a header"));
        }
        if self.url.contains("${") {
            return Err(refuse("`url` contains a variable", "variables work in suites and in the configuration file only"));
        }
        Ok(url)
    }

    /// Looks the name up: all of its addresses have to be allowed. A probe checks them again, since names change.
    ///
    /// # Errors
    /// One of them is not, or there is none.
    pub async fn look_up(&self, destinations: Destinations) -> Result<(), InvalidDefinition> {
        let url = self.address()?;
        if destinations == Destinations::Any || literal(&url).is_some() {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        let port = url.port_or_known_default().unwrap_or(443);
        let looked_up = tokio::time::timeout(Duration::from_secs(5), tokio::net::lookup_host((host.as_str(), port))).await;
        let Ok(Ok(addresses)) = looked_up else {
            return Err(refuse(
                "cannot resolve the host name in `url`",
                "check the spelling; the name must resolve before it can be monitored",
            ));
        };
        match addresses.map(|address| address.ip()).find(|address| !destinations.allow(*address)) {
            Some(inside) => Err(refuse(format!("the host name in `url` resolves to {inside}, which is not a public address"), INSIDE)),
            None => Ok(()),
        }
    }

    /// Without the values of its headers.
    pub fn shown(&self) -> serde_json::Value {
        let mut shown = serde_json::to_value(self).unwrap_or_default();
        for (_, value) in shown["headers"].as_object_mut().into_iter().flatten() {
            *value = "[redacted]".into();
        }
        shown
    }
}

/// Makes a target of what the store keeps of it, with the key and the rules of a configuration.
pub fn decode(config: &Config, name: &str, sealed: &[u8]) -> Option<TargetSpec> {
    let plain = config.seal.as_ref()?.open(sealed).ok()?;
    serde_json::from_slice::<Definition>(&plain).ok()?.spec(name, allowed(config)).ok().map(|spec| {
        // As all other targets that do not say otherwise.
        TargetSpec { thresholds: config.thresholds.clone(), ..spec }
    })
}

/// Where targets of the API may be.
pub fn allowed(config: &Config) -> Destinations {
    if config.allow_private { Destinations::Any } else { Destinations::Public }
}

fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_safe_to_watch_is_taken() {
        for (body, expected) in [
            (json!({ "url": "https://mcp.example/mcp" }), Ok(())),
            (json!({ "url": "http://93.184.216.34/mcp", "transport": "sse", "every": 30 }), Ok(())),
            (json!({ "url": "http://127.0.0.1/mcp" }), Err("127.0.0.1 is not a public address")),
            (json!({ "url": "http://2130706433/mcp" }), Err("127.0.0.1 is not a public address")),
            (json!({ "url": "http://0x7f.1/mcp" }), Err("127.0.0.1 is not a public address")),
            (json!({ "url": "http://[::ffff:10.0.0.1]/mcp" }), Err("::ffff:10.0.0.1 is not a public address")),
            (json!({ "url": "http://169.254.169.254/latest/meta-data" }), Err("169.254.169.254 is not a public address")),
            (json!({ "url": "file:///etc/passwd" }), Err("`url` is not an http or https URL")),
            (json!({ "url": "https://a:b@mcp.example/" }), Err("`url` contains a user name or a password")),
            (json!({ "url": "https://mcp.example/", "transport": "stdio" }), Err("`transport` is not `http` or `sse`")),
            (json!({ "url": "https://mcp.example/", "every": 1 }), Err("`every` is out of range: 1 seconds")),
            (
                json!({ "url": "https://mcp.example/", "every": 10, "timeout": 20 }),
                Err("a probe can take longer than the interval between probes"),
            ),
            (json!({ "url": "https://mcp.example/", "objective": 0 }), Err("`objective` is not a percentage between 0 and 100")),
            (json!({ "url": "https://mcp.example/", "headers": { "x": "a\r\ny: b" } }), Err("header `x` cannot be sent")),
        ] {
            let definition: Definition = serde_json::from_value(body.clone()).unwrap();
            let found = definition.spec("a", Destinations::Public).map(|_| ()).map_err(|refusal| refusal.problem);
            assert_eq!(found, expected.map_err(str::to_owned), "{body}");
        }
        assert!(serde_json::from_value::<Definition>(json!({ "url": "https://a/", "command": "rm" })).is_err());
        let definition: Definition = serde_json::from_value(json!({ "url": "https://mcp.example/mcp" })).unwrap();
        for name in ["", "..", "region:eu", "a/b", " a", "a\n"] {
            assert!(definition.spec(name, Destinations::Public).is_err(), "{name:?}");
        }
    }

    #[test]
    fn headers_are_not_shown() {
        let definition: Definition =
            serde_json::from_value(json!({ "url": "https://a/", "headers": { "authorization": "Bearer s3cret" } })).unwrap();
        assert!(!definition.shown().to_string().contains("s3cret"));
    }
}
