//! What all who bring trouble have in common: the servers, who is watched, and the record of what is done and what comes of it.

use super::judge::{Effect, Hindrance, Outage, Reach, Record};
use super::monitors::Configuration;
use super::pager::Pager;
use super::servers::{Mood, Place};
use super::timeline::Timeline;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Targets that share one host.
pub(crate) const NEIGHBOURS: usize = 8;
/// Outages after which a target makes place for another one: the third within an hour is another story.
const MOST_OUTAGES: usize = 2;
/// Good answers after which a server is known to be well.
pub(crate) const SETTLED: u64 = 4;

/// A target, as long as it is watched.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) place: usize,
    generation: usize,
    pub(crate) outages: usize,
    pub(crate) is_watched: bool,
}

/// An outage that goes on.
#[derive(Clone, Debug)]
pub(crate) struct Active {
    pub(crate) place: usize,
    /// Those who have it.
    pub(crate) targets: Vec<String>,
    pub(crate) symptom: Mood,
    pub(crate) reach: Reach,
    pub(crate) began: Duration,
    pub(crate) until: Until,
    /// It was to go on until somebody was told.
    is_patient: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    Moment(Duration),
    /// Somebody was told of it, or should have been for long.
    Told,
}

pub(crate) struct IncidentContext {
    pub(crate) timeline: Timeline,
    /// The last one is that of the neighbours.
    pub(crate) places: Vec<Arc<Place>>,
    pub(crate) pager: Arc<Pager>,
    pub(crate) entries: Mutex<Vec<Entry>>,
    pub(crate) active: Mutex<Vec<Active>>,
    pub(crate) record: Mutex<Record>,
    /// How often what was done.
    pub(crate) faults: Mutex<BTreeMap<String, usize>>,
    is_over: AtomicBool,
    folder: PathBuf,
    database: String,
}

impl IncidentContext {
    pub(crate) fn new(timeline: Timeline, places: Vec<Arc<Place>>, pager: Arc<Pager>, folder: PathBuf, database: String) -> Self {
        let last = places.len() - 1;
        let of = (0..last).chain(std::iter::repeat_n(last, NEIGHBOURS));
        let entries = of.enumerate().map(|(number, place)| Entry {
            name: format!("t{number}-1"),
            place,
            generation: 1,
            outages: 0,
            is_watched: true,
        });
        let entries = Mutex::new(entries.collect());
        let (active, record, faults, is_over) = (Mutex::default(), Mutex::default(), Mutex::default(), AtomicBool::new(false));
        let scene = Self { timeline, places, pager, entries, active, record, faults, is_over, folder, database };
        scene.write_configuration();
        scene
    }

    pub(crate) fn shared(&self) -> usize {
        self.places.len() - 1
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Sleeps, unless everything ends.
    pub(crate) fn rest(&self, length: Duration) {
        let until = self.timeline.now() + length;
        while !self.is_over() && self.timeline.now() < until {
            self.timeline.sleep_until(until.min(self.timeline.now() + Duration::from_millis(100)));
        }
    }

    pub(crate) fn count(&self, fault: &str) {
        *self.faults.lock().unwrap().entry(fault.to_owned()).or_default() += 1;
    }

    pub(crate) fn write_configuration(&self) {
        let entries = self.entries.lock().unwrap();
        let watched = entries.iter().filter(|entry| entry.is_watched);
        let targets: Vec<(String, SocketAddr)> = watched.map(|entry| (entry.name.clone(), self.places[entry.place].address)).collect();
        Configuration { database: &self.database, pager: self.pager.address, targets: &targets }.write(&self.folder);
    }

    /// Makes what answers at a place ill; everybody there has it.
    pub(crate) fn strike(&self, place: usize, symptom: Mood, reach: Reach, until: Until) {
        let entries = self.entries.lock().unwrap();
        let there = entries.iter().filter(|entry| entry.place == place && entry.is_watched);
        let targets = there.map(|entry| entry.name.clone()).collect();
        self.places[place].become_one_that(symptom);
        let began = self.timeline.now();
        self.active.lock().unwrap().push(Active { place, targets, symptom, reach, began, until, is_patient: until == Until::Told });
    }

    /// Ends the outage of a place; the others there have it no more either.
    pub(crate) fn heal(&self, place: usize) {
        let mut active = self.active.lock().unwrap();
        self.places[place].become_one_that(Mood::Well);
        let ended = self.timeline.now();
        let over: Vec<Active> = active.extract_if(.., |one| one.place == place).collect();
        let mut record = self.record.lock().unwrap();
        for one in over.into_iter().filter(|one| one.symptom.is_down()) {
            let Active { symptom, reach, began, is_patient, .. } = one;
            let symptom = || symptom.word().to_owned();
            let outages = one.targets.into_iter().map(|target| Outage { target, symptom: symptom(), reach, is_patient, began, ended });
            record.outages.extend(outages);
        }
    }

    /// Takes out a target, or those that have had enough, and puts others in their place. The file is written afterwards.
    pub(crate) fn renew(&self, number: usize) {
        let place = self.entries.lock().unwrap()[number].place;
        if self.active.lock().unwrap().iter().any(|one| one.place == place) {
            self.heal(place);
        }
        let mut entries = self.entries.lock().unwrap();
        let entry = &mut entries[number];
        self.record.lock().unwrap().removed.insert(entry.name.clone(), self.timeline.now());
        entry.generation += 1;
        entry.outages = 0;
        entry.name = format!("t{number}-{}", entry.generation);
        self.places[place].has_moved();
    }

    /// Whether it is time for another target in its place: some stay, so that flapping is seen as well.
    pub(crate) fn has_had_enough(number: usize, entry: &Entry) -> bool {
        entry.outages >= if number % 8 == 3 { MOST_OUTAGES * 2 } else { MOST_OUTAGES }
    }

    pub(crate) fn begin(&self, kind: &'static str, effect: Effect, of_database: bool) -> usize {
        let mut record = self.record.lock().unwrap();
        let began = self.timeline.now();
        record.hindrances.push(Hindrance { kind: kind.to_owned(), effect, of_database, began, ended: Duration::MAX });
        drop(record);
        self.count(kind);
        self.record.lock().unwrap().hindrances.len() - 1
    }

    /// `aftermath` is how long it takes until what hung on it goes on.
    pub(crate) fn finish(&self, hindrance: usize, aftermath: Duration) {
        self.record.lock().unwrap().hindrances[hindrance].ended = self.timeline.now() + aftermath;
    }
}
