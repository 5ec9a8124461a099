//! Programs that the tasks need, and how they are installed.

use crate::{Stop, workspace::Workspace};
use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
};

/// Everything that a task needs besides Rust itself. A C compiler is not listed: without its linker this program would
/// not be running.
const REQUIREMENTS: &[Requirement] = &[
    Requirement::component("fmt", "rustfmt", "cargo-fmt"),
    Requirement::component("clippy", "clippy", "cargo-clippy"),
    Requirement::tool("tests", "cargo-nextest"),
    // A store for clusters.
    Requirement::debian("tests", "redis-server", "redis-server"),
    Requirement::debian("tests", "redis-tools", "redis-cli"),
    // Tests of the terminal UI skip themselves without it.
    Requirement::debian("tests", "tmux", "tmux").optional(),
    // Tests of the pages in a real browser skip themselves without it.
    Requirement::debian("tests", "chromium", "chromium").optional(),
    Requirement::debian("tests", "chromium-driver", "chromedriver").optional(),
    // The tests that run the proxy configurations of the documentation skip themselves without them.
    Requirement::debian("tests", "nginx", "nginx").optional(),
    Requirement::debian("tests", "caddy", "caddy").optional(),
    // The test that loads the documented firewall rules skips itself without it.
    Requirement::debian("tests", "nftables", "nft").optional(),
    // The test that verifies the signatures of exported lists skips itself without it.
    Requirement::debian("tests", "minisign", "minisign").optional(),
    // The C programs run only without it.
    Requirement::debian("tests", "valgrind", "valgrind").optional(),
    // The tests of the Python package skip themselves without it.
    Requirement::debian("tests", "python3-venv", "python3").optional(),
    // Accessibility checks of the pages, and the package manager that installs them.
    Requirement::debian("tests", "npm", "npm").optional(),
    Requirement::npm("tests", "axe-core").optional(),
    Requirement::debian("fuzz", "g++", "c++"),
    // Counts instructions; without it the suites print n/a.
    Requirement::debian("bench", "valgrind", "valgrind").optional(),
    Requirement::debian("bench cluster", "redis-server", "redis-server"),
    Requirement::debian("bench cluster", "redis-tools", "redis-cli"),
    // For comparison.
    Requirement::debian("bench lobby", "nginx", "nginx").optional(),
    Requirement::debian("bench web", "nginx", "nginx").optional(),
    Requirement::debian("bench query", "qstat", "quakestat").optional(),
    Requirement::debian("bench query", "nodejs", "node").optional(),
    Requirement::debian("bench query", "npm", "npm").optional(),
];

/// Directory for npm packages, relative to the project's root. Tests look there, whatever Cargo's target directory is.
const TOOLS: &str = "target/tools";

/// Installs what the jobs need, or fails with the list of missing packages. A job is a step of `cargo xtask test`, or
/// `fuzz`, `bench`, `bench SUITE`.
pub fn provide(workspace: &Workspace, jobs: &[&str]) -> Result<(), Stop> {
    let Plan { commands, sentence, needed } = plan(REQUIREMENTS, jobs, &Machine::this(workspace));
    let result = match sentence {
        Some(sentence) => Err(Stop::Failed(sentence)),
        None => install(workspace, &commands),
    };
    match result {
        Err(Stop::Failed(message)) if !needed => {
            eprintln!("cargo xtask continues without optional programs: {message}");
            Ok(())
        }
        result => result,
    }
}

/// A required program, and its source.
struct Requirement {
    /// The job that needs it.
    job: &'static str,
    /// Name of the executable in the search path.
    program: &'static str,
    source: Source,
    optional: bool,
}

#[derive(Clone, Copy)]
enum Source {
    /// A component of the Rust toolchain.
    Component(&'static str),
    /// A package that `cargo install` builds, named like its program.
    Cargo,
    /// A Debian package.
    Debian(&'static str),
    /// An npm package without a program, installed below `target/tools`.
    Npm,
}

impl Requirement {
    const fn component(job: &'static str, component: &'static str, program: &'static str) -> Self {
        Self { job, program, source: Source::Component(component), optional: false }
    }

    const fn tool(job: &'static str, program: &'static str) -> Self {
        Self { job, program, source: Source::Cargo, optional: false }
    }

    const fn debian(job: &'static str, package: &'static str, program: &'static str) -> Self {
        Self { job, program, source: Source::Debian(package), optional: false }
    }

    const fn npm(job: &'static str, package: &'static str) -> Self {
        Self { job, program: package, source: Source::Npm, optional: false }
    }

    /// The job works without it.
    const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

/// The state of the machine before anything is run.
struct Machine {
    /// Search path for programs.
    search: Vec<PathBuf>,
    /// Directory of the toolchain's own programs. In the search path, the name of a component can be a rustup proxy.
    toolchain: PathBuf,
    /// Directory of installed npm packages.
    modules: PathBuf,
    /// Whether Debian packages can be installed: apt exists, and this process is root.
    can_apt: bool,
    /// Whether the tests run that need Debian packages.
    is_linux: bool,
}

impl Machine {
    fn this(workspace: &Workspace) -> Self {
        let mut search: Vec<PathBuf> = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect();
        // Cargo finds its own tools there even if the directory is not in the search path.
        let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let cargo_home = cargo_home.or_else(|| Some(env::home_dir()?.join(".cargo")));
        search.extend(cargo_home.map(|home| home.join("bin")));

        let answer = |program: &str, arguments: &[&str]| {
            let output = workspace.program(program).args(arguments).stderr(Stdio::null()).output();
            output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
        };
        let toolchain = Path::new(&answer("rustc", &["--print", "sysroot"])).join("bin");
        let can_apt = answer("id", &["-u"]) == "0" && find(&search, "apt-get");
        Self {
            search,
            toolchain,
            modules: workspace.root.join(TOOLS).join("node_modules"),
            can_apt,
            is_linux: cfg!(target_os = "linux"),
        }
    }

    /// Whether anything that needs it runs here.
    fn uses(&self, requirement: &Requirement) -> bool {
        self.is_linux || matches!(requirement.source, Source::Component(_) | Source::Cargo)
    }

    fn has(&self, requirement: &Requirement) -> bool {
        match requirement.source {
            Source::Component(_) => self.toolchain.join(executable(requirement.program)).is_file(),
            Source::Cargo | Source::Debian(_) => find(&self.search, requirement.program),
            Source::Npm => self.modules.join(requirement.program).join("package.json").is_file(),
        }
    }
}

#[derive(Debug, Default, PartialEq)]
struct Plan {
    /// Commands that install what is missing, in this order.
    commands: Vec<Vec<&'static str>>,
    /// A sentence that names what the user has to install, if this program cannot.
    sentence: Option<String>,
    /// Whether anything missing is not optional.
    needed: bool,
}

fn plan(requirements: &[Requirement], jobs: &[&str], machine: &Machine) -> Plan {
    let missing: Vec<_> = requirements
        .iter()
        .filter(|requirement| jobs.contains(&requirement.job) && machine.uses(requirement) && !machine.has(requirement))
        .collect();
    let needed = missing.iter().any(|requirement| !requirement.optional);
    let mut packages = Vec::new();
    let mut commands = Vec::new();
    for requirement in missing {
        match requirement.source {
            Source::Debian(package) if !packages.contains(&package) => packages.push(package),
            Source::Debian(_) => {}
            Source::Cargo => commands.push(vec!["cargo", "install", "--locked", requirement.program]),
            Source::Npm => {
                commands.push(vec!["npm", "install", "--silent", "--no-save", "--prefix", TOOLS, requirement.program]);
            }
            Source::Component(component) => commands.push(vec!["rustup", "component", "add", component]),
        }
    }
    let mut sentence = None;
    if !packages.is_empty() {
        if !machine.can_apt {
            let packages = packages.join(" ");
            sentence = Some(format!(
                "these packages are missing: {packages} (apt-get install {packages}; when run as root, cargo xtask installs them)"
            ));
        }
        let mut install = vec!["apt-get", "install", "-qq", "--yes", "--no-install-recommends"];
        install.append(&mut packages);
        commands.splice(0..0, [vec!["apt-get", "update", "-qq"], install]);
    }
    Plan { commands, sentence, needed }
}

fn install(workspace: &Workspace, commands: &[Vec<&str>]) -> Result<(), Stop> {
    for command in commands {
        let text = command.join(" ");
        workspace.heading(&format!("setup: {text}"));
        let run = || {
            let mut process = workspace.program(command[0]);
            // Tools have their own target directory: they share no dependencies with the project.
            process.args(&command[1..]).env("DEBIAN_FRONTEND", "noninteractive").env_remove("CARGO_TARGET_DIR");
            let status = process.stdin(Stdio::null()).status().map_err(Stop::while_doing(&format!("run {text}")))?;
            Ok(status.success())
        };
        // Package managers fail now and then, at a mirror or at another one's lock, and succeed a second later.
        if !run()? {
            eprintln!("cargo xtask: {text} failed, and is repeated once");
            if !run()? {
                return Err(Stop::Failed(format!("the setup failed at: {text}")));
            }
        }
    }
    Ok(())
}

fn find(search: &[PathBuf], program: &str) -> bool {
    search.iter().any(|directory| directory.join(executable(program)).is_file())
}

/// The name of a program's file.
fn executable(program: &str) -> String {
    format!("{program}{}", env::consts::EXE_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::Temporary;

    const TABLE: &[Requirement] = &[
        Requirement::component("clippy", "clippy", "cargo-clippy"),
        Requirement::tool("tests", "cargo-nextest"),
        Requirement::debian("tests", "redis", "redis-server"),
        Requirement::debian("tests", "redis", "redis-cli"),
        Requirement::debian("bench", "valgrind", "valgrind").optional(),
        Requirement::debian("doc", "npm", "npm"),
        Requirement::npm("doc", "some-module"),
    ];

    fn machine(programs: &[&str], can_apt: bool) -> (Temporary, Machine) {
        let directory = Temporary::new();
        for program in programs {
            directory.file(&format!("bin/{}", executable(program)), "");
        }
        let search = vec![directory.join("not-there"), directory.join("bin")];
        let toolchain = directory.join("toolchain");
        let modules = directory.join("node_modules");
        (directory, Machine { search, toolchain, modules, can_apt, is_linux: true })
    }

    #[test]
    fn nothing_is_installed_if_nothing_is_missing() {
        let (_guard, machine) = machine(&["cargo-nextest", "redis-server", "redis-cli"], true);
        assert_eq!(plan(TABLE, &["tests"], &machine), Plan::default());
    }

    #[test]
    fn only_requirements_of_the_job_are_checked() {
        let (_guard, machine) = machine(&[], true);
        assert_eq!(plan(TABLE, &["fmt"], &machine), Plan::default());
        assert_eq!(plan(TABLE, &["fmt", "clippy"], &machine).commands, [["rustup", "component", "add", "clippy"]]);
    }

    #[test]
    fn a_proxy_of_rustup_is_not_the_component() {
        let (guard, machine) = machine(&["cargo-clippy"], true);
        assert!(plan(TABLE, &["clippy"], &machine).needed);
        guard.file(&format!("toolchain/{}", executable("cargo-clippy")), "");
        assert_eq!(plan(TABLE, &["clippy"], &machine), Plan::default());
    }

    #[test]
    fn root_installs_each_missing_package_once_after_an_update() {
        let (_guard, machine) = machine(&[], true);
        let expected = vec![
            vec!["apt-get", "update", "-qq"],
            vec!["apt-get", "install", "-qq", "--yes", "--no-install-recommends", "redis"],
            vec!["cargo", "install", "--locked", "cargo-nextest"],
        ];
        assert_eq!(plan(TABLE, &["tests"], &machine), Plan { commands: expected, sentence: None, needed: true });
    }

    #[test]
    fn users_without_root_get_one_sentence_with_the_packages() {
        let (_guard, machine) = machine(&["cargo-nextest"], false);
        let plan = plan(TABLE, &["tests"], &machine);
        let sentence = plan.sentence.expect("a sentence");
        assert!(sentence.contains("apt-get install redis;") && sentence.lines().count() == 1, "{sentence}");
        assert!(plan.needed);
    }

    #[test]
    fn a_tool_of_cargo_needs_no_root() {
        let (_guard, machine) = machine(&["redis-server", "redis-cli"], false);
        let plan = plan(TABLE, &["tests"], &machine);
        assert_eq!(plan.commands, [["cargo", "install", "--locked", "cargo-nextest"]]);
        assert_eq!(plan.sentence, None);
    }

    #[test]
    fn packages_of_debian_are_not_needed_on_other_systems() {
        let (_guard, machine) = machine(&["cargo-nextest"], false);
        let machine = Machine { is_linux: false, ..machine };
        assert_eq!(plan(TABLE, &["tests", "doc"], &machine), Plan::default());
    }

    #[test]
    fn npm_packages_are_installed_after_npm() {
        let (guard, machine) = machine(&[], true);
        let fetch = vec!["npm", "install", "--silent", "--no-save", "--prefix", "target/tools", "some-module"];
        let commands = plan(TABLE, &["doc"], &machine).commands;
        assert_eq!(commands[1].last(), Some(&"npm"));
        assert_eq!(commands.last(), Some(&fetch));
        guard.file(&format!("bin/{}", executable("npm")), "");
        guard.file("node_modules/some-module/package.json", "");
        assert_eq!(plan(TABLE, &["doc"], &machine), Plan::default());
    }

    #[test]
    fn a_failed_installation_names_its_command() {
        let workspace = Workspace::here().unwrap();
        let install = |command: &[&'static str]| match install(&workspace, &[command.to_vec()]) {
            Err(Stop::Failed(message)) => message,
            other => panic!("{other:?}"),
        };
        assert_eq!(install(&["false", "install", "chromium"]), "the setup failed at: false install chromium");
        let message = install(&["no-such-program", "chromium"]);
        assert!(message.starts_with("could not run no-such-program chromium: "), "{message}");
    }

    #[test]
    #[cfg(unix)]
    fn an_installation_that_fails_once_is_repeated() {
        let workspace = Workspace::here().unwrap();
        let directory = Temporary::new();
        // Fails unless it has run before.
        let script = format!("cd '{}' && echo x >> runs && test $(wc -l < runs) -ge 2", directory.display());
        let command = vec!["sh", "-c", &script];
        assert!(install(&workspace, &[command]).is_ok());
        assert_eq!(std::fs::read_to_string(directory.join("runs")).unwrap(), "x\nx\n");
    }

    #[test]
    fn missing_optional_programs_are_reported_and_not_required() {
        let (_guard, machine) = machine(&[], false);
        let plan = plan(TABLE, &["bench"], &machine);
        assert!(plan.sentence.is_some_and(|sentence| sentence.contains("valgrind")));
        assert!(!plan.needed);
    }

    #[test]
    fn every_requirement_belongs_to_a_job_that_exists() {
        let steps = crate::steps::names();
        let suites: Vec<_> = crate::bench::SUITES.iter().map(|suite| format!("bench {}", suite.name)).collect();
        for Requirement { job, program, .. } in REQUIREMENTS {
            let known =
                steps.contains(job) || ["fuzz", "bench"].contains(job) || suites.iter().any(|suite| suite == job);
            assert!(known, "{program} is needed by {job}, which does not exist");
        }
    }
}
