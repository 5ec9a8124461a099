//! A strict parser for the text exposition format of Prometheus, version 0.0.4.

use std::collections::{BTreeMap, BTreeSet};

/// All samples, by name and labels.
#[derive(Debug, Default)]
pub struct Metrics {
    samples: BTreeMap<(String, Labels), f64>,
}

type Labels = Vec<(String, String)>;

impl Metrics {
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let key = (name.to_owned(), labels);
        *self.samples.get(&key).unwrap_or_else(|| panic!("no {key:?} in {:#?}", self.samples.keys()))
    }

    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is a sample with this name.
    pub fn has_series(&self, name: &str) -> bool {
        self.samples.keys().any(|(known, _)| known == name)
    }

    /// Whether the label occurs with each of these values, which are separated by `|`.
    pub fn has_label(&self, label: &str, values: &str) -> bool {
        let all: BTreeSet<_> = self.samples.keys().flat_map(|(_, labels)| labels).collect();
        values.split('|').all(|value| all.contains(&(label.to_owned(), value.to_owned())))
    }
}

/// Parses all samples; panics at the first violation of the format.
pub fn parse(text: &str) -> Metrics {
    assert!(text.ends_with('\n'), "the last line has no line feed");
    let mut metrics = Metrics::default();
    let mut families = BTreeSet::new();
    let mut help = None;
    let mut family = None::<(String, String)>;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help_text) = rest.split_once(' ').unwrap_or_else(|| panic!("no help text: {line}"));
            assert!(is_name(name) && help_text.len() > 3 && help_text.ends_with('.'), "{line}");
            assert!(families.insert(name.to_owned()), "repeated family: {line}");
            help = Some(name.to_owned());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(help.take().as_deref(), Some(name), "HELP precedes TYPE");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "exactly the counters end with _total: {line}");
            assert!(name.starts_with("rallypoint_"), "{line}");
            family = Some((name.to_owned(), kind.to_owned()));
        } else {
            let (name, labels, value) = parse_sample(line).unwrap_or_else(|| panic!("not a sample: {line}"));
            let (family_name, kind) = family.as_ref().expect("a sample belongs to a family");
            let is_of_family = match &**kind {
                "histogram" => ["_bucket", "_sum", "_count"].iter().any(|end| name == format!("{family_name}{end}")),
                _ => name == *family_name,
            };
            assert!(is_of_family, "{name} is not a sample of {family_name}");
            assert!(kind == "gauge" || value >= 0.0, "{line}");
            let is_new = metrics.samples.insert((name, labels), value).is_none();
            assert!(is_new, "repeated sample: {line}");
        }
    }
    for name in families {
        let has_samples = metrics.samples.keys().any(|(known, _)| known.starts_with(&name));
        assert!(has_samples, "{name} has no sample");
        check_histogram(&metrics, &name);
    }
    metrics
}

/// Checks that the buckets of a histogram are cumulative, and that the last one equals the count.
fn check_histogram(metrics: &Metrics, name: &str) {
    let bucket = format!("{name}_bucket");
    let buckets = metrics.samples.iter().filter(|((known, _), _)| *known == bucket);
    let mut buckets: Vec<(f64, f64)> =
        buckets.map(|((_, labels), count)| (labels.last().unwrap().1.parse().unwrap(), *count)).collect();
    let Some(_) = buckets.first() else { return };
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    assert!(buckets.is_sorted_by(|one, other| one.1 <= other.1), "{buckets:?}");
    assert_eq!(buckets.last().unwrap(), &(f64::INFINITY, metrics.value(&format!("{name}_count"), &[])));
    assert!(metrics.has_series(&format!("{name}_sum")));
}

/// Parses `name{label="value",...} number`.
fn parse_sample(line: &str) -> Option<(String, Labels, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Labels::new();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            let (label, tail) = inside.split_once("=\"")?;
            assert!(is_name(label) && !label.starts_with("__") && !label.contains(':'), "{line}");
            let (value, tail) = parse_quoted(tail)?;
            labels.push((label.to_owned(), value));
            match tail.split_at_checked(1)? {
                (",", tail) => inside = tail,
                ("}", tail) => {
                    rest = tail;
                    break;
                }
                _ => return None,
            }
        }
    }
    let value = rest.strip_prefix(' ')?;
    (is_name(name) && !value.contains(' ')).then_some(())?;
    Some((name.to_owned(), labels, value.parse().ok()?))
}

/// Parses a label value up to its closing quote; returns the value and the rest of the text.
fn parse_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                c @ ('"' | '\\') => c,
                _ => return None,
            }),
            c => value.push(c),
        }
    }
    None
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    name.chars().all(is_part) && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// The label matchers of a PromQL expression: `label="value"` and `label=~"one|other"` within braces.
pub fn matched_labels(expression: &str) -> Vec<(String, String)> {
    let braces = expression.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let pairs = braces.flat_map(|(inside, _)| inside.split(','));
    let pair = |pair: &str| {
        let (label, value) = pair.split_once('=')?;
        Some((label.trim().to_owned(), value.trim_start_matches('~').trim_matches('"').to_owned()))
    };
    pairs.filter_map(pair).collect()
}
