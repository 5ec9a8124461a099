//! The clocks of the nodes do not matter: deadlines and the order of decisions are the store's.
#![cfg(target_os = "linux")]

use rallypoint_harness::{GameServer, Lobby, RedisServer, eventually, rallypoint, skip, stderr, stdout};
use rallypoint_wire::lobby::Occupancy;
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Shifts the date of a program by the number of seconds in the variable `SHIFT`.
const SHIFTED_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    const char *shift = getenv("SHIFT");
    if (clock == CLOCK_REALTIME && shift) time->tv_sec += atol(shift);
    return result;
}
"#;

/// Compiles the library that shifts the date; `None` without a C compiler.
fn shifted_clock(directory: &Path) -> Option<String> {
    let (source, library) = (directory.join("clock.c"), directory.join("clock.so"));
    fs::write(&source, SHIFTED_CLOCK).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").stderr(Stdio::null());
    compiler.status().is_ok_and(|status| status.success()).then(|| library.display().to_string())
}

/// Runs a command of the operator and returns its output.
fn admin(node: &Lobby, home: &Path, args: &[&str]) -> String {
    let mut command = rallypoint(home);
    command.env("RALLYPOINT_ADMIN_TOKEN", TOKEN).args(["admin", "--url", &node.url()]).args(args);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn nodes_whose_clocks_are_ten_minutes_apart_agree() {
    let directory = tempfile::tempdir().unwrap();
    let Some(library) = shifted_clock(directory.path()) else { return skip("there is no C compiler") };
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = [("slow", "-300"), ("fast", "300")].map(|(name, shift)| {
        let builder = Lobby::builder().node(&store.url(), name).variable("LD_PRELOAD", &library);
        let node = builder.variable("SHIFT", shift).variable("RALLYPOINT_WEB_ADMIN_TOKEN", TOKEN).start();
        node.wait_until_logged("joined the cluster");
        node
    });
    let minute = |node: &Lobby| node.log().split(':').nth(1).map(str::to_owned);
    assert_ne!(minute(&nodes[0]), minute(&nodes[1]), "the clocks differ");
    let all_list = |names: &[&str]| nodes.iter().for_each(|node| node.wait_until_listed(names));
    let server = GameServer::named("first").from_ip("127.9.9.9");
    let with_players = |players| server.clone().occupancy(Occupancy { slots: 24, players, ..Occupancy::default() });
    // Each node changes what the other wrote last.
    for (node, players) in [(0, 1), (1, 2), (0, 3), (1, 4)] {
        nodes[node].register(&with_players(players));
        for node in &nodes {
            node.wait_for_list("the last change", |list| list.len() == 1 && list[0].occupancy.players == players);
        }
    }
    for (node, name) in [(1, "second"), (0, "third"), (1, "fourth")] {
        nodes[node].register(&GameServer::named(name).from_ip("127.9.9.9"));
        all_list(&[name]);
    }
    // Each node lifts a ban of the other.
    for (banning, lifting) in [(1, 0), (0, 1)] {
        admin(&nodes[banning], directory.path(), &["ban", "127.9.9.9"]);
        all_list(&[]);
        // The removals that it causes can arrive before the ban.
        eventually("the other node has the ban", || {
            admin(&nodes[lifting], directory.path(), &["bans"]).contains("127.9.9.9")
        });
        admin(&nodes[lifting], directory.path(), &["unban", "127.9.9.9"]);
        eventually("the server is listed again", || {
            nodes[banning].register(&server);
            nodes.iter().all(|node| node.names() == ["first"])
        });
    }
    nodes[0].unregister(&server);
    all_list(&[]);
}
