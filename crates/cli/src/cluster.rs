//! `rallypoint cluster`: shows the state of a cluster of lobbies.

use crate::{
    config::{Override, Sources},
    error::CommandError,
    runtime,
    stdio::print_stdout,
};
use rallypoint_cluster::{NodeHealth, StoreClient, StoreNode, StoreStatus};
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
  0  the store answers and accepts changes, and all nodes report that were not
     stopped
  1  the store cannot be used, a node no longer reports, two have the same name,
     or one loses contact again and again; the last line states the reason, with
     --json also the field problem
  2  wrong usage, or an error in the configuration";

#[derive(clap::Subcommand)]
enum Verb {
    Status(StatusArgs),
}

/// Show the nodes of the cluster, how far they are behind, and the state of the store
///
/// It exits with 1 if the store cannot be used, or if a node no longer reports although it was not stopped. Nothing in the store
/// is changed.
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
    let status = runtime::block_on(async { Ok::<_, CommandError>(client.status().await) })?;
    let text = match args.json {
        true => json(&status),
        // The error explains why there is nothing to show.
        false if !status.is_reachable => String::new(),
        false => table(&status, &settings.name),
    };
    print_stdout(&text)?;
    status.problem.map_or(Ok(()), |problem| Err(CommandError::Failed(problem)))
}

fn json(status: &StoreStatus) -> String {
    serde_json::to_string_pretty(status).unwrap_or_default() + "\n"
}

fn table(status: &StoreStatus, name: &str) -> String {
    let mut text = String::new();
    let unknown = || "unknown".to_owned();
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let memory = match (status.used_memory, status.max_memory) {
        (Some(used), Some(max)) if max > 0 => format!("{} of {}", megabytes(used), megabytes(max)),
        (Some(used), _) => megabytes(used),
        (None, _) => unknown(),
    };
    let figure = |figure: Option<u64>| figure.map_or_else(unknown, |figure| figure.to_string());
    let _ =
        writeln!(text, "cluster   {name}, servers: {}, last change: {}", figure(status.servers), figure(status.seq));
    let _ = writeln!(
        text,
        "store     {} at {}, {}, {memory}, {:.1} ms, log records: {}",
        status.server.clone().unwrap_or_else(unknown),
        status.store,
        status.role.clone().unwrap_or_else(unknown),
        status.round_trip_ms.unwrap_or_default(),
        figure(status.log_records),
    );
    if let Some(warning) = &status.warning {
        let _ = writeln!(text, "warning   {warning}");
    }
    if status.nodes.is_empty() {
        return text;
    }
    let states: Vec<_> = status.nodes.iter().map(state).collect();
    let width = |column: &mut dyn Iterator<Item = usize>| column.max().unwrap_or(0);
    let name_width = width(&mut status.nodes.iter().map(|node| node.name.chars().count())).max(4);
    let state_width = width(&mut states.iter().map(String::len)).max(5);
    let _ = writeln!(text, "\n{:<name_width$}  version  {:<state_width$}  behind  listed  to store", "node", "state");
    for (node, state) in status.nodes.iter().zip(&states) {
        let _ = writeln!(
            text,
            "{:<name_width$}  {:<7}  {state:<state_width$}  {:>6}  {:>6}  {:.1} ms",
            node.name, node.version, node.behind, node.listed, node.round_trip_ms
        );
    }
    text
}

/// The state of a node, and if it does not report, since when.
fn state(node: &StoreNode) -> String {
    let seconds = node.age_ms / 1_000;
    let age = || if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds / 60) };
    match node.state {
        NodeHealth::Live => "live".into(),
        NodeHealth::Loading => "loading".into(),
        NodeHealth::Unstable => format!("unstable, {} outages", node.outages),
        NodeHealth::Lost => format!("lost {} ago", age()),
        NodeHealth::Unknown => format!("unknown for {}", age()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_store_and_nodes() {
        let node = |name: &str, state, age_ms| StoreNode {
            name: name.into(),
            version: "0.1.0".into(),
            format: 1,
            state,
            age_ms,
            outages: 4,
            behind: 0,
            listed: 12,
            round_trip_ms: 0.4,
            has_namesake: false,
        };
        let status = StoreStatus {
            store: "redis://store:6379".into(),
            is_reachable: true,
            warning: Some("keys are dropped".into()),
            server: Some("Redis 7.0.15".into()),
            role: Some("master".into()),
            used_memory: Some(2_500_000),
            max_memory: Some(100_000_000),
            round_trip_ms: Some(0.31),
            seq: Some(77),
            servers: Some(12),
            log_records: Some(60),
            nodes: vec![
                node("berlin", NodeHealth::Live, 5),
                node("lima", NodeHealth::Unstable, 5),
                node("tokyo", NodeHealth::Lost, 720_000),
            ],
            ..StoreStatus::default()
        };
        assert_eq!(
            table(&status, "main"),
            "cluster   main, servers: 12, last change: 77\n\
             store     Redis 7.0.15 at redis://store:6379, master, 2.5 MB of 100.0 MB, 0.3 ms, log records: 60\n\
             warning   keys are dropped\n\n\
             node    version  state                behind  listed  to store\n\
             berlin  0.1.0    live                      0      12  0.4 ms\n\
             lima    0.1.0    unstable, 4 outages       0      12  0.4 ms\n\
             tokyo   0.1.0    lost 12 min ago           0      12  0.4 ms\n"
        );
    }
}
