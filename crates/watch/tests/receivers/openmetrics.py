"""Reads the text of OpenMetrics on standard input, as strictly as its own parser, and prints its families and their types."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

families = list(text_string_to_metric_families(sys.stdin.read()))
print(json.dumps({family.name: [family.type, len(family.samples)] for family in families}))
