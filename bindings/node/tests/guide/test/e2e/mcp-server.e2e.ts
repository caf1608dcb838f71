// The test file of the guide on end-to-end tests, as it stands there; only its imports name this package.
import { describe, it, expect, beforeEach, afterEach } from 'vitest';
import { startSseServer, startStdioServer } from 'mcproof/vitest';
import type { Client, E2EHandle } from 'mcproof/vitest';

// Path to the built server entry points
const SSE_SERVER  = new URL('../../dist/server-sse.js',  import.meta.url).pathname;
const STDIO_SERVER = new URL('../../dist/server-stdio.js', import.meta.url).pathname;

// Test factory: same suite, different transport
function describeTransport(
	name: string,
	factory: () => Promise<E2EHandle>
) {
	describe(name, () => {
		let handle: E2EHandle;
		let client: Client;

		beforeEach(async () => {
			handle = await factory();
			client = handle.client;
		}, 15_000); // allow up to 15s for server startup

		afterEach(async () => {
			await handle.teardown();
		}, 5_000);

		it('completes the initialize handshake', async () => {
			// If beforeEach succeeded, initialize already completed.
			// Verify the server info is populated.
			const info = client.getServerVersion();
			expect(info).toBeDefined();
			expect(info?.name).toBeTruthy();
		});

		it('returns a non-empty tools list', async () => {
			const { tools } = await client.listTools();

			expect(Array.isArray(tools)).toBe(true);
			expect(tools.length).toBeGreaterThan(0);
		});

		it('tools have required schema fields', async () => {
			const { tools } = await client.listTools();

			for (const tool of tools) {
				expect(typeof tool.name).toBe('string');
				expect(tool.name.length).toBeGreaterThan(0);
				expect(typeof tool.description).toBe('string');
				expect(tool.inputSchema).toBeDefined();
				expect(tool.inputSchema.type).toBe('object');
			}
		});

		it('executes a tool call and returns text content', async () => {
			const result = await client.callTool({
				name: 'echo',
				arguments: { message: 'hello from e2e' },
			});

			expect(result.isError).toBeFalsy();
			expect(result.content).toHaveLength(1);
			expect(result.content[0].type).toBe('text');
			expect((result.content[0] as { type: 'text'; text: string }).text)
				.toContain('hello from e2e');
		});

		it('returns isError for a missing required argument', async () => {
			const result = await client.callTool({
				name: 'echo',
				arguments: {}, // 'message' is required
			});

			expect(result.isError).toBe(true);
		});

		it('returns an error response for an unknown tool name', async () => {
			await expect(
				client.callTool({ name: 'nonexistent_tool_xyz', arguments: {} })
			).rejects.toThrow(); // protocol-level error, not isError:true
		});
	});
}

// Run the full suite against both transports
describeTransport('SSE transport E2E', () =>
	startSseServer(SSE_SERVER, 47821)
);

describeTransport('stdio transport E2E', () =>
	startStdioServer(STDIO_SERVER)
);
