//! Owns the key: it goes into one header and is never printed, stored or serialised.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hyper::header::HeaderValue;

/// A key. It has no `Debug`, no `Display` and no serialisation of its text.
#[derive(Clone)]
pub struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Letters at each end by which servers quote a key they refuse.
const QUOTED: usize = 8;

impl Secret {
    /// A key as given; `None` for an empty one.
    pub fn new(text: String) -> Option<Self> {
        let text = text.trim().to_owned();
        (!text.is_empty()).then_some(Secret(text))
    }

    /// `scheme` and the key, as a header's value marked sensitive.
    ///
    /// # Errors
    /// Where it holds characters that no header may hold.
    pub fn header(&self, scheme: &str) -> Result<HeaderValue, String> {
        header(&format!("{scheme}{}", self.0))
    }

    /// Every form it may come back in: as it is, escaped, in base64, percent-encoded, its ends.
    pub fn forms(&self) -> Vec<String> {
        forms(&self.0)
    }
}

/// A header's value marked sensitive.
///
/// # Errors
/// Where it holds characters that no header may hold.
pub fn header(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        "a header or key holds a line break or another character that no header may hold".to_owned()
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Every form that a secret text may come back in.
pub fn forms(secret: &str) -> Vec<String> {
    let escaped = serde_json::Value::from(secret).to_string();
    let mut forms = vec![
        secret.to_owned(),
        escaped.trim_matches('"').to_owned(),
        STANDARD.encode(secret),
        STANDARD_NO_PAD.encode(secret),
        URL_SAFE_NO_PAD.encode(secret),
        percent(secret),
    ];
    // Servers quote a refused key by its ends; a short key's ends would be the whole of it.
    if secret.len() >= 3 * QUOTED && secret.is_ascii() {
        forms.push(secret[..QUOTED].to_owned());
        forms.push(secret[secret.len() - QUOTED..].to_owned());
    }
    forms
}

fn percent(text: &str) -> String {
    let each = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_nowhere_and_its_forms_are_known() {
        let secret = Secret::new("sk-abc/def+0123456789-xyz\"".into()).expect("not empty");
        assert_eq!(format!("{secret:?}"), "Secret");
        assert!(format!("{:?}", secret.header("Bearer ")).contains("Sensitive"));
        let forms = secret.forms();
        for form in ["sk-abc%2Fdef%2B0123456789-xyz%22", "sk-abc/d", "789-xyz\""] {
            assert!(forms.iter().any(|f| f == form), "{form} in {forms:?}");
        }
        assert!(Secret::new("  ".into()).is_none());
        assert!(Secret::new("a\nb".into()).is_some_and(|s| s.header("").is_err()));
    }
}
