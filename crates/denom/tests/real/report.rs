//! Owns the names of the JSON that the program prints: no other part of this test spells one.

use std::fmt;

use serde_json::Value;

/// One run: its report and its rows.
pub struct Run {
    report: Value,
    rows: Value,
}

/// One load level of a report.
pub struct Level(Value);

/// One distribution of a level.
pub struct Dist(Value);

/// One measured request.
pub struct Row(Value);

impl Run {
    pub fn new(report: Value, rows: Value) -> Self {
        Run { report, rows }
    }

    pub fn levels(&self) -> Vec<Level> {
        list(&self.report, "levels")
            .iter()
            .cloned()
            .map(Level)
            .collect()
    }

    /// Without the warm-up.
    pub fn rows(&self) -> Vec<Row> {
        let measured = |row: &&Value| at(row, "warmup") == &Value::Bool(false);
        let rows: Vec<Row> = list(&self.rows, "rows")
            .iter()
            .filter(measured)
            .cloned()
            .map(Row)
            .collect();
        let issued: u64 = self.levels().iter().map(Level::issued).sum();
        assert_eq!(rows.len() as u64, issued, "rows and requests issued");
        rows
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.report, self.rows)
    }
}

impl Level {
    pub fn target(&self) -> f64 {
        number(at(&self.0, "load.target"))
    }

    pub fn issued(&self) -> u64 {
        whole(at(&self.0, "requests.issued"))
    }

    pub fn ok(&self) -> u64 {
        whole(at(&self.0, "requests.ok"))
    }

    pub fn failed(&self) -> &Value {
        at(&self.0, "requests.failed")
    }

    pub fn shapes(&self) -> &Value {
        at(&self.0, "requests.shapes")
    }

    /// Requests of this shape; a shape that no request has may be left out.
    pub fn shape(&self, name: &str) -> u64 {
        self.shapes().get(name).map_or(0, whole)
    }

    pub fn ttft(&self) -> Dist {
        self.dist("latency.ttft")
    }

    pub fn e2e(&self) -> Dist {
        self.dist("latency.e2e")
    }

    pub fn generation(&self) -> Dist {
        self.dist("per_stream.generation")
    }

    pub fn end_to_end(&self) -> Dist {
        self.dist("per_stream.end_to_end")
    }

    pub fn declared_generation(&self) -> Dist {
        self.dist("declared.generation")
    }

    pub fn declared_prompt(&self) -> Dist {
        self.dist("declared.prompt")
    }

    pub fn h2_wait(&self) -> Dist {
        self.dist("connection.h2_wait")
    }

    fn dist(&self, path: &str) -> Dist {
        Dist(at(&self.0, path).clone())
    }
}

impl Dist {
    /// It stands on so many requests, and its median has a value.
    pub fn is_shown_for(&self, requests: u64) {
        assert!(at(&self.0, "withheld").is_null(), "withheld: {}", self.0);
        assert_eq!(self.n(), requests, "{}", self.0);
        assert!(number(at(&self.0, "p50.value")) > 0.0, "{}", self.0);
    }

    /// On how many requests it stands.
    pub fn n(&self) -> u64 {
        whole(at(&self.0, "n"))
    }

    /// It has a reason in place of every value.
    pub fn is_withheld(&self) {
        assert!(!text(at(&self.0, "withheld.code")).is_empty(), "{}", self.0);
        assert!(!text(at(&self.0, "withheld.text")).is_empty(), "{}", self.0);
        for value in ["p50.value", "min", "max"] {
            assert!(at(&self.0, value).is_null(), "{value}: {}", self.0);
        }
    }

    pub fn evidence(&self) -> &str {
        text(at(&self.0, "evidence"))
    }
}

impl Row {
    pub fn outcome(&self) -> &str {
        text(at(&self.0, "outcome"))
    }

    pub fn shape(&self) -> &str {
        text(at(&self.0, "shape"))
    }

    pub fn reasons(&self) -> &[Value] {
        list(&self.0, "reasons")
    }

    pub fn has_flag(&self, name: &str) -> bool {
        list(&self.0, "flags").iter().any(|flag| flag == name)
    }

    pub fn finish(&self) -> &str {
        text(at(&self.0, "finish"))
    }

    pub fn chunks(&self) -> u64 {
        whole(at(&self.0, "chunks"))
    }

    pub fn output_tokens(&self) -> u64 {
        whole(at(&self.0, "output_tokens"))
    }

    pub fn billed_tokens(&self) -> u64 {
        whole(at(&self.0, "billed_tokens"))
    }

    pub fn input_tokens(&self) -> u64 {
        whole(at(&self.0, "input_tokens"))
    }

    pub fn token_source(&self) -> &str {
        text(at(&self.0, "token_source"))
    }

    /// None where it is withheld.
    pub fn ttft_s(&self) -> Option<f64> {
        let value = at(&self.0, "ttft_s");
        (!value.is_null()).then(|| number(value))
    }

    pub fn e2e_s(&self) -> f64 {
        number(at(&self.0, "e2e_s"))
    }

    pub fn rate_used(&self) -> &str {
        text(at(&self.0, "rate_used"))
    }

    pub fn rate(&self) -> f64 {
        number(at(&self.0, "rate.value"))
    }

    pub fn declared_rate(&self) -> f64 {
        number(at(&self.0, "declared_rate.value"))
    }

    pub fn text(&self) -> &str {
        text(at(&self.0, "text"))
    }
}

/// As evidence in a failed assertion.
impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "row {}", self.0)
    }
}

/// The value at a path of names. A name that is missing is a failure; null is not.
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, name| {
        value
            .get(name)
            .unwrap_or_else(|| panic!("no {name:?} (of {path:?}) in {value}"))
    })
}

fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    let found = at(value, path);
    found
        .as_array()
        .unwrap_or_else(|| panic!("{path:?} is no list: {found}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

fn whole(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no count: {value}"))
}
