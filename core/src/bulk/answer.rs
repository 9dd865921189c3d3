//! What a client is told of the import that it sent.

use axum_core::response::{IntoResponse, Response};
use http::{
    HeaderValue, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use serde_json::{Value, json};

use crate::{
    bulk::{BadLine, BulkError, BulkReport},
    error::{Error, ErrorKind},
};

/// The answer to an import: what it did, as JSON, and a status that says how it ended. Needs the feature `axum`.
///
/// | status | |
/// |---|---|
/// | 200 | it came to its end; bad lines may have been left out |
/// | 202 | it was [stopped](super::Bulk::on_progress) |
/// | 400 | a line is bad, or the body ended early |
/// | 409 | a constraint or a version is in the way |
/// | 413 | it is larger than its limit of bytes or rows |
/// | 415 | it is not in a format that [`ImportBody`](super::ImportBody) takes, which answers so |
/// | 503 | the database is busy, or full: the same may succeed later, and `Retry-After` is there |
/// | 500 | another failure, which is logged and not told |
///
/// An error is told with `error`, and with `line`, `row` and `column` where they are known. With any status
/// `rows` is where to go on: [`skip_rows`](super::Bulk::skip_rows).
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::bulk::{Format, Import, ImportAnswer};
/// use axum_core::response::IntoResponse;
///
/// # #[derive(Debug, Entity, serde::Deserialize)]
/// # struct Item { #[entity(id)] id: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// let import = Import::new("{\"id\": 1}\n{\"id\": true}\n".as_bytes(), Format::Ndjson);
/// let answer = ImportAnswer::from(db.bulk_insert::<Item>().run_import::<Item>(import).await);
/// let told = answer.to_json();
/// assert_eq!((&told["rows"], &told["line"], &told["column"]), (&1.into(), &2.into(), &"id".into()));
/// assert_eq!(answer.into_response().status(), 400);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ImportAnswer {
    status: StatusCode,
    // A box, so that it is small as a rejection too.
    report: Box<BulkReport>,
    failed: Option<BulkError>,
}

impl From<Result<BulkReport, BulkError>> for ImportAnswer {
    fn from(ended: Result<BulkReport, BulkError>) -> Self {
        match ended {
            Ok(report) => Self {
                status: if report.is_complete {
                    StatusCode::OK
                } else {
                    StatusCode::ACCEPTED
                },
                report: Box::new(report),
                failed: None,
            },
            Err(failed) => {
                let status = status(failed.error());
                if status.is_server_error() {
                    tracing::error!(error = %failed.error().in_log(), "an import failed");
                } else if failed.kind() == ErrorKind::Application {
                    tracing::warn!(error = %failed.error().in_log(), "an import ended early: what is committed stays");
                }
                Self {
                    status,
                    report: Box::new(failed.report().clone()),
                    failed: Some(failed),
                }
            }
        }
    }
}

impl ImportAnswer {
    /// Nothing was read.
    pub(in crate::bulk) fn refused(status: StatusCode, why: &'static str) -> Self {
        let (error, report) = (Error::new(ErrorKind::Refused, why), BulkReport::default());
        Self {
            status,
            report: Box::new(report.clone()),
            failed: Some(BulkError::new(error, 0..0, 0..0, report)),
        }
    }

    /// What is told: a report of the application may have more than it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let report = &self.report;
        let rejected: Vec<_> = report.first_bad_lines.iter().map(rejected).collect();
        let passed: Vec<_> = (report.first_passed_over.iter())
            .map(|passed| json!({"line": passed.line, "row": passed.row}))
            .collect();
        let mut told = json!({
            "rows": report.rows,
            "written": report.written,
            "passed_over": report.passed_over,
            "first_passed_over": passed,
            "bad_lines": report.bad_lines,
            "rejected": rejected,
            "is_complete": report.is_complete,
        });
        if let Some(failed) = &self.failed {
            told["error"] = self.explain(failed).into();
            told["line"] = failed.line().into();
            told["row"] = failed.row().into();
            told["column"] = failed.error().column().into();
        }
        told
    }

    /// The failure, unless it is ours.
    fn explain(&self, failed: &BulkError) -> String {
        if failed.kind() == ErrorKind::Application {
            return "the body ended early".to_owned();
        }
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => "the database is busy: try again later".to_owned(),
            StatusCode::INTERNAL_SERVER_ERROR => "the import failed".to_owned(),
            _ => without_statement(failed.error()),
        }
    }
}

impl IntoResponse for ImportAnswer {
    fn into_response(self) -> Response {
        let mut response = self.to_json().to_string().into_response();
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// Its text, but for the SQL, which is nothing to the client.
fn without_statement(error: &Error) -> String {
    let text = error.to_string();
    let statement = error.statement().map(|sql| format!(" in: {sql}"));
    let kept = statement.and_then(|statement| text.strip_suffix(&statement));
    kept.unwrap_or(&text).to_owned()
}

fn rejected(bad: &BadLine) -> Value {
    json!({"line": bad.line, "row": bad.row, "column": bad.column, "reason": bad.reason})
}

fn status(error: &Error) -> StatusCode {
    match error.kind() {
        ErrorKind::BadLine | ErrorKind::Value | ErrorKind::Application => StatusCode::BAD_REQUEST,
        ErrorKind::TooBig => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        _ if error.is_constraint() => StatusCode::CONFLICT,
        _ if error.is_retryable() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
