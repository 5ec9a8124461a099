//! The configuration in force, as a file.

use super::{
    bans,
    knobs::{KNOBS, Knob},
    settings::Settings,
    watch,
};
use std::fmt::Write;

/// Every setting with its value and what it is for: a file that says the same again, and a template for one's own.
pub fn print(settings: &Settings) -> String {
    let mut out = String::new();
    let mut section = "";
    for knob in KNOBS.iter() {
        let (home, key) = knob.path.rsplit_once('.').unwrap_or(("", knob.path));
        match knob.path {
            "lobby.names" => table(&mut out, knob, settings),
            // It stays out of what people show to others; and as it stands here it would be no token.
            "web.admin_token" if settings.web.settings.admin_token.is_some() => {
                comment(&mut out, knob);
                out.push_str("# admin_token = (there is one, and it is not shown)\n");
            }
            "ban" => ban_tables(&mut out, knob, settings),
            "watch" => watch_tables(&mut out, knob, settings),
            _ => {
                if home != section {
                    let _ = writeln!(out, "\n[{home}]");
                    section = home;
                }
                comment(&mut out, knob);
                let _ = writeln!(out, "{key} = {}", knob.show(settings));
            }
        }
    }
    out
}

fn comment(out: &mut String, knob: &Knob) {
    let restart = if knob.reloads { "" } else { "; needs a restart" };
    for line in wrap(&format!("{} ({}{restart})", knob.about, knob.expects)) {
        let _ = writeln!(out, "# {line}");
    }
}

fn table(out: &mut String, knob: &Knob, settings: &Settings) {
    let _ = writeln!(out, "\n[{}]", knob.path);
    comment(out, knob);
    for (id, name) in &settings.names {
        let _ = writeln!(out, "{id} = {}", super::kind::quoted(name));
    }
}

fn ban_tables(out: &mut String, knob: &Knob, settings: &Settings) {
    out.push('\n');
    comment(out, knob);
    if settings.bans.is_empty() {
        out.push_str("# [[ban]]\n# network = \"203.0.113.0/24\"\n# reason = \"spam\"\n# until = 2027-01-31\n");
    }
    for ban in &settings.bans {
        let _ = writeln!(out, "[[ban]]\n{}", bans::lines(ban).join("\n"));
    }
}

fn watch_tables(out: &mut String, knob: &Knob, settings: &Settings) {
    out.push('\n');
    comment(out, knob);
    if settings.watch.is_empty() {
        out.push_str("# [[watch]]\n# server = \"bloodmasters://play.example.org:6969\"\n# lobby = \"Bloodmasters\"\n");
    }
    for target in &settings.watch {
        let _ = writeln!(out, "[[watch]]\n{}", watch::lines(target).join("\n"));
    }
}

/// Lines of at most 100 characters.
fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + word.len() < 100 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
