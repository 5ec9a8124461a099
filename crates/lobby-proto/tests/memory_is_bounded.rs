//! Memory stays bounded and work small, whatever is sent.

use crate::support;
use rallypoint_lobby_proto::{Mapping, RegistrationOutcome};
use rallypoint_wire::lobby::Transport;
use support::*;

/// Repeats a step, and asserts that the memory use does not grow.
fn assert_does_not_grow(lobby: &mut Lobby, mut step: impl FnMut(&mut Lobby, u32)) {
    let mut run = |lobby: &mut Lobby, steps: std::ops::Range<u32>| {
        let used = allocation_counter::measure(|| {
            for n in steps {
                step(lobby, n);
                if n % 50 == 0 {
                    lobby.wait(ms(500));
                    lobby.checks();
                    lobby.events();
                }
            }
            // Data that is kept for a lease, for 5 minutes or until it is polled expires in the meantime.
            lobby.wait(secs(400));
            lobby.settle(REACHABLE);
            lobby.wait(secs(400));
            let now = lobby.now;
            lobby.handle_timeout(now);
            lobby.events();
        });
        used.bytes_current
    };
    run(lobby, 0..5_000);
    let grown = run(lobby, 5_000..10_000);
    assert!(grown < 50_000, "{grown} bytes more after the same again");
    lobby.check_invariants();
}

/// A lobby without budgets, as for an attacker with a whole network or in an exempt one.
fn without_limits() -> Lobby {
    let mut lobby = Lobby::with(|config| config.limit_exempt = networks(&["0.0.0.0/0", "::/0"]));
    lobby.skips_invariants = true;
    lobby
}

#[test]
fn memory_is_bounded_with_new_ids_at_one_endpoint() {
    assert_does_not_grow(&mut without_limits(), |lobby, n| {
        assert_eq!(lobby.register("203.0.113.9", &udp(n.into())), RegistrationOutcome::Listed);
        assert_eq!(lobby.stats().registered, 1);
    });
}

#[test]
fn memory_is_bounded_with_registrations_and_unregistrations() {
    assert_does_not_grow(&mut without_limits(), |lobby, n| {
        assert_eq!(lobby.register("203.0.113.9", &udp(n.into())), RegistrationOutcome::Listed);
        assert_eq!(lobby.unregister("203.0.113.9", n.into()), RegistrationOutcome::Unregistered);
    });
}

#[test]
fn memory_is_bounded_with_one_server_in_new_lobbies() {
    assert_does_not_grow(&mut without_limits(), |lobby, n| {
        assert_eq!(lobby.register("203.0.113.9", &udp(1).lobby(support::lobby(n))), RegistrationOutcome::Listed);
        assert_eq!(lobby.stats().lists, 1);
    });
}

#[test]
fn memory_is_bounded_with_servers_that_take_each_others_endpoint() {
    assert_does_not_grow(&mut without_limits(), |lobby, n| {
        assert!(lobby.register("203.0.113.9", &udp((n % 2).into())).is_listed());
    });
}

#[test]
fn memory_is_bounded_with_a_server_that_changes_transport_and_families() {
    assert_does_not_grow(&mut without_limits(), |lobby, n| {
        let from = if n % 3 == 0 { "203.0.113.9" } else { "2001:db8::9" };
        let transport = if n % 2 == 0 { Transport::Tcp } else { Transport::Udp };
        lobby.register(from, &Server { transport, ..udp(1).port(1 + (n % 7) as u16) });
    });
}

#[test]
fn memory_is_bounded_with_forged_servers_that_are_checked() {
    let mut lobby = without_limits();
    lobby.set(|config| (config.checks.in_flight, config.checks.waiting) = (10, 100));
    assert_does_not_grow(&mut lobby, |lobby, n| {
        lobby.register(address(n % 500), &tcp(n.into()));
        let checks = lobby.stats().checks;
        assert!(checks.in_flight <= 10 && checks.waiting <= 100);
    });
}

#[test]
fn memory_is_bounded_with_new_check_targets_of_one_server() {
    assert_does_not_grow(&mut without_limits(), |lobby, n| {
        lobby.register("203.0.113.9", &udp(1).key("x-query", format!("session:{}", 1 + n % 60_000)));
    });
}

#[test]
fn memory_is_bounded_with_internal_servers_under_one_external_endpoint() {
    let mut lobby = without_limits();
    let from = "10.0.0.0/8".parse().unwrap();
    let mapping = Mapping { from, port: None, to: ip("203.0.113.5"), to_port: Some(9000) };
    lobby.set(|config| config.address_map = [mapping].into_iter().collect());
    assert_does_not_grow(&mut lobby, |lobby, n| {
        lobby.register(std::net::IpAddr::from([10, 0, 0, n as u8]), &udp(n.into()));
        assert_eq!(lobby.stats().registered, 1);
    });
}

#[test]
fn memory_is_bounded_with_reloads() {
    let mut lobby = without_limits();
    assert_does_not_grow(&mut lobby, |lobby, n| {
        lobby.register(address(n % 5), &udp((n % 5).into()));
        if n % 100 == 0 {
            lobby.set(|config| config.lease = secs(1 + u64::from(n / 100 % 7)));
        }
    });
}

#[test]
fn events_that_are_not_polled_are_dropped() {
    let mut lobby = without_limits();
    let mut datagram = udp(1).datagram();
    for n in 0..70_000u32 {
        datagram[53..55].copy_from_slice(&(n as u16).to_be_bytes());
        lobby.send("203.0.113.9", &datagram);
    }
    let dropped = lobby.stats().dropped_events;
    assert_eq!(lobby.events().len() as u64, 70_000 - dropped);
    assert!((4_464..20_000).contains(&dropped), "{dropped}");
}

#[test]
fn events_that_are_not_polled_are_bounded_in_bytes() {
    let mut lobby = without_limits();
    let mut datagram = udp(1).key("x-filler", "x".repeat(3_900)).datagram();
    for n in 0..10_000u16 {
        datagram[53..55].copy_from_slice(&n.to_be_bytes());
        lobby.send("203.0.113.9", &datagram);
    }
    let queued = lobby.events().len();
    assert!((3_500..4_300).contains(&queued), "{queued} events of 4 kB");
}

#[test]
fn publishing_pauses_after_much_work() {
    let mut lobby = without_limits();
    let large = |n: u32| udp(n.into()).key("x-filler", "x".repeat(3_900));
    (0..3_000).for_each(|n| assert_eq!(lobby.register(address(n), &large(n)), RegistrationOutcome::Listed));
    lobby.wait(ms(1));
    let published = lobby.stats().publishes;
    lobby.register(address(1), &large(1).players(1));
    lobby.wait(ms(100));
    assert_eq!(lobby.stats().publishes, published, "12 MB were copied a moment before");
    lobby.wait(ms(50));
    assert_eq!(lobby.stats().publishes, published + 1);
    lobby.register(address(1), &large(1).players(2));
    lobby.wait(ms(25));
    assert_eq!(lobby.stats().publishes, published + 2, "and one chunk after that");
}

#[test]
fn memory_is_bounded_with_tables_of_every_length() {
    let mut lobby = Lobby::with(|config| {
        config.max_registration = 65_507;
        config.limit_exempt = networks(&["0.0.0.0/0"]);
    });
    for length in [0, 1, 254, 255, 256, 4_000, 60_000] {
        assert!(lobby.register("203.0.113.9", &udp(1).name(&"n".repeat(length))).is_listed(), "{length}");
        assert_eq!(lobby.list().len(), 1);
    }
    let mut many = udp(1);
    many.keys.extend((0..5_000).map(|n| (vec![b'k'; n % 3], Vec::new())));
    assert!(lobby.register("203.0.113.9", &many).is_listed());
}
