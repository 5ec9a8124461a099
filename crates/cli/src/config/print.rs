//! Prints the effective configuration as a TOML file.

use super::{
    bans,
    setting_table::{SETTINGS, Setting},
    settings::Settings,
    watch,
};
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
            "lobby.names" => table(&mut out, setting, settings),
            // A printed configuration may be shown to others, so the secret stays out of it.
            "web.admin_token" if settings.web.settings.admin_token.is_some() => {
                comment(&mut out, setting);
                out.push_str("# admin_token = (set, but not shown)\n");
            }
            "ban" => ban_tables(&mut out, setting, settings),
            "watch" => watch_tables(&mut out, setting, settings),
            _ => {
                if home != section {
                    let _ = writeln!(out, "\n[{home}]");
                    section = home;
                }
                comment(&mut out, setting);
                let _ = writeln!(out, "{key} = {}", setting.show(settings));
            }
        }
    }
    out
}

fn comment(out: &mut String, setting: &Setting) {
    let restart = if setting.reloads { "" } else { "; needs a restart" };
    for line in textwrap::wrap(&format!("{} ({}{restart})", setting.about, setting.expects), COMMENT_WIDTH) {
        let _ = writeln!(out, "# {line}");
    }
}

fn table(out: &mut String, setting: &Setting, settings: &Settings) {
    let _ = writeln!(out, "\n[{}]", setting.path);
    comment(out, setting);
    for (id, name) in &settings.names {
        let _ = writeln!(out, "{id} = {}", super::setting_type::quoted(name));
    }
}

fn ban_tables(out: &mut String, setting: &Setting, settings: &Settings) {
    out.push('\n');
    comment(out, setting);
    if settings.bans.is_empty() {
        out.push_str("# [[ban]]\n# network = \"203.0.113.0/24\"\n# reason = \"spam\"\n# until = 2027-01-31\n");
    }
    for ban in &settings.bans {
        let _ = writeln!(out, "[[ban]]\n{}", bans::lines(ban).join("\n"));
    }
}

fn watch_tables(out: &mut String, setting: &Setting, settings: &Settings) {
    out.push('\n');
    comment(out, setting);
    if settings.watch.is_empty() {
        out.push_str("# [[watch]]\n# server = \"bloodmasters://play.example.org:6969\"\n# lobby = \"Bloodmasters\"\n");
    }
    for target in &settings.watch {
        let _ = writeln!(out, "[[watch]]\n{}", watch::lines(target).join("\n"));
    }
}
