//! The certificate of a server: its contents, and whether it expires soon. The transport has verified its trust.

use super::ProbePlan;
use jiff::Timestamp;
use mcproof_analysis::diagnosis::Audience;
use mcproof_client::{Tap, Target};
use mcproof_record::{Diagnostic, ProbedCertificate, ProbedTls};
use std::time::SystemTime;

/// Whoever renews certificates by hand wants to know this early.
const SOON_DAYS: i64 = 14;
/// Certificates that live shortly are renewed shortly before their end: the last part of their life is soon enough.
const SOON_PART: i64 = 5;
const DAY: i64 = 86_400;

/// What the first TLS connection showed.
pub(super) fn secured(tap: &Tap) -> Option<ProbedTls> {
    let dialed = tap.connections().into_iter().find(|dialed| dialed.tls_version.is_some())?;
    Some(ProbedTls {
        protocol: dialed.tls_version?.to_owned(),
        verified: dialed.is_verified,
        certificate: dialed.certificate.as_deref().and_then(read),
    })
}

pub(super) fn read(der: &[u8]) -> Option<ProbedCertificate> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    let written = |seconds: i64| Timestamp::from_second(seconds).ok().map(|time| time.to_string());
    Some(ProbedCertificate {
        subject: certificate.subject().to_string(),
        issuer: certificate.issuer().to_string(),
        not_before: written(certificate.validity().not_before.timestamp())?,
        not_after: written(certificate.validity().not_after.timestamp())?,
        days_left: 0,
    })
}

/// Counts the remaining days, and reports if there are few.
pub(super) fn judge(tls: &mut ProbedTls, plan: &ProbePlan, now: SystemTime) -> Option<Diagnostic> {
    let certificate = tls.certificate.as_mut()?;
    let seconds = |text: &str| text.parse::<Timestamp>().map(Timestamp::as_second).ok();
    let (begin, end) = (seconds(&certificate.not_before)?, seconds(&certificate.not_after)?);
    let now = Timestamp::try_from(now).ok()?.as_second();
    let left = end - now;
    certificate.days_left = left.div_euclid(DAY);
    let whose = match &plan.target {
        Target::Http { endpoint, .. } => format!("the certificate of {}", endpoint.url.host_str().unwrap_or_default()),
        Target::Stdio(_) => "the certificate".to_owned(),
    };
    let when = match certificate.days_left {
        ..0 => format!("{whose} expired on {}", certificate.not_after),
        0 => format!("{whose} expires today, at {}", certificate.not_after),
        1 => format!("{whose} expires tomorrow, at {}", certificate.not_after),
        days => format!("{whose} expires in {days} days, at {}", certificate.not_after),
    };
    let is_soon = left < (SOON_DAYS * DAY).min((end - begin) / SOON_PART);
    match plan.least_days {
        Some(least) if certificate.days_left < i64::from(least) => {
            let message = format!("{when}, and --min-days asks for {least}");
            Some(Diagnostic::error("certificate-expires", message).hint("renew the certificate, or lower --min-days"))
        }
        _ if is_soon => {
            let hint = match plan.audience {
                Audience::CommandLine => "renew the certificate; with --min-days N this is a failure",
                _ => "renew the certificate",
            };
            Some(Diagnostic::warning("certificate-expires", when).hint(hint))
        }
        _ => None,
    }
}
