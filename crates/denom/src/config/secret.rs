//! Owns the key: it goes into one header and is never printed, stored or serialised.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hyper::header::HeaderValue;
use serde_json::{Map, Value};

/// A key. It has no `Debug`, no `Display` and no serialisation of its text.
#[derive(Clone)]
pub struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

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

    /// Every form it may come back in that is no mere escape: as it is, in base64, in hex.
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

/// Every form that a secret text may come back in, beside escapes and parts of these.
pub fn forms(secret: &str) -> Vec<String> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![secret.to_owned(), hex.to_ascii_uppercase(), hex];
    for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        forms.extend((0..3).map(|ahead| inside_base64(&alphabet, secret, ahead)));
    }
    forms
}

/// The letters that stand for `secret` alone where base64 begins `ahead` bytes before it.
fn inside_base64(alphabet: &GeneralPurpose, secret: &str, ahead: usize) -> String {
    let bytes = [&[0; 2][..ahead], secret.as_bytes()].concat();
    let letters = alphabet.encode(&bytes);
    let whole = bytes.len() * 8 / 6;
    letters[(ahead * 8).div_ceil(6)..whole].to_owned()
}

/// Words of which one in the name of a header or of a URL's parameter makes its value a secret.
const NAMES: [&str; 10] = [
    "key",
    "token",
    "secret",
    "cookie",
    "auth",
    "password",
    "credential",
    "session",
    "signature",
    "jwt",
];
/// As [`NAMES`], for members of a body, where many ordinary names hold the shorter words.
const MEMBERS: [&str; 9] = [
    "api_key",
    "apikey",
    "api-key",
    "password",
    "secret",
    "credential",
    "authorization",
    "access_token",
    "auth_token",
];

/// Whether what stands under this name in a header or a URL is a secret.
pub fn is_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "sig" || NAMES.iter().any(|word| name.contains(word))
}

/// The parts of a header's value that are secret: not the scheme, nor the names of cookies; of a
/// user name with a password also the password itself.
pub fn in_header(name: &str, value: &str) -> Vec<String> {
    if name.contains("cookie") {
        let held = |pair: &str| {
            pair.split_once('=')
                .map_or(pair, |(_, held)| held)
                .trim()
                .to_owned()
        };
        return value.split(';').map(held).collect();
    }
    let Some((scheme, credentials)) = value.split_once(' ') else {
        return vec![value.to_owned()];
    };
    let credentials = credentials.trim();
    let mut parts = vec![credentials.to_owned()];
    if scheme.eq_ignore_ascii_case("basic")
        && let Ok(decoded) = STANDARD_NO_PAD.decode(credentials.trim_end_matches('='))
        && let Ok(text) = String::from_utf8(decoded)
        && let Some((_, password)) = text.split_once(':')
    {
        parts.push(password.to_owned());
    }
    parts
}

/// The texts in a body that stand under a secret's name, at any depth.
pub fn in_body(body: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in body {
        collect(name, value, &mut found);
    }
    found
}

fn collect(name: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if is_member(name) => found.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| collect(name, value, found)),
        Value::Object(members) => members
            .iter()
            .for_each(|(name, value)| collect(name, value, found)),
        _ => {}
    }
}

fn is_member(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "token" || name == "key" || MEMBERS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use measure::scrub::Scrub;

    use super::*;

    const KEY: &str = "sk-abc/def+0123456789-xyz\"";

    #[test]
    fn a_key_shows_nowhere() {
        let secret = Secret::new(KEY.into()).expect("not empty");
        assert_eq!(format!("{secret:?}"), "Secret");
        assert!(format!("{:?}", secret.header("Bearer ")).contains("Sensitive"));
        assert!(Secret::new("  ".into()).is_none());
        assert!(Secret::new("a\nb".into()).is_some_and(|s| s.header("").is_err()));
    }

    #[test]
    fn every_form_is_taken_out_wherever_it_stands() {
        let scrub = Scrub::new(forms(KEY));
        for around in ["", "a", "ab", "abc"] {
            let text = format!("{around}{KEY}{around}");
            let quoted = STANDARD_NO_PAD.encode(&text);
            let left = scrub.apply(&quoted);
            assert!(left.contains("[key]") && left.len() <= 14, "{left}");
        }
        for form in [
            "sk-abc%2Fdef%2B0123456789-xyz%22",
            "sk-abc/def+0123456789-xyz\\\"",
        ] {
            assert_eq!(scrub.apply(form), "[key]");
        }
        let hex: String = KEY.bytes().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(scrub.apply(&hex), "[key]");
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "authorization",
            "x-api-key",
            "api-key",
            "Cookie",
            "sig",
            "x-session-id",
        ] {
            assert!(is_name(name), "{name}");
        }
        for name in ["accept", "api-version", "alt", "content-type", "x-trace"] {
            assert!(!is_name(name), "{name}");
        }
        let parts = |name: &str, value: &str| in_header(name, value);
        assert_eq!(parts("authorization", "Bearer abc"), ["abc"]);
        assert_eq!(parts("x-api-key", "abc"), ["abc"]);
        assert_eq!(parts("cookie", "a=1; b=2"), ["1", "2"]);
        assert_eq!(parts("authorization", "Basic dTpw"), ["dTpw", "p"]);
        let body = serde_json::json!({"max_tokens": 5, "metadata": {"api_key": ["one"]}, "password": "two", "user": "me"});
        let body = body.as_object().expect("an object");
        assert_eq!(in_body(body), ["one", "two"]);
    }
}
