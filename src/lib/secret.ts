import { inspect } from "node:util";

const SHOWN = "[secret]";

/** A value that cannot be printed by accident: String, JSON, inspect and template all say `[secret]`. */
export interface Secret {
  /** The only way to the value; call it at the last moment. */
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
