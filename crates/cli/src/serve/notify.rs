//! Telling systemd (sd_notify). Without systemd nothing happens, and nothing is lost.

use sd_notify::NotifyState;

/// It serves.
pub fn ready() {
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}

/// It reads its configuration again.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => drop(sd_notify::notify(&[NotifyState::Reloading, now])),
        Err(_) => drop(sd_notify::notify(&[NotifyState::Reloading])),
    }
}

/// It comes to an end.
pub fn stopping() {
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
}
