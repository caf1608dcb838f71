//! Servers that go down for a moment or for longer, alone, with their host, or all of them; targets that come and go; and receivers
//! that do not take what they are sent. Each has a thread of its own.

use super::judge::{Effect, Outage, Reach, is_owed};
use super::pager::{BAD_MANNERS, CHANNELS, Manner};
use super::scene::{Active, IncidentContext, SETTLED, Until};
use super::servers::{Mood, SYMPTOMS};
use std::time::Duration;

/// Alone, at the same time: fewer than would make a storm of them.
const MOST: usize = 8;
/// Between two outages of the host that some share.
const HOST: Duration = Duration::from_secs(100);
/// Between two of everything.
const NETWORK: Duration = Duration::from_secs(270);
/// What should have been told of goes on for so long.
const MARGIN: Duration = Duration::from_secs(20);

fn between(random: &mut fastrand::Rng, least: u64, most: u64) -> Duration {
    Duration::from_millis(random.u64(least..most))
}

/// Until the scene is over; then everything is well.
pub(crate) fn trouble_servers(scene: &IncidentContext, mut random: fastrand::Rng) {
    let mut next = Duration::from_secs(8);
    let mut next_host = Duration::from_secs(40);
    let mut next_network = Duration::from_secs(130);
    while !scene.is_over() {
        scene.rest(Duration::from_millis(100));
        let now = scene.timeline.now();
        end_what_is_over(scene, &mut random);
        let active = scene.active.lock().unwrap().clone();
        let is_wide = active.iter().any(|one| one.reach != Reach::Alone);
        if is_wide || now < next {
            continue;
        }
        let is_settled = |place: &usize| scene.places[*place].answers() >= SETTLED;
        if now >= next_network {
            if (0..scene.places.len()).filter(is_settled).count() * 4 < scene.places.len() * 3 {
                continue;
            }
            next_network = now + NETWORK;
            strike_all(scene, &mut random, &active);
        } else if now >= next_host && is_settled(&scene.shared()) && !is_open(scene, scene.shared()) {
            next_host = now + HOST;
            scene.count("host down");
            noted(scene, scene.shared());
            let until = now + between(&mut random, 30_000, 50_000);
            scene.strike(scene.shared(), SYMPTOMS[random.usize(..SYMPTOMS.len())], Reach::Host, Until::Moment(until));
        } else {
            next = now + between(&mut random, 400, 1_200);
            strike_one(scene, &mut random, &active);
        }
    }
    for place in 0..scene.places.len() {
        scene.heal(place);
    }
}

/// Everything fails at the same time, and works again at the same time.
fn strike_all(scene: &IncidentContext, random: &mut fastrand::Rng, active: &[Active]) {
    scene.count("network down");
    let until = Until::Moment(scene.timeline.now() + between(random, 30_000, 50_000));
    let symptom = [Mood::Refuses, Mood::Hangs][random.usize(..2)];
    for one in active.iter().filter(|one| !one.symptom.is_down()) {
        scene.heal(one.place);
    }
    let down = scene.active.lock().unwrap().iter().map(|one| one.place).collect::<Vec<_>>();
    for place in 0..scene.places.len() {
        if !down.contains(&place) {
            noted(scene, place);
            scene.strike(place, symptom, Reach::Network, until);
        }
    }
    scene.active.lock().unwrap().iter_mut().for_each(|one| one.until = until);
}

fn strike_one(scene: &IncidentContext, random: &mut fastrand::Rng, active: &[Active]) {
    let now = scene.timeline.now();
    let entries = scene.entries.lock().unwrap().clone();
    let is_free = |number: &usize| {
        let entry = &entries[*number];
        let is_well = scene.places[entry.place].answers() >= SETTLED && !active.iter().any(|one| one.place == entry.place);
        entry.is_watched && entry.place != scene.shared() && is_well && !is_open(scene, entry.place)
    };
    let free: Vec<usize> = (0..entries.len()).filter(is_free).collect();
    let Some(number) = free.get(random.usize(..free.len().max(1))).copied() else { return };
    let place = entries[number].place;
    let symptom = SYMPTOMS[random.usize(..SYMPTOMS.len())];
    let many = active.iter().filter(|one| one.symptom.is_down()).count();
    let is_long = many < MOST && random.u8(..100) < 55 && !IncidentContext::has_had_enough(number, &entries[number]);
    if is_long {
        noted(scene, place);
        let until = if random.bool() { Until::Told } else { Until::Moment(now + between(random, 12_000, 45_000)) };
        scene.count(&format!("server {}", symptom.word()));
        scene.strike(place, symptom, Reach::Alone, until);
    } else {
        let mood = if random.u8(..4) == 0 { Mood::Slow } else { symptom };
        scene.count(if mood == Mood::Slow { "server slow" } else { "server down for a moment" });
        scene.strike(place, mood, Reach::Alone, Until::Moment(now + between(random, 500, 3_500)));
    }
}

/// One more outage of those who are there.
fn noted(scene: &IncidentContext, place: usize) {
    scene.entries.lock().unwrap().iter_mut().filter(|entry| entry.place == place).for_each(|entry| entry.outages += 1);
}

/// Whether people still think that one who is there does not work.
fn is_open(scene: &IncidentContext, place: usize) -> bool {
    let entries = scene.entries.lock().unwrap();
    let open = scene.pager.open_incidents();
    let mut there = entries.iter().filter(|entry| entry.place == place);
    there.any(|entry| open.iter().any(|(_, class, target)| *target == entry.name && !matches!(class.as_str(), "flapping" | "latency")))
}

fn end_what_is_over(scene: &IncidentContext, random: &mut fastrand::Rng) {
    let now = scene.timeline.now();
    let active = scene.active.lock().unwrap().clone();
    for one in active {
        let is_over = match one.until {
            Until::Moment(until) => until <= now,
            Until::Told if is_told(scene, &one) => {
                let until = Until::Moment(now + between(random, 500, 5_000));
                let mut active = scene.active.lock().unwrap();
                active.iter_mut().filter(|other| other.place == one.place).for_each(|other| other.until = until);
                false
            }
            Until::Told => {
                let outage = Outage {
                    target: String::new(),
                    symptom: String::new(),
                    reach: one.reach,
                    is_patient: true,
                    began: one.began,
                    ended: now.saturating_sub(MARGIN).max(one.began),
                };
                is_owed(&scene.record.lock().unwrap(), &outage)
            }
        };
        if is_over {
            scene.heal(one.place);
        }
    }
}

fn is_told(scene: &IncidentContext, one: &Active) -> bool {
    let pages = scene.pager.pages();
    pages.iter().any(|page| page.kind == "trigger" && page.at >= one.began && one.targets.contains(&page.target))
}

/// Targets come and go; the monitors read the file by themselves, or are told to.
pub(crate) fn change_targets(scene: &IncidentContext, hang_up: &dyn Fn(), mut random: fastrand::Rng) {
    loop {
        scene.rest(between(&mut random, 4_000, 8_000));
        if scene.is_over() {
            return;
        }
        let entries = scene.entries.lock().unwrap().clone();
        let active = scene.active.lock().unwrap().clone();
        let is_ill = |place: usize| active.iter().any(|one| one.place == place);
        for (number, entry) in entries.iter().enumerate() {
            let has_had_enough = IncidentContext::has_had_enough(number, entry) && !is_ill(entry.place) && !is_open(scene, entry.place);
            // The neighbours go together.
            let goes = if entry.place == scene.shared() { has_had_enough } else { has_had_enough || random.u8(..100) == 0 };
            if !entry.is_watched {
                scene.entries.lock().unwrap()[number].is_watched = true;
            } else if goes {
                scene.renew(number);
                if entry.place != scene.shared() && random.u8(..4) == 0 {
                    scene.entries.lock().unwrap()[number].is_watched = false;
                }
            }
        }
        scene.write_configuration();
        scene.count("reload");
        if random.bool() {
            hang_up();
        }
    }
}

/// Until the scene is over; then they take everything.
pub(crate) fn trouble_receivers(scene: &IncidentContext, mut random: fastrand::Rng) {
    loop {
        scene.rest(between(&mut random, 800, 3_000));
        if scene.is_over() {
            return;
        }
        let manner = BAD_MANNERS[random.usize(..BAD_MANNERS.len())];
        let victims: &[usize] = [&[0][..], &[0], &[1], &[0, 1]][random.usize(..4)];
        let kind = match manner {
            Manner::Resets => "receiver resets",
            Manner::Fails => "receiver fails",
            Manner::IsBusy => "receiver is busy",
            Manner::Forbids => "receiver forbids",
            Manner::Hangs => "receiver hangs",
            Manner::LosesReplies | Manner::Takes => "receiver loses replies",
        };
        let hindrance = scene.begin(kind, Effect::Delays, false);
        victims.iter().for_each(|victim| scene.pager.behave(*victim, manner));
        scene.rest(between(&mut random, 500, 7_000));
        (0..CHANNELS.len()).for_each(|channel| scene.pager.behave(channel, Manner::Takes));
        scene.finish(hindrance, Duration::ZERO);
    }
}
