//! A full address never refuses a server that was listed there before, whatever a forger sends in the name of that address
//! (W45, W87). The server cannot be checked, so that nothing but its registrations speaks for it.

use crate::support;
use proptest::prelude::*;
use rallypoint_lobby_proto::{CheckResult, Config, Mapping, RegistrationOutcome};
use std::{net::IpAddr, time::Duration};
use support::*;

const PORT: u16 = 8190;

/// The victim's ID, which the forger does not know. Its own ones are greater.
const VICTIM: u128 = 7;

/// Where the victim registers, and in which names the forger does.
#[derive(Clone, Copy, Debug)]
struct Place {
    victim: &'static str,
    forged: &'static [&'static str],
    is_mapped: bool,
}

const PLACES: [Place; 3] = [
    Place { victim: "203.0.113.9", forged: &["203.0.113.9"], is_mapped: false },
    // The cap counts a /64.
    Place { victim: "2001:db9:1:2::9", forged: &["2001:db9:1:2::9", "2001:db9:1:2::a"], is_mapped: false },
    Place { victim: "192.168.0.1", forged: &["192.168.0.1", "192.168.0.2", "9.9.9.1"], is_mapped: true },
];

/// One step of the attack, or of the victim.
#[derive(Clone, Copy, Debug)]
enum Step {
    Forge {
        from: usize,
        id: u128,
        port: u16,
        kind: u8,
        lobby: u32,
    },
    /// The same IDs again, as servers that are real would do.
    Hold {
        from: usize,
        first: u128,
        count: u16,
    },
    Unregister(u128),
    Wait(Duration),
    /// The victim is switched off for a while.
    Absence(Duration),
    Restart,
}

struct Attack {
    lobby: Lobby,
    place: Place,
    victim: Server,
    /// When the victim registers next.
    next: Duration,
    passed: Duration,
}

impl Attack {
    fn new(place: Place, per_address: usize) -> Self {
        let mut config = Config { limit_exempt: networks(&["0.0.0.0/0", "::/0"]), ..Config::default() };
        config.caps.per_address = per_address;
        if place.is_mapped {
            let from = "192.168.0.0/24".parse().unwrap();
            config.address_map = [Mapping { from, port: None, to: ip("9.9.9.1"), to_port: None }].into_iter().collect();
        }
        let mut lobby = Lobby::new(config);
        lobby.skips_invariants = true;
        let victim = udp(VICTIM).port(PORT);
        let mut attack = Self { lobby, place, victim, next: Duration::ZERO, passed: Duration::ZERO };
        attack.register();
        attack
    }

    /// Registers the victim, which has to be listed then.
    fn register(&mut self) {
        self.victim.occupancy.players = (self.passed.as_secs() % 20) as u16;
        let outcome = self.lobby.register(self.place.victim, &self.victim);
        assert!(outcome.is_listed(), "{outcome:?} after {:?}", self.passed);
        let list = self.lobby.list();
        assert!(list.iter().any(|line| line.ends_with("server 7")), "{list:?} after {:?}", self.passed);
        self.next = self.passed + secs(30);
    }

    fn wait(&mut self, time: Duration) {
        let end = self.passed + time;
        while self.next <= end {
            self.pass(self.next - self.passed);
            self.register();
        }
        self.pass(end - self.passed);
    }

    fn pass(&mut self, time: Duration) {
        self.lobby.wait(time);
        self.passed += time;
        // Nothing answers at the ports that the forger names.
        self.lobby.settle(CheckResult::Unreachable);
    }

    fn forge(&mut self, from: usize, server: &Server) {
        let from = self.place.forged[from % self.place.forged.len()];
        self.lobby.register(from, &server.clone().name("forged"));
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Forge { from, id, port, kind, lobby } => {
                let server = match kind {
                    0 => tcp(id),
                    1 => udp(id).key("x-query", "session"),
                    _ => udp(id),
                };
                let server = if lobby == 0 { server } else { server.lobby(support::lobby(lobby)) };
                self.forge(from, &server.port(port));
            }
            Step::Hold { from, first, count } => {
                for number in 0..count {
                    self.forge(from, &udp(first + u128::from(number)).port(PORT + number));
                }
            }
            Step::Unregister(id) => {
                self.lobby.unregister(self.place.forged[0], id);
            }
            Step::Wait(time) => self.wait(time),
            // Another host behind the same external address can take a port whose lease has ended (W44).
            Step::Absence(time) if !self.place.is_mapped => {
                self.pass(time);
                self.register();
            }
            // For which inside host a port is reserved is not saved.
            Step::Absence(_) => {}
            Step::Restart if self.place.is_mapped => {}
            Step::Restart => {
                let save = self.lobby.save();
                let config = self.lobby.config().clone();
                self.lobby.registry = rallypoint_lobby_proto::Registry::new(config, KEYS, self.lobby.now).unwrap();
                self.lobby.registry.restore(self.lobby.now, &save).unwrap();
            }
        }
        self.lobby.registry.check_invariants();
    }
}

fn step() -> impl Strategy<Value = Step> {
    let id = || 1_000u128..1_080;
    prop_oneof![
        10 => (0usize..3, id(), PORT - 1..PORT + 40, 0u8..8, 0u32..3)
            .prop_map(|(from, id, port, kind, lobby)| Step::Forge { from, id, port, kind, lobby }),
        5 => (0usize..3, id(), 1u16..70).prop_map(|(from, first, count)| Step::Hold { from, first, count }),
        2 => id().prop_map(Step::Unregister),
        6 => (0u64..20_000).prop_map(|time| Step::Wait(ms(time))),
        4 => (20u64..90).prop_map(|time| Step::Wait(secs(time))),
        1 => (1u64..60_000).prop_map(|time| Step::Absence(secs(time))),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #[test]
    fn w45_a_server_that_was_listed_is_listed_after_each_of_its_registrations(
        place in 0..PLACES.len(),
        per_address in prop::sample::select(vec![1usize, 2, 3, 8, 32, 33, 100]),
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut attack = Attack::new(PLACES[place], per_address);
        steps.into_iter().for_each(|step| attack.run(step));
        attack.wait(secs(60));
    }
}

/// The forger's IDs were all listed before as well, and return, when it pushes out a server that has registered only once.
#[test]
fn w45_one_registration_is_enough_to_have_been_listed() {
    let mut attack = Attack::new(PLACES[0], 32);
    for _ in 0..4 {
        attack.run(Step::Hold { from: 0, first: 1_000, count: 60 });
        attack.wait(secs(15));
    }
    for round in 0..20 {
        attack.run(Step::Hold { from: 0, first: 1_000 + 20 * (round % 3), count: 60 });
        attack.wait(secs(30));
    }
}

#[test]
fn w45_a_server_returns_after_a_night_to_an_address_that_forgeries_hold() {
    for place in &PLACES[..2] {
        let mut attack = Attack::new(*place, 32);
        attack.wait(secs(60));
        for _ in 0..12 * 60 {
            attack.run(Step::Hold { from: 0, first: 1_000, count: 32 });
            attack.pass(secs(60));
        }
        // Its endpoint, which the forger has taken as well, and then another one: it is known by its ID.
        attack.register();
        attack.victim.port = 40_000;
        attack.register();
        attack.victim.id = 8;
        attack.victim.port = 40_001;
        let newcomer = attack.lobby.register(place.victim, &attack.victim);
        assert_eq!(newcomer, RegistrationOutcome::AddressFull, "another server, which was never listed there");
    }
}

/// Two servers of an address do not push out each other, and a forger whose IDs were listed too hits them only by chance.
#[test]
fn w45_servers_that_return_survive_most_forgeries() {
    let mut attack = Attack::new(PLACES[0], 32);
    let second = udp(8).port(9_000);
    let (mut looks, mut listed) = (0, 0);
    for round in 0..60u128 {
        attack.register();
        assert!(attack.lobby.register(attack.place.victim, &second).is_listed());
        for tenth in 0..10 {
            // Two datagrams in three seconds, each with an ID that was listed and pushed out before.
            for number in 0..2 {
                let id = 1_000 + (20 * round + 2 * tenth + number) % 60;
                attack.forge(0, &udp(id).port(20_000 + id as u16));
            }
            attack.pass(secs(3));
            let list = attack.lobby.list();
            looks += 2;
            listed += list.iter().filter(|line| line.ends_with("server 7") || line.ends_with("server 8")).count();
        }
    }
    assert!(listed * 10 >= looks * 7, "{listed} of {looks}");
}

/// W44: an ID that has taken the place of the victim moves to another inside host, or leaves it free for one.
#[test]
fn w44_another_inside_host_does_not_keep_the_place_that_an_id_of_the_same_host_has_left() {
    let steps: [fn(&mut Attack); 3] = [
        |attack| attack.forge(1, &udp(1_000).port(PORT)),
        |attack| {
            attack.run(Step::Unregister(1_000));
            attack.forge(1, &udp(1_001).port(PORT));
        },
        |attack| {
            attack.forge(0, &tcp(1_000).port(PORT));
            attack.forge(1, &udp(1_001).port(PORT));
        },
    ];
    for step in steps {
        let mut attack = Attack::new(PLACES[2], 32);
        attack.wait(secs(45));
        attack.forge(0, &udp(1_000).port(PORT));
        step(&mut attack);
        attack.wait(secs(45));
    }
}

/// Datagrams in the name of an address use up its budget, and those of its network.
#[test]
fn w87_a_flood_in_the_name_of_an_address_does_not_keep_its_server_from_registering() {
    for place in &PLACES[..2] {
        let mut attack = Attack::new(*place, 32);
        attack.lobby.set(|config| config.limit_exempt = networks(&[]));
        let mut refused = 0;
        for quarter in 0..240u128 {
            for number in 0..100 {
                let id = 1_000 + quarter * 100 + number;
                // One in a hundred takes the endpoint of the victim.
                let forged = udp(id).port(PORT + number as u16).name("forged").datagram();
                refused +=
                    usize::from(matches!(attack.lobby.send(place.victim, &forged), RegistrationOutcome::OverBudget(_)));
            }
            attack.wait(ms(250));
        }
        assert!(refused > 20_000, "{refused}");
        // A stranger is refused once they have used up the budget again.
        attack.run(Step::Hold { from: 0, first: 100_000, count: 100 });
        let stranger = attack.lobby.register(place.victim, &udp(8).port(40_000));
        assert!(matches!(stranger, RegistrationOutcome::OverBudget(_)), "{stranger:?}");
    }
}

/// The number of datagrams admitted beyond the budget is bounded.
#[test]
fn w87_an_id_is_admitted_beyond_the_budget_once_in_five_seconds() {
    let mut attack = Attack::new(PLACES[0], 32);
    attack.lobby.set(|config| config.limit_exempt = networks(&[]));
    let from: IpAddr = ip(attack.place.victim);
    let mut admitted = 0;
    for number in 0..60_000u32 {
        let server = attack.victim.clone().players(number as u16);
        admitted += usize::from(attack.lobby.register(from, &server).is_listed());
        attack.lobby.wait(ms(1));
    }
    let budget = attack.lobby.config().limits.host.packets.unwrap();
    let regular = (budget.burst + 61 * budget.count / budget.per.as_secs()) as usize;
    assert!(admitted <= regular + 12, "{admitted}, of which {regular} are within the budget");
}
