"""Reads OTLP JSON from standard input by the official protobuf JSON mapping and prints each span: name, parent, attributes.

The JSON form of OTLP differs from the mapping in one point: identifiers are hexadecimal, not base64. Unknown fields are errors.
"""

import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.trace.v1 import trace_pb2

document = json.load(sys.stdin)
for resource in document["resourceSpans"]:
    for scope in resource["scopeSpans"]:
        for span in scope["spans"]:
            for key in ("traceId", "spanId", "parentSpanId"):
                span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
data = json_format.ParseDict(document, trace_pb2.TracesData())
spans = [span for resource in data.resource_spans for scope in resource.scope_spans for span in scope.spans]
names = {span.span_id: span.name for span in spans}
for span in spans:
    assert len(span.trace_id) == 16 and len(span.span_id) == 8, span
    assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano, span
    attributes = {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in span.attributes}
    plain = {key: value for key, value in attributes.items() if isinstance(value, (str, int, float))}
    told = {"name": span.name, "parent": names.get(span.parent_span_id), "status": span.status.code, "attributes": plain}
    print(json.dumps(told, sort_keys=True))
