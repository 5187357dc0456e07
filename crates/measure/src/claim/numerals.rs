//! Owns the grammar of numerals: one number in digits or words, whole or not at all.

use super::lex::{self, Tok};
use super::quantity::from_word;

/// A bare number at `at` and the token after it.
pub(super) fn number(toks: &[Tok], at: usize) -> Option<(f64, usize)> {
    if let Some(value) = toks.get(at)?.number() {
        let (part, next) = and_a_part(toks, at + 1).unwrap_or((0.0, at + 1));
        let (factor, to) = magnitude(toks, next);
        // "1 million and a half".
        let (more, to) = match and_a_part(toks, to) {
            Some(after) if factor >= 1e3 => after,
            _ => (0.0, to),
        };
        return Some((lex::scaled(value + part + more, factor), to));
    }
    match toks[at].word()? {
        "half" => part(toks, at + 1, 2.0),
        "quarter" => part(toks, at + 1, 4.0),
        _ => in_words(toks, at),
    }
}

/// "and a half" of "two and a half", and the token after it.
fn and_a_part(toks: &[Tok], at: usize) -> Option<(f64, usize)> {
    let word = |i: usize| toks.get(i).and_then(Tok::word);
    match (word(at), word(at + 1), word(at + 2)) {
        (Some("and"), Some("a"), Some("half")) => Some((0.5, at + 3)),
        (Some("and"), Some("a"), Some("quarter")) => Some((0.25, at + 3)),
        _ => None,
    }
}

/// "half a million", "quarter of a million", "quarter million".
fn part(toks: &[Tok], from: usize, parts: f64) -> Option<(f64, usize)> {
    let is = |at: usize, want: &str| toks.get(at).and_then(Tok::word) == Some(want);
    let after_of = from + usize::from(is(from, "of"));
    let (factor, to) = magnitude(toks, after_of + usize::from(is(after_of, "a")));
    (factor > 1.0).then_some((factor / parts, to))
}

fn factor_of(word: &str) -> Option<f64> {
    Some(match word {
        "dozen" => 12.0,
        "hundred" => 1e2,
        "thousand" | "k" => 1e3,
        "million" | "mn" | "mio" => 1e6,
        "billion" | "bn" => 1e9,
        "trillion" => 1e12,
        _ => return None,
    })
}

fn is_magnitude(toks: &[Tok], at: usize) -> bool {
    toks.get(at)
        .and_then(Tok::word)
        .and_then(factor_of)
        .is_some()
}

/// The product of multiplier words from `at` on: "thousand", "hundred thousand".
fn magnitude(toks: &[Tok], mut at: usize) -> (f64, usize) {
    let mut product = 1.0;
    // "1.5 M tokens": a lone capital was lowered by the lexer, so a noun has to follow.
    if let Some("m") = toks.get(at).and_then(Tok::word)
        && toks
            .get(at + 1)
            .and_then(Tok::word)
            .is_some_and(|w| w.starts_with("tok") || w == "tps")
    {
        return (1e6, at + 1);
    }
    while let Some(factor) = toks.get(at).and_then(Tok::word).and_then(factor_of) {
        product *= factor;
        at += 1;
    }
    (product, at)
}

fn small(word: &str) -> Option<f64> {
    const WORDS: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 8] = [
        "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
    ];
    let at = |list: &[&str]| list.iter().position(|w| *w == word).map(|i| i as f64);
    at(&WORDS).or(at(&TENS).map(|i| (i + 2.0) * 10.0))
}

/// "two thousand four hundred and fifty", "a hundred and twenty", "two and a half thousand". Not
/// where the words before belong to the number or the words after go on in a way that is not
/// understood: no number is better than a part of one.
fn in_words(toks: &[Tok], from: usize) -> Option<(f64, usize)> {
    let word = |i: usize| toks.get(i).and_then(Tok::word);
    let article = word(from) == Some("a") && is_magnitude(toks, from + 1);
    let first = if article { 1.0 } else { small(word(from)?)? };
    let goes_on = |w: &str| factor_of(w).is_some() || small(w).is_some_and(|n| n >= 20.0);
    let before = from.checked_sub(1).and_then(word);
    if before.is_some_and(goes_on) || article && before == Some("of") && is_part(toks, from) {
        return None;
    }
    let mut sum = WordSum {
        sum: 0.0,
        group: first,
        last: f64::INFINITY,
    };
    let mut at = from + 1;
    if let Some((part, next)) = and_a_part(toks, at) {
        sum.group += part;
        at = next;
    }
    while let Some(next) = sum.take(toks, at, from_word(toks, from, "between")) {
        at = next;
    }
    let left_over = word(at).is_some_and(|w| factor_of(w).is_some() && w != "k");
    (!left_over).then_some((lex::scaled(sum.sum + sum.group, 1.0), at))
}

/// "three quarters of a million", "3/4 of a million": what "of" before `at` takes a part of.
fn is_part(toks: &[Tok], at: usize) -> bool {
    let before = at.checked_sub(2).and_then(|i| toks[i].word());
    before.is_some_and(|w| {
        let named = matches!(
            w,
            "quarters" | "third" | "thirds" | "fifth" | "tenth" | "fraction"
        );
        named || w.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// A number in words so far.
struct WordSum {
    /// Thousands and more.
    sum: f64,
    /// What a next multiplier multiplies.
    group: f64,
    /// The last multiplier from a thousand on: they come in falling order.
    last: f64,
}

impl WordSum {
    /// Takes the word at `at` in, with an "and" before it; the token after it, or none where it
    /// is not part of the number. `between` gives "and" to the range.
    fn take(&mut self, toks: &[Tok], at: usize, between: bool) -> Option<usize> {
        let word = |i: usize| toks.get(i).and_then(Tok::word);
        let next = word(at)?;
        if next == "and" && !between {
            let ones = small(word(at + 1)?)?;
            let starts_anew = word(at + 2).is_some_and(|w| w == "hundred" || w == "dozen");
            let after = word(at + 2).and_then(factor_of).is_some();
            let joins = self.group >= 100.0 && self.group % 100.0 == 0.0
                || self.group == 0.0 && self.sum > 0.0 && !after;
            return (joins && !starts_anew && self.add(ones)).then_some(at + 2);
        }
        match next {
            "dozen" if self.group < 100.0 => self.group *= 12.0,
            "hundred" if self.group < 100.0 && self.group > 0.0 => self.group *= 100.0,
            "dozen" | "hundred" => return None,
            _ => match factor_of(next) {
                Some(factor) if factor < self.last && self.group > 0.0 => {
                    self.sum += self.group * factor;
                    (self.group, self.last) = (0.0, factor);
                }
                Some(factor) if self.sum > 0.0 && self.group == 0.0 => {
                    // "two thousand million".
                    self.sum *= factor;
                    self.last = 1e3;
                }
                Some(_) => return None,
                None => return self.add(small(next)?).then_some(at + 1),
            },
        }
        Some(at + 1)
    }

    /// Adds a number below a hundred where one can stand.
    fn add(&mut self, ones: f64) -> bool {
        let fits = self.group == 0.0
            || ones < 10.0 && self.group % 10.0 == 0.0 && self.group >= 20.0
            || self.group >= 100.0 && self.group % 100.0 == 0.0;
        if fits {
            self.group += ones;
        }
        fits
    }
}
