import { test } from "vitest";

/**
 * Whether this run has every case of the long tables, as the soak does (`TEST_ALL=1`). The gate has those of which no other one
 * reaches the same code.
 */
export const RUNS_ALL = process.env["TEST_ALL"] === "1";

/** Returns the cases of this run: the gate leaves out those that are marked. */
export function sample<Case>(cases: readonly Case[], isOfSoak: (one: Case) => boolean): readonly Case[] {
  return RUNS_ALL ? cases : cases.filter((one) => !isOfSoak(one));
}

/** Returns how many cases are drawn: by the gate, and by the soak. */
export const draws = (ofGate: number, ofSoak: number) => (RUNS_ALL ? ofSoak : ofGate);

/** A test that the gate leaves out. */
export const soakTest: (name: string, body: () => Promise<void>) => void = RUNS_ALL ? test : () => undefined;
