//! The table of protocols in docs/querying.md is the one that the code has.

use rallypoint_query_proto::{Protocol, Responder};
use std::fmt::Write;

#[test]
fn the_table_in_the_documentation_is_that_of_the_code() {
    let mut table = String::from("| scheme | protocol | default port | responder |\n|---|---|---|---|\n");
    for protocol in Protocol::ALL {
        let responder = if Responder::protocols().any(|other| other == *protocol) { "yes" } else { "" };
        let (title, port) = (protocol.title(), protocol.default_port());
        writeln!(table, "| `{protocol}://` | {title} | {port} | {responder} |").unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/querying.md");
    let document = std::fs::read_to_string(path).unwrap();
    let shown = document.split("<!-- protocols -->\n").nth(1).and_then(|rest| rest.split("<!-- end").next());
    assert_eq!(shown, Some(&*table), "docs/querying.md needs this table:\n{table}");
}
