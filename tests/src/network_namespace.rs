//! A second machine on Linux: a network namespace that two cables connect with the one of the test.
//!
//! The test itself runs in a namespace of its own, so that nothing of the real machine's network is touched and no privilege is
//! needed where users may create namespaces.

use crate::{skip::skip, wait::eventually};
use std::{
    env, fs,
    path::Path,
    process::{Child, Command, Stdio},
};

/// Set for the test that was started again in its own namespace.
const INSIDE: &str = "RALLYPOINT_TEST_NAMESPACE";

/// Runs the calling test again in a network namespace of its own, where it gets `true`. Outside it gets `false` after that run,
/// and has to return.
///
/// # Panics
/// If the test fails there.
#[must_use]
#[track_caller]
pub fn is_inside_a_namespace(test: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        run("ip", &["link", "set", "lo", "up"]);
        return true;
    }
    let unshare = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "--"]).args(arguments);
        command
    };
    let may = unshare(&["ip", "link", "set", "lo", "up"]).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        skip("network namespaces cannot be created (unshare of util-linux, ip of iproute2, and the permission)");
        return false;
    }
    let program = env::current_exe().expect("the path of this test");
    let program = program.to_str().expect("a path in UTF-8");
    let status = unshare(&[program, "--exact", test, "--nocapture"]).env(INSIDE, "1").status();
    assert!(status.expect("the test starts again").success(), "{test} failed in its namespace");
    false
}

/// A machine with two cables to the one of the test. It vanishes when this value is dropped.
#[derive(Debug)]
pub struct SecondMachine {
    /// A process that does nothing but keep the namespace.
    keeper: Child,
}

/// A cable between the two machines.
#[derive(Clone, Copy, Debug)]
pub struct Cable {
    name: &'static str,
    /// Address of the end at the test's machine.
    pub here: &'static str,
    /// Address of the end at the second machine.
    pub there: &'static str,
}

impl Cable {
    /// Pulls the cable out: packets are lost, connections stay open.
    pub fn cut(self) {
        run("ip", &["link", "set", self.name, "down"]);
    }

    /// Plugs the cable in again.
    pub fn mend(self) {
        run("ip", &["link", "set", self.name, "up"]);
    }
}

/// Both cables of a [`SecondMachine`].
pub const CABLES: [Cable; 2] = [
    Cable { name: "first", here: "10.1.0.1", there: "10.1.0.2" },
    Cable { name: "second", here: "10.2.0.1", there: "10.2.0.2" },
];

impl SecondMachine {
    /// Creates a machine. The test has to be inside a namespace.
    ///
    /// # Panics
    /// If a cable cannot be created.
    #[must_use]
    pub fn start() -> Self {
        let keeper = Command::new("unshare").args(["--net", "--", "sleep", "infinity"]).spawn().expect("unshare");
        let machine = Self { keeper };
        let namespace = |process: &str| fs::read_link(Path::new("/proc").join(process).join("ns/net")).ok();
        eventually("the second machine has its own network", || {
            namespace(&machine.id()).is_some_and(|there| Some(there) != namespace("self"))
        });
        machine.run(&["ip", "link", "set", "lo", "up"]);
        for cable in CABLES {
            let Cable { name, here, there } = cable;
            run("ip", &["link", "add", name, "type", "veth", "peer", "name", name, "netns", &machine.id()]);
            run("ip", &["address", "add", &format!("{here}/24"), "dev", name]);
            run("ip", &["link", "set", name, "up"]);
            machine.run(&["ip", "address", "add", &format!("{there}/24"), "dev", name]);
            machine.run(&["ip", "link", "set", name, "up"]);
        }
        machine
    }

    /// Makes a command run on this machine.
    #[must_use]
    pub fn command(&self, inner: &Command) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.id(), "--"]).arg(inner.get_program()).args(inner.get_args());
        command.env_clear().env("PATH", env::var_os("PATH").unwrap_or_default());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = inner.get_current_dir() {
            command.current_dir(directory);
        }
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, command: &[&str]) {
        run("nsenter", &[&["--net", "--target", &self.id(), "--"], command].concat());
    }

    fn id(&self) -> String {
        self.keeper.id().to_string()
    }
}

impl Drop for SecondMachine {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

#[track_caller]
fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status();
    assert!(status.is_ok_and(|status| status.success()), "{program} {} failed", arguments.join(" "));
}
