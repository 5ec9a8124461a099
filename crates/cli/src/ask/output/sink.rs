//! Where results go, in the form that was asked for.

use super::{
    Format, csv, details, gamedig,
    progress::Progress,
    record::{Missed, Record},
    table::{Cell, Column, Table},
    terminal::{Style, Terminal},
};
use crate::{ask::Exit, error::CommandError, stdio::print_stderr};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

/// Takes results and tells them: with the next [`flush`](Self::flush) where that is possible, otherwise at the end.
#[derive(Debug)]
pub struct Sink {
    format: Format,
    shape: Shape,
    out: BufWriter<Stdout>,
    /// Where a line of JSON is made, so that it goes out in one piece.
    line: Vec<u8>,
    terminal: Terminal,
    /// A document is easier to read with indents, and easier to process without.
    pretty: bool,
    /// The rows of the table, and what they are sorted by.
    rows: Vec<(usize, Vec<Cell>)>,
    servers: usize,
    missed: Vec<Missed>,
    lists: Vec<ListNote>,
    /// Whether gamedig's form is one object: one target was asked.
    is_single: bool,
    pub progress: Progress,
}

/// How servers are shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A line for each.
    Table,
    /// All about each.
    Details,
}

/// A list that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListNote {
    /// As a person named it.
    pub target: String,
    /// Who told it.
    pub address: std::net::SocketAddr,
    /// How many servers it has.
    pub servers: usize,
    /// How many more made no sense.
    pub malformed: usize,
    /// How long it took to connect.
    pub connect_ms: f64,
}

const COLUMNS: [Column; 8] = [
    Column { title: "NAME", right: false, least: 8, drop: 0 },
    Column { title: "PLAYERS", right: true, least: 7, drop: 1 },
    Column { title: "MAP", right: false, least: 8, drop: 3 },
    Column { title: "GAME", right: false, least: 6, drop: 4 },
    Column { title: "PING", right: true, least: 7, drop: 2 },
    // Whatever is cut off an address makes it useless: the longest of IPv4 has room in 40 columns.
    Column { title: "ADDRESS", right: false, least: 21, drop: 0 },
    Column { title: "PROTO", right: false, least: 3, drop: 5 },
    // The longest of IPv6.
    Column { title: "ALSO AT", right: false, least: 47, drop: 6 },
];

impl Sink {
    /// `is_single`: one server was asked for.
    pub fn new(format: Format, shape: Shape, is_single: bool) -> Self {
        Self {
            format,
            shape,
            out: BufWriter::with_capacity(64 << 10, io::stdout()),
            line: Vec::new(),
            terminal: Terminal::of_stdout(),
            pretty: io::stdout().is_terminal(),
            rows: Vec::new(),
            servers: 0,
            missed: Vec::new(),
            lists: Vec::new(),
            is_single,
            progress: Progress::new(),
        }
    }

    /// Something stands before everything else.
    pub fn begin(&mut self) -> io::Result<()> {
        match self.format {
            Format::Json => self.write("{\"servers\":["),
            Format::Gamedig if !self.is_single => self.write("["),
            Format::Csv => self.line(csv::HEADER),
            _ => Ok(()),
        }
    }

    /// Tells a server. A table has those of the first place first, however they come.
    pub fn server(&mut self, place: usize, record: &Record) -> io::Result<()> {
        self.servers += 1;
        match self.format {
            Format::Text if self.shape == Shape::Table => {
                self.rows.push((place, row(record)));
                Ok(())
            }
            Format::Text => {
                let gap = if self.servers > 1 { "\n" } else { "" };
                let text = gap.to_owned() + &details::server(record, self.terminal);
                self.write(&text)
            }
            Format::Json => self.item(self.servers, &record.view()),
            Format::Jsonl => self.object(&Typed { r#type: "server", of: record.view() }),
            Format::Csv => self.line(&csv::server(record)),
            Format::Gamedig => self.gamedig(&gamedig::server(record)),
            Format::GamedigLines => self.object(&gamedig::server(record)),
        }
    }

    /// Tells a target that gave no answer: on standard error, and where programs read.
    pub fn missed(&mut self, missed: Missed) -> io::Result<()> {
        self.progress.clear();
        if self.format == Format::Text {
            // Both may be the same terminal.
            self.flush()?;
        }
        let Missed { target, address, message, .. } = &missed;
        match address.map(|address| address.to_string()) {
            Some(address) if !target.ends_with(&address) => {
                print_stderr(format_args!("{target} ({address}): {message}"))
            }
            _ => print_stderr(format_args!("{target}: {message}")),
        }
        match self.format {
            Format::Text => Ok(()),
            Format::Json => {
                self.missed.push(missed);
                Ok(())
            }
            Format::Jsonl => self.object(&Typed { r#type: "error", of: missed }),
            Format::Csv => self.line(&csv::missed(&missed)),
            Format::Gamedig => {
                self.servers += 1;
                self.gamedig(&gamedig::missed(&missed))
            }
            Format::GamedigLines => self.object(&gamedig::missed(&missed)),
        }
    }

    /// Tells of a list that has arrived.
    pub fn list(&mut self, list: ListNote) -> io::Result<()> {
        match self.format {
            Format::Json => {
                self.lists.push(list);
                Ok(())
            }
            Format::Jsonl => self.object(&Typed { r#type: "list", of: list }),
            _ => Ok(()),
        }
    }

    /// Tells what is left to tell.
    pub fn end(&mut self) -> io::Result<()> {
        self.progress.clear();
        match self.format {
            Format::Text if !self.rows.is_empty() => {
                let (mut table, mut rows) = (Table::new(&COLUMNS), std::mem::take(&mut self.rows));
                rows.sort_by_key(|(place, _)| *place);
                rows.into_iter().for_each(|(_, row)| table.push(row));
                self.write(&table.render(self.terminal))?;
            }
            Format::Json => {
                self.write("\n],\"errors\":[")?;
                for (n, missed) in std::mem::take(&mut self.missed).iter().enumerate() {
                    self.item(n + 1, missed)?;
                }
                self.write(if self.lists.is_empty() { "]" } else { "],\"lists\":[" })?;
                let lists = std::mem::take(&mut self.lists);
                for (n, list) in lists.iter().enumerate() {
                    self.item(n + 1, list)?;
                }
                self.write(if lists.is_empty() { "}\n" } else { "]}\n" })?;
            }
            Format::Gamedig if !self.is_single => self.write("\n]\n")?,
            _ => {}
        }
        self.flush()
    }

    /// Whoever reads gets what was told so far.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// An item of a list in a document.
    fn item(&mut self, number: usize, value: &impl Serialize) -> io::Result<()> {
        self.write(if number > 1 { ",\n" } else { "\n" })?;
        let text = if self.pretty { serde_json::to_string_pretty(value)? } else { serde_json::to_string(value)? };
        self.write(&text)
    }

    fn gamedig(&mut self, value: &Value) -> io::Result<()> {
        if !self.is_single {
            return self.item(self.servers, value);
        }
        let text = if self.pretty { serde_json::to_string_pretty(value)? } else { serde_json::to_string(value)? };
        self.line(&text)
    }

    /// An object on a line of its own.
    fn object(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.progress.clear();
        self.line.clear();
        serde_json::to_writer(&mut self.line, value)?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.progress.clear();
        self.write(text)?;
        self.write("\n")
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }
}

/// The command has failed as a whole: programs want to read that, too. For people it is told elsewhere.
pub fn fail(format: Format, failure: CommandError) -> CommandError {
    let (code, why) = match &failure {
        CommandError::Usage(why) => ("usage", why),
        CommandError::Failed(why) | CommandError::NotSaved(why) => ("local", why),
    };
    let mut error = json!({ "target": null, "address": null, "error": code, "message": why });
    let told = match format {
        Format::Json => json!({ "servers": [], "errors": [error] }),
        Format::Jsonl => {
            error["type"] = "error".into();
            error
        }
        Format::Gamedig | Format::GamedigLines => json!({ "error": why, "raw": error }),
        Format::Text | Format::Csv => return failure,
    };
    let _ = writeln!(io::stdout(), "{told}");
    failure
}

/// What it means for a command that it could not tell something.
pub fn told(result: io::Result<Exit>) -> Result<Exit, CommandError> {
    match result {
        // Whoever reads has read enough: `| head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Answered),
        result => result.map_err(|error| CommandError::failed(format!("cannot write the results: {error}"))),
    }
}

/// An object that says what it is.
#[derive(Serialize)]
struct Typed<T> {
    r#type: &'static str,
    #[serde(flatten)]
    of: T,
}

fn row(record: &Record) -> Vec<Cell> {
    let info = &record.info;
    let ping = match (&record.answer, &record.trouble) {
        (Some(answer), _) => Cell { text: details::ping(answer.ping_ms), style: Style::of_ping(answer.ping_ms) },
        (None, Some(trouble)) => Cell { text: trouble.in_short().into(), style: Style::Bad },
        (None, None) => Cell::default(),
    };
    let lock = if info.password == Some(true) { "* " } else { "" };
    let full = info.max_players.is_some_and(|most| most > 0 && info.players >= Some(most));
    let style = match info.players {
        Some(1..) if !full => Style::Good,
        Some(1..) => Style::Fair,
        _ => Style::Dim,
    };
    // Of a server that was not asked, the address that is easier to read comes first.
    let v4 = record.endpoints.iter().find(|endpoint| endpoint.is_ipv4()).filter(|_| record.answer.is_none());
    let address = v4.copied().or(record.address);
    let others = record.endpoints.iter().filter(|other| Some(**other) != address).map(ToString::to_string);
    let transport = info.lobby.as_ref().map(|lobby| lobby.transport.as_str());
    vec![
        format!("{lock}{}", record.name()).into(),
        Cell { text: details::occupancy(info), style },
        info.map.as_deref().unwrap_or_default().into(),
        record.game().unwrap_or_default().into(),
        ping,
        address.map(|address| address.to_string()).unwrap_or_default().into(),
        transport.unwrap_or_default().into(),
        others.collect::<Vec<_>>().join(" ").into(),
    ]
}
