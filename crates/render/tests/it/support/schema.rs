//! The part of JSON Schema that the derived schema uses, checked in a page of code.

use serde_json::Value;

/// Checks a value; the error names where it does not fit.
pub(crate) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    fits(schema, schema, value, "")
}

fn fits(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Some(rules) = schema.as_object() else { return Ok(()) };
    for (rule, wanted) in rules {
        match rule.as_str() {
            "$ref" => {
                let pointer = wanted.as_str().and_then(|to| to.strip_prefix('#')).unwrap();
                fits(root, root.pointer(pointer).unwrap(), value, at)?;
            }
            "type" => has_type(wanted, value, at)?,
            "const" => require(value == wanted, at, "the constant")?,
            "enum" => require(wanted.as_array().unwrap().contains(value), at, "one of the enum")?,
            "required" => {
                for name in wanted.as_array().unwrap() {
                    let there = value.get(name.as_str().unwrap()).is_some();
                    require(there, at, &format!("field {name}"))?;
                }
            }
            "properties" => {
                for (name, schema) in wanted.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        fits(root, schema, value, &format!("{at}/{name}"))?;
                    }
                }
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    fits(root, wanted, item, &format!("{at}/{number}"))?;
                }
            }
            "anyOf" | "oneOf" => {
                let mut options = wanted.as_array().unwrap().iter();
                let any = options.any(|option| fits(root, option, value, at).is_ok());
                require(any, at, "one of the alternatives")?;
            }
            "minimum" => require(value.as_f64() >= wanted.as_f64(), at, "the minimum")?,
            "maximum" => require(value.as_f64() <= wanted.as_f64(), at, "the maximum")?,
            "$schema" | "title" | "description" | "format" | "$defs" | "default" => {}
            other => return Err(format!("{at}: the checker does not know the rule {other}")),
        }
    }
    Ok(())
}

fn has_type(wanted: &Value, value: &Value, at: &str) -> Result<(), String> {
    let one = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    };
    let fits = wanted.as_array().map_or_else(|| one(wanted), |names| names.iter().any(one));
    require(fits, at, &format!("type {wanted}"))
}

fn require(holds: bool, at: &str, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{at}: not {what}")) }
}
