//! The committed header is the one that cbindgen makes of the sources.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The sources that the header is made of, in its order. cbindgen itself would follow modules only by running Cargo.
const SOURCES: [&str; 13] = [
    "version.rs",
    "failure.rs",
    "key.rs",
    "event.rs",
    "stats.rs",
    "channels.rs",
    "client.rs",
    "server.rs",
    "server_info.rs",
    "announcer.rs",
    "scan_record.rs",
    "scan.rs",
    "gamemaker",
];

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The files of a module of the GameMaker layer, or the one file.
fn files(source: &str) -> Vec<PathBuf> {
    match source.strip_suffix(".rs") {
        Some(_) => vec![here("src").join(source)],
        None => ["state.rs", "session.rs", "scan.rs"].map(|file| here("src").join(source).join(file)).to_vec(),
    }
}

fn generate() -> String {
    let config = cbindgen::Config::from_file(here("cbindgen.toml")).unwrap();
    let builder = cbindgen::Builder::new().with_config(config);
    let builder = SOURCES.into_iter().flat_map(files).fold(builder, cbindgen::Builder::with_src);
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let text = String::from_utf8(text).unwrap();
    // The sections about safety are for Rust; what they say is said by the rules at the top and by the sentences before.
    let mut lines: Vec<&str> = Vec::new();
    let mut in_safety = false;
    for line in text.lines() {
        let is_comment = line.trim_start().starts_with("//");
        in_safety = is_comment && (in_safety || line.trim() == "// # Safety");
        if in_safety {
            lines.pop_if(|line| line.trim() == "//");
        } else {
            lines.push(line.trim_end());
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_header_is_up_to_date() {
    let path = here("include/rallypoint.h");
    let generated = generate();
    if env::var_os("UPDATE_HEADER").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "include/rallypoint.h is out of date: repeat this test with UPDATE_HEADER=1");
}

#[test]
fn the_header_has_every_exported_function() {
    let header = fs::read_to_string(here("include/rallypoint.h")).unwrap();
    for file in SOURCES.into_iter().flat_map(files) {
        let source = fs::read_to_string(file).unwrap();
        for (_, rest) in source.match_indices("extern \"C\" fn ").map(|(at, start)| (at, &source[at + start.len()..])) {
            let name = rest.split('(').next().unwrap();
            assert!(header.contains(&format!("{name}(")), "{name}");
        }
    }
}
