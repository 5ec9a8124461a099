//! Keeps the book: tells it what happens, and publishes what it says.

use crate::{
    book::Book,
    live::{Live, Told},
};
use rallypoint_lobby::Event;
use rallypoint_net::LobbyService;
use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::{broadcast, mpsc};

/// Events that are taken at once, so that a flood of them does not keep the book from being published.
const AT_ONCE: usize = 1_024;

/// How often it is looked at whether the registry itself has dropped events, or somebody has set the clock.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Runs until the lobby ends.
pub(crate) async fn keep(mut book: Book, lobby: LobbyService, live: Arc<Live>, mut told: mpsc::Receiver<Told>) {
    let mut lost = lobby.stats().lost_events;
    let mut look = tokio::time::interval(LOOK_EVERY);
    let Some(mut events) = begin(&mut book, &lobby).await else { return };
    let kept = Kept(&live);
    let mut happened = Vec::with_capacity(AT_ONCE);
    loop {
        if let Some(published) = book.handle_timeout(Instant::now()) {
            live.publish(published);
        }
        kept.0.set_current(true);
        let mut has_missed = false;
        tokio::select! {
            event = events.recv() => match event {
                Ok(event) => {
                    happened.push(event);
                    has_missed = take_more(&mut events, &mut happened);
                }
                Err(broadcast::error::RecvError::Lagged(_)) => has_missed = true,
                Err(broadcast::error::RecvError::Closed) => return,
            },
            Some(told) = told.recv() => book.handle_told(told),
            () = tokio::time::sleep_until(book.poll_timeout().into()) => {}
            _ = look.tick() => {
                book.handle_wall_clock(Instant::now(), SystemTime::now());
                let now = lobby.stats().lost_events;
                has_missed = std::mem::replace(&mut lost, now) != now;
            }
            () = lobby.ended() => return,
        }
        for event in happened.drain(..) {
            book.handle_event(&event);
        }
        if has_missed {
            tracing::warn!("the web server missed what happened in the lobby: it reads the whole list again");
            match begin(&mut book, &lobby).await {
                Some(new) => events = new,
                None => return,
            }
        }
    }
}

/// Says so when nobody keeps the book any more, for whatever reason.
struct Kept<'a>(&'a Live);

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.0.set_current(false);
    }
}

/// The list of now and all events after it.
async fn begin(book: &mut Book, lobby: &LobbyService) -> Option<broadcast::Receiver<Event>> {
    let (directory, events) = lobby.follow().await?;
    book.handle_directory(&directory);
    Some(events)
}

/// Takes events that are already there. Says whether some were missed.
fn take_more(events: &mut broadcast::Receiver<Event>, happened: &mut Vec<Event>) -> bool {
    while happened.len() < AT_ONCE {
        match events.try_recv() {
            Ok(event) => happened.push(event),
            Err(broadcast::error::TryRecvError::Lagged(_)) => return true,
            Err(_) => return false,
        }
    }
    false
}
