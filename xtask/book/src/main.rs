//! Builds the book from docs/ with mdBook, into target/book, and checks every link and anchor of the result.
#![forbid(unsafe_code)]

mod links;
mod sources;

use mdbook_driver::{MDBook, config::Config};
use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

fn main() -> ExitCode {
    match build() {
        Ok(index) => {
            println!("{}", index.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the book: {error}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<PathBuf, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).ok_or("no project")?;
    let target = root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()));
    let prepared = target.join("book-source");
    let output = target.join("book");
    for directory in [&prepared, &output] {
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
    }
    sources::prepare(root, &prepared)?;

    let mut config = Config::from_disk(root.join("book.toml"))?;
    config.book.src = prepared;
    config.build.build_dir = output.clone();
    MDBook::load_with_config(root, config)?.build()?;

    let broken = links::broken(&output)?;
    if broken.is_empty() { Ok(output.join("index.html")) } else { Err(format!("\n{}", broken.join("\n")).into()) }
}
