//! A node that cannot reach the store while others can keeps what it knows and what it hears, and returns.

#![cfg(target_os = "linux")]

use rallypoint_harness::{
    CABLES, CLUSTER_SECRET, GameServer, Lobby, RedisServer, SecondMachine, eventually, is_inside_a_namespace,
    rallypoint,
};
use std::{thread, time::Duration};

const LEASE: &str = "lobby.lease=12s";

/// Waits until leases end.
mod full {
    use super::*;

    /// In full runs only, because leases have to end.
    #[test]
    fn one_node_is_cut_off_from_the_store() {
        if !is_inside_a_namespace("cluster_partition::full::one_node_is_cut_off_from_the_store") {
            return;
        }
        let machine = SecondMachine::start();
        let [to_the_store, to_the_servers] = CABLES;
        let Some(store) = RedisServer::start(&["--bind", "0.0.0.0", "--protected-mode", "no"]) else { return };
        let near = Lobby::builder().node(&store.url(), "near").set(LEASE).start();
        let home = tempfile::tempdir().unwrap();
        let mut command = rallypoint(home.path());
        command.env("RALLYPOINT_CLUSTER_SECRET", CLUSTER_SECRET).args(["serve", "--legacy", "off", "--http", "off"]);
        command.args(["--lobby", &format!("{}:0", to_the_servers.there), "--set", LEASE, "--set", "cluster.node=far"]);
        command.args(["--cluster", &format!("redis://{}:{}", to_the_store.here, store.port())]);
        let far = Lobby::spawn(&mut machine.command(&command), 1);

        let a = GameServer::named("a");
        let [b, c] =
            [("b", 8191), ("c", 8192)].map(|(name, port)| GameServer::named(name).port(port).from_ip("10.2.0.1"));
        let refresh = |with_c: bool| {
            near.register(&a);
            far.register(&b);
            if with_c {
                far.register(&c);
            }
            thread::sleep(Duration::from_millis(100));
        };
        eventually("both nodes list both servers", || {
            refresh(false);
            near.names() == ["a", "b"] && far.names() == ["a", "b"]
        });
        to_the_store.cut();
        eventually("the node that reaches the store drops what it does not hear of", || {
            refresh(true);
            assert!(far.names().starts_with(&["a".to_owned(), "b".to_owned()]), "the other node keeps what it knew");
            near.names() == ["a"]
        });
        assert_eq!(far.names(), ["a", "b", "c"]);
        to_the_store.mend();
        eventually("both nodes list everything", || {
            refresh(true);
            near.names() == ["a", "b", "c"] && far.names() == ["a", "b", "c"]
        });
    }
}
