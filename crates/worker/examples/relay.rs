//! The minimum that a proxy must do: copies bytes between clients and a server.
//!
//! `relay LISTEN SERVER`: one worker, one server connection per client, no protocol. The cost of a
//! request here is the lower bound for everything built on this crate; run it under `strace -c -f`
//! to count the system calls.

use std::sync::Arc;

use ballast_net::{Address, ConnectOptions, ListenOptions, listen};
use ballast_worker::{Acceptor, Buffer, Stream, block_on, spawn_local};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut address = || {
        let text = arguments.next().expect("usage: relay LISTEN SERVER");
        Address::Ip(text.parse().expect("an address and port"))
    };
    let (from, to) = (address(), address());
    block_on(serve(from, to)).expect("an executor");
}

async fn serve(from: Address, to: Address) {
    let bound = listen(&from, &ListenOptions::default()).expect("the listening address");
    let acceptor = Acceptor::new(Arc::new(bound.fd)).expect("a watch");
    let mut batch = Vec::new();
    loop {
        acceptor
            .accept_batch(64, &mut batch)
            .await
            .expect("connections");
        for accepted in batch.drain(..) {
            let to = to.clone();
            spawn_local(async move {
                let Ok((client, _)) = accepted.into_stream() else {
                    return;
                };
                let Ok(server) = Stream::connect(&to, &ConnectOptions::default()).await else {
                    return;
                };
                let _ = relay(&client, &server).await;
            });
        }
    }
}

async fn relay(client: &Stream, server: &Stream) -> std::io::Result<()> {
    loop {
        for (from, to) in [(client, server), (server, client)] {
            from.readable().await?;
            let mut buffer = Buffer::take();
            match from.try_read(buffer.spare_mut())? {
                0 => return Ok(()),
                n => buffer.advance(n),
            }
            to.write_all(buffer.filled()).await?;
        }
    }
}
