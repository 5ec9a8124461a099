//! The terminal: enters raw mode, draws, reads keys, and restores the terminal however the program ends.

use super::{
    model::{Action, Model},
    shutdown::{Input, ShutdownSignal, wait_for_input},
    theme::Theme,
    view,
    worker::{Worker, WorkerCommand, WorkerEvent},
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

/// Time to wait for a key before changes are drawn: while a scan is under way, and otherwise.
const BUSY: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(250);

/// Maximum number of scan events handled between two frames.
const MAX_EVENTS: usize = 2_000;

/// Runs until the user or a signal ends it.
pub fn run(
    model: &mut Model,
    worker: &Worker,
    shutdown: &ShutdownSignal,
    theme: Theme,
    every: Option<Duration>,
) -> Result<(), CommandError> {
    let cannot = |error: io::Error| CommandError::failed(format!("cannot use the terminal: {error}"));
    // From here on a panic restores the terminal, too.
    let mut terminal = ratatui::try_init().map_err(cannot)?;
    let result = match event_loop(&mut terminal, model, worker, shutdown, theme, every) {
        // The terminal was closed while something was drawn: that is an end as by a key.
        Err(_) if shutdown.is_requested() || wait_for_input(Duration::ZERO).is_ok_and(|input| input == Input::Gone) => {
            Ok(())
        }
        result => result.map_err(cannot),
    };
    if ratatui::try_restore().is_err() {
        // The terminal is gone and does not have to be restored. Dropping it would try again, and panic when it cannot print
        // its error.
        std::mem::forget(terminal);
    }
    result
}

fn event_loop(
    terminal: &mut DefaultTerminal,
    model: &mut Model,
    worker: &Worker,
    shutdown: &ShutdownSignal,
    theme: Theme,
    every: Option<Duration>,
) -> io::Result<()> {
    let mut last_scan: Option<Instant> = None;
    let mut is_changed = true;
    loop {
        let is_due = last_scan.is_none_or(|last| every.is_some_and(|every| last.elapsed() >= every));
        if is_due && !model.is_scanning {
            last_scan = Some(Instant::now());
            if let Action::Scan(more) = model.start_scan() {
                worker.send(WorkerCommand::Scan(more));
            }
        }
        // Redrawing ten thousand servers although nothing changed would keep the processor busy.
        if std::mem::take(&mut is_changed) || model.is_scanning {
            terminal.draw(|frame| view::draw(frame, model, theme))?;
        }
        let input = wait_for_input(if model.is_scanning { BUSY } else { IDLE })?;
        if input == Input::Gone || shutdown.is_requested() {
            return Ok(());
        }
        let mut is_pressed = false;
        // All available keys are handled before the next frame.
        while event::poll(Duration::ZERO)? {
            is_changed = true;
            is_pressed = true;
            let Event::Key(key) = event::read()? else { continue };
            match model.handle_key(key) {
                Some(Action::Quit) => return Ok(()),
                Some(Action::Scan(more)) => worker.send(WorkerCommand::Scan(more)),
                Some(Action::ProbeAgain(server)) => worker.send(WorkerCommand::ProbeAgain(server)),
                Some(Action::Join(command, address)) => {
                    let result = suspend_screen(terminal, shutdown, || {
                        let _ = writeln!(io::stdout(), "{}", command.show(address));
                        command.run(address)
                    })?;
                    model.handle_joined(result);
                }
                Some(Action::Suspend) => suspend_screen(terminal, shutdown, stop_process)?,
                None => {}
            }
        }
        if input == Input::Keys && !is_pressed {
            // An incomplete key sequence: the input would be reported as ready again at once.
            std::thread::sleep(BUSY);
        }
        for _ in 0..MAX_EVENTS {
            let event = worker.events.try_recv();
            is_changed |= event.is_ok();
            match event {
                Ok(WorkerEvent::Scan(event)) => model.handle_event(*event),
                Ok(WorkerEvent::PassEnded) => model.finish_scan(),
                // The thread has ended: joining it returns the error.
                Err(TryRecvError::Disconnected) => return Ok(()),
                Err(TryRecvError::Empty) => break,
            }
        }
    }
}

/// Restores the terminal while something else uses it.
fn suspend_screen<T>(
    terminal: &mut DefaultTerminal,
    shutdown: &ShutdownSignal,
    use_terminal: impl FnOnce() -> T,
) -> io::Result<T> {
    ratatui::try_restore()?;
    shutdown.set_screen_suspended(true);
    let result = use_terminal();
    shutdown.set_screen_suspended(false);
    *terminal = ratatui::try_init()?;
    terminal.clear()?;
    Ok(result)
}

/// Stops this process until the shell continues it, where there is such a shell.
fn stop_process() {
    #[cfg(unix)]
    let _ = rustix::process::kill_process_group(rustix::process::getpgrp(), rustix::process::Signal::TSTP);
}
