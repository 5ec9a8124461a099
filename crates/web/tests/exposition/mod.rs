//! Reads the text format of Prometheus, version 0.0.4, and is strict about it.

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

    /// Whether there are samples of this name.
    pub fn has_series(&self, name: &str) -> bool {
        self.samples.keys().any(|(known, _)| known == name)
    }

    /// Whether a label has one of these values, which may be separated by `|`, somewhere.
    pub fn has_label(&self, label: &str, values: &str) -> bool {
        let all: BTreeSet<_> = self.samples.keys().flat_map(|(_, labels)| labels).collect();
        values.split('|').all(|value| all.contains(&(label.to_owned(), value.to_owned())))
    }
}

/// All samples of a text; whatever the format does not allow is a panic that says what.
pub fn parse(text: &str) -> Metrics {
    assert!(text.ends_with('\n'), "the last line has no end");
    let (mut metrics, mut families) = (Metrics::default(), BTreeSet::new());
    let (mut help, mut family) = (None, None::<(String, String)>);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, words) = rest.split_once(' ').unwrap_or_else(|| panic!("no words: {line}"));
            assert!(is_name(name) && words.len() > 3 && words.ends_with('.'), "{line}");
            assert!(families.insert(name.to_owned()), "a family is there twice: {line}");
            help = Some(name.to_owned());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(help.take().as_deref(), Some(name), "the help comes right before the type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "counters, and only they, end with _total: {line}");
            assert!(name.starts_with("rallypoint_"), "{line}");
            family = Some((name.to_owned(), kind.to_owned()));
        } else {
            let (name, labels, value) = sample(line).unwrap_or_else(|| panic!("not a sample: {line}"));
            let (of, kind) = family.as_ref().expect("a sample of no family");
            let fits = match &**kind {
                "histogram" => ["_bucket", "_sum", "_count"].iter().any(|end| name == format!("{of}{end}")),
                _ => name == *of,
            };
            assert!(fits, "{name} is no sample of {of}");
            assert!(kind == "gauge" || value >= 0.0, "{line}");
            let is_new = metrics.samples.insert((name, labels), value).is_none();
            assert!(is_new, "a sample is there twice: {line}");
        }
    }
    for name in families {
        let has_samples = metrics.samples.keys().any(|(known, _)| known.starts_with(&name));
        assert!(has_samples, "{name} has no sample");
        check_histogram(&metrics, &name);
    }
    metrics
}

/// A histogram's buckets grow, and the last one has all.
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

/// `name{label="value",...} number`
fn sample(line: &str) -> Option<(String, Labels, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Labels::new();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            let (label, after) = inside.split_once("=\"")?;
            assert!(is_name(label) && !label.starts_with("__") && !label.contains(':'), "{line}");
            let (value, after) = quoted(after)?;
            labels.push((label.to_owned(), value));
            match after.split_at_checked(1)? {
                (",", more) => inside = more,
                ("}", more) => {
                    rest = more;
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

/// A value up to its closing quote, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut chars) = (String::new(), text.char_indices());
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

/// The labels that an expression asks for: `label="value"` and `label=~"one|other"` within braces.
pub fn matched_labels(expression: &str) -> Vec<(String, String)> {
    let braces = expression.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let pairs = braces.flat_map(|(inside, _)| inside.split(','));
    let pair = |pair: &str| {
        let (label, value) = pair.split_once('=')?;
        Some((label.trim().to_owned(), value.trim_start_matches('~').trim_matches('"').to_owned()))
    };
    pairs.filter_map(pair).collect()
}
