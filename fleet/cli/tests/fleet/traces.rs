//! Traces of orders, across processes and the queue.

use code_commit_fleet_trial::{Server, collector, until};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use rustix::process::Signal;

use crate::scene::Scene;

#[test]
fn one_trace_leads_from_the_submission_of_an_order_to_its_landing() {
    let Some(mut scene) = Scene::new(2, 0) else {
        return;
    };
    let collector = collector().unwrap();
    scene
        .environment
        .insert("OTEL_EXPORTER_OTLP_ENDPOINT", collector.origin().to_owned());
    scene
        .environment
        .insert("OTEL_BSP_SCHEDULE_DELAY", "100".into());
    scene.gateway.as_mut().unwrap().kill().unwrap();
    scene.start_gateway();
    let orders = scene.submit(0..2, &["--land", "main"]);
    scene.start_worker(1);
    scene.start_land();
    assert_eq!(scene.watch(), 0);

    let whole = || {
        orders
            .iter()
            .map(|&order| trace(&spans(&collector), order))
            .collect::<Option<Vec<_>>>()
    };
    let traces = until("the last spans", whole).unwrap();
    let worker = scene.workers.get_mut(&1).unwrap();
    worker.signal(Signal::TERM).unwrap();
    assert!(worker.wait().unwrap());
    // Each order has a trace of its own, of this shape.
    assert_ne!(traces[0], traces[1]);
}

/// The trace of an order, once its spans have come: each below the one that caused it, wherever that ran.
fn trace(spans: &[Sent], order: i64) -> Option<Vec<u8>> {
    let submit = spans
        .iter()
        .find(|sent| sent.is("code-commit-fleet submit", order))?;
    let below = |service: &str, parent: &Sent| {
        let is_child =
            |sent: &&Sent| sent.span.parent_span_id == parent.span.span_id && sent.name == service;
        let child = spans.iter().find(is_child).cloned()?;
        assert_eq!(child.span.trace_id, parent.span.trace_id);
        assert!(child.span.end_time_unix_nano >= child.span.start_time_unix_nano);
        Some(child)
    };
    let lease = below("code-commit-fleet lease", submit)?;
    let run = below("code-commit-worker run", &lease)?;
    for stage in ["prepare", "program", "push"] {
        below(&format!("code-commit-worker {stage}"), &run)?;
    }
    below("code-commit-fleet result", &run)?;
    below("code-commit-fleet land", submit)?;
    Some(submit.span.trace_id.clone())
}

/// A span as the collector got it.
#[derive(Debug, Clone)]
struct Sent {
    /// Of service and span.
    name: String,
    span: Span,
}

impl Sent {
    fn is(&self, name: &str, order: i64) -> bool {
        let number = Some(Value::IntValue(order));
        let of = |key: &str| {
            self.span
                .attributes
                .iter()
                .find(|attribute| attribute.key == key)
        };
        let value = of("order").and_then(|attribute| attribute.value.clone());
        self.name == name && value.is_some_and(|value| value.value == number)
    }
}

fn spans(collector: &Server) -> Vec<Sent> {
    let mut all = Vec::new();
    for request in collector.requests() {
        assert_eq!(
            request.header("content-type"),
            Some("application/x-protobuf")
        );
        let sent = ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap();
        for of_service in sent.resource_spans {
            let attributes = of_service.resource.unwrap().attributes;
            let service = attributes
                .into_iter()
                .find(|attribute| attribute.key == "service.name")
                .unwrap();
            let service = match service.value.unwrap().value {
                Some(Value::StringValue(name)) => Some(name),
                _ => None,
            };
            let spans = of_service
                .scope_spans
                .into_iter()
                .flat_map(|scope| scope.spans);
            let name = |span: &Span| format!("{} {}", service.as_deref().unwrap(), span.name);
            all.extend(spans.map(|span| Sent {
                name: name(&span),
                span,
            }));
        }
    }
    all
}
