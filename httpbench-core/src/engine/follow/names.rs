//! Addresses of the hosts that redirects lead to: each is asked for once per thread, however many connections want it.
//!
//! Failures are remembered too, so that a name that does not exist is no flood of queries. The plan's own servers are
//! resolved by whoever makes the plan.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use tokio::sync::OnceCell;

use super::location::Origin;

/// The most hosts that are remembered: a server that makes up names does not make the engine grow.
const MOST_HOSTS: usize = 64;

type Resolved = Rc<OnceCell<Result<Vec<SocketAddr>, String>>>;

/// What one thread knows.
#[derive(Debug, Default)]
pub(in crate::engine) struct Names(RefCell<HashMap<(String, u16), Resolved>>);

impl Names {
    /// The addresses of an origin, the one to be tried first in front.
    pub(super) async fn resolve(&self, origin: &Origin) -> io::Result<Vec<SocketAddr>> {
        let (host, port) = (origin.host.as_str(), origin.port);
        if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let known = {
            let mut names = self.0.borrow_mut();
            if names.len() >= MOST_HOSTS && !names.contains_key(&(host.to_owned(), port)) {
                return Err(io::Error::other(format!("redirects lead to more than {MOST_HOSTS} hosts")));
            }
            Rc::clone(names.entry((host.to_owned(), port)).or_default())
        };
        let resolved = known.get_or_init(|| async {
            match tokio::net::lookup_host((host, port)).await.map(Iterator::collect::<Vec<_>>) {
                Ok(addresses) if addresses.is_empty() => Err(format!("`{host}` has no address")),
                Ok(addresses) => Ok(addresses),
                Err(error) => Err(format!("`{host}` could not be resolved: {error}")),
            }
        });
        resolved.await.clone().map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::super::location::Scheme;
    use super::*;

    #[tokio::test]
    async fn each_host_is_resolved_once_and_addresses_need_no_resolving() {
        let names = Names::default();
        let origin = |text| Origin::parse(Scheme::Http, text).expect("an origin");
        let found = names.resolve(&origin("localhost:81")).await.expect("it exists");
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 81), "{found:?}");
        let wrong = vec![SocketAddr::from(([127, 0, 0, 9], 82))];
        let known = Rc::new(OnceCell::new_with(Some(Ok(wrong.clone()))));
        names.0.borrow_mut().insert(("localhost".to_owned(), 82), known);
        assert_eq!(names.resolve(&origin("localhost:82")).await.expect("known"), wrong);
        assert_eq!(names.resolve(&origin("[::1]:83")).await.expect("an address"), ["[::1]:83".parse().expect("one")]);
        assert_eq!(names.0.borrow().len(), 2);
    }

    #[tokio::test]
    async fn made_up_hosts_end_at_the_limit() {
        let names = Names::default();
        let origin = |host: usize| Origin { scheme: Scheme::Http, host: format!("h{host}"), port: 80 };
        for host in 0..MOST_HOSTS {
            let known = Rc::new(OnceCell::new_with(Some(Err("made up".to_owned()))));
            names.0.borrow_mut().insert((format!("h{host}"), 80), known);
        }
        assert_eq!(names.resolve(&origin(0)).await.expect_err("remembered").to_string(), "made up");
        let error = names.resolve(&origin(MOST_HOSTS)).await.expect_err("too many");
        assert_eq!(error.to_string(), "redirects lead to more than 64 hosts");
    }
}
