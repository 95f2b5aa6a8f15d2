import { inspect } from "node:util";

const SHOWN = "[secret]";

/** A value that cannot be printed by accident: String, JSON, inspect and template all return `[secret]`. */
export interface Secret {
  /** Returns the value; the only access to it. Call it as late as possible. */
  reveal(): string;
  toString(): string;
}

export function createSecret(value: string): Secret {
  return Object.freeze({
    reveal: () => value,
    toString: () => SHOWN,
    toJSON: () => SHOWN,
    [inspect.custom]: () => SHOWN,
  });
}
