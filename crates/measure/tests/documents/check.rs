//! Owns the checking of a JSON value against the part of JSON Schema that the published schema uses.

use serde_json::{Map, Value};

/// Keywords that say something to a reader and nothing to a checker.
const SILENT: [&str; 6] = [
    "$schema",
    "$id",
    "$defs",
    "title",
    "description",
    "$comment",
];

/// How to treat members that the schema does not describe.
#[derive(Clone, Copy, PartialEq)]
pub enum Undescribed {
    /// As the schema says: they are allowed.
    Allowed,
    /// As an error: what the program writes must all be described.
    Refused,
}

/// Checks `value`; each complaint starts with the place it is about.
pub fn check(root: &Value, value: &Value, undescribed: Undescribed) -> Vec<String> {
    let mut complaints = Vec::new();
    Checker {
        root,
        complaints: &mut complaints,
        undescribed,
    }
    .value(root, value, "");
    complaints
}

struct Checker<'a> {
    root: &'a Value,
    complaints: &'a mut Vec<String>,
    undescribed: Undescribed,
}

impl Checker<'_> {
    fn complain(&mut self, at: &str, text: String) {
        self.complaints.push(format!("{at}: {text}"));
    }

    fn value(&mut self, schema: &Value, value: &Value, at: &str) {
        let schema = schema.as_object().expect("a schema is an object");
        for (keyword, given) in schema {
            match keyword.as_str() {
                "$ref" => self.value(resolve(self.root, given), value, at),
                "type" => self.kind(given, value, at),
                "const" if value != given => self.complain(at, format!("{value} is not {given}")),
                "enum" if !list(given).contains(value) => {
                    self.complain(at, format!("{value} is none of {given}"));
                }
                "minimum" if value.as_f64() < given.as_f64() && value.is_number() => {
                    self.complain(at, format!("{value} is below {given}"));
                }
                "required" => self.required(given, value, at),
                "properties" => self.members(schema, value, at),
                "additionalProperties" if !schema.contains_key("properties") => {
                    self.members(schema, value, at);
                }
                "items" => self.items(given, value, at),
                "minItems" | "maxItems" => self.length(keyword, given, value, at),
                "anyOf" => self.any_of(given, value, at),
                "const" | "enum" | "minimum" | "additionalProperties" => {}
                silent if SILENT.contains(&silent) => {}
                other => panic!("the schema uses {other:?}, which this checker does not know"),
            }
        }
    }

    fn kind(&mut self, given: &Value, value: &Value, at: &str) {
        let fits = |kind: &Value| match kind.as_str().expect("a type is a name") {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.is_u64() || value.is_i64(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("no type {other:?}"),
        };
        let fits = match given {
            Value::Array(kinds) => kinds.iter().any(fits),
            kind => fits(kind),
        };
        if !fits {
            self.complain(at, format!("{value} is not of type {given}"));
        }
    }

    fn required(&mut self, names: &Value, value: &Value, at: &str) {
        let Some(members) = value.as_object() else {
            return;
        };
        for name in list(names).iter().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                self.complain(at, format!("{name:?} is missing"));
            }
        }
    }

    fn members(&mut self, schema: &Map<String, Value>, value: &Value, at: &str) {
        let known = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        for (name, member) in value.as_object().into_iter().flatten() {
            let place = format!("{at}/{name}");
            match (known.and_then(|known| known.get(name)), others) {
                (Some(schema), _) => self.value(schema, member, &place),
                (None, Some(schema @ Value::Object(_))) => self.value(schema, member, &place),
                (None, _) if self.undescribed == Undescribed::Refused => {
                    self.complain(&place, "is not described".into());
                }
                (None, _) => {}
            }
        }
    }

    fn items(&mut self, schema: &Value, value: &Value, at: &str) {
        for (place, item) in value.as_array().into_iter().flatten().enumerate() {
            self.value(schema, item, &format!("{at}/{place}"));
        }
    }

    fn length(&mut self, keyword: &str, given: &Value, value: &Value, at: &str) {
        let (Some(items), Some(limit)) = (value.as_array(), given.as_u64()) else {
            return;
        };
        let wrong = match keyword {
            "minItems" => (items.len() as u64) < limit,
            _ => items.len() as u64 > limit,
        };
        if wrong {
            self.complain(
                at,
                format!("{} items against {keyword} {given}", items.len()),
            );
        }
    }

    /// A branch that is a reference describes a whole object; any other adds to what stands
    /// around it, so it is not the place to ask whether all members are described.
    fn any_of(&mut self, branches: &Value, value: &Value, at: &str) {
        let mut all = Vec::new();
        for branch in list(branches) {
            let mut complaints = Vec::new();
            Checker {
                root: self.root,
                complaints: &mut complaints,
                undescribed: match branch.get("$ref") {
                    Some(_) => self.undescribed,
                    None => Undescribed::Allowed,
                },
            }
            .value(branch, value, at);
            if complaints.is_empty() {
                return;
            }
            all.append(&mut complaints);
        }
        self.complain(at, format!("no alternative fits: {}", all.join("; ")));
    }
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("this keyword takes a list")
}

fn resolve<'a>(root: &'a Value, reference: &Value) -> &'a Value {
    let path = reference.as_str().and_then(|text| text.strip_prefix('#'));
    let found = path.and_then(|path| root.pointer(path));
    found.unwrap_or_else(|| panic!("{reference} leads nowhere"))
}

#[test]
fn the_checker_refuses_what_each_keyword_forbids() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"],
        "properties": {
            "a": {"type": "array", "items": {"$ref": "#/$defs/one"}, "minItems": 1, "maxItems": 2},
            "b": {"anyOf": [{"type": "null"}, {"const": 3}]},
            "c": {"additionalProperties": {"enum": ["x"]}}
        },
        "$defs": {"one": {"type": ["integer", "null"], "minimum": 0}}
    });
    let right = serde_json::json!({"a": [1, null], "b": 3, "c": {"k": "x"}, "new": 1});
    assert_eq!(check(&schema, &right, Undescribed::Allowed), [""; 0]);
    assert_eq!(
        check(&schema, &right, Undescribed::Refused),
        ["/new: is not described"]
    );
    for wrong in [
        serde_json::json!([]),
        serde_json::json!({}),
        serde_json::json!({"a": []}),
        serde_json::json!({"a": [1, 2, 3]}),
        serde_json::json!({"a": [-1]}),
        serde_json::json!({"a": [1.5]}),
        serde_json::json!({"a": [1], "b": 4}),
        serde_json::json!({"a": [1], "c": {"k": "y"}}),
    ] {
        let complaints = check(&schema, &wrong, Undescribed::Allowed);
        assert!(!complaints.is_empty(), "{wrong}");
    }
}
