//! Owns how the arrivals of a request are held: packed, since a long run has millions of them.

use super::Arrival;
use crate::count::{Count, Token};
use crate::time::{Instant, Length};

/// The arrivals of one request, in about a tenth of the room that a list of them takes. Nothing is
/// rounded, and they are unfolded one at a time, in order.
///
/// Each is a byte of marks, the stamp since the one before, the ends of the lag, and what it
/// brought, unless that is what the one before brought. Numbers take seven bits a byte, the low
/// ones first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrivals {
    packed: Box<[u8]>,
    len: usize,
    chunks: u64,
    chars: u64,
    tokens: Option<Count<Token>>,
    ends: Option<(Instant, Instant)>,
}

/// Its lag has a lower end.
const LAG_LOW: u8 = 1;
/// The client may have put it together.
const BUNDLED: u8 = 2;
/// It brought what the one before brought, and nothing of that stands here.
const SAME: u8 = 4;
/// All of it is answer, and no chunk brings only a tool's name.
const PLAIN: u8 = 8;
/// Tokens were stated with it.
const STATED: u8 = 16;
/// Its tokens are known.
const TOKENS: u8 = 32;
/// They are one a chunk.
const ONE_EACH: u8 = 64;

/// What an arrival brought, apart from when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Brought {
    chunks: u64,
    bare: u64,
    chars: u64,
    answer_chunks: u64,
    answer_chars: u64,
    stated: Option<u64>,
    tokens: Option<Count<Token>>,
}

impl Brought {
    fn by(arrival: &Arrival) -> Self {
        Brought {
            chunks: arrival.chunks,
            bare: arrival.bare,
            chars: arrival.chars,
            answer_chunks: arrival.answer_chunks,
            answer_chars: arrival.answer_chars,
            stated: arrival.stated,
            tokens: arrival.tokens,
        }
    }

    fn marks(&self) -> u8 {
        let plain = (self.bare, self.answer_chunks, self.answer_chars);
        let each = self.tokens == Some(Count::whole(self.chunks));
        marked(plain == (0, self.chunks, self.chars), PLAIN)
            | marked(self.stated.is_some(), STATED)
            | marked(self.tokens.is_some(), TOKENS)
            | marked(each, ONE_EACH)
    }

    fn pack(&self, marks: u8, into: &mut Vec<u8>) {
        put(self.chunks, into);
        put(self.chars, into);
        if marks & PLAIN == 0 {
            put(self.bare, into);
            put(self.answer_chunks, into);
            put(self.answer_chars, into);
        }
        if let Some(stated) = self.stated {
            put(stated, into);
        }
        if let Some(tokens) = self.tokens.filter(|_| marks & ONE_EACH == 0) {
            put(tokens.millionths(), into);
        }
    }

    fn unfold(marks: u8, from: &mut &[u8]) -> Option<Self> {
        let (chunks, chars) = (take(from)?, take(from)?);
        let (bare, answer_chunks, answer_chars) = match marks & PLAIN {
            0 => (take(from)?, take(from)?, take(from)?),
            _ => (0, chunks, chars),
        };
        Some(Brought {
            chunks,
            bare,
            chars,
            answer_chunks,
            answer_chars,
            stated: match marks & STATED {
                0 => None,
                _ => Some(take(from)?),
            },
            tokens: match (marks & TOKENS, marks & ONE_EACH) {
                (0, _) => None,
                (_, 0) => Some(Count::from_millionths(take(from)?)),
                _ => Some(Count::whole(chunks)),
            },
        })
    }
}

fn marked(on: bool, mark: u8) -> u8 {
    if on { mark } else { 0 }
}

fn put(mut number: u64, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

fn take(from: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

impl Arrivals {
    /// Packs them.
    pub fn pack(arrivals: &[Arrival]) -> Self {
        let mut packed = Vec::with_capacity(arrivals.len() * 16);
        let (mut at, mut before) = (0, Brought::default());
        for arrival in arrivals {
            let brought = Brought::by(arrival);
            let marks = brought.marks()
                | marked(arrival.lag_low.is_some(), LAG_LOW)
                | marked(arrival.client_bundled, BUNDLED)
                | marked(brought == before, SAME);
            packed.push(marks);
            // Wraps where a stamp lies before the last one, and wraps back on unfolding.
            put(arrival.at.nanos().wrapping_sub(at), &mut packed);
            put(arrival.lag_high.nanos(), &mut packed);
            if let Some(low) = arrival.lag_low {
                put(low.nanos(), &mut packed);
            }
            if marks & SAME == 0 {
                brought.pack(marks, &mut packed);
            }
            (at, before) = (arrival.at.nanos(), brought);
        }
        let ends = arrivals.first().zip(arrivals.last());
        Arrivals {
            packed: packed.into_boxed_slice(),
            len: arrivals.len(),
            chunks: arrivals.iter().map(|arrival| arrival.chunks).sum(),
            chars: arrivals.iter().map(|arrival| arrival.chars).sum(),
            tokens: arrivals.iter().map(|arrival| arrival.tokens).sum(),
            ends: ends.map(|(first, last)| (first.at, last.at)),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Unfolds them, in order.
    pub fn iter(&self) -> Unfold<'_> {
        Unfold {
            packed: &self.packed,
            at: 0,
            before: Brought::default(),
        }
    }

    /// Each with the one after it.
    pub fn pairs(&self) -> impl Iterator<Item = (Arrival, Arrival)> + use<'_> {
        let mut all = self.iter();
        let mut before = all.next();
        all.filter_map(move |arrival| Some((before.replace(arrival)?, arrival)))
    }

    /// Gaps between them, in order.
    pub fn gaps(&self) -> impl Iterator<Item = Length> + use<'_> {
        self.pairs()
            .map(|(one, next)| next.at.since_or_zero(one.at))
    }

    /// Time from the first to the last of them.
    pub fn span(&self) -> Length {
        self.ends
            .map_or(Length::ZERO, |(first, last)| last.since_or_zero(first))
    }

    /// The stamps of the first and of the last of them.
    pub fn ends(&self) -> Option<(Instant, Instant)> {
        self.ends
    }

    /// Their chunks.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Their characters.
    pub fn chars(&self) -> u64 {
        self.chars
    }

    /// Their tokens, where those of each are known.
    pub fn tokens(&self) -> Option<Count<Token>> {
        self.tokens
    }
}

impl<'a> IntoIterator for &'a Arrivals {
    type Item = Arrival;
    type IntoIter = Unfold<'a>;

    fn into_iter(self) -> Unfold<'a> {
        self.iter()
    }
}

/// Unfolds the arrivals of one request.
#[derive(Debug, Clone)]
pub struct Unfold<'a> {
    packed: &'a [u8],
    at: u64,
    before: Brought,
}

impl Iterator for Unfold<'_> {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let (&marks, rest) = self.packed.split_first()?;
        self.packed = rest;
        self.at = self.at.wrapping_add(take(&mut self.packed)?);
        let lag_high = take(&mut self.packed)?;
        let lag_low = match marks & LAG_LOW {
            0 => None,
            _ => Some(take(&mut self.packed)?),
        };
        if marks & SAME == 0 {
            self.before = Brought::unfold(marks, &mut self.packed)?;
        }
        let brought = self.before;
        Some(Arrival {
            at: Instant::from_nanos(self.at),
            chunks: brought.chunks,
            bare: brought.bare,
            chars: brought.chars,
            answer_chunks: brought.answer_chunks,
            answer_chars: brought.answer_chars,
            stated: brought.stated,
            tokens: brought.tokens,
            lag_low: lag_low.map(Length::from_nanos),
            lag_high: Length::from_nanos(lag_high),
            client_bundled: marks & BUNDLED != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers as they come, and those at the ends of what a number holds.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![4 => 0..4_u64, 2 => 0..100_000_000_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
    }

    fn count() -> impl Strategy<Value = u64> {
        prop_oneof![4 => 0..4_u64, 1 => 0..=u64::from(u32::MAX)]
    }

    fn arrival() -> impl Strategy<Value = Arrival> {
        // Sums over a request's arrivals are those of 32-bit counts.
        let counts = (count(), count(), count(), count(), count());
        let maybe = || proptest::option::of(number());
        let plain = any::<bool>();
        let rest = (maybe(), maybe(), maybe(), number(), any::<bool>());
        (number(), counts, plain, rest).prop_map(|(at, counts, plain, rest)| {
            let (chunks, bare, chars, answer_chunks, answer_chars) = match plain {
                true => (counts.0, 0, counts.2, counts.0, counts.2),
                false => counts,
            };
            let (stated, tokens, low, high, client_bundled) = rest;
            Arrival {
                at: Instant::from_nanos(at),
                chunks,
                bare,
                chars,
                answer_chunks,
                answer_chars,
                stated,
                tokens: tokens.map(|n| match plain {
                    true => Count::whole(chunks),
                    false => Count::from_millionths(n),
                }),
                lag_low: low.map(Length::from_nanos),
                lag_high: Length::from_nanos(high),
                client_bundled,
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_packed_unfolds_as_it_was(
            some in proptest::collection::vec((arrival(), 1..4_usize), 0..20)
        ) {
            let all: Vec<Arrival> = some
                .iter()
                .flat_map(|(arrival, times)| std::iter::repeat_n(*arrival, *times))
                .collect();
            let packed = Arrivals::pack(&all);
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), all.clone());
            prop_assert_eq!(packed.len(), all.len());
            let pairs: Vec<_> = all.windows(2).map(|pair| (pair[0], pair[1])).collect();
            prop_assert_eq!(packed.pairs().collect::<Vec<_>>(), pairs);
            prop_assert_eq!(packed.span(), crate::arrival::span(&all));
            let tokens = all.iter().map(|arrival| arrival.tokens).sum::<Option<Count<Token>>>();
            prop_assert_eq!(packed.tokens(), tokens);
            prop_assert_eq!(packed.chunks(), all.iter().map(|arrival| arrival.chunks).sum::<u64>());
        }
    }

    #[test]
    fn a_token_each_50_ms_takes_a_dozen_bytes() {
        let one = |i: u64| Arrival {
            at: Instant::from_nanos(i * 50_000_000 + i % 7 * 1_000),
            chunks: 1,
            bare: 0,
            chars: 3 + i % 5,
            answer_chunks: 1,
            answer_chars: 3 + i % 5,
            stated: None,
            tokens: Some(Count::whole(1)),
            lag_low: Some(Length::from_micros(20 + i % 9)),
            lag_high: Length::from_micros(60 + i % 9),
            client_bundled: false,
        };
        let all: Vec<Arrival> = (0..1_000).map(one).collect();
        let packed = Arrivals::pack(&all).packed.len();
        assert!(packed <= 13_000, "{packed} bytes");
    }
}
