//! `cargo xtask bench wire`: parsing and emitting the most frequent messages.
#![forbid(unsafe_code)]

use rallypoint_bench::{Goal, Micro};
use rallypoint_wire::{
    bloodmasters::Reply,
    lobby::{Datagram, Endpoint, ListBlock, ListReader, blocks, emit_list},
    session::{ClientData, ClientDatagram, MessageNumber, Payload, Rand, ServerDatagram, SlotIndex, Uid},
};
use std::{hint::black_box, net::Ipv4Addr, process::ExitCode};

/// A registration of Gang Garrison 2: seven entries, 224 bytes.
const REGISTRATION: &[u8] =
    include_bytes!("../../../fuzz/corpus/lobby/a-full-registration-as-gang-garrison-2-sends-it");
/// The reply of a Bloodmasters server with three players.
const REPLY: &[u8] =
    include_bytes!("../../../fuzz/corpus/bloodmasters/reply-0-head-tdm-password-3-clients-limits-10000-1000");

fn main() -> ExitCode {
    let list = list_of(1_000);
    let small = client_data(100);
    let large = client_data(484);
    let ack = ack_of(63);
    let mut out = Vec::with_capacity(1 << 20);

    let mut suite = Micro::new();
    suite
        .op("parse a registration of seven entries", REGISTRATION.len(), || {
            Datagram::parse(black_box(REGISTRATION)).is_ok()
        })
        .goal(Goal::MaxNanoseconds(200.0));
    suite
        .op("parse a list reply of 1,000 servers", list.len(), || {
            blocks(black_box(&list)).map(|block| block.unwrap().occupancy.players).fold(0, u16::wrapping_add)
        })
        .goal(Goal::MinBytesPerSecond(1e9));
    suite.op("the same as it arrives, in pieces of 1,448 bytes", list.len(), || {
        let mut reader = ListReader::new();
        let mut players = 0u16;
        for piece in black_box(&list).chunks(1_448) {
            reader.push(piece);
            while let Some(block) = reader.next_block() {
                players = players.wrapping_add(block.unwrap().occupancy.players);
            }
        }
        players
    });
    suite
        .op("emit a list reply of 1,000 servers", list.len(), || {
            out.clear();
            emit_list(blocks(black_box(&list)).map(Result::unwrap), &mut out);
            out.len()
        })
        .goal(Goal::MinBytesPerSecond(1e9));
    suite
        .op("parse client data of 100 bytes, with its CRC", small.len(), || {
            ClientDatagram::parse(black_box(&small)).is_ok()
        })
        .goal(Goal::MaxNanoseconds(100.0));
    suite
        .op("parse client data of 484 bytes, with its CRC", large.len(), || {
            ClientDatagram::parse(black_box(&large)).is_ok()
        })
        .goal(Goal::MaxNanoseconds(100.0));
    suite.op("parse an ack of 63 numbers", ack.len(), || ServerDatagram::parse(black_box(&ack)).is_ok());
    suite.op("parse a Bloodmasters reply", REPLY.len(), || Reply::parse(black_box(REPLY)).is_ok());
    suite.main()
}

fn list_of(servers: u32) -> Vec<u8> {
    let Ok(Datagram::Register(server)) = Datagram::parse(REGISTRATION) else { unreachable!("it is a registration") };
    let block = |n: u32| ListBlock {
        transport: server.transport(),
        v4: Some(Endpoint { ip: Ipv4Addr::from_bits(0xcb00_7100 + n), port: server.port() }),
        v6: None,
        occupancy: server.occupancy(),
        table: server.table(),
    };
    let mut list = Vec::new();
    emit_list((0..servers).map(block), &mut list);
    list
}

fn client_data(size: usize) -> Vec<u8> {
    let bytes = vec![7; size];
    let data = ClientData {
        number: MessageNumber::new(7),
        index: SlotIndex::new(3).expect("a slot"),
        uid: Uid::new(0x0102_0304),
        rand: Rand::new(0x1112_1314_1516_1718),
        payload: Payload::new(&bytes).expect("it fits"),
    };
    let mut datagram = Vec::new();
    ClientDatagram::Data(data).emit(&mut datagram);
    datagram
}

fn ack_of(numbers: u8) -> Vec<u8> {
    let mut ack = vec![0xff, numbers];
    for number in 0..u32::from(numbers) {
        ack.extend_from_slice(&number.to_le_bytes());
        ack.extend_from_slice(&(!number).to_le_bytes());
    }
    ack
}
