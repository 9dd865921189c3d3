//! The body of a request, as an import.

use axum_core::{
    body::{Body, BodyDataStream},
    extract::{FromRequest, Request},
};
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE},
};

#[cfg(feature = "csv")]
use crate::bulk::Csv;
use crate::bulk::{Format, Import, ImportAnswer};

/// How large a body may be unless told otherwise.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// The body of a request: NDJSON (`application/x-ndjson`, `application/jsonl`) or CSV (`text/csv`), as its Content-Type
/// says; another is answered by 415, and so is one that is compressed, or not in UTF-8. It is read as fast as its rows are written and no
/// faster, and never held as a whole. It may have 256 MB unless [`max_bytes`](Import::max_bytes) says otherwise: axum's own
/// limit, for bodies that are held in memory, does not apply.
///
/// If the client goes away, the transactions that are committed stay, and the log says how far it came. Needs the
/// feature `axum`.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::bulk::{ImportAnswer, ImportBody};
///
/// #[derive(Debug, Entity, serde::Deserialize)]
/// struct Item {
///     #[entity(id)]
///     id: i64,
///     name: String,
/// }
///
/// /// A handler of axum: `Router::new().route("/items", post(import)).with_state(db)`.
/// async fn import(db: Database, ImportBody(import): ImportBody) -> ImportAnswer {
///     let import = import.max_bytes(1 << 30).max_rows(5_000_000).skip_bad_lines();
///     db.bulk_insert::<Item>().run_import_stream::<Item>(import).await.into()
/// }
/// # use axum_core::{body::Body, extract::{FromRequest, Request}, response::IntoResponse};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut request = Request::new(Body::from("{\"id\": 1, \"name\": \"tea\"}"));
/// # request.headers_mut().insert("content-type", "application/x-ndjson".parse().unwrap());
/// # let body = ImportBody::from_request(request, &()).await.unwrap();
/// # assert_eq!(import(db.clone(), body).await.into_response().status(), 200);
/// # assert_eq!(Item::query().count(&db).await?, 1);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ImportBody(pub Import<BodyDataStream>);

impl ImportBody {
    /// The body of a request that is of this format, whatever its Content-Type says.
    ///
    /// ```
    /// use anabranch::bulk::{Format, ImportBody};
    /// use axum_core::{body::Body, extract::Request};
    ///
    /// let request = Request::new(Body::from("{\"id\": 1}"));
    /// let ImportBody(import) = ImportBody::of(request, Format::Ndjson);
    /// # let _ = import;
    /// ```
    pub fn of(request: Request, format: impl Into<Format>) -> Self {
        let (parts, body) = request.into_parts();
        Self::new(&parts.headers, body, format.into())
    }

    fn new(headers: &HeaderMap, body: Body, format: Format) -> Self {
        let mut import = Import::new(body.into_data_stream(), format).max_bytes(MOST_BYTES);
        let length = headers.get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        import.options.bytes = length.unwrap_or(0);
        Self(import)
    }
}

impl<S: Sync> FromRequest<S> for ImportBody {
    type Rejection = ImportAnswer;

    async fn from_request(request: Request, _: &S) -> Result<Self, Self::Rejection> {
        let (parts, body) = request.into_parts();
        let refuse = |why| {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            Err(ImportAnswer::refused(status, why))
        };
        let encoding = parts.headers.get(CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return refuse("send the lines uncompressed");
        }
        match format(&parts.headers) {
            Some(_) if !is_utf8(&parts.headers) => refuse("send the lines in UTF-8"),
            Some(format) => Ok(Self::new(&parts.headers, body, format)),
            None if cfg!(feature = "csv") => {
                refuse("send text/csv, or JSON lines as application/x-ndjson")
            }
            None => refuse("send JSON lines as application/x-ndjson"),
        }
    }
}

/// Content-Type, in small letters.
fn kind(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(kind.to_ascii_lowercase())
}

/// Whether no other `charset` is said; ASCII is a part of it.
fn is_utf8(headers: &HeaderMap) -> bool {
    let kind = kind(headers).unwrap_or_default();
    kind.split(';')
        .skip(1)
        .all(|part| match part.split_once('=') {
            Some((name, value)) if name.trim() == "charset" => {
                let value = value.trim().trim_matches('"');
                matches!(value, "utf-8" | "utf8" | "us-ascii" | "ascii")
            }
            _ => true,
        })
}

/// What Content-Type says.
fn format(headers: &HeaderMap) -> Option<Format> {
    let kind = kind(headers)?;
    let mut parts = kind.split(';').map(str::trim);
    match parts.next()? {
        "application/x-ndjson"
        | "application/ndjson"
        | "application/jsonl"
        | "application/x-jsonlines" => Some(Format::Ndjson),
        #[cfg(feature = "csv")]
        "text/csv" if parts.any(|part| part == "header=absent") => {
            Some(Csv::new().no_header().into())
        }
        #[cfg(feature = "csv")]
        "text/csv" => Some(Csv::new().into()),
        _ => None,
    }
}
