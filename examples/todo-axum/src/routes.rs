//! The routes: they take requests apart and put answers together. What is kept, and how, is the store's affair.

use std::sync::Arc;

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::store::{Listing, NewTodo, Page, Store, StoreError, Todo};

const DEFAULT_LIMIT: u32 = 20;
const LARGEST_LIMIT: u32 = 100;

/// All routes over one store.
pub(crate) fn router(store: Arc<Store>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/todos", get(list).post(create))
        .route("/todos/search", get(search))
        .route("/todos/{id}", get(one))
        .fallback(unknown_route)
        .with_state(store)
}

/// SQLite blocks, so it runs on a blocking thread: an fsync must not hold up the requests that need no database.
async fn with_store<T: Send + 'static>(
    store: Arc<Store>,
    work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(move || work(&store)).await {
        Ok(result) => Ok(result?),
        Err(panic) => Err(ApiError::Internal(panic.to_string())),
    }
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

#[derive(Deserialize)]
struct ListQuery {
    limit: Option<u32>,
    #[serde(default)]
    offset: u32,
}

impl ListQuery {
    fn page(&self) -> Page {
        Page { limit: self.limit.unwrap_or(DEFAULT_LIMIT).min(LARGEST_LIMIT), offset: self.offset }
    }
}

async fn list(
    State(store): State<Arc<Store>>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<Listing>, ApiError> {
    let page = query?.page();
    with_store(store, move |store| store.list(page)).await.map(Json)
}

// The page is not a `ListQuery` flattened into it: serde's flatten turns every value into text first, and numbers fail.
#[derive(Deserialize)]
struct SearchQuery {
    q: String,
    limit: Option<u32>,
    #[serde(default)]
    offset: u32,
}

async fn search(
    State(store): State<Arc<Store>>,
    query: Result<Query<SearchQuery>, QueryRejection>,
) -> Result<Json<Listing>, ApiError> {
    let Query(SearchQuery { q, limit, offset }) = query?;
    let page = ListQuery { limit, offset }.page();
    with_store(store, move |store| store.search(&q, page)).await.map(Json)
}

async fn one(State(store): State<Arc<Store>>, id: Result<Path<i64>, PathRejection>) -> Result<Json<Todo>, ApiError> {
    let Path(id) = id?;
    let found = with_store(store, move |store| store.one(id)).await?;
    found.map(Json).ok_or_else(|| ApiError::NotFound(format!("there is no to-do item {id}")))
}

async fn create(
    State(store): State<Arc<Store>>,
    todo: Result<Json<NewTodo>, JsonRejection>,
) -> Result<impl IntoResponse, ApiError> {
    let Json(todo) = todo?;
    let problems = todo.problems();
    if !problems.is_empty() {
        return Err(ApiError::Invalid(problems));
    }
    let created = with_store(store, move |store| store.create(&todo)).await?;
    Ok((StatusCode::CREATED, [(header::LOCATION, format!("/todos/{}", created.id))], Json(created)))
}

async fn unknown_route(uri: Uri) -> ApiError {
    ApiError::NotFound(format!("there is nothing at {}", uri.path()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};

    use serde_json::Value;
    use tokio::net::TcpListener;

    use super::*;
    use crate::store::tests::Folder;

    struct Answer {
        status: u16,
        head: String,
        json: Value,
    }

    /// Sends one request over a connection of its own, as a client would.
    fn ask(address: SocketAddr, method: &str, target: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(
            stream,
            "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status line").parse().expect("a status");
        Answer { status, head: head.to_ascii_lowercase(), json: serde_json::from_str(body).unwrap_or(Value::Null) }
    }

    /// Runs the client against a served router over a new database.
    fn with_server(client: impl FnOnce(SocketAddr)) {
        let folder = Folder::new();
        let store = Arc::new(Store::open(&folder.database()).expect("a new database"));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(async move { axum::serve(listener, router(store)).await });
        client(address);
    }

    #[test]
    fn list_is_paged_and_bounded() {
        with_server(|address| {
            let answer = ask(address, "GET", "/todos", "");
            assert_eq!((answer.status, &answer.json["total"]), (200, &360.into()));
            assert_eq!(answer.json["items"].as_array().expect("a list").len(), 20);
            let answer = ask(address, "GET", "/todos?limit=100000&offset=350", "");
            assert_eq!(answer.json["items"].as_array().expect("a list").len(), 10);
            let answer = ask(address, "GET", "/todos?limit=some", "");
            assert_eq!(answer.status, 400);
            assert!(answer.json["error"]["message"].as_str().expect("a text").contains("limit"));
        });
    }

    #[test]
    fn one_item_or_a_404_in_json() {
        with_server(|address| {
            let answer = ask(address, "GET", "/todos/42", "");
            assert_eq!((answer.status, &answer.json["id"]), (200, &42.into()));
            let answer = ask(address, "GET", "/todos/4242", "");
            assert_eq!((answer.status, &answer.json["error"]["message"]), (404, &"there is no to-do item 4242".into()));
            assert_eq!(ask(address, "GET", "/todos/many", "").status, 400);
            assert_eq!(ask(address, "GET", "/nowhere", "").status, 404);
        });
    }

    #[test]
    fn search_answers_only_items_with_the_word() {
        with_server(|address| {
            let answer = ask(address, "GET", "/todos/search?q=choir&limit=100", "");
            let items = answer.json["items"].as_array().expect("a list");
            assert_eq!(answer.json["total"], items.len());
            assert!(!items.is_empty());
            assert!(items.iter().all(|item| item["title"].as_str().expect("a text").ends_with("the choir")));
            assert_eq!(ask(address, "GET", "/todos/search", "").status, 400);
        });
    }

    #[test]
    fn created_item_is_where_its_location_says() {
        with_server(|address| {
            let answer = ask(address, "POST", "/todos", r#"{"title":"Feed the cat"}"#);
            assert_eq!(answer.status, 201);
            assert!(answer.head.contains("location: /todos/361\r\n"), "{}", answer.head);
            assert_eq!(ask(address, "GET", "/todos/361", "").json, answer.json);
        });
    }

    #[test]
    fn unacceptable_items_are_refused_with_reasons() {
        with_server(|address| {
            let answer = ask(address, "POST", "/todos", r#"{"title":" "}"#);
            assert_eq!((answer.status, &answer.json["error"]["fields"]["title"]), (422, &"must not be empty".into()));
            assert_eq!(ask(address, "POST", "/todos", r#"{"title":"x","colour":"red"}"#).status, 422);
            assert_eq!(ask(address, "POST", "/todos", "{").status, 400);
            assert_eq!(ask(address, "GET", "/todos", "").json["total"], 360);
        });
    }

    #[test]
    fn health_answers_without_the_database() {
        with_server(|address| assert_eq!(ask(address, "GET", "/health", "").json["status"], "ok"));
    }
}
