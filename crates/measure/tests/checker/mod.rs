//! Owns the check of a JSON value against a schema, for the tests of every schema.

use serde_json::{Map, Value};

/// Checks the keywords that the schema uses, and refuses to pass over any other.
struct Checker<'a> {
    root: &'a Value,
    /// Members that the schema does not describe are faults too.
    strict: bool,
    faults: Vec<String>,
}

/// Where `value` does not fit `schema`.
pub fn faults(schema: &Value, value: &Value, strict: bool) -> Vec<String> {
    let mut checker = Checker {
        root: schema,
        strict,
        faults: Vec::new(),
    };
    checker.check(schema, value, "");
    checker.faults
}

impl Checker<'_> {
    fn check(&mut self, schema: &Value, value: &Value, at: &str) {
        let schema = schema.as_object().expect("a schema is an object");
        for (keyword, given) in schema {
            match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" => {}
                "$ref" => {
                    let name = given.as_str().and_then(|name| name.strip_prefix('#'));
                    let target = name.and_then(|name| self.root.pointer(name));
                    let target = target.unwrap_or_else(|| panic!("{given} leads nowhere"));
                    self.check(target, value, at);
                }
                "type" => self.require(is_type(given, value), at, || format!("is no {given}")),
                "enum" => {
                    let listed = given.as_array().expect("a list").contains(value);
                    self.require(listed, at, || format!("{value} is none of {given}"));
                }
                "anyOf" => self.any_of(given, value, at),
                "required" => self.required(given, value, at),
                "items" => {
                    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(given, item, &format!("{at}/{i}"));
                    }
                }
                "const" => self.require(given == value, at, || format!("{value} is not {given}")),
                "minimum" => {
                    let low = value
                        .as_f64()
                        .is_some_and(|found| Some(found) < given.as_f64());
                    self.require(!low, at, || format!("{value} is below {given}"));
                }
                "minItems" | "maxItems" => {
                    let many = value.as_array().map(|list| list.len() as u64);
                    let off = match keyword.as_str() {
                        "minItems" => many.is_some_and(|many| Some(many) < given.as_u64()),
                        _ => many.is_some_and(|many| Some(many) > given.as_u64()),
                    };
                    self.require(!off, at, || format!("{value} has not {keyword} {given}"));
                }
                "properties" | "additionalProperties" => {}
                other => panic!("the checker does not know {other:?}"),
            }
        }
        self.members(schema, value, at);
    }

    fn require(&mut self, holds: bool, at: &str, fault: impl Fn() -> String) {
        if !holds {
            self.faults.push(format!("{at}: {}", fault()));
        }
    }

    fn any_of(&mut self, given: &Value, value: &Value, at: &str) {
        let tried = given.as_array().expect("a list").iter().map(|schema| {
            // A branch may speak of some members only.
            let mut branch = Checker {
                root: self.root,
                strict: false,
                faults: Vec::new(),
            };
            branch.check(schema, value, at);
            branch.faults
        });
        let tried: Vec<_> = tried.collect();
        if tried.iter().all(|faults| !faults.is_empty()) {
            self.faults.extend(tried.into_iter().flatten());
        }
    }

    fn required(&mut self, given: &Value, value: &Value, at: &str) {
        let Some(map) = value.as_object() else { return };
        for name in given.as_array().expect("a list") {
            let name = name.as_str().expect("a name");
            self.require(map.contains_key(name), at, || {
                format!("{name:?} is missing")
            });
        }
    }

    fn members(&mut self, schema: &Map<String, Value>, value: &Value, at: &str) {
        let (described, others) = (schema.get("properties"), schema.get("additionalProperties"));
        if described.is_none() && others.is_none() {
            return;
        }
        for (name, member) in value.as_object().into_iter().flatten() {
            let at = format!("{at}/{name}");
            match (described.and_then(|all| all.get(name)), others) {
                (Some(schema), _) => self.check(schema, member, &at),
                (None, Some(schema @ Value::Object(_))) => self.check(schema, member, &at),
                (None, Some(Value::Bool(false))) => {
                    self.require(false, &at, || "may not be".into())
                }
                (None, _) => self.require(!self.strict, &at, || "is not described".into()),
            }
        }
    }
}

fn is_type(given: &Value, value: &Value) -> bool {
    let of = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the checker does not know the type {other:?}"),
    };
    match given {
        Value::String(name) => of(name),
        names => names
            .as_array()
            .expect("names")
            .iter()
            .any(|name| of(name.as_str().expect("a name"))),
    }
}
