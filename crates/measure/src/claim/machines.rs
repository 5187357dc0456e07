//! Owns the grammar of machines: how many, and what kind.

use super::entity::{Class, entity_of, is_accelerator};
use super::lex::Tok;
use super::quantity::{Bound, quantity};
use super::words::word;

/// How many machines a number names: "8xB200", "sixteen L40S", "two nodes", "eight-GPU".
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Devices {
    pub count: f64,
    /// `GPU`, `node`, …
    pub name: &'static str,
    pub from: usize,
    pub to: usize,
}

/// All counts of machines, in the order of the text.
pub(super) fn devices(toks: &[Tok]) -> Vec<Devices> {
    let mut found: Vec<Devices> = Vec::new();
    for mut inner in (0..toks.len()).filter_map(|at| device(toks, at)) {
        let outer = found.last().filter(|outer| nests(toks, outer, &inner));
        inner.count *= outer.map_or(1.0, |outer| outer.count);
        found.push(inner);
    }
    found
}

/// "two nodes of eight GPUs", "16 nodes with 8 GPUs each": the one is a part of each of the other.
fn nests(toks: &[Tok], outer: &Devices, inner: &Devices) -> bool {
    let each = word(toks, inner.to) == Some("each");
    let joined = match word(toks, outer.to) {
        Some("of") => true,
        Some("with" | "at" | "having") => each,
        _ => false,
    };
    outer.name != inner.name && inner.from == outer.to + 1 && joined
}

/// Words between a number and the machines it counts.
const QUALIFIERS: [&str; 19] = [
    "nvidia",
    "amd",
    "intel",
    "apple",
    "google",
    "decode",
    "prefill",
    "dgx",
    "hgx",
    "rtx",
    "tesla",
    "instinct",
    "blackwell",
    "hopper",
    "sxm",
    "pcie",
    "mac",
    "consumer",
    "physical",
];

/// "2 x 8 GPUs": what the count at `at` is multiplied by.
fn times_before(toks: &[Tok], at: usize) -> f64 {
    let cross = at
        .checked_sub(1)
        .is_some_and(|i| word(toks, i) == Some("x") || toks[i].sign() == Some('×'));
    let before = at.checked_sub(2).filter(|_| cross);
    before.and_then(|i| toks[i].number()).unwrap_or(1.0)
}

fn device(toks: &[Tok], at: usize) -> Option<Devices> {
    let single = word(toks, at) == Some("single");
    let (count, mut next) = match quantity(toks, at) {
        Some(quantity) if quantity.bound == Bound::Point => (quantity.low, quantity.to),
        None if single => (1.0, at + 1),
        _ => return None,
    };
    if word(toks, next) == Some("x") || toks.get(next).and_then(Tok::sign) == Some('×') {
        next += 1;
    }
    let qualifies = |w: &str| QUALIFIERS.contains(&w);
    while next < at + 6 && word(toks, next).is_some_and(qualifies) {
        next += 1;
    }
    let mut name = word(toks, next)?;
    // "eight B200 GPUs", "sixteen L40S".
    if is_accelerator(name)
        && let Some(after) = word(toks, next + 1)
        && entity_of(after).is_some_and(|e| e.class == Class::Machine)
    {
        name = after;
        next += 1;
    }
    let entity = entity_of(name).filter(|entity| entity.class == Class::Machine)?;
    let count = count * times_before(toks, at);
    // "the 2024 server" is of a year.
    let one_thing = !name.ends_with('s') && entity.name != "GPU";
    if one_thing && (1_990.0..2_100.0).contains(&count) {
        return None;
    }
    let whole = count >= 1.0 && count.fract() == 0.0 && count < 1e7;
    whole.then_some(Devices {
        count,
        name: entity.name,
        from: at,
        to: next + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::super::lex::lex;
    use super::*;

    #[test]
    fn machines_by_number_and_name() {
        let read = |text: &str| {
            let all = devices(&lex(text));
            all.first().map(|d| (d.count, d.name))
        };
        assert_eq!(read("2 x 8 GPUs"), Some((16.0, "GPU")));
        assert_eq!(read("8xB200"), Some((8.0, "GPU")));
        assert_eq!(read("sixteen L40S"), Some((16.0, "GPU")));
        assert_eq!(read("eight NVIDIA B200 GPUs"), Some((8.0, "GPU")));
        assert_eq!(read("eight-GPU DGX"), Some((8.0, "GPU")));
        assert_eq!(read("one server"), Some((1.0, "server")));
        assert_eq!(read("a single H100"), Some((1.0, "GPU")));
        assert_eq!(read("16 users"), None);
        assert_eq!(read("the 2024 server"), None);
    }

    #[test]
    fn machines_in_machines_are_multiplied() {
        let last = |text: &str| devices(&lex(text)).last().map(|d| (d.count, d.name));
        assert_eq!(last("two nodes of eight GPUs"), Some((16.0, "GPU")));
        assert_eq!(last("16 nodes with 8 GPUs each"), Some((128.0, "GPU")));
        assert_eq!(last("16 nodes with 8 GPUs"), Some((8.0, "GPU")));
    }
}
