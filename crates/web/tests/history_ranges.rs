//! The range and the resolution of a history: every valid time is accepted, and no response is too long.

use crate::common;

use common::Site;
use rallypoint_history::{History, HistoryOptions};
use rallypoint_web::WebOptions;

#[test]
fn any_valid_time_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::start(HistoryOptions::new(dir.path().join("h.db"))).unwrap();
    let site = Site::with_sources(WebOptions::default(), |sources| sources.history = Some(history.reader()));
    site.wait_for_status("/api/v1/history", 200);
    let step_and_points = |query: &str| {
        let series = site.json(&format!("/api/v1/history?{query}"));
        (series["step"].as_u64().unwrap(), series["points"].as_array().unwrap().len())
    };
    assert_eq!(step_and_points("from=2026-11-16T08:00:00Z&to=2026-11-16T10:00:00%2B01:00"), (60, 60));
    assert_eq!(step_and_points("from=86400&to=1970-01-04&resolution=day"), (86_400, 2));
    assert_eq!(step_and_points("from=5&to=4").1, 0, "a range that ends before it starts");
    assert_eq!(step_and_points("from=9999-12-31").1, 0, "the future");
    // 50,000 minutes are the most that a response has; with half a minute more, they are days.
    assert_eq!(step_and_points("from=0&to=3000000&resolution=minute"), (60, 50_000));
    assert_eq!(step_and_points("from=0&to=3000030&resolution=minute"), (3_600, 834));
    assert_eq!(step_and_points("from=0001-01-01&to=9999-12-31&resolution=minute").0, 86_400);
}
