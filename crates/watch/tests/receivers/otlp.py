"""Reads what a collector was sent, and judges it by the official messages of OTLP.

On standard input: a line of JSON for each request, with `path` and `body`. Prints what the messages hold.
"""

import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def in_base64(value):
    """The JSON of OTLP has identifiers in hexadecimal, that of protobuf has all bytes in base64."""
    if isinstance(value, list):
        return [in_base64(item) for item in value]
    if isinstance(value, dict):
        ids = ("traceId", "spanId", "parentSpanId")
        return {
            name: base64.b64encode(bytes.fromhex(item)).decode() if name in ids else in_base64(item)
            for name, item in value.items()
        }
    return value


held = {"metrics": [], "spans": [], "resources": []}
for line in sys.stdin:
    request = json.loads(line)
    body = json.dumps(in_base64(json.loads(request["body"])))
    match request["path"]:
        case "/v1/metrics":
            message = json_format.Parse(body, ExportMetricsServiceRequest())
            for resource in message.resource_metrics:
                held["resources"].append({each.key: each.value.string_value for each in resource.resource.attributes})
                for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                    points = getattr(metric, metric.WhichOneof("data")).data_points
                    assert all(point.time_unix_nano > 0 for point in points), metric.name
                    if metric.WhichOneof("data") == "sum":
                        assert metric.sum.is_monotonic and metric.sum.aggregation_temporality == 2, metric.name
                        assert all(0 < point.start_time_unix_nano <= point.time_unix_nano for point in points), metric.name
                    held["metrics"].append([metric.name, metric.WhichOneof("data"), len(points)])
        case "/v1/traces":
            message = json_format.Parse(body, ExportTraceServiceRequest())
            for each in message.resource_spans:
                held["resources"].append({said.key: said.value.string_value for said in each.resource.attributes})
            spans = [span for each in message.resource_spans for scope in each.scope_spans for span in scope.spans]
            for span in spans:
                assert len(span.trace_id) == 16 and any(span.trace_id) and len(span.span_id) == 8 and any(span.span_id)
                assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
                assert not span.parent_span_id or any(
                    other.span_id == span.parent_span_id and other.trace_id == span.trace_id for other in spans
                )
                held["spans"].append(span.name)
        case path:
            sys.exit(f"no collector listens at {path}")
print(json.dumps(held))
