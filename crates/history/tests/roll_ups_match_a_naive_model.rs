//! Every resolution agrees with a model that keeps all samples.

use crate::common;

use common::*;
use proptest::prelude::*;
use rallypoint_history::{History, HistoryReader, Players, Point, Resolution, Subject, UnixSeconds};
use std::collections::BTreeMap;

/// The recorded minutes, each with the players of every listed server.
type Model = BTreeMap<UnixSeconds, BTreeMap<u8, u16>>;

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn roll_ups_match_a_naive_model(
        steps in prop::collection::vec(
            (
                // Mostly the next minute; sometimes the program did not run for a while, or for days.
                prop_oneof![20 => Just(1_i64), 4 => 1..5_i64, 2 => 30..200_i64, 1 => 1_000..4_000_i64],
                prop::collection::btree_map(1..6_u8, prop_oneof![0..30_u16, any::<u16>()], 0..5),
                // Whether the program is started again before this.
                prop::bool::weighted(0.02),
            ),
            1..250,
        ),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::start(options(&folder)).unwrap();
        let mut time = START;
        let mut model = Model::new();
        for (minutes, servers, restart) in steps {
            time += 60 * minutes;
            if restart {
                history.finish();
                history = History::start(options(&folder)).unwrap();
            }
            // Within the minute it does not matter when.
            record(&history, time + minutes % 60, &servers.iter().map(|(number, players)| (*number, *players)).collect::<Vec<_>>());
            model.insert(time, servers);
        }
        prop_assert_eq!(history.reader().stats().dropped, 0);
        let reader = history.reader();
        let from = START - DAY;
        // Minutes are kept for two days, and the hours in which these begin.
        compare(&reader, &model, Resolution::Minute, 60, (time - 2 * DAY).max(from)..time + HOUR);
        compare(&reader, &model, Resolution::Hour, HOUR, (time - 40 * DAY).max(from)..time + DAY);
        compare(&reader, &model, Resolution::Day, DAY, from..time + DAY);
        summaries(&reader, &model, time);
    }
}

fn compare(
    reader: &HistoryReader,
    model: &Model,
    resolution: Resolution,
    step: i64,
    range: std::ops::Range<UnixSeconds>,
) {
    let subjects = (1..6).map(server).chain([Subject::Total, Subject::List(LIST)]);
    for subject in subjects {
        let series = reader.series(&subject, range.clone(), resolution).unwrap();
        assert_eq!(series.step, step);
        assert_eq!(series.points.first().map(|point| point.time), Some(range.start.div_euclid(step) * step));
        assert!(series.points.last().unwrap().time + step >= range.end);
        let first = samples(model, &subject, START, 10_000 * DAY).first().map(|(time, _)| *time);
        for point in series.points {
            assert_eq!(point, naive(model, &subject, first, point.time, step), "{subject:?} {resolution:?}");
        }
    }
}

/// The samples of a subject in a time range.
fn samples(model: &Model, subject: &Subject, from: UnixSeconds, step: i64) -> Vec<(UnixSeconds, [f64; 4])> {
    let numbers =
        |(number, players): (&u8, &u16)| [f64::from(*players), f64::from(*number), 2.0 * f64::from(*number), 1.0];
    let one = |servers: &BTreeMap<u8, u16>| -> Option<[f64; 4]> {
        let all = || servers.iter().map(numbers).fold([0.0; 4], |sum, one| std::array::from_fn(|i| sum[i] + one[i]));
        match subject {
            Subject::Total => Some(all()),
            Subject::List(_) => (!servers.is_empty()).then(all),
            Subject::Server(id) => servers.iter().find(|(number, _)| id.as_bytes()[0] == **number).map(numbers),
        }
    };
    model.range(from..from + step).filter_map(|(time, servers)| Some((*time, one(servers)?))).collect()
}

/// The point of a subject that was listed first at this time.
fn naive(model: &Model, subject: &Subject, first: Option<UnixSeconds>, time: UnixSeconds, step: i64) -> Point {
    let samples: Vec<_> = samples(model, subject, time, step).into_iter().map(|(_, sample)| sample).collect();
    let count = samples.len() as f64;
    let average = |column: usize| samples.iter().map(|sample| sample[column]).sum::<f64>() / count;
    let players = || samples.iter().map(|sample| sample[0] as u32);
    Point {
        time,
        observed: recorded(model, first, time, step).max(samples.len() as u32),
        up: samples.len() as u32,
        players: (!samples.is_empty()).then(|| Players {
            min: players().min().unwrap(),
            avg: average(0),
            max: players().max().unwrap(),
            bots: average(1),
            slots: average(2),
            servers: average(3),
        }),
    }
}

/// Number of recorded minutes in a time range since the subject was first listed.
fn recorded(model: &Model, first: Option<UnixSeconds>, time: UnixSeconds, step: i64) -> u32 {
    let end = model.last_key_value().map_or(0, |(last, _)| last + 60).min(time + step);
    let since = first.map_or(i64::MAX, |first| (end - first).max(0) / 60);
    (model.range(time..time + step).count() as i64).min(since) as u32
}

fn summaries(reader: &HistoryReader, model: &Model, now: UnixSeconds) {
    for subject in (1..6).map(server).chain([Subject::Total, Subject::List(LIST)]) {
        let all = samples(model, &subject, START, 10_000 * DAY);
        let Some(summary) = reader.summary(&subject, now).unwrap() else {
            assert!(all.is_empty());
            continue;
        };
        assert_eq!(summary.first, all[0].0);
        assert_eq!(summary.last, all.last().unwrap().0);
        let most = all.iter().map(|(_, sample)| sample[0] as u32).max().unwrap();
        let first = all.iter().find(|(_, sample)| sample[0] as u32 == most).unwrap().0;
        assert_eq!(summary.peak.map(|peak| (peak.players, peak.time)), (most > 0).then_some((most, first)));
        for (uptime, hours) in summary.uptime.iter().zip([24, 7 * 24, 30 * 24]) {
            let from = (now.div_euclid(HOUR) - hours) * HOUR;
            let each = (0..=hours).map(|hour| recorded(model, Some(summary.first), from + hour * HOUR, HOUR));
            let looked = f64::from(each.sum::<u32>());
            let up = all.iter().filter(|(time, _)| *time >= from).count() as f64;
            assert_eq!(*uptime, (looked > 0.0).then_some((up / looked).min(1.0)), "{subject:?}");
        }
    }
}
