//! One node makes a reachability check for all; it does not wait for itself.

use rallypoint_harness::RedisServer;

const KEY: &str = "{rp:test}:check:tcp:203.0.113.1:8190";

fn claim(server: &RedisServer, node: &str) -> String {
    let code = format!("{}\n{}", include_str!("../src/scripts/common.lua"), include_str!("../src/scripts/claim.lua"));
    server.command(&["EVAL", &code, "1", KEY, node, "60000"])
}

#[test]
fn a_claim_is_for_the_other_nodes() {
    let Some(server) = RedisServer::start(&[]) else { return };
    assert_eq!(claim(&server, "7"), "granted");
    assert_eq!(claim(&server, "77"), "n7");
    assert_eq!(claim(&server, "7"), "granted", "its first check had no result");
    let _ = server.command(&["SET", KEY, "r1234"]);
    assert_eq!(claim(&server, "7"), "r1234");
    let _ = server.command(&["SET", KEY, &"x".repeat(100)]);
    assert_eq!(claim(&server, "77"), "granted");
}
