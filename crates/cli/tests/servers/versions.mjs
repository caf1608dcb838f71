// A legacy server over HTTP that is sound but for what it does with versions that do not exist: node versions.mjs PORT 400|404|drop
import http from 'node:http'

const [port, habit] = process.argv.slice(2)
const VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26']
const LOCAL = /^(https?:\/\/)?(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/
const add = {
  name: 'add',
  description: 'Adds two integers.',
  inputSchema: {
    type: 'object',
    properties: { a: { type: 'integer' }, b: { type: 'integer' } },
    required: ['a', 'b'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
}
const sessions = new Set()

function answer({ method, params }) {
  switch (method) {
    case 'initialize': {
      const protocolVersion = VERSIONS.includes(params?.protocolVersion) ? params.protocolVersion : VERSIONS[0]
      return { result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'versions', version: '1.0.0' } } }
    }
    case 'ping':
      return { result: {} }
    case 'tools/list':
      return params?.cursor === undefined ? { result: { tools: [add] } } : { error: { code: -32602, message: 'Invalid cursor' } }
    case 'tools/call': {
      if (params?.name !== 'add') return { error: { code: -32602, message: `Unknown tool: ${params?.name}` } }
      const { a, b, ...more } = params.arguments ?? {}
      const fits = Number.isInteger(a) && Number.isInteger(b) && Object.keys(more).length === 0
      const text = fits ? String(a + b) : 'a and b must be integers'
      return { result: { content: [{ type: 'text', text }], ...(fits ? {} : { isError: true }) } }
    }
    default:
      return { error: { code: -32601, message: 'Method not found' } }
  }
}

const server = http.createServer((request, response) => {
  const { headers, method } = request
  const end = (status, more = {}) => response.writeHead(status, more).end()
  if ((headers.origin && !LOCAL.test(headers.origin)) || !LOCAL.test(headers.host ?? '')) return end(403)
  if (request.url !== '/mcp') return end(404)
  const session = headers['mcp-session-id']
  if (method === 'DELETE') return end(session ? (sessions.delete(session) ? 204 : 404) : 400)
  if (method !== 'POST') return end(405, { allow: 'POST' })
  if (!/^application\/json/i.test(headers['content-type'] ?? '')) return end(415)
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (piece) => (body += piece))
  request.on('end', () => {
    const send = (status, message, more = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...more }).end(JSON.stringify({ jsonrpc: '2.0', ...message }))
    const refuse = (status, code, message, id = null) => send(status, { id, error: { code, message } })
    let message
    try {
      message = JSON.parse(body)
    } catch {
      return refuse(400, -32700, 'Parse error')
    }
    const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value)
    if (!isObject(message) || message.jsonrpc !== '2.0') return refuse(400, -32600, 'Invalid Request')
    const isRequest = 'id' in message
    const id = ['string', 'number'].includes(typeof message.id) ? message.id : null
    if (typeof message.method !== 'string') {
      return isRequest && ('result' in message || 'error' in message) ? end(202) : refuse(400, -32600, 'Invalid Request', id)
    }
    if (isRequest && id === null) return refuse(400, -32600, 'Invalid Request')
    if (message.params !== undefined && !isObject(message.params)) return isRequest ? refuse(400, -32602, 'Invalid params', id) : end(400)
    if (message.method !== 'initialize') {
      const version = headers['mcp-protocol-version']
      if (version !== undefined && !VERSIONS.includes(version)) {
        if (habit === '404') return response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not found</h1>')
        if (habit === 'drop') return request.socket.destroy()
        return refuse(400, -32600, 'Unsupported protocol version', id)
      }
      if (!session) return refuse(400, -32600, 'Missing session', id)
      if (!sessions.has(session)) return refuse(404, -32001, 'Session not found', id)
    }
    if (!isRequest) return end(202)
    const more = {}
    if (message.method === 'initialize') {
      more['mcp-session-id'] = crypto.randomUUID()
      sessions.add(more['mcp-session-id'])
    }
    send(200, { id, ...answer(message) }, more)
  })
})
server.listen(Number(port), '127.0.0.1')
