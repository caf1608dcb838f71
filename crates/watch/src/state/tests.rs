use super::*;
use mcproof_client::EraEvidence;
use std::collections::BTreeSet;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// What a probe at this time would show.
type Conditions<'a> = &'a dyn Fn(i64, &mut Observation);

/// Runs a target on a timer, with the confirmations that it asks for, and tells what people would hear of: minute (or `m:ss`)
/// and effect.
struct Simulation {
    policy: Policy,
    state: TargetState,
    heard: Vec<String>,
    /// Changes of which only suspicious texts are told.
    glimpsed: Vec<String>,
}

impl Simulation {
    fn new(policy: Policy) -> Self {
        Self {
            policy: Policy { every: Duration::from_secs(60), ..policy },
            state: TargetState::default(),
            heard: Vec::new(),
            glimpsed: Vec::new(),
        }
    }

    fn run(&mut self, until: i64, announced: impl Fn(i64) -> Option<Announcement>, weather: Conditions<'_>) {
        let regions = if self.policy.regions.is_empty() { vec!["here".to_owned()] } else { self.policy.regions.clone() };
        let mut due: BTreeSet<(i64, String, i64, u32)> = regions.iter().map(|region| (0, region.clone(), 0, 0)).collect();
        let mut attempts = 0;
        while let Some((at, region, slot, attempt)) = due.pop_first().filter(|(at, ..)| *at < until) {
            if attempt == 0 {
                attempts = 0;
                due.insert((at + MINUTE, region.clone(), at + MINUTE, 0));
            }
            let mut observation = observation(&region, slot, attempt, at);
            weather(at, &mut observation);
            let announcement = announced(at);
            for effect in observe(&mut self.state, &self.policy, &observation, announcement.as_ref(), Moment(at)) {
                match effect {
                    Effect::Confirm { region: wanted, after } => {
                        attempts += 1;
                        let at = at + crate::moment::millis(after);
                        due.insert((at, wanted.unwrap_or_else(|| region.clone()), slot, attempts));
                    }
                    Effect::AskNeighbours | Effect::Baseline { .. } => {}
                    Effect::Drift(drift) if drift.counted == Counted::Suspicion => {
                        self.glimpsed.push(format!("{}{}>{}", drift.old, drift.others.join(""), drift.new));
                    }
                    other => self.hear(at, &other),
                }
            }
        }
    }

    fn hear(&mut self, at: i64, effect: &Effect) {
        let told = match effect {
            Effect::Open { class, severity, .. } => format!("{severity} {class}"),
            Effect::Escalate { class, severity, .. } => format!("{severity} more {class}"),
            Effect::Resolve { class, .. } => format!("end {class}"),
            Effect::Drift(drift) => {
                let how = match drift.is_mixed {
                    true if drift.is_unstable => "different",
                    true if drift.is_added => "added",
                    true => "mixed",
                    false => "changed",
                };
                let others = drift.others.join("");
                format!("{how}{} {}{others}>{}", if drift.is_announced { " as announced" } else { "" }, drift.old, drift.new)
            }
            Effect::Confirm { .. } | Effect::AskNeighbours | Effect::Baseline { .. } => unreachable!("not told"),
        };
        self.heard.push(format!("{}:{:02} {told}", at / MINUTE, at % MINUTE / SECOND));
    }
}

fn observation(region: &str, slot: i64, attempt: u32, at: i64) -> Observation {
    Observation {
        target: "shop".into(),
        slot: Moment(slot),
        region: region.into(),
        attempt,
        at: Moment(at),
        verdict: Verdict::Up,
        reason: String::new(),
        layer: None,
        message: String::new(),
        hint: None,
        duration: Duration::from_millis(20),
        phases: Vec::new(),
        contract: None,
        era_evidence: EraEvidence::Shown,
        certificate_ends: None,
        process: None,
    }
}

fn check(policy: Policy, until: i64, weather: Conditions<'_>, expected: &[&str]) {
    let mut sky = Simulation::new(policy);
    sky.run(until, |_| None, weather);
    assert_eq!(sky.heard, expected);
}

/// `.` up, `x` down, `?` inconclusive: one letter for each minute; the last one goes on.
fn minutes(letters: &str) -> impl Fn(i64, &mut Observation) {
    let letters: Vec<char> = letters.chars().collect();
    move |at, observation| {
        let minute = usize::try_from(at / MINUTE).unwrap().min(letters.len() - 1);
        observation.verdict = match letters[minute] {
            'x' => Verdict::Down,
            '?' => Verdict::Inconclusive,
            _ => Verdict::Up,
        };
    }
}

#[test]
fn how_often_it_has_to_fail_and_to_work_may_be_set() {
    let seconds = |times: &[u64]| times.iter().copied().map(Duration::from_secs).collect::<Vec<_>>();
    let of = |confirmations: Vec<Duration>, recoveries| Policy {
        thresholds: Thresholds { confirmations, recoveries, ..Thresholds::default() },
        ..Policy::default()
    };
    let rows: [(Policy, &str, &[&str]); 7] = [
        (of(seconds(&[]), 2), "..x....", &["2:00 page availability", "3:05 end availability"]),
        (of(seconds(&[5]), 1), "..x....", &["2:05 page availability", "3:00 end availability"]),
        (of(seconds(&[2, 10]), 3), "..x....", &["2:10 page availability", "3:10 end availability"]),
        (of(seconds(&[30]), 2), "..x....", &["2:30 page availability", "3:05 end availability"]),
        (of(Thresholds::after(3), 2), "..x....", &["2:15 page availability", "3:05 end availability"]),
        (of(Thresholds::after(5), 2), "..x....", &["2:45 page availability", "3:05 end availability"]),
        // It does not fail so often in that minute.
        (of(Thresholds::after(10), 2), "..x....", &[]),
    ];
    for (policy, letters, expected) in rows {
        check(policy, 7 * MINUTE, &minutes(letters), expected);
    }
    assert_eq!(Thresholds::after(1), seconds(&[]));
    assert_eq!(Thresholds::after(3), seconds(&[5, 15]), "as it is if nothing is said");
    assert_eq!(Thresholds::after(6), seconds(&[5, 15, 30, 45, 60]));
}

#[test]
fn how_many_outages_are_flapping_may_be_set() {
    let flaps = |outages, within: u64, calm: u64| Policy {
        thresholds: Thresholds {
            outages,
            within: Duration::from_secs(within * 60),
            calm: Duration::from_secs(calm * 60),
            ..Thresholds::default()
        },
        ..Policy::default()
    };
    let count = |policy: Policy| {
        let mut sky = Simulation::new(policy);
        sky.run(60 * MINUTE, |_| None, &minutes("..x...x...x...x......"));
        sky.heard
    };
    assert_eq!(count(flaps(2, 60, 5))[..3], ["2:15 page availability", "3:05 end availability", "6:15 page flapping"]);
    assert!(count(flaps(2, 60, 5)).last().unwrap().ends_with("end flapping"));
    assert_eq!(count(flaps(5, 60, 30)).len(), 8, "four outages, each with its end");
    assert_eq!(count(flaps(2, 3, 30)).len(), 8, "they are further apart than that");
}

#[test]
fn an_outage_is_confirmed_before_it_is_told_and_recovery_takes_two_passes() {
    let rows: [(&str, &[&str]); 8] = [
        ("....", &[]),
        (".xxx.", &["1:15 page availability", "4:05 end availability"]),
        // From the first probe on.
        ("x.", &["0:15 page availability", "1:05 end availability"]),
        // Back for one look only.
        ("xx.xx.", &["0:15 page availability", "2:05 end availability", "3:15 page availability", "5:05 end availability"]),
        // Our own faults say nothing: no page, no end.
        (".???.", &[]),
        ("x???.", &["0:15 page availability", "4:05 end availability"]),
        (".x", &["1:15 page availability"]),
        ("", &[]),
    ];
    for (letters, expected) in rows {
        let letters = if letters.is_empty() { "." } else { letters };
        check(Policy::default(), 10 * MINUTE, &minutes(letters), expected);
    }
}

#[test]
fn what_fails_again_and_again_is_told_though_no_failure_is_confirmed() {
    // Every so many minutes, for so long; a confirmation always meets an instance that works.
    let each = |minutes: i64, until: i64| {
        move |at: i64, observation: &mut Observation| {
            if at <= until * MINUTE && at % (minutes * MINUTE) == 0 {
                observation.verdict = Verdict::Down;
            }
        }
    };
    let patient = Policy { thresholds: Thresholds { confirmations: Thresholds::after(5), ..Thresholds::default() }, ..Policy::default() };
    let rows: [(Policy, i64, &[&str]); 5] = [
        (Policy::default(), 2, &["10:00 page flapping", "50:00 end flapping"]),
        (Policy::default(), 3, &["15:00 page flapping", "48:00 end flapping"]),
        // Now and then is no pattern.
        (Policy::default(), 5, &[]),
        (patient, 2, &["18:00 page flapping", "50:00 end flapping"]),
        // An objective says how much is too much.
        (Policy { objective: Some(50.0), ..Policy::default() }, 2, &[]),
    ];
    for (policy, minutes, expected) in rows {
        check(policy, 90 * MINUTE, &each(minutes, 20), expected);
    }
}

#[test]
fn a_single_failure_is_no_outage() {
    let blip = |at: i64, observation: &mut Observation| {
        if at == 2 * MINUTE || at == 2 * MINUTE + 5 * SECOND {
            observation.verdict = Verdict::Down;
        }
    };
    check(Policy::default(), 10 * MINUTE, &blip, &[]);
}

#[test]
fn a_confirmation_that_we_could_not_make_is_made_later() {
    let weather = |at: i64, observation: &mut Observation| {
        observation.verdict = match at {
            0..=59_999 => Verdict::Up,
            60_000..=64_999 => Verdict::Down,
            65_000..=69_999 => Verdict::Inconclusive,
            _ => Verdict::Down,
        };
    };
    check(Policy::default(), 3 * MINUTE, &weather, &["1:25 page availability"]);
}

#[test]
fn regions_vote_by_strict_majority() {
    let policy = |regions: &[&str]| Policy { regions: regions.iter().map(|&region| region.to_owned()).collect(), ..Policy::default() };
    let down_in = |places: &'static [&'static str]| {
        move |at: i64, observation: &mut Observation| {
            if at >= MINUTE && places.contains(&observation.region.as_str()) {
                observation.verdict = Verdict::Down;
            }
        }
    };
    for regions in [&["eu", "us"][..], &["eu", "us", "ap"]] {
        check(policy(regions), 10 * MINUTE, &down_in(&["eu"]), &["1:15 notify partial"]);
    }
    for places in [&["eu", "us"][..], &["eu", "us", "ap"]] {
        let mut sky = Simulation::new(policy(&["ap", "eu", "us"]));
        sky.run(10 * MINUTE, |_| None, &down_in(places));
        assert_eq!(sky.heard.len(), 1, "{:?}", sky.heard);
        assert!(sky.heard[0].ends_with("page availability") && sky.heard[0].starts_with("1:"), "{:?}", sky.heard);
    }
}

/// From where it does not work, minute by minute: letters of regions, `.` for none; the last one goes on.
fn places<'a>(minutes: &'a [&'a str]) -> impl Fn(i64, &mut Observation) + use<'a> {
    move |at, observation| {
        let minute = usize::try_from(at / MINUTE).unwrap().min(minutes.len() - 1);
        if minutes[minute].contains(observation.region.as_str()) {
            observation.verdict = Verdict::Down;
        }
    }
}

#[test]
fn what_only_some_regions_see_is_told_quietly_and_ends_by_itself() {
    let rows: [(&[&str], &[&str]); 7] = [
        // Confirmed as any failure is, and over after two passes.
        (&[".", "a", "a", "."], &["1:15 notify partial", "3:05 end partial"]),
        // From the first probe on.
        (&["a"], &["0:15 notify partial"]),
        // It becomes an outage, and is none again.
        (&[".", "a", "a", "ab", "a", "."], &["1:15 notify partial", "3:15 page availability", "3:15 end partial", "4:05 end availability"]),
        // What most see no more, one still does.
        (
            &[".", "a", "a", "ab", "a"],
            &["1:15 notify partial", "3:15 page availability", "3:15 end partial", "4:05 end availability", "5:00 notify partial"],
        ),
        // Another region is another story.
        (&[".", "a", ".", "b", "."], &["1:15 notify partial", "2:05 end partial", "3:20 notify partial", "4:05 end partial"]),
        (&[".", "ab", "."], &["1:05 page availability", "2:00 end availability"]),
        (&["."], &[]),
    ];
    for (minutes, expected) in rows {
        let policy = Policy { regions: vec!["a".into(), "b".into()], ..Policy::default() };
        check(policy, 10 * MINUTE, &places(minutes), expected);
    }
}

#[test]
fn a_region_that_is_not_heard_any_more_has_not_seen_it_recover() {
    // From where it does not work from minute 1 on; nothing is heard from there from minute 5 on, until one of them sees it work again.
    let lost = |failing: &'static [&'static str], back: i64| {
        move |at: i64, observation: &mut Observation| {
            let (minute, region) = (at / MINUTE, observation.region.as_str());
            let is_back = minute >= back && region == failing[0];
            if minute >= 1 && failing.contains(&region) && !is_back {
                observation.verdict = if minute < 5 { Verdict::Down } else { Verdict::Inconclusive };
            }
        }
    };
    let rows: [(&[&str], &'static [&'static str], &str, &str); 4] = [
        (&["ap", "eu", "us"], &["eu", "us"], "page availability", "30:05 end availability"),
        (&["ap", "eu", "us"], &["us", "eu"], "page availability", "30:05 end availability"),
        (&["a", "b"], &["a"], "notify partial", "30:05 end partial"),
        (&["a", "b", "c"], &["b"], "notify partial", "30:05 end partial"),
    ];
    for (regions, failing, begin, end) in rows {
        let policy = Policy { regions: regions.iter().map(|&region| region.to_owned()).collect(), ..Policy::default() };
        let mut sky = Simulation::new(policy);
        sky.run(2 * HOUR, |_| None, &lost(failing, 30));
        assert!(sky.heard[0].starts_with("1:") && sky.heard[0].ends_with(begin), "{:?}", sky.heard);
        assert_eq!(sky.heard[1..], [end], "{failing:?}");
    }
    // Nor has it had no failure since.
    let policy = Policy { every: Duration::from_secs(60), regions: vec!["a".into(), "b".into()], ..Policy::default() };
    let mut sky = Simulation::new(policy);
    let flaps = |at: i64, observation: &mut Observation| {
        let minute = at / MINUTE;
        if minute % 6 < 2 && minute < 14 {
            observation.verdict = Verdict::Down;
        } else if minute > 13 && observation.region == "a" {
            observation.verdict = Verdict::Inconclusive;
        }
    };
    sky.run(3 * HOUR, |_| None, &flaps);
    assert_eq!(sky.state.availability(), Availability::Flapping, "{:?}", sky.heard);
    // Until nobody probes it from there any more.
    sky.policy.regions = vec!["b".into(), "c".into()];
    let effects = observe(&mut sky.state, &sky.policy, &observation("b", 3 * HOUR, 0, 3 * HOUR), None, Moment(3 * HOUR));
    assert!(matches!(&effects[..], [Effect::Resolve { class: Class::Flapping, .. }]), "{effects:?}");
}

#[test]
fn a_blip_that_only_one_region_sees_is_nothing() {
    let policy = || Policy { regions: vec!["a".into(), "b".into(), "c".into()], ..Policy::default() };
    let blip = |at: i64, observation: &mut Observation| {
        if observation.region == "a" && (MINUTE..MINUTE + 10 * SECOND).contains(&at) {
            observation.verdict = Verdict::Down;
        }
    };
    check(policy(), 10 * MINUTE, &blip, &[]);
    // A second region is told as what changed about the first.
    let policy = Policy { regions: ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec(), ..Policy::default() };
    let mut sky = Simulation::new(policy);
    sky.run(10 * MINUTE, |_| None, &places(&[".", "a", "a", "ab"]));
    assert_eq!(sky.heard.len(), 2, "{:?}", sky.heard);
    assert!(sky.heard[0].ends_with("notify partial") && sky.heard[1].ends_with("notify more partial"), "{:?}", sky.heard);
}

#[test]
fn who_sees_it_down_and_who_does_not_is_said() {
    let policy = Policy { every: Duration::from_secs(60), regions: vec!["eu".into(), "us".into()], ..Policy::default() };
    let mut state = TargetState::default();
    let mut titles = Vec::new();
    for (region, slot, is_up) in [("us", 1, true), ("eu", 1, false), ("eu", 2, false), ("us", 2, true), ("eu", 3, false), ("eu", 4, true)] {
        let mut seen = observation(region, slot * MINUTE, 0, slot * MINUTE);
        seen.verdict = if is_up { Verdict::Up } else { Verdict::Down };
        for effect in observe(&mut state, &policy, &seen, None, Moment(slot * MINUTE)) {
            if let Effect::Open { title, since, .. } = effect {
                titles.push((title, since));
            }
        }
    }
    assert_eq!(titles, [("shop is down from eu, not from us".to_owned(), Moment(MINUTE))]);
    // A region that is probed no more sees nothing.
    let alone = Policy { every: Duration::from_secs(60), ..Policy::default() };
    let effects = observe(&mut state, &alone, &observation("us", 5 * MINUTE, 0, 5 * MINUTE), None, Moment(5 * MINUTE));
    assert!(matches!(&effects[..], [Effect::Resolve { class: Class::Partial, .. }]), "{effects:?}");
}

#[test]
fn a_state_that_an_older_version_wrote_is_read() {
    let old = r#"{"course":{"stage":"ok","votes":{"eu":{"at":60000,"is_up":true}},"outages":[],"flapping":null,"blind_since":null}}"#;
    let state: TargetState = serde_json::from_str(old).unwrap();
    assert_eq!(state.availability(), Availability::Ok);
    // A fleet of which that version did not say what it had seen: the next contract that is new is weighed.
    let old = r#"{"surface":{"accepted":"a","is_mixed":true,"recent":["a","b","a","b"],"baseline":"seen-once"}}"#;
    let mut sky = Simulation::new(Policy::default());
    sky.state = serde_json::from_str(old).unwrap();
    sky.run(3 * MINUTE, |_| None, &contracts("cac"));
    assert_eq!((sky.state.surface(), sky.heard), (Surface::Mixed, vec!["2:00 added a>c".to_owned()]));
}

#[test]
fn who_goes_up_and_down_all_the_time_is_told_of_once() {
    // Two outages of their own, then the third one is a pattern.
    let weather = |at: i64, observation: &mut Observation| {
        if at < 60 * MINUTE && at / MINUTE % 6 < 2 {
            observation.verdict = Verdict::Down;
        }
    };
    let expected = [
        "0:15 page availability",
        "2:05 end availability",
        "6:15 page availability",
        "8:05 end availability",
        "12:15 page flapping",
        "85:00 end flapping",
    ];
    check(Policy::default(), 3 * HOUR, &weather, &expected);
    // What then stays down is down.
    let weather = |at: i64, observation: &mut Observation| {
        if at > 20 * MINUTE && at < 60 * MINUTE || at / MINUTE % 6 < 2 && at < 20 * MINUTE {
            observation.verdict = Verdict::Down;
        }
    };
    let mut sky = Simulation::new(Policy::default());
    sky.run(2 * HOUR, |_| None, &weather);
    assert_eq!(sky.heard[5..], ["31:00 page availability", "31:00 end flapping", "60:05 end availability"], "{:?}", sky.heard);
}

#[test]
fn blindness_is_told_and_hides_what_was_known_until_there_are_results_again() {
    let mut sky = Simulation::new(Policy::default());
    sky.run(5 * MINUTE, |_| None, &minutes("x"));
    assert_eq!(sky.state.availability(), Availability::Down);
    let told = go_blind(&mut sky.state, "shop", Moment(4 * MINUTE), Moment(8 * MINUTE));
    assert!(matches!(&told[..], [Effect::Open { class: Class::Blind, .. }]), "{told:?}");
    assert_eq!(go_blind(&mut sky.state, "shop", Moment(4 * MINUTE), Moment(9 * MINUTE)), []);
    assert_eq!(sky.state.availability(), Availability::Blind);
    let mut still = observation("here", 10 * MINUTE, 0, 10 * MINUTE);
    still.verdict = Verdict::Down;
    let effects = observe(&mut sky.state, &sky.policy, &still, None, Moment(10 * MINUTE));
    assert!(matches!(&effects[..], [Effect::Resolve { class: Class::Blind, .. }]), "{effects:?}");
    assert_eq!(sky.state.availability(), Availability::Down);
}

#[test]
fn a_result_counts_once() {
    let mut state = TargetState::default();
    let policy = Policy { every: Duration::from_secs(60), ..Policy::default() };
    let mut down = observation("here", MINUTE, 0, MINUTE);
    down.verdict = Verdict::Down;
    assert_eq!(observe(&mut state, &policy, &down, None, Moment(MINUTE)).len(), 2);
    let before = state.clone();
    for late in [down.clone(), observation("here", 0, 0, 2 * MINUTE)] {
        assert_eq!(observe(&mut state, &policy, &late, None, Moment(2 * MINUTE)), []);
        assert_eq!(state, before);
    }
}

/// One letter for the contract of each probe, in the order in which they come, confirmations included; the last one goes on.
fn contracts(letters: &'static str) -> impl Fn(i64, &mut Observation) {
    let next = std::cell::Cell::new(0);
    move |_, observation| {
        let at = next.replace(next.get() + 1).min(letters.len() - 1);
        observation.contract = Some(letters[at..=at].to_owned());
    }
}

#[test]
fn a_contract_that_is_new_is_seen_twice_before_it_counts() {
    let rows: [(&str, &[&str]); 7] = [
        ("a", &[]),
        ("aaab", &["3:05 changed a>b"]),
        // Once is nothing.
        ("aabaaaaaaaaa", &[]),
        // Changed, and changed back.
        ("aabbbbbbbbaaaaaa", &["2:05 changed a>b", "9:05 end contract"]),
        // A second change is compared with what was last agreed, and ends together with the first.
        ("aabbbcccccccccc", &["2:05 changed a>b", "4:05 changed b>c"]),
        ("aaaabababab", &["5:00 mixed a>b"]),
        // With a time in it, it is never the same.
        ("abcdefghijklmnopqrstuvwxyz", &["9:00 different i>j"]),
    ];
    for (letters, expected) in rows {
        check(Policy::default(), 15 * MINUTE, &contracts(letters), expected);
    }
}

#[test]
fn a_fleet_with_two_contracts_is_mixed_until_it_agrees() {
    check(Policy::default(), 40 * MINUTE, &contracts("aaababababaaaaaaaaaaaa"), &["4:00 mixed a>b", "18:00 end mixed-fleet"]);
    check(
        Policy::default(),
        40 * MINUTE,
        &contracts("aaababababbbbbbbbbbbbb"),
        &["4:00 mixed a>b", "17:00 end mixed-fleet", "17:00 changed a>b"],
    );
}

#[test]
fn a_contract_that_is_new_in_a_mixed_fleet_is_weighed_and_so_is_the_one_that_stays() {
    // What is told, and what is looked at for suspicious texts only: known contracts, and the new one.
    let rows: [(&str, &[&str], &[&str]); 8] = [
        // Mixed from the start: nobody was promised the one or the other.
        ("abababaaaaaaaaaaaa", &["3:00 mixed a>b", "15:00 end mixed-fleet"], &["b>a"]),
        ("abababbbbbbbbbbbbb", &["3:00 mixed a>b", "14:00 end mixed-fleet"], &["a>b"]),
        // A third one is none of them.
        ("abababcccccccccccc", &["3:00 mixed a>b", "7:00 added ab>c", "15:00 end mixed-fleet", "15:00 changed ab>c"], &["ab>c"]),
        // With a contract that was promised, the one that stays is compared with that.
        ("aaabababcccccccccccccc", &["4:00 mixed a>b", "8:00 added ab>c", "16:00 end mixed-fleet", "16:00 changed a>c"], &["ab>c"]),
        // All instances have others: each is weighed once, when it is seen for the second time.
        ("aaababababcdcdcdcdcd", &["4:00 mixed a>b", "11:00 added ab>c", "12:00 added acb>d"], &["ab>c", "acb>d"]),
        // An instance that is another one each time is never seen twice.
        ("aaababababcadaeafaga", &["4:00 mixed a>b"], &["ab>c", "acb>d", "adcb>e", "aedcb>f", "afedcb>g"]),
        // What was there before anybody knew that they differ is weighed with the others.
        ("aaaaaaaaaaaaaaaabcdabcda", &["16:15 mixed a>d", "17:00 added ad>b", "18:00 added abd>c"], &["a>b", "a>c"]),
        // Ten times another one, and then the same.
        (
            "abcdefghijkl",
            &["9:00 different i>j", "20:00 end mixed-fleet", "20:00 changed iabcdefghj>l"],
            &["i>a", "i>b", "i>c", "i>d", "i>e", "i>f", "i>g", "i>h", "ijhgfedcba>k", "ikjhgfedcba>l"],
        ),
    ];
    for (letters, heard, glimpsed) in rows {
        let mut sky = Simulation::new(Policy::default());
        sky.run(25 * MINUTE, |_| None, &contracts(letters));
        assert_eq!(sky.heard, heard, "{letters}");
        assert_eq!(sky.glimpsed, glimpsed, "{letters}");
    }
}

#[test]
fn a_change_that_a_deployment_announced_is_quiet() {
    let deployed = |at: i64| (3 * MINUTE..10 * MINUTE).contains(&at).then(|| Announcement { expected: Some("b".into()) });
    let mut sky = Simulation::new(Policy::default());
    sky.run(20 * MINUTE, deployed, &contracts("aaaababababbbbbbb"));
    assert_eq!(sky.heard, ["7:05 changed as announced a>b"]);
    // Another one than it announced is a surprise.
    let mut sky = Simulation::new(Policy::default());
    sky.run(20 * MINUTE, deployed, &contracts("aaaaccccc"));
    assert_eq!(sky.heard, ["4:05 changed a>c"]);
    assert_eq!(sky.state.surface(), Surface::Changed);
    sky.state.agree();
    assert_eq!((sky.state.surface(), sky.state.contract()), (Surface::Ok, Some("c")));
}

#[test]
fn what_breaks_nobody_is_over_after_a_day() {
    let mut sky = Simulation::new(Policy::default());
    let weather = contracts("aab");
    sky.run(5 * MINUTE, |_| None, &weather);
    sky.state.weigh(ChangeLevel::Compatible, ChangeLevel::Compatible, Moment(5 * MINUTE));
    let mut later = observation("here", 25 * HOUR, 0, 25 * HOUR);
    later.contract = Some("b".into());
    let effects = observe(&mut sky.state, &sky.policy, &later, None, Moment(25 * HOUR));
    assert!(matches!(&effects[..], [Effect::Resolve { class: Class::Contract, .. }]), "{effects:?}");
}

#[test]
fn what_broke_on_the_way_does_not_end_by_itself() {
    use ChangeLevel::{Breaking, Compatible};
    // Each change next to the one before, and next to what was agreed; whether it is over a day later.
    let rows: [(&[(ChangeLevel, ChangeLevel)], bool); 4] = [
        (&[(Breaking, Breaking), (Compatible, Breaking)], false),
        (&[(Breaking, Breaking), (Compatible, Compatible)], true),
        (&[(Compatible, Compatible), (Breaking, Compatible), (Compatible, Compatible)], false),
        (&[(Compatible, Compatible), (Breaking, Breaking)], false),
    ];
    for (changes, is_over) in rows {
        let mut sky = Simulation::new(Policy::default());
        sky.run(5 * MINUTE, |_| None, &contracts("aab"));
        for (step, whole) in changes {
            sky.state.weigh(*step, *whole, Moment(5 * MINUTE));
        }
        let mut later = observation("here", 25 * HOUR, 0, 25 * HOUR);
        later.contract = Some("b".into());
        let effects = observe(&mut sky.state, &sky.policy, &later, None, Moment(25 * HOUR));
        assert_eq!(!effects.is_empty(), is_over, "{effects:?}");
    }
}

#[test]
fn a_change_that_alternates_with_a_third_contract_is_not_over() {
    let mut sky = Simulation::new(Policy::default());
    sky.run(12 * MINUTE, |_| None, &contracts("aabbbbcbcbcb"));
    assert!(!sky.heard.iter().any(|heard| heard.ends_with("end contract")), "{:?}", sky.heard);
    assert!(sky.heard.iter().any(|heard| heard.contains("mixed b>c")), "{:?}", sky.heard);
}

/// As [`contracts`]; a capital letter is of a server that was too slow to show its era.
fn eras(letters: &'static str) -> impl Fn(i64, &mut Observation) {
    let next = std::cell::Cell::new(0);
    move |_, observation| {
        let at = next.replace(next.get() + 1).min(letters.len() - 1);
        let letter = &letters[at..=at];
        observation.era_evidence = if letter == letter.to_uppercase() { EraEvidence::Assumed } else { EraEvidence::Shown };
        observation.contract = Some(letter.to_lowercase());
    }
}

#[test]
fn what_was_seen_first_is_no_baseline_until_it_is_seen_again() {
    let rows: [(&str, &[&str]); 4] = [
        // A server that had not registered all its tools yet.
        ("abbbbb", &[]),
        ("abcccc", &[]),
        // From then on, what is new is told.
        ("abbc", &["3:05 changed b>c"]),
        ("abababab", &["3:00 mixed a>b"]),
    ];
    for (letters, expected) in rows {
        check(Policy::default(), 15 * MINUTE, &contracts(letters), expected);
    }
}

#[test]
fn the_contract_of_an_era_that_was_only_assumed_is_no_change() {
    let rows: [(&str, &[&str]); 8] = [
        // A busy start: the era of the first looks was assumed.
        ("Abbbb", &[]),
        ("AAAbbbb", &[]),
        // Slow now and then.
        ("bbAbbbAAbbbAAAbb", &[]),
        ("bAbAbAbAb", &[]),
        // A server that never shows its era has a contract all the same, and so do its changes.
        ("AAAAAAAAAAAAAABBBBBBBBBBB", &["23:05 changed a>b"]),
        // And what responds differently is another contract.
        ("bbaa", &["2:05 changed b>a"]),
        ("AAAAAAAAAAbb", &["10:05 changed a>b"]),
        ("AAAAbbaa", &["6:05 changed b>a"]),
    ];
    for (letters, expected) in rows {
        check(Policy::default(), 40 * MINUTE, &eras(letters), expected);
    }
}

#[test]
fn a_lock_says_what_was_promised_before_anything_was_seen() {
    check(Policy { locked: Some("a".into()), ..Policy::default() }, 5 * MINUTE, &contracts("b"), &["0:05 changed a>b"]);
}

#[test]
fn the_end_of_a_certificate_is_told_in_three_steps() {
    let ends = 30 * 24 * HOUR;
    let mut state = TargetState::default();
    let mut heard = Vec::new();
    for hour in 0..31 * 24 {
        let now = Moment(hour * HOUR);
        let mut seen = observation("here", now.0, 0, now.0);
        seen.certificate_ends = Some(Moment(if hour >= 30 * 24 + 5 { ends + 90 * 24 * HOUR } else { ends }));
        for effect in observe(&mut state, &Policy { every: Duration::from_secs(3_600), ..Policy::default() }, &seen, None, now) {
            let told = match effect {
                Effect::Open { severity, .. } => format!("open {severity}"),
                Effect::Escalate { severity, .. } => format!("more {severity}"),
                Effect::Resolve { .. } => "end".to_owned(),
                other => format!("{other:?}"),
            };
            heard.push((hour / 24, told));
        }
    }
    let expected = [(9, "open notify"), (23, "more page"), (29, "more page"), (30, "end")];
    assert_eq!(heard, expected.map(|(day, told)| (day, told.to_owned())));
}

#[test]
fn a_certificate_that_one_of_several_instances_still_has_is_not_renewed() {
    const DAY: i64 = 24 * HOUR;
    type Row = (&'static [i64], &'static [i64], i64, &'static [&'static str]);
    // Days for which the certificate of each minute is valid; the last ones go on by turns.
    let by_turns = |first: &'static [i64], then: &'static [i64], from: i64| {
        move |at: i64, observation: &mut Observation| {
            let (minute, days) = (at / MINUTE, if at < from * MINUTE { first } else { then });
            let turn = usize::try_from(minute).unwrap() % days.len();
            observation.certificate_ends = Some(Moment(days[turn] * DAY + HOUR));
        }
    };
    let rows: [Row; 6] = [
        (&[5, 90], &[5, 90], 0, &["0:00 page certificate"]),
        (&[90, 90, 5], &[90], 30, &["2:00 page certificate", "89:00 end certificate"]),
        // Renewed everywhere at once.
        (&[5], &[90], 30, &["0:00 page certificate", "39:00 end certificate"]),
        // What the others have by then counts.
        (&[5, 15, 90], &[15, 90], 30, &["0:00 page certificate"]),
        (&[20], &[20, 5], 30, &["0:00 notify certificate", "31:00 page more certificate"]),
        (&[90, 60], &[60, 90], 50, &[]),
    ];
    for (first, then, from, expected) in rows {
        check(Policy::default(), 120 * MINUTE, &by_turns(first, then, from), expected);
    }
}

#[test]
fn slow_is_measured_by_what_is_usual() {
    let slow = |from: i64, until: i64, millis: u64| {
        move |at: i64, observation: &mut Observation| {
            // What is usual is not the same each time.
            let usual = 20 + u64::try_from(at / MINUTE).unwrap() % 7;
            let is_slow = at >= from && at < until;
            observation.duration = Duration::from_millis(if is_slow { millis } else { usual });
        }
    };
    check(Policy::default(), 5 * HOUR, &slow(2 * HOUR, 2 * HOUR + 30 * MINUTE, 300), &["124:00 notify latency", "155:00 end latency"]);
    // Not by much, and not for long.
    check(Policy::default(), 5 * HOUR, &slow(2 * HOUR, 3 * HOUR, 60), &[]);
    check(Policy::default(), 5 * HOUR, &slow(2 * HOUR, 2 * HOUR + 4 * MINUTE, 900), &[]);
}

#[test]
fn failures_that_use_up_the_budget_are_told_once() {
    let policy = || Policy { objective: Some(99.0), ..Policy::default() };
    // Every third probe fails, but no failure is confirmed.
    let weather = |at: i64, observation: &mut Observation| {
        if at > HOUR && at < 2 * HOUR && at % (3 * MINUTE) == 0 {
            observation.verdict = Verdict::Down;
        }
    };
    let mut sky = Simulation::new(policy());
    sky.run(10 * HOUR, |_| None, &weather);
    assert_eq!(sky.heard.len(), 2, "{:?}", sky.heard);
    assert!(sky.heard[0].ends_with("page objective") && sky.heard[1].ends_with("end objective"), "{:?}", sky.heard);
    // An outage is paged for once: neither while it lasts nor afterwards for the same failures.
    let outage = |at: i64, observation: &mut Observation| {
        if (2 * HOUR..2 * HOUR + 20 * MINUTE).contains(&at) {
            observation.verdict = Verdict::Down;
        }
    };
    let nines = || Policy { objective: Some(99.9), ..Policy::default() };
    let once = ["120:15 page availability", "140:05 end availability"];
    check(nines(), 10 * HOUR, &outage, &once);
    // What goes on to fail afterwards, each time too short to be an outage, is another matter.
    let frayed = |at: i64, observation: &mut Observation| {
        outage(at, observation);
        if at > 2 * HOUR + 22 * MINUTE && at < 3 * HOUR && at % (2 * MINUTE) == 0 {
            observation.verdict = Verdict::Down;
        }
    };
    let mut sky = Simulation::new(nines());
    sky.run(3 * HOUR, |_| None, &frayed);
    assert_eq!(sky.heard, [once[0], once[1], "148:00 page objective"]);
    // What began to be watched a minute ago has no rate yet.
    let young = |at: i64, observation: &mut Observation| {
        if at % (2 * MINUTE) == 0 {
            observation.verdict = Verdict::Down;
        }
    };
    check(policy(), 29 * MINUTE, &young, &[]);
    check(policy(), 31 * MINUTE, &young, &["29:00 page objective"]);
    // A single failure of a day is within three nines by far.
    let once = |at: i64, observation: &mut Observation| {
        if at == HOUR {
            observation.verdict = Verdict::Down;
        }
    };
    check(Policy { objective: Some(99.9), ..Policy::default() }, 10 * HOUR, &once, &[]);
}

#[test]
fn a_process_that_grows_or_dies_again_and_again_is_told() {
    let with = |memory: fn(u64) -> u64, restarts: fn(i64) -> bool| {
        move |at: i64, observation: &mut Observation| {
            let minute = u64::try_from(at / MINUTE).unwrap();
            observation.process = Some(ProcessFacts { resident: memory(minute), restarted: restarts(at / MINUTE) });
        }
    };
    let never = |_: i64| false;
    check(Policy::default(), 2 * HOUR, &with(|minute| (50 << 20) + (minute << 20), never), &["34:00 notify memory"]);
    // What is freed again is no growth.
    check(Policy::default(), 2 * HOUR, &with(|minute| (50 + minute % 8 * 20) << 20, never), &[]);
    let often = |minute: i64| (10..30).contains(&minute) && minute % 5 == 0;
    check(Policy::default(), 2 * HOUR, &with(|_| 50 << 20, often), &["20:00 page restarts", "41:00 end restarts"]);
}

#[test]
fn a_state_of_version_1_is_read_by_every_later_reader() {
    let written = r#"{"course":{"stage":{"down":{"since":5}},"votes":{"eu":{"at":7,"is_up":false}},"outages":[5]},"surface":{"accepted":"a"},"last":{"eu":[60000,2]}}"#;
    let state: TargetState = serde_json::from_str(written).unwrap();
    assert_eq!((state.availability(), state.contract()), (Availability::Down, Some("a")));
    assert_eq!(serde_json::from_str::<TargetState>(&serde_json::to_string(&state).unwrap()).unwrap(), state);
}

#[test]
fn a_clock_that_was_set_back_hides_no_outage() {
    for minutes_lived in [10, 60 * 24] {
        let mut sky = Simulation::new(Policy { objective: Some(99.0), ..Policy::default() });
        sky.run(minutes_lived * MINUTE, |_| None, &minutes("."));
        sky.state.set_back(Moment(0));
        sky.run(10 * MINUTE, |_| None, &minutes(".xxx."));
        assert_eq!(sky.heard, ["1:15 page availability", "4:05 end availability"], "after {minutes_lived} minutes");
    }
    // Outages that are still to come are no flapping, and what is open ends.
    let mut sky = Simulation::new(Policy::default());
    sky.run(20 * MINUTE, |_| None, &minutes(".........x..x.......x"));
    sky.heard.clear();
    sky.state.set_back(Moment(0));
    sky.run(40 * MINUTE, |_| None, &minutes(".......x."));
    assert!(!sky.heard.iter().any(|heard| heard.contains("page flapping")), "{:?}", sky.heard);
}
