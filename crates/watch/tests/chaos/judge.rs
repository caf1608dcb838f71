//! What a run comes to: which outages nobody was told of, and of what people were told that was not so. Pure: knows what the servers
//! and the receivers wrote down, and what was done to the monitor; starts nothing and reads no clock.
//!
//! What counts as what is said in the page that the run writes, in the words of [`RULES`].

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// An outage of this length has to be told of, time during which the monitor was kept from its work not counted: three probes in a row
/// fail, the last one 15 s after the first, each takes up to 2 s, and the first is up to 2 s late.
pub(crate) const TOLD_AFTER: Duration = Duration::from_secs(30);
/// And so has one of this length however often the monitor was kept from it, as long as some process of it ran.
pub(crate) const TOLD_AT_LAST: Duration = Duration::from_secs(100);
/// What is shorter never makes three failures that are 15 s apart.
const SHORTEST: Duration = Duration::from_secs(10);
/// After its end, a message may still be on its way for so long: both receivers may have refused it until then.
const LATEST: Duration = Duration::from_secs(200);
/// The same where nobody should be told at all.
const SOON: Duration = Duration::from_secs(30);
/// What begins so long after a storm may still be a part of it.
const STORM: Duration = Duration::from_secs(300);
/// That may stand in for one database.
const PROCESSES: usize = 2;
/// So many that fail at once are a storm.
const MANY: usize = 5;

pub(crate) const RULES: &str = "\
- *lost*: a server was down for 30 s, not counting the time from a fault of the monitor or of its database to its recovery (and to the end of \
leases, where a process of several died), or for 100 s in which any process ran; and neither a page of its own nor a storm that it \
is a part of ever reached a receiver. Half of the outages end only when somebody was told, or long after somebody should have been.
- *phantom*: a page about a server that was not down, a second page about the same outage, a second storm of the same targets within 30 s, or a storm while fewer than five were down. \
Several processes that stand in for one Postgres tell people each on its own (as the guide says): counted apart.
- *early*: a page about a server that was down for less than 10 s. A clock that is set forward between two looks makes the next one due at \
once, so that three failures are closer together than 15 s.
- *blind*: a page that nothing is known of a server. It is right after a fault of the monitor or of its database, else it is a phantom.
- *order*: an end before its begin, a begin after its end, or a second begin of the same incident as another message.
- *end lost*: an incident that nobody was told the end of, though its server worked, or an alert of one that is still open at its service \
though others were told the end; *end false*: the end of an outage that went on, of \
which no other page was open.
- *unseen*: the longest time without any new result in the database in which `/healthz` still answered 200 and the heartbeat went on.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reach {
    Alone,
    /// All on its host.
    Host,
    /// Everything.
    Network,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outage {
    pub(crate) target: String,
    pub(crate) symptom: String,
    pub(crate) reach: Reach,
    /// It would have gone on until somebody was told.
    pub(crate) is_patient: bool,
    pub(crate) began: Duration,
    pub(crate) ended: Duration,
}

impl Outage {
    fn length(&self) -> Duration {
        self.ended.saturating_sub(self.began)
    }
}

/// One message, as a receiver took it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Page {
    pub(crate) at: Duration,
    pub(crate) channel: String,
    /// The same when it is sent again; empty where the service has no such thing.
    pub(crate) message: String,
    pub(crate) kind: String,
    pub(crate) incident: String,
    /// The whole key, where the service keeps alerts: an incident has another one each time that it becomes more severe.
    #[serde(default)]
    pub(crate) alert: String,
    pub(crate) class: String,
    pub(crate) target: String,
    /// Of a storm.
    pub(crate) targets: Vec<String>,
}

/// How far a fault keeps the monitor from its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Effect {
    /// Not at all: messages may be late.
    Delays,
    Slows,
    /// No process runs.
    Halts,
}

/// Something that was done to the monitor, its database or a receiver; until everything went on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hindrance {
    pub(crate) kind: String,
    pub(crate) effect: Effect,
    /// A process may have stood in for the database.
    pub(crate) of_database: bool,
    pub(crate) began: Duration,
    pub(crate) ended: Duration,
}

/// Kept beside the figures, so that it can be judged again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) outages: Vec<Outage>,
    /// In their order.
    pub(crate) pages: Vec<Page>,
    pub(crate) hindrances: Vec<Hindrance>,
    /// Targets that were taken out of the configuration, and when.
    pub(crate) removed: BTreeMap<String, Duration>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Judged {
    /// Outages that had to be told of.
    pub(crate) owed: usize,
    /// Outages that were told of, those that did not have to be among them.
    pub(crate) told: usize,
    pub(crate) lost: Vec<String>,
    pub(crate) phantom: Vec<String>,
    pub(crate) early: Vec<String>,
    pub(crate) disordered: Vec<String>,
    pub(crate) ends_lost: Vec<String>,
    pub(crate) ends_false: Vec<String>,
    /// Told by several processes while the database was gone.
    pub(crate) told_by_several: usize,
    pub(crate) blind: usize,
    pub(crate) storms: usize,
    /// The same message, received again.
    pub(crate) repeated: usize,
    /// From the begin of an outage to its page, in milliseconds, by what was done meanwhile.
    pub(crate) latencies: BTreeMap<String, Vec<u64>>,
}

/// All messages of one incident.
struct Story<'a> {
    class: &'a str,
    target: &'a str,
    targets: &'a [String],
    begin: Option<Duration>,
    end: Option<Duration>,
}

pub(crate) fn judge(record: &Record) -> Judged {
    let mut judged = Judged::default();
    let stories = stories(record, &mut judged);
    let mut told: BTreeMap<usize, Duration> = BTreeMap::new();
    for (id, story) in &stories {
        let Some(begin) = story.begin else { continue };
        match story.class {
            "availability" | "flapping" => {
                let goes_on = |end: Duration| {
                    let others = stories.iter().filter(|(other, _)| *other != id);
                    let mut others = others.filter(|(_, other)| (other.class, other.target) == (story.class, story.target));
                    others.any(|(_, other)| other.begin.is_some_and(|begin| begin <= end) && other.end.is_none_or(|other| other > end))
                };
                // The end of one of two pages about the same outage is no end of it.
                let ends = story.end.filter(|end| !goes_on(*end));
                explain(record, (id, story), begin, ends, &mut told, &mut judged);
            }
            "blind" if hindered(record, begin, SOON * 2) => judged.blind += 1,
            "storm" => {
                weigh_storm(record, (id, story), begin, &mut judged);
                let is_earlier = |(other, told): &(&&str, &Story<'_>)| {
                    let since = told.begin.filter(|since| (*since, **other) < (begin, *id));
                    told.class == "storm" && told.target == story.target && since.is_some_and(|since| begin <= since + SOON)
                };
                match stories.iter().filter(is_earlier).count() {
                    0 => {}
                    // Each process may tell of it on its own.
                    1..PROCESSES if without_database(record, begin.saturating_sub(SOON), begin) => judged.told_by_several += 1,
                    _ => judged.phantom.push(format!("told again: storm {} at {:.1} s ({id})", story.target, begin.as_secs_f64())),
                }
            }
            // Whoever is slow is slow for a reason of ours.
            "latency" => {}
            class => judged.phantom.push(format!("{class} of {} at {:.1} s ({id})", story.target, begin.as_secs_f64())),
        }
        let is_over = story.class != "flapping" && story.end.is_none();
        if is_over && !matches!(story.class, "latency" | "objective") {
            judged.ends_lost.push(format!("{} of {}, told at {:.1} s ({id})", story.class, story.target, begin.as_secs_f64()));
        }
    }
    for ((channel, alert), page) in open_alerts(&record.pages) {
        // Where nobody was told the end, that was said above.
        let is_left = stories.get(page.incident.as_str()).is_some_and(|story| story.end.is_some());
        if is_left && !matches!(page.class.as_str(), "flapping" | "latency" | "objective") {
            let Page { at, class, target, .. } = page;
            let begin = at.as_secs_f64();
            judged.ends_lost.push(format!("{class} of {target}, told at {begin:.1} s, still open at {channel} ({alert})"));
        }
    }
    for (number, outage) in record.outages.iter().enumerate() {
        let in_storm = stories.values().filter_map(|story| in_storm(story, outage)).min();
        let flaps = stories.values().filter(|story| story.class == "flapping" && story.target == outage.target);
        let flaps = flaps.filter_map(|story| story.begin.filter(|begin| *begin <= outage.began)).min();
        let at = told.get(&number).copied().or(in_storm);
        let is_owed = is_owed(record, outage);
        judged.owed += usize::from(is_owed || outage.is_patient && at.is_some());
        if let Some(at) = at {
            judged.told += 1;
            // Of a storm people knew before this was a part of it.
            if at < outage.began {
                continue;
            }
            let latency = u64::try_from(at.saturating_sub(outage.began).as_millis()).unwrap_or(u64::MAX);
            for kind in meanwhile(record, outage.began, at) {
                judged.latencies.entry(kind.to_owned()).or_default().push(latency);
            }
            judged.latencies.entry(format!("all: {}", outage.symptom)).or_default().push(latency);
        } else if is_owed && flaps.is_none() {
            judged.lost.push(describe(outage));
        }
    }
    judged
}

/// Alerts that were triggered, and not resolved since: by the channel and their whole key, the message that opened each.
pub(crate) fn open_alerts(pages: &[Page]) -> BTreeMap<(&str, &str), &Page> {
    let mut open = BTreeMap::new();
    for page in pages.iter().filter(|page| !page.alert.is_empty()) {
        let key = (page.channel.as_str(), page.alert.as_str());
        match page.kind.as_str() {
            "trigger" => drop(open.entry(key).or_insert(page)),
            "resolve" => drop(open.remove(&key)),
            _ => {}
        }
    }
    open
}

fn describe(outage: &Outage) -> String {
    let Outage { target, symptom, reach, began, ended, .. } = outage;
    format!("{target}, {symptom} ({reach:?}), from {:.1} s to {:.1} s", began.as_secs_f64(), ended.as_secs_f64())
}

fn stories<'a>(record: &'a Record, judged: &mut Judged) -> BTreeMap<&'a str, Story<'a>> {
    let mut stories: BTreeMap<&str, Story<'_>> = BTreeMap::new();
    let mut begins: BTreeMap<&str, &str> = BTreeMap::new();
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    for page in &record.pages {
        let story = stories.entry(&page.incident).or_insert_with(|| Story {
            class: &page.class,
            target: &page.target,
            targets: &page.targets,
            begin: None,
            end: None,
        });
        let is_again = !page.message.is_empty() && !seen.insert((&page.channel, &page.message));
        judged.repeated += usize::from(is_again);
        let mut disorder = |what: &str| {
            let Page { at, channel, incident, .. } = page;
            let (class, target) = (story.class, story.target);
            judged.disordered.push(format!("{what}: {class} of {target} at {:.1} s, {channel} ({incident})", at.as_secs_f64()));
        };
        match page.kind.as_str() {
            "trigger" => {
                if !page.message.is_empty() {
                    let first = *begins.entry(&page.incident).or_insert(&page.message);
                    if first != page.message {
                        disorder("a second begin");
                    }
                }
                if story.end.is_some() {
                    disorder("a begin after its end");
                }
                if story.begin.is_none() {
                    (story.class, story.target, story.targets) = (&page.class, &page.target, &page.targets);
                }
                story.begin = story.begin.or(Some(page.at));
            }
            "resolve" => {
                if story.begin.is_none() {
                    disorder("an end before its begin");
                }
                story.end = story.end.or(Some(page.at));
            }
            _ => {}
        }
    }
    stories
}

/// Finds the outage that a page is about.
fn explain(
    record: &Record,
    (id, story): (&str, &Story<'_>),
    begin: Duration,
    ends: Option<Duration>,
    told: &mut BTreeMap<usize, Duration>,
    judged: &mut Judged,
) {
    let is_about = |outage: &Outage| {
        let late = if outage.length() < SHORTEST { SOON } else { LATEST };
        outage.target == story.target && outage.began <= begin && begin <= outage.ended + late
    };
    let about: Vec<usize> = (0..record.outages.len()).filter(|number| is_about(&record.outages[*number])).collect();
    let place = || format!("{} of {} at {:.1} s ({id})", story.class, story.target, begin.as_secs_f64());
    let Some(number) = about.iter().rev().find(|number| !told.contains_key(number)).copied() else {
        match about.last().map(|number| &record.outages[*number]) {
            Some(outage) if without_database(record, outage.began, begin) => judged.told_by_several += 1,
            Some(outage) => judged.phantom.push(format!("told again: {}; {}", place(), describe(outage))),
            None => judged.phantom.push(place()),
        }
        return;
    };
    told.insert(number, begin);
    let outage = &record.outages[number];
    if outage.length() < SHORTEST {
        judged.early.push(format!("{}; {}", place(), describe(outage)));
    }
    if let Some(end) = ends.filter(|_| story.class == "availability")
        && end < outage.ended
        && record.removed.get(story.target).is_none_or(|removed| *removed > end)
    {
        judged.ends_false.push(format!("{}, ended at {:.1} s; {}", place(), end.as_secs_f64(), describe(outage)));
    }
}

fn weigh_storm(record: &Record, (id, story): (&str, &Story<'_>), begin: Duration, judged: &mut Judged) {
    judged.storms += 1;
    let moments = record.outages.iter().map(|outage| outage.began).filter(|began| *began <= begin && begin <= *began + LATEST);
    let down = |at: Duration| record.outages.iter().filter(|outage| outage.began <= at && at < outage.ended).count();
    if moments.map(down).max().unwrap_or(0) < MANY && !hindered(record, begin, SOON * 2) {
        judged.phantom.push(format!("storm {} at {:.1} s ({id})", story.target, begin.as_secs_f64()));
    }
}

/// When people knew of an outage by a storm that it is a part of.
fn in_storm(story: &Story<'_>, outage: &Outage) -> Option<Duration> {
    let begin = story.begin.filter(|_| story.class == "storm")?;
    let end = story.end.unwrap_or(Duration::MAX);
    let is_of_all = story.target.starts_with("region:");
    let late = if outage.length() < SHORTEST { Duration::ZERO } else { SOON * 2 };
    let is_then = outage.began <= begin && begin <= outage.ended + late;
    let is_named = story.targets.contains(&outage.target) && is_then;
    let joined = is_of_all && begin <= outage.began && outage.began <= begin + STORM && outage.began + SHORTEST < end;
    let was_about_to = match outage.reach {
        Reach::Alone => false,
        Reach::Host => is_then,
        Reach::Network => is_then && is_of_all,
    };
    (is_named || joined || was_about_to).then_some(begin)
}

pub(crate) fn is_owed(record: &Record, outage: &Outage) -> bool {
    let of = |halts_only: bool| {
        let counts = |hindrance: &&Hindrance| match hindrance.effect {
            Effect::Delays => false,
            Effect::Slows => !halts_only,
            Effect::Halts => true,
        };
        let mut spans: Vec<(Duration, Duration)> = record
            .hindrances
            .iter()
            .filter(counts)
            .map(|hindrance| (hindrance.began.max(outage.began), hindrance.ended.min(outage.ended)))
            .filter(|(began, ended)| began < ended)
            .collect();
        spans.sort_unstable();
        let (mut lost, mut until) = (Duration::ZERO, outage.began);
        for (began, ended) in spans {
            lost += ended.saturating_sub(began.max(until));
            until = until.max(ended);
        }
        outage.length().saturating_sub(lost)
    };
    of(false) >= TOLD_AFTER || of(true) >= TOLD_AT_LAST
}

/// Whether anything was done to the monitor shortly before.
fn hindered(record: &Record, at: Duration, before: Duration) -> bool {
    let is_near = |hindrance: &&Hindrance| hindrance.began <= at && at <= hindrance.ended + before;
    record.hindrances.iter().filter(is_near).any(|hindrance| hindrance.effect != Effect::Delays)
}

fn without_database(record: &Record, from: Duration, until: Duration) -> bool {
    record.hindrances.iter().any(|hindrance| hindrance.of_database && hindrance.began <= until && from <= hindrance.ended + LATEST)
}

/// What was done between two moments. What receivers did is named where nothing else was done: something is wrong with them all the time.
fn meanwhile(record: &Record, from: Duration, until: Duration) -> BTreeSet<&str> {
    let during = || record.hindrances.iter().filter(|hindrance| hindrance.began <= until && from <= hindrance.ended);
    let kinds: BTreeSet<&str> =
        during().filter(|hindrance| hindrance.effect != Effect::Delays).map(|hindrance| hindrance.kind.as_str()).collect();
    match (kinds.is_empty(), during().next()) {
        (false, _) => kinds,
        (true, Some(_)) => BTreeSet::from(["only of receivers"]),
        (true, None) => BTreeSet::from(["nothing"]),
    }
}
