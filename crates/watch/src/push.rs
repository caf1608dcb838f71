//! Jobs that report in: when one of them should have, and what it means that it did or did not. Pure, but for reading a schedule.

use crate::moment::{Moment, span};
use croner::Cron;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::str::FromStr as _;
use std::time::Duration;

/// When a job has to report in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    pub rhythm: PushSchedule,
    /// It may be so much later.
    pub grace: Duration,
    /// It may take so long once it has said that it began; for ever if missing.
    pub lasts: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushSchedule {
    /// So long after the last success.
    Every(Duration),
    /// At the times of a cron expression, in a time zone of IANA.
    Cron { expression: String, zone: String },
}

/// What a job said last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// When it was made known.
    pub known: Moment,
    pub started: Option<Moment>,
    pub succeeded: Option<Moment>,
    pub failed: Option<Moment>,
    /// What it said beside its failure; hostile.
    pub message: String,
}

/// What a job may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Started,
    Succeeded,
    Failed,
}

/// How it is with a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgment {
    Well,
    /// Nothing was to be expected yet.
    Waiting,
    Wrong {
        code: &'static str,
        message: String,
        hint: &'static str,
    },
}

impl Expectation {
    /// A job that never reported has time until it should have for the first time.
    pub fn judge(&self, reported: &Reported, now: Moment) -> Judgment {
        let Reported { known, started, succeeded, failed, .. } = *reported;
        let ended = succeeded.max(failed);
        let running = started.filter(|started| ended.is_none_or(|ended| *started > ended));
        if let (Some(began), Some(lasts)) = (running, self.lasts)
            && began + lasts < now
        {
            let message = format!("the job started at {began} and has not finished for {}", span(now.since(began)));
            return Judgment::Wrong { code: "job-overruns", message, hint: "check whether it hangs; `lasts` sets the longest duration" };
        }
        if let Some(at) = failed.filter(|failed| succeeded.is_none_or(|succeeded| *failed > succeeded)) {
            let said = if reported.message.is_empty() { String::new() } else { format!(": {}", reported.message) };
            let message = format!("the job reported a failure at {at}{said}");
            return Judgment::Wrong { code: "job-failed", message, hint: "check the log of the job" };
        }
        let Some((due, is_first)) = self.due(succeeded, known, now) else { return self.fresh(succeeded) };
        // Whoever began in time is at it.
        if running.is_some_and(|began| began + self.grace >= due) {
            return Judgment::Well;
        }
        if due + self.grace >= now {
            return self.fresh(succeeded);
        }
        let last = match succeeded {
            Some(succeeded) => format!("the last success was at {succeeded}"),
            None if is_first => "it has never reported a success".to_owned(),
            None => "there was none".to_owned(),
        };
        let message = format!("the job was due at {due}, with a grace period of {}; {last}", span(self.grace));
        Judgment::Wrong { code: "job-missing", message, hint: "check whether it ran, and whether it can reach this monitor" }
    }

    fn fresh(&self, succeeded: Option<Moment>) -> Judgment {
        if succeeded.is_some() { Judgment::Well } else { Judgment::Waiting }
    }

    /// The last time at which it should have reported a success, and did not before; whether that is the first one of all.
    fn due(&self, succeeded: Option<Moment>, known: Moment, now: Moment) -> Option<(Moment, bool)> {
        match &self.rhythm {
            PushSchedule::Every(every) => Some((succeeded.unwrap_or(known) + *every, succeeded.is_none())),
            PushSchedule::Cron { expression, zone } => {
                // The last time whose grace is over; what came since then may still come.
                let until = Timestamp::from_millisecond((now - self.grace).0).ok()?.to_zoned(TimeZone::get(zone).ok()?);
                let last = Cron::from_str(expression).ok()?.find_previous_occurrence(&until, true).ok()?;
                let due = Moment(last.timestamp().as_second() * 1_000);
                (due >= known && succeeded.is_none_or(|succeeded| succeeded < due)).then_some((due, succeeded.is_none()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;

    fn check(expectation: &Expectation, reported: &Reported, now: i64, expected: &str) {
        let found = match expectation.judge(reported, Moment(now)) {
            Judgment::Well => "well",
            Judgment::Waiting => "waiting",
            Judgment::Wrong { code, .. } => code,
        };
        assert_eq!(found, expected, "{reported:?} at {} min", now / MINUTE);
    }

    fn at(minutes: i64) -> Option<Moment> {
        Some(Moment(minutes * MINUTE))
    }

    #[test]
    fn a_job_that_runs_now_and_then_reports_in_time() {
        let job = Expectation { rhythm: PushSchedule::Every(Duration::from_secs(3_600)), grace: Duration::from_secs(600), lasts: None };
        let never = Reported::default();
        let good = Reported { succeeded: at(100), ..never.clone() };
        let bad = Reported { failed: at(101), message: "disk full".into(), ..good.clone() };
        for (reported, minute, expected) in [
            (&never, 69, "waiting"),
            (&never, 71, "job-missing"),
            (&good, 101, "well"),
            (&good, 170, "well"),
            (&good, 171, "job-missing"),
            (&bad, 102, "job-failed"),
            (&Reported { succeeded: at(102), ..bad.clone() }, 103, "well"),
            (&Reported { started: at(160), ..good.clone() }, 175, "well"),
            (&Reported { started: at(99), ..good.clone() }, 171, "job-missing"),
        ] {
            check(&job, reported, minute * MINUTE, expected);
        }
        let quick = Expectation { lasts: Some(Duration::from_secs(1_800)), ..job };
        let running = Reported { started: at(150), ..good };
        check(&quick, &running, 179 * MINUTE, "well");
        check(&quick, &running, 181 * MINUTE, "job-overruns");
        let Judgment::Wrong { message, .. } = quick.judge(&bad, Moment(102 * MINUTE)) else { panic!() };
        assert_eq!(message, "the job reported a failure at 1970-01-01T01:41:00Z: disk full");
    }

    #[test]
    fn a_job_of_the_night_reports_after_each_night() {
        let cron = PushSchedule::Cron { expression: "0 3 * * *".into(), zone: "Europe/Vienna".into() };
        let job = Expectation { rhythm: cron, grace: Duration::from_secs(1_800), lasts: Some(Duration::from_secs(7_200)) };
        let midnight = "2026-11-21T00:00:00Z".parse::<Timestamp>().unwrap().as_millisecond();
        let hours = |tenths: i64| midnight + tenths * HOUR / 10;
        let known = Moment(hours(-300));
        let good = Reported { known, succeeded: Some(Moment(hours(-218))), ..Reported::default() };
        for (reported, hour, expected) in [
            // 3:00 in Vienna is 2:00 UTC.
            (good.clone(), 19, "well"),
            (good.clone(), 24, "well"),
            (good.clone(), 26, "job-missing"),
            (Reported { succeeded: Some(Moment(hours(21))), ..good.clone() }, 26, "well"),
            (Reported { started: Some(Moment(hours(21))), ..good.clone() }, 39, "well"),
            (Reported { started: Some(Moment(hours(21))), ..good.clone() }, 42, "job-overruns"),
            // Known since after the last night: the next one is waited for.
            (Reported { known: Moment(hours(50)), ..Reported::default() }, 200, "waiting"),
            (Reported { known: Moment(hours(50)), ..Reported::default() }, 266, "job-missing"),
        ] {
            check(&job, &reported, hours(hour), expected);
        }
    }
}
