//! Keeps the book: tells it what happens, and publishes what it says.

use crate::{
    book::Book,
    live::{Live, Told},
};
use rallypoint_lobby::LobbyService;
use rallypoint_lobby_proto::Event;
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
pub(crate) async fn keep(book: Book, lobby: LobbyService, live: Arc<Live>, told: mpsc::Receiver<Told>) {
    let _ = try_keep(Box::new(book), lobby, &live, told).await;
}

/// `None` when the lobby has ended.
async fn try_keep(book: Box<Book>, lobby: LobbyService, live: &Live, mut told: mpsc::Receiver<Told>) -> Option<()> {
    let mut lost = lobby.stats().dropped_events;
    let mut look = tokio::time::interval(LOOK_EVERY);
    let (mut book, mut events) = begin(book, Vec::new(), &lobby).await?;
    let kept = Kept(live);
    let mut happened = Vec::new();
    loop {
        let news = std::mem::take(&mut happened);
        let write = move |book: &mut Book| {
            handle_events(book, &news);
            book.handle_timeout(Instant::now())
        };
        let published;
        (book, published) = beside(book, write).await?;
        if let Some(published) = published {
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
                Err(broadcast::error::RecvError::Closed) => return None,
            },
            Some(told) = told.recv() => book.handle_told(told),
            () = tokio::time::sleep_until(book.poll_timeout().into()) => {}
            _ = look.tick() => {
                book.handle_wall_clock(Instant::now(), SystemTime::now());
                let now = lobby.stats().dropped_events;
                has_missed = std::mem::replace(&mut lost, now) != now;
            }
            () = lobby.ended() => return None,
        }
        if has_missed {
            tracing::warn!("the web server missed what happened in the lobby: it reads the whole list again");
            (book, events) = begin(book, std::mem::take(&mut happened), &lobby).await?;
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

/// Writes down the list of now, after what happened before, and gives all events after it.
async fn begin(
    book: Box<Book>,
    before: Vec<Event>,
    lobby: &LobbyService,
) -> Option<(Box<Book>, broadcast::Receiver<Event>)> {
    let (directory, events) = lobby.follow().await?;
    let write = move |book: &mut Book| {
        handle_events(book, &before);
        book.handle_directory(&directory);
    };
    let (book, ()) = beside(book, write).await?;
    Some((book, events))
}

fn handle_events(book: &mut Book, events: &[Event]) {
    events.iter().for_each(|event| book.handle_event(event));
}

/// Does something with the book beside the runtime. With many servers that takes a while, and on a machine with one core the
/// runtime has one thread, which has to serve lists and pages meanwhile.
async fn beside<T: Send + 'static>(
    mut book: Box<Book>,
    work: impl FnOnce(&mut Book) -> T + Send + 'static,
) -> Option<(Box<Book>, T)> {
    let work = move || {
        let result = work(&mut book);
        (book, result)
    };
    // It is an error if the runtime ends.
    tokio::task::spawn_blocking(work).await.ok()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::Calendar;
    use std::{thread, time::SystemTime};

    #[tokio::test]
    async fn the_book_is_written_beside_the_threads_that_serve() {
        let now = Instant::now();
        let book = Box::new(Book::new(now, Calendar::new(now, SystemTime::now()), 0));
        let (_, writer) = beside(book, |_| thread::current().id()).await.unwrap();
        assert_ne!(writer, thread::current().id());
    }
}
