//! `rallypoint history`: exports the recorded history.

use crate::{
    config::{Override, Sources},
    error::CommandError,
    list_arg,
    serve::data_dir,
};
use jiff::Timestamp;
use rallypoint_history::{HistoryError, HistoryReader, Resolution, Subject, UnixSeconds, export};
use rallypoint_lobby_proto::PublicId;
use rallypoint_query::list_names;
use rallypoint_wire::lobby::ListId;
use std::{
    fs,
    io::{self, BufWriter, Write},
    path::PathBuf,
};

/// Name of the database in the data directory.
pub const FILE: &str = "history.db";

/// Period read at once: with one sample per minute it stays below the maximum number of points.
const CHUNK: UnixSeconds = 30 * 86_400;

/// Number of subjects fetched at once.
const SUBJECT_PAGE: usize = 1_000;

/// Export the history recorded by rallypoint serve
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Export(ExportArgs),
}

/// Print the history as CSV or JSON, also while the lobby is running
///
/// Without --server, --list or --all: the totals of all lists.
#[derive(clap::Args)]
#[command(after_help = MORE)]
struct ExportArgs {
    /// Data directory of the lobby [default: that of rallypoint serve]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Public ID of one server: 32 hexadecimal digits, as in the URL of its page
    #[arg(long, value_name = "ID", conflicts_with_all = ["list", "all"])]
    server: Option<PublicId>,

    #[arg(long, value_name = "UUID|NAME", conflicts_with = "all", value_parser = list_names::find)]
    #[arg(help = list_arg::help("One list", ""))]
    list: Option<ListId>,

    /// Totals, every list and every server
    #[arg(long)]
    all: bool,

    /// Start (UTC): 2026-11-16, 2026-11-16T12:00:00Z, or seconds since 1970 [default: the oldest sample]
    #[arg(long, value_name = "TIME", value_parser = export::parse_time)]
    from: Option<UnixSeconds>,

    /// End [default: now]
    #[arg(long, value_name = "TIME", value_parser = export::parse_time)]
    to: Option<UnixSeconds>,

    /// Interval between rows
    ///
    /// auto: minutes for up to two days, hours for up to 40 days, days for longer periods. Samples by minute and hour are
    /// deleted after some time.
    #[arg(long, value_name = "STEP", default_value = "auto", value_parser = ["auto", "minute", "hour", "day"])]
    resolution: String,

    /// Output format; json prints one object per line
    #[arg(long, value_name = "FORMAT", default_value = "csv", value_parser = ["csv", "json"])]
    format: String,
}

const MORE: &str = "\
Examples:
  rallypoint history export --from 2026-11-01 --resolution day
  rallypoint history export --server 0123456789abcdef0123456789abcdef
  rallypoint history export --all --resolution hour > history.csv

Exit codes:
  0  success
  1  there is no such history, or it cannot be read
  2  wrong usage";

pub fn run(args: &Args) -> Result<(), CommandError> {
    let Verb::Export(args) = &args.verb;
    if args.from.zip(args.to).is_some_and(|(from, to)| from > to) {
        return Err(CommandError::Usage("--from is later than --to".into()));
    }
    let mut sources = Sources::new(None);
    if let Some(dir) = &args.data_dir {
        let value = dir.display().to_string();
        sources.flags.push(Override { label: "--data-dir".into(), path: "data_dir".into(), value });
    }
    let directory = data_dir::choose(&sources.load()?.settings, &sources.variables)?;
    let file = directory.join(FILE);
    // Other users of the machine cannot see whether there is one.
    if let Err(error) = fs::metadata(&file)
        && error.kind() == io::ErrorKind::PermissionDenied
    {
        return Err(CommandError::failed(format!(
            "cannot read {}: permission denied; run this as the user of the lobby",
            file.display()
        )));
    }
    let handle = HistoryReader::open(&file).map_err(CommandError::failed)?;
    let mut out = BufWriter::new(io::stdout().lock());
    match args.export(&handle, &mut out).and_then(|()| Ok(out.flush()?)) {
        // The reader has closed the pipe: `| head`.
        Err(ExportError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(ExportError::Output(error)) => Err(CommandError::failed(error)),
        Err(ExportError::History(error)) => Err(CommandError::failed(error)),
        Err(ExportError::Unknown) => Err(CommandError::failed(
            "no history of that server or list: recording starts after five minutes in the list",
        )),
        Ok(()) => Ok(()),
    }
}

/// Why an export is incomplete.
enum ExportError {
    Output(io::Error),
    History(HistoryError),
    Unknown,
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<HistoryError> for ExportError {
    fn from(error: HistoryError) -> Self {
        Self::History(error)
    }
}

impl ExportArgs {
    fn export(&self, handle: &HistoryReader, out: &mut dyn Write) -> Result<(), ExportError> {
        let list = self.list.map(Subject::List);
        let one = self.server.map(Subject::Server).or(list).unwrap_or(Subject::Total);
        if !self.all {
            // Fails before anything is printed if the subject is unknown.
            handle.summary(&one, Timestamp::now().as_second())?.ok_or(ExportError::Unknown)?;
        }
        if self.format == "csv" {
            out.write_all(export::CSV_HEADING.as_bytes())?;
        }
        if !self.all {
            return self.export_subject(handle, &one, out);
        }
        let mut subjects = handle.subjects(None, SUBJECT_PAGE)?;
        while let Some(last) = subjects.last().copied() {
            for subject in &subjects {
                match self.export_subject(handle, subject, out) {
                    // It was deleted meanwhile.
                    Err(ExportError::Unknown) => {}
                    result => result?,
                }
            }
            subjects = handle.subjects(Some(&last), SUBJECT_PAGE)?;
        }
        Ok(())
    }

    fn export_subject(
        &self,
        handle: &HistoryReader,
        subject: &Subject,
        out: &mut dyn Write,
    ) -> Result<(), ExportError> {
        let now = Timestamp::now().as_second();
        let summary = handle.summary(subject, now)?.ok_or(ExportError::Unknown)?;
        let to = self.to.unwrap_or(now).min(now);
        let from = self.from.unwrap_or(summary.first).max(summary.first);
        let mut resolution =
            Resolution::NAMES.iter().find(|(name, _)| *name == self.resolution).map_or(Resolution::Auto, |(_, it)| *it);
        if resolution == Resolution::Auto && to - from > CHUNK {
            resolution = if to - from > 40 * 86_400 { Resolution::Day } else { Resolution::Hour };
        }
        // Whole days, so that no interval is split.
        let mut start = from.min(to);
        while start < to {
            let end = ((start + CHUNK).div_euclid(86_400) * 86_400).min(to);
            let series = handle.series(subject, start..end, resolution)?;
            if self.format == "csv" {
                export::csv(out, subject, &series)?;
            } else {
                export::json(out, subject, Some(&summary), &series)?;
            }
            start = end;
        }
        Ok(())
    }
}
