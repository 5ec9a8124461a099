//! `rallypoint man`: prints manual pages.

use crate::{error::CommandError, stdio::print_stdout};
use clap::Command;
use clap_mangen::Man;
use std::{fs, path::PathBuf};

/// Print a manual page, or write all of them to a directory
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub struct Args {
    /// Command whose page is printed [default: the program itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Option<String>,

    /// Write the pages of all commands to this directory, which is created if necessary
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

const MORE: &str = "\
Examples:
  rallypoint man browse | man -l -
  rallypoint man --dir ~/.local/share/man/man1

Exit codes:
  0  success
  1  the pages could not be written
  2  wrong usage";

pub fn run(args: &Args, mut program: Command) -> Result<(), CommandError> {
    program.build();
    if let Some(dir) = &args.dir {
        let cannot = |error| CommandError::failed(format!("cannot write manual pages to {}: {error}", dir.display()));
        fs::create_dir_all(dir).map_err(cannot)?;
        for page in pages(&program) {
            fs::write(dir.join(page.1.get_filename()), render(&page)?).map_err(cannot)?;
        }
        return Ok(());
    }
    let wanted = match &args.command {
        None => program.get_name().to_owned(),
        Some(name) => format!("{}-{name}", program.get_name()),
    };
    let Some(page) = pages(&program).into_iter().find(|(_, page)| page.get_filename() == format!("{wanted}.1")) else {
        let names: Vec<_> = program.get_subcommands().map(Command::get_name).collect();
        return Err(CommandError::Usage(format!(
            "there is no command {:?}; the commands are {}",
            args.command.as_deref().unwrap_or_default(),
            names.join(", ")
        )));
    };
    print_stdout(&render(&page)?)
}

/// One page for the program and one for each command.
fn pages(program: &Command) -> Vec<(Command, Man)> {
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
    let named = |command: &Command| {
        // Names of pages are hyphenated, as in git-commit(1).
        command.clone().display_name(format!("{}-{}", program.get_name(), command.get_name()))
    };
    let page = |command: Command| (command.clone(), Man::new(command));
    std::iter::once(program.clone()).chain(commands.map(named)).map(page).collect()
}

fn render((command, page): &(Command, Man)) -> Result<String, CommandError> {
    let mut text = Vec::new();
    let parts = [
        Man::render_title,
        Man::render_name_section,
        Man::render_synopsis_section,
        Man::render_description_section,
        Man::render_options_section,
    ];
    for part in parts {
        part(page, &mut text).map_err(CommandError::failed)?;
    }
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text).map_err(CommandError::failed)?;
    }
    let more = command.get_after_long_help().or(command.get_after_help());
    Ok(String::from_utf8_lossy(&text).into_owned() + &sections(&more.map(ToString::to_string).unwrap_or_default()))
}

/// Converts the text below the options of a help page: headings become sections, line breaks are kept.
fn sections(help: &str) -> String {
    let mut page = String::new();
    let mut is_open = false;
    for line in help.lines().filter(|line| !line.is_empty()) {
        let (heading, rest) = match line.split_once(':') {
            Some((heading, rest)) if is_heading(heading) => (Some(heading), rest.trim_start()),
            _ => (None, line),
        };
        if let Some(heading) = heading {
            let close = if is_open { ".fi\n" } else { "" };
            page += &format!("{close}.SH {}\n.nf\n", escaped(&heading.to_uppercase()));
        } else if !is_open {
            page += ".SH NOTES\n.nf\n";
        }
        is_open = true;
        if !rest.is_empty() {
            page += &format!("{}\n", escaped(rest.strip_prefix("  ").unwrap_or(rest)));
        }
    }
    if is_open { page + ".fi\n" } else { page }
}

/// Whether text before a colon is a heading: up to three words, starting with a capital letter.
fn is_heading(text: &str) -> bool {
    text.starts_with(|c: char| c.is_uppercase()) && text.split(' ').count() <= 3 && !text.contains(['(', '/'])
}

/// Escapes a line for roff.
fn escaped(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_become_sections_and_line_breaks_are_kept() {
        let page = sections("Examples:\n  a --b \\\n  .c\n\nExit codes: 0 good\nMore");
        let expected = ".SH EXAMPLES\n.nf\na \\-\\-b \\e\n\\&.c\n.fi\n.SH EXIT CODES\n.nf\n0 good\nMore\n.fi\n";
        assert_eq!(page, expected);
        assert_eq!(sections(""), "");
    }
}
