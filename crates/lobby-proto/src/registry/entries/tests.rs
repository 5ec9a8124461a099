//! The entries without the other parts of the registry.

use super::*;
use crate::entry::EndpointKey;
use rallypoint_wire::lobby::{Occupancy, TableBuf, Transport};

const SECOND: Duration = Duration::from_secs(1);

pub fn slot(number: usize) -> SlotIndex {
    SlotIndex::new(number)
}

/// The address of a test server by number, in a network of its own.
pub fn address(number: u8) -> IpAddr {
    IpAddr::from([203, 0, number, 1])
}

fn endpoint(number: u8) -> EndpointEntry {
    Config::default().endpoint(address(number), 8190.try_into().unwrap())
}

pub fn key_of(number: u8) -> EndpointKey {
    (endpoint(number).external, Transport::Udp)
}

/// The entry of a server that nothing has proven, without endpoints.
pub fn unproven() -> ColdEntry {
    numbered(1, Instant::now(), Tick::default())
}

fn numbered(number: u8, now: Instant, admitted: Tick) -> ColdEntry {
    let table = TableBuf::new();
    let occupancy = Occupancy::default();
    let block = ListBlock { transport: Transport::Udp, v4: None, v6: None, occupancy, table: table.as_table() };
    let id = PublicId::from_bytes([number; 16]);
    let server = ListedServer::new(id, ListId::GANG_GARRISON_2, now, &block);
    ColdEntry::new(server, Evidence::First, admitted)
}

pub fn with_config(config: &Arc<Config>) -> (Entries, Clock, Instant) {
    let now = Instant::now();
    let clock = Clock::new(now);
    (Entries::new(config, KeyedHash::new(7), clock, now), clock, now)
}

pub fn entries() -> (Entries, Clock, Instant) {
    with_config(&Arc::default())
}

/// Adds a listed server by number.
pub fn entry_at(entries: &mut Entries, now: Instant, number: u8) -> SlotIndex {
    let id = ServerId::from_bytes([number; 16]);
    let entry = numbered(number, now, entries.clock.tick(now));
    let slot = entries.insert(now, None, id, entry);
    let deadline = entries.clock.deadline(now, entries.config.lease);
    entries.add_listed(slot, endpoint(number), false, deadline);
    entries.update_server(slot, None);
    slot
}

#[test]
fn an_entry_is_found_by_its_id_and_its_endpoint_until_it_is_removed() {
    let (mut entries, _, now) = entries();
    let slot = entry_at(&mut entries, now, 1);
    let id = ServerId::from_bytes([1; 16]);
    assert_eq!((entries.find(id), entries.at_endpoint(key_of(1))), (Some(slot), Some(slot)));
    assert!(entries.is_from(slot, address(1)) && !entries.is_from(slot, address(2)));
    let key = entries.key(slot);
    entries.remove(now, slot);
    assert_eq!((entries.find(id), entries.at_endpoint(key_of(1)), entries.len()), (None, None, 0));
    assert_eq!(entries.usage(Group::All), Usage::default());
    let again = entry_at(&mut entries, now, 1);
    assert!(again == slot && !entries.contains(key), "a later entry in the same slot is another one");
}

#[test]
fn the_same_bytes_extend_a_lease_and_others_do_not() {
    let (mut entries, clock, now) = entries();
    let slot = entry_at(&mut entries, now, 1);
    let fingerprint = entries.fingerprint(address(1), b"x");
    entries.set_fingerprint(slot, Family::V4, fingerprint);
    let later = now + 30 * SECOND;
    let other = entries.fingerprint(address(1), b"y");
    assert_eq!(entries.refresh(later, slot, Family::V4, other), None);
    assert_eq!(entries.refresh(later, slot, Family::V6, fingerprint), None);
    assert_eq!(entries.refresh(later, slot, Family::V4, fingerprint), Some(EndpointState::Listed));
    assert_eq!(entries.hot(slot).deadlines[Family::V4], clock.deadline(later, 70 * SECOND));
    assert!(entries.has_returned(slot));
    entries.invalidate_fingerprints();
    assert_ne!(entries.fingerprint(address(1), b"x"), fingerprint);
}

#[test]
fn a_lease_ends_at_its_deadline_unless_it_was_renewed() {
    let (mut entries, _, now) = entries();
    let slot = entry_at(&mut entries, now, 1);
    entries.begin_lease(now + 30 * SECOND, slot, Family::V4);
    let first = now + 70 * SECOND;
    assert_eq!(entries.next_due().map(|due| due <= first), Some(true));
    assert_eq!(entries.take_due(first), [slot]);
    assert_eq!(entries.ended_leases(first, slot), PerFamily::default());
    assert!(entries.schedule_lease(slot));
    let end = now + 100 * SECOND;
    assert_eq!(entries.take_due(end), [slot]);
    assert!(entries.ended_leases(end, slot)[Family::V4]);
    entries.drop_endpoint(end, slot, Family::V4);
    assert!(!entries.schedule_lease(slot), "it has no lease");
}

#[test]
fn evidence_grows_with_returns_and_time_until_a_reply_proves_a_server() {
    let (mut entries, clock, now) = entries();
    let slot = entry_at(&mut entries, now, 1);
    let evidence = |entries: &Entries, after: u32| entries.evidence(clock.tick(now + after * SECOND), slot);
    assert_eq!(evidence(&entries, 0), Evidence::First);
    entries.begin_lease(now + 10 * SECOND, slot, Family::V4);
    assert_eq!((evidence(&entries, 11), evidence(&entries, 600)), (Evidence::Returned, Evidence::Established));
    entries.set_evidence(slot, Evidence::Known);
    assert_eq!((evidence(&entries, 11), evidence(&entries, 600)), (Evidence::Known, Evidence::Established));
    assert_eq!(entries.on_probation(Group::All), [slot]);
    assert!(entries.set_evidence(slot, Evidence::Proven) && !entries.set_evidence(slot, Evidence::Proven));
    assert!(entries.on_probation(Group::All).is_empty());
    entries.withdraw_proof(slot);
    assert_eq!((evidence(&entries, 11), entries.on_probation(Group::All)), (Evidence::Returned, &[slot][..]));
}

#[test]
fn a_displaced_server_keeps_its_place_until_its_holder_leaves_the_endpoint() {
    let (mut entries, _, now) = entries();
    let former = entry_at(&mut entries, now, 1);
    entries.set_evidence(former, Evidence::Proven);
    let displaced = entries.to_displaced(former, Family::V4, false).expect("it is proven");
    let id = displaced.public_id();
    entries.remove(now, former);
    let holder = entries.insert(now, None, ServerId::from_bytes([2; 16]), numbered(2, now, Tick::default()));
    entries.add_listed(holder, endpoint(1), false, displaced.deadline);
    entries.update_server(holder, None);
    entries.keep_displaced(holder, displaced);
    assert_eq!(entries.usage(Group::source(address(1))).servers, 2);
    assert!(!entries.forget_displaced(now, id, &[key_of(1)]), "it registers at that endpoint");
    assert!(entries.take_released(now, holder).is_none());
    entries.drop_endpoint(now, holder, Family::V4);
    assert_eq!(entries.take_released(now, holder).map(|displaced| displaced.public_id()), Some(id));
    assert_eq!(entries.usage(Group::source(address(1))).servers, 0);
}
