//! Prints the effective configuration as a TOML file.

use super::{
    kind::HIDDEN,
    records::{ban_lines, watch_lines},
    setting::Setting,
    settings::Settings,
    table::SETTINGS,
};
use crate::toml_file::quoted;
use std::fmt::Write;

/// Maximum length of a comment line, without the leading `# `.
const COMMENT_WIDTH: usize = 100;

/// Every setting with its value and description: a file that results in the same configuration, and a template.
pub fn print(settings: &Settings) -> String {
    let mut out = String::new();
    let mut section = "";
    for setting in SETTINGS.iter() {
        let (home, key) = setting.path.rsplit_once('.').unwrap_or(("", setting.path));
        match setting.path {
            "lists.names" => {
                let names = settings.names.iter().map(|(id, name)| format!("{id} = {}", quoted(name)));
                tables(&mut out, setting, "[lists.names]", names, "");
            }
            "ban" => tables(&mut out, setting, "", settings.bans.iter().map(|ban| table("ban", &ban_lines(ban))), BAN),
            "watch" => {
                let servers = settings.watch.iter().map(|server| table("watch", &watch_lines(server)));
                tables(&mut out, setting, "", servers, WATCH);
            }
            _ => {
                if home != section {
                    let _ = writeln!(out, "\n[{home}]");
                    section = home;
                }
                comment(&mut out, setting);
                let value = setting.show(settings);
                // A printed configuration may be shown to others, so secrets stay out of it.
                let _ = match value == quoted(HIDDEN) {
                    true => writeln!(out, "# {key} = (set, but not shown)"),
                    false => writeln!(out, "{key} = {value}"),
                };
            }
        }
    }
    out
}

const BAN: &str = "# [[ban]]\n# network = \"203.0.113.0/24\"\n# reason = \"spam\"\n# until = 2027-01-31";
const WATCH: &str = "# [[watch]]\n# server = \"bloodmasters://play.example.org:6969\"\n# lobby = \"Bloodmasters\"";

/// A setting that consists of tables, or an example if there are none.
fn tables(out: &mut String, setting: &Setting, header: &str, items: impl Iterator<Item = String>, example: &str) {
    let _ = write!(out, "\n{header}{}", if header.is_empty() { "" } else { "\n" });
    comment(out, setting);
    let items: Vec<_> = items.collect();
    let text = if items.is_empty() { example.to_owned() } else { items.join("\n") };
    let _ = writeln!(out, "{text}");
}

fn table(name: &str, lines: &[String]) -> String {
    format!("[[{name}]]\n{}", lines.join("\n"))
}

fn comment(out: &mut String, setting: &Setting) {
    let restart = if setting.reloads { "" } else { "; needs a restart" };
    for line in textwrap::wrap(&format!("{} ({}{restart})", setting.about, setting.expects), COMMENT_WIDTH) {
        let _ = writeln!(out, "# {line}");
    }
}
