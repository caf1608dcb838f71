//! One probe in one line, for people and for the logs of deployment scripts.

use crate::escape::escape;
use crate::style::{GREEN, RED, Style, YELLOW, count};
use mcproof_record::{ProbePhase, ProbeReport, ProbeVerdict};
use std::time::Duration;

/// `healthy: https://shop.example/mcp, http, modern era, 2026-07-28, 3 tools, …, 45.2 ms (dns 1.2, connect 3.4, …)`
pub fn line(report: &ProbeReport, style: &Style) -> String {
    let color = match report.verdict {
        ProbeVerdict::Healthy => GREEN,
        ProbeVerdict::Warning => YELLOW,
        ProbeVerdict::Unhealthy | ProbeVerdict::Unreachable => RED,
    };
    let mut parts = vec![escape(&report.target).into_owned()];
    if let Some(handshake) = &report.handshake {
        parts.push(format!("{}, {} era, {}", handshake.transport, handshake.era, escape(&handshake.protocol_version)));
    }
    parts.extend(report.tools.map(|tools| count(tools as u64, "tool")));
    parts.extend(report.contract.as_ref().map(|contract| format!("{} for {}", contract.tools, escape(&contract.key))));
    parts.extend(report.tls.as_ref().map(|tls| {
        let days = tls.certificate.as_ref().map(|certificate| format!(" for {}", count(certificate.days_left, "day"))).unwrap_or_default();
        format!("{}{days}{}", tls.protocol, if tls.verified { "" } else { ", unverified" })
    }));
    parts.extend(report.cause().map(|cause| escape(&cause.message).into_owned()));
    parts.push(format!("{} ms{}", millis(report.duration), phases(&report.phases)));
    format!("{}: {}\n", style.paint(color, &report.verdict.to_string()), parts.join(", "))
}

/// An attempt that failed and is not the last one.
pub fn failed_attempt(report: &ProbeReport, attempt: u32, delay: Duration) -> String {
    let why = report.cause().map(|cause| escape(&cause.message)).unwrap_or_default();
    format!("attempt {attempt}: {} after {} ms: {why}; again in {:.1} s\n", report.verdict, millis(report.duration), delay.as_secs_f64())
}

fn phases(phases: &[ProbePhase]) -> String {
    let parts: Vec<String> = phases.iter().map(|phase| format!("{} {}", phase.phase, millis(phase.duration))).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

fn millis(duration: Duration) -> String {
    let millis = duration.as_secs_f64() * 1e3;
    // A short duration must not read as zero.
    if millis < 1.0 { format!("{millis:.2}") } else { format!("{millis:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::{Diagnostic, Phase, ProbedCertificate, ProbedHandshake, ProbedTls};

    fn report() -> ProbeReport {
        let phase = |phase, micros| ProbePhase { phase, duration: Duration::from_micros(micros) };
        let phases = vec![phase(Phase::Dns, 1_250), phase(Phase::FirstByte, 20_000)];
        ProbeReport { phases, duration: Duration::from_micros(21_250), ..ProbeReport::new("https://shop.example/mcp") }
    }

    fn check(report: &ProbeReport, expected: &str) {
        assert_eq!(line(report, &Style::default()), format!("{expected}\n"));
    }

    #[test]
    fn only_known_facts_are_in_the_line() {
        check(&report(), "healthy: https://shop.example/mcp, 21.2 ms (dns 1.2, first byte 20.0)");
        let certificate = ProbedCertificate {
            subject: "CN=shop.example".into(),
            issuer: "CN=an authority".into(),
            not_before: String::new(),
            not_after: String::new(),
            days_left: 63,
        };
        let mut full = report();
        full.tls = Some(ProbedTls { protocol: "TLS 1.3".into(), verified: true, certificate: Some(certificate) });
        let (transport, era, protocol_version) = ("http".into(), "modern".into(), "2026-07-28".into());
        full.handshake = Some(ProbedHandshake { transport, era, protocol_version, server: None });
        full.tools = Some(1);
        check(
            &full,
            "healthy: https://shop.example/mcp, http, modern era, 2026-07-28, 1 tool, TLS 1.3 for 63 days, 21.2 ms (dns 1.2, first byte 20.0)",
        );
    }

    #[test]
    fn text_of_a_server_stays_on_its_line() {
        let mut broken = ProbeReport::new("s");
        broken.blame(Diagnostic::error("e", "it says \u{1b}[31m\nhealthy"), ProbeVerdict::Unhealthy);
        let lines = [line(&broken, &Style::default()), failed_attempt(&broken, 2, Duration::from_millis(1500))];
        assert!(lines.iter().all(|line| line.lines().count() == 1 && !line.contains('\u{1b}')), "{lines:?}");
        assert!(lines[1].ends_with("; again in 1.5 s\n"));
    }
}
