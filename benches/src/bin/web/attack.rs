//! Honest visitors of a large lobby, while clients of many networks request expensive pages as fast as they are allowed to.

use crate::{program::Lobby, requests::Client};
use rallypoint_bench::{BusyCores, Failure, Table, nanoseconds};
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

pub const SERVERS: u32 = 100_000;
/// Number of attacking clients, each of a network of its own.
const ATTACKERS: u8 = 64;
/// Number of honest visitors, each of a network of its own, and their requests.
const VISITORS: u8 = 5;
const REQUESTS: usize = 60;
/// Time between a response and the next request of a visitor: a person who clicks fast. A client that always has a request waiting
/// is not told apart from the attackers.
const PAUSE: Duration = Duration::from_secs(1);
/// Duration of the attack before the visitors come.
const BEFORE: Duration = Duration::from_secs(5);

/// The requests of a visitor, in turn.
const PAGES: [&str; 4] =
    ["/", "/?q=bacon&sort=name", "/api/v1/servers?q=dusk&limit=100", "/api/v1/servers?not_full=1&sort=map&limit=100"];

/// The requests of the attackers, each with a text that no other request has: every response has to be rendered.
const EXPENSIVE: [&str; 3] = ["/?sort=map&q=", "/api/v1/servers?sort=name&limit=500&q=", "/?sort=popularity&q=e"];

/// Measures the latency of the honest visitors' requests; returns the text, the 99th percentile in seconds and the number of
/// requests that were refused.
pub fn measure(core: usize) -> Result<(String, f64, usize), Failure> {
    // By default all addresses of this machine are exempt from the limits of requests. Here only the client is that fills the lobby.
    let lobby = Lobby::start_with(core, SERVERS, &["web.exempt=[\"127.0.0.1/32\"]"])?;
    let _busy = BusyCores::start(core)?;
    let mut table = Table::new(&["attackers", "their requests", "median", "99 %", "slowest", "refused"]);
    let is_over = AtomicBool::new(false);
    let attempts = AtomicU64::new(0);
    let quiet = Latencies::of_visitors(lobby.http)?;
    table.row(quiet.cells("none", "–".into()));
    let began = Instant::now();
    let attacked = thread::scope(|scope| {
        for number in 0..ATTACKERS {
            let is_over = &is_over;
            let attempts = &attempts;
            scope.spawn(move || attack(number, lobby.http, is_over, attempts));
        }
        thread::sleep(BEFORE);
        let attacked = Latencies::of_visitors(lobby.http);
        is_over.store(true, Relaxed);
        attacked
    })?;
    let rate = attempts.load(Relaxed) as f64 / began.elapsed().as_secs_f64();
    table.row(attacked.cells(&ATTACKERS.to_string(), format!("{rate:.0} /s")));
    let text = format!(
        "### Honest visitors under attack, {SERVERS} servers\n\n{table}\n{VISITORS} visitors, each of a network of its own, with \
         {REQUESTS} requests each, each {PAUSE:?} after the response to the one before: the first page, a search, and two filtered lists of the API. Each attacker is in a network of its own, has one connection, requests \
         searches over all servers that no other request shares, and sends the next request when it has the response. {}\n",
        BusyCores::NOTE
    );
    Ok((text, attacked.quantile(0.99), attacked.refused))
}

struct Latencies {
    /// In seconds, sorted.
    times: Vec<f64>,
    refused: usize,
}

impl Latencies {
    /// The latencies of all visitors, whose requests are spread evenly over the time.
    fn of_visitors(http: SocketAddr) -> Result<Self, Failure> {
        let visits: Vec<Result<Self, Failure>> = thread::scope(|scope| {
            let visit = |number| {
                scope.spawn(move || {
                    thread::sleep(PAUSE / u32::from(VISITORS) * u32::from(number));
                    Self::of_visitor(Ipv4Addr::new(127, 99, number, 1), http)
                })
            };
            let visitors: Vec<_> = (0..VISITORS).map(visit).collect();
            visitors.into_iter().map(|visitor| visitor.join().expect("a visitor does not panic")).collect()
        });
        let mut all = Self { times: Vec::new(), refused: 0 };
        for visit in visits {
            let visit = visit?;
            all.times.extend(visit.times);
            all.refused += visit.refused;
        }
        all.times.sort_by(f64::total_cmp);
        Ok(all)
    }

    /// One visitor. The latencies are in the order of its requests.
    fn of_visitor(from: Ipv4Addr, http: SocketAddr) -> Result<Self, Failure> {
        let mut client = Client::connect_from(from, http)?;
        let mut times = Vec::new();
        let mut refused = 0;
        for number in 0..REQUESTS {
            let began = Instant::now();
            let status = client.status(PAGES[number % PAGES.len()])?;
            times.push(began.elapsed().as_secs_f64());
            refused += usize::from(status != 200);
            thread::sleep(PAUSE);
        }
        Ok(Self { times, refused })
    }

    fn quantile(&self, share: f64) -> f64 {
        self.times[(self.times.len() as f64 * share) as usize]
    }

    fn cells(&self, attackers: &str, requests: String) -> [String; 6] {
        let slowest = self.times[self.times.len() - 1];
        let [middle, late, slowest] =
            [self.quantile(0.5), self.quantile(0.99), slowest].map(|seconds| nanoseconds(seconds * 1e9));
        [attackers.into(), requests, middle, late, slowest, self.refused.to_string()]
    }
}

/// Requests expensive pages until the measurement is over. What fails is tried again with a new connection.
fn attack(number: u8, http: SocketAddr, is_over: &AtomicBool, attempts: &AtomicU64) {
    let from = Ipv4Addr::new(127, 100, number, 1);
    let mut client = None;
    for round in 0_usize.. {
        if is_over.load(Relaxed) {
            return;
        }
        let Some(connected) = client.as_mut() else {
            client = Client::connect_from(from, http).ok();
            continue;
        };
        let path = format!("{}{number}x{round}", EXPENSIVE[round % EXPENSIVE.len()]);
        attempts.fetch_add(1, Relaxed);
        match connected.status(&path) {
            Ok(200) => {}
            // Beyond its budget: the next request would be refused, too.
            Ok(_) => thread::sleep(Duration::from_millis(20)),
            Err(_) => client = None,
        }
    }
}
