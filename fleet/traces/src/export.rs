//! How spans reach the collector: with the product's HTTP library, which blocks the exporter's own thread and nobody else.

use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

/// A collector that does not answer for this long is not there.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Http(ureq::Agent);

impl Http {
    pub(crate) fn new() -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false);
        Self(config.build().into())
    }
}

#[async_trait::async_trait]
impl HttpClient for Http {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let response = self.0.run(Request::from_parts(head, body.to_vec()))?;
        let (head, mut body) = response.into_parts();
        Ok(Response::from_parts(head, body.read_to_vec()?.into()))
    }
}
