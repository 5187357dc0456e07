//! Owns counting by a vocabulary of the user's: after the run, over the text that arrived.

use std::fmt;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use measure::record::Line;
use measure::trace::Trace;

use crate::exit::Failure;

/// A vocabulary, read from a `tokenizer.json`.
#[derive(Clone)]
pub struct Vocabulary {
    name: String,
    #[cfg(feature = "tokenizer")]
    tokenizer: std::sync::Arc<tokenizers::Tokenizer>,
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vocabulary({})", self.name)
    }
}

/// The largest file that is read: 64 MiB.
#[cfg(feature = "tokenizer")]
const FILE_LIMIT: u64 = 64 << 20;

impl Vocabulary {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// With code 2 where it cannot be read, is no tokenizer, or this program was built without them.
    #[cfg(feature = "tokenizer")]
    pub fn open(file: &Path) -> Result<Self, Failure> {
        let shown = file.display();
        let failed = |text: String| {
            Failure::usage(format!(
                "--tokenizer {shown}: {text}; it wants the tokenizer.json that stands beside a model's weights"
            ))
        };
        let size = std::fs::metadata(file)
            .map_err(|error| failed(error.to_string()))?
            .len();
        if size > FILE_LIMIT {
            return Err(failed("the file is larger than 64 MiB".into()));
        }
        let bytes = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
        let tokenizer =
            tokenizers::Tokenizer::from_bytes(&bytes).map_err(|error| failed(error.to_string()))?;
        let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
        let start: String = digest.as_ref()[..4]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let stem = file.file_name().unwrap_or_default().to_string_lossy();
        Ok(Vocabulary {
            name: format!("{stem} (sha256 {start}…)"),
            tokenizer: tokenizer.into(),
        })
    }

    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// Always, with code 2: this program was built without tokenizers.
    #[cfg(not(feature = "tokenizer"))]
    pub fn open(file: &Path) -> Result<Self, Failure> {
        Err(Failure::usage(format!(
            "--tokenizer {}: this denom was built without tokenizers: build it with `--features tokenizer`",
            file.display()
        )))
    }

    /// The file's name and the start of its hash.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tokens of a text, without those that a template would add.
    #[cfg(feature = "tokenizer")]
    fn count(&self, text: &str) -> Option<u64> {
        let encoded = self.tokenizer.encode_fast(text, false).ok()?;
        Some(encoded.len() as u64)
    }

    /// Never asked: no vocabulary can be opened.
    #[cfg(not(feature = "tokenizer"))]
    fn count(&self, _: &str) -> Option<u64> {
        None
    }
}

/// Counts the tokens of every answer in a record file, and writes the counts into it. The texts
/// are taken out unless they are to be kept. The file is replaced whole, or not at all.
///
/// # Errors
/// With code 74 where the new file cannot be written; the old one then still stands.
pub fn count_in(file: &Path, vocabulary: &Vocabulary, keep_text: bool) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::not_written(format!(
            "the token counts cannot be written into {}: {error}; its records still hold the texts, without counts",
            file.display()
        ))
    };
    let beside = beside(file);
    let from = std::fs::File::open(file).map_err(failed)?;
    let to = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&beside)
        .map_err(failed)?;
    let done = copy(
        BufReader::new(from),
        BufWriter::new(to),
        vocabulary,
        keep_text,
    )
    .and_then(|()| std::fs::rename(&beside, file));
    done.map_err(|error| {
        // The half-written copy is of no use to anyone.
        let _ = std::fs::remove_file(&beside);
        failed(error)
    })
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".counting");
    PathBuf::from(name)
}

fn copy(
    from: impl BufRead,
    mut to: BufWriter<std::fs::File>,
    vocabulary: &Vocabulary,
    keep_text: bool,
) -> std::io::Result<()> {
    for line in from.lines() {
        let text = line?;
        // A line that this program does not know stays as it is.
        let line = match serde_json::from_str::<Line>(&text) {
            Ok(Line::Header(mut header)) => {
                header.vocabulary = Some(vocabulary.name().to_owned());
                Line::Header(header)
            }
            Ok(Line::Ended(mut trace)) => {
                trace.counted = counted(&trace, vocabulary);
                trace.text = trace.text.filter(|_| keep_text);
                trace.prompt = trace.prompt.filter(|_| keep_text);
                Line::Ended(trace)
            }
            _ => {
                writeln!(to, "{text}")?;
                continue;
            }
        };
        serde_json::to_writer(&mut to, &line)?;
        to.write_all(b"\n")?;
    }
    to.flush()?;
    to.get_ref().sync_data()
}

/// The count, where all that arrived is in the text: a tool call's arguments are not, and a text
/// over its limit was cut.
fn counted(trace: &Trace, vocabulary: &Vocabulary) -> Option<u64> {
    let text = trace.text.as_deref()?;
    (text.chars().count() as u64 == trace.chars())
        .then(|| vocabulary.count(text))
        .flatten()
}

#[cfg(all(test, feature = "tokenizer"))]
mod tests {
    use super::*;

    /// Words at spaces, each one token.
    const WORDS: &str = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
        "pre_tokenizer":{"type":"WhitespaceSplit"},"post_processor":null,"decoder":null,
        "model":{"type":"WordLevel","vocab":{"[UNK]":0,"a":1},"unk_token":"[UNK]"}}"#;

    #[test]
    fn a_count_needs_all_of_the_text_and_texts_are_taken_out_after_it() {
        let folder = std::env::temp_dir().join(format!("denom-tokenizer-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (words, file) = (folder.join("words.json"), folder.join("run.denom.jsonl"));
        std::fs::write(&words, WORDS).expect("writes");
        let vocabulary = Vocabulary::open(&words).expect("a tokenizer");
        assert!(vocabulary.name().starts_with("words.json (sha256 "));
        assert_eq!(vocabulary.count("a b  c"), Some(3));

        let mut whole = Trace::begun(1, 0, 0, false, measure::time::Instant::ORIGIN);
        whole.text = Some("a b".into());
        whole.reads = vec![measure::trace::Read {
            at: measure::time::Instant::ORIGIN,
            bytes: 3,
            chunks: 1,
            bare: 0,
            chars: 3,
            answer_chunks: 1,
            answer_chars: 3,
            tokens: None,
            lag_low: None,
            lag_high: measure::time::Length::ZERO,
        }];
        let mut cut = whole.clone();
        cut.text = Some("a".into());
        let lines: String = [whole, cut]
            .into_iter()
            .map(|trace| {
                serde_json::to_string(&Line::Ended(Box::new(trace))).expect("writes") + "\n"
            })
            .chain(["{\"line\":\"of a later version\"}\n".to_owned()])
            .collect();
        std::fs::write(&file, lines).expect("writes");
        count_in(&file, &vocabulary, false).expect("counts");
        let text = std::fs::read_to_string(&file).expect("reads");
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].contains("\"counted\":2") && !lines[0].contains("\"text\""),
            "{text}"
        );
        assert!(!lines[1].contains("counted"), "{text}");
        assert_eq!(lines[2], "{\"line\":\"of a later version\"}");
        std::fs::remove_dir_all(&folder).expect("removes");
    }

    #[test]
    fn what_is_no_tokenizer_is_refused_with_what_is_wanted() {
        let error = Vocabulary::open(Path::new("Cargo.toml")).expect_err("no tokenizer");
        assert!(error.text.contains("tokenizer.json"), "{}", error.text);
    }
}
