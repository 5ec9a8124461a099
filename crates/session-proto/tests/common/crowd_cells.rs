//! A crowd on one link, a disturbance of that link, and what p99 is after it.

use super::{
    ms,
    players::{Crowd, CrowdOptions, Direction},
    secs,
};
use rallypoint_netsim::{CubicReceiver, CubicSender, Link};
use std::time::Duration;

/// What happens to the link.
#[derive(Clone, Copy, Debug)]
pub enum Disturbance {
    /// It has 30 % of its rate for this many seconds.
    Dip(u64),
    /// Half of the datagrams are lost for 2 s, in both directions.
    Loss,
    /// All datagrams are lost for 2 s, in both directions.
    Outage,
    /// A CUBIC flow uses it for 10 s.
    Download,
}

/// The queue of the link.
#[derive(Clone, Copy, Debug)]
pub enum Queue {
    Bytes(usize),
    /// As many bytes as pass the link in this time.
    Time(Duration),
}

/// A crowd that loads its link to this share of its rate, counted with the headers of the session and with acks that pass the
/// link, but without copies and without the headers of IP and UDP, which netsim does not count.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub seed: u64,
    pub load: f64,
    pub options: CrowdOptions,
    pub queue: Queue,
    pub disturbance: Disturbance,
}

/// Share of the time until the goal that the backlog may need at the full rate of the link. The rest is for learning that the
/// disturbance is over.
const MAX_DRAIN_TIME: f64 = 0.8;

impl Cell {
    /// p99 is less than twice its value before within 10 s up to 80 % load, and within 30 s above that, and no player is starved.
    /// Cells whose backlog the link cannot carry in time are left out. An error tells what was measured.
    pub fn run(self) -> Result<(), String> {
        let mut crowd = Crowd::with_options(self.seed, self.options);
        crowd.net.run_for(ms(500));
        let undisturbed = crowd.measure(secs(2));
        let rate = (undisturbed.bytes as f64 / 2.0 * 8.0 / self.load) as u64;
        let queue = match self.queue {
            Queue::Bytes(bytes) => bytes,
            Queue::Time(time) => (rate as f64 / 8.0 * time.as_secs_f64()) as usize,
        };
        set_rate(&mut crowd, rate, queue);
        crowd.net.run_for(secs(2));
        let before = crowd.measure(secs(5));
        self.disturb(&mut crowd, rate, queue);
        let goal = if self.load > 0.8 { 30 } else { 10 };
        let ideal = self.drain_time(&crowd);
        crowd.net.run_for(secs(goal));
        let after = crowd.measure(secs(5));
        let measured = format!("{self:?}: {before:?}, {after:?}, backlog of {ideal:.1} s");
        println!("{measured}");
        // What is sent in twice the delay from before, and a few messages.
        let max_outstanding = 8 + (120.0 * before.p99.as_secs_f64()) as usize;
        let is_met = after.p99 < 2 * before.p99 && after.max_outstanding <= max_outstanding;
        if is_met || ideal > goal as f64 * MAX_DRAIN_TIME { Ok(()) } else { Err(measured) }
    }

    /// Seconds that the link needs at its full rate for the messages that have not arrived, beside those that are sent meanwhile.
    fn drain_time(&self, crowd: &Crowd) -> f64 {
        let outstanding = crowd.outstanding();
        let (to_server, to_players) = outstanding.split_at(outstanding.len() / 2);
        let backlog = to_server.iter().sum::<usize>().max(to_players.iter().sum());
        let per_second = f64::from(self.options.players) * 60.0;
        backlog as f64 / per_second * self.load / (1.0 - self.load)
    }

    fn disturb(&self, crowd: &mut Crowd, rate: u64, queue: usize) {
        let link = Link::default().delay(self.options.rtt / 2);
        match self.disturbance {
            Disturbance::Dip(seconds) => {
                set_rate(crowd, rate * 3 / 10, queue);
                crowd.net.run_for(secs(seconds));
                set_rate(crowd, rate, queue);
            }
            Disturbance::Loss | Disturbance::Outage => {
                let loss = if matches!(self.disturbance, Disturbance::Loss) { 0.5 } else { 1.0 };
                crowd.net.set_default_link(link.loss(loss));
                crowd.net.run_for(secs(2));
                crowd.net.set_default_link(link);
            }
            Disturbance::Download => {
                let receiver = crowd.net.add(([10, 2, 0, 1], 2_000), CubicReceiver::default());
                let sender = CubicSender::new(crowd.net.now(), crowd.net.address(receiver), 1_200);
                let sender = crowd.net.add(([10, 2, 0, 2], 2_000), sender);
                crowd.net.pass_bottleneck(sender, receiver, crowd.bottleneck);
                crowd.net.run_for(secs(10));
                crowd.net.remove(sender);
                crowd.net.remove(receiver);
            }
        }
    }
}

fn set_rate(crowd: &mut Crowd, rate: u64, queue: usize) {
    crowd.net.set_bottleneck(crowd.bottleneck, rate, queue);
    crowd.net.set_bottleneck(crowd.second_bottleneck, rate, queue);
}

/// A cell whose properties are drawn with this seed.
pub fn random_cell(seed: u64) -> Cell {
    let mut rng = rallypoint_netsim::Rng::new(seed.wrapping_mul(7_919).wrapping_add(13));
    let mut draw = |count: usize| rng.below(count as u64) as usize;
    let load = [0.65, 0.8, 0.9][draw(3)];
    let len = [100, 200, 280][draw(3)];
    let players = [10, 30, 60, 100][draw(4)];
    let rtt = ms([20, 50, 100, 150][draw(4)]);
    let queue = [Queue::Bytes(32_000), Queue::Bytes(64_000), Queue::Time(ms(100)), Queue::Time(ms(250))][draw(4)];
    let dips = [2, 1, 5].map(Disturbance::Dip);
    let disturbance = match draw(6) {
        dip @ 0..3 => dips[dip],
        3 => Disturbance::Loss,
        4 => Disturbance::Outage,
        _ => Disturbance::Download,
    };
    let direction = [Direction::ToServer, Direction::ToPlayers, Direction::Both][draw(3)];
    let options = CrowdOptions { players, direction, len, rtt, is_encrypted: draw(2) == 1 };
    Cell { seed, load, options, queue, disturbance }
}
