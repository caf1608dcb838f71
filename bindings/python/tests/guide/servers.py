"""The servers that the first guide's tests talk to: FastMCP, each made by a function, so that every session has a fresh one."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from datetime import datetime
from typing import Any, Dict

from fastmcp import FastMCP
from fastmcp.tools import ToolResult


def calculator() -> FastMCP:
    server = FastMCP("test-server")

    @server.tool
    async def calculate(a: int, b: int) -> str:
        return f"Result: {a + b}"

    return server


def pipeline() -> FastMCP:
    """Three tools that hand on what they made; ids travel in the results' metadata."""
    server = FastMCP("pipeline")
    fetched: Dict[str, str] = {}
    processed: Dict[str, Dict[str, str]] = {}

    @server.tool
    async def fetch_data(source: str) -> str:
        data_id = f"{source}-{len(fetched) + 1}"
        fetched[data_id] = f"rows of {source}"
        return data_id

    @server.tool
    async def process(data_id: str, operation: str) -> ToolResult:
        process_id = str(uuid.uuid4())
        processed[process_id] = {"data_id": data_id, "rows": fetched[data_id], "operation": operation}
        return ToolResult(content=f"{operation} of {data_id}", meta={"process_id": process_id})

    @server.tool
    async def validate(process_id: str) -> ToolResult:
        step = processed.get(process_id, {})
        preserved = step.get("data_id") in fetched
        return ToolResult(
            content=f"{step.get('operation')} checked",
            meta={"status": "success" if step else "unknown", "context_preserved": preserved},
        )

    return server


def slow() -> FastMCP:
    server = FastMCP("slow")
    numbers = itertools.count(1)

    @server.tool
    async def long_operation(id: int) -> ToolResult:
        operation = next(numbers)
        # The later a call came, the sooner it is answered: answers cross on the wire.
        await asyncio.sleep(0.05 / operation)
        return ToolResult(content=f"Complete: {id}", meta={"operation_id": f"op-{operation}"})

    return server


def remembering() -> FastMCP:
    server = FastMCP("remembering")
    context: Dict[str, str] = {}

    @server.tool
    async def set_context(key: str, value: str) -> str:
        context[key] = value
        return "kept"

    @server.tool
    async def get_context(key: str) -> str:
        return context[key]

    return server


def numbered(name: str) -> FastMCP:
    server = FastMCP(name)

    @server.tool(name=f"{name}-tool")
    async def tool() -> str:
        return f"this is {name}"

    return server


def ecommerce() -> FastMCP:
    server = FastMCP("ecommerce-test")
    orders: Dict[str, Dict[str, Any]] = {}
    stock = {"PROD-123": 10}

    @server.tool
    async def check_inventory(product_id: str) -> Dict[str, Any]:
        return {"available": stock.get(product_id, 0), "reserved": 0}

    @server.tool
    async def create_order(product_id: str, quantity: int) -> Dict[str, Any]:
        if stock.get(product_id, 0) < quantity:
            raise ValueError("Insufficient inventory")
        stock[product_id] -= quantity
        order = {
            "id": f"ORD-{len(orders) + 1}",
            "product_id": product_id,
            "quantity": quantity,
            "status": "pending",
            "created_at": datetime.now().isoformat(),
        }
        orders[str(order["id"])] = order
        return order

    @server.tool
    async def process_payment(order_id: str, amount: float) -> Dict[str, Any]:
        if order_id not in orders:
            raise ValueError("Order not found")
        orders[order_id].update(status="paid", payment={"amount": amount, "processed_at": datetime.now().isoformat()})
        return {"status": "success", "transaction_id": "TXN-12345"}

    return server


def data_source() -> FastMCP:
    server = FastMCP("data-source")

    @server.tool
    async def fetch_dataset(dataset_id: str) -> Dict[str, Any]:
        return {"id": dataset_id, "records": 1000, "format": "parquet", "location": f"s3://test-bucket/{dataset_id}"}

    return server


def ml_analysis() -> FastMCP:
    server = FastMCP("ml-analysis")
    models = {"gradient_boost": 0.94}

    @server.tool
    async def run_analysis(dataset_location: str, model: str) -> Dict[str, Any]:
        if model not in models:
            raise ValueError(f"Model not found: {model}")
        await asyncio.sleep(0.05)
        return {"model": model, "accuracy": models[model], "predictions": 1000, "confidence_intervals": [0.92, 0.96]}

    return server


def reporting() -> FastMCP:
    server = FastMCP("reporting")

    @server.tool
    async def generate_report(analysis_results: Dict[str, Any]) -> str:
        return f"Analysis complete: {analysis_results['accuracy']:.2%} accuracy"

    return server
