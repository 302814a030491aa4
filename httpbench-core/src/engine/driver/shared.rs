//! Connections that carry several exchanges at once: each of a connection's slots holds a seat on it.
//!
//! How exchanges share a connection is its [`Link`]'s affair: HTTP/1.1 pipelining or the streams of HTTP/2. A slot that needs
//! a connection opens one, as long as there are fewer than the plan says, and takes a seat on the emptiest otherwise; those
//! who come while it is being opened wait for the one who opens it. A connection without a seat taken is closed.
//!
//! Leaves timing, recording and redo to the [worker](crate::engine::worker). Invariants: there are never more usable
//! connections than the plan says, and none has more seats than it says; a connection is counted once, by whoever opened it.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::sync::OnceCell;

use super::{Answer, Body, Connection, Driver, Failure, Opened, Opening, Traffic};
use crate::scenario::WireRequest;

/// One connection on which several exchanges can be outstanding.
pub(in crate::engine) trait Link: Sized + 'static {
    /// What all connections to a server have in common.
    type Common: 'static;
    /// One exchange, from its request to the end of its answer, and then the next.
    type Exchange: 'static;

    /// Opens one, ready for its first exchange.
    async fn open(common: &Rc<Self::Common>) -> io::Result<(Self, Opening)>;

    /// What a seat holds before its first exchange.
    fn exchange(&self) -> Self::Exchange;

    /// As [`Connection::begin`].
    fn begin(&self, exchange: &mut Self::Exchange, request: &WireRequest);

    /// As [`Connection::poll_exchange`].
    fn poll_exchange(
        &self,
        exchange: &mut Self::Exchange,
        cx: &mut Context<'_>,
        request: &WireRequest,
    ) -> Poll<Result<Answer, Failure>>;

    /// As [`Connection::body`].
    fn body(exchange: &Self::Exchange) -> Body<'_>;

    /// As [`Connection::field`].
    fn field(exchange: &Self::Exchange, name: &str) -> Option<String>;

    /// Whether another exchange may be begun on it.
    fn is_usable(&self) -> bool;

    /// The exchange is given up, or its answer was the last that the connection should carry.
    fn abandon(&self, exchange: Self::Exchange);

    /// As [`Connection::take_traffic`], of all exchanges together.
    fn take_traffic(&self) -> Traffic;
}

/// Opens shared connections to one server, for one worker and one request.
pub(in crate::engine) struct SharedDriver<L: Link> {
    common: Rc<L::Common>,
    /// How many connections there are to be.
    connections: u64,
    /// Seats on each.
    depth: u32,
    berths: Rc<RefCell<Vec<Rc<Berth<L>>>>>,
}

/// A connection, or the place where one is being opened.
struct Berth<L> {
    link: OnceCell<L>,
    taken: Cell<u32>,
}

impl<L: Link> Berth<L> {
    /// One that is still being opened counts as usable.
    fn is_usable(&self) -> bool {
        self.link.get().is_none_or(L::is_usable)
    }
}

impl<L: Link> SharedDriver<L> {
    /// For so many connections of so many seats each, both at least one.
    pub(in crate::engine) fn new(common: L::Common, connections: u64, depth: u32) -> Self {
        Self { common: Rc::new(common), connections, depth, berths: Rc::default() }
    }

    /// A seat where there is room for one.
    fn seat(&self) -> Seat<L> {
        let mut berths = self.berths.borrow_mut();
        let usable = || berths.iter().filter(|berth| berth.is_usable());
        let free = || usable().filter(|berth| berth.taken.get() < self.depth);
        let berth = if (usable().count() as u64) < self.connections {
            None
        } else {
            free().min_by_key(|berth| berth.taken.get())
        };
        let berth = match berth {
            Some(berth) => Rc::clone(berth),
            None => {
                let new = Rc::new(Berth { link: OnceCell::new(), taken: Cell::new(0) });
                berths.push(Rc::clone(&new));
                new
            }
        };
        berth.taken.set(berth.taken.get() + 1);
        Seat { berth, berths: Rc::clone(&self.berths) }
    }
}

impl<L: Link> Driver for SharedDriver<L> {
    type Connection = SharedConnection<L>;

    async fn connect(&self) -> io::Result<Opened<SharedConnection<L>>> {
        let seat = self.seat();
        let mut opening = None;
        let open = async || {
            let (link, took) = L::open(&self.common).await?;
            opening = Some(took);
            Ok::<_, io::Error>(link)
        };
        // Where opening fails or is given up, the next of those who wait tries for itself.
        let exchange = seat.berth.link.get_or_try_init(open).await?.exchange();
        Ok(Opened { connection: SharedConnection { exchange, seat }, opening })
    }
}

/// The right to one exchange at a time on a connection.
struct Seat<L: Link> {
    berth: Rc<Berth<L>>,
    berths: Rc<RefCell<Vec<Rc<Berth<L>>>>>,
}

impl<L: Link> Drop for Seat<L> {
    fn drop(&mut self) {
        self.berth.taken.set(self.berth.taken.get() - 1);
        if self.berth.taken.get() == 0 {
            self.berths.borrow_mut().retain(|berth| !Rc::ptr_eq(berth, &self.berth));
        }
    }
}

/// A slot's share of a connection.
pub(in crate::engine) struct SharedConnection<L: Link> {
    exchange: L::Exchange,
    seat: Seat<L>,
}

impl<L: Link> SharedConnection<L> {
    fn link(&self) -> &L {
        link(&self.seat)
    }
}

fn link<L: Link>(seat: &Seat<L>) -> &L {
    seat.berth.link.get().expect("opened before the connection was handed out")
}

impl<L: Link> Connection for SharedConnection<L> {
    fn begin(&mut self, request: &WireRequest) {
        link(&self.seat).begin(&mut self.exchange, request);
    }

    fn poll_exchange(&mut self, cx: &mut Context<'_>, request: &WireRequest) -> Poll<Result<Answer, Failure>> {
        link(&self.seat).poll_exchange(&mut self.exchange, cx, request)
    }

    fn body(&self) -> Body<'_> {
        L::body(&self.exchange)
    }

    fn field(&self, name: &str) -> Option<String> {
        L::field(&self.exchange, name)
    }

    fn is_quiet(&mut self) -> bool {
        self.link().is_usable()
    }

    fn abandon(self) {
        let Self { exchange, seat } = self;
        link(&seat).abandon(exchange);
    }

    fn take_traffic(&mut self) -> Traffic {
        self.link().take_traffic()
    }
}
