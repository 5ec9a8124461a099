//! The file can be read by another program while it is written, and afterwards.

use crate::common;

use common::*;
use rallypoint_history::{History, HistoryError, HistoryReader, Resolution, Subject, export};

#[test]
fn a_reader_sees_each_minute_as_soon_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    assert!(matches!(HistoryReader::open(&path), Err(HistoryError::Missing(_))));
    let history = History::start(options(&folder)).unwrap();
    record(&history, START, &[(1, 3)]);
    let reader = HistoryReader::open(&path).unwrap();
    for minute in 1..130 {
        record(&history, START + 60 * minute, &[(1, 3)]);
        let series = reader.series(&server(1), START..START + 3 * HOUR, Resolution::Hour).unwrap();
        assert_eq!(series.points.iter().map(|point| i64::from(point.up)).sum::<i64>(), minute + 1);
    }
    history.finish();
    let afterwards = HistoryReader::open(&path).unwrap();
    let total = |reader: &HistoryReader| reader.summary(&Subject::Total, START + 3 * HOUR).unwrap().unwrap();
    assert_eq!(total(&afterwards), total(&reader));
}

#[test]
fn an_export_distinguishes_unlisted_from_unrecorded() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::start(options(&folder)).unwrap();
    record(&history, START, &[(1, 3)]);
    record(&history, START + 60, &[(1, 4)]);
    record(&history, START + 180, &[(2, 4)]);
    let reader = history.reader();
    let series = reader.series(&server(1), START..START + 240, Resolution::Auto).unwrap();
    let mut csv = export::CSV_HEADING.as_bytes().to_vec();
    export::csv(&mut csv, &server(1), &series).unwrap();
    let id = "01".repeat(16);
    let expected = format!(
        "kind,id,time,seconds,minutes_observed,minutes_up,players_min,players_avg,players_max,bots,slots,servers\n\
         server,{id},2027-01-16T00:00:00Z,60,1,1,3,3,3,1,2,1\n\
         server,{id},2027-01-16T00:01:00Z,60,1,1,4,4,4,1,2,1\n\
         server,{id},2027-01-16T00:03:00Z,60,1,0,,,,,,\n"
    );
    assert_eq!(String::from_utf8(csv).unwrap(), expected);

    let mut json = Vec::new();
    let series = reader.series(&Subject::Total, START..START + 240, Resolution::Hour).unwrap();
    let summary = reader.summary(&Subject::Total, START).unwrap();
    export::json(&mut json, &Subject::Total, summary.as_ref(), &series).unwrap();
    let expected = "{\"kind\":\"total\",\"id\":null,\"name\":null,\"first_seen\":\"2027-01-16T00:00:00Z\",\"step\":3600,\"points\":[\
        {\"time\":\"2027-01-16T00:00:00Z\",\"observed\":3,\"up\":3,\"players\":{\"min\":3,\"avg\":3.67,\"max\":4},\
        \"bots\":1.33,\"slots\":2.67,\"servers\":1.0}]}\n";
    assert_eq!(String::from_utf8(json).unwrap(), expected);
}

#[test]
fn times_are_parsed_in_several_formats() {
    for text in ["2027-01-16", "2027-01-16T00:00:00Z", "2027-01-16T01:00:00+01:00", "1800057600"] {
        assert_eq!(export::parse_time(text).unwrap(), START, "{text}");
    }
    for (text, expected) in [("20261116", 20_261_116), ("9999-12-31", 253_402_214_400), ("0001-01-01", -62_135_596_800)]
    {
        assert_eq!(export::parse_time(text).unwrap(), expected, "{text}");
    }
    for text in ["yesterday", "2027-01-16T00:00:00", "2027-02-29", ""] {
        assert!(export::parse_time(text).is_err(), "{text}");
    }
}
