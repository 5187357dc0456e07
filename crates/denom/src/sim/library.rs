//! Owns the scripts that come from a file: byte timelines by name, checked before anything is served.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use measure::time::Length;
use serde::Deserialize;

use super::script::{Act, Ending, Framing, Head, Script, Step, When};
use super::scripts;

/// The longest file, in bytes: 64 MiB.
const FILE_LIMIT: u64 = 64 * 1024 * 1024;
/// Headers that say how the body is framed, which is not theirs to say.
const FRAMING_HEADERS: [&str; 3] = ["content-length", "transfer-encoding", "connection"];

/// Scripts by name, besides those of [`scripts`].
#[derive(Debug, Clone, Default)]
pub struct Library(BTreeMap<String, Script>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    scripts: HashMap<String, WrittenScript>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenScript {
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    framing: Option<WrittenFraming>,
    head_at_us: Option<u64>,
    most_at_once: Option<usize>,
    steps: Vec<WrittenStep>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WrittenFraming {
    Chunked,
    ContentLength,
    UntilClose,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    at_us: u64,
    text: Option<String>,
    base64: Option<String>,
    tokens: Option<u32>,
    every_us: Option<u64>,
    count: Option<u64>,
    fin: Option<bool>,
    cut: Option<bool>,
    rst: Option<bool>,
    stall: Option<bool>,
}

impl Library {
    /// Reads a file of scripts. The error is a sentence about what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = read_limited(path)
            .map_err(|error| format!("the script file {shown} cannot be read: {error}"))?;
        Self::parse(&text).map_err(|reason| format!("the script file {shown} is no use: {reason}"))
    }

    /// The scripts written in `json`.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let written: Written = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let mut library = BTreeMap::new();
        for (name, script) in written.scripts {
            if scripts::names().any(|(taken, _)| taken == name) {
                return Err(format!(
                    "'{name}' is a script of this program: name yours otherwise"
                ));
            }
            let made = script
                .made()
                .map_err(|reason| format!("script '{name}': {reason}"))?;
            library.insert(name, made);
        }
        Ok(Library(library))
    }

    /// The script of this name.
    pub fn script(&self, name: &str) -> Option<&Script> {
        self.0.get(name)
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?
        .take(FILE_LIMIT + 1)
        .read_to_end(&mut text)?;
    if text.len() as u64 > FILE_LIMIT {
        return Err(io::Error::other("it is over 64 MiB"));
    }
    Ok(text)
}

impl WrittenScript {
    fn made(self) -> Result<Script, String> {
        let status = self.status.unwrap_or(200);
        if !(200..=599).contains(&status) {
            return Err(format!("status {status} is not within 200 to 599"));
        }
        let mut headers = Vec::new();
        for (name, value) in self.headers {
            headers.push(header(name, value)?);
        }
        let mut steps = Vec::with_capacity(self.steps.len() + 1);
        let mut before = 0;
        for (index, step) in self.steps.into_iter().enumerate() {
            let numbered = |reason: String| format!("step {index}: {reason}");
            if matches!(
                steps.last(),
                Some(Step {
                    act: Act::End(_),
                    ..
                })
            ) {
                return Err(numbered("nothing can follow an end".to_owned()));
            }
            if step.at_us < before {
                return Err(numbered(
                    "at_us is before that of the step in front".to_owned(),
                ));
            }
            before = step.at_us;
            steps.push(step.made().map_err(numbered)?);
        }
        if !matches!(
            steps.last(),
            Some(Step {
                act: Act::End(_),
                ..
            })
        ) {
            let (when, act) = (When::At(micros(before)), Act::End(Ending::Proper));
            steps.push(Step { when, act });
        }
        Ok(Script {
            status,
            headers,
            framing: match self.framing {
                None | Some(WrittenFraming::Chunked) => Framing::Chunked,
                Some(WrittenFraming::ContentLength) => Framing::ContentLength,
                Some(WrittenFraming::UntilClose) => Framing::UntilClose,
            },
            head: self
                .head_at_us
                .map_or(Head::WithFirst, |at| Head::Own(micros(at))),
            steps,
            most_at_once: self.most_at_once,
        })
    }
}

impl WrittenStep {
    fn made(self) -> Result<Step, String> {
        let said = [
            self.text.map(|text| Ok(text.into_bytes())),
            self.base64.map(|text| {
                let decoded = STANDARD.decode(text);
                decoded.map_err(|error| format!("base64 cannot be decoded: {error}"))
            }),
        ];
        let ends = [
            self.fin.map(|on| (on, Ending::Proper)),
            self.cut.map(|on| (on, Ending::Cut)),
            self.rst.map(|on| (on, Ending::Reset)),
            self.stall.map(|on| (on, Ending::Stall)),
        ];
        let mut said = said.into_iter().flatten();
        let mut ends = ends.into_iter().flatten();
        let act = match (said.next(), ends.next(), said.next(), ends.next()) {
            (Some(bytes), None, None, None) => {
                written(bytes?, self.tokens.unwrap_or(0), self.every_us, self.count)?
            }
            (None, Some((true, ending)), None, None) => Act::End(ending),
            _ => {
                return Err(
                    "it needs exactly one of text, base64, fin, cut, rst and stall, the last four \
                     with the value true"
                        .to_owned(),
                );
            }
        };
        Ok(Step {
            when: When::At(micros(self.at_us)),
            act,
        })
    }
}

fn written(
    bytes: Vec<u8>,
    tokens: u32,
    every: Option<u64>,
    count: Option<u64>,
) -> Result<Act, String> {
    if bytes.is_empty() {
        return Err("it writes no byte, which would end a chunked body".to_owned());
    }
    match (every, count) {
        (None, None) => Ok(Act::Write { bytes, tokens }),
        (None, Some(_)) => Err("count needs every_us".to_owned()),
        (Some(_), Some(0)) => Err("count is 0".to_owned()),
        (Some(every), count) => Ok(Act::Repeat {
            bytes,
            tokens,
            every: micros(every),
            count,
        }),
    }
}

fn header(name: String, value: String) -> Result<(String, String), String> {
    let name = name.to_ascii_lowercase();
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(sign) {
        return Err(format!("'{}' is no header name", name.escape_debug()));
    }
    if value.chars().any(|sign| sign.is_control() && sign != '\t') {
        return Err(format!(
            "the value of header {name} holds a control character"
        ));
    }
    if FRAMING_HEADERS.contains(&name.as_str()) {
        return Err(format!("header {name} follows from framing: leave it out"));
    }
    Ok((name, value))
}

fn micros(micros: u64) -> Length {
    Length::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(steps: &str) -> Result<Script, String> {
        let json = format!("{{\"scripts\":{{\"mine\":{{{steps}}}}}}}");
        let library = Library::parse(json.as_bytes())?;
        library
            .script("mine")
            .cloned()
            .ok_or_else(|| "lost".to_owned())
    }

    #[test]
    fn a_timeline_is_played_as_written() {
        let script = parsed(
            r#""status":503,"headers":{"Content-Type":"text/plain"},"framing":"until-close",
            "head_at_us":5,"most_at_once":3,"steps":[
            {"at_us":10,"text":"ab\n","tokens":2},
            {"at_us":20,"base64":"/wA=","every_us":7,"count":3,"tokens":1},
            {"at_us":50,"rst":true}]"#,
        )
        .expect("it is in order");
        assert_eq!((script.status, script.framing), (503, Framing::UntilClose));
        assert_eq!(
            script.headers,
            [("content-type".to_owned(), "text/plain".to_owned())]
        );
        assert_eq!((script.head_at(), script.tokens()), (micros(5), 5));
        let twice: &[u8] = b"\xff\0";
        let expected: Vec<(Length, &[u8])> = vec![
            (micros(10), b"ab\n"),
            (micros(20), twice),
            (micros(27), twice),
            (micros(34), twice),
        ];
        assert_eq!(script.timeline(), expected);
        assert_eq!(script.ending(), Some((micros(50), Ending::Reset)));
        assert_eq!(script.most_at_once, Some(3));
    }

    #[test]
    fn an_end_may_be_left_out() {
        let script = parsed(r#""steps":[{"at_us":9,"text":"a"}]"#).expect("it is in order");
        assert_eq!(script.ending(), Some((micros(9), Ending::Proper)));
        assert_eq!((script.status, script.framing), (200, Framing::Chunked));
    }

    #[test]
    fn what_cannot_be_played_is_refused_with_a_reason() {
        for (steps, reason) in [
            (r#""steps":[{"at_us":1}]"#, "exactly one"),
            (
                r#""steps":[{"at_us":1,"text":"a","fin":true}]"#,
                "exactly one",
            ),
            (
                r#""steps":[{"at_us":1,"text":"a","base64":""}]"#,
                "exactly one",
            ),
            (
                r#""steps":[{"at_us":1,"fin":true,"cut":true}]"#,
                "exactly one",
            ),
            (r#""steps":[{"at_us":1,"fin":false}]"#, "exactly one"),
            (r#""steps":[{"at_us":1,"text":""}]"#, "no byte"),
            (r#""steps":[{"at_us":1,"base64":"?"}]"#, "base64"),
            (r#""steps":[{"at_us":1,"text":"a","count":2}]"#, "every_us"),
            (
                r#""steps":[{"at_us":1,"text":"a","every_us":1,"count":0}]"#,
                "count is 0",
            ),
            (
                r#""steps":[{"at_us":2,"text":"a"},{"at_us":1,"fin":true}]"#,
                "step 1: at_us",
            ),
            (
                r#""steps":[{"at_us":2,"fin":true},{"at_us":3,"text":"a"}]"#,
                "follow an end",
            ),
            (r#""status":100,"steps":[]"#, "status 100"),
            (r#""headers":{"a b":"c"},"steps":[]"#, "no header name"),
            (
                r#""headers":{"a":"b\r\nc: d"},"steps":[]"#,
                "control character",
            ),
            (r#""headers":{"Content-Length":"5"},"steps":[]"#, "framing"),
            (r#""other":1,"steps":[]"#, "other"),
        ] {
            let error = parsed(steps).expect_err(steps);
            assert!(error.contains(reason), "{steps}: {error}");
        }
        let taken = br#"{"scripts":{"normal":{"steps":[]}}}"#;
        assert!(Library::parse(taken).is_err_and(|error| error.contains("'normal'")));
    }

    /// The example of the manual is one that works.
    #[test]
    fn the_manual_shows_a_script_that_can_be_played() {
        let manual = include_str!("../../../../docs/serve-script.md");
        let (_, example) = manual.split_once("```json\n").expect("there is an example");
        let (example, _) = example.split_once("```").expect("it ends");
        let library = Library::parse(example.as_bytes()).expect("it can be played");
        assert!(library.names().count() > 1);
    }
}
