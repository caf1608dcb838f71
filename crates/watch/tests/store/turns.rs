//! Turns: who has them, whose results count, and what comes next.

use super::fixtures::*;
use mcproof_watch::config::{TargetKind, TargetSpec};
use mcproof_watch::moment::Moment;
use mcproof_watch::state::{Policy, Verdict};
use mcproof_watch::store::{Fence, Finished, Lease, Store};
use std::collections::BTreeSet;
use std::time::Duration;

pub(crate) async fn a_turn_is_leased_to_one_worker_only(address: String) {
    let targets: Vec<_> = (0..120).map(|number| target(&format!("t{number}"))).collect();
    let store = store_of(&address, &targets).await;
    let now = START + MINUTE;
    let three = [0, 1, 2].map(|_| store.lease("here", "worker", now, 50));
    let leased: Vec<Lease> = futures_util::future::try_join_all(three).await.unwrap().into_iter().flatten().collect();
    let names: BTreeSet<&str> = leased.iter().map(|lease| lease.target.as_str()).collect();
    assert_eq!(names.len(), leased.len(), "somebody was leased twice");
    let rest = store.lease("here", "worker", now, 500).await.unwrap();
    assert_eq!((names.len() + rest.len(), lease(&store, "here", now).await.len()), (120, 0));
    assert!(store.lease("elsewhere", "worker", now, 50).await.unwrap().is_empty());
}

/// Another file than that of a process that runs takes nothing away, until that process has ended.
pub(crate) async fn a_target_is_monitored_as_long_as_a_process_names_it(address: String) {
    let (both, one) = ([target("cart"), target("shop")], [target("shop")]);
    let store = store_of(&address, &both).await;
    let names = async |now: Moment| {
        let (monitored, held) = store.monitored_and_held(now).await.unwrap();
        [monitored, held].map(|names| names.into_iter().collect::<Vec<_>>().join(" "))
    };
    store.hold_targets("first", &["cart", "shop"], START).await.unwrap();
    store.hold_targets("second", &["shop"], START).await.unwrap();
    assert_eq!(sync(&store, &one, START).await, (0, 0, 0));
    assert_eq!(names(START).await, ["cart shop", "cart shop"]);
    // The second one leaves the turns of the other alone.
    store.leave_alone(&BTreeSet::from(["cart".to_owned()]));
    let leased = lease(&store, "here", FIRST).await;
    assert_eq!(leased.iter().map(|lease| lease.target.as_str()).collect::<Vec<_>>(), ["shop"]);
    assert!(store.next_due("here", FIRST).await.unwrap() > Some(FIRST), "the turn of `cart` is no reason to look again");
    store.leave_alone(&BTreeSet::new());
    assert_eq!(lease(&store, "here", FIRST).await.len(), 1);
    // One of them goes on with an earlier version of its file, until it has taken over the next one.
    let rejections = async |now: Moment| store.rejections(now).await.unwrap().into_iter().collect::<Vec<_>>().join(", ");
    store.hold_rejection("first", Some("w.yaml:1:1: unknown key `evry`")).await.unwrap();
    store.hold_targets("first", &["cart", "shop"], START).await.unwrap();
    assert_eq!(rejections(START).await, "w.yaml:1:1: unknown key `evry`");
    store.hold_rejection("first", None).await.unwrap();
    assert_eq!(rejections(START).await, "");
    store.hold_rejection("first", Some("gone")).await.unwrap();
    // Killed, or ended.
    let later = START + Duration::from_secs(31);
    assert_eq!(rejections(later).await, "");
    store.hold_targets("second", &["shop"], later).await.unwrap();
    assert_eq!(names(later).await, ["cart shop", "shop"]);
    store.hold_targets("first", &["cart", "shop"], later).await.unwrap();
    store.let_go("first").await.unwrap();
    assert_eq!(sync(&store, &one, later).await, (0, 0, 1));
    assert_eq!(names(later).await, ["shop", "shop"]);
    // A clock that was ahead has left this behind.
    store.hold_targets("third", &["cart"], later + MINUTE).await.unwrap();
    assert_eq!(names(later).await[1], "shop");
}

/// However many the other process has, and whenever these are due.
pub(crate) async fn a_process_takes_no_turn_of_thousands_that_it_does_not_know(address: String) {
    let foreign: Vec<String> = (0..2_500).map(|number| format!("a{number:04} \"'%")).collect();
    let all: Vec<_> = foreign.iter().map(|name| target(name)).chain([target("shop")]).collect();
    let store = store_of(&address, &all).await;
    let later = START + MINUTE * 2;
    store.leave_alone(&foreign.into_iter().collect());
    let leased = store.lease("here", "worker", later, 5_000).await.unwrap();
    assert_eq!(leased.iter().map(|lease| lease.target.as_str()).collect::<Vec<_>>(), ["shop"]);
    let next = store.next_due("here", later).await.unwrap();
    assert_eq!(next, Some(leased[0].until), "the turns of the others are no reason to look again");
    assert_eq!(store.next_confirmation("here").await.unwrap(), None);
    // Those that it is told of it takes.
    store.leave_alone(&BTreeSet::new());
    assert_eq!(store.lease("here", "worker", later, 5_000).await.unwrap().len(), 2_500);
}

/// Nobody has said that they are not to be monitored.
pub(crate) async fn what_a_process_that_was_killed_monitored_is_kept_until_a_file_is_read_again(address: String) {
    let (both, one) = ([target("cart"), target("shop")], [target("shop")]);
    let store = store_of(&address, &both).await;
    store.keep_vanished_since(START);
    let (seen, later) = (START + Duration::from_secs(10), START + MINUTE * 10);
    store.hold_targets("killed", &["cart", "shop"], seen).await.unwrap();
    store.hold_targets("ended", &["cart", "shop"], seen).await.unwrap();
    store.let_go("ended").await.unwrap();
    store.hold_targets("runs", &["shop"], later).await.unwrap();
    assert_eq!(sync(&store, &one, later).await, (0, 0, 0));
    let (monitored, held) = store.monitored_and_held(later).await.unwrap();
    assert_eq!((monitored.len(), &held), (2, &monitored));
    let leased = lease(&store, "here", later).await;
    let leased: Vec<_> = leased.iter().filter(|lease| lease.target == "shop").map(|lease| finished(lease, Verdict::Up, later)).collect();
    commit(&store, &leased, later).await;
    assert_eq!(store.sweep_blind(&config(), "here", START, 100, later).await.unwrap(), 1);
    assert_eq!(rows(&address, "SELECT subject FROM incident WHERE class = 'blind' AND resolved IS NULL").await, [["cart"]]);
    // Whoever reads its file decides.
    assert_eq!(store.keep_vanished_since(later), START);
    assert_eq!(sync(&store, &one, later).await, (0, 0, 1));
    // For those who have read theirs earlier, too.
    assert_eq!(store.keep_vanished_since(START), later);
    let (monitored, held) = store.monitored_and_held(later).await.unwrap();
    assert_eq!((monitored.len(), &held), (1, &monitored));
    let ended = rows(&address, "SELECT detail FROM incident WHERE class = 'blind' AND resolved IS NOT NULL").await;
    assert!(ended.len() == 1 && ended[0][0].contains("\"is_unmonitored\":true"), "{ended:?}");
}

pub(crate) async fn a_lease_that_ended_is_taken_over_and_its_result_is_dropped(address: String) {
    let store = store_of(&address, &[target("one")]).await;
    let (first, second) = taken_over(&store).await;
    assert_eq!(commit(&store, &[finished(&second, Verdict::Up, second.until)], second.until).await, (1, 0));
    assert_eq!(commit(&store, &[finished(&first, Verdict::Down, first.until)], second.until).await, (0, 1));
}

pub(crate) async fn without_the_fence_a_late_result_is_taken(address: String) {
    let store = store_of(&address, &[target("one")]).await.fenced(Fence::Down);
    let (first, second) = taken_over(&store).await;
    assert_eq!(commit(&store, &[finished(&first, Verdict::Down, first.until)], second.until).await, (1, 0));
}

/// The same turn twice: of who had it first, and of who has it now.
async fn taken_over(store: &Store) -> (Lease, Lease) {
    let first = lease(store, "here", START + MINUTE).await.remove(0);
    assert_eq!(store.next_due("here", START + MINUTE).await.unwrap(), Some(first.until));
    let second = lease(store, "here", first.until).await.remove(0);
    assert_eq!((second.turn, second.epoch), (first.turn, first.epoch + 1));
    (first, second)
}

pub(crate) async fn leases_that_are_given_back_are_taken_again(address: String) {
    let store = store_of(&address, &[target("one"), target("two")]).await;
    let now = START + MINUTE;
    let leases = lease(&store, "here", now).await;
    store.release(&leases[..1]).await.unwrap();
    let again = lease(&store, "here", now).await;
    assert_eq!((again.len(), &again[0].target), (1, &leases[0].target));
    assert_eq!(commit(&store, &[finished(&leases[0], Verdict::Up, now)], now).await, (0, 1));
}

pub(crate) async fn a_result_is_written_once_and_its_target_waits_for_the_next_slot(address: String) {
    let store = store_of(&address, &[target("one"), target("two")]).await;
    let now = FIRST;
    let leases = lease(&store, "here", now).await;
    let all: Vec<Finished> = leases.iter().map(|lease| finished(lease, Verdict::Up, now)).collect();
    assert_eq!(commit(&store, &all, now).await, (2, 0));
    assert!(lease(&store, "here", now).await.is_empty());
    let next = lease(&store, "here", now + MINUTE).await;
    for (before, after) in leases.iter().zip(&next) {
        assert_eq!((after.turn.slot, after.turn.attempt), (before.turn.slot + MINUTE, 0));
    }
    // The lease of the slot before is over, whatever it says.
    assert_eq!(commit(&store, &all, now + MINUTE).await, (0, 2));
}

pub(crate) async fn a_failure_is_looked_at_again_and_so_are_the_neighbours(address: String) {
    let elsewhere = TargetSpec { kind: TargetKind::Monitor("http://127.0.0.2:9/".into()), ..target("elsewhere") };
    let store = store_of(&address, &[target("one"), target("two"), elsewhere]).await;
    let now = FIRST;
    let all: Vec<Finished> = lease(&store, "here", now).await.iter().map(|lease| finished(lease, Verdict::Up, START - MINUTE)).collect();
    commit(&store, &all, now).await;
    // Whose slot comes first is up to their names.
    let mut slots: Vec<(Moment, String)> = all
        .iter()
        .filter(|one| one.lease.target != "elsewhere")
        .map(|one| (one.lease.turn.slot + MINUTE, one.lease.target.clone()))
        .collect();
    slots.sort();
    let [(now, failing), (_, neighbour)] = <[_; 2]>::try_from(slots).unwrap();
    let due = lease(&store, "here", now).await;
    let failing = due.iter().find(|lease| lease.target == failing).unwrap();
    assert_eq!(commit(&store, &[finished(failing, Verdict::Down, now)], now).await, (1, 0));
    let asked = lease(&store, "here", now).await;
    let asked: Vec<(&str, u32)> = asked.iter().map(|lease| (lease.target.as_str(), lease.turn.attempt)).collect();
    assert!(asked.contains(&(neighbour.as_str(), 9)), "{asked:?}");
    let confirming = lease(&store, "here", now + Duration::from_secs(5)).await.into_iter().find(|lease| lease.target == failing.target);
    assert_eq!(confirming.map(|lease| (lease.turn.slot, lease.turn.attempt)), Some((failing.turn.slot, 1)));
}

pub(crate) async fn what_is_new_is_probed_at_once_and_never_twice_in_a_slot(address: String) {
    let store = store_of(&address, &[target("one"), target("two")]).await;
    let running = |name: &str, now: Moment| target(name).grid().slot_at_or_before(now);
    let leases = lease(&store, "here", FIRST).await;
    let slots: Vec<Moment> = leases.iter().map(|lease| lease.turn.slot).collect();
    assert_eq!(slots, [running("one", START), running("two", START)]);
    assert!(leases.iter().all(|lease| (START..=FIRST).contains(&lease.turn.due)), "{leases:?}");
    let all: Vec<Finished> = leases.iter().map(|lease| finished(lease, Verdict::Up, FIRST)).collect();
    commit(&store, &all, FIRST).await;
    // A restart, and one that was removed and came back in the same slot: nothing is new about them.
    let now = FIRST + Duration::from_millis(1);
    assert_eq!(sync(&store, &[target("one")], now).await, (0, 0, 1));
    assert_eq!(sync(&store, &[target("one"), target("two")], now).await, (1, 0, 0));
    assert!(lease(&store, "here", now).await.is_empty());
    let next = lease(&store, "here", now + MINUTE).await;
    assert_eq!(next.iter().map(|lease| lease.turn.slot).collect::<Vec<_>>(), [slots[0] + MINUTE, slots[1] + MINUTE]);
    // In a later slot it is probed at once again.
    let later = now + MINUTE * 5;
    assert_eq!(sync(&store, &[target("one")], later).await, (0, 0, 1));
    assert_eq!(sync(&store, &[target("one"), target("two")], later).await, (1, 0, 0));
    let again = lease(&store, "here", later).await.into_iter().find(|lease| lease.target == "two");
    assert_eq!(again.map(|lease| lease.turn.slot), Some(running("two", later)));
}

pub(crate) async fn a_reload_keeps_turns_and_changes_what_changed(address: String) {
    let store = store_of(&address, &[target("one"), target("two"), target("three")]).await;
    let all: Vec<Finished> = lease(&store, "here", FIRST).await.iter().map(|lease| finished(lease, Verdict::Up, FIRST)).collect();
    assert_eq!(commit(&store, &all, FIRST).await, (3, 0));
    let quick = TargetSpec { every: Duration::from_secs(10), ..target("two") };
    let now = FIRST + Duration::from_millis(1);
    assert_eq!(sync(&store, &[target("one"), quick.clone()], now).await, (0, 1, 1));
    assert_eq!(sync(&store, &[target("one"), quick.clone()], now).await, (0, 0, 0));
    let now = now + Duration::from_secs(10);
    let due = lease(&store, "here", now).await;
    let two = due.iter().find(|lease| lease.target == "two").unwrap();
    assert_eq!(two.turn.slot, quick.grid().slot_at_or_before(now));
    assert!(due.iter().all(|lease| lease.target != "three"));
    // It is probed while its interval changes: what follows is on the new grid, and its result counts.
    assert_eq!(sync(&store, &[target("one"), target("two"), target("three")], now).await, (1, 1, 0));
    assert_eq!(commit(&store, &[finished(two, Verdict::Up, now)], now).await, (1, 0));
    let next = lease(&store, "here", now + MINUTE * 2).await.into_iter().find(|lease| lease.target == "two").unwrap();
    assert_eq!(next.turn.slot, target("two").grid().next_slot(two.turn.slot));
}

pub(crate) async fn what_was_never_committed_is_probed_again_and_what_has_passed_is_missed(address: String) {
    let store = store_of(&address, &[target("one")]).await;
    let first = lease(&store, "here", START + MINUTE).await.remove(0);
    if address.starts_with("sqlite") {
        store.free_leases().await.unwrap();
        let again = lease(&store, "here", START + MINUTE).await.remove(0);
        assert_eq!(again.turn, first.turn);
    }
    let late = START + MINUTE * 5;
    let after = lease(&store, "here", late).await.remove(0);
    let taken = after.turn.taken(target("one").grid(), late);
    assert_eq!(taken.slot, target("one").grid().slot_at_or_before(late));
    let after = Lease { turn: taken, ..after };
    assert_eq!(commit(&store, &[finished(&after, Verdict::Up, late)], late).await, (1, 0));
    assert_eq!(store.next_due("here", late).await.unwrap(), Some(taken.slot + MINUTE));
}

pub(crate) async fn contracts_and_evidence_come_back_as_they_were(address: String) {
    use mcproof_record::{Contract, ContractHashes, ProbeReport, Transcript};
    use mcproof_watch::store::{ProbeEvidence, SeenContract, evidence_id};
    let store = store_of(&address, &[target("one")]).await;
    let now = START + MINUTE;
    let lease = lease(&store, "here", now).await.remove(0);
    let contract = Contract {
        hashes: ContractHashes { tools: "t".into(), full: "f".into() },
        instructions: Some("be kind".into()),
        ..Contract::default()
    };
    let evidence = ProbeEvidence { report: ProbeReport::new("one"), transcript: Transcript::default() };
    let mut one = finished(&lease, Verdict::Up, now);
    one.observation.contract = Some("f".into());
    let one = Finished { evidence: Some(evidence.packed()), contracts: vec![SeenContract::new(&contract)], ..one };
    commit(&store, std::slice::from_ref(&one), now).await;
    assert_eq!(store.contract("one", "f").await.unwrap(), Some(contract));
    assert_eq!(store.contract("one", "g").await.unwrap(), None);
    let back = store.evidence(&evidence_id(&one.observation)).await.unwrap().unwrap();
    assert_eq!((back.report, back.transcript), (evidence.report, evidence.transcript));
}

pub(crate) async fn another_region_confirms(address: String) {
    let both = TargetSpec { regions: vec!["here".into(), "there".into()], ..target("one") };
    let store = store_of(&address, &[both]).await;
    for region in ["here", "there"] {
        let first = lease(&store, region, FIRST).await.remove(0);
        commit(&store, &[finished(&first, Verdict::Up, FIRST)], FIRST).await;
    }
    let now = target("one").grid().slot_at_or_after(FIRST);
    let here = lease(&store, "here", now).await.remove(0);
    let there = lease(&store, "there", now).await.remove(0);
    commit(&store, &[finished(&there, Verdict::Up, now)], now).await;
    let policy = Policy { every: MINUTE, regions: vec!["here".into(), "there".into()], ..Policy::default() };
    commit(&store, &[Finished { policy, ..finished(&here, Verdict::Down, now) }], now).await;
    let confirming = lease(&store, "there", now + Duration::from_secs(5)).await.remove(0);
    assert_eq!((confirming.turn.slot, confirming.turn.attempt), (here.turn.slot, 1));
    assert!(lease(&store, "here", now + Duration::from_secs(5)).await.is_empty());
}
