//! The shell commands in Markdown documents.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A block of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandBlock {
    /// File and line, for messages.
    pub place: String,
    /// The commands, without prompts.
    pub commands: Vec<String>,
    /// Why they are not run, if a comment `<!-- not run: REASON -->` is in front of the block.
    pub not_run: Option<String>,
}

/// First words of lines that are taken for commands in a block without a language.
const PROGRAMS: &[&str] = &["rallypoint", "cargo", "curl", "git", "systemctl", "redis-server", "export", "sudo", "apt"];

/// All Markdown files of a project, except those of build directories and the list of changes.
///
/// # Panics
/// If a directory cannot be read.
#[must_use]
pub fn documents(root: &Path) -> Vec<PathBuf> {
    let mut documents = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() {
                if !name.starts_with('.') && !["target", "node_modules"].contains(&name) {
                    directories.push(path);
                }
            } else if name.ends_with(".md") && name != "CHANGELOG.md" {
                documents.push(path);
            }
        }
    }
    documents.sort();
    documents
}

/// The blocks of commands in a document: those of the languages `sh` and `console`.
///
/// # Errors
/// The places of commands in blocks without a language: they have to have one.
pub fn command_blocks(name: &str, text: &str) -> Result<Vec<CommandBlock>, Vec<String>> {
    let mut blocks = Vec::new();
    let mut problems = Vec::new();
    let mut not_run = None;
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let line = line.trim();
        let Some(language) = line.strip_prefix("```") else {
            if let Some(reason) = line.strip_prefix("<!-- not run: ").and_then(|line| line.strip_suffix(" -->")) {
                not_run = Some(reason.to_owned());
            } else if !line.is_empty() {
                not_run = None;
            }
            continue;
        };
        let place = format!("{name}:{}", number + 1);
        let content = lines.by_ref().map(|(_, line)| line.trim()).take_while(|line| !line.starts_with("```"));
        let content: Vec<_> = content.collect();
        let commands = match language {
            "sh" => shell_commands(content.into_iter()),
            "console" => {
                let command =
                    |line: &&str| line.strip_prefix("$ ").or_else(|| line.strip_prefix("# ")).map(str::to_owned);
                content.iter().filter_map(command).collect()
            }
            "" | "text" | "bash" | "shell" => {
                let is_command = |line: &&str| PROGRAMS.contains(&line.split(' ').next().unwrap_or_default());
                problems.extend(content.iter().filter(|line| is_command(line)).map(|line| format!("{place}: {line}")));
                Vec::new()
            }
            _ => Vec::new(),
        };
        let not_run = not_run.take();
        if !commands.is_empty() {
            blocks.push(CommandBlock { place, commands, not_run });
        }
    }
    if problems.is_empty() { Ok(blocks) } else { Err(problems) }
}

/// One command per line; a backslash continues a line.
fn shell_commands<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut is_continued = false;
    for line in lines {
        let part = line.strip_suffix('\\').unwrap_or(line);
        match commands.last_mut() {
            Some(command) if is_continued => *command += part,
            _ if line.is_empty() || line.starts_with('#') => continue,
            _ => commands.push(part.to_owned()),
        }
        is_continued = line.ends_with('\\');
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_with_their_marks() {
        let text = "Text.\n\n<!-- not run: it would take an hour -->\n```sh\ncargo a   # why\n```\n\n   ```sh\n   # comment\n   b \\\n   c\n   ```\n\
                    ```console\n$ d\noutput\n# e\n```\n```toml\ncargo = 1\n```\n";
        let blocks = command_blocks("x.md", text).unwrap();
        let commands: Vec<_> = blocks.iter().map(|block| block.commands.join("|")).collect();
        assert_eq!(commands, ["cargo a   # why", "b c", "d|e"]);
        assert_eq!((&*blocks[0].place, &*blocks[1].place), ("x.md:4", "x.md:8"));
        assert_eq!(blocks[0].not_run.as_deref(), Some("it would take an hour"));
        assert_eq!(blocks[1].not_run, None);
    }

    #[test]
    fn commands_need_a_language() {
        let text = "```\nrallypoint list\n```\n```\nname: online\n```\n";
        assert_eq!(command_blocks("x.md", text), Err(vec!["x.md:1: rallypoint list".to_owned()]));
    }
}
