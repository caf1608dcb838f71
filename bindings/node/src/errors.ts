// What a failed request becomes. Its text is the engine's, wire included, and is printed as it stands.

/** What kind of failure it is, as docs/drive.md lists them; `fault` is what no conforming server sends, or that it ended unasked. */
export type ErrorKind = "bad-input" | "not-open" | "unanswered" | "refused" | "canceled" | "gone" | "fault" | "broken";

/** A JSON-RPC error, as the server sent it. */
export interface RpcError {
  code: number;
  message: string;
  data?: unknown;
}

/** A failure as the engine reports it, as data. */
export interface Diagnostic {
  code: string;
  severity: string;
  message: string;
  hint?: string;
  [member: string]: unknown;
}

interface Details {
  kind?: ErrorKind;
  error?: RpcError;
  result?: unknown;
  diagnostic?: Diagnostic;
  text?: string;
}

/** Everything that this package throws about a server: its message is the diagnosis with the wire around it. */
export class McproofError extends Error {
  override readonly name = "McproofError";
  readonly kind: ErrorKind;
  /** The code of the server's JSON-RPC error, where there is one. */
  readonly code: number | undefined;
  /** The server's JSON-RPC error: `kind` is `refused`. */
  readonly error: RpcError | undefined;
  /** The result with `isError` that `raiseErrors` made an error. */
  readonly result: unknown;
  readonly diagnostic: Diagnostic | undefined;

  constructor(message: string, details: Details = {}) {
    super((details.text ?? message).replace(/^error: /, "").trimEnd());
    this.kind = details.kind ?? "broken";
    this.code = details.error?.code;
    this.error = details.error;
    this.result = details.result;
    this.diagnostic = details.diagnostic;
  }

  /** Nothing beside the message: test runners print whatever else an error has, and the message holds it already. */
  toJSON(): object {
    return {};
  }
}

export function fromDrive(error: RpcError): McproofError {
  const details = (error.data ?? {}) as Details;
  return new McproofError(error.message, { ...details, kind: details.kind ?? "bad-input" });
}
