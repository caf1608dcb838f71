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
    /// It may take so long once it has said that it began. If missing: until it is due again, or as long as may pass between two successes.
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
    /// Nobody can say when it was due, for this reason.
    Unknown(String),
}

/// When a job should have reported a success, and did not.
struct Due {
    /// Since the last success.
    first: Moment,
    /// Of those whose grace is over.
    last: Moment,
}

impl Reported {
    /// When the run began that has not ended.
    fn running(&self) -> Option<Moment> {
        let ended = self.succeeded.max(self.failed);
        self.started.filter(|started| ended.is_none_or(|ended| *started > ended))
    }
}

impl Expectation {
    /// A job that never reported has time until it should have for the first time.
    pub fn judge(&self, reported: &Reported, now: Moment) -> Judgment {
        let Reported { known, succeeded, failed, .. } = *reported;
        let running = reported.running();
        if let Some(began) = self.overrun(reported, now) {
            let message = format!("the job started at {began} and has not finished for {}", span(now.since(began)));
            return Judgment::Wrong { code: "job-overruns", message, hint: "check whether it hangs; `lasts` sets the longest duration" };
        }
        if let Some(at) = failed.filter(|failed| succeeded.is_none_or(|succeeded| *failed > succeeded)) {
            let said = if reported.message.is_empty() { String::new() } else { format!(": {}", reported.message) };
            let message = format!("the job reported a failure at {at}{said}");
            return Judgment::Wrong { code: "job-failed", message, hint: "check the log of the job" };
        }
        let due = match self.due(succeeded, known, now) {
            Ok(Some(due)) => due,
            Ok(None) => return self.fresh(succeeded),
            Err(why) => return Judgment::Unknown(why),
        };
        if running.is_some_and(|began| self.is_waited_for(began, &due, now)) {
            return Judgment::Well;
        }
        if due.last + self.grace >= now {
            return self.fresh(succeeded);
        }
        let last = match succeeded {
            Some(succeeded) => format!("the last success was at {succeeded}"),
            None => "it has never reported a success".to_owned(),
        };
        let unfinished = running.map(|began| format!("; the run that started at {began} has not finished")).unwrap_or_default();
        let message = format!("the job was due at {}, with a grace period of {}; {last}{unfinished}", due.last, span(self.grace));
        Judgment::Wrong { code: "job-missing", message, hint: "check whether it ran to its end, and whether it can reach this monitor" }
    }

    /// When a run began that has lasted too long by now. It is not over because another one begins.
    pub(crate) fn overrun(&self, reported: &Reported, now: Moment) -> Option<Moment> {
        let lasts = self.lasts?;
        reported.running().filter(|began| *began + lasts < now)
    }

    /// A run that began in time may still succeed. One that began later than that is no reason to wait, whatever became of the runs before
    /// it: a job that is killed each time begins again and again.
    fn is_waited_for(&self, began: Moment, due: &Due, now: Moment) -> bool {
        let is_in_time = began + self.grace >= due.last && began <= due.first + self.grace;
        let longest = match (&self.rhythm, self.lasts) {
            (_, Some(lasts)) => Some(lasts),
            (PushSchedule::Every(every), None) => Some(*every + self.grace),
            // Until it is due again.
            (PushSchedule::Cron { .. }, None) => None,
        };
        is_in_time && longest.is_none_or(|longest| began + longest >= now)
    }

    fn fresh(&self, succeeded: Option<Moment>) -> Judgment {
        if succeeded.is_some() { Judgment::Well } else { Judgment::Waiting }
    }

    /// When it should have reported a success, and did not before. Nothing if it is not due yet. An error if the schedule cannot be read, such as
    /// one whose time zone this machine no longer knows: that is no reason to take a job for punctual.
    fn due(&self, succeeded: Option<Moment>, known: Moment, now: Moment) -> Result<Option<Due>, String> {
        match &self.rhythm {
            PushSchedule::Every(every) => {
                let due = succeeded.unwrap_or(known) + *every;
                Ok(Some(Due { first: due, last: due }))
            }
            PushSchedule::Cron { expression, zone } => {
                let cron = Cron::from_str(expression).map_err(|error| format!("its schedule `{expression}`: {error}"))?;
                let zone = TimeZone::get(zone).map_err(|error| format!("its time zone `{zone}`: {error}"))?;
                self.due_by(&cron, &zone, succeeded, known, now).map_err(|error| format!("its schedule `{expression}`: {error}"))
            }
        }
    }

    fn due_by(&self, cron: &Cron, zone: &TimeZone, succeeded: Option<Moment>, known: Moment, now: Moment) -> Result<Option<Due>, String> {
        let zoned = |at: Moment| Timestamp::from_millisecond(at.0).map(|at| at.to_zoned(zone.clone())).map_err(|error| error.to_string());
        let whole = |seconds: i64| Moment(seconds * 1_000);
        // The last time whose grace is over; what came since then may still come.
        let last = cron.find_previous_occurrence(&zoned(now - self.grace)?, true).map_err(|error| error.to_string())?;
        let last = whole(last.timestamp().as_second());
        if last < known || succeeded.is_some_and(|succeeded| succeeded >= last) {
            return Ok(None);
        }
        let first = cron.find_next_occurrence(&zoned(known.max(succeeded.unwrap_or(known)))?, false).ok();
        let first = first.map_or(last, |first| whole(first.timestamp().as_second()));
        Ok(Some(Due { first: first.min(last), last }))
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
            Judgment::Unknown(_) => "unknown",
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
            // A run that never ends is not waited for as long as anybody likes.
            (&Reported { started: at(160), ..good.clone() }, 230, "well"),
            (&Reported { started: at(160), ..good.clone() }, 231, "job-missing"),
            // It began in time and was killed; so was the next one, and that one was late.
            (&Reported { started: at(170), ..good.clone() }, 171, "well"),
            (&Reported { started: at(171), ..good.clone() }, 172, "job-missing"),
            (&Reported { started: at(1_000), ..good.clone() }, 1_001, "job-missing"),
            (&Reported { started: at(71), ..never.clone() }, 72, "job-missing"),
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
    fn a_job_that_is_killed_each_minute_is_missing_and_says_that_it_began() {
        let cron = PushSchedule::Cron { expression: "* * * * *".into(), zone: "UTC".into() };
        for rhythm in [PushSchedule::Every(Duration::from_secs(60)), cron] {
            let job = Expectation { rhythm, grace: Duration::from_secs(10), lasts: None };
            let reported = Reported {
                succeeded: Some(Moment(10 * MINUTE + 5_000)),
                started: Some(Moment(15 * MINUTE + 2_000)),
                ..Reported::default()
            };
            check(&job, &Reported { started: Some(Moment(11 * MINUTE + 2_000)), ..reported.clone() }, 11 * MINUTE + 30_000, "well");
            check(&job, &reported, 15 * MINUTE + 3_000, "job-missing");
            let Judgment::Wrong { message, .. } = job.judge(&reported, Moment(15 * MINUTE + 3_000)) else { panic!() };
            assert!(message.ends_with("; the run that started at 1970-01-01T00:15:02Z has not finished"), "{message}");
        }
    }

    #[test]
    fn a_schedule_that_cannot_be_read_makes_no_job_punctual() {
        for (expression, zone) in [("0 3 * * *", "Nowhere/At_all"), ("no schedule", "UTC")] {
            let rhythm = PushSchedule::Cron { expression: expression.into(), zone: zone.into() };
            let job = Expectation { rhythm, grace: Duration::from_secs(1_800), lasts: None };
            check(&job, &Reported { succeeded: at(1), ..Reported::default() }, 600 * MINUTE, "unknown");
            check(&job, &Reported { failed: at(1), ..Reported::default() }, 600 * MINUTE, "job-failed");
        }
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
            // Killed each night: the run of the next one began in time, and nothing came of that of the night before.
            (Reported { started: Some(Moment(hours(20))), ..good.clone() }, 38, "well"),
            (Reported { started: Some(Moment(hours(260))), ..good.clone() }, 261, "job-missing"),
            (Reported { succeeded: Some(Moment(hours(21))), started: Some(Moment(hours(260))), ..good.clone() }, 266, "well"),
            (Reported { known: Moment(hours(10)), started: Some(Moment(hours(20))), ..Reported::default() }, 26, "well"),
            (Reported { known: Moment(hours(10)), started: Some(Moment(hours(260))), ..Reported::default() }, 261, "job-missing"),
            // Known since after the last night: the next one is waited for.
            (Reported { known: Moment(hours(50)), ..Reported::default() }, 200, "waiting"),
            (Reported { known: Moment(hours(50)), ..Reported::default() }, 266, "job-missing"),
        ] {
            check(&job, &reported, hours(hour), expected);
        }
    }
}
