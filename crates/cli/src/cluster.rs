//! `rallypoint cluster`: shows the state of a cluster of lobbies.

use crate::{
    config::{Override, Sources},
    error::CommandError,
    runtime,
    stdio::print_stdout,
};
use rallypoint_cluster::{FORMAT, StoreClient, StoreStatus};
use std::{fmt::Write, path::PathBuf};

/// Show the state of a cluster: several lobbies with one list
///
/// Lobbies that are started with the same --cluster URL and the same secret share their list through Redis or Valkey.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "For examples and exit codes: rallypoint cluster --help")]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

const MORE: &str = "\
Examples:
  rallypoint cluster status
  rallypoint cluster status --cluster redis://store.example.org --json

Exit codes:
  0  the store answers and all nodes report
  1  the store cannot be reached, or a node no longer reports
  2  wrong usage, or an error in the configuration";

#[derive(clap::Subcommand)]
enum Verb {
    Status(StatusArgs),
}

/// Show the nodes of the cluster, how far they are behind, and the state of the store
///
/// It exits with 1 if the store cannot be reached, or if a node is missing.
#[derive(clap::Args)]
struct StatusArgs {
    /// The store; default: the setting cluster.url
    #[arg(long, value_name = "URL")]
    cluster: Option<String>,

    /// Configuration file (TOML), as with rallypoint serve
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), CommandError> {
    let Verb::Status(args) = &args.verb;
    let mut sources = Sources::new(args.config.clone());
    if let Some(url) = &args.cluster {
        let flag = Override { label: "--cluster".into(), path: "cluster.url".into(), value: url.clone() };
        sources.flags.push(flag);
    }
    let settings = sources.load()?.settings.cluster;
    let url = settings.url.ok_or_else(|| {
        CommandError::Usage("there is no cluster: name its store with --cluster or the setting cluster.url".into())
    })?;
    let client = StoreClient::new(&url, &settings.name).map_err(CommandError::failed)?;
    let status = runtime::block_on(async {
        let mut connection = client.connect().await.map_err(CommandError::failed)?;
        client.status(&mut connection).await.map_err(CommandError::failed)
    })?;
    let text = if args.json { json(&status) } else { table(&status, &settings.name) };
    print_stdout(&text)?;
    problem(&status).map_or(Ok(()), |problem| Err(CommandError::Failed(problem)))
}

fn json(status: &StoreStatus) -> String {
    serde_json::to_string_pretty(status).unwrap_or_default() + "\n"
}

fn table(status: &StoreStatus, name: &str) -> String {
    let mut text = String::new();
    let unknown = || "unknown".to_owned();
    let memory = status.used_memory.map_or_else(unknown, |bytes| format!("{:.1} MB", bytes as f64 / 1e6));
    let _ = writeln!(text, "cluster   {name}: {} servers, change {}", status.servers, status.seq);
    let _ = writeln!(
        text,
        "store     {} at {}, {}, {memory}, {:.1} ms, {} log records",
        status.server.clone().unwrap_or_else(unknown),
        status.store,
        status.role.clone().unwrap_or_else(unknown),
        status.round_trip_ms,
        status.log_records,
    );
    let width = status.nodes.iter().map(|node| node.name.chars().count()).max().unwrap_or(0).max(4);
    let _ = writeln!(text, "\n{:<width$}  version  state  behind  listed  to store", "node");
    for node in &status.nodes {
        let state = if node.is_live { "live" } else { "gone" };
        let _ = writeln!(
            text,
            "{:<width$}  {:<7}  {state:<5}  {:>6}  {:>6}  {:.1} ms",
            node.name, node.version, node.behind, node.listed, node.round_trip_ms
        );
    }
    text
}

/// What is wrong with a cluster, if anything is.
fn problem(status: &StoreStatus) -> Option<String> {
    if !status.is_set_up {
        return Some(
            "no node has joined a cluster with this name: check the address of the store and cluster.name".into(),
        );
    }
    if let Some(format) = status.format.filter(|format| *format > FORMAT) {
        return Some(format!(
            "the store is used by nodes of a later version (format {format}, this program knows {FORMAT}): update this program"
        ));
    }
    let live: Vec<_> = status.nodes.iter().filter(|node| node.is_live).collect();
    if live.is_empty() {
        return Some("no node of the cluster is running".into());
    }
    // A node that was restarted has a new row; the old one is not a problem.
    let is_gone = |name: &str| !live.iter().any(|node| node.name == name);
    let gone: Vec<_> = status.nodes.iter().map(|node| &*node.name).filter(|name| is_gone(name)).collect();
    (!gone.is_empty()).then(|| format!("these nodes no longer report: {}", gone.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_cluster::StoreNode;

    fn status(nodes: &[(&str, bool)]) -> StoreStatus {
        let node = |(name, is_live): &(&str, bool)| StoreNode {
            name: (*name).into(),
            version: "0.1.0".into(),
            format: 1,
            is_live: *is_live,
            age_ms: 5,
            behind: 0,
            listed: 12,
            round_trip_ms: 0.4,
        };
        StoreStatus {
            store: "redis://store:6379".into(),
            server: Some("Redis 7.0.15".into()),
            role: Some("master".into()),
            used_memory: Some(2_500_000),
            round_trip_ms: 0.31,
            is_set_up: true,
            format: Some(1),
            seq: 77,
            servers: 12,
            log_records: 60,
            bans: 0,
            nodes: nodes.iter().map(node).collect(),
        }
    }

    #[test]
    fn the_table_shows_store_and_nodes() {
        let text = table(&status(&[("berlin", true), ("tokyo", false)]), "main");
        assert_eq!(
            text,
            "cluster   main: 12 servers, change 77\n\
             store     Redis 7.0.15 at redis://store:6379, master, 2.5 MB, 0.3 ms, 60 log records\n\n\
             node    version  state  behind  listed  to store\n\
             berlin  0.1.0    live        0      12  0.4 ms\n\
             tokyo   0.1.0    gone        0      12  0.4 ms\n"
        );
    }

    #[test]
    fn a_missing_node_is_a_problem_and_a_restarted_one_is_not() {
        assert_eq!(problem(&status(&[("a", true), ("b", true)])), None);
        assert_eq!(problem(&status(&[("a", true), ("a", false)])), None);
        assert!(problem(&status(&[("a", true), ("b", false)])).is_some_and(|text| text.ends_with(": b")));
        assert!(problem(&status(&[])).is_some());
    }
}
