use super::*;
use std::time::Duration;

/// A controller whose window was full, and a path whose queue is long.
fn congested() -> (CongestionController, RttEstimator) {
    let now = Instant::now();
    let mut rtt = RttEstimator::new();
    (0..64).for_each(|ms| rtt.sample(now + Duration::from_millis(ms), Duration::from_millis(50)));
    (64..128).for_each(|ms| rtt.sample(now + Duration::from_millis(ms), Duration::from_millis(150)));
    assert!(rtt.has_queue());
    let mut congestion = CongestionController::new(now);
    congestion.on_send(now, INITIAL_WINDOW - 508, 508);
    congestion.on_limited(0, false);
    (congestion, rtt)
}

const LOSSES: LossEvent = LossEvent {
    datagrams: 3,
    bytes: 1_000,
    newest_order: 10,
    next_order: 12,
    is_silent: false,
    has_timed_out: false,
    is_requested: false,
};

#[test]
fn s26_a_reduction_is_undone_when_all_its_losses_turn_out_to_be_late_acks() {
    let (mut congestion, rtt) = congested();
    let before = congestion.window();
    congestion.on_losses(LOSSES, &rtt);
    let reduced = congestion.window();
    assert!(reduced < before, "{reduced} and {before}");
    congestion.on_spurious_loss();
    congestion.on_spurious_loss();
    assert_eq!(congestion.window(), reduced, "one of the three is still lost");
    congestion.on_spurious_loss();
    assert_eq!(congestion.window(), before);
    assert!(congestion.is_in_slow_start(), "it continues where it was");
}

#[test]
fn s26_a_reduction_stays_if_more_of_the_same_window_is_lost() {
    let (mut congestion, rtt) = congested();
    congestion.on_losses(LOSSES, &rtt);
    let reduced = congestion.window();
    congestion.on_losses(LossEvent { datagrams: 1, bytes: 0, newest_order: 11, ..LOSSES }, &rtt);
    (0..3).for_each(|_| congestion.on_spurious_loss());
    assert_eq!(congestion.window(), reduced);
    congestion.on_spurious_loss();
    assert!(congestion.window() > reduced);
}
