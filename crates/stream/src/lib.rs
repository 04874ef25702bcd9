//! The life of one exchange: route, pick, forward, retry, finish, and its line in the log.
//!
//! [`serve`] carries a client's connection from the moment it was let in to its end. What it
//! needs of its worker is in [`Local`]; what runs is in [`Running`].

mod ending;
mod exchange;
mod http;
mod journal;
mod local;
mod pages;
mod persistence;
mod session;
mod tcp;
mod tunnel;
mod view;

use std::rc::Rc;

use ballast_listen::Arrival;

pub use ending::{Cause, Ending, Phase};
pub use local::{Local, Memory, Running};

/// Carries a client's connection to its end.
pub async fn serve(local: &Rc<Local>, arrival: Arrival) {
    if arrival.frontend.is_http() {
        http::serve(local, arrival).await;
    } else {
        tcp::serve(local, arrival).await;
    }
}
