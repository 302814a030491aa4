//! One exchange's way from redirect to redirect: which connection carries the next request, and what is left of the last.
//!
//! Invariant: every connection but those that are held has handed its traffic over, and is closed.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use super::hop;
use super::location::{Origin, Place, Scheme};
use super::{Guests, Shared};
use crate::engine::driver::{After, Answer, Body, Connection, Driver, Failure, Hops, Opened, Traffic};
use crate::scenario::WireRequest;

/// Connections to the plan's server and, for a while, to another; see the [module](self).
pub(in crate::engine) struct FollowConnection<D: Driver> {
    shared: Rc<Shared<D>>,
    home: Option<D::Connection>,
    guest: Option<Box<Guest>>,
    chain: Chain,
    /// What the chain waits for before it can go on.
    opening: Option<Opens<D>>,
    hops: Option<Box<Hops>>,
    /// Of connections that are gone.
    traffic: Traffic,
}

type Opens<D> = Pin<Box<dyn Future<Output = Result<Arrived<D>, Failure>>>>;

/// A connection that a hop needed.
pub(super) type Arrived<D> = Opened<Party<D>>;

/// To whom a connection leads.
pub(super) enum Party<D: Driver> {
    Home(D::Connection),
    Guest(Box<Guest>),
}

/// A connection to another origin.
pub(super) struct Guest {
    pub(super) origin: Origin,
    pub(super) connection: <Guests as Driver>::Connection,
    /// What its last answer left of it.
    pub(super) after: After,
}

/// How far one exchange is.
#[derive(Default)]
struct Chain {
    /// The redirects so far.
    followed: u32,
    /// The request that is on its way and where it goes; `None`: the exchange's own.
    hop: Option<Hop>,
    /// Why the answer is wrong although it is complete.
    objection: Option<String>,
}

struct Hop {
    request: WireRequest,
    place: Place,
    at: At,
    connection: Used,
}

/// Whom a hop goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Home,
    Guest,
}

/// Whether a hop's connection has carried another exchange before, so that the server may have closed it since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Used {
    Before,
    Never,
}

impl<D: Driver> Connection for FollowConnection<D> {
    fn begin(&mut self, request: &WireRequest) {
        self.chain = Chain::default();
        self.opening = None;
        if let Some(home) = &mut self.home {
            home.begin(request);
        }
    }

    fn poll_exchange(&mut self, cx: &mut Context<'_>, request: &WireRequest) -> Poll<Result<Answer, Failure>> {
        loop {
            if let Some(opening) = &mut self.opening {
                let opened = ready!(opening.as_mut().poll(cx));
                self.opening = None;
                match opened {
                    Ok(opened) => self.arrive(opened),
                    Err(failure) => return Poll::Ready(Err(self.within_hop(failure))),
                }
            }
            match ready!(self.poll_request(cx, request)) {
                Ok(answer) if !hop::is_redirect(answer.status) => return Poll::Ready(Ok(self.settle(answer))),
                Ok(answer) => {
                    if let Some(last) = self.follow(request, answer) {
                        return Poll::Ready(Ok(last));
                    }
                }
                Err(failure) if self.can_redo(&failure) => self.redo(),
                Err(failure) => return Poll::Ready(Err(self.within_hop(failure))),
            }
        }
    }

    fn body(&self) -> Body<'_> {
        match (self.at(), &self.home, &self.guest) {
            (At::Home, Some(home), _) => home.body(),
            (At::Guest, _, Some(guest)) => guest.connection.body(),
            _ => Body::Whole(&[]),
        }
    }

    fn field(&self, name: &str) -> Option<String> {
        match self.at() {
            At::Home => self.home.as_ref()?.field(name),
            At::Guest => self.guest.as_ref()?.connection.field(name),
        }
    }

    fn objection(&mut self) -> Option<String> {
        self.chain.objection.take()
    }

    fn is_quiet(&mut self) -> bool {
        self.home.as_mut().is_some_and(Connection::is_quiet)
    }

    fn abandon(self) {
        if let Some(home) = self.home {
            home.abandon();
        }
        if let Some(guest) = self.guest {
            guest.connection.abandon();
        }
    }

    fn take_traffic(&mut self) -> Traffic {
        let mut traffic = self.home.as_mut().map(Connection::take_traffic).unwrap_or_default();
        if let Some(guest) = &mut self.guest {
            traffic += guest.connection.take_traffic();
        }
        traffic += std::mem::take(&mut self.traffic);
        traffic
    }

    fn take_hops(&mut self) -> Option<Box<Hops>> {
        self.hops.take()
    }
}

impl<D: Driver> FollowConnection<D> {
    pub(super) fn new(shared: Rc<Shared<D>>, home: D::Connection) -> Self {
        Self {
            shared,
            home: Some(home),
            guest: None,
            chain: Chain::default(),
            opening: None,
            hops: None,
            traffic: Traffic::default(),
        }
    }

    /// Whom the request that is on its way goes to, or went to last.
    fn at(&self) -> At {
        self.chain.hop.as_ref().map_or(At::Home, |hop| hop.at)
    }

    fn poll_request(&mut self, cx: &mut Context<'_>, own: &WireRequest) -> Poll<Result<Answer, Failure>> {
        let (request, at) = self.chain.hop.as_ref().map_or((own, At::Home), |hop| (&hop.request, hop.at));
        match (at, &mut self.home, &mut self.guest) {
            (At::Home, Some(home), _) => home.poll_exchange(cx, request),
            (At::Guest, _, Some(guest)) => guest.connection.poll_exchange(cx, request),
            // Nobody begins an exchange on a connection that ended; if it happened, it would be one that was closed.
            _ => Poll::Ready(Err(Failure::ClosedEarly)),
        }
    }

    /// Goes on after a redirect. Gives back the answer if it is the last one.
    fn follow(&mut self, own: &WireRequest, answer: Answer) -> Option<Answer> {
        let Some(location) = self.field("location") else {
            // Without a `Location` there is nothing to follow: it is an answer like others.
            return Some(self.settle(answer));
        };
        match self.next(own, answer.status, &location) {
            Ok(hop) => {
                self.leave(answer.after);
                self.hops().redirected += 1;
                self.chain.followed += 1;
                self.send(hop);
                None
            }
            Err(objection) => {
                self.chain.objection = Some(objection);
                Some(self.settle(answer))
            }
        }
    }

    /// What is sent after a redirect, or why nothing is.
    fn next(&self, own: &WireRequest, status: u16, location: &str) -> Result<Hop, String> {
        let shown: String = location.chars().take(200).flat_map(char::escape_debug).collect();
        if self.chain.followed == self.shared.most {
            let most = self.shared.most;
            let redirects = if most == 1 { "redirect" } else { "redirects" };
            return Err(format!("more than {most} {redirects}: the last one, status {status}, leads to `{shown}`"));
        }
        let not_followed = |why: &str| format!("status {status}, whose `Location: {shown}` cannot be followed: {why}");
        let home = hop::place_of(own, self.shared.scheme)
            .ok_or_else(|| not_followed("the request itself has no `Host` or target to start from"))?;
        let (request, from) = match &self.chain.hop {
            Some(hop) => (&hop.request, &hop.place),
            None => (own, &home),
        };
        let place = from.resolve(location).map_err(|why| not_followed(&why.to_string()))?;
        let at = if place.origin == home.origin { At::Home } else { At::Guest };
        if at == At::Guest && place.origin.scheme == Scheme::Https {
            return Err(not_followed("another server is followed over plain HTTP only"));
        }
        let request =
            hop::next(request, status, from, &place).ok_or_else(|| not_followed("the request cannot be read"))?;
        Ok(Hop { request, place, at, connection: Used::Before })
    }

    /// Sends a hop's request, on an open connection if there is one.
    fn send(&mut self, mut hop: Hop) {
        let fits = self.guest.as_mut().is_some_and(|guest| {
            guest.origin == hop.place.origin && guest.after == After::Open && guest.connection.is_quiet()
        });
        match (hop.at, &mut self.home, &mut self.guest) {
            (At::Home, Some(home), _) => home.begin(&hop.request),
            (At::Guest, _, Some(guest)) if fits => guest.connection.begin(&hop.request),
            _ => {
                hop.connection = Used::Never;
                self.open(&hop);
            }
        }
        self.chain.hop = Some(hop);
    }

    /// Begins to open a connection for a hop.
    fn open(&mut self, hop: &Hop) {
        let shared = Rc::clone(&self.shared);
        self.opening = Some(match hop.at {
            At::Home => {
                self.drop_home();
                Box::pin(shared.open_home())
            }
            At::Guest => {
                self.drop_guest();
                Box::pin(shared.open_guest(hop.place.origin.clone(), hop.request.clone()))
            }
        });
    }

    /// A connection for the hop is open.
    fn arrive(&mut self, arrived: Arrived<D>) {
        if let Some(opening) = arrived.opening {
            self.hops().openings.push(opening);
        }
        let Some(hop) = &self.chain.hop else { return };
        match arrived.connection {
            Party::Home(mut home) => {
                home.begin(&hop.request);
                self.home = Some(home);
            }
            Party::Guest(mut guest) => {
                guest.connection.begin(&hop.request);
                self.guest = Some(guest);
            }
        }
    }

    fn can_redo(&self, failure: &Failure) -> bool {
        self.chain.hop.as_ref().is_some_and(|hop| hop.connection == Used::Before) && failure.is_unanswered_end()
    }

    fn redo(&mut self) {
        if let Some(mut hop) = self.chain.hop.take() {
            self.hops().redone += 1;
            hop.connection = Used::Never;
            self.open(&hop);
            self.chain.hop = Some(hop);
        }
    }

    /// A failure of a hop says where it happened, and is none of the plan's connection that the worker could redo.
    fn within_hop(&self, failure: Failure) -> Failure {
        match &self.chain.hop {
            Some(hop) => Failure::Redirected { to: hop.place.to_string(), source: Box::new(failure) },
            None => failure,
        }
    }

    /// Lets go of the connection that an answer came on, if the answer ended it.
    fn leave(&mut self, after: After) {
        match (self.at(), after) {
            (_, After::Open) => {}
            (At::Home, _) => self.drop_home(),
            (At::Guest, _) => self.drop_guest(),
        }
    }

    /// The final answer, and what it leaves of the connection to the plan's server.
    fn settle(&mut self, answer: Answer) -> Answer {
        if self.at() == At::Home {
            return answer;
        }
        if let Some(guest) = &mut self.guest {
            // It stays in any case, for its body to be looked at.
            guest.after = answer.after;
        }
        let after = if self.home.is_some() { After::Open } else { After::Ended };
        Answer { after, ..answer }
    }

    fn drop_home(&mut self) {
        if let Some(mut home) = self.home.take() {
            self.traffic += home.take_traffic();
            home.abandon();
        }
    }

    fn drop_guest(&mut self) {
        if let Some(mut guest) = self.guest.take() {
            self.traffic += guest.connection.take_traffic();
            guest.connection.abandon();
        }
    }

    fn hops(&mut self) -> &mut Hops {
        self.hops.get_or_insert_default()
    }
}
