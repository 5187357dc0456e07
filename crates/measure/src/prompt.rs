//! Owns what requests say: lengths drawn from a seed, and prompts that never repeat within a run.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, Normal};
use serde_json::Value;

/// Most tokens that a length may ask for.
pub const LONGEST: u64 = 10_000_000;

/// How long prompts or answers are to be, in tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lengths {
    /// All alike.
    Fixed(u64),
    /// Normally spread, cut at 1.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        deviation: f64,
    },
    /// Every length between the two is as likely.
    Uniform {
        /// Shortest.
        low: u64,
        /// Longest.
        high: u64,
    },
}

impl std::fmt::Display for Lengths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Lengths::Fixed(n) => write!(f, "{n}"),
            Lengths::Normal { mean, deviation } => write!(f, "normal({mean},{deviation})"),
            Lengths::Uniform { low, high } => write!(f, "uniform({low},{high})"),
        }
    }
}

impl std::str::FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("{text:?} is no length in tokens: give 256, normal(256,32) or uniform(100,900)")
        };
        let inside = |name: &str| {
            text.strip_prefix(name)?
                .strip_prefix('(')?
                .strip_suffix(')')?
                .split_once(',')
        };
        let found = if let Some((mean, deviation)) = inside("normal") {
            let mean: f64 = mean.trim().parse().map_err(|_| wrong())?;
            let deviation: f64 = deviation.trim().parse().map_err(|_| wrong())?;
            let sound = (1.0..=LONGEST as f64).contains(&mean)
                && (0.0..=LONGEST as f64).contains(&deviation);
            sound.then_some(Lengths::Normal { mean, deviation })
        } else if let Some((low, high)) = inside("uniform") {
            let low: u64 = low.trim().parse().map_err(|_| wrong())?;
            let high: u64 = high.trim().parse().map_err(|_| wrong())?;
            (1 <= low && low <= high && high <= LONGEST).then_some(Lengths::Uniform { low, high })
        } else {
            let n: u64 = text.trim().parse().map_err(|_| wrong())?;
            (1..=LONGEST).contains(&n).then_some(Lengths::Fixed(n))
        };
        found.ok_or_else(wrong)
    }
}

impl Lengths {
    fn draw(&self, rng: &mut ChaCha8Rng) -> u64 {
        match *self {
            Lengths::Fixed(n) => n,
            Lengths::Uniform { low, high } => rng.random_range(low..=high),
            Lengths::Normal { mean, deviation } => match Normal::new(mean, deviation) {
                Ok(normal) => normal.sample(rng).round().clamp(1.0, LONGEST as f64) as u64,
                Err(_) => mean as u64,
            },
        }
    }
}

/// One prompt of a file: a text, or the turns of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// One user turn.
    Text(String),
    /// Turns, as the API takes them.
    Messages(Value),
}

/// Where prompts come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Made from a word list, of about this many tokens.
    Words(Lengths),
    /// Taken from a file in order, over and over.
    File(Vec<Given>),
}

/// Where prompts come from, in words.
pub fn describe(source: &Source) -> String {
    match source {
        Source::Words(lengths) => lengths.to_string(),
        Source::File(prompts) => format!("{} prompts of a file", prompts.len()),
    }
}

/// What every request of a run says.
#[derive(Debug, Clone)]
pub struct Prompts {
    /// Where they come from.
    pub source: Source,
    /// Output tokens to ask for.
    pub output: Lengths,
    /// Tokens of a prefix that all made prompts share.
    pub prefix_tokens: u64,
    /// The seed of words and lengths.
    pub seed: u64,
    /// The run's random name: without it a second run would find the first one's cache.
    pub run: String,
}

/// What one request says.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// Its turns.
    pub given: Given,
    /// Tokens of input aimed at, for a made one.
    pub input_tokens: Option<u64>,
    /// Tokens of output to ask for.
    pub output_tokens: u64,
}

/// Words of the instruction and the name in front, in tokens, about.
const FRAME_TOKENS: u64 = 24;

impl Prompts {
    /// The prompt of request `id`. It depends on the seed, the run's name and `id` alone.
    pub fn prompt(&self, id: u64) -> Prompt {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(id);
        let output_tokens = self.output.draw(&mut rng);
        let name = format!("{}-{id}", self.run);
        match &self.source {
            Source::Words(lengths) => {
                let input = lengths.draw(&mut rng);
                let own = input
                    .saturating_sub(FRAME_TOKENS + self.prefix_tokens)
                    .max(1);
                let prefix = self.prefix();
                let words = words(&mut rng, own);
                let text = format!(
                    "{prefix}[{name}] Write a long story that uses these words in their order: {words}."
                );
                Prompt {
                    given: Given::Text(text),
                    input_tokens: Some(input),
                    output_tokens,
                }
            }
            Source::File(all) => {
                let n = all.len().max(1) as u64;
                let place = usize::try_from(id % n).unwrap_or(0);
                let given = all
                    .get(place)
                    .cloned()
                    .unwrap_or(Given::Text(String::new()));
                let given = if id >= n { named(given, &name) } else { given };
                Prompt {
                    given,
                    input_tokens: None,
                    output_tokens,
                }
            }
        }
    }

    /// Whether `requests` of them would repeat a prompt of the file.
    pub fn repeats(&self, requests: u64) -> bool {
        matches!(&self.source, Source::File(all) if requests > all.len() as u64)
    }

    fn prefix(&self) -> String {
        if self.prefix_tokens == 0 {
            return String::new();
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(u64::MAX);
        format!("{}. ", words(&mut rng, self.prefix_tokens))
    }
}

/// The prompt with a name in front, so that a repeated one is not the same prompt.
fn named(given: Given, name: &str) -> Given {
    match given {
        Given::Text(text) => Given::Text(format!("[{name}] {text}")),
        Given::Messages(mut turns) => {
            let first = turns.as_array_mut().and_then(|turns| turns.first_mut());
            if let Some(content) = first.and_then(|turn| turn.get_mut("content"))
                && let Some(text) = content.as_str()
            {
                *content = Value::String(format!("[{name}] {text}"));
            }
            Given::Messages(turns)
        }
    }
}

fn words(rng: &mut ChaCha8Rng, count: u64) -> String {
    let mut text = String::new();
    for index in 0..count {
        if index > 0 {
            text.push(' ');
        }
        text.push_str(WORDS[rng.random_range(0..WORDS.len())]);
    }
    text
}

/// Common short words: most vocabularies hold each, with its space, as one token.
const WORDS: [&str; 128] = [
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world",
    "school", "state", "family", "student", "group", "country", "problem", "hand", "part", "place",
    "case", "week", "company", "system", "program", "question", "work", "number", "night", "point",
    "home", "water", "room", "mother", "area", "money", "story", "fact", "month", "lot", "right",
    "study", "book", "eye", "job", "word", "business", "issue", "side", "kind", "head", "house",
    "service", "friend", "father", "power", "hour", "game", "line", "end", "member", "law", "car",
    "city", "name", "team", "minute", "idea", "body", "back", "parent", "face", "level", "office",
    "door", "health", "person", "art", "war", "history", "party", "result", "change", "morning",
    "reason", "research", "girl", "guy", "moment", "air", "teacher", "force", "order", "paper",
    "plan", "road", "river", "table", "tree", "window", "garden", "letter", "light", "market",
    "music", "north", "ocean", "picture", "queen", "rain", "salt", "seed", "ship", "snow", "song",
    "south", "spring", "stone", "summer", "sun", "town", "train", "valley", "village", "wall",
    "wind", "winter",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn prompts(source: Source) -> Prompts {
        Prompts {
            source,
            output: Lengths::Fixed(256),
            prefix_tokens: 0,
            seed: 7,
            run: "r1".into(),
        }
    }

    fn text(prompt: &Prompt) -> &str {
        match &prompt.given {
            Given::Text(text) => text,
            Given::Messages(_) => "",
        }
    }

    #[test]
    fn lengths_read_what_they_print_and_refuse_nonsense() {
        for shown in ["256", "normal(512,64)", "uniform(100,900)"] {
            assert_eq!(
                shown.parse::<Lengths>().map(|l| l.to_string()),
                Ok(shown.to_owned())
            );
        }
        for wrong in [
            "0",
            "-1",
            "x",
            "normal(1)",
            "uniform(9,3)",
            "normal(nan,1)",
            "uniform(0,3)",
            "1e9",
        ] {
            assert!(wrong.parse::<Lengths>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_prompt_depends_on_its_id_and_never_repeats() {
        let made = prompts(Source::Words(Lengths::Fixed(512)));
        assert_eq!(made.prompt(3), made.prompt(3));
        assert_ne!(made.prompt(3), made.prompt(4));
        assert!(text(&made.prompt(3)).starts_with("[r1-3] "));
        let count = text(&made.prompt(3)).split_whitespace().count();
        assert!((480..=512).contains(&count), "{count} words for 512 tokens");
    }

    #[test]
    fn a_shared_prefix_is_the_same_for_all() {
        let made = Prompts {
            prefix_tokens: 40,
            ..prompts(Source::Words(Lengths::Fixed(100)))
        };
        let prefix = |id| text(&made.prompt(id)).split('[').next().map(str::to_owned);
        assert_eq!(prefix(1), prefix(2));
    }

    #[test]
    fn a_file_is_used_in_order_and_named_when_it_repeats() {
        let turns = serde_json::json!([{"role": "user", "content": "b"}]);
        let filed = prompts(Source::File(vec![
            Given::Text("a".into()),
            Given::Messages(turns),
        ]));
        assert_eq!(text(&filed.prompt(0)), "a");
        assert_eq!(text(&filed.prompt(2)), "[r1-2] a");
        match filed.prompt(3).given {
            Given::Messages(turns) => assert_eq!(turns[0]["content"], "[r1-3] b"),
            Given::Text(_) => panic!("turns stay turns"),
        }
        assert!(filed.repeats(3) && !filed.repeats(2));
    }

    #[test]
    fn drawn_lengths_stay_within_their_law() {
        let spread = Prompts {
            output: Lengths::Uniform { low: 10, high: 20 },
            ..prompts(Source::Words(Lengths::Fixed(50)))
        };
        let drawn: Vec<u64> = (0..200).map(|id| spread.prompt(id).output_tokens).collect();
        assert!(drawn.iter().all(|n| (10..=20).contains(n)));
        assert!(drawn.contains(&10) && drawn.contains(&20));
    }
}
