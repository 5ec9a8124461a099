//! Messages are dropped in time although the store's clock was set back, or another program wrote some, and take a bounded memory.

use rallypoint_harness::RedisServer;

const KEY: &str = "{rp:test}:msg";

fn send(server: &RedisServer) {
    let code = format!("{}\n{}", include_str!("../src/scripts/common.lua"), include_str!("../src/scripts/send.lua"));
    assert_eq!(server.command(&["EVAL", &code, "1", KEY, "message", "360000"]), "done");
}

/// Every message would otherwise have the time before, until the clock has reached it again.
#[test]
fn the_stream_begins_again_after_the_clock_was_set_back() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let length = || server.command(&["XLEN", KEY]);
    send(&server);
    send(&server);
    assert_eq!(length(), "2");
    let seconds: u64 = server.command(&["TIME"]).lines().next().unwrap().parse().unwrap();
    for (ahead, expected) in [(0, "4"), (3_600, "1")] {
        let id = format!("{}-0", (seconds + ahead) * 1_000 + 999);
        let _ = server.command(&["XADD", KEY, &id, "m", "of before"]);
        send(&server);
        assert_eq!(length(), expected, "{ahead} seconds ahead");
    }
    send(&server);
    assert_eq!(length(), "2");
}

#[test]
fn the_stream_begins_again_after_the_last_possible_id() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let last = u64::MAX;
    let _ = server.command(&["XADD", KEY, &format!("{last}-{last}"), "m", "of another program"]);
    send(&server);
    assert_eq!(server.command(&["XLEN", KEY]), "1");
    send(&server);
    assert_eq!(server.command(&["XLEN", KEY]), "2");
}

/// A message can have 512 KiB.
#[test]
fn messages_take_a_bounded_memory() {
    const FILL: &str = "for _ = 1, 100 do redis.call('XADD', KEYS[1], '*', 'm', string.rep('x', 524288)) end";
    let Some(server) = RedisServer::start(&[]) else { return };
    for _ in 0..5 {
        let _ = server.command(&["EVAL", FILL, "1", KEY]);
        send(&server);
    }
    let size: u64 = server.command(&["MEMORY", "USAGE", KEY, "SAMPLES", "0"]).parse().unwrap();
    assert!(size < 100 << 20, "{size} bytes");
    let length: u64 = server.command(&["XLEN", KEY]).parse().unwrap();
    assert!(length > 30, "the newest messages stay");
}
