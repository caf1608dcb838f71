"""The guide's class of data analysis tests, over three servers at once, with its error case."""

from __future__ import annotations

from typing import Tuple

import pytest

from mcproof import App

from .conftest import Serve

Servers = Tuple[App, App, App]


class TestAnalysisPipeline:
    @pytest.fixture
    async def analysis_servers(self, serve: Serve) -> Servers:
        return serve("data_source"), serve("ml_analysis"), serve("reporting")

    @pytest.mark.asyncio
    async def test_distributed_analysis(self, analysis_servers: Servers) -> None:
        data_server, ml_server, report_server = analysis_servers

        async with data_server.test_client() as data_client, \
                ml_server.test_client() as ml_client, \
                report_server.test_client() as report_client:
            dataset = await data_client.call_tool("fetch_dataset", dataset_id="customer-segments-2024")
            dataset_info = dataset.content[0].data

            analysis = await ml_client.call_tool(
                "run_analysis", dataset_location=dataset_info["location"], model="gradient_boost"
            )
            results = analysis.content[0].data

            report = await report_client.call_tool("generate_report", analysis_results=results)

            assert "94.00% accuracy" in report.content[0].text
            assert results["confidence_intervals"] == [0.92, 0.96]

    @pytest.mark.asyncio
    async def test_pipeline_error_handling(self, analysis_servers: Servers) -> None:
        data_server, ml_server, _ = analysis_servers

        async with data_server.test_client() as data_client, \
                ml_server.test_client() as ml_client:
            dataset = await data_client.call_tool("fetch_dataset", dataset_id="invalid-dataset")
            assert dataset.content[0].data["location"].endswith("invalid-dataset")

            with pytest.raises(Exception) as exc_info:
                await ml_client.call_tool(
                    "run_analysis", dataset_location="s3://test-bucket/invalid-dataset", model="unknown_model"
                )
            assert "model not found" in str(exc_info.value).lower()
