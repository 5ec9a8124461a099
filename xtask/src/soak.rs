//! `cargo xtask soak`: a lobby under load for a long time; its table is written into docs/benchmarks.md.

use crate::{Stop, args::Args, bench, workspace::Workspace};
use std::process::Stdio;

/// The program, and its section of the document.
const NAME: &str = "soak";

pub fn run(workspace: &Workspace, mut args: Args) -> Result<(), Stop> {
    let minutes: f64 = args.value("--minutes")?.unwrap_or(60.0);
    let only_print = args.flag("--print");
    if let Some(name) = args.last_name()? {
        return Err(Stop::Usage(format!("soak takes no name, such as `{name}` (see cargo xtask --help)")));
    }
    workspace.heading(&format!("soak for {minutes} minutes"));
    bench::build(workspace, "rallypoint")?;
    let mut command = workspace.cargo();
    command.args(["run", "--release", "--package", "rallypoint-bench", "--bin", NAME, "--"]);
    command.args(["--minutes", &minutes.to_string()]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(Stop::while_doing("run cargo"))?;
    let section = String::from_utf8_lossy(&output.stdout);
    println!("{section}");
    if !only_print && !section.trim().is_empty() {
        bench::write_section(workspace, NAME, &section)?;
    }
    if output.status.success() { Ok(()) } else { Err(Stop::Failed("the soak failed: see above".into())) }
}
