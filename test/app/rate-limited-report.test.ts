import { expect, test } from "vitest";
import { createRateLimitedReport } from "#lib/rate-limiter.ts";

test("the same error is reported once a minute, with the number of omitted reports; another error at once", () => {
  let now = 0;
  const told: string[] = [];
  const tell = createRateLimitedReport(
    (where, error, leftOut) => void told.push(`${where}: ${error.message} +${leftOut}`),
    () => now,
  );
  for (let n = 0; n < 10_000; n += 1) tell("worker", new Error("NOPERM"));
  tell("queue", new Error("NOPERM"));
  now = 60_000;
  tell("worker", new Error("NOPERM"));
  tell("worker", new Error("NOPERM"));

  expect(told).toEqual(["worker: NOPERM +0", "queue: NOPERM +0", "worker: NOPERM +9999"]);
});
