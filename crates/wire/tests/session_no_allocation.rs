//! No parser allocates, and no emitter does once its buffer has been used.

use rallypoint_wire::session::{
    ClientData, ClientDatagram, ClientSealed, Control, MessageNumber, NumberListBuf, Payload, Rand, ServerDatagram,
    SlotIndex, TextListBuf, Uid,
};
use std::hint::black_box;

fn allocations(work: impl FnOnce()) -> u64 {
    allocation_counter::measure(work).count_total
}

#[test]
fn parsing_never_allocates() {
    let file: serde_json::Value = serde_json::from_str(include_str!("vectors/session.json")).unwrap();
    for case in file["cases"].as_array().unwrap() {
        let digits = case["bytes"].as_str().unwrap();
        let bytes: Vec<u8> =
            (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
        let parse = || {
            let _ = black_box(ClientDatagram::parse(black_box(&bytes)));
            let _ = black_box(ServerDatagram::parse(black_box(&bytes)));
        };
        assert_eq!(allocations(parse), 0, "{}", case["name"]);
    }
}

#[test]
fn emitting_into_a_used_buffer_never_allocates() {
    let number = MessageNumber::FIRST;
    let index = SlotIndex::MAX;
    let uid = Uid::new(7);
    let mut out = Vec::with_capacity(4 * 508);
    let emit = || {
        let payload = Payload::new(&[7; 484]).unwrap();
        ClientData { number, index, uid, rand: Rand::new(9), payload }.emit(&mut out);
        let seal = |_: &_, _: &mut [u8], _: &mut _| Ok::<_, ()>(());
        ClientSealed::emit_with(number, index, uid, Payload::new(&[7; 464]).unwrap(), &mut out, seal).unwrap();
        let mut numbers = NumberListBuf::new();
        while numbers.push(number) {}
        Control::Ack(numbers.as_list()).emit(&mut out);
        black_box(TextListBuf::cut(["one", "two"]));
    };
    assert_eq!(allocations(emit), 0);
}
