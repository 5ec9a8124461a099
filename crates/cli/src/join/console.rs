//! The terminal of a guest: a line for input at the bottom, and messages above it. Without a terminal: plain lines.

use super::line_editor::{EditAction, LineEditor};
use crate::{
    error::CommandError,
    input_lines::InputLines,
    output::terminal::{Style, Terminal, columns, wrap},
    stdio::print_stdout,
};
use rallypoint_room::Line;
use ratatui::crossterm::{
    event::{self, DisableBracketedPaste, EnableBracketedPaste, Event},
    execute, terminal,
};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    io::{self, IsTerminal, stdin, stdout},
};
use tokio::sync::{
    Mutex, Notify,
    mpsc::{UnboundedReceiver, unbounded_channel},
};

/// Text before the input line, in a room without presence reports.
const PROMPT: &str = "> ";

/// Indentation of all lines of a message but the first, in columns.
const INDENT: &str = "  ";

/// Input and output of a guest.
pub enum Console {
    /// Standard input and output, at least one of which is not a terminal.
    Plain(Mutex<InputLines>),
    Interactive(Box<InteractiveConsole>),
}

/// A terminal in raw mode.
pub struct InteractiveConsole {
    editor: RefCell<LineEditor>,
    events: Mutex<UnboundedReceiver<Event>>,
    /// Lines that were typed and not taken yet.
    lines: RefCell<VecDeque<Option<String>>>,
    /// The prompt before the line that is typed.
    prompt: RefCell<String>,
    /// Whether a line is being typed, and whether that has changed.
    is_typing: Cell<bool>,
    typing_changed: Notify,
}

impl Console {
    /// Takes over the terminal, if input and output are one that can move its cursor.
    pub fn new() -> Self {
        let is_interactive = stdin().is_terminal() && stdout().is_terminal() && crate::browse::can_draw();
        let interactive = is_interactive.then(InteractiveConsole::start).and_then(Result::ok);
        interactive.map_or_else(
            || Self::Plain(Mutex::new(InputLines::from_stdin())),
            |console| Self::Interactive(Box::new(console)),
        )
    }

    /// Whether a person types and sees the replies.
    pub fn is_interactive(&self) -> bool {
        matches!(self, Self::Interactive(_))
    }

    /// The next line; `None` at the end of the input. Cancel-safe.
    pub async fn next_line(&self) -> Option<Line> {
        match self {
            Self::Plain(lines) => lines.lock().await.next().await,
            Self::Interactive(console) => loop {
                let typed = console.lines.borrow_mut().pop_front();
                match typed {
                    Some(line) => return line.map(Ok),
                    None => console.handle_events(1).await,
                }
            },
        }
    }

    /// Handles keys while no line can be taken. Never returns; cancel-safe.
    pub async fn edit(&self) {
        match self {
            Self::Plain(_) => std::future::pending().await,
            Self::Interactive(console) => console.handle_events(usize::MAX).await,
        }
    }

    /// Waits until the user begins or ends to type a line, and returns which. Cancel-safe.
    pub async fn typing_changed(&self) -> bool {
        match self {
            Self::Plain(_) => std::future::pending().await,
            Self::Interactive(console) => {
                console.typing_changed.notified().await;
                console.is_typing.get()
            }
        }
    }

    /// Sets what precedes the line that is typed.
    pub fn set_prompt(&self, prompt: &str) {
        if let Self::Interactive(console) = self
            && console.prompt.replace(prompt.to_owned()) != prompt
        {
            // If the terminal is gone, the next event is the last one.
            let _ = console.draw("");
        }
    }

    /// Prints a message: above the line that is typed, wrapped between words.
    pub fn print(&self, message: &str) -> Result<(), CommandError> {
        match self {
            Self::Plain(_) => print_stdout(&format!("{message}\n")),
            Self::Interactive(console) => console.print(message),
        }
    }
}

impl InteractiveConsole {
    fn start() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        // Without it, the line ends of pasted text would send its lines.
        let _ = execute!(stdout(), EnableBracketedPaste);
        let (sender, events) = unbounded_channel();
        // Not every system can poll a terminal together with sockets.
        std::thread::Builder::new().name("keys".into()).spawn(move || {
            while let Ok(event) = event::read()
                && sender.send(event).is_ok()
            {}
        })?;
        let console = Self {
            editor: RefCell::default(),
            events: Mutex::new(events),
            lines: RefCell::default(),
            prompt: RefCell::new(PROMPT.to_owned()),
            is_typing: Cell::new(false),
            typing_changed: Notify::new(),
        };
        console.draw("")?;
        Ok(console)
    }

    async fn handle_events(&self, count: usize) {
        for _ in 0..count {
            let event = self.events.lock().await.recv().await;
            let action = match event {
                Some(Event::Key(key)) => self.editor.borrow_mut().handle_key(key),
                Some(Event::Paste(text)) => {
                    self.editor.borrow_mut().paste(&text);
                    EditAction::Edited
                }
                Some(Event::Resize(..)) => EditAction::Edited,
                Some(_) => EditAction::Ignored,
                // The terminal is gone.
                None => EditAction::Leave,
            };
            match action {
                EditAction::Submit(line) => self.lines.borrow_mut().push_back(Some(line)),
                EditAction::Leave => self.lines.borrow_mut().push_back(None),
                EditAction::Edited => {}
                EditAction::Ignored => continue,
            }
            let is_typing = self.editor.borrow().is_message();
            if self.is_typing.replace(is_typing) != is_typing {
                self.typing_changed.notify_one();
            }
            // If the terminal is gone, the next event is the last one.
            let _ = self.draw("");
        }
    }

    fn print(&self, message: &str) -> Result<(), CommandError> {
        let terminal = Terminal::of_stdout();
        let style = if message.starts_with("--") { Style::Dim } else { Style::Plain };
        let lines = hanging(message, terminal.width.unwrap_or(80));
        let lines: Vec<_> = lines.iter().map(|line| terminal.paint(style, line)).collect();
        let lines = lines.join("\r\n");
        self.draw(&format!("{lines}\r\n")).map_err(|error| CommandError::failed(format!("cannot print: {error}")))
    }

    /// Replaces the line that is typed by this text, and draws it again below.
    fn draw(&self, above: &str) -> io::Result<()> {
        let width = Terminal::of_stdout().width.unwrap_or(80);
        // On a narrow terminal the line matters more.
        let prompt = self.prompt.borrow();
        let prompt = if columns(&prompt) * 2 > width { PROMPT } else { prompt.as_str() };
        let (line, column) = self.editor.borrow().visible(width.saturating_sub(columns(prompt) + 1));
        let column = columns(prompt) + column;
        // To the start of the line, erase it; afterwards move the cursor to its column.
        let text = format!("\r\x1b[2K{above}\r{prompt}{line}\r\x1b[{column}C");
        io::Write::write_all(&mut stdout(), text.as_bytes())?;
        io::Write::flush(&mut stdout())
    }
}

impl Drop for InteractiveConsole {
    fn drop(&mut self) {
        let _ = execute!(stdout(), DisableBracketedPaste);
        let _ = io::Write::write_all(&mut stdout(), b"\r\x1b[2K");
        let _ = io::Write::flush(&mut stdout());
        let _ = terminal::disable_raw_mode();
    }
}

/// A message in lines of at most this width; all but the first are indented.
fn hanging(message: &str, width: usize) -> Vec<String> {
    let lines = wrap(message, width);
    let [first, ..] = &lines[..] else { return lines };
    let rest = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let rest = rest.strip_prefix(first.as_str()).unwrap_or_default().trim_start().to_owned();
    let mut all = vec![first.clone()];
    if !rest.is_empty() {
        let more = wrap(&rest, width.saturating_sub(INDENT.len()).max(1));
        all.extend(more.into_iter().map(|line| format!("{INDENT}{line}")));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_wrapped_between_words_with_a_hanging_indent() {
        assert_eq!(hanging("alice: hello", 20), ["alice: hello"]);
        assert_eq!(hanging("alice: the quick brown fox jumps", 14), ["alice: the", "  quick brown", "  fox jumps"]);
        assert_eq!(hanging("x".repeat(25).as_str(), 10), ["xxxxxxxxxx", "  xxxxxxxx", "  xxxxxxx"]);
        assert_eq!(hanging("", 10), [""]);
    }
}
