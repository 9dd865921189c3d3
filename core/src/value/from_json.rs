//! JSON as it is given to set a field: read by the storage class of the column, unless the type says otherwise.

use crate::value::{ColumnType as _, JsonValue, Storage, Value, ValueError};

/// What would be stored for a JSON value in a column of this class.
pub(in crate::value) fn stored(storage: Storage, json: &JsonValue) -> Result<Value, ValueError> {
    if json.is_null() {
        return Ok(Value::Null);
    }
    match storage {
        Storage::Integer => json
            .as_i64()
            .map(Value::Integer)
            .ok_or_else(|| expected("an integer of 64 bits", json)),
        Storage::Real => real(json),
        Storage::Text => (json.as_str())
            .map(|text| Value::Text(text.to_owned()))
            .ok_or_else(|| expected("a string", json)),
        Storage::Blob => bytes(json)
            .map(Value::Blob)
            .ok_or_else(|| expected("an array of bytes", json)),
        Storage::Any => any(json),
    }
}

/// By what the JSON is itself.
fn any(json: &JsonValue) -> Result<Value, ValueError> {
    let storage = match json {
        JsonValue::Number(number) if number.is_f64() => Storage::Real,
        JsonValue::Number(_) => Storage::Integer,
        JsonValue::String(_) => Storage::Text,
        JsonValue::Array(_) => Storage::Blob,
        other => return Err(expected("a number, a string or an array of bytes", other)),
    };
    stored(storage, json)
}

/// Whole numbers too, if they are exact.
fn real(json: &JsonValue) -> Result<Value, ValueError> {
    let number = match json.as_i64() {
        Some(whole) => f64::decode(Value::Integer(whole).as_ref()).map_err(ValueError::given)?,
        None => json.as_f64().ok_or_else(|| expected("a number", json))?,
    };
    Ok(Value::Real(number))
}

fn bytes(json: &JsonValue) -> Option<Vec<u8>> {
    let byte = |number: &JsonValue| u8::try_from(number.as_u64()?).ok();
    json.as_array()?.iter().map(byte).collect()
}

/// The JSON value is of another kind.
pub(in crate::value) fn expected(expected: &str, found: &JsonValue) -> ValueError {
    let found = match found {
        JsonValue::Null => "null",
        JsonValue::Bool(_) => "a bool",
        JsonValue::Number(_) => "another number",
        JsonValue::String(_) => "a string",
        JsonValue::Array(_) => "an array",
        JsonValue::Object(_) => "an object",
    };
    ValueError::new(format!("expected {expected}, found {found}"))
}

/// The digits of a JSON number, or of a string that holds one, parsed: a number may be too long for JavaScript.
pub(in crate::value) fn number<T>(
    json: &JsonValue,
    what: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, ValueError> {
    match json {
        JsonValue::Number(number) => parse(&number.to_string()),
        JsonValue::String(text) => parse(text),
        other => return Err(expected(what, other)),
    }
    .ok_or_else(|| ValueError::new(format!("the number given is not {what}")))
}

/// The text of a JSON string, parsed.
pub(in crate::value) fn parsed<T>(
    json: &JsonValue,
    what: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, ValueError> {
    let text = json.as_str().ok_or_else(|| expected(what, json))?;
    parse(text).ok_or_else(|| ValueError::new(format!("the text given is not {what}")))
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
    use serde_json::json;
    use uuid::Uuid;

    use crate::value::{ColumnType, Json, JsonValue};

    fn read<T: ColumnType>(json: &JsonValue) -> Result<T, String> {
        T::from_json(json).map_err(|error| error.to_string())
    }

    #[test]
    fn each_type_reads_what_serde_writes_of_it() {
        assert_eq!(read(&json!(7)), Ok(7_i64));
        assert_eq!(read(&json!(7)), Ok(Some(7_u8)));
        assert_eq!(read(&json!(null)), Ok(None::<u8>));
        assert_eq!(read(&json!(7)), Ok(7.0_f64));
        assert_eq!(read(&json!(0.1_f32)), Ok(0.1_f32));
        assert_eq!(read(&json!("tea")), Ok("tea".to_owned()));
        assert_eq!(read(&json!(true)), Ok(true));
        assert_eq!(read(&json!([0, 255])), Ok(vec![0_u8, 255]));
        let id = Uuid::from_u128(7);
        assert_eq!(read(&json!(id.to_string())), Ok(id));
        assert_eq!(read(&json!({"a": [1]})), Ok(json!({"a": [1]})));
        assert_eq!(read(&json!([1, 2])), Ok(Json(vec![1, 2])));
        assert_eq!(read(&json!(null)), Ok(None::<JsonValue>));
    }

    #[test]
    fn dates_are_read_in_the_stored_form_and_in_that_of_rfc_3339() {
        let date = NaiveDate::from_ymd_opt(2013, 1, 2).unwrap();
        let time = NaiveTime::from_hms_opt(10, 30, 0).unwrap();
        assert_eq!(read(&json!("2013-01-02")), Ok(date));
        assert_eq!(read(&json!("10:30:00")), Ok(time));
        for text in [
            "2013-01-02 10:30:00.000000000",
            "2013-01-02T10:30:00Z",
            "2013-01-02T12:30:00+02:00",
        ] {
            assert_eq!(read(&json!(text)), Ok(date.and_time(time)), "{text}");
            let utc: DateTime<Utc> = date.and_time(time).and_utc();
            assert_eq!(read(&json!(text)), Ok(utc), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_without_showing_it() {
        let refused = [
            read::<i64>(&json!("7")).unwrap_err(),
            read::<i64>(&json!(u64::MAX)).unwrap_err(),
            read::<i64>(&json!(1.5)).unwrap_err(),
            read::<u8>(&json!(256)).unwrap_err(),
            read::<i64>(&json!(null)).unwrap_err(),
            read::<f64>(&json!(i64::MAX)).unwrap_err(),
            read::<f32>(&json!(1e300)).unwrap_err(),
            read::<bool>(&json!(1)).unwrap_err(),
            read::<Vec<u8>>(&json!([256])).unwrap_err(),
            read::<Uuid>(&json!("secret")).unwrap_err(),
            read::<NaiveDate>(&json!("secret")).unwrap_err(),
            read::<Json<Vec<u8>>>(&json!(["secret"])).unwrap_err(),
        ];
        expect_test::expect![[r#"
            expected an integer of 64 bits, found a string
            expected an integer of 64 bits, found another number
            expected an integer of 64 bits, found another number
            the integer given is out of range for u8
            expected an integer, found null
            the integer given has no exact f64: use an i64 field
            the number given is out of range for f32
            expected a bool, found another number
            expected an array of bytes, found an array
            the text given is not a UUID
            the text given is no date (YYYY-MM-DD)
            the JSON given is not of this type"#]]
        .assert_eq(&refused.join("\n"));
    }
}
