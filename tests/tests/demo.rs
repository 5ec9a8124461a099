//! `rallypoint demo` shows a lobby with pretend servers that can be listed and queried, and leaves nothing behind.

use rallypoint_harness::{Process, Signal, http_get, rallypoint, run, stderr, stdout, wait_for};
use std::net::TcpListener;

#[test]
fn the_demo_lists_servers_that_answer_and_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let mut command = rallypoint(home.path());
    command.args(["demo", "--http", "127.0.0.1:0"]).env("TMPDIR", temporary.path());
    let demo = Process::spawn(&mut command);
    let page = demo.wait_for_line("page ").split_whitespace().last().unwrap().to_owned();
    // The commands are meant to be copied, so they are run as they are printed.
    let printed = |command: &str| demo.wait_for_line(command).split_whitespace().skip(1).map(str::to_owned).collect();
    let list_command: Vec<String> = printed(" list ");
    let query: Vec<String> = printed(" query ");
    // 30 servers and the room, below the header; one may be restarting.
    let list = wait_for("the servers are listed", || {
        let list = stdout(&run(home.path(), &list_command));
        let has_names =
            ["Bacon Town 24/7", "東京サーバー", "Demo room: say hello"].iter().all(|name| list.contains(name));
        (list.lines().count() > 29 && has_names).then_some(list)
    });
    let answer = wait_for("a server answers", || {
        let answer = stdout(&run(home.path(), &query));
        answer.contains("Tag").then_some(answer)
    });
    assert!(answer.contains("Tag around the clock"), "{answer}");
    assert!(list.contains("Tag (demo)") && list_command.contains(&page), "lists have names: {list}");
    assert!(temporary.path().read_dir().unwrap().next().is_some(), "the history is in the temporary directory");
    demo.signal(Signal::INT);
    assert!(demo.wait().status.success(), "{}", demo.stderr());
    assert!(temporary.path().read_dir().unwrap().next().is_none(), "the temporary directory is removed");
    assert!(home.path().read_dir().unwrap().next().is_none(), "nothing is written elsewhere");
}

#[test]
fn the_demo_leaves_nothing_behind_however_it_ends() {
    let home = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let is_empty = || temporary.path().read_dir().unwrap().next().is_none();
    let demo = |http: &str| {
        let mut command = rallypoint(home.path());
        command.args(["demo", "--http", http]).env("TMPDIR", temporary.path());
        Process::spawn(&mut command)
    };
    // A closed terminal sends SIGHUP.
    for signal in [Signal::TERM, Signal::HUP] {
        let demo = demo("127.0.0.1:0");
        let page = demo.wait_for_line("page ");
        let address = page.trim_end_matches('/').rsplit('/').next().unwrap().parse().unwrap();
        assert!(http_get(address, "/").1.contains("are made up"), "the page says so");
        assert!(!is_empty());
        demo.signal(signal);
        assert!(demo.wait().status.success(), "{}", demo.stderr());
        assert!(is_empty());
    }
    // A demo that is killed cannot clean up; the next one does.
    let killed = demo("127.0.0.1:0");
    killed.wait_for_line("page ");
    killed.signal(Signal::KILL);
    killed.wait();
    assert!(!is_empty());
    let next = demo("127.0.0.1:0");
    next.wait_for_line("page ");
    assert_eq!(temporary.path().read_dir().unwrap().count(), 1);
    next.signal(Signal::TERM);
    next.wait();
    assert!(is_empty());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let output = demo(&taken.local_addr().unwrap().to_string()).wait();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is used by another program") && stderr(&output).contains("--http"));
    assert!(is_empty());
}

#[test]
fn a_page_for_other_machines_is_named_as_such() {
    let home = tempfile::tempdir().unwrap();
    let mut command = rallypoint(home.path());
    let demo = Process::spawn(command.args(["demo", "--http", "0.0.0.0:0"]));
    demo.wait_for_line("Other machines can open the page");
    let page = demo.wait_for_line("page ");
    assert!(page.contains("http://127.0.0.1:"), "{page}");
    demo.signal(Signal::TERM);
    demo.wait();
}

#[test]
fn hostile_servers_and_long_lists_can_be_added() {
    let home = tempfile::tempdir().unwrap();
    let mut command = rallypoint(home.path());
    command.args(["demo", "--http", "127.0.0.1:0", "--hostile", "--servers", "300"]);
    let demo = Process::spawn(&mut command);
    let page = demo.wait_for_line("page ").split_whitespace().last().unwrap().to_owned();
    let list = wait_for("the servers are listed", || {
        let list = stdout(&run(home.path(), ["list", &page]));
        (list.lines().count() > 280).then_some(list)
    });
    assert!(list.contains("<script>alert(1)</script>") && !list.contains('\u{1b}'), "{list}");
    demo.signal(Signal::INT);
    assert!(demo.wait().status.success(), "{}", demo.stderr());
}
