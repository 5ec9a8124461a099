//! A page survives a restart of the lobby behind a proxy, which answers 502, 503 or 429 meanwhile.

use crate::common;

use common::{Server, Site, browser::Browser};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

/// A proxy on a port of its own that forwards connections, or refuses requests with a status.
struct Proxy {
    addr: SocketAddr,
    target: Arc<Mutex<Result<SocketAddr, u16>>>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let target = Arc::new(Mutex::new(Ok(target)));
        let open = Arc::new(Mutex::new(Vec::new()));
        let (targets, opened) = (Arc::clone(&target), Arc::clone(&open));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let target = *targets.lock().unwrap();
                let opened = Arc::clone(&opened);
                std::thread::spawn(move || match target {
                    Ok(target) => forward(client, target, &opened),
                    Err(status) => refuse(client, status),
                });
            }
        });
        Self { addr, target, open }
    }

    /// Forwards new connections to this address, or refuses their requests; closes the open ones.
    fn set_target(&self, target: Result<SocketAddr, u16>) {
        *self.target.lock().unwrap() = target;
        for connection in self.open.lock().unwrap().drain(..) {
            let _ = connection.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn forward(client: TcpStream, target: SocketAddr, opened: &Mutex<Vec<TcpStream>>) {
    let Ok(server) = TcpStream::connect(target) else { return };
    let clones = [client.try_clone(), server.try_clone(), client.try_clone(), server.try_clone()];
    let [Ok(client_out), Ok(server_out), Ok(client_kept), Ok(server_kept)] = clones else { return };
    opened.lock().unwrap().extend([client_kept, server_kept]);
    let back = std::thread::spawn(move || copy(server, client_out));
    copy(client, server_out);
    let _ = back.join();
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Both);
}

fn refuse(mut client: TcpStream, status: u16) {
    let mut request = [0; 4_096];
    let _ = client.read(&mut request);
    let _ = write!(client, "HTTP/1.1 {status} Refused\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
}

#[test]
fn a_page_reconnects_after_a_restart_and_shows_the_new_list() {
    let Some(browser) = Browser::start(1_280) else { return };
    let first = Site::start();
    let list = first.register_all(&[Server::new(1, "Alpha").players(3)]);
    let proxy = Proxy::start(first.addr());
    browser.open(&format!("http://{}/", proxy.addr));
    let is_live = "document.querySelector('#liveness.on')";
    browser.wait_for(is_live);
    for status in [502, 503, 429] {
        proxy.set_target(Err(status));
        browser.wait_for("document.querySelector('#liveness:not(.on)')");
        proxy.set_target(Ok(first.addr()));
        browser.wait_for(is_live);
    }
    first.register(&Server::new(1, "Alpha").players(4));
    browser.wait_for("document.querySelector('#rows .v-players').textContent === '4 / 10'");
    // Another lobby: the events of the first one are unknown to it.
    let second = Site::start();
    second.register_all(&[Server::new(1, "Alpha").players(5), Server::new(2, "Beta")]);
    proxy.set_target(Err(502));
    browser.wait_for("document.querySelector('#liveness:not(.on)')");
    proxy.set_target(Ok(second.addr()));
    browser.wait_for("document.querySelectorAll('#rows tr').length === 2");
    // The page of a server, too.
    let id = list["servers"][0]["id"].as_str().unwrap();
    proxy.set_target(Ok(first.addr()));
    browser.open(&format!("http://{}/servers/{id}", proxy.addr));
    browser.wait_for("document.querySelector('#server .v-players').textContent === '4 / 10'");
    proxy.set_target(Err(502));
    first.register(&Server::new(1, "Alpha").players(6));
    proxy.set_target(Ok(first.addr()));
    browser.wait_for("document.querySelector('#server .v-players').textContent === '6 / 10'");
}

#[test]
fn a_list_that_cannot_be_loaded_says_so_and_can_be_loaded_again() {
    let Some(browser) = Browser::start(1_280) else { return };
    let site = Site::start();
    site.register_all(&[Server::new(1, "Alpha"), Server::new(2, "Beta")]);
    let proxy = Proxy::start(site.addr());
    browser.open(&format!("http://{}/", proxy.addr));
    browser.wait_for("document.querySelector('#liveness.on')");
    proxy.set_target(Err(502));
    browser.run("const q = document.querySelector('#filter [name=q]'); q.value = 'beta'; q.dispatchEvent(new Event('input', { bubbles: true }))");
    browser.wait_for("document.querySelector('#updates .failure')?.textContent.includes('could not be loaded')");
    assert_eq!(browser.run("return document.querySelectorAll('#rows tr').length"), 2, "the list of before stays");
    proxy.set_target(Ok(site.addr()));
    browser.click("#updates button");
    browser
        .wait_for("document.querySelectorAll('#rows tr').length === 1 && !document.querySelector('#updates .failure')");
}
