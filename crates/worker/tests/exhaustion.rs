//! Accepting without free descriptors: reported once, pauses without spinning, continues. A process
//! of its own, because the limit applies to the whole process.

use std::fs::File;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_net::{
    Address, ErrorClass, ListenOptions, Resource, ResourceLimit, limit, listen, set_limit,
};
use ballast_worker::{AcceptError, Acceptor, block_on, io_counts, timeout};

const HANG: Duration = Duration::from_secs(10);

fn main() {
    let hard = limit(Resource::OpenFiles).hard;
    set_limit(
        Resource::OpenFiles,
        ResourceLimit {
            soft: Some(64),
            hard,
        },
    )
    .expect("setrlimit");
    block_on(run()).expect("executor");
    println!("exhaustion: ok");
}

async fn run() {
    let any = Address::Ip("127.0.0.1:0".parse().expect("an address"));
    let bound = listen(&any, &ListenOptions::default()).expect("listen");
    let acceptor = Acceptor::new(Arc::new(bound.fd)).expect("watch");
    let client = TcpStream::connect(acceptor.address().ip().expect("ip")).expect("connect");
    let mut hoard: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();

    let mut accepted = Vec::new();
    let start = Instant::now();
    let first = timeout(HANG, acceptor.accept_batch(8, &mut accepted))
        .await
        .expect("in time");
    let Err(AcceptError::Exhausted(error)) = first else {
        unreachable!("no descriptor was left: {first:?}");
    };
    assert_eq!(error.kind(), ErrorClass::Descriptors);
    // The next attempt pauses first, and asks the kernel once in that time.
    let before = io_counts().accepts_in_vain;
    let again = timeout(HANG, acceptor.accept_batch(8, &mut accepted))
        .await
        .expect("in time");
    assert!(matches!(again, Err(AcceptError::Exhausted(_))), "{again:?}");
    assert!(start.elapsed() >= Duration::from_millis(100));
    assert_eq!(io_counts().accepts_in_vain - before, 1);

    hoard.truncate(hoard.len() / 2);
    let taken = timeout(HANG, acceptor.accept_batch(8, &mut accepted))
        .await
        .expect("in time");
    assert_eq!(taken.expect("accepted"), 1);
    assert_eq!(accepted[0].peer.ip(), client.local_addr().ok());
}
