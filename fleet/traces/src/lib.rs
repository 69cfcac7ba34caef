//! Logs as JSON lines on standard error, and traces to a collector of OpenTelemetry.
//!
//! Spans are `tracing`'s. One of another process, which may have ended long ago, is named by its `traceparent` as W3C Trace Context
//! has it: [`carry`] writes that, and [`follow`] reads it. It is text from elsewhere: one that is none is ignored.
//!
//! It decides nothing: without a collector there are no traces, and all else is the same.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context as _;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Level, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// The name of the header, and of the column.
pub const TRACEPARENT: &str = "traceparent";
/// Either says where the collector is.
const COLLECTOR: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];
/// Only the fleet's own spans: those of its libraries are about connections.
const OURS: &str = "code_commit";

/// A collector that does not answer for this long is not there.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a program tells about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// Logs, and traces if there is a collector.
    Everything,
    /// Traces if there is a collector; the program prints for people.
    Traces,
}

/// Sends the last spans when dropped.
#[derive(Debug)]
pub struct Traces(Option<SdkTracerProvider>);

impl Traces {
    /// Begins. The collector is where OpenTelemetry's own variables say; without them there is none.
    pub fn begin(program: &'static str, tells: Tells) -> anyhow::Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the exporter reads the others of these variables"
        )]
        let has_collector = COLLECTOR
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|at| !at.is_empty()));
        let provider = if has_collector {
            Some(provider(program)?)
        } else {
            None
        };
        let traces = provider.as_ref().map(|provider| {
            let ours = Targets::new().with_target(OURS, Level::INFO);
            tracing_opentelemetry::layer()
                .with_tracer(provider.tracer(program))
                .with_filter(ours)
        });
        let logs = (tells == Tells::Everything).then(|| {
            tracing_subscriber::fmt::layer()
                .json()
                .with_writer(std::io::stderr)
        });
        let logs = logs.map(|logs| logs.with_filter(LevelFilter::INFO));
        tracing_subscriber::registry()
            .with(traces)
            .with(logs)
            .try_init()
            .context("logs have begun before")?;
        Ok(Self(provider))
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.as_ref().map(SdkTracerProvider::shutdown) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the last traces are lost"
            );
        }
    }
}

fn provider(program: &'static str) -> anyhow::Result<SdkTracerProvider> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Http::new())
        .build();
    let exporter = exporter.context("the collector of traces cannot be used")?;
    // `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` come first.
    let resource =
        Resource::builder().with_attribute(opentelemetry::KeyValue::new("service.name", program));
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource.build())
        .build())
}

/// Makes `span` a child of a span of another process.
pub fn follow(span: &Span, traceparent: Option<&str>) {
    let Some(traceparent) = traceparent else {
        return;
    };
    let carrier = HashMap::from([(TRACEPARENT.to_owned(), traceparent.to_owned())]);
    // Without a collector there is nothing that could have a parent.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&carrier));
}

/// Names `span` for another process; `None` without a collector.
pub fn carry(span: &Span) -> Option<String> {
    let mut carrier = HashMap::new();
    TraceContextPropagator::new().inject_context(&span.context(), &mut carrier);
    carrier.remove(TRACEPARENT)
}

/// Reaches the collector with the product's HTTP library, which blocks the exporter's own thread and nobody else.
#[derive(Debug)]
struct Http(ureq::Agent);

impl Http {
    fn new() -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false);
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
