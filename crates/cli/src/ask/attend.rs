//! One look at many places, with somebody who waits for it: progress is shown, and Ctrl-C ends it.

use crate::{
    ask::{
        Exit, Trouble,
        lobby::Fetched,
        output::{Missed, Sink, milliseconds, sink::ListNote},
        survey::{News, Place, Survey},
    },
    error::CommandError,
    signals::Signals,
};
use std::{future::ready, io, net::SocketAddr, time::Duration};
use tokio::time::{interval, sleep};

/// A look that is under way.
pub struct Attended {
    survey: Survey,
    answered: usize,
    /// Whether there were news since the last pause.
    has_news: bool,
    signals: Signals,
    is_stopped: bool,
}

/// What comes within this time is told together: waking up for each one of thousands costs more than telling it.
const TOGETHER: Duration = Duration::from_millis(5);

/// How often to look whether there is progress to show.
const TICK: Duration = Duration::from_millis(100);

impl Attended {
    /// Begins to look.
    pub fn new(mut survey: Survey) -> Result<Self, CommandError> {
        let signals = Signals::to_stop().map_err(CommandError::failed)?;
        survey.begin();
        Ok(Self { survey, answered: 0, has_news: false, signals, is_stopped: false })
    }

    /// The next news; `None` if there will be no more, or after Ctrl-C: what has come by then is worth showing.
    ///
    /// # Errors
    /// If what was told before cannot be written.
    pub async fn next(&mut self, sink: &mut Sink) -> io::Result<Option<News>> {
        let news = self.wait(sink).await?;
        self.answered += usize::from(matches!(news, Some(News::Answered(_))));
        self.has_news = true;
        Ok(news)
    }

    async fn wait(&mut self, sink: &mut Sink) -> io::Result<Option<News>> {
        if !self.is_stopped {
            tokio::select! {
                biased;
                news = self.survey.next() => return Ok(news),
                () = ready(()) => {}
            }
        }
        // Nothing more has come yet: whoever reads gets what there is, in one piece.
        sink.flush()?;
        if std::mem::take(&mut self.has_news) && !self.is_stopped {
            tokio::select! {
                () = sleep(TOGETHER) => {}
                () = self.signals.stop() => self.is_stopped = true,
            }
        }
        let mut tick = interval(TICK);
        while !self.is_stopped {
            tokio::select! {
                biased;
                news = self.survey.next() => return Ok(news),
                () = self.signals.stop() => self.is_stopped = true,
                _ = tick.tick(), if sink.progress.is_lively() => {
                    let (asked, open) = self.survey.progress();
                    sink.progress.show(asked - open, asked, self.answered);
                }
            }
        }
        Ok(None)
    }

    /// How it went, if all that was told went like this.
    pub fn exit(&self, exit: Exit) -> Exit {
        if self.is_stopped { exit.and(Exit::Silent) } else { exit }
    }
}

/// Tells of a list that has arrived.
pub fn tell_list(place: &Place, fetched: Fetched, sink: &mut Sink) -> io::Result<Exit> {
    let Fetched { from, connected, servers, malformed, .. } = fetched;
    let (target, connect_ms) = (place.to_string(), milliseconds(connected));
    sink.list(ListNote { target, address: from, servers, malformed, connect_ms })?;
    Ok(Exit::Answered)
}

/// Tells of a place that gave no answer.
pub fn tell_missed(
    target: String,
    address: Option<SocketAddr>,
    trouble: &Trouble,
    sink: &mut Sink,
) -> io::Result<Exit> {
    sink.missed(Missed { target, address, error: trouble.code(), message: trouble.to_string() })?;
    Ok(trouble.exit())
}
