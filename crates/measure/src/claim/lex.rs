//! Owns the cutting of a claim's text into numbers, words and signs.

mod notation;

/// One piece of the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tok {
    pub kind: Kind,
    /// First byte in the text.
    pub start: usize,
    /// First byte after it.
    pub end: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Digits, with a multiplier that stood at them without a space.
    Number(f64),
    /// Letters and digits, in lower case.
    Word(String),
    /// Any other sign that means something.
    Sign(char),
}

impl Tok {
    pub fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    pub fn sign(&self) -> Option<char> {
        match self.kind {
            Kind::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self.kind {
            Kind::Number(number) => Some(number),
            _ => None,
        }
    }
}

const SIGNS: &str = "/+±~≈<>≤≥=:;,.()[]%$€£@×*|&!?";
const HYPHENS: &str = "-‐‑‒–−";

/// Cuts `text`. Hyphens inside compounds vanish ("eight-GPU" is two words); between numbers they
/// stay, as a range.
pub(super) fn lex(text: &str) -> Vec<Tok> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut toks: Vec<Tok> = Vec::new();
    let mut at = 0;
    while let Some(&(start, c)) = chars.get(at) {
        let next = chars.get(at + 1).map(|(_, c)| *c);
        if c.is_ascii_digit() || (c == '.' && next.is_some_and(|n| n.is_ascii_digit())) {
            at = number(text, &chars, at, &mut toks);
        } else if c.is_alphabetic() {
            at = word(text, &chars, at, &mut toks);
        } else {
            let after_name = toks
                .last()
                .is_some_and(|tok| tok.end == start && tok.word().is_some());
            if let Some(sign) = sign(c, &chars, at, after_name) {
                toks.push(Tok {
                    kind: Kind::Sign(sign),
                    start,
                    end: start + c.len_utf8(),
                });
            }
            at += 1;
        }
    }
    toks
}

/// What a sign means where it stands; `None` for what carries no meaning.
fn sign(c: char, chars: &[(usize, char)], at: usize, after_name: bool) -> Option<char> {
    let beside = |index: Option<usize>| index.and_then(|i| chars.get(i)).map(|(_, c)| *c);
    let (before, after) = (beside(at.checked_sub(1)), beside(Some(at + 1)));
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    match c {
        '\n' => Some('.'),
        '—' | '→' => Some(';'),
        '.' => after.is_none_or(char::is_whitespace).then_some('.'),
        c if HYPHENS.contains(c) => {
            let compound =
                before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphabetic);
            // "Qwen3.5-9B": digits that belong to a name make no range.
            let joined = after_name && digit(after);
            (!compound && !joined).then_some('-')
        }
        c => SIGNS.contains(c).then_some(c),
    }
}

/// A number, and what stands at it without a space. Returns the index after both.
fn number(text: &str, chars: &[(usize, char)], from: usize, toks: &mut Vec<Tok>) -> usize {
    let start = chars[from].0;
    let at = end_of_number(chars, from);
    let offset = |index: usize| chars.get(index).map_or(text.len(), |(offset, _)| *offset);
    if let Some(end) = notation::unread(chars, from, at) {
        let whole = text[start..offset(end)].to_lowercase();
        toks.push(Tok {
            kind: Kind::Word(whole),
            start,
            end: offset(end),
        });
        return end;
    }
    let digits: String = text[start..offset(at)]
        .chars()
        .filter(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    if let Some((value, end)) = notation::of_powers(chars, at, &digits) {
        toks.push(Tok {
            kind: Kind::Number(value),
            start,
            end: offset(end),
        });
        return end;
    }
    let mut after = at;
    while chars.get(after).is_some_and(|(_, c)| c.is_alphanumeric()) {
        after += 1;
    }
    let version = chars.get(at).is_some_and(|(_, c)| *c == '.')
        && chars.get(at + 1).is_some_and(|(_, c)| c.is_ascii_digit());
    while version
        && chars
            .get(after)
            .is_some_and(|(_, c)| c.is_alphanumeric() || *c == '.')
    {
        after += 1;
    }
    let rest = &text[offset(at)..offset(after)];
    let value = digits.parse::<f64>().unwrap_or(f64::NAN);
    let mut push = |kind, start, end| toks.push(Tok { kind, start, end });
    if version || !value.is_finite() || is_name(rest) {
        let whole = text[start..offset(after)].to_lowercase();
        push(Kind::Word(whole), start, offset(after));
        return after;
    }
    let (factor, taken) = multiplier(rest);
    push(
        Kind::Number(scaled(value, factor)),
        start,
        offset(at) + taken,
    );
    let left = &rest[taken..];
    let cross = left.strip_prefix(['x', 'X', '×']).filter(|l| !l.is_empty());
    let left_start = offset(at) + taken;
    if let Some(device) = cross {
        let device_start = offset(after) - device.len();
        push(Kind::Word("x".into()), left_start, device_start);
        push(
            Kind::Word(device.to_lowercase()),
            device_start,
            offset(after),
        );
    } else if !left.is_empty() {
        push(Kind::Word(left.to_lowercase()), left_start, offset(after));
    }
    after
}

/// `factor` times `value`, and a whole number where only the float's last digit says otherwise:
/// 4.1M is 4,100,000.
pub(super) fn scaled(value: f64, factor: f64) -> f64 {
    let product = value * factor;
    let whole = product.round();
    match (product - whole).abs() <= whole.abs() * 1e-12 {
        true => whole,
        false => product,
    }
}

/// The index after digits, groups of three and decimals.
fn end_of_number(chars: &[(usize, char)], from: usize) -> usize {
    let is_digit = |i: usize| chars.get(i).is_some_and(|(_, c)| c.is_ascii_digit());
    let mut at = from;
    while is_digit(at) {
        at += 1;
    }
    if (1..=3).contains(&(at - from)) {
        while chars
            .get(at)
            .is_some_and(|(_, c)| ",_'’\u{202f}\u{a0}\u{2009}".contains(*c))
            && (1..=3).all(|i| is_digit(at + i))
            && !is_digit(at + 4)
        {
            at += 4;
        }
    }
    if chars.get(at).is_some_and(|(_, c)| *c == '.') && is_digit(at + 1) {
        at += 1;
        while is_digit(at) {
            at += 1;
        }
    }
    at
}

/// "4k8v", "3rd": the digits are part of a name. "xB200" after a number is not.
fn is_name(rest: &str) -> bool {
    let cross = rest.starts_with(['x', 'X', '×']) && rest.len() > 1;
    let ordinal = matches!(rest, "st" | "nd" | "rd" | "th");
    ordinal || (!cross && rest.chars().any(|c| c.is_ascii_digit()))
}

/// The multiplier at the front of what stands at a number, and its length in bytes. "m" alone is
/// left as a word: it may be minutes.
pub(super) fn multiplier(rest: &str) -> (f64, usize) {
    const WHOLE: [(&str, f64); 9] = [
        ("k", 1e3),
        ("K", 1e3),
        ("M", 1e6),
        ("mn", 1e6),
        ("mio", 1e6),
        ("B", 1e9),
        ("bn", 1e9),
        ("Bn", 1e9),
        ("T", 1e12),
    ];
    if let Some((name, factor)) = WHOLE.iter().find(|(name, _)| *name == rest) {
        return (*factor, name.len());
    }
    let attached = ["tok", "tps", "t", "tk", "req", "rps", "qps"];
    let is_unit = |left: &str| {
        attached
            .iter()
            .any(|unit| left.to_lowercase().starts_with(unit))
    };
    for (name, factor) in [("k", 1e3), ("K", 1e3), ("M", 1e6), ("m", 1e6)] {
        if let Some(left) = rest.strip_prefix(name)
            && is_unit(left)
        {
            return (factor, name.len());
        }
    }
    (1.0, 0)
}

fn word(text: &str, chars: &[(usize, char)], from: usize, toks: &mut Vec<Tok>) -> usize {
    let mut at = from;
    let is = |index: usize, test: fn(char) -> bool| chars.get(index).is_some_and(|(_, c)| test(*c));
    loop {
        if is(at, |c| c.is_alphanumeric() || c == '_') {
            at += 1;
            continue;
        }
        // "Qwen3.5" and "v0.6" are names with a point inside.
        let digit_before = is(at.wrapping_sub(1), |c| c.is_ascii_digit());
        if is(at, |c| c == '.') && digit_before && is(at + 1, |c| c.is_ascii_digit()) {
            at += 1;
            continue;
        }
        break;
    }
    let offset = |index: usize| chars.get(index).map_or(text.len(), |(offset, _)| *offset);
    let (start, end) = (offset(from), offset(at));
    let skip = notation::thousands(&text[start..end], toks);
    toks.push(Tok {
        kind: Kind::Word(text[start + skip..end].to_lowercase()),
        start: start + skip,
        end,
    });
    // "user's" is "user".
    let possessive = is(at, |c| c == '\'' || c == '’') && is(at + 1, |c| c == 's');
    if possessive && !is(at + 2, char::is_alphanumeric) {
        return at + 2;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let one = |tok: &Tok| match &tok.kind {
            Kind::Number(n) => format!("#{n}"),
            Kind::Word(word) => word.clone(),
            Kind::Sign(sign) => sign.to_string(),
        };
        lex(text).iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn numbers_take_their_suffix_and_names_keep_their_digits() {
        assert_eq!(shown("1.5M tok/s"), "#1500000 tok / s");
        assert_eq!(
            shown("22.3ktok/s, 1,024 users"),
            "#22300 tok / s , #1024 users"
        );
        assert_eq!(
            shown("8xB200, Qwen3.5-9B, v0.6.2"),
            "#8 x b200 , qwen3.5 #9000000000 , v0.6.2"
        );
        assert_eq!(shown("4-8 eight-GPU user's"), "#4 - #8 eight gpu user");
        assert_eq!(shown("24x 35min 0.19.0 3rd"), "#24 x #35 min 0.19.0 3rd");
    }

    #[test]
    fn any_bytes_of_text_are_cut_at_characters() {
        for text in [
            "",
            "…",
            "1,",
            "1.",
            "ẞ2x",
            "５",
            "9'99",
            "1e400",
            "99999999999999999999k",
        ] {
            for tok in lex(text) {
                assert!(text.get(tok.start..tok.end).is_some(), "{text}: {tok:?}");
            }
        }
    }
}
