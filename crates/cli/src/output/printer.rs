//! Prints the results of a scan in the requested format.

use super::{
    Format, csv, details, gamedig, json,
    progress::Progress,
    server_cells,
    table::{Cell, Column, Table},
    terminal::{Style, Terminal},
};
use crate::{error::CommandError, exit::Exit, stdio::print_stderr};
use rallypoint_query::ScannedServer;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

/// Prints results: with the next [`flush`](Self::flush) where the format allows, otherwise at the end.
#[derive(Debug)]
pub struct Printer {
    format: Format,
    shape: Shape,
    out: BufWriter<Stdout>,
    /// Buffer for a line of JSON, so that it is written in one piece.
    line: Vec<u8>,
    terminal: Terminal,
    /// Whether JSON documents are indented: for people, not for programs.
    is_indented: bool,
    /// The rows of the table, each with the index of its target, by which they are sorted.
    rows: Vec<(usize, Vec<Cell>)>,
    servers: usize,
    failed: Vec<FailedTarget>,
    lists: Vec<ListNote>,
    /// Messages for standard error that wait for the end of the document, which is on the same terminal.
    delayed: Vec<String>,
    /// Whether gamedig's format is one object: there is one target.
    is_single: bool,
    pub progress: Progress,
}

/// A target without a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedTarget {
    /// The target as the user named it.
    pub target: String,
    /// Address that the error is about.
    pub address: Option<std::net::SocketAddr>,
    /// Identifier of the error, for programs.
    pub error: &'static str,
    /// Description of the error.
    pub message: String,
}

/// How servers are shown in the text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One line each.
    Table,
    /// A block of lines each.
    Details,
}

/// A list that was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListNote {
    /// The list as the user named it.
    pub target: String,
    /// Address that the list came from.
    pub address: std::net::SocketAddr,
    /// Number of servers in the list.
    pub servers: usize,
    /// Number of invalid entries.
    pub malformed: usize,
    /// Time that connecting took, in milliseconds.
    pub connect_ms: f64,
    /// The copy that it was read from, if the lobby did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyNote>,
}

/// A copy of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CopyNote {
    /// The mirror.
    pub mirror: String,
    /// The age of the copy, in seconds.
    pub age_s: u64,
}

const COLUMNS: [Column; 9] = [
    Column { title: "NAME", right: false, least: 8, preferred: 18, drop: 0, if_different: false },
    Column { title: "PLAYERS", right: true, least: 7, preferred: 7, drop: 1, if_different: false },
    Column { title: "MAP", right: false, least: 8, preferred: 12, drop: 3, if_different: false },
    Column { title: "GAME", right: false, least: 6, preferred: 8, drop: 4, if_different: false },
    Column { title: "LIST", right: false, least: 4, preferred: 12, drop: 5, if_different: true },
    Column { title: "PING", right: true, least: 7, preferred: 7, drop: 2, if_different: false },
    // A truncated address is useless: the longest IPv4 address has room in a terminal of 40 columns.
    Column { title: "ADDRESS", right: false, least: 21, preferred: 21, drop: 0, if_different: false },
    Column { title: "PROTO", right: false, least: 3, preferred: 3, drop: 6, if_different: false },
    // The longest IPv6 address.
    Column { title: "ALSO AT", right: false, least: 47, preferred: 47, drop: 7, if_different: false },
];

impl Printer {
    /// `is_single`: whether there is exactly one target, and it is a server.
    pub fn new(format: Format, shape: Shape, is_single: bool) -> Self {
        Self {
            format,
            shape,
            out: BufWriter::with_capacity(64 << 10, io::stdout()),
            line: Vec::new(),
            terminal: Terminal::of_stdout(),
            is_indented: io::stdout().is_terminal(),
            rows: Vec::new(),
            servers: 0,
            failed: Vec::new(),
            lists: Vec::new(),
            delayed: Vec::new(),
            is_single,
            progress: Progress::new(),
        }
    }

    /// Whether the output is for people.
    pub const fn is_text(&self) -> bool {
        matches!(self.format, Format::Text)
    }

    /// Prints what comes before all results.
    pub fn begin(&mut self) -> io::Result<()> {
        match self.format {
            Format::Json => self.write("{\"servers\":["),
            Format::Gamedig if !self.is_single => self.write("["),
            Format::Csv => self.line(&csv::header()),
            _ => Ok(()),
        }
    }

    /// Prints a server. A table lists servers in the order of their targets, whatever the order of arrival.
    pub fn server(&mut self, target_index: usize, record: &ScannedServer) -> io::Result<()> {
        self.servers += 1;
        match self.format {
            Format::Text if self.shape == Shape::Table => {
                self.rows.push((target_index, row(record)));
                Ok(())
            }
            Format::Text => {
                let gap = if self.servers > 1 { "\n" } else { "" };
                let text = gap.to_owned() + &details::server(record, self.terminal);
                self.write(&text)
            }
            Format::Json => self.item(self.servers, &json::server(record)),
            Format::Jsonl => self.object(&Typed { r#type: "server", object: json::server(record) }),
            Format::Csv => self.line(&csv::server(record)),
            Format::Gamedig => self.gamedig(&gamedig::server(record)),
            Format::GamedigLines => self.object(&gamedig::server(record)),
        }
    }

    /// Prints a target that gave no answer: on standard error, and in formats for programs also on standard output.
    pub fn failed_target(&mut self, failed: FailedTarget) -> io::Result<()> {
        let FailedTarget { target, address, message, .. } = &failed;
        self.message(match address.map(|address| address.to_string()) {
            Some(address) if !target.ends_with(&address) => format!("{target} ({address}): {message}"),
            _ => format!("{target}: {message}"),
        })?;
        match self.format {
            Format::Text => Ok(()),
            Format::Json => {
                self.failed.push(failed);
                Ok(())
            }
            Format::Jsonl => self.object(&Typed { r#type: "error", object: failed }),
            Format::Csv => self.line(&csv::failed_target(&failed)),
            Format::Gamedig => {
                self.servers += 1;
                self.gamedig(&gamedig::failed_target(&failed))
            }
            Format::GamedigLines => self.object(&gamedig::failed_target(&failed)),
        }
    }

    /// Prints a message on standard error. A document on the same terminal is not interrupted.
    pub fn message(&mut self, message: String) -> io::Result<()> {
        let is_same_terminal = self.is_indented && io::stderr().is_terminal();
        match self.format {
            Format::Json | Format::Gamedig if is_same_terminal => self.delayed.push(message),
            _ => {
                self.progress.clear();
                // Standard output and standard error may be the same terminal.
                if is_same_terminal {
                    self.flush()?;
                }
                print_stderr(message);
            }
        }
        Ok(())
    }

    /// Prints a list that was read.
    pub fn list(&mut self, list: ListNote) -> io::Result<()> {
        match self.format {
            Format::Json => {
                self.lists.push(list);
                Ok(())
            }
            Format::Jsonl => self.object(&Typed { r#type: "list", object: list }),
            _ => Ok(()),
        }
    }

    /// Prints what is left.
    pub fn end(&mut self) -> io::Result<()> {
        self.progress.clear();
        match self.format {
            Format::Text if !self.rows.is_empty() => {
                let mut table = Table::new(&COLUMNS);
                let mut rows = std::mem::take(&mut self.rows);
                rows.sort_by_key(|(target_index, _)| *target_index);
                let mut rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
                mark_unknown(&mut rows);
                rows.into_iter().for_each(|row| table.push(row));
                self.write(&table.render(self.terminal))?;
            }
            Format::Json => {
                self.write("\n],\"errors\":[")?;
                for (n, failed) in std::mem::take(&mut self.failed).iter().enumerate() {
                    self.item(n + 1, failed)?;
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
        self.flush()?;
        self.delayed.drain(..).for_each(print_stderr);
        Ok(())
    }

    /// Writes everything that was printed so far.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Prints an item of an array in a document.
    fn item(&mut self, number: usize, value: &impl Serialize) -> io::Result<()> {
        self.write(if number > 1 { ",\n" } else { "\n" })?;
        let text = if self.is_indented { serde_json::to_string_pretty(value)? } else { serde_json::to_string(value)? };
        self.write(&text)
    }

    fn gamedig(&mut self, value: &Value) -> io::Result<()> {
        if !self.is_single {
            return self.item(self.servers, value);
        }
        let text = if self.is_indented { serde_json::to_string_pretty(value)? } else { serde_json::to_string(value)? };
        self.line(&text)
    }

    /// Prints an object on a line of its own.
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

/// Prints the failure of a whole command in formats for programs. The caller prints it for people.
pub fn print_command_error(format: Format, failure: CommandError) -> CommandError {
    let (code, why) = match &failure {
        CommandError::Usage(why) => ("usage", why),
        CommandError::Failed(why) | CommandError::NotSaved(why) => ("local", why),
    };
    let mut error = serde_json::json!({ "target": null, "address": null, "error": code, "message": why });
    let document = match format {
        Format::Json => serde_json::json!({ "servers": [], "errors": [error] }),
        Format::Jsonl => {
            error["type"] = "error".into();
            error
        }
        Format::Gamedig | Format::GamedigLines => serde_json::json!({ "error": why, "raw": error }),
        Format::Text | Format::Csv => return failure,
    };
    let _ = writeln!(io::stdout(), "{document}");
    failure
}

/// The exit code of a command whose output may have failed.
pub fn exit_of_output(result: io::Result<Exit>) -> Result<Exit, CommandError> {
    match result {
        // The reader has closed the pipe, as `| head` does: it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Answered),
        result => result.map_err(|error| CommandError::failed(format!("cannot write the results: {error}"))),
    }
}

/// A JSON object with its type.
#[derive(Serialize)]
struct Typed<T> {
    r#type: &'static str,
    #[serde(flatten)]
    object: T,
}

/// Puts a dash into the empty cells of columns that others fill. Columns without any value stay empty, and are left out.
fn mark_unknown(rows: &mut [Vec<Cell>]) {
    for column in (0..COLUMNS.len()).filter(|column| COLUMNS[*column].title != "ALSO AT") {
        if rows.iter().any(|row| !row[column].text.is_empty()) {
            for row in rows.iter_mut().filter(|row| row[column].text.is_empty()) {
                row[column] = Cell { text: server_cells::UNKNOWN.into(), style: Style::Dim };
            }
        }
    }
}

/// The cells of a server in the table.
fn row(record: &ScannedServer) -> Vec<Cell> {
    let info = &record.info;
    let mark = if info.password == Some(true) { server_cells::PASSWORD_MARK } else { "" };
    // For a server that did not answer, an IPv4 address comes first, because it is easier to read.
    let v4 = record.endpoints.iter().find(|endpoint| endpoint.is_ipv4()).filter(|_| record.reply.is_none());
    let address = v4.copied().or(record.address);
    let others = record.endpoints.iter().filter(|other| Some(**other) != address).map(ToString::to_string);
    let transport = info.lobby.as_ref().map(|lobby| lobby.transport.as_str());
    vec![
        format!("{}{mark}", record.name()).into(),
        server_cells::players(info),
        info.map.as_deref().unwrap_or_default().trim().into(),
        record.game().unwrap_or_default().into(),
        record.list_label().unwrap_or_default().into(),
        server_cells::ping(record, details::ping),
        address.map(|address| address.to_string()).unwrap_or_default().into(),
        transport.unwrap_or_default().into(),
        others.collect::<Vec<_>>().join(" ").into(),
    ]
}
