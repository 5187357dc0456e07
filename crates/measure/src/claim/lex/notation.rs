//! Owns the less usual notations of numbers: powers of ten, fractions, and those that are not read.

use super::{Kind, Tok, multiplier, scaled};

type Chars<'a> = &'a [(usize, char)];

fn at(chars: Chars<'_>, index: usize) -> Option<char> {
    chars.get(index).map(|(_, c)| *c)
}

fn digit(chars: Chars<'_>, index: usize) -> bool {
    at(chars, index).is_some_and(|c| c.is_ascii_digit())
}

/// The index after digits from `from` on.
fn digits(chars: Chars<'_>, from: usize) -> usize {
    (from..)
        .find(|index| !digit(chars, *index))
        .unwrap_or(chars.len())
}

/// The end of a number whose notation may mean several things: "1/2", "1 234", "1,5", "1.234,5",
/// "16x500", "2^8". No number is better than a wrong one. The number's plain digits are `from..to`.
pub(super) fn unread(chars: Chars<'_>, from: usize, to: usize) -> Option<usize> {
    let next = at(chars, to)?;
    let more = digit(chars, to + 1);
    let cross = matches!(next, 'x' | 'X' | '×' | '*');
    let apart = next == ' ' && is_group(chars, from, to);
    let power =
        cross && ten(chars, to + 1).is_some() || next == '^' && ten(chars, from) == Some(to);
    let raised = superscript(next).is_some() && ten(chars, from) != Some(to);
    if !(more && (matches!(next, '/' | ',' | '^') || cross) && !power || apart || raised) {
        return None;
    }
    let goes_on = |index: usize| {
        let joins = matches!(
            at(chars, index),
            Some('/' | ',' | '.' | '^' | 'x' | 'X' | '×' | '*')
        );
        let raised = at(chars, index).and_then(superscript).is_some();
        raised || digit(chars, index) || joins && digit(chars, index + 1)
    };
    let mut end = to;
    loop {
        end = match apart && at(chars, end) == Some(' ') && is_group(chars, from, end) {
            true => end + 4,
            false if goes_on(end) => end + 1,
            false => return Some(end),
        };
    }
}

/// Whether up to three digits end at `to` and a blank and three digits follow: "1 234".
fn is_group(chars: Chars<'_>, from: usize, to: usize) -> bool {
    let plain = (from..to).all(|index| digit(chars, index) || at(chars, index) == Some(' '));
    let after = digits(chars, to + 1);
    let ends = at(chars, after).is_none_or(|c| !c.is_alphanumeric());
    plain && to - from <= 15 && digits(chars, from) - from <= 3 && after == to + 4 && ends
}

/// The index of what follows "10" if that is a power sign: "10^6", "10⁶".
fn ten(chars: Chars<'_>, from: usize) -> Option<usize> {
    let is_ten = at(chars, from) == Some('1') && at(chars, from + 1) == Some('0');
    let power = at(chars, from + 2).is_some_and(|c| c == '^' || superscript(c).is_some());
    (is_ten && power).then_some(from + 2)
}

fn superscript(c: char) -> Option<u32> {
    "⁰¹²³⁴⁵⁶⁷⁸⁹"
        .chars()
        .zip(0..)
        .find(|(sign, _)| *sign == c)
        .map(|(_, value)| value)
}

/// The value of `plain`, the digits that end at `to`, where a power of ten or a fraction follows:
/// "10^6", "1.5×10^6", "1e3", "2½". With the index after it.
pub(super) fn of_powers(chars: Chars<'_>, to: usize, plain: &str) -> Option<(f64, usize)> {
    let value: f64 = plain.parse().ok()?;
    let next = at(chars, to)?;
    if let Some(part) = [('½', 0.5), ('¼', 0.25), ('¾', 0.75)]
        .into_iter()
        .find_map(|(sign, part)| (sign == next).then_some(part))
    {
        return Some((value + part, to + 1));
    }
    let (factor, exponent_at) = match next {
        'e' | 'E' => (value, to + 1),
        'x' | 'X' | '×' | '*' => (value, ten(chars, to + 1)?),
        '^' if plain == "10" => (1.0, to),
        c if plain == "10" && superscript(c).is_some() => (1.0, to),
        _ => return None,
    };
    let (exponent, end) = exponent(chars, exponent_at)?;
    let value = scaled(factor, 10_f64.powi(exponent));
    (value.is_finite() && at(chars, end).is_none_or(|c| !c.is_alphanumeric()))
        .then_some((value, end))
}

/// Up to two digits, in line after an optional "^" and sign, or raised.
fn exponent(chars: Chars<'_>, from: usize) -> Option<(i32, usize)> {
    let raised: Vec<u32> = (from..)
        .map_while(|index| at(chars, index).and_then(superscript))
        .take(2)
        .collect();
    if !raised.is_empty() {
        let value = raised.iter().fold(0, |sum, digit| sum * 10 + digit);
        return Some((i32::try_from(value).ok()?, from + raised.len()));
    }
    let from = from + usize::from(at(chars, from) == Some('^'));
    let minus = at(chars, from) == Some('-');
    let from = from + usize::from(minus || at(chars, from) == Some('+'));
    let end = digits(chars, from);
    let value: i32 = chars
        .get(from..end)
        .filter(|taken| (1..=2).contains(&taken.len()))?
        .iter()
        .map(|(_, c)| c)
        .collect::<String>()
        .parse()
        .ok()?;
    Some((if minus { -value } else { value }, end))
}

/// "2.1 ktok/s": where `word` after a number begins with a multiplier, that number takes it, and
/// the length of the multiplier is returned.
pub(super) fn thousands(word: &str, toks: &mut [Tok]) -> usize {
    let (factor, taken) = multiplier(word);
    let is_unit = taken > 0 && taken < word.len();
    match toks.last_mut().map(|tok| &mut tok.kind) {
        Some(Kind::Number(value)) if is_unit => {
            *value = scaled(*value, factor);
            taken
        }
        _ => 0,
    }
}
