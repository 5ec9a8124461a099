//! The terminal: takes it, draws on it, reads keys, and gives it back however the program ends.

use super::{
    ending::{Ending, Input, wait_for_input},
    model::{Model, Wish},
    theme::Theme,
    view,
    worker::{Order, Told, Worker},
};
use crate::error::CommandError;
use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event},
};
use std::{
    io::{self, Write},
    sync::mpsc::TryRecvError,
    time::{Duration, Instant},
};

/// How long to wait for a key before it is drawn what has changed meanwhile.
const BUSY: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(250);

/// How much news is taken before something is drawn.
const AT_ONCE: usize = 2_000;

/// Runs until a person or a signal ends it.
pub fn run(
    model: &mut Model,
    worker: &Worker,
    ending: &Ending,
    theme: Theme,
    every: Option<Duration>,
) -> Result<(), CommandError> {
    let cannot = |error: io::Error| CommandError::failed(format!("the terminal cannot be used: {error}"));
    // From here on a panic gives the terminal back, too.
    let mut terminal = ratatui::try_init().map_err(cannot)?;
    let result = turns(&mut terminal, model, worker, ending, theme, every).map_err(cannot);
    if ratatui::try_restore().is_err() {
        // It is gone and needs nothing back. Dropping it would try that again, and panic as nobody hears its complaint.
        std::mem::forget(terminal);
    }
    result
}

fn turns(
    terminal: &mut DefaultTerminal,
    model: &mut Model,
    worker: &Worker,
    ending: &Ending,
    theme: Theme,
    every: Option<Duration>,
) -> io::Result<()> {
    let mut last_look: Option<Instant> = None;
    let mut is_changed = true;
    loop {
        let is_due = last_look.is_none_or(|last| every.is_some_and(|every| last.elapsed() >= every));
        if is_due && !model.is_looking {
            last_look = Some(Instant::now());
            if let Wish::Look(more) = model.start_look() {
                worker.order(Order::Look(more));
            }
        }
        // To draw ten thousand servers again and again although nothing happens would keep a machine busy.
        if std::mem::take(&mut is_changed) || model.is_looking {
            terminal.draw(|frame| view::draw(frame, model, theme))?;
        }
        let input = wait_for_input(if model.is_looking { BUSY } else { IDLE })?;
        if input == Input::Gone || ending.is_told() {
            return Ok(());
        }
        let mut is_pressed = false;
        // All keys that are there, and then what they changed is drawn once.
        while event::poll(Duration::ZERO)? {
            (is_changed, is_pressed) = (true, true);
            let Event::Key(key) = event::read()? else { continue };
            match model.handle_key(key) {
                Some(Wish::Quit) => return Ok(()),
                Some(Wish::Look(more)) => worker.order(Order::Look(more)),
                Some(Wish::Ask(seen)) => worker.order(Order::Ask(seen)),
                Some(Wish::Join(command, address)) => {
                    let result = aside(terminal, ending, || {
                        let _ = writeln!(io::stdout(), "{}", command.show(address));
                        command.run(address)
                    })?;
                    model.handle_joined(result);
                }
                Some(Wish::Suspend) => aside(terminal, ending, suspend)?,
                None => {}
            }
        }
        if input == Input::Keys && !is_pressed {
            // Half a key, or what the reader leaves for later: it is there at once again.
            std::thread::sleep(BUSY);
        }
        for _ in 0..AT_ONCE {
            let told = worker.told.try_recv();
            is_changed |= told.is_ok();
            match told {
                Ok(Told::News(news)) => model.handle_news(*news),
                Ok(Told::Looked) => model.end_look(),
                // A thread that is gone says why when it is joined.
                Err(TryRecvError::Disconnected) => return Ok(()),
                Err(TryRecvError::Empty) => break,
            }
        }
    }
}

/// Gives the terminal back for a while.
fn aside<T>(terminal: &mut DefaultTerminal, ending: &Ending, what: impl FnOnce() -> T) -> io::Result<T> {
    ratatui::try_restore()?;
    ending.set_aside(true);
    let result = what();
    ending.set_aside(false);
    *terminal = ratatui::try_init()?;
    terminal.clear()?;
    Ok(result)
}

/// Stops this program until the shell lets it go on.
fn suspend() {
    let _ = rustix::process::kill_process_group(rustix::process::getpgrp(), rustix::process::Signal::TSTP);
}
