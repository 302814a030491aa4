//! Every way in which a request can fail, as one type with one JSON shape: `{"error": {"message": …, "fields": {…}}}`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::store::StoreError;

/// What a handler fails with.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// No item or route of that name: 404.
    NotFound(String),
    /// The request cannot be understood; axum says why and which status suits.
    Malformed(StatusCode, String),
    /// It can be understood but not accepted: 422, with a reason for each field.
    Invalid(BTreeMap<&'static str, String>),
    /// The server's fault: 500. The cause is for the log only.
    Internal(String),
}

#[derive(Serialize)]
struct Body {
    error: Problem,
}

#[derive(Serialize)]
struct Problem {
    message: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<&'static str, String>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, message, fields) = match self {
            Self::NotFound(message) => (StatusCode::NOT_FOUND, message, BTreeMap::new()),
            Self::Malformed(status, message) => (status, message, BTreeMap::new()),
            Self::Invalid(fields) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "some fields are not acceptable".to_owned(), fields)
            }
            Self::Internal(cause) => {
                eprintln!("internal error: {cause}");
                (StatusCode::INTERNAL_SERVER_ERROR, "something went wrong on our side".to_owned(), BTreeMap::new())
            }
        };
        (status, Json(Body { error: Problem { message, fields } })).into_response()
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        Self::Malformed(rejection.status(), rejection.body_text())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::Malformed(rejection.status(), rejection.body_text())
    }
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        Self::Malformed(rejection.status(), rejection.body_text())
    }
}
