"""The guide's class of e-commerce tests."""

from __future__ import annotations

import pytest

from mcproof import App, ToolError

from .conftest import Serve


class TestOrderWorkflow:
    @pytest.fixture
    async def ecommerce_server(self, serve: Serve) -> App:
        return serve("ecommerce")

    @pytest.mark.asyncio
    async def test_successful_order_flow(self, ecommerce_server: App) -> None:
        async with ecommerce_server.test_client() as client:
            inventory = await client.call_tool("check_inventory", product_id="PROD-123")
            assert inventory.content[0].data["available"] == 10

            order = await client.call_tool("create_order", product_id="PROD-123", quantity=2)
            order_data = order.content[0].data
            assert order_data["status"] == "pending"
            assert order_data["quantity"] == 2

            payment = await client.call_tool("process_payment", order_id=order_data["id"], amount=99.99)
            assert payment.content[0].data["status"] == "success"

            final_inventory = await client.call_tool("check_inventory", product_id="PROD-123")
            assert final_inventory.content[0].data["available"] == 8

    @pytest.mark.asyncio
    async def test_too_large_an_order_is_refused(self, ecommerce_server: App) -> None:
        async with ecommerce_server.test_client() as client:
            with pytest.raises(ToolError, match="Insufficient inventory"):
                await client.call_tool("create_order", product_id="PROD-123", quantity=999)
