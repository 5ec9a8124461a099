//! `rallypoint completions`: prints completion scripts for shells.

use crate::{error::CommandError, stdio::print_stdout};
use clap::Command;
use clap_complete::Shell;

/// Print a script that makes a shell complete commands and flags
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub struct Args {
    /// Name of the shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const MORE: &str = "\
Examples:
  rallypoint completions bash \\
      > ~/.local/share/bash-completion/completions/rallypoint
  rallypoint completions fish > ~/.config/fish/completions/rallypoint.fish
  rallypoint completions zsh > ~/.zfunc/_rallypoint
      requires fpath+=~/.zfunc in ~/.zshrc

Exit codes:
  0  success
  1  the script could not be written
  2  wrong usage";

pub fn run(args: &Args, mut program: Command) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "rallypoint", &mut script);
    print_stdout(&String::from_utf8_lossy(&script))
}
