import { expect, test } from "vitest";
import { attempt, type Pass } from "#jobs/detection/source-hours.ts";
import type { DueZone } from "#jobs/detection/source-tick.ts";
import type { Log } from "#lib/log.ts";

const ZONES = [101, 102, 103].map((zoneId) => ({ zoneId }) as DueZone);

/** Runs a step that fails for every call, and returns what became of it. */
async function fail(signal: AbortSignal) {
  const logged: unknown[] = [];
  const log = { error: (fields: { zoneId: number }) => void logged.push(fields.zoneId) } as unknown as Log;
  const pass = { deps: { log }, kept: new Map(), tried: new Set(), signal } as unknown as Pass;
  let calls = 0;
  const failed = await attempt(pass, ZONES, () => {
    calls += 1;
    return Promise.reject(new Error("no connection"));
  }).catch((thrown: unknown) => String(thrown));
  return { calls, logged, failed };
}

test("a step that fails is tried for each zone by itself, and the log names those that fail", async () => {
  const { calls, logged, failed } = await fail(new AbortController().signal);
  expect({ calls, logged, failed }).toEqual({ calls: 4, logged: [101, 102, 103], failed: undefined });
});

test("when the service stops, a step that fails is not tried again, and the log names no zone", async () => {
  const { calls, logged, failed } = await fail(AbortSignal.abort());
  expect({ calls, logged, failed }).toEqual({ calls: 1, logged: [], failed: "Error: no connection" });
});
