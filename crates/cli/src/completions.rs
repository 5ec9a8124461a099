//! `rallypoint completions`: what makes a shell complete the commands.

use crate::{error::CommandError, stdio::print_stdout};
use clap::Command;
use clap_complete::Shell;

/// Print what makes a shell complete this program's commands and flags
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const MORE: &str = "\
Examples:
  rallypoint completions bash \\
      > ~/.local/share/bash-completion/completions/rallypoint
  rallypoint completions fish > ~/.config/fish/completions/rallypoint.fish
  rallypoint completions zsh > ~/.zfunc/_rallypoint
      with fpath+=~/.zfunc in ~/.zshrc

Exit codes:
  0  printed
  1  it could not be written
  2  wrong usage";

pub fn run(args: &Args, mut program: Command) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "rallypoint", &mut script);
    print_stdout(&String::from_utf8_lossy(&script))
}
