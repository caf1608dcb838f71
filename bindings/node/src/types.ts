// The shapes of MCP that tests look at. They describe and check nothing: what a server sent is passed on as it is.

export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };

/** A JSON Schema, as far as tests look into it. */
export interface JsonSchema {
  type?: string | string[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  enum?: unknown[];
  description?: string;
  // Every keyword of every dialect.
  [keyword: string]: any;
}

export interface Tool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: JsonSchema;
  outputSchema?: JsonSchema;
  annotations?: Record<string, unknown>;
  [member: string]: unknown;
}

export interface Resource {
  uri: string;
  name: string;
  mimeType?: string;
  description?: string;
  [member: string]: unknown;
}

export interface ResourceTemplate {
  uriTemplate: string;
  name: string;
  [member: string]: unknown;
}

export interface Prompt {
  name: string;
  description?: string;
  arguments?: { name: string; description?: string; required?: boolean }[];
  [member: string]: unknown;
}

export type Content =
  | { type: "text"; text: string; [member: string]: unknown }
  | { type: "image" | "audio"; data: string; mimeType: string; [member: string]: unknown }
  | { type: "resource"; resource: ResourceContents; [member: string]: unknown }
  | { type: "resource_link"; uri: string; name: string; [member: string]: unknown };

export interface ResourceContents {
  uri: string;
  mimeType?: string;
  text?: string;
  blob?: string;
  [member: string]: unknown;
}

/** The raw result of `tools/call`. */
export interface CallToolResult {
  /** Not of every length: a test that looks at a block which is not there fails, as it should. */
  content: [Content, ...Content[]];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
  _meta?: Record<string, unknown>;
  [member: string]: unknown;
}

export interface ServerInfo {
  name: string;
  version: string;
  [member: string]: unknown;
}

export interface ServerCapabilities {
  tools?: Record<string, unknown>;
  resources?: Record<string, unknown>;
  prompts?: Record<string, unknown>;
  completions?: Record<string, unknown>;
  logging?: Record<string, unknown>;
  [member: string]: unknown;
}

/** One thing seen on the wire. */
export interface Frame {
  id: number;
  [member: string]: unknown;
}
