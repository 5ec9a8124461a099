//! Registrations that are forged in the name of a server's address cannot keep it off the list (W45).
//!
//! The attacker forges the endpoint of a server with a new ID, which replaces it (L8), moves that ID to another port, and fills
//! the address with further IDs, over and over. Without a defence the server is refused because its address is full.

use crate::support;
use rallypoint_lobby_proto::{CheckResult, CheckTarget, RegistrationOutcome, UnlistReason};
use support::*;

const VICTIM: &str = "203.0.113.9";
const PORT: u16 = 8190;

/// The number of servers that an address can have.
const PER_ADDRESS: usize = 32;

struct Attack {
    lobby: Lobby,
    victim: Server,
    forged: u128,
}

impl Attack {
    fn new(victim: Server) -> Self {
        Self { lobby: Lobby::default(), victim, forged: 1_000 }
    }

    /// Registers the victim and answers its checks; the ports that are forged do not reply.
    fn register(&mut self) -> RegistrationOutcome {
        let outcome = self.lobby.register(VICTIM, &self.victim);
        self.answer_checks();
        outcome
    }

    fn answer_checks(&mut self) {
        for CheckTarget { addr, kind } in self.lobby.checks() {
            let result = if addr.port() == PORT { REACHABLE } else { CheckResult::Unreachable };
            self.lobby.report(CheckTarget { addr, kind }, result);
        }
    }

    /// Forges the datagram with this number of a round of 33.
    fn forge(&mut self, number: usize) {
        let forgery = match number {
            0 => {
                self.forged += 1;
                Server { id: self.forged, ..self.victim.clone() }
            }
            1 => Server { id: self.forged, port: PORT + 1, ..self.victim.clone() },
            _ => {
                self.forged += 1;
                udp(self.forged).port(PORT + number as u16)
            }
        };
        self.lobby.register(VICTIM, &forgery.name("forged"));
        self.answer_checks();
    }

    fn is_listed(&mut self) -> bool {
        let Server { transport, id, .. } = self.victim;
        let line = format!("{VICTIM}:{PORT} {} server {id}", transport.as_str());
        self.lobby.list().contains(&line)
    }

    /// The share of looks, one per second, in which the victim is listed. It registers every 30 s, the attacker sends a
    /// datagram every 1.5 s. Asserts that each registration of the victim lists it.
    fn share_of_looks(&mut self) -> f64 {
        self.register();
        self.lobby.wait(secs(30));
        let seconds = 600;
        let mut listed = 0;
        let mut number = 0;
        for half_second in 0..2 * seconds {
            if half_second % 60 == 0 {
                assert!(self.register().is_listed(), "after {} s", half_second / 2);
                assert!(self.is_listed());
            }
            if half_second % 3 == 0 {
                self.forge(number);
                number = (number + 1) % 33;
            }
            self.lobby.wait(ms(500));
            self.answer_checks();
            listed += usize::from(half_second % 2 == 0 && self.is_listed());
        }
        assert!(self.lobby.stats().registered <= PER_ADDRESS + 1);
        listed as f64 / f64::from(seconds)
    }
}

#[test]
fn w45_a_server_that_can_be_checked_is_listed_in_95_percent_of_looks() {
    let share = Attack::new(tcp(7)).share_of_looks();
    assert!(share >= 0.95, "{share}");
    let share = Attack::new(udp(7).key("x-query", "session")).share_of_looks();
    assert!(share >= 0.95, "{share}");
}

#[test]
fn w45_a_server_that_cannot_be_checked_is_listed_after_each_of_its_registrations() {
    let share = Attack::new(udp(7)).share_of_looks();
    assert!(share >= 0.95, "{share}");
}

/// Two forged datagrams after each registration would keep it off the list: one takes its endpoint, the other leaves it.
#[test]
fn w45_a_server_that_cannot_be_checked_returns_when_an_id_leaves_its_endpoint() {
    let mut attack = Attack::new(udp(7));
    attack.register();
    attack.lobby.wait(secs(30));
    for forged in 0..20 {
        attack.register();
        for again in 0..3 {
            let id = 100 + 10 * forged + again;
            assert!(attack.lobby.register(VICTIM, &udp(id).name("forged")).is_listed());
            assert!(!attack.is_listed(), "L8: it is replaced");
            attack.lobby.wait(secs(5));
            match again {
                0 => drop(attack.lobby.unregister(VICTIM, id)),
                1 => drop(attack.lobby.register(VICTIM, &udp(id).port(PORT + 1))),
                _ => drop(attack.lobby.register("198.51.100.1", &udp(id))),
            }
            assert!(attack.is_listed(), "{forged}, {again}");
        }
        attack.lobby.wait(secs(15));
        attack.lobby.registry.check_invariants();
    }
}

/// The forger refreshes its own ID, too, and takes the endpoint with a third one.
#[test]
fn w45_an_id_that_has_returned_does_not_supersede_the_former_server() {
    let mut attack = Attack::new(udp(7));
    attack.register();
    attack.lobby.wait(secs(30));
    attack.register();
    attack.lobby.register(VICTIM, &udp(8).name("forged"));
    attack.lobby.wait(secs(20));
    attack.lobby.register(VICTIM, &udp(8).name("forged"));
    attack.lobby.register(VICTIM, &udp(9).name("forged"));
    attack.lobby.unregister(VICTIM, 9);
    assert!(attack.is_listed());
}

/// Servers that are kept and not proven take no room that the caps do not have, and give way like others.
#[test]
fn w45_displaced_servers_that_are_not_proven_stay_within_the_caps() {
    const TOTAL: usize = 20;
    let mut config = rallypoint_lobby_proto::Config::default();
    config.caps.total = TOTAL;
    let mut lobby = Lobby::new(config);
    let source = |number: u128| ip(&format!("198.51.{number}.1"));
    let mut id = 1_000;
    for _ in 0..5 {
        for number in 0..TOTAL as u128 {
            // Each takes the endpoint of the one before, which has returned, and moves to another port.
            id += 1;
            let server = udp(id).port(PORT);
            lobby.register(source(number), &server);
            lobby.wait(ms(100));
        }
        lobby.wait(secs(15));
        for number in 0..TOTAL as u128 {
            let server = udp(id + 1 + number - TOTAL as u128);
            lobby.register(source(number), &server.port(PORT));
            lobby.register(source(number), &udp(id + 100 + number).port(PORT));
            lobby.register(source(number), &udp(id + 100 + number).port(PORT + 1));
            lobby.registry.check_invariants();
            assert!(lobby.stats().registered <= TOTAL, "{}", lobby.stats().registered);
        }
        id += 200;
        lobby.wait(secs(10));
    }
    // A server that is refused, and returns, gets a place.
    let honest = udp(7).port(PORT);
    lobby.register(VICTIM, &honest);
    lobby.wait(secs(30));
    assert!(lobby.register(VICTIM, &honest).is_listed());
}

#[test]
fn w45_two_servers_of_one_address_do_not_displace_each_other() {
    let mut attack = Attack::new(udp(7));
    let second = udp(8).port(9_000);
    for round in 0..20 {
        let is_listed =
            |attack: &mut Attack| attack.lobby.list().iter().filter(|line| !line.contains("forged")).count();
        assert!(attack.register().is_listed());
        assert!(attack.lobby.register(VICTIM, &second).is_listed());
        assert_eq!(is_listed(&mut attack), 2, "round {round}");
        (2..33).for_each(|number| attack.forge(number));
        attack.lobby.wait(secs(30));
    }
}

/// The next step of the new ID after it has replaced the proven one: the former entry returns.
#[test]
fn w45_the_former_server_returns_when_an_unproven_id_leaves_its_endpoint() {
    let mut attack = Attack::new(tcp(7));
    attack.register();
    let taken = || tcp(8).name("forged");
    type Step = (&'static str, fn(&mut Lobby));
    let steps: [Step; 4] = [
        ("moves", |lobby| {
            lobby.register(VICTIM, &tcp(8).port(PORT + 1));
        }),
        ("unregisters", |lobby| {
            lobby.unregister(VICTIM, 8);
        }),
        ("is replaced by another one, which unregisters", |lobby| {
            lobby.register(VICTIM, &tcp(9));
            assert_eq!(lobby.list(), ["203.0.113.9:8190 tcp server 9"]);
            lobby.unregister(VICTIM, 9);
        }),
        ("moves to another address", |lobby| {
            lobby.register("198.51.100.1", &tcp(8));
        }),
    ];
    for (what, step) in steps {
        assert_eq!(attack.lobby.register(VICTIM, &taken()), RegistrationOutcome::Listed);
        assert!(!attack.is_listed(), "L8: it is replaced");
        step(&mut attack.lobby);
        assert!(attack.is_listed(), "{what}");
        assert_eq!(attack.lobby.register(VICTIM, &attack.victim), RegistrationOutcome::Refreshed, "{what}");
        attack.lobby.wait(secs(4));
    }
    attack.lobby.events();
}

#[test]
fn w45_the_former_server_returns_when_the_new_one_expires_or_is_not_reached() {
    let mut attack = Attack::new(udp(7).key("x-query", "session"));
    attack.register();
    // The forgery is to be queried at another port, at which there is no reply.
    attack.lobby.register(VICTIM, &udp(8).key("x-query", "session:1"));
    assert!(!attack.is_listed());
    attack.answer_checks();
    assert!(attack.is_listed());
    // A short lease of the new one.
    attack.lobby.set(|config| config.lease = secs(5));
    assert_eq!(attack.lobby.register(VICTIM, &udp(9)), RegistrationOutcome::Listed);
    attack.lobby.wait(secs(5) + GRAIN);
    assert!(attack.is_listed());
}

#[test]
fn w45_the_former_server_is_kept_for_its_lease_only() {
    let mut attack = Attack::new(tcp(7));
    attack.register();
    attack.lobby.wait(secs(10));
    let forgery = tcp(8);
    attack.lobby.register(VICTIM, &forgery);
    attack.lobby.wait(secs(30));
    attack.lobby.register(VICTIM, &forgery);
    attack.lobby.wait(secs(31));
    attack.lobby.unregister(VICTIM, 8);
    assert_eq!(attack.lobby.list(), [""; 0]);
    assert_eq!((attack.lobby.stats().registered, attack.lobby.stats().memory), (0, 0));
}

/// An endpoint of the other family that is not reached proves nothing about the one that was taken.
#[test]
fn w45_a_server_yields_only_where_it_is_not_reached() {
    let mut lobby = Lobby::default();
    let former = udp(7).port(PORT).key("x-query", "session");
    let new = udp(8).port(PORT).key("x-query", "session:7000");
    lobby.register(VICTIM, &former);
    lobby.settle(REACHABLE);
    lobby.register(VICTIM, &new);
    lobby.settle(REACHABLE);
    let listed = ["203.0.113.9:8190 udp server 8"];
    assert_eq!(lobby.list(), listed);
    lobby.register("2001:db9::1", &new);
    lobby.settle(CheckResult::Unreachable);
    assert_eq!(lobby.list(), listed);
}

/// Otherwise a server that has ended could be kept in the list by displacing it.
#[test]
fn w45_a_server_that_is_displaced_again_and_again_is_checked_all_the_same() {
    let mut attack = Attack::new(tcp(7));
    attack.lobby.set(|config| (config.checks.keep, config.lease) = (secs(40), secs(300)));
    attack.register();
    let mut checks = 0;
    for id in 0..20 {
        attack.lobby.wait(secs(20));
        attack.lobby.register(VICTIM, &attack.victim);
        attack.lobby.register(VICTIM, &tcp(100 + id));
        attack.lobby.register(VICTIM, &tcp(100 + id).port(PORT + 1));
        assert!(attack.is_listed());
        for target in attack.lobby.checks().into_iter().filter(|target| target.addr.port() == PORT) {
            checks += 1;
            attack.lobby.report(target, REACHABLE);
        }
    }
    assert!((6..=10).contains(&checks), "{checks} checks in 400 s");
}

#[test]
fn w45_a_displaced_server_that_unregisters_or_moves_does_not_return() {
    let mut attack = Attack::new(tcp(7));
    attack.register();
    attack.lobby.register(VICTIM, &tcp(8));
    assert_eq!(attack.lobby.unregister(VICTIM, 7), RegistrationOutcome::Unregistered);
    attack.lobby.unregister(VICTIM, 8);
    assert_eq!(attack.lobby.stats().registered, 0);

    attack.lobby.wait(secs(4));
    attack.register();
    attack.lobby.register(VICTIM, &tcp(8));
    attack.lobby.register("198.51.100.1", &udp(7));
    attack.lobby.wait(secs(4));
    attack.lobby.unregister("198.51.100.1", 7);
    attack.lobby.unregister(VICTIM, 8);
    assert_eq!(attack.lobby.stats().registered, 0);
}

#[test]
fn w45_a_displaced_server_keeps_its_place_and_takes_it_back() {
    let mut attack = Attack::new(tcp(7));
    attack.lobby.set(|config| config.caps.per_address = 2);
    attack.register();
    attack.lobby.register(VICTIM, &udp(1).port(1));
    attack.lobby.register(VICTIM, &tcp(8));
    // The place of the displaced server is taken, so the newest unproven entry has given way.
    assert_eq!(attack.lobby.list(), ["203.0.113.9:8190 tcp server 8"]);
    assert_eq!(attack.lobby.unlisted(UnlistReason::Evicted), 1);
    assert_eq!(attack.lobby.register(VICTIM, &udp(2).port(2)), RegistrationOutcome::AddressFull);
    assert_eq!(attack.register(), RegistrationOutcome::Contested);
    assert_eq!(attack.lobby.list(), ["203.0.113.9:8190 tcp server 7"]);
    // It is still proven: the next forgery displaces it again.
    attack.lobby.register(VICTIM, &tcp(9));
    attack.lobby.unregister(VICTIM, 9);
    assert!(attack.is_listed());
}

#[test]
fn w45_a_newcomer_takes_no_place_at_a_full_address() {
    let mut lobby = Lobby::default();
    (0..32).for_each(|n| assert!(lobby.register(VICTIM, &udp(n).port(1 + n as u16)).is_listed()));
    assert_eq!(lobby.register(VICTIM, &udp(100).port(100)), RegistrationOutcome::AddressFull);
    lobby.wait(secs(30));
    (0..31).for_each(|n| assert!(lobby.register(VICTIM, &udp(n).port(1 + n as u16)).is_listed()));
    // One of the others has not returned, so it gives way to one that has.
    assert_eq!(lobby.register(VICTIM, &udp(100).port(100)), RegistrationOutcome::Listed);
    assert!(!lobby.list().contains(&"203.0.113.9:32 udp server 31".into()));
    assert_eq!(lobby.register(VICTIM, &udp(101).port(101)), RegistrationOutcome::AddressFull);
}

/// All of the forged IDs name the victim's own port for queries.
#[test]
fn w45_replies_of_one_server_do_not_prove_others() {
    let mut lobby = Lobby::with(|config| (config.caps.per_address, config.checks.keep) = (4, secs(20)));
    let server = |id: u128| udp(id).port(id as u16).key("x-query", "session:7000");
    lobby.register(VICTIM, &server(1));
    lobby.settle(REACHABLE);
    for _ in 0..5 {
        (1..5).for_each(|id| assert!(lobby.register(VICTIM, &server(id)).is_listed()));
        lobby.wait(secs(30));
        lobby.settle(REACHABLE);
    }
    // Another server was listed at this address before.
    lobby.unregister(VICTIM, 4);
    lobby.wait(secs(4));
    lobby.register(VICTIM, &server(5));
    assert_eq!(lobby.register(VICTIM, &server(4)), RegistrationOutcome::Listed);
    assert!(lobby.list().contains(&"203.0.113.9:1 udp server 1".into()), "the proven one stays");
}

const ATTACKER: &str = "198.51.100.7";

#[test]
fn w45_an_id_proven_elsewhere_gives_way_at_another_address() {
    let mut lobby = Lobby::default();
    for n in 0..PER_ADDRESS as u128 {
        lobby.register(ATTACKER, &tcp(1_000 + n).port(9_000 + n as u16));
    }
    lobby.settle(REACHABLE);
    assert!(!lobby.register(VICTIM, &tcp(7).port(PORT)).is_refusal());
    lobby.settle(REACHABLE);
    assert_eq!(lobby.list().len(), PER_ADDRESS + 1);
    lobby.unregister(VICTIM, 7);
    // The IDs that are proven at the address of the attacker fill that of the victim.
    for n in 0..PER_ADDRESS as u128 {
        lobby.register(VICTIM, &tcp(1_000 + n).port(9_000 + n as u16));
    }
    lobby.settle(CheckResult::Unreachable);
    lobby.wait(secs(4));
    assert!(!lobby.register(VICTIM, &tcp(7).port(PORT)).is_refusal(), "a server that was listed there before");
}

#[test]
fn w45_an_id_proven_elsewhere_does_not_displace_a_server_for_good() {
    let mut lobby = Lobby::default();
    lobby.register(VICTIM, &tcp(7).port(PORT));
    lobby.register(ATTACKER, &tcp(1_000).port(9_000));
    lobby.settle(REACHABLE);
    // It takes the endpoint of the victim (L8) and leaves it again.
    lobby.register(VICTIM, &tcp(1_000).port(PORT));
    lobby.register(ATTACKER, &tcp(1_000).port(9_000));
    assert!(lobby.list().contains(&format!("{VICTIM}:{PORT} tcp server 7")), "{:?}", lobby.list());
}

/// Entries that only register, and refresh, hold every place of the address before the server registers for the first time.
#[test]
fn w85_a_server_that_replies_is_listed_at_an_address_that_forgeries_hold() {
    for victim in [tcp(7), udp(7).key("x-query", "session")] {
        let mut attack = Attack::new(victim);
        let mut outcomes = Vec::new();
        for round in 0..6 {
            for number in 0..PER_ADDRESS as u16 {
                let forged = udp(1_000 + u128::from(number)).port(PORT + 1 + number).name("forged");
                attack.lobby.register(VICTIM, &forged);
            }
            if round >= 2 {
                outcomes.push(attack.register());
            }
            attack.lobby.wait(secs(30));
        }
        let refused = RegistrationOutcome::AddressFull;
        assert_eq!(outcomes[..3], [refused, refused, RegistrationOutcome::Listed]);
        assert!(attack.is_listed());
        assert_eq!(attack.lobby.stats().registered, PER_ADDRESS);
        attack.lobby.check_invariants();
    }
}

/// A port for queries that another server may have named as well proves nothing.
#[test]
fn w85_a_server_that_is_refused_is_not_checked_at_another_port() {
    let mut attack = Attack::new(udp(7).key("x-query", "session:9999"));
    for _ in 0..4 {
        for number in 0..PER_ADDRESS as u16 {
            attack.lobby.register(VICTIM, &udp(1_000 + u128::from(number)).port(PORT + 1 + number));
        }
        assert_eq!(attack.lobby.register(VICTIM, &attack.victim.clone()), RegistrationOutcome::AddressFull);
        assert_eq!(attack.lobby.checks(), []);
        attack.lobby.wait(secs(30));
    }
}
