//! Code of one platform is in modules for that platform, or behind its `cfg`.

use std::path::{Component, Path};

/// Names that exist on Unix or Linux only.
const UNIX_NAMES: &[&str] = &["os::unix", "os::fd", "os::linux", "io::unix", "signal::unix", "libc::", "rustix::"];

/// The lines of a source file that use such a name where other platforms compile it. Paths are relative to the project.
pub fn problems(path: &Path, text: &str) -> Vec<(usize, String)> {
    if !is_portable(path) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    // Indentation of the item that a `cfg` applies to, while inside it.
    let mut gate = None;
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let indentation = code.len() - code.trim_start().len();
        let code = code.trim();
        if code.is_empty() {
            continue;
        }
        if gate.is_none() && is_gate(code) {
            gate = Some(indentation);
            continue;
        }
        match gate {
            Some(start) => {
                let is_end = indentation <= start && (code.ends_with(';') || code.ends_with('}'));
                if is_end {
                    gate = None;
                }
            }
            None => {
                if let Some(name) = UNIX_NAMES.iter().find(|name| code.contains(**name)) {
                    let name = name.trim_end_matches("::");
                    problems.push((number + 1, format!("{name} outside the modules and the cfg of Unix")));
                }
            }
        }
    }
    problems
}

/// Whether a file is compiled on every platform: sources of the crates, outside directories and files named after a platform.
/// Programs for development, and the black-box tests, need Linux.
fn is_portable(path: &Path) -> bool {
    let mut parts = path.components().map(Component::as_os_str);
    let is_source = parts.next().is_some_and(|part| part == "crates") && parts.nth(1).is_some_and(|part| part == "src");
    is_source && !parts.any(|part| ["linux", "linux.rs", "unix", "unix.rs"].iter().any(|name| part == *name))
}

/// Whether a line makes the next item one of Unix or Linux.
fn is_gate(code: &str) -> bool {
    code.starts_with("#[cfg(") && !code.contains("not(unix)") && (code.contains("unix") || code.contains("\"linux\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        problems(Path::new(path), text).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn names_of_unix_are_found_in_sources_for_every_platform() {
        let text = "use std::os::unix::fs::OpenOptionsExt;\nfn f() { libc::getpid(); } // libc::x\n";
        assert_eq!(lines("crates/lobby/src/data_dir.rs", text), [1, 2]);
        for path in ["crates/udp/src/sys/linux.rs", "crates/udp/src/sys/unix/x.rs", "xtask/src/main.rs"] {
            assert_eq!(lines(path, text), [0; 0], "{path}");
        }
    }

    #[test]
    fn names_behind_a_cfg_are_allowed_until_its_item_ends() {
        let text = "#[cfg(unix)]\nuse std::os::unix::x;\nuse std::os::unix::y;\n\n#[cfg(unix)]\nfn f() {\n    rustix::f();\n}\n\
                    fn g() {\n    #[cfg(unix)]\n    rustix::g();\n    rustix::h();\n}\n#[cfg(not(unix))]\nuse rustix::x;\n";
        assert_eq!(lines("crates/cli/src/a/b.rs", text), [3, 12, 15]);
    }
}
