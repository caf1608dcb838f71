use super::certificate::{judge, read};
use super::*;
use mcproof_analysis::diagnosis::Audience;
use mcproof_client::Launch;
use mcproof_record::{ProbedTls, Severity};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

/// A certificate of 2026 that lives from the first of June to this day; the severity and the days left on the first of August.
fn check(last_day: (u8, u8), least_days: Option<u32>, expected: (Option<Severity>, i64)) {
    let mut params = CertificateParams::new(vec!["shop.example".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(2026, 6, 1), date_time_ymd(2026, last_day.0, last_day.1));
    let der = params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec();
    let mut tls = ProbedTls { protocol: "TLS 1.3".into(), verified: true, certificate: read(&der) };
    let target = Target::Stdio(Launch::default());
    let (options, extent, audience) = (ConnectOptions::default(), ProbeExtent::Tools, Audience::CommandLine);
    let plan = ProbePlan {
        name: "s".into(),
        target,
        options,
        timeout: Duration::ZERO,
        least_days,
        promise: None,
        extent,
        oddities: Oddities::Warn,
        audience,
    };
    let now: SystemTime = "2026-08-01T00:00:00Z".parse::<jiff::Timestamp>().unwrap().into();
    let found = judge(&mut tls, &plan, now).map(|diagnostic| diagnostic.severity);
    assert_eq!((found, tls.certificate.unwrap().days_left), expected, "until {last_day:?}, at least {least_days:?}");
}

#[test]
fn a_certificate_is_worth_a_word_when_its_end_is_near() {
    let (warning, error) = (Some(Severity::Warning), Some(Severity::Error));
    check((11, 1), None, (None, 92));
    check((8, 20), None, (None, 19));
    check((8, 14), None, (warning, 13));
    check((8, 1), None, (warning, 0));
    check((7, 25), None, (warning, -7));
    check((8, 20), Some(19), (None, 19));
    check((8, 20), Some(20), (error, 19));
    check((7, 25), Some(1), (error, -7));
}

#[test]
fn what_is_no_certificate_is_none() {
    assert_eq!(read(b"no certificate"), None);
}
