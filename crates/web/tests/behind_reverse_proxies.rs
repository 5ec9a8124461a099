//! The blocks for nginx and Caddy in docs/install.md work as they are: visitors keep their addresses, and live events are not
//! delayed.

use crate::common;

use common::{EventStream, Response, Server, Site, read_response, wait_until};
use rallypoint_web::WebOptions;
use std::{
    io::{BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Nginx,
    Caddy,
}

/// A running reverse proxy.
struct Proxy {
    process: Child,
    addr: SocketAddr,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Caddy => "caddy",
        }
    }

    /// The block of the documentation, with the port to listen on and the address of the site filled in.
    fn block(self, port: u16, site: SocketAddr) -> String {
        let text = include_str!("../../../docs/install.md");
        let block = text.split(&format!("```{}\n", self.name())).nth(1).unwrap().split("```").next().unwrap();
        let (listen, local) = match self {
            Self::Nginx => ("listen 80;", format!("listen 127.0.0.1:{port};")),
            // Without a certificate, which Caddy cannot get for this name here.
            Self::Caddy => ("lobby.example.org {", format!("http://lobby.example.org:{port} {{")),
        };
        for part in [listen, "127.0.0.1:29950"] {
            assert_eq!(block.matches(part).count(), 1, "{part} in {block}");
        }
        block.replace(listen, &local).replace("127.0.0.1:29950", &site.to_string())
    }

    /// The command that runs the proxy in the foreground, with all of its files in a directory.
    fn command(self, dir: &Path, block: &str) -> Command {
        let shown = dir.display();
        let config = match self {
            Self::Nginx => {
                let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                    .map(|kind| format!("{kind}_temp_path {shown}/{kind};\n"))
                    .concat();
                format!(
                    "daemon off;\nmaster_process off;\nerror_log stderr crit;\npid {shown}/pid;\nevents {{}}\n\
                     http {{\naccess_log off;\n{paths}{block}\n}}\n"
                )
            }
            Self::Caddy => format!("{{\n\tadmin off\n\tdefault_bind 127.0.0.1\n}}\n{block}"),
        };
        let file = dir.join("proxy.conf");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new(self.name());
        match self {
            Self::Nginx => command.arg("-p").arg(dir).arg("-c").arg(file),
            Self::Caddy => command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file),
        };
        command.env("HOME", dir).env("XDG_DATA_HOME", dir).env("XDG_CONFIG_HOME", dir);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts the proxy in front of a site. Returns `None` if it is not installed.
    fn start(self, dir: &Path, site: SocketAddr) -> Option<Proxy> {
        let version = if self == Self::Nginx { "-v" } else { "version" };
        let mut probe = Command::new(self.name());
        if probe.arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            rallypoint_harness::skip(&format!("{} is not installed", self.name()));
            return None;
        }
        // A free port can be taken by another program before the proxy binds it: then the next one is tried.
        for _ in 0..20 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let process = self.command(dir, &self.block(port, site)).spawn().unwrap();
            let mut proxy = Proxy { process, addr: (Ipv4Addr::LOCALHOST, port).into() };
            let is_running = wait_until("the proxy accepts connections or ends", || {
                if proxy.process.try_wait().unwrap().is_some() {
                    return Some(false);
                }
                TcpStream::connect(proxy.addr).ok().map(|_| true)
            });
            if is_running {
                return Some(proxy);
            }
        }
        panic!("{} does not start", self.name());
    }
}

/// Sends a request from an address of this machine.
fn get(from: Ipv4Addr, to: SocketAddr, path: &str) -> Response {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let mut tcp = TcpStream::from(socket);
    tcp.set_read_timeout(Some(common::TIMEOUT)).unwrap();
    // HTTP/1.0 has no chunks: a response without a length ends with the connection.
    write!(tcp, "GET {path} HTTP/1.0\r\nhost: lobby.example.org\r\n\r\n").unwrap();
    let mut tcp = BufReader::new(tcp);
    let mut response = read_response(&mut tcp, false).unwrap();
    tcp.read_to_end(&mut response.body).unwrap();
    response
}

fn visitors_keep_their_addresses(program: Program) {
    let mut options = WebOptions::default();
    options.settings.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    options.settings.exempt = Vec::new();
    let site = Site::with_options(options);
    let dir = tempfile::tempdir().unwrap();
    let Some(proxy) = program.start(dir.path(), site.addr()) else { return };
    for visitor in [Ipv4Addr::new(127, 0, 0, 7), Ipv4Addr::new(127, 0, 0, 8)] {
        let outcomes = get(visitor, proxy.addr, "/api/v1/outcomes").json();
        assert_eq!(outcomes["address"], visitor.to_string());
        let other = get(visitor, proxy.addr, "/api/v1/outcomes?address=127.0.0.1");
        assert_eq!(other.status, 403, "a visitor is not the operator, although the proxy is on this machine");
    }
    let list = site.register_all(&[Server::new(1, "Alpha")]);
    let id = list["servers"][0]["id"].as_str().unwrap();
    let page = get(Ipv4Addr::LOCALHOST, proxy.addr, &format!("/servers/{id}")).text();
    assert!(page.contains("http://lobby.example.org/servers/"), "the host name is that of the visitor: {page}");
    // The proxy passes events on as they come.
    let mut events = EventStream::new(proxy.addr, "/api/v1/events", &[("host", "lobby.example.org")]);
    assert_eq!(events.next().unwrap().name, "hello");
    site.register(&Server::new(1, "Beta"));
    assert_eq!(events.next().unwrap().data["name"], "Beta");
    assert_eq!(site.json("/readyz")["proxy"], "ok");
}

#[test]
fn visitors_behind_a_trusted_nginx_keep_their_addresses() {
    visitors_keep_their_addresses(Program::Nginx);
}

#[test]
fn visitors_behind_a_trusted_caddy_keep_their_addresses() {
    visitors_keep_their_addresses(Program::Caddy);
}

#[test]
fn w96_visitors_behind_a_proxy_that_is_not_trusted_are_limited() {
    let site = Site::start();
    let dir = tempfile::tempdir().unwrap();
    let Some(proxy) = Program::Nginx.start(dir.path(), site.addr()) else { return };
    assert_eq!(site.get("/api/v1/servers").header("ratelimit-limit"), None, "this machine is exempt");
    assert_eq!(site.json("/readyz")["proxy"], "ok");
    let visitor = get(Ipv4Addr::new(127, 0, 0, 7), proxy.addr, "/api/v1/servers");
    assert!(visitor.header("ratelimit-limit").is_some(), "{visitor:?}");
    let ready = site.json("/readyz");
    assert_eq!((&ready["proxy"], &ready["status"]), (&"untrusted".into(), &"degraded".into()));
}
