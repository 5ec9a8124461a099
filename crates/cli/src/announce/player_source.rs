//! The current number of players of an announced server: printed by a command, or as the server answers to queries.

use rallypoint_announce::Occupancy;
use rallypoint_query::{
    ProbeError, ServerAddress, SingleProbe, SingleProbeConfig, Target,
    proto::{Probe, ProbeOutcome, Protocol},
    resolve,
};
use std::{
    fmt, io,
    num::NonZeroU16,
    process::{ExitStatus, Stdio},
    str::FromStr,
    time::Duration,
};
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
    sync::mpsc,
    time::timeout,
};

/// Interval between two counts: half of that between registrations, so that none is older.
const INTERVAL: Duration = Duration::from_secs(15);

/// Time limit for the command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum length of the output of a command, in bytes.
const MAX_OUTPUT: usize = 64 * 1_024;

/// Maximum length of the quoted output of a command, in characters.
const MAX_QUOTED: usize = 60;

/// Where the number of players comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlayerSource {
    /// A command that prints `PLAYERS`, `PLAYERS/SLOTS` or `PLAYERS/SLOTS/BOTS`.
    Command(String),
    /// A server that answers queries.
    Server(ServerAddress, Protocol),
}

/// A count. What is `None` stays as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerCount {
    players: u16,
    slots: Option<u16>,
    bots: Option<u16>,
}

impl PlayerCount {
    /// This count with everything else as it was given.
    pub fn apply(self, given: Occupancy) -> Occupancy {
        let Self { players, slots, bots } = self;
        Occupancy { players, slots: slots.unwrap_or(given.slots), bots: bots.unwrap_or(given.bots), ..given }
    }
}

impl PlayerSource {
    /// The current count, or why there is none.
    pub async fn count(&self) -> Result<PlayerCount, String> {
        match self {
            Self::Command(command) => run(command).await,
            Self::Server(server, protocol) => {
                query(server, *protocol).await.map_err(|error| format!("{server}: {error}"))
            }
        }
    }

    /// Counts repeatedly until the receiver is gone.
    pub async fn poll(self, counts: mpsc::Sender<Result<PlayerCount, String>>) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            if counts.send(self.count().await).await.is_err() {
                return;
            }
        }
    }
}

async fn run(command: &str) -> Result<PlayerCount, String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut group = ProcessGroup::spawn(&mut shell).map_err(|error| format!("cannot run a shell: {error}"))?;
    let (output, status) = timeout(COMMAND_TIMEOUT, group.output())
        .await
        .map_err(|_| format!("the command did not end within {} s", COMMAND_TIMEOUT.as_secs()))?
        .map_err(|error| format!("the output of the command cannot be read: {error}"))?;
    if output.len() > MAX_OUTPUT {
        return Err(format!("the command printed more than {} kB", MAX_OUTPUT / 1_024));
    }
    match status {
        Some(status) if !status.success() => Err(format!("the command failed ({status})")),
        _ => parse(&String::from_utf8_lossy(&output)),
    }
}

/// A command and everything that it has started, all of which is killed when this value is dropped.
struct ProcessGroup(Child);

impl ProcessGroup {
    fn spawn(command: &mut Command) -> io::Result<Self> {
        #[cfg(unix)]
        command.process_group(0);
        command.kill_on_drop(true).spawn().map(Self)
    }

    /// Reads the standard output up to its end, and then waits for the command. An output that is too long is cut, and not
    /// waited for.
    async fn output(&mut self) -> io::Result<(Vec<u8>, Option<ExitStatus>)> {
        let mut output = Vec::new();
        if let Some(stdout) = self.0.stdout.take() {
            stdout.take(MAX_OUTPUT as u64 + 1).read_to_end(&mut output).await?;
        }
        match output.len() > MAX_OUTPUT {
            true => Ok((output, None)),
            false => Ok((output, Some(self.0.wait().await?))),
        }
    }
}

#[cfg(unix)]
impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // The ID of a command that has ended could be that of another group by now, unless a member of its group still runs.
        let id = self.0.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        if let Some(group) = id {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

fn parse(output: &str) -> Result<PlayerCount, String> {
    let first = output.lines().next().unwrap_or_default().trim();
    let unexpected = || {
        let quoted: String = first.chars().take(MAX_QUOTED).collect();
        format!("expected a number of players such as 3 or 3/24, but the command printed {quoted:?}")
    };
    let mut numbers = first.split('/').map(|number| number.trim().parse::<u16>());
    let mut next = || numbers.next().transpose().map_err(|_| unexpected());
    let count = PlayerCount { players: next()?.ok_or_else(unexpected)?, slots: next()?, bots: next()? };
    if numbers.next().is_some() { Err(unexpected()) } else { Ok(count) }
}

async fn query(server: &ServerAddress, protocol: Protocol) -> Result<PlayerCount, ProbeError> {
    let port = server.port.map_or(protocol.default_port(), NonZeroU16::get);
    let config = SingleProbeConfig::default();
    let mut failure = ProbeError::TimedOut(config.deadline);
    for addr in resolve(&server.host, port, None).await? {
        let probe = Probe::new(addr, protocol.info());
        let outcome = async { SingleProbe::connect(probe, &config).await?.run().await };
        match outcome.await {
            Ok(ProbeOutcome::Answered(reply)) => {
                let info = reply.info;
                let players =
                    info.players.ok_or_else(|| ProbeError::Malformed("it has no number of players".into()))?;
                return Ok(PlayerCount { players, slots: info.max_players, bots: info.bots });
            }
            Ok(ProbeOutcome::Refused) => failure = ProbeError::Refused,
            Ok(_) => {}
            Err(error) => failure = ProbeError::NoRoute(error.to_string()),
        }
    }
    Err(failure)
}

impl FromStr for PlayerSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_url =
            text.split_once("://").is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphanumeric()));
        if !is_url {
            let command = text.trim();
            let expected = "expected a command, or a server such as session://127.0.0.1:45555";
            return if command.is_empty() { Err(expected.into()) } else { Ok(Self::Command(command.into())) };
        }
        match text.parse::<Target>().map_err(|error| error.to_string())? {
            Target::Server(server @ ServerAddress { protocol: Some(protocol), .. }) => {
                Ok(Self::Server(server, protocol))
            }
            _ => Err("expected a server such as session://127.0.0.1:45555 or bloodmasters://127.0.0.1".into()),
        }
    }
}

impl fmt::Display for PlayerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => f.write_str(command),
            Self::Server(server, _) => server.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_command_or_a_server() {
        assert_eq!("wc -l < players".parse(), Ok(PlayerSource::Command("wc -l < players".into())));
        let Ok(PlayerSource::Server(server, Protocol::Session)) = "session://localhost:7".parse() else { panic!() };
        assert_eq!(server.to_string(), "session://localhost:7");
        for wrong in ["", " ", "lobby://localhost", "https://localhost/", "ftp://localhost"] {
            assert!(wrong.parse::<PlayerSource>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_output_of_a_command_is_up_to_three_numbers() {
        let count = |players, slots, bots| Ok(PlayerCount { players, slots, bots });
        assert_eq!(parse("3\n"), count(3, None, None));
        assert_eq!(parse(" 3/24 \nmore"), count(3, Some(24), None));
        assert_eq!(parse("3 / 24 / 2"), count(3, Some(24), Some(2)));
        for wrong in ["", "three", "-1", "3/", "3/24/2/1", "70000"] {
            assert!(parse(wrong).unwrap_err().contains("such as 3 or 3/24"), "{wrong}");
        }
        let given = Occupancy { slots: 24, players: 1, bots: 5, password: true };
        let applied = PlayerCount { players: 3, slots: None, bots: Some(0) }.apply(given);
        assert_eq!(applied, Occupancy { slots: 24, players: 3, bots: 0, password: true });
    }

    #[tokio::test]
    async fn a_command_that_fails_is_reported() {
        assert_eq!(run("echo 7").await, Ok(PlayerCount { players: 7, slots: None, bots: None }));
        assert!(run("exit 3").await.unwrap_err().contains("exit status: 3"));
        assert_eq!(run("yes").await, Err("the command printed more than 64 kB".into()));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn what_a_command_has_started_ends_with_it() {
        let (mut reader, writer) = tokio::net::UnixStream::pair().unwrap();
        let writer = std::os::fd::OwnedFd::from(writer.into_std().unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 1000 & sleep 1000"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer);
        let group = ProcessGroup::spawn(&mut shell).unwrap();
        // The command line keeps an end of the connection, too.
        drop(shell);
        drop(group);
        // The connection ends with the last process that has the other end open.
        assert_eq!(reader.read(&mut [0]).await.unwrap(), 0);
    }
}
