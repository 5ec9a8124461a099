//! Notifies systemd of state changes (sd_notify). Without systemd these calls do nothing.

#[cfg(target_os = "linux")]
use sd_notify::NotifyState;

/// The service is ready.
pub fn ready() {
    #[cfg(target_os = "linux")]
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}

/// The service reloads its configuration.
pub fn reloading() {
    #[cfg(target_os = "linux")]
    match NotifyState::monotonic_usec_now() {
        Ok(now) => drop(sd_notify::notify(&[NotifyState::Reloading, now])),
        Err(_) => drop(sd_notify::notify(&[NotifyState::Reloading])),
    }
}

/// The service is shutting down.
pub fn stopping() {
    #[cfg(target_os = "linux")]
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
}
