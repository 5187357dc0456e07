//! Owns the scrubbing of secrets: no text from a server is kept before it has gone through here.

use std::collections::HashMap;

/// Shortest form that is looked for: shorter ones would blot out ordinary words.
const SHORTEST: usize = 6;
/// So many characters of a form in a row are taken for it: servers quote a key by its ends, and a
/// text may be cut anywhere.
const RUN: usize = 8;
/// So many of its first characters are, in front of a mask.
const BEFORE_MASK: usize = 4;
/// Fewest and most characters of a mask.
const MASK: std::ops::RangeInclusive<usize> = 3..=256;
/// Most bytes of a character's name in HTML that is looked at.
const LONGEST_ENTITY: usize = 12;
/// What stands in a secret's place.
const MARK: &str = "[key]";

/// Replaces secrets in texts, also in part, masked in the middle, or escaped for JSON, URLs or
/// HTML. Neither prints nor serialises what it looks for.
#[derive(Clone, Default)]
pub struct Scrub {
    forms: Vec<Vec<char>>,
    /// Every two neighbours in the forms, with the form and the place they stand at.
    pairs: HashMap<[char; 2], Vec<(usize, usize)>>,
}

impl std::fmt::Debug for Scrub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scrub({} forms)", self.forms.len())
    }
}

impl Scrub {
    /// Looks for each of `forms`: a secret as it is, and in encodings that are no escapes.
    pub fn new(forms: impl IntoIterator<Item = String>) -> Self {
        let plain = |form: String| Letters { text: &form, at: 0 }.map(|(c, _)| c).collect();
        let mut forms: Vec<Vec<char>> = forms
            .into_iter()
            .map(plain)
            .filter(|form: &Vec<char>| form.len() >= SHORTEST)
            .collect();
        forms.sort();
        forms.dedup();
        let mut pairs: HashMap<[char; 2], Vec<(usize, usize)>> = HashMap::new();
        for (number, form) in forms.iter().enumerate() {
            for (place, pair) in form.windows(2).enumerate() {
                pairs
                    .entry([pair[0], pair[1]])
                    .or_default()
                    .push((number, place));
            }
        }
        Scrub { forms, pairs }
    }

    /// The text with every secret replaced.
    pub fn apply(&self, text: &str) -> String {
        if self.forms.is_empty() {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut letters = Letters { text, at: 0 };
        loop {
            let from = letters.at;
            if let Some(to) = self.secret_at(letters) {
                out.push_str(MARK);
                letters.at = to;
            } else if letters.next().is_some() {
                out.push_str(&text[from..letters.at]);
            } else {
                return out;
            }
        }
    }

    /// Whether `text` holds a secret.
    pub fn finds(&self, text: &str) -> bool {
        self.apply(text) != text
    }

    /// Where the longest secret ends that begins here.
    fn secret_at(&self, letters: Letters<'_>) -> Option<usize> {
        let mut ahead = letters;
        let pair = [ahead.next()?.0, ahead.next()?.0];
        self.pairs
            .get(&pair)?
            .iter()
            .filter_map(|(form, place)| run(letters, &self.forms[*form], *place))
            .max()
    }
}

/// Where the run of `form` ends that begins with its character at `place`, if it is long enough.
fn run(mut letters: Letters<'_>, form: &[char], place: usize) -> Option<usize> {
    let rest = &form[place..];
    let mut same = 0;
    while let Some((c, next)) = letters.peek()
        && rest.get(same) == Some(&c)
    {
        same += 1;
        letters.at = next;
    }
    let masked = past_mask(letters).map(|after| past_end(after, rest));
    let enough = same >= RUN.min(form.len());
    match masked {
        Some(to) if enough || (place == 0 && same >= BEFORE_MASK) => Some(to),
        _ => enough.then_some(letters.at),
    }
}

/// Behind the mask that begins here.
fn past_mask(mut letters: Letters<'_>) -> Option<Letters<'_>> {
    let mut long = 0;
    while let Some((c, next)) = letters.peek()
        && matches!(c, '*' | '.' | '…' | '•' | 'x')
        && long < *MASK.end()
    {
        long += if c == '…' { *MASK.start() } else { 1 };
        letters.at = next;
    }
    MASK.contains(&long).then_some(letters)
}

/// Behind the longest end of `rest` that stands here.
fn past_end(letters: Letters<'_>, rest: &[char]) -> usize {
    let ends = |from: usize| {
        let mut here = letters;
        let same = rest[from..]
            .iter()
            .all(|wanted| here.next().is_some_and(|(c, _)| c == *wanted));
        same.then_some(here.at)
    };
    (0..rest.len()).find_map(ends).unwrap_or(letters.at)
}

/// The characters of a text in lower case, each with the place behind it, with escapes undone: of
/// JSON, of URLs and of HTML, once or several times over. A server may quote a key in another case.
#[derive(Clone, Copy)]
struct Letters<'a> {
    text: &'a str,
    at: usize,
}

impl Letters<'_> {
    fn peek(&self) -> Option<(char, usize)> {
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let escaped = match first {
            '\\' => backslash(rest),
            '%' => percent(rest),
            '&' => entity(rest),
            _ => None,
        };
        let (c, long) = escaped.unwrap_or((first, first.len_utf8()));
        Some((c.to_ascii_lowercase(), self.at + long))
    }
}

impl Iterator for Letters<'_> {
    type Item = (char, usize);

    fn next(&mut self) -> Option<(char, usize)> {
        let (c, next) = self.peek()?;
        self.at = next;
        Some((c, next))
    }
}

/// The character that a hexadecimal number of `digits` digits at the start of `text` names.
fn hex(text: &str, digits: usize) -> Option<char> {
    let number = text.get(..digits)?;
    let all = number.bytes().all(|byte| byte.is_ascii_hexdigit());
    char::from_u32(u32::from_str_radix(number, 16).ok().filter(|_| all)?)
}

/// A character behind backslashes, of which there are more each time a text is quoted again.
fn backslash(text: &str) -> Option<(char, usize)> {
    let rest = text.trim_start_matches('\\');
    let long = text.len() - rest.len();
    let c = rest.chars().next()?;
    let coded = match c {
        'u' => hex(&rest[1..], 4).map(|c| (c, 5)),
        'x' => hex(&rest[1..], 2).map(|c| (c, 3)),
        _ => None,
    };
    let (c, taken) = coded.unwrap_or((c, c.len_utf8()));
    Some((c, long + taken))
}

/// A character of a URL: a percent sign escaped again is followed by 25 each time.
fn percent(text: &str) -> Option<(char, usize)> {
    let mut at = 1;
    while text[at..].starts_with("25") && hex(text.get(at + 2..)?, 2).is_some() {
        at += 2;
    }
    let c = hex(&text[at..], 2).filter(char::is_ascii)?;
    Some((c, at + 2))
}

/// A character of HTML by its name or number.
fn entity(text: &str) -> Option<(char, usize)> {
    let long = text
        .bytes()
        .take(LONGEST_ENTITY)
        .position(|byte| byte == b';')?;
    let name = &text[1..long];
    let c = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#').filter(|number| number.len() <= 6)?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    };
    Some((c, long + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-Ab3/Xy7+Qr9&Zt1-Lm5";

    fn scrubbed(text: &str) -> String {
        Scrub::new([KEY.to_owned()]).apply(text)
    }

    #[test]
    fn a_secret_goes_whole_and_ordinary_text_stays() {
        assert_eq!(scrubbed(&format!("bad key {KEY}, no")), "bad key [key], no");
        let plain = "50% of \\n & more; sk-Ab is short, \"ok\" \u{fc} %zz &#; \\";
        assert_eq!(scrubbed(plain), plain);
        let none = Scrub::new(["abc".to_owned()]);
        assert_eq!(none.apply("abc"), "abc");
        assert_eq!(format!("{none:?}"), "Scrub(0 forms)");
    }

    #[test]
    fn escapes_hide_nothing() {
        for escaped in [
            "sk-Ab3\\/Xy7+Qr9&Zt1-Lm5",
            "sk-Ab3\\\\/Xy7\\u002bQr9\\u0026Zt1-Lm5",
            "sk-Ab3%2FXy7%2bQr9%26Zt1-Lm5",
            "sk-Ab3%252FXy7%252BQr9%2526Zt1-Lm5",
            "sk-Ab3&#x2F;Xy7&#43;Qr9&amp;Zt1-Lm5",
            "\\x73k-Ab3/Xy7+Qr9&Zt1-Lm5",
            "SK-AB3/XY7+QR9&ZT1-LM5",
            "sk-ab3/xy7+qr9&zt1-lm5",
        ] {
            assert_eq!(
                scrubbed(&format!("a {escaped} b")),
                "a [key] b",
                "{escaped}"
            );
        }
    }

    #[test]
    fn parts_of_a_secret_go_too() {
        for (text, left) in [
            ("cut sk-Ab3/Xy", "cut [key]"),
            ("ends Zt1-Lm5 or r9&Zt1-Lm5", "ends Zt1-Lm5 or [key]"),
            ("middle /Xy7+Qr9& of it", "middle [key] of it"),
            ("masked sk-Ab3/X********-Lm5.", "masked [key]."),
            ("masked sk-A***Lm5.", "masked [key]."),
            ("masked sk-Ab3…Lm5 ", "masked [key] "),
            ("no mask sk-A..Lm5", "no mask sk-A..Lm5"),
        ] {
            assert_eq!(scrubbed(text), left);
        }
    }

    #[test]
    fn a_form_with_escapes_of_its_own_is_found_as_it_is() {
        let scrub = Scrub::new(["p%41ss\\word&amp;".to_owned()]);
        assert_eq!(scrub.apply("<p%41ss\\word&amp;>"), "<[key]>");
        assert!(scrub.finds("p%41ss\\word&amp;") && !scrub.finds("p41ssword"));
    }

    #[test]
    fn any_text_is_read_to_its_end() {
        let scrub = Scrub::new([KEY.to_owned()]);
        for text in [
            "",
            "\\",
            "\\u",
            "\\u00",
            "%",
            "%2",
            "%25",
            "%2525",
            "&",
            "&#x",
            "&#99999999;",
            "ü%ü",
            "\\ü",
            "&ü;",
        ] {
            assert_eq!(scrub.apply(text), text);
        }
    }
}
