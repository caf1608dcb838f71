// The two ways to an engine: a process of its own, and an addon inside this process. Knows lines, not their content.
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { createRequire } from "node:module";
import type { Socket } from "node:net";

/** Carries lines to an engine. */
export interface Channel {
  send(line: string): void;
  /** Keeps this process alive while a response is awaited, and only then. */
  hold(alive: boolean): void;
  /** Closes both directions. */
  finish(): void;
}

/** Receives what comes back. */
export interface Reader {
  read(line: string): void;
  ended(why: string): void;
}

/** As they were before a test came with timers of its own. */
const later = setImmediate;
const [every, never] = [setInterval, clearInterval];
const resolved = Promise.resolve();

/** A process of `mcproof drive`, which may start servers and speak to them over any wire. */
export class ProcessChannel implements Channel {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #reader: Reader;
  #unwritten = "";
  #partial = "";
  #stderr = "";
  #hasEnded = false;

  constructor(program: string, reader: Reader) {
    this.#reader = reader;
    this.#child = spawn(program, ["drive"], { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stdout.setEncoding("utf8").on("data", (chunk: string) => this.#read(chunk));
    this.#child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      this.#stderr = (this.#stderr + chunk).slice(-4000);
    });
    // Who writes to a process that has just ended learns it from the end, not from the pipe.
    this.#child.stdin.on("error", () => undefined);
    this.#child.on("error", (error) => this.#end(`cannot start ${program}: ${error.message}`));
    this.#child.on("close", (code, signal) => this.#end(`mcproof drive ended with ${signal ?? `exit code ${code}`}`));
  }

  /** Goes out with what else this turn of the event loop has to say: each write wakes the engine. */
  send(line: string): void {
    if (this.#unwritten === "") {
      later(() => {
        const lines = this.#unwritten;
        this.#unwritten = "";
        if (!this.#hasEnded) {
          this.#child.stdin.write(lines);
        }
      });
    }
    this.#unwritten += `${line}\n`;
  }

  hold(alive: boolean): void {
    for (const part of [this.#child, this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      alive ? (part as unknown as Socket).ref() : (part as unknown as Socket).unref();
    }
  }

  finish(): void {
    this.#child.stdin.end();
  }

  #read(chunk: string): void {
    let start = 0;
    for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", start)) {
      const line = this.#partial + chunk.slice(start, end);
      this.#partial = "";
      start = end + 1;
      this.#reader.read(line);
    }
    this.#partial += chunk.slice(start);
  }

  #end(why: string): void {
    this.#hasEnded = true;
    this.#reader.ended(this.#stderr ? `${why}\n${this.#stderr}` : why);
  }
}

/** What `mcproof.node` exports. */
interface Addon {
  engine(): Turn;
}

/** Takes lines, does what can be done without waiting, and gives lines. */
type Turn = (lines: string) => string;

/** How late a deadline may pass. */
const TICK_MS = 10;

/** The same engine inside this process, for servers that live here: what passes between the two crosses no pipe. */
export class AddonChannel implements Channel {
  readonly #engine: Turn;
  readonly #reader: Reader;
  #unread = "";
  #isDue = false;
  #ticking: NodeJS.Timeout | undefined;
  #awaited = false;

  constructor(path: string, reader: Reader) {
    const { engine } = createRequire(import.meta.url)(path) as Addon;
    this.#engine = engine();
    this.#reader = reader;
  }

  /** Is taken when whoever runs now is done, with what else they say. */
  send(line: string): void {
    this.#unread += `${line}\n`;
    if (!this.#isDue) {
      this.#isDue = true;
      void resolved.then(this.#turn);
    }
  }

  hold(alive: boolean): void {
    this.#awaited = alive;
    if (alive) {
      this.#ticking ??= every(this.#tick, TICK_MS);
    }
  }

  finish(): void {
    this.#rest();
    this.#reader.ended("mcproof has ended");
  }

  #rest(): void {
    never(this.#ticking);
    this.#ticking = undefined;
  }

  readonly #turn = (): void => {
    const unread = this.#unread;
    this.#unread = "";
    this.#isDue = false;
    const lines = this.#engine(unread);
    let start = 0;
    for (let end = lines.indexOf("\n"); end >= 0; end = lines.indexOf("\n", start)) {
      this.#reader.read(lines.slice(start, end));
      start = end + 1;
    }
  };

  /** Deadlines pass with the clock of the engine, which is looked at in its turns. */
  readonly #tick = (): void => {
    if (this.#awaited) {
      this.#turn();
    } else {
      this.#rest();
    }
  };
}
