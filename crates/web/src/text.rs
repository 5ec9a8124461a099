//! Text and links from strangers, fit for a page.
//!
//! What a server says about itself goes through [`rallypoint_wire::text::display`] (L5) before it is shown anywhere, and
//! whatever writes HTML or JSON escapes it. What is left for here are links.

/// A link that is harmless to click: http or https, and nothing in it that could end an attribute or a header.
///
/// ```
/// use rallypoint_web::text::link;
///
/// assert_eq!(link("https://example.org/clan"), Some("https://example.org/clan"));
/// assert_eq!(link("javascript:alert(1)"), None);
/// ```
#[must_use]
pub fn link(text: &str) -> Option<&str> {
    let text = text.trim();
    let (scheme, rest) = text.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !"\"'<>\\`".contains(c);
    let has_host = rest.starts_with(|c: char| c.is_alphanumeric() || c == '[');
    (is_web && has_host && text.len() <= LONGEST && text.chars().all(is_plain)).then_some(text)
}

/// The longest link that is made clickable, in bytes: what browsers can be expected to take.
const LONGEST: usize = 2_000;

/// Lower case, for comparing without regard to it.
pub(crate) fn fold(text: &str) -> String {
    text.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_links_are_links() {
        for good in ["http://a", "HTTPS://Example.org/x?y=z#f", " https://[::1]:8080/ ", "https://münchen.example/"] {
            assert_eq!(link(good), Some(good.trim()), "{good}");
        }
        let bad = [
            "",
            "example.org",
            "ftp://example.org",
            "javascript://example.org/%0aalert(1)",
            "data:text/html,x",
            "https://",
            "https:///x",
            "http://a\"onclick=x",
            "http://a b",
            "http://a\u{7}",
            "vbscript:x",
            "http://@evil",
        ];
        for bad in bad {
            assert_eq!(link(bad), None, "{bad}");
        }
        assert_eq!(link(&format!("https://a/{}", "x".repeat(2_000))), None);
    }
}
