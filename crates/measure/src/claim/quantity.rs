//! Owns the grammar of quantities: numbers, ranges, and the words that bound them.

use serde::Serialize;

use super::lex::Tok;
use super::numerals::number;

/// Whether a stated number is a point or a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The number itself.
    Point,
    /// "over", "plus", "at least": this or more.
    AtLeast,
    /// "up to", "under": this or less.
    AtMost,
    /// Two ends were given.
    Range,
}

/// A quantity as it stands in the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quantity {
    pub low: f64,
    pub high: f64,
    pub bound: Bound,
    /// First token, bounding words included.
    pub from: usize,
    /// First token after it.
    pub to: usize,
}

/// The quantity whose number begins at token `at`.
pub(super) fn quantity(toks: &[Tok], at: usize) -> Option<Quantity> {
    let (low, to) = number(toks, at)?;
    let (from, bound) = before(toks, at);
    let word = |i: usize| toks.get(i).and_then(Tok::word);
    let joins =
        toks.get(to).and_then(Tok::sign) == Some('-') || matches!(word(to), Some("to" | "through"));
    // "went from 900 to 2,700" is a change: the second number is the claim.
    if joins && is_change(toks, at) {
        return None;
    }
    let between = from_word(toks, at, "between") && word(to) == Some("and");
    if joins || between {
        let found = range(toks, at, low, to);
        if found.is_some() {
            return found;
        }
    }
    if let Some((off, to)) = tolerance(toks, to, low) {
        return Some(Quantity {
            low: low - off,
            high: low + off,
            bound: Bound::Range,
            from,
            to,
        });
    }
    let (bound, to) = match or_more(toks, to) {
        Some(after) => (Bound::AtLeast, after),
        None => (bound, to),
    };
    Some(Quantity {
        low,
        high: low,
        bound,
        from,
        to,
    })
}

/// The range whose lower number begins at `at`, and whose joining word stands at `joint`.
fn range(toks: &[Tok], at: usize, low: f64, joint: usize) -> Option<Quantity> {
    let (high, to) = number(toks, joint + 1)?;
    // "4-8k": the multiplier belongs to both.
    let low = match low > high / 1e3 || low >= 1e3 {
        true => low,
        false => with_multiplier_of(low, high),
    };
    let (from, _) = before(toks, at);
    let opened = from_word(toks, at, "between") || from_word(toks, at, "from");
    (low <= high).then_some(Quantity {
        low,
        high,
        bound: Bound::Range,
        from: if opened { from.min(at - 1) } else { from },
        to,
    })
}

/// "± 20", "(+/- 5 %)" at `at`: how far off `value` may be, and the token after it.
fn tolerance(toks: &[Tok], at: usize, value: f64) -> Option<(f64, usize)> {
    let sign = |i: usize| toks.get(i).and_then(Tok::sign);
    let open = usize::from(sign(at) == Some('('));
    let first = at + open;
    let next = match (sign(first), sign(first + 1), sign(first + 2)) {
        (Some('±'), ..) => first + 1,
        (Some('+'), Some('/'), Some('-')) => first + 3,
        (Some('+'), Some('-'), _) => first + 2,
        _ => return None,
    };
    let (off, mut to) = number(toks, next)?;
    let percent = sign(to) == Some('%') || toks.get(to).and_then(Tok::word) == Some("percent");
    to += usize::from(percent);
    to += usize::from(open == 1 && sign(to) == Some(')'));
    let off = if percent { value * off / 100.0 } else { off };
    (off <= value).then_some((off, to))
}

/// The token after "+", "plus" or "or more" that stands at `at` and adds nothing.
fn or_more(toks: &[Tok], at: usize) -> Option<usize> {
    let word = |i: usize| toks.get(i).and_then(Tok::word);
    match (toks.get(at)?.sign(), word(at), word(at + 1)) {
        (Some('+'), ..) if toks.get(at + 1).is_none_or(|t| t.number().is_none()) => Some(at + 1),
        (_, Some("plus"), next) if !matches!(next, Some("output" | "input" | "prompt")) => {
            Some(at + 1)
        }
        (_, Some("or" | "and"), Some("more" | "up" | "above" | "higher" | "better")) => {
            Some(at + 2)
        }
        _ => None,
    }
}

/// `low` with the multiplier of `upper`, if that puts it in order; "4 to 8k" means thousands.
fn with_multiplier_of(low: f64, upper: f64) -> f64 {
    [1e3, 1e6, 1e9]
        .into_iter()
        .filter(|factor| upper >= *factor && low * factor <= upper && low * factor * 20.0 > upper)
        .map(|factor| low * factor)
        .next()
        .unwrap_or(low)
}

fn is_change(toks: &[Tok], at: usize) -> bool {
    let verb = |i: usize| {
        matches!(
            toks.get(i).and_then(Tok::word),
            Some(
                "went"
                    | "goes"
                    | "rose"
                    | "grew"
                    | "increased"
                    | "increases"
                    | "improved"
                    | "jumped"
                    | "moved"
                    | "up"
                    | "raised"
                    | "dropped"
                    | "fell"
                    | "climbed"
                    | "boosted"
                    | "cut"
                    | "reduced"
                    | "doubled"
                    | "increase"
                    | "improvement"
                    | "jump"
            )
        )
    };
    from_word(toks, at, "from") && at > 1 && (at.saturating_sub(4)..at - 1).any(verb)
}

pub(super) fn from_word(toks: &[Tok], at: usize, word: &str) -> bool {
    at > 0 && toks[at - 1].word() == Some(word)
}

const PAST: [&[&str]; 20] = [
    &["more", "than"],
    &["at", "least"],
    &["north", "of"],
    &["upwards", "of"],
    &["in", "excess", "of"],
    &["no", "less", "than"],
    &["over"],
    &["above"],
    &["exceeding"],
    &["exceeds"],
    &["exceed"],
    &["exceeded"],
    &["beyond"],
    &["surpasses"],
    &["surpassing"],
    &["surpassed"],
    &["topping"],
    &["tops"],
    &["past"],
    &["breaking"],
];
const WITHIN: [&[&str]; 12] = [
    &["up", "to"],
    &["as", "much", "as"],
    &["as", "many", "as"],
    &["as", "high", "as"],
    &["as", "fast", "as"],
    &["at", "most"],
    &["no", "more", "than"],
    &["less", "than"],
    &["fewer", "than"],
    &["not", "more", "than"],
    &["under"],
    &["below"],
];

/// The bounding words that end before token `at`.
fn before(toks: &[Tok], at: usize) -> (usize, Bound) {
    // "over a thousand": the article belongs to the number and is part of it.
    let ends = |phrase: &[&str]| {
        at >= phrase.len()
            && phrase
                .iter()
                .zip(&toks[at - phrase.len()..at])
                .all(|(want, tok)| tok.word() == Some(want))
    };
    if at > 0 {
        match toks[at - 1].sign() {
            Some('>' | '≥') => return (at - 1, Bound::AtLeast),
            Some('<' | '≤') => return (at - 1, Bound::AtMost),
            Some('=') if at > 1 && toks[at - 2].sign() == Some('>') => {
                return (at - 2, Bound::AtLeast);
            }
            Some('=') if at > 1 && toks[at - 2].sign() == Some('<') => {
                return (at - 2, Bound::AtMost);
            }
            _ => {}
        }
    }
    // "no more than" before "more than".
    if let Some(phrase) = WITHIN.iter().find(|phrase| ends(phrase)) {
        return (at - phrase.len(), Bound::AtMost);
    }
    if let Some(phrase) = PAST.iter().find(|phrase| ends(phrase)) {
        return (at - phrase.len(), Bound::AtLeast);
    }
    (at, Bound::Point)
}

#[cfg(test)]
mod tests {
    use super::super::lex::lex;
    use super::*;

    fn read(text: &str) -> Option<(f64, f64, Bound)> {
        let toks = lex(text);
        (0..toks.len())
            .find_map(|at| quantity(&toks, at))
            .map(|q| (q.low, q.high, q.bound))
    }

    #[test]
    fn numbers_in_digits_and_in_words() {
        for (text, value) in [
            ("sixteen", 16.0),
            ("twenty-four", 24.0),
            ("two thousand four hundred", 2_400.0),
            ("one hundred and twenty", 120.0),
            ("a thousand", 1_000.0),
            ("half a million", 500_000.0),
            ("quarter of a million", 250_000.0),
            ("two dozen", 24.0),
            ("a hundred and twenty", 120.0),
            ("a hundred thousand", 100_000.0),
            ("a thousand and fifty", 1_050.0),
            ("two hundred and fifty thousand", 250_000.0),
            ("two and a half thousand", 2_500.0),
            ("one and a half million", 1_500_000.0),
            ("2 and a half million", 2_500_000.0),
            ("2½", 2.5),
            ("1 million and a half", 1_500_000.0),
            ("10^6", 1e6),
            ("1.5×10^6", 1.5e6),
            ("3x10⁴", 3e4),
            ("1e3", 1e3),
            ("2.5e3", 2.5e3),
            ("1.5 million", 1_500_000.0),
            ("22.3k", 22_300.0),
            ("3 hundred thousand", 300_000.0),
            ("1,024", 1_024.0),
        ] {
            assert_eq!(read(text), Some((value, value, Bound::Point)), "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_no_number() {
        for text in [
            "1/2 million",
            "3/4 of a million",
            "1 234",
            "1.234,5",
            "1,5",
            "16x500",
            "2^8",
            "2⁸",
            "two hundred thousand thousand hundred",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn bounds_and_ranges() {
        for (text, low, high, bound) in [
            ("500 plus", 500.0, 500.0, Bound::AtLeast),
            ("500+", 500.0, 500.0, Bound::AtLeast),
            ("more than a thousand", 1e3, 1e3, Bound::AtLeast),
            ("no more than 30", 30.0, 30.0, Bound::AtMost),
            ("up to 30", 30.0, 30.0, Bound::AtMost),
            (">= 30", 30.0, 30.0, Bound::AtLeast),
            ("4-8", 4.0, 8.0, Bound::Range),
            ("between four and eight", 4.0, 8.0, Bound::Range),
            ("4 to 8k", 4e3, 8e3, Bound::Range),
            ("50 to 100", 50.0, 100.0, Bound::Range),
            ("500±20", 480.0, 520.0, Bound::Range),
            ("500 (+/- 5 %)", 475.0, 525.0, Bound::Range),
            (
                "between one hundred and two hundred",
                100.0,
                200.0,
                Bound::Range,
            ),
            (
                "between 1 thousand and two thousand",
                1e3,
                2e3,
                Bound::Range,
            ),
        ] {
            assert_eq!(read(text), Some((low, high, bound)), "{text}");
        }
    }
}
