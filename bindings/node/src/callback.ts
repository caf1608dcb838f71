// Handlers of a test, called by whoever reads the wire: what they throw must not end the reading. Knows nothing of what they are told.
import { types } from "node:util";
import { isPromise } from "./json.js";

/** Calls a handler; what it throws, or what the promise that it returns rejects with, goes to `failed`. */
export function callBack<Value>(handler: (value: Value) => unknown, value: Value, failed: (error: unknown) => void): void {
  try {
    const returned = handler(value);
    if (isPromise(returned)) {
      void (returned as PromiseLike<unknown>).then(undefined, failed);
    }
  } catch (error) {
    failed(error);
  }
}

/** An error as it is, also one of another realm (jest); anything else that was thrown, as the message of one. */
export function toError(thrown: unknown): Error {
  return types.isNativeError(thrown) ? thrown : new Error(String(thrown));
}
