//! Redirects, followed within one exchange: a driver around another one, used only if the plan asks for it.
//!
//! To the worker loop a chain of redirects is one exchange: from the first send to the last byte of the final answer. Its
//! status, body and first byte are those of the final answer; the hops are counted apart. [`location`] says where a redirect
//! leads, [`hop`] what is sent there, [`names`] which address that is, and [`chain`] goes from one to the next.
//!
//! Decisions:
//!
//! - The same origin (scheme, host, port; the host is that of the request's `Host`) is the plan's server: its connection goes
//!   on where it can be used again, else a new one takes its place.
//! - Another origin gets a connection of its own, which is kept for the next exchange unless connections are not to be kept.
//!   Only plain HTTP is spoken there: `https` elsewhere is not followed.
//! - A redirect that cannot be followed, or one too many, is a check failure that says why, whatever its status.
//! - As in the worker loop, a hop that ends unanswered on a reused connection is sent once more on a new one.

mod chain;
mod hop;
mod location;
mod names;

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::TcpStream;

use super::clock::Clock;
use super::driver::raw::{ContinueDriver, RawDriver};
use super::driver::{After, Driver, Failure, Opened};
use crate::model::{Endpoint, Load, Nanos, Reuse};
use crate::scenario::WireRequest;

use chain::{Arrived, FollowConnection, Guest, Party};
use location::{Origin, Scheme};
pub(super) use names::Names;

/// Connections to origins that are not the plan's.
type Guests = ContinueDriver<TcpStream>;

/// Opens connections whose exchanges follow redirects.
pub(super) struct FollowDriver<D>(Rc<Shared<D>>);

struct Shared<D> {
    home: D,
    /// The redirects that are followed in one exchange.
    most: u32,
    scheme: Scheme,
    reuse: Reuse,
    connect_timeout: Duration,
    request_timeout: Nanos,
    clock: Clock,
    names: Rc<Names>,
    guests: RefCell<HashMap<SocketAddr, Rc<Guests>>>,
}

impl<D: Driver> FollowDriver<D> {
    /// Around `home`, which opens connections to the plan's server, by TLS or not.
    pub(super) fn new(home: D, is_secured: bool, load: &Load, names: &Rc<Names>, clock: Clock) -> Self {
        Self(Rc::new(Shared {
            home,
            most: load.redirects,
            scheme: if is_secured { Scheme::Https } else { Scheme::Http },
            reuse: load.reuse,
            connect_timeout: load.connect_timeout.into(),
            request_timeout: load.request_timeout,
            clock,
            names: Rc::clone(names),
            guests: RefCell::default(),
        }))
    }
}

impl<D: Driver> Driver for FollowDriver<D> {
    type Connection = FollowConnection<D>;

    async fn connect(&self) -> io::Result<Opened<FollowConnection<D>>> {
        let Opened { connection, opening } = self.0.home.connect().await?;
        Ok(Opened { connection: FollowConnection::new(Rc::clone(&self.0), connection), opening })
    }
}

impl<D: Driver> Shared<D> {
    async fn open_home(self: Rc<Self>) -> Result<Arrived<D>, Failure> {
        let opened = self.in_time(self.home.connect()).await?;
        Ok(Opened { connection: Party::Home(opened.connection), opening: opened.opening })
    }

    async fn open_guest(self: Rc<Self>, origin: Origin, request: WireRequest) -> Result<Arrived<D>, Failure> {
        let opened = self.in_time(self.connect_guest(&origin, &request)).await?;
        let guest = Box::new(Guest { origin, connection: opened.connection, after: After::Open });
        Ok(Opened { connection: Party::Guest(guest), opening: opened.opening })
    }

    /// Tries the origin's addresses in turn.
    async fn connect_guest(
        &self,
        origin: &Origin,
        request: &WireRequest,
    ) -> io::Result<Opened<<Guests as Driver>::Connection>> {
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in self.names.resolve(origin).await? {
            let driver = {
                let mut guests = self.guests.borrow_mut();
                let new = || {
                    let raw = RawDriver::new(Endpoint::Tcp(address), request, self.reuse, self.clock);
                    Rc::new(ContinueDriver::new(raw, self.request_timeout))
                };
                Rc::clone(guests.entry(address).or_insert_with(new))
            };
            match driver.connect().await {
                Ok(opened) => return Ok(opened),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    async fn in_time<T>(&self, opening: impl Future<Output = io::Result<T>>) -> Result<T, Failure> {
        match tokio::time::timeout(self.connect_timeout, opening).await {
            Ok(opened) => opened.map_err(Failure::to_connect),
            Err(_) => Err(Failure::ConnectTimeout(self.connect_timeout)),
        }
    }
}
