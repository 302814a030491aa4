//! HTTP/2 (RFC 9113): each exchange is a stream, and a connection carries as many at once as the plan's depth says.
//!
//! By `h2`, the protocol layer of hyper, without hyper's client on top: that hands every request through a channel to a
//! task of its own, and blurs the reasons for which a stream ended. A task drives each connection's frames; exchanges
//! begun in one turn of the runtime go out in one write. Bodies are counted and dropped as they come, their flow-control
//! window is given back at once, and trailers are left out.
//!
//! Decisions:
//!
//! - A connection is open once the server's SETTINGS are there, so its limit of concurrent streams is known before the
//!   first stream. Where the limit is below the depth, an exchange waits for a stream; that is part of its time.
//! - Streams that the server says it has not processed (GOAWAY with a lower last stream, REFUSED_STREAM) may be sent once
//!   more, as may those that had no answer when a connection ended that had answered others.
//! - An exchange that is given up resets its stream and leaves the connection to the others.
//! - Bytes sent and received are those on the wire, heads compressed and frames included; body bytes are the DATA frames'
//!   contents without padding.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::client::{Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use tokio::task::JoinHandle;

use super::http2_request::{RequestError, Template};
use super::metered::{Closing, Meter};
use super::raw::MAX_KEPT_BODY;
use super::route::{ByteStream, Chosen, Conduit, Route};
use super::shared::Link;
use super::{After, Answer, Body, Failure, Opening, Traffic};
use crate::model::{Nanos, Reuse};
use crate::scenario::WireRequest;

/// What a stream's answer may be ahead of what was read of it: large, so that it never waits for us on loopback, and far
/// below what memory would notice, since what comes is read at once.
const STREAM_WINDOW: u32 = 1024 * 1024;
/// The same for all streams of a connection together.
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;

/// The longest head of an answer, as on HTTP/1.1.
const MAX_HEAD: u32 = 64 * 1024;

/// What all connections have in common.
pub(in crate::engine) struct Common {
    route: Route,
    keeps_body: bool,
    reuse: Reuse,
    template: RefCell<Arc<Template>>,
}

impl Common {
    /// For `request`, by `route`.
    pub(in crate::engine) fn new(route: Route, request: Arc<Template>, keeps_body: bool, reuse: Reuse) -> Self {
        Self { route, keeps_body, reuse, template: RefCell::new(request) }
    }

    /// The request as this protocol wants it: mostly the one that was translated before.
    fn translate(&self, request: &WireRequest) -> Result<Arc<Template>, RequestError> {
        let mut template = self.template.borrow_mut();
        if !template.is_of(&request.bytes) {
            *template = Arc::new(Template::new(&request.bytes, template.scheme())?);
        }
        Ok(Arc::clone(&template))
    }
}

/// See the [module](self).
pub(in crate::engine) struct Http2 {
    common: Rc<Common>,
    sender: SendRequest<Bytes>,
    meter: Rc<Meter>,
    task: JoinHandle<()>,
    body_bytes: Cell<u64>,
    completed: Cell<u64>,
}

/// A slot's exchange, from its request to the end of its answer, and then the next.
pub(in crate::engine) struct Exchange {
    sender: SendRequest<Bytes>,
    stage: Stage,
    status: u16,
    head: http::HeaderMap,
    body: Vec<u8>,
    body_bytes: u64,
    first_byte: Option<Nanos>,
}

enum Stage {
    /// Nothing is sent.
    Out,
    /// The answer's head is awaited.
    Sent(ResponseFuture),
    /// Its body is.
    Body(RecvStream),
}

/// A server that does not speak HTTP/2, or not any more.
fn refusal(text: String) -> io::Error {
    io::Error::other(Failure::Http2(text))
}

/// Waits for the server's SETTINGS.
async fn settled(connection: &mut Connection<Pin<Box<dyn ByteStream>>, Bytes>, meter: &Meter) -> io::Result<()> {
    poll_fn(|cx| {
        let ended = Pin::new(&mut *connection).poll(cx);
        if connection.max_concurrent_send_streams() > 0 {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(Err(match ready!(ended) {
            Ok(()) => refusal("the server closed the connection before it sent its settings".to_owned()),
            Err(error) => match failure_of(error, meter, 0) {
                Failure::Http2(text) => refusal(format!("the server does not answer in it ({text})")),
                Failure::ClosedEarly | Failure::Truncated { .. } => {
                    refusal("the server closed the connection before it sent its settings".to_owned())
                }
                failure => io::Error::other(failure),
            },
        }))
    })
    .await
}

/// What an error means to an exchange of whose body so many bytes came.
fn failure_of(error: h2::Error, meter: &Meter, received: u64) -> Failure {
    if error.is_remote() && error.is_go_away() {
        let reason = error.reason().unwrap_or(Reason::NO_ERROR);
        return Failure::Unanswered(Box::new(Failure::GoneAway(name(reason))));
    }
    if error.is_remote() && error.is_reset() {
        let reason = error.reason().unwrap_or(Reason::NO_ERROR);
        let reset = Failure::StreamReset { received, reason: name(reason) };
        return if reason == Reason::REFUSED_STREAM { Failure::Unanswered(Box::new(reset)) } else { reset };
    }
    if !error.is_io() {
        return Failure::Http2(error.to_string());
    }
    if let Some(text) = meter.noted() {
        return Failure::Tls(text);
    }
    let Some(source) = error.into_io() else { return Failure::ClosedEarly };
    match (source.kind(), source.raw_os_error()) {
        // What h2 calls a broken pipe is the end of the stream while something was outstanding.
        (io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof, None) if received == 0 => Failure::ClosedEarly,
        (io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof, None) => Failure::Truncated { received },
        _ => Failure::broken(received, source),
    }
}

/// As RFC 9113, section 7, writes it.
fn name(reason: Reason) -> String {
    match reason {
        Reason::NO_ERROR => "NO_ERROR".to_owned(),
        Reason::PROTOCOL_ERROR => "PROTOCOL_ERROR".to_owned(),
        Reason::INTERNAL_ERROR => "INTERNAL_ERROR".to_owned(),
        Reason::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR".to_owned(),
        Reason::SETTINGS_TIMEOUT => "SETTINGS_TIMEOUT".to_owned(),
        Reason::STREAM_CLOSED => "STREAM_CLOSED".to_owned(),
        Reason::FRAME_SIZE_ERROR => "FRAME_SIZE_ERROR".to_owned(),
        Reason::REFUSED_STREAM => "REFUSED_STREAM".to_owned(),
        Reason::CANCEL => "CANCEL".to_owned(),
        Reason::COMPRESSION_ERROR => "COMPRESSION_ERROR".to_owned(),
        Reason::CONNECT_ERROR => "CONNECT_ERROR".to_owned(),
        Reason::ENHANCE_YOUR_CALM => "ENHANCE_YOUR_CALM".to_owned(),
        Reason::INADEQUATE_SECURITY => "INADEQUATE_SECURITY".to_owned(),
        Reason::HTTP_1_1_REQUIRED => "HTTP_1_1_REQUIRED".to_owned(),
        other => format!("error code {}", u32::from(other)),
    }
}

impl Http2 {
    fn fail(&self, error: h2::Error, exchange: &Exchange) -> Failure {
        let has_head = matches!(exchange.stage, Stage::Body(_));
        let failure = failure_of(error, &self.meter, exchange.body_bytes);
        match failure {
            Failure::ClosedEarly if has_head => Failure::Truncated { received: exchange.body_bytes },
            failure if !has_head && self.completed.get() > 0 && failure.is_unanswered_end() => {
                Failure::Unanswered(Box::new(failure))
            }
            failure => failure,
        }
    }

    fn answer(&self, exchange: &Exchange) -> Answer {
        self.completed.set(self.completed.get() + 1);
        let after = match self.common.reuse {
            Reuse::Close => After::Spent,
            Reuse::Keep if self.takes_more() => After::Open,
            Reuse::Keep => After::Ended,
        };
        let Exchange { status, first_byte, body_bytes, .. } = *exchange;
        Answer { status, first_byte, body_bytes, after }
    }

    /// Whether the server has neither ended the connection nor said that it will.
    fn takes_more(&self) -> bool {
        // Without a stream of its own, this handle is never told to wait.
        matches!(self.sender.clone().poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())))
    }

    fn send(&self, exchange: &mut Exchange, request: &WireRequest) -> Result<ResponseFuture, Failure> {
        let template = match self.common.translate(request) {
            Ok(template) => template,
            Err(error) => return Err(Failure::Http2(error.to_string())),
        };
        let sent = exchange.sender.send_request(template.head(), template.body().is_empty()).and_then(
            |(answer, mut stream)| {
                if !template.body().is_empty() {
                    stream.send_data(template.body().clone(), true)?;
                }
                Ok(answer)
            },
        );
        sent.map_err(|error| self.fail(error, exchange))
    }
}

impl Link for Http2 {
    type Common = Common;
    type Exchange = Exchange;

    async fn open(common: &Rc<Common>) -> io::Result<(Self, Opening)> {
        let Conduit { stream, meter, opening, chosen } = common.route.open().await?;
        if let Some(Chosen(protocol)) = chosen
            && protocol.as_deref() != Some(b"h2")
        {
            let chose = protocol.map_or("nothing".to_owned(), |name| format!("`{}`", name.escape_ascii()));
            return Err(refusal(format!("the server did not choose it by ALPN: offered `h2`, chosen {chose}")));
        }
        let built = h2::client::Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MAX_HEAD)
            .enable_push(false)
            // None before the server has said how many there may be.
            .initial_max_send_streams(0)
            .handshake(stream);
        let (sender, mut connection) = built.await.map_err(|error| io::Error::other(failure_of(error, &meter, 0)))?;
        settled(&mut connection, &meter).await?;
        let task = tokio::task::spawn_local(async move {
            // Its streams are told how it ends.
            let _ = connection.await;
        });
        let common = Rc::clone(common);
        let link = Self { common, sender, meter, task, body_bytes: Cell::default(), completed: Cell::default() };
        Ok((link, opening))
    }

    fn exchange(&self) -> Exchange {
        Exchange {
            sender: self.sender.clone(),
            stage: Stage::Out,
            status: 0,
            head: http::HeaderMap::new(),
            body: Vec::new(),
            body_bytes: 0,
            first_byte: None,
        }
    }

    fn begin(&self, exchange: &mut Exchange, _request: &WireRequest) {
        exchange.stage = Stage::Out;
        exchange.body.clear();
        exchange.body_bytes = 0;
        exchange.first_byte = None;
    }

    fn poll_exchange(
        &self,
        exchange: &mut Exchange,
        cx: &mut Context<'_>,
        request: &WireRequest,
    ) -> Poll<Result<Answer, Failure>> {
        loop {
            match &mut exchange.stage {
                Stage::Out => match self.send(exchange, request) {
                    Ok(answer) => exchange.stage = Stage::Sent(answer),
                    Err(failure) => return Poll::Ready(Err(failure)),
                },
                Stage::Sent(answer) => match ready!(Pin::new(answer).poll(cx)) {
                    Ok(answer) => {
                        let (head, body) = answer.into_parts();
                        exchange.status = head.status.as_u16();
                        exchange.head = head.headers;
                        exchange.stage = Stage::Body(body);
                    }
                    Err(error) => return Poll::Ready(Err(self.fail(error, exchange))),
                },
                Stage::Body(body) => {
                    let piece = match body.poll_data(cx) {
                        Poll::Ready(piece) => piece,
                        Poll::Pending => {
                            exchange.first_byte.get_or_insert_with(|| self.common.route.clock.now());
                            return Poll::Pending;
                        }
                    };
                    match piece {
                        None => return Poll::Ready(Ok(self.answer(exchange))),
                        Some(Err(error)) => return Poll::Ready(Err(self.fail(error, exchange))),
                        Some(Ok(piece)) => {
                            // Cannot fail: no more is given back than came.
                            let _ = body.flow_control().release_capacity(piece.len());
                            exchange.body_bytes += piece.len() as u64;
                            self.body_bytes.set(self.body_bytes.get() + piece.len() as u64);
                            if self.common.keeps_body {
                                let room = (MAX_KEPT_BODY + 1).saturating_sub(exchange.body.len());
                                exchange.body.extend_from_slice(&piece[..piece.len().min(room)]);
                            }
                        }
                    }
                }
            }
        }
    }

    fn body(exchange: &Exchange) -> Body<'_> {
        Body::kept(&exchange.body)
    }

    fn field(exchange: &Exchange, name: &str) -> Option<String> {
        Some(String::from_utf8_lossy(exchange.head.get(name)?.as_bytes()).into_owned())
    }

    fn is_usable(&self) -> bool {
        !self.task.is_finished() && self.takes_more() && self.meter.is_open()
    }

    /// Dropping the exchange resets its stream.
    fn abandon(&self, _exchange: Exchange) {
        self.meter.close(Closing::Abrupt);
    }

    fn take_traffic(&self) -> Traffic {
        let (sent, received) = self.meter.take();
        Traffic { sent, received, body: self.body_bytes.take() }
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.task.abort();
    }
}
