//! Parsing registrations and lists does not allocate; whatever a datagram claims, processing it allocates at most a small
//! multiple of its size.

use rallypoint_wire::{
    bloodmasters::{self, Reply},
    legacy,
    lobby::{Datagram, ListReader, ListRequest, blocks, emit_list},
};
use std::hint::black_box;

fn vectors(file: &str) -> Vec<(String, Vec<u8>)> {
    let file: serde_json::Value = serde_json::from_str(file).unwrap();
    let hex = |digits: &str| {
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect::<Vec<u8>>()
    };
    let cases = file["cases"].as_array().unwrap();
    cases.iter().map(|case| (case["name"].to_string(), hex(case["bytes"].as_str().unwrap()))).collect()
}

fn lobby_vectors() -> Vec<(String, Vec<u8>)> {
    let mut all = vectors(include_str!("vectors/lobby.json"));
    all.extend(vectors(include_str!("vectors/real-registrations.json")));
    all
}

fn allocations(work: impl FnOnce()) -> u64 {
    allocation_counter::measure(work).count_total
}

#[test]
fn parsing_never_allocates() {
    for (name, bytes) in lobby_vectors() {
        let parse = || {
            let _ = black_box(Datagram::parse(black_box(&bytes)));
            let _ = black_box(ListRequest::parse(black_box(&bytes)));
            let _ = black_box(legacy::Registration::parse(black_box(&bytes)));
            blocks(black_box(&bytes)).for_each(|block| {
                let _ = black_box(block);
            });
        };
        assert_eq!(allocations(parse), 0, "{name}");
    }
    for (name, bytes) in vectors(include_str!("vectors/bloodmasters.json")) {
        let parse = || {
            let _ = black_box(Reply::parse(black_box(&bytes)).map(|reply| reply.clients().iter().count()));
            black_box(bloodmasters::queries(black_box(&bytes)).count());
        };
        assert_eq!(allocations(parse), 0, "{name}");
    }
}

#[test]
fn iterating_over_the_keys_of_a_real_registration_does_not_allocate() {
    for (name, bytes) in vectors(include_str!("vectors/real-registrations.json")) {
        if let Ok(Datagram::Register(registration)) = Datagram::parse(&bytes) {
            assert_eq!(allocations(|| assert!(registration.table().iter().count() > 0)), 0, "{name}");
        }
    }
}

#[test]
fn a_list_is_emitted_into_a_used_buffer_without_allocating() {
    let Some((_, reply)) = lobby_vectors().into_iter().find(|(name, _)| name == "\"three servers\"") else {
        panic!("no such vector")
    };
    let mut out = Vec::with_capacity(reply.len());
    assert_eq!(allocations(|| emit_list(blocks(&reply).map(Result::unwrap), &mut out)), 0);
    assert_eq!(out, reply);
}

#[test]
fn memory_is_not_allocated_for_claimed_lengths() {
    // Every count and length field at its maximum.
    for claim in [&[0xff; 64][..], &[0xff, 0xff, 0xff, 0xff, 0, 1, 0x86, 0xa0], &[0, 0, 0, 9, 0, 1, 0x86, 0xa0, 0]] {
        let read = || {
            let mut reader = ListReader::new();
            reader.push(claim);
            while let Some(block) = reader.next_block() {
                let _ = black_box(block);
            }
        };
        assert!(allocation_counter::measure(read).bytes_max <= 2 * claim.len() as u64, "{claim:?}");
    }
    let mut table = rallypoint_wire::lobby::TableBuf::new();
    while table.push(b"k", b"v").is_ok() {}
    let table = table.as_table();
    let walked = allocation_counter::measure(|| assert_eq!(table.iter().count(), 1));
    // A hostile table of 13,000 repeated keys: merging it takes a few words per entry, and an entry has five bytes.
    assert!(walked.bytes_max <= 65_507 * 20, "{}", walked.bytes_max);
}
