// Which sessions a running test has talked to, so that their faults are its failure, and its failures can show their frames.
// Knows sessions, no test runner.

/** What a failure asks a session for. */
export interface Session {
  /** The last frame of it that this process knows of. */
  readonly lastFrame: number | undefined;
  transcript(options: { since?: number; last?: number }): Promise<{ text: string }>;
  /** What is wrong on its wire and was not told yet. Each is told once. */
  newFault(): Promise<Error | undefined>;
  /** Ends it; rejects with what is wrong on its wire, where no test is running that is told. */
  close(): Promise<unknown>;
}

/** More would hide the failure itself. */
const FRAMES = 40;

const watching = new Set<Witness>();
/** Those that are not closed. What their servers do wrong is told when they end, at the latest with the process. */
const open = new Set<Session>();

export interface Origin {
  /** The engine that knows the session. */
  engine: { request<T>(method: string, params: Record<string, unknown>): Promise<T> };
  session: string;
  frame: number;
}

/** Follows the sessions from its making until `end`. Tests that run at once see each other's frames in a session they share. */
export class Witness {
  readonly #seen = new Map<Session, number | undefined>();

  constructor() {
    watching.add(this);
  }

  end(): void {
    watching.delete(this);
  }

  saw(session: Session): void {
    if (!this.#seen.has(session)) {
      this.#seen.set(session, session.lastFrame);
    }
  }

  /** The first fault in one of these sessions; from here on, none of them is new. */
  fault(): Promise<Error | undefined> {
    return firstFault([...this.#seen.keys()]);
  }

  /** The wire of these sessions since then, or nothing if there was none. */
  async transcript(): Promise<string> {
    const texts = await Promise.all(
      [...this.#seen].map(async ([session, since]) => {
        const range = since === undefined ? { last: FRAMES } : { since: since + 1, last: FRAMES };
        // The failure itself is what matters: a session that has been forgotten since adds nothing to it.
        return session.transcript(range).then(({ text }) => text.trimEnd(), () => "");
      }),
    );
    return texts.filter((text) => text !== "").join("\n\n");
  }
}

/** Whether a test is running that is told of the session's faults. */
export function touch(session: Session): boolean {
  for (const witness of watching) {
    witness.saw(session);
  }
  return watching.size > 0;
}

export function opened(session: Session): void {
  if (open.size === 0) {
    process.on("beforeExit", endWithProcess);
    process.on("exit", tellOfOpen);
  }
  open.add(session);
}

export function closed(session: Session): void {
  open.delete(session);
  if (open.size === 0) {
    process.off("beforeExit", endWithProcess);
    process.off("exit", tellOfOpen);
  }
}

/** Ends all sessions that are open, and gives what is wrong in them: the one error, or all of them in one. */
export async function endOpen(): Promise<unknown> {
  const sessions = [...open];
  const ended = await Promise.allSettled(sessions.map((session) => session.close()));
  const faults = await Promise.all(sessions.map((session) => session.newFault()));
  const found = ended.flatMap((each, at): unknown[] => (each.status === "rejected" ? [each.reason] : faults[at] ? [faults[at]] : []));
  // Runners show the message alone.
  return found.length > 1 ? new AggregateError(found, found.map(told).join("\n\n")) : found[0];
}

const told = (fault: unknown): string => (fault instanceof Error ? `${fault.name}: ${fault.message}` : String(fault));

/** Where no test runner is told: the process fails. */
async function endWithProcess(): Promise<void> {
  const fault = await endOpen();
  if (fault) {
    process.exitCode = 1;
    process.stderr.write(`${fault instanceof AggregateError ? fault.message : told(fault)}\n`);
  }
}

/** `process.exit` waits for nothing. */
function tellOfOpen(code: number): void {
  process.stderr.write(`mcproof: sessions were open when the process exited, and were not judged: ${open.size}. Close them before \`process.exit\`.\n`);
  if (code === 0) {
    process.exitCode = 1;
  }
}

async function firstFault(sessions: Session[]): Promise<Error | undefined> {
  const faults = await Promise.all(sessions.map((session) => session.newFault()));
  return faults.find((fault) => fault !== undefined);
}

/** Remembers which answer a value is, for matchers that are given the value alone. */
export function remember(value: unknown, origin: Origin): void {
  if (typeof value === "object" && value !== null) {
    Marked.mark(value, origin);
  }
}

export function originOf(value: unknown): Origin | undefined {
  return typeof value === "object" && value !== null ? Marked.origin(value) : undefined;
}

/** A constructor that makes nothing: what it is given is what gets the fields of the classes below it. */
const Given = function (value: object) {
  return value;
} as unknown as new (value: object) => object;

/** A field of values that nothing else sees. A weak map would do the same, but each of its entries is work for the garbage collector. */
class Marked extends Given {
  #origin: Origin;

  private constructor(value: object, origin: Origin) {
    super(value);
    this.#origin = origin;
  }

  static mark(value: object, origin: Origin): void {
    if (#origin in value) {
      value.#origin = origin;
    } else {
      new Marked(value, origin);
    }
  }

  static origin(value: object): Origin | undefined {
    return #origin in value ? value.#origin : undefined;
  }
}
