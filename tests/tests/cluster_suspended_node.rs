//! A node that is suspended, as with its virtual machine, finds what happened in the meantime, and takes part again.

use rallypoint_harness::{GameServer, Lobby, RedisServer, eventually};
use rustix::process::Signal;
use std::{
    thread,
    time::{Duration, Instant},
};

/// Waits until leases end.
mod full {
    use super::*;

    /// In full runs only, because leases have to end.
    #[test]
    fn a_suspended_node_catches_up() {
        let Some(store) = RedisServer::start(&[]) else { return };
        let node = |name: &str| Lobby::builder().node(&store.url(), name).set("lobby.lease=12s").start();
        let (running, suspended) = (node("running"), node("suspended"));
        let [stays, leaves, heard, comes] = [("stays", 8190), ("leaves", 8191), ("heard", 8192), ("comes", 8193)]
            .map(|(name, port)| GameServer::named(name).port(port));
        running.register(&stays);
        suspended.register(&leaves);
        suspended.register(&heard);
        for node in [&running, &suspended] {
            node.wait_until_listed(&["heard", "leaves", "stays"]);
        }
        let refresh = || {
            running.register(&stays);
            running.register(&comes);
            thread::sleep(Duration::from_millis(100));
        };
        suspended.process().signal(Signal::STOP);
        running.unregister(&leaves);
        eventually("the server that only the suspended node could hear is gone", || {
            refresh();
            running.names() == ["comes", "stays"]
        });
        // For longer than a lease: by its own clock, everything that the suspended node heard has ended.
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            refresh();
            assert_eq!(running.names(), ["comes", "stays"]);
        }
        suspended.process().signal(Signal::CONT);
        // Its servers get the time of grace that they get after a restart: it could not hear them. One that has left elsewhere does not.
        eventually("both nodes have the same list", || {
            refresh();
            assert!(!running.names().contains(&"leaves".to_owned()), "{:?}", running.names());
            [&running, &suspended].iter().all(|node| node.names() == ["comes", "heard", "stays"])
        });
        suspended.register(&heard);
        assert!(!running.log().contains("no contact"), "{}", running.log());
    }
}
