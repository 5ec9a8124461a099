use super::*;

const LONG_AGO: Duration = Duration::from_secs(5);

/// A connection whose state the test sets.
#[derive(Debug)]
struct Connection {
    activity: Mutex<Activity>,
    is_evicted: Mutex<bool>,
}

impl Connection {
    fn new(now: Instant) -> Self {
        let activity = Activity { phase: Phase::New, progress_at: now };
        Self { activity: Mutex::new(activity), is_evicted: Mutex::new(false) }
    }

    fn set(&self, phase: Phase, now: Instant) {
        *self.activity.lock().unwrap() = Activity { phase, progress_at: now };
    }

    fn is_evicted(&self) -> bool {
        *self.is_evicted.lock().unwrap()
    }
}

impl Evictable for Connection {
    fn activity(&self) -> Activity {
        *self.activity.lock().unwrap()
    }

    fn evict(&self) {
        *self.is_evicted.lock().unwrap() = true;
    }
}

/// A quota and the clients that have units of it.
struct Table {
    quota: EvictingQuota<Connection>,
    now: Instant,
    held: Vec<(Arc<Connection>, EvictingPermit<Connection>)>,
}

impl Table {
    fn new(max: usize, max_per_client: usize, min_age: Duration) -> Self {
        Self::with(QuotaLimits { max, max_per_client, min_age, evicts_own: true })
    }

    fn with(limits: QuotaLimits) -> Self {
        Self { quota: EvictingQuota::new(limits), now: Instant::now(), held: Vec::new() }
    }

    /// Takes units for a connection that was opened five seconds ago. Returns its index.
    fn take(&mut self, ip: &str, units: usize) -> Option<usize> {
        self.take_with(ip, units, |_| {})
    }

    fn take_busy(&mut self, ip: &str) -> Option<usize> {
        let now = self.now;
        self.take_with(ip, 1, |connection| connection.set(Phase::Busy, now))
    }

    fn take_with(&mut self, ip: &str, units: usize, set: impl FnOnce(&Connection)) -> Option<usize> {
        let connection = Arc::new(Connection::new(self.now - LONG_AGO));
        set(&connection);
        let ip = ip.parse::<IpAddr>().unwrap();
        let client = QuotaClient { ip, is_exempt: false, is_privileged: ip.to_canonical().is_loopback() };
        let permit = self.quota.take(client, units, &connection, self.now)?;
        self.held.push((connection, permit));
        Some(self.held.len() - 1)
    }

    fn is_evicted(&self, index: usize) -> bool {
        self.held[index].0.is_evicted()
    }
}

#[test]
fn one_site_cannot_keep_the_others_out() {
    let mut table = Table::new(2_016, 32, Duration::ZERO);
    for stream in 0..63 * 32 {
        table.take_busy(&format!("2a00:1:1:{:x}00::{stream:x}", stream % 63)).unwrap();
    }
    for visitor in 0..200 {
        let visitor = table.take_busy(&format!("2a00:2:{visitor:x}::1")).expect("room is made");
        assert!(!table.is_evicted(visitor));
    }
    assert_eq!((table.quota.used(), table.quota.evicted(), table.quota.refused()), (2_016, 200, 0));
    let evicted = |from: usize| (from..table.held.len()).filter(|index| table.is_evicted(*index)).count();
    assert_eq!((evicted(0), evicted(63 * 32)), (200, 0), "only streams of the one site are closed");
}

#[test]
fn an_ipv4_network_counts_as_one_site() {
    let mut table = Table::new(100, 2, Duration::ZERO);
    for host in 0..98 {
        table.take_busy(&format!("9.9.9.{host}")).unwrap();
    }
    table.take_busy("8.8.8.8").unwrap();
    table.take_busy("8.8.4.4").unwrap();
    table.take_busy("1.1.1.1").unwrap();
    assert_eq!((0..98).filter(|index| table.is_evicted(*index)).count(), 1);
    assert!(table.is_evicted(0), "the one without progress for the longest time");
}

#[test]
fn connections_without_a_request_are_evicted_first() {
    let mut table = Table::new(10, 10, Duration::ZERO);
    for _ in 0..8 {
        table.take_busy("9.9.9.9").unwrap();
    }
    let silent = table.take("8.8.8.8", 1).unwrap();
    let other = table.take("8.8.4.4", 1).unwrap();
    table.take_busy("1.1.1.1").unwrap();
    assert!(table.is_evicted(silent) && !table.is_evicted(other));
    table.take_busy("1.0.0.1").unwrap();
    assert!(table.is_evicted(other));
    table.take_busy("1.0.1.1").unwrap();
    assert!(table.is_evicted(0), "then one of the site with most");
}

#[test]
fn a_new_connection_has_a_second_for_its_request() {
    let mut table = Table::new(3, 3, Duration::ZERO);
    table.take_busy("9.9.9.9").unwrap();
    table.take_busy("9.9.9.9").unwrap();
    let now = table.now;
    let connection = Arc::new(Connection::new(now));
    let client = QuotaClient { ip: "8.8.8.8".parse().unwrap(), is_exempt: false, is_privileged: false };
    let _permit = table.quota.take(client, 1, &connection, now).unwrap();
    table.take_busy("1.1.1.1").unwrap();
    assert!(!connection.is_evicted() && table.is_evicted(0));
}

#[test]
fn this_machine_is_always_served_and_evicted_only_by_itself() {
    let mut table = Table::new(8, 8, Duration::ZERO);
    for _ in 0..8 {
        table.take_busy("9.9.9.9").unwrap();
    }
    for local in ["127.0.0.1", "::1", "::ffff:127.0.0.2"] {
        table.take_busy(local).unwrap();
    }
    for visitor in 0..50 {
        table.take_busy(&format!("8.8.{visitor}.8")).unwrap();
    }
    assert!((8..11).all(|local| !table.is_evicted(local)));
    for _ in 0..5 {
        table.take_busy("127.0.0.1").unwrap();
    }
    assert!(table.take_busy("8.8.8.8").is_none(), "nothing is left that it may evict");
    table.take_busy("127.0.0.1").unwrap();
    assert_eq!((8..11).filter(|local| table.is_evicted(*local)).count(), 1);
}

#[test]
fn units_of_slow_readers_are_given_to_others() {
    let mut table = Table::new(64, 16, Duration::from_secs(1));
    for reader in 0..4 {
        table.take(&format!("9.9.{reader}.9"), 16).unwrap();
    }
    assert_eq!(table.take("8.8.8.8", 1), None, "they may finish within a second");
    table.now += Duration::from_secs(1);
    let page = table.take("8.8.8.8", 1).unwrap();
    assert_eq!((table.quota.used(), table.quota.evicted()), (49, 1));
    assert!(!table.is_evicted(page));
    table.held.clear();
    assert_eq!(table.quota.used(), 0, "evicted units are returned once");
    assert!(table.quota.state().by_site.is_empty() && table.quota.state().by_client.is_empty());
}

#[test]
fn a_customer_that_has_most_does_not_evict_its_own() {
    let limits = QuotaLimits { max: 6, max_per_client: 6, min_age: Duration::ZERO, evicts_own: false };
    let mut table = Table::with(limits);
    for ip in ["9.9.9.1", "9.9.9.1", "9.9.9.1", "9.9.9.1", "9.9.9.2", "8.8.8.8"] {
        table.take_busy(ip).unwrap();
    }
    assert_eq!(table.take_busy("9.9.9.1"), None);
    table.take_busy("9.9.9.3").expect("a neighbour with fewer units gets one");
    table.take_busy("8.8.4.4").expect("so does another network");
    assert_eq!((0..6).filter(|index| table.is_evicted(*index)).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_customer_has_a_limit_of_its_own() {
    let mut table = Table::new(10, 2, Duration::ZERO);
    table.take("2a00:1:1:101::1", 1).unwrap();
    table.take("2a00:1:1:1ff::1", 1).unwrap();
    assert_eq!(table.take("2a00:1:1:142::1", 1), None, "the /56 has two");
    table.take("2a00:1:1:201::1", 2).unwrap();
    assert_eq!(table.take("9.9.9.9", 11), None, "more than there are");
    assert_eq!((table.quota.refused(), table.quota.used()), (2, 4));
}

#[test]
fn a_connection_that_has_made_progress_is_spared() {
    let mut table = Table::new(200, 200, Duration::ZERO);
    for _ in 0..200 {
        table.take_busy("9.9.9.9").unwrap();
    }
    table.take_busy("8.8.8.8").unwrap();
    let next = (1..200).find(|index| !table.is_evicted(*index)).unwrap();
    table.held[next].0.set(Phase::Busy, table.now + Duration::from_secs(1));
    table.take_busy("8.8.4.4").unwrap();
    table.take_busy("8.8.2.2").unwrap();
    assert!(!table.is_evicted(next));
}
