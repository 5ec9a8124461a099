//! `rallypoint history`: what was listed when.

use crate::{
    config::{Override, Sources},
    error::CommandError,
    serve::data_dir,
};
use jiff::Timestamp;
use rallypoint_history::{HistoryError, HistoryReader, Resolution, Subject, UnixSeconds, export};
use rallypoint_lobby_proto::PublicId;
use rallypoint_wire::lobby::LobbyId;
use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
};

/// The name of the file in the data folder.
pub const FILE: &str = "history.db";

/// How much is read at once: less than the most points that there can be, at a point per minute.
const PIECE: UnixSeconds = 30 * 86_400;

/// How many subjects are asked for at once.
const SUBJECTS: usize = 1_000;

/// What was listed when: the history that rallypoint serve keeps
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

/// Print the history as CSV or JSON, also while the lobby runs
///
/// Without --server, --lobby or --all, it is that of all lobbies together.
#[derive(clap::Args)]
#[command(after_help = MORE)]
struct ExportArgs {
    /// The data folder of the lobby; without it, the one that rallypoint serve would use
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// One server, by its public ID: 32 hexadecimal digits, as in the address of its page
    #[arg(long, value_name = "ID", conflicts_with_all = ["lobby", "all"])]
    server: Option<PublicId>,

    /// One lobby: a UUID, or gg2, pygg2, vanguard, rooms, bloodmasters
    #[arg(long, value_name = "UUID|NAME", conflicts_with = "all", value_parser = rallypoint_query::lobby_names::find)]
    lobby: Option<LobbyId>,

    /// Everything: the total, every lobby and every server
    #[arg(long)]
    all: bool,

    /// From when on (UTC): 2026-11-16, 2026-11-16T12:00:00Z, or seconds since 1970 [default: the beginning]
    #[arg(long, value_name = "TIME", value_parser = export::parse_time)]
    from: Option<UnixSeconds>,

    /// Until when [default: now]
    #[arg(long, value_name = "TIME", value_parser = export::parse_time)]
    to: Option<UnixSeconds>,

    /// How fine
    ///
    /// auto: minutes for up to two days, hours for up to 40, days for longer. Minutes and hours are not kept for ever.
    #[arg(long, value_name = "STEP", default_value = "auto", value_parser = ["auto", "minute", "hour", "day"])]
    resolution: String,

    /// csv, or json: an object per line
    #[arg(long, value_name = "FORMAT", default_value = "csv", value_parser = ["csv", "json"])]
    format: String,
}

const MORE: &str = "\
Examples:
  rallypoint history export --from 2026-11-01 --resolution day
  rallypoint history export --server 0123456789abcdef0123456789abcdef
  rallypoint history export --all --resolution hour > history.csv

Exit codes:
  0  printed
  1  there is no history of that, or it cannot be read
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
    let folder = data_dir::choose(&sources.load()?.settings, &sources.variables)?;
    let handle = HistoryReader::open(&folder.join(FILE)).map_err(CommandError::failed)?;
    let mut out = BufWriter::new(io::stdout().lock());
    match args.export(&handle, &mut out).and_then(|()| Ok(out.flush()?)) {
        // Whoever reads has read enough: `| head`.
        Err(Stopped::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Stopped::Output(error)) => Err(CommandError::failed(error)),
        Err(Stopped::History(error)) => Err(CommandError::failed(error)),
        Err(Stopped::Unknown) => Err(CommandError::failed(
            "there is no history of that: servers and lobbies get one when they were listed for five minutes",
        )),
        Ok(()) => Ok(()),
    }
}

/// Why an export is not complete.
enum Stopped {
    Output(io::Error),
    History(HistoryError),
    Unknown,
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<HistoryError> for Stopped {
    fn from(error: HistoryError) -> Self {
        Self::History(error)
    }
}

impl ExportArgs {
    fn export(&self, handle: &HistoryReader, out: &mut dyn Write) -> Result<(), Stopped> {
        let lobby = self.lobby.map(Subject::Lobby);
        let one = self.server.map(Subject::Server).or(lobby).unwrap_or(Subject::Total);
        if !self.all {
            // Nothing is printed about what nobody knows.
            handle.summary(&one, Timestamp::now().as_second())?.ok_or(Stopped::Unknown)?;
        }
        if self.format == "csv" {
            out.write_all(export::CSV_HEADING.as_bytes())?;
        }
        if !self.all {
            return self.export_subject(handle, &one, out);
        }
        let mut subjects = handle.subjects(None, SUBJECTS)?;
        while let Some(last) = subjects.last().copied() {
            for subject in &subjects {
                match self.export_subject(handle, subject, out) {
                    // It was forgotten meanwhile.
                    Err(Stopped::Unknown) => {}
                    result => result?,
                }
            }
            subjects = handle.subjects(Some(&last), SUBJECTS)?;
        }
        Ok(())
    }

    fn export_subject(&self, handle: &HistoryReader, subject: &Subject, out: &mut dyn Write) -> Result<(), Stopped> {
        let now = Timestamp::now().as_second();
        let summary = handle.summary(subject, now)?.ok_or(Stopped::Unknown)?;
        let to = self.to.unwrap_or(now).min(now);
        let from = self.from.unwrap_or(summary.first).max(summary.first);
        let mut resolution =
            Resolution::NAMES.iter().find(|(name, _)| *name == self.resolution).map_or(Resolution::Auto, |(_, it)| *it);
        if resolution == Resolution::Auto && to - from > PIECE {
            resolution = if to - from > 40 * 86_400 { Resolution::Day } else { Resolution::Hour };
        }
        // Whole days, so that no step is cut in two.
        let mut start = from.min(to);
        while start < to {
            let end = ((start + PIECE).div_euclid(86_400) * 86_400).min(to);
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
