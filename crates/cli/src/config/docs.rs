//! The tables of settings in docs/configuration.md are those of the program.

use super::{Setting, Settings, table::SETTINGS};
use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");

const HEADER: &str = "| setting | default | range | description |\n|---|---|---|---|\n";

/// The rows of a section; `""` for the settings above all sections.
fn rows(section: &str) -> String {
    let defaults = {
        let mut settings = Settings::default();
        // Not that of this machine, which may have little memory.
        let memory = Setting::find("caps.memory").unwrap();
        memory.set_text(&mut settings, memory.default).unwrap();
        settings
    };
    let is_here = |setting: &&Setting| setting.path.rsplit_once('.').map_or("", |(home, _)| home) == section;
    let rows =
        SETTINGS.iter().filter(is_here).filter(|setting| !["lists.names", "ban", "watch"].contains(&setting.path));
    let row = |setting: &Setting| {
        let restart = if setting.reloads { "" } else { " *" };
        let Setting { path, about, .. } = setting;
        format!("| `{path}` | `{}` | {} | {about}{restart} |\n", setting.show(&defaults), range(&setting.expects))
    };
    rows.map(row).collect()
}

/// The valid values in few words.
fn range(expects: &str) -> String {
    let (kind, example) = expects.split_once(" such as ").unwrap_or((expects, ""));
    let off = if example.ends_with(", or \"off\"") { ", or `\"off\"`" } else { "" };
    match kind.strip_prefix("a list of ").or((kind == "a rate limit").then_some("a limit")) {
        Some(kind) => format!("{kind}{off}"),
        None => ["a number of ", "a number from ", "a size from ", "a duration from "]
            .iter()
            .find_map(|prefix| expects.strip_prefix(prefix))
            .unwrap_or(expects)
            .to_owned(),
    }
}

/// The page with the tables of the program: a table belongs to the section of the heading above it.
fn generate(page: &str) -> String {
    let mut out = String::new();
    let mut section = "";
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix('#') {
            section = title.trim_start_matches(['#', ' ', '[']).trim_end_matches(']');
            section = if section == "Top level" { "" } else { section };
        }
        if HEADER.starts_with(line) && !line.is_empty() {
            out.push_str(HEADER);
            out.push_str(&rows(section));
            while lines.peek().is_some_and(|line| line.starts_with('|')) {
                lines.next();
            }
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// `UPDATE_DOCS=1` rewrites the page.
#[test]
fn the_tables_of_the_page_are_those_of_the_program() {
    let generated = generate(&fs::read_to_string(PAGE).unwrap());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(PAGE, &generated).unwrap();
    }
    let page = fs::read_to_string(PAGE).unwrap();
    let hint = "docs/configuration.md is out of date: run this test with UPDATE_DOCS=1";
    for (found, expected) in page.lines().zip(generated.lines()) {
        assert_eq!(found, expected, "{hint}");
    }
    assert_eq!(page.len(), generated.len(), "{hint}");
}
