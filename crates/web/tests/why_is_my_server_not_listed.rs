//! The page that says why a server is not listed.

mod common;

use common::{Server, Site, until};

#[test]
fn it_tells_what_became_of_the_last_registrations() {
    let site = Site::start();
    assert!(site.get("/why").text().contains("No recent registrations from 127.0.0.1."));
    site.fill(&[Server::new(1, "Alpha")]);
    let html = site.get("/why").text();
    assert!(html.contains("the server is now in the list") && html.contains("8001"), "{html}");
    let mut broken = Server::new(2, "Beta").datagram();
    broken.truncate(40);
    site.send(&broken);
    let html = until("the refusal is told", || Some(site.get("/why").text()).filter(|html| html.contains("malformed")));
    assert!(html.contains("class=\"notice bad\""), "{html}");
}

#[test]
fn a_goodbye_is_nothing_bad() {
    let site = Site::start();
    site.fill(&[Server::new(1, "Alpha")]);
    // It is said more than once, as datagrams can be lost.
    site.unregister(1);
    site.unregister(1);
    let is_told = |html: &String| html.contains("<code>not_registered</code>");
    let html = until("both goodbyes are told", || Some(site.get("/why").text()).filter(is_told));
    let verdict = "<p class=\"notice calm\">the server was removed from the list by its owner";
    assert!(html.contains(verdict), "{html}");
}

#[test]
fn an_address_that_is_none_is_told_and_kept_in_the_field() {
    let site = Site::start();
    let answer = site.get("/why?address=%3Cb%3E");
    assert_eq!(answer.status, 400);
    let html = answer.text();
    assert!(html.contains("value=\"&#60;b&#62;\"") && html.contains("this is not an IP address"), "{html}");
    for good in ["192.0.2.1", "[2001:db8::1]:29944", "192.0.2.1:80"] {
        assert_eq!(site.get(&format!("/why?address={good}")).status, 200, "this machine may ask for any: {good}");
    }
}
