//! Messages are dropped in time although the store's clock was set back.

use rallypoint_harness::RedisServer;

const KEY: &str = "{rp:test}:msg";

fn send(server: &RedisServer) {
    let code = format!("{}\n{}", include_str!("../src/scripts/common.lua"), include_str!("../src/scripts/send.lua"));
    assert_eq!(server.command(&["EVAL", &code, "1", KEY, "message", "360000"]), "done");
}

/// Every message would otherwise have the time before, until the clock has reached it again.
#[test]
fn the_stream_begins_again() {
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
