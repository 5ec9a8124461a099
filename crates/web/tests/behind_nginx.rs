//! The block for nginx in docs/operating.md works as it is: visitors keep their addresses, and live events are not delayed.

use crate::common;

use common::{EventStream, Response, Server, Site, read_response, wait_until};
use rallypoint_web::WebOptions;
use std::{
    io::{BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
};

/// A running nginx.
struct Nginx {
    process: Child,
    addr: SocketAddr,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The block of the documentation, with the port to listen on and the address of the site filled in.
fn block(port: u16, site: SocketAddr) -> String {
    let text = include_str!("../../../docs/operating.md");
    let block = text.split("```nginx\n").nth(1).unwrap().split("```").next().unwrap();
    for part in ["listen 80;", "127.0.0.1:29950"] {
        assert_eq!(block.matches(part).count(), 1, "{part} in {block}");
    }
    block.replace("listen 80;", &format!("listen 127.0.0.1:{port};")).replace("127.0.0.1:29950", &site.to_string())
}

/// Starts nginx in front of a site. Returns `None` if it is not installed.
fn start(dir: &Path, site: SocketAddr) -> Option<Nginx> {
    if Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_err() {
        rallypoint_harness::skip("nginx is not installed");
        return None;
    }
    // A free port can be taken by another program before nginx binds it: then the next one is tried.
    for _ in 0..20 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {}/{kind};\n", dir.display()))
            .concat();
        let config = format!(
            "daemon off;\nmaster_process off;\nerror_log stderr crit;\npid {}/pid;\nevents {{}}\n\
             http {{\naccess_log off;\n{paths}{}\n}}\n",
            dir.display(),
            block(port, site)
        );
        let file = dir.join("nginx.conf");
        std::fs::write(&file, config).unwrap();
        let command = Command::new("nginx").arg("-p").arg(dir).arg("-c").arg(&file).stderr(Stdio::null()).spawn();
        let mut nginx = Nginx { process: command.unwrap(), addr: (Ipv4Addr::LOCALHOST, port).into() };
        let is_running = wait_until("nginx accepts connections or ends", || {
            if nginx.process.try_wait().unwrap().is_some() {
                return Some(false);
            }
            TcpStream::connect(nginx.addr).ok().map(|_| true)
        });
        if is_running {
            return Some(nginx);
        }
    }
    panic!("nginx does not start");
}

/// Sends a request from an address of this machine.
fn get(from: Ipv4Addr, to: SocketAddr, path: &str) -> Response {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let mut tcp = TcpStream::from(socket);
    tcp.set_read_timeout(Some(common::TIMEOUT)).unwrap();
    write!(tcp, "GET {path} HTTP/1.1\r\nhost: lobby.example.org\r\nconnection: close\r\n\r\n").unwrap();
    read_response(&mut BufReader::new(tcp), false).unwrap()
}

#[test]
fn visitors_behind_a_trusted_nginx_keep_their_addresses() {
    let mut options = WebOptions::default();
    options.settings.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    options.settings.exempt = Vec::new();
    let site = Site::with_options(options);
    let dir = tempfile::tempdir().unwrap();
    let Some(nginx) = start(dir.path(), site.addr()) else { return };
    for visitor in [Ipv4Addr::new(127, 0, 0, 7), Ipv4Addr::new(127, 0, 0, 8)] {
        let outcomes = get(visitor, nginx.addr, "/api/v1/outcomes").json();
        assert_eq!(outcomes["address"], visitor.to_string());
        let other = get(visitor, nginx.addr, "/api/v1/outcomes?address=127.0.0.1");
        assert_eq!(other.status, 403, "a visitor is not the operator, although the proxy is on this machine");
    }
    let list = site.register_all(&[Server::new(1, "Alpha")]);
    let id = list["servers"][0]["id"].as_str().unwrap();
    let page = get(Ipv4Addr::LOCALHOST, nginx.addr, &format!("/servers/{id}")).text();
    assert!(page.contains("http://lobby.example.org/servers/"), "the host name is that of the visitor: {page}");
    // nginx passes events on as they come.
    let mut events = EventStream::new(nginx.addr, "/api/v1/events", &[]);
    assert_eq!(events.next().unwrap().name, "hello");
    site.register(&Server::new(1, "Beta"));
    assert_eq!(events.next().unwrap().data["name"], "Beta");
    assert_eq!(site.json("/readyz")["proxy"], "ok");
}

#[test]
fn w96_visitors_behind_a_proxy_that_is_not_trusted_are_limited() {
    let site = Site::start();
    let dir = tempfile::tempdir().unwrap();
    let Some(nginx) = start(dir.path(), site.addr()) else { return };
    assert_eq!(site.get("/api/v1/servers").header("ratelimit-limit"), None, "this machine is exempt");
    assert_eq!(site.json("/readyz")["proxy"], "ok");
    let visitor = get(Ipv4Addr::new(127, 0, 0, 7), nginx.addr, "/api/v1/servers");
    assert!(visitor.header("ratelimit-limit").is_some(), "{visitor:?}");
    let ready = site.json("/readyz");
    assert_eq!((&ready["proxy"], &ready["status"]), (&"untrusted".into(), &"degraded".into()));
}
