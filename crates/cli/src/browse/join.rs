//! The command that joins a server.
//!
//! It is split into arguments before placeholders are filled in, and run without a shell. Only addresses, ports and keys of
//! rooms are filled in: no text from a server ever becomes part of a command.

use rallypoint_session::PublicKey;
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    process::Command,
    str::FromStr,
};

/// A command with placeholders: `game --connect {host} {port}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinCommand(Vec<String>);

/// The placeholders.
const PLACEHOLDERS: [&str; 3] = ["{host}", "{port}", "{address}"];

/// Stands for this very program, whatever else has that name.
const OWN: &str = "rallypoint";

impl JoinCommand {
    /// The command that joins a room of this program, if it is the server with that key.
    pub fn of_room(key: PublicKey) -> Self {
        Self([OWN, "join", "{address}", "--key", &key.to_string()].map(Into::into).into())
    }

    /// The program and its arguments, for a server.
    pub fn arguments(&self, to: SocketAddr) -> Vec<String> {
        let host = match to.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => ip.to_string(),
        };
        let put = |word: &String| {
            word.replace("{host}", &host)
                .replace("{port}", &to.port().to_string())
                .replace("{address}", &to.to_string())
        };
        self.0.iter().map(put).collect()
    }

    /// The command as it could be pasted into a shell.
    pub fn show(&self, to: SocketAddr) -> String {
        shown(&self.arguments(to))
    }

    /// Runs the command, and waits for its end.
    pub fn run(&self, to: SocketAddr) -> Result<(), String> {
        let words = self.arguments(to);
        let Some((program, arguments)) = words.split_first() else { return Err("the command is empty".into()) };
        let own = || std::env::current_exe().unwrap_or_else(|_| OWN.into());
        let file = if program == OWN { own() } else { program.into() };
        match Command::new(file).args(arguments).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{program} ended with {status}")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(format!("{program} was not found: see --join"))
            }
            Err(error) => Err(format!("cannot run {program}: {error}")),
        }
    }
}

impl FromStr for JoinCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = shlex::split(text).ok_or("a quotation mark is not closed")?;
        let Some(program) = words.first() else {
            return Err("expected a command such as: game --connect {host} {port}".into());
        };
        if PLACEHOLDERS.iter().any(|placeholder| program.contains(placeholder)) {
            return Err("the program has to come first, such as: game --connect {host} {port}".into());
        }
        let all = words.join(" ");
        if !PLACEHOLDERS.iter().any(|placeholder| all.contains(placeholder)) {
            return Err(format!("it has no placeholder for the address: use {}", PLACEHOLDERS.join(", ")));
        }
        Ok(Self(words))
    }
}

impl fmt::Display for JoinCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

fn shown(words: &[String]) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str, to: &str) -> Vec<String> {
        command.parse::<JoinCommand>().unwrap().arguments(to.parse().unwrap())
    }

    #[test]
    fn placeholders_are_filled_in_after_the_command_is_split() {
        assert_eq!(words("game -h {host} -p {port}", "192.0.2.1:7"), ["game", "-h", "192.0.2.1", "-p", "7"]);
        assert_eq!(words("'my game' --to={address}", "[2001:db8::1]:7"), ["my game", "--to=[2001:db8::1]:7"]);
        assert_eq!(words("game {host}:{port}", "[2001:db8::1%3]:7"), ["game", "2001:db8::1:7"]);
    }

    #[test]
    fn invalid_commands_are_rejected() {
        for (wrong, part) in [
            ("", "expected a command"),
            ("game 'x {host}", "quotation mark"),
            ("game --connect", "no placeholder"),
            ("{host} {port}", "has to come first"),
        ] {
            let error = wrong.parse::<JoinCommand>().unwrap_err();
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }

    #[test]
    fn commands_are_run_without_a_shell() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("out");
        let to = "192.0.2.1:7".parse().unwrap();
        let command: JoinCommand = format!("cp /dev/null '{}' ; touch {{host}}", file.display()).parse().unwrap();
        assert!(command.run(to).unwrap_err().starts_with("cp ended with"), "; is an argument like any other");
        let command: JoinCommand = "no-such-program {host}".parse().unwrap();
        assert_eq!(command.run(to), Err("no-such-program was not found: see --join".into()));
        assert_eq!(command.show(to), "no-such-program 192.0.2.1");
    }
}
