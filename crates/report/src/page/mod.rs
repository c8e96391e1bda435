//! Reports as self-contained pages for a browser: no network, no font, no library.

pub mod bars;
pub mod curves;
pub mod lanes;

use std::hash::{BuildHasher as _, RandomState};

const STYLE: &str = include_str!("page.css");

/// A page with this title (text) and this body (HTML). The page's policy allows only `script` to
/// run, by a nonce that no author of the text could know before.
pub fn page(title: &str, body: &str, script: Option<&str>) -> String {
    let title = escape(title);
    // Random by the standard library's seeds of hash tables.
    let nonce = format!("{:016x}", RandomState::new().hash_one(&title));
    let (policy, script) = match script {
        Some(script) => (
            format!("; script-src 'nonce-{nonce}'"),
            format!("<script nonce={nonce}>\n{script}</script>\n"),
        ),
        None => Default::default(),
    };
    format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; \
         style-src 'unsafe-inline'{policy}\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         {body}{script}</body>\n</html>\n"
    )
}

/// A page without a script, which ends with the tables as printed in a terminal.
pub fn with_tables(title: &str, body: &str, tables: &str) -> String {
    let tables = escape(tables);
    let body = format!("{body}<h2>Figures</h2>\n<div class=wide><pre>{tables}</pre></div>\n");
    page(title, &body, None)
}

/// Escapes text for use between tags or in quotes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_templates_are_text() {
        assert_eq!(escape("a<b&c>(\"d\", 'e')"), "a&lt;b&amp;c&gt;(&quot;d&quot;, &#39;e&#39;)");
    }

    #[test]
    fn a_page_runs_its_own_script_or_none() {
        let with = page("a<b", "", Some("1"));
        let nonce = with.split("<script nonce=").nth(1).and_then(|rest| rest.split('>').next());
        let policy = format!("script-src 'nonce-{}'", nonce.unwrap_or("none"));
        assert!(with.contains(&policy) && with.contains("<title>a&lt;b</title>"), "{with}");
        assert!(!page("a", "", None).contains("script"));
    }
}
