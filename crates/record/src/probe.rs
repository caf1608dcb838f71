//! The result of one probe of a server: the phases that it reached, their durations, and what is wrong. Plain data.

use crate::{ContractChange, Diagnostic, FORMAT_VERSION, Severity, millis};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The document of one probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeReport {
    pub version: u32,
    /// The server, as the user named it.
    pub target: String,
    pub verdict: ProbeVerdict,
    /// The code of the diagnostic that decided the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Over the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ProbedTls>,
    /// Missing if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake: Option<ProbedHandshake>,
    /// How many tools it lists; missing if they were not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// The current contract, if the tools were listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<ProbedContract>,
    /// In order. Phases that were not reached are missing.
    pub phases: Vec<ProbePhase>,
    /// To the end of the last phase, without the shutdown of the session.
    #[serde(rename = "duration_ms", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub duration: Duration,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProbeVerdict {
    Healthy,
    /// It works, but something needs attention soon.
    Warning,
    /// It can be reached, but does not work as it should.
    Unhealthy,
    /// It cannot be reached: no connection, or no process.
    Unreachable,
}

impl ProbeVerdict {
    /// Whether a script that waits for the server may continue.
    pub fn is_up(self) -> bool {
        matches!(self, Self::Healthy | Self::Warning)
    }
}

impl fmt::Display for ProbeVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Healthy => "healthy",
            Self::Warning => "warning",
            Self::Unhealthy => "unhealthy",
            Self::Unreachable => "unreachable",
        })
    }
}

/// How the connection is secured, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbedTls {
    /// `TLS 1.3`.
    pub protocol: String,
    /// False if certificates are not verified.
    pub verified: bool,
    /// Of the server's own certificate, which is missing if it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<ProbedCertificate>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbedCertificate {
    pub subject: String,
    pub issuer: String,
    /// RFC 3339.
    pub not_before: String,
    /// RFC 3339.
    pub not_after: String,
    /// Whole days; negative once it has expired.
    pub days_left: i64,
}

/// Both eras in one form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbedHandshake {
    pub transport: String,
    pub era: String,
    pub protocol_version: String,
    /// Name and version, as far as the server sends them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbedContract {
    /// The hash over the names and input schemas of the tools, as `mcproof hash --as KEY` prints it.
    pub tools: String,
    /// The hash in the lock file, if it was compared with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked: Option<String>,
    /// The kind of client that both are for, such as `modern/minimal`.
    pub key: String,
    /// The differences from the lock file, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ContractChange>,
}

/// One part of a probe, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbePhase {
    pub phase: Phase,
    #[serde(rename = "duration_ms", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub duration: Duration,
}

/// In the order in which they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Until the process of a command runs.
    Spawn,
    /// Until a server that was started accepts connections.
    Listen,
    /// The look-up of the name in the URL, or of the proxy's.
    Dns,
    /// TCP.
    Connect,
    /// Until a proxy has opened its tunnel.
    Tunnel,
    /// The TLS handshake.
    Tls,
    /// From the first request, or the start of the process, to the first byte of protocol that comes back.
    FirstByte,
    /// From there to the end of the MCP handshake or discovery.
    Handshake,
    /// All pages of `tools/list`.
    List,
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Spawn => "spawn",
            Self::Listen => "listen",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tunnel => "tunnel",
            Self::Tls => "tls",
            Self::FirstByte => "first byte",
            Self::Handshake => "handshake",
            Self::List => "list",
        })
    }
}

impl ProbeReport {
    /// The report of a probe that has found nothing yet.
    pub fn new(target: impl Into<String>) -> Self {
        Self {
            version: FORMAT_VERSION,
            target: target.into(),
            verdict: ProbeVerdict::Healthy,
            reason: None,
            tls: None,
            handshake: None,
            tools: None,
            contract: None,
            phases: Vec::new(),
            duration: Duration::ZERO,
            diagnostics: Vec::new(),
        }
    }

    /// Adds a diagnostic. An error sets the verdict to `at_worst`, unless it is worse already; a warning sets it to `warning`.
    pub fn blame(&mut self, diagnostic: Diagnostic, at_worst: ProbeVerdict) {
        let verdict = match diagnostic.severity {
            Severity::Error => at_worst,
            Severity::Warning => ProbeVerdict::Warning,
            Severity::Note => ProbeVerdict::Healthy,
        };
        if verdict > self.verdict {
            self.verdict = verdict;
            self.reason = Some(diagnostic.code.clone());
        }
        self.diagnostics.push(diagnostic);
    }

    /// The diagnostic that decided the verdict.
    pub fn cause(&self) -> Option<&Diagnostic> {
        let reason = self.reason.as_deref()?;
        self.diagnostics.iter().find(|diagnostic| diagnostic.code == reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What version 1 wrote, for every later reader.
    const WRITTEN_BY_VERSION_1: &str = r#"{
      "version": 1, "target": "https://shop.example/mcp", "verdict": "warning", "reason": "certificate-expires",
      "tls": { "protocol": "TLS 1.3", "verified": true, "certificate": { "subject": "CN=shop.example", "issuer": "CN=an authority",
        "not_before": "2026-08-01T00:00:00Z", "not_after": "2026-11-29T00:00:00Z", "days_left": 7 } },
      "handshake": { "transport": "http", "era": "modern", "protocol_version": "2026-07-28", "server": "shop 1.0" },
      "tools": 3, "phases": [{ "phase": "dns", "duration_ms": 1.25 }, { "phase": "first-byte", "duration_ms": 20.0 }],
      "duration_ms": 21.25,
      "diagnostics": [{ "code": "certificate-expires", "severity": "warning", "message": "m", "place": null }]
    }"#;

    #[test]
    fn a_report_of_version_1_reads_and_writes_back() {
        let report: ProbeReport = serde_json::from_str(WRITTEN_BY_VERSION_1).unwrap();
        assert_eq!(report.phases[0], ProbePhase { phase: Phase::Dns, duration: Duration::from_micros(1250) });
        assert_eq!(report.cause().map(|cause| cause.message.as_str()), Some("m"));
        let written = serde_json::to_value(&report).unwrap();
        assert_eq!(written, serde_json::from_str::<serde_json::Value>(WRITTEN_BY_VERSION_1).unwrap());
    }

    #[test]
    fn the_worst_finding_decides_the_verdict() {
        let mut report = ProbeReport::new("s");
        report.blame(Diagnostic::warning("w", ""), ProbeVerdict::Unhealthy);
        assert_eq!((report.verdict, report.reason.as_deref()), (ProbeVerdict::Warning, Some("w")));
        report.blame(Diagnostic::error("e", ""), ProbeVerdict::Unhealthy);
        report.blame(Diagnostic::error("later", ""), ProbeVerdict::Unhealthy);
        assert_eq!((report.verdict, report.reason.as_deref()), (ProbeVerdict::Unhealthy, Some("e")));
        assert!(!report.verdict.is_up());
    }
}
