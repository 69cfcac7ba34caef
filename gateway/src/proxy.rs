//! Between the order's program and the gateway: adds the token, which the program never sees, and asks again where the gateway was
//! away for a moment.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use code_commit_llm::http::{Head, Post, Stopwatch};
use code_commit_llm::{Blind, Secret};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};

use crate::client::{Client, PATIENCE, bearer};
use crate::relay::{Piece, Relay, response};
use crate::serve::refuse;
use crate::store::secret;
use crate::tls::Doors;
use crate::wire::AWAY;

/// A prompt may hold a whole code base.
const LARGEST_BODY: usize = 64 << 20;
const PAUSE: Duration = Duration::from_millis(500);

/// Why an attempt ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    None,
    /// By the engine, or by a person.
    Stopped,
    /// Its token is void.
    Void,
}

/// What all requests of the program share.
#[derive(Debug)]
struct Proxy {
    client: Arc<Client>,
    token: Secret,
    /// Others on this machine reach the port, too, and do not know it.
    prefix: String,
    interrupt: watch::Sender<Interrupt>,
}

/// Serves the order's program on loopback, as long as the runtime lives; the address for it.
pub(crate) async fn start(
    client: Arc<Client>,
    token: &str,
    interrupt: watch::Sender<Interrupt>,
) -> anyhow::Result<String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let prefix = format!("/{}", secret()?);
    let address = format!("http://{}{prefix}", listener.local_addr()?);
    let listener = Doors::new(listener, None);
    let token = bearer(&Secret::new(token));
    let proxy = Arc::new(Proxy {
        client,
        token,
        prefix,
        interrupt,
    });
    let router = Router::new().fallback(pass).with_state(proxy);
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(address)
}

async fn pass(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let target = head
        .uri
        .path_and_query()
        .and_then(|all| all.as_str().strip_prefix(&proxy.prefix));
    let (Some(target), Ok(body)) = (target, to_bytes(body, LARGEST_BODY).await) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let post = Post {
        url: proxy.client.base.join(&format!("/m{target}")),
        headers: vec![("content-type", "application/json".to_owned())],
        key: Some(("authorization", proxy.token.clone())),
        body: body.into(),
    };
    let (begun, head) = oneshot::channel();
    let (relay, pieces) = mpsc::unbounded_channel();
    let asked = Arc::clone(&proxy);
    tokio::task::spawn_blocking(move || asked.ask(&post, begun, &relay));
    let Ok(head) = head.await else {
        return refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "the gateway cannot be reached",
        );
    };
    if head.status == StatusCode::GONE.as_u16() {
        proxy.interrupt.send_replace(Interrupt::Void);
    }
    response(&head, pieces)
}

impl Proxy {
    /// Asks while the gateway is away, and passes the answer on as it comes: the program takes silence for a lost call. If it breaks
    /// off, the program asks again, and what was paid for is kept.
    fn ask(&self, post: &Post, begun: oneshot::Sender<Head>, relay: &Relay) {
        let clock = Stopwatch::start();
        let mut exchange = loop {
            match self.client.agent.send(post.clone(), None, &mut Blind) {
                Ok(exchange) if exchange.head.header(AWAY).is_none() => break exchange,
                _ if clock.elapsed() > PATIENCE || *self.interrupt.borrow() != Interrupt::None => {
                    return;
                }
                _ => std::thread::sleep(PAUSE),
            }
        };
        // The program may be gone, which ends this at its next piece.
        let _ = begun.send(exchange.head.clone());
        loop {
            let piece = match exchange.next(None, &mut Blind) {
                Ok(Some(bytes)) => Piece::Bytes(bytes.into()),
                Ok(None) => return,
                Err(_) => Piece::Cut,
            };
            let is_cut = matches!(piece, Piece::Cut);
            if relay.send(piece).is_err() || is_cut {
                return;
            }
        }
    }
}
