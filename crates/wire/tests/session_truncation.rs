//! S3: texts are truncated on character boundaries, lists on item boundaries, and no more than necessary.

use proptest::{collection::vec, prelude::*};
use rallypoint_wire::session::{Name, Text, TextListBuf, Title};

/// Takes characters while they fit.
fn naive_truncate(text: &str, limit: usize) -> String {
    let mut cut = String::new();
    for c in text.chars() {
        if cut.len() + c.len_utf8() > limit {
            break;
        }
        cut.push(c);
    }
    cut
}

/// Takes items while all of them joined fit.
fn naive_list(items: &[String]) -> String {
    let fits = |count: &usize| items[..*count].join("\0").len() <= 507;
    let count = (0..=items.len()).take_while(fits).last().unwrap_or(0);
    items[..count].join("\0")
}

/// Characters of one to four bytes, without NUL.
fn text(longest: usize) -> impl Strategy<Value = String> {
    let c = |choice: u8| ['a', '\x1b', 'é', '七', '🎮'][usize::from(choice % 5)];
    vec(any::<u8>(), 0..longest).prop_map(move |choices| choices.into_iter().map(c).collect())
}

proptest! {
    #[test]
    fn s3_text_is_truncated_between_characters(text in text(300), limit in 0..600usize) {
        prop_assert_eq!(Text::<507>::cut(&text).to_str(), Ok(&*naive_truncate(&text, 507)));
        prop_assert_eq!(Name::<127>::cut(&text).to_str(), Ok(&*naive_truncate(&text, 127)));
        prop_assert_eq!(Text::<507>::cut_to(limit, &text).to_str(), Ok(&*naive_truncate(&text, limit.min(507))));
    }

    #[test]
    fn s3_the_name_has_priority_over_the_description(name in text(300), description in text(300)) {
        let title = Title::cut(&name, &description);
        let name = naive_truncate(&name, 506);
        prop_assert_eq!(title.name().to_str(), Ok(&*name));
        prop_assert_eq!(title.description().to_str(), Ok(&*naive_truncate(&description, 506 - name.len())));
    }

    #[test]
    fn s3_a_list_is_truncated_between_items(items in vec(text(60), 0..20)) {
        let list = TextListBuf::cut(items.iter().map(String::as_str));
        prop_assert_eq!(std::str::from_utf8(list.as_list().as_bytes()), Ok(&*naive_list(&items)));
    }
}
