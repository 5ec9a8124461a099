//! No parser allocates, and no emitter does once its buffer has been used.

use rallypoint_wire::session::{
    ClientData, ClientDatagram, ClientSealed, Control, MessageNumber, NumberListBuf, Payload, Rand, ServerDatagram,
    SlotIndex, TextListBuf, Uid,
};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    hint::black_box,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is handed on to the system's allocator as it came; the count is a plain cell of this thread, which
// needs no allocation itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
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
    let (number, index, uid) = (MessageNumber::FIRST, SlotIndex::MAX, Uid::new(7));
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
