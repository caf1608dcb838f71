// The tests of the guide and what else it says of assertions, over every transport, on one server each.
import { describeTransport, startHttpServer, startSseServer, startStdioServer } from 'mcproof/vitest';
import { expect, it } from 'vitest';

const script = (name: string) => new URL(`../../dist/${name}.js`, import.meta.url).pathname;

describeTransport(
	'tracker',
	{
		stdio: () => startStdioServer(script('server-stdio')),
		sse: () => startSseServer(script('server-sse')),
		http: () => startHttpServer(script('server-http')),
	},
	(session) => {
		it('completes the initialize handshake', async () => {
			const { client } = session;
			// If beforeEach succeeded, initialize already completed.
			// Verify the server info is populated.
			const info = client.getServerVersion();
			expect(info).toBeDefined();
			expect(info?.name).toBeTruthy();
		});

		it('returns a non-empty tools list', async () => {
			const { client } = session;
			const { tools } = await client.listTools();

			expect(Array.isArray(tools)).toBe(true);
			expect(tools.length).toBeGreaterThan(0);
		});

		it('tools have required schema fields', async () => {
			const { client } = session;
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
			const { client } = session;
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
			const { client } = session;
			const result = await client.callTool({
				name: 'echo',
				arguments: {}, // 'message' is required
			});

			expect(result.isError).toBe(true);
		});

		it('returns an error response for an unknown tool name', async () => {
			const { client } = session;
			await expect(
				client.callTool({ name: 'nonexistent_tool_xyz', arguments: {} })
			).rejects.toThrow(); // protocol-level error, not isError:true
		});

		it('negotiate MCP protocol version 2024-11-05 or later', async () => {
			const { client } = session;
			const version = client.getServerVersion();
			expect(version).toBeDefined();

			const caps = client.getServerCapabilities();
			expect(caps?.tools).toBeDefined(); // server must advertise tool support
		});

		it('exposes the expected tool set', async () => {
			const { client } = session;
			const { tools } = await client.listTools();
			const names = tools.map(t => t.name).sort();

			expect(names).toEqual(['create_issue', 'echo', 'get_issue', 'list_issues']);
		});

		it('create_issue has required project and title arguments', async () => {
			const { client } = session;
			const { tools } = await client.listTools();
			const createIssue = tools.find(t => t.name === 'create_issue');

			expect(createIssue?.inputSchema.required).toContain('project');
			expect(createIssue?.inputSchema.required).toContain('title');
			expect(createIssue?.inputSchema.properties?.project?.type).toBe('string');
		});

		it('list_issues returns JSON-parseable content', async () => {
			const { client } = session;
			const result = await client.callTool({
				name: 'list_issues',
				arguments: { project: 'test-project', limit: 10 },
			});

			expect(result.isError).toBeFalsy();

			const text = (result.content[0] as { type: 'text'; text: string }).text;
			let parsed: unknown;
			expect(() => { parsed = JSON.parse(text); }).not.toThrow();
			expect(Array.isArray(parsed)).toBe(true);
		});

		it('get_issue with non-existent ID returns isError content', async () => {
			const { client } = session;
			// Tool caught the error and returned it as content
			const result = await client.callTool({
				name: 'get_issue',
				arguments: { id: 'does-not-exist-99999' },
			});
			expect(result.isError).toBe(true);
			expect((result.content[0] as any).text).toMatch(/not found/i);
		});

		it('passing wrong argument type throws an McpError', async () => {
			const { client } = session;
			// Schema validation at the protocol layer — rejects the promise
			await expect(
				client.callTool({
					name: 'get_issue',
					arguments: { id: 12345 }, // should be string, not number
				})
			).rejects.toThrow();
		});
	},
	{ isolation: 'suite' },
);
